//! Operators above a core, on deltas.
//!
//! A batch passes every operator of every view in two phases. `prepare` takes the change of the input and gives the change of the output; it
//! may refuse, and it changes nothing that can be observed. When all operators of all views have prepared, `commit` makes the change, and
//! cannot fail; if one refused, `abort` forgets what was prepared. So a refused batch leaves no trace, whatever refused it.
//!
//! What `prepare` sees is net: every row of it was in the input before the batch or is in it afterwards, so that nothing is evaluated that
//! neither state contains.

use crate::codec::normalised;
use crate::counters::Counters;
use crate::error::KernelError;
use crate::flow::{Flow, in_row_of, record_batch};
use crate::interner::Interner;
use crate::pool::WordPool;
use crate::scan::internal;
use crate::sort_key::SortKey;
use arrow_array::{ArrayRef, BooleanArray};
use arrow_schema::SchemaRef;
use everview_expr::Expr;
use std::fmt::Debug;

/// What operators need of the session.
pub struct Context<'a> {
    /// The session's texts.
    pub interner: &'a mut Interner,
    /// The session's buffers.
    pub pool: &'a WordPool,
    /// How many threads may enumerate.
    pub threads: usize,
    /// How many bytes the words of a delta may take.
    pub delta_bytes: usize,
}

/// Where the reading of the rows of an operator stands.
#[derive(Debug, Default)]
pub enum Position {
    /// Before the first row.
    #[default]
    Start,
    /// At a row by its place in a slab.
    Row(u32),
    /// At a row by its place in an order, and its rank where rows are numbered.
    Key(SortKey, i128),
}

impl Position {
    /// The place in a slab to read from.
    pub fn row(&self) -> u32 {
        if let Self::Row(row) = self { *row } else { 0 }
    }
}

/// The rows that an operator holds, in a fixed order.
pub trait Held {
    /// At most `limit` of them from a position on, and the position to go on from, if there are more.
    fn read(&self, from: &Position, limit: usize, context: &Context) -> Result<(Flow, Option<Position>), KernelError>;

    /// Takes rows of the input in, while a view is built: like prepare and commit, but what comes out is not looked at before all are in.
    fn absorb(&mut self, input: Flow, context: &mut Context) -> Result<(), KernelError>;
}

/// An operator.
pub trait Operator: Debug + Send {
    /// Its kind, for metrics.
    fn kind(&self) -> &'static str;

    /// The change of the output for a change of the input.
    fn prepare(&mut self, input: Flow, context: &mut Context) -> Result<Flow, KernelError>;

    /// Makes the prepared change.
    fn commit(&mut self, _interner: &mut Interner) {}

    /// Forgets the prepared change.
    fn abort(&mut self) {}

    /// Gives memory back if there is much to give.
    fn give_back(&mut self) {}

    /// Its rows, if it holds any. One that holds none treats every row by itself.
    fn held(&mut self) -> Option<&mut dyn Held> {
        None
    }

    /// Whether it holds rows, as `held`.
    fn is_stateful(&self) -> bool {
        false
    }

    /// Rows and bytes held.
    fn size(&self) -> (usize, usize) {
        (0, 0)
    }

    /// The work it has done, if it counts it.
    fn counters(&self) -> Counters {
        Counters::default()
    }

    /// Whether it can refuse a row.
    fn can_refuse(&self) -> bool;

    /// Whether different rows may become equal, each with its own multiplicity.
    fn merges_rows(&self) -> bool {
        false
    }

    /// Whether it adds equal rows up itself, so that its input need not be net for it.
    fn adds_up(&self) -> bool {
        false
    }

    /// The number of its rows where its input has `input`, if that can be told.
    fn count(&self, input: Option<Option<i128>>) -> Option<Option<i128>>;

    /// Gives up the texts it keeps alive; it is dropped afterwards.
    fn release_texts(&self, _interner: &mut Interner) {}
}

/// Computed columns.
#[derive(Debug)]
pub struct Map {
    expressions: Vec<Expr>,
    input: SchemaRef,
}

impl Map {
    /// These expressions over rows of this schema.
    pub fn new(expressions: Vec<Expr>, input: SchemaRef) -> Self {
        Self { expressions, input }
    }
}

impl Operator for Map {
    fn kind(&self) -> &'static str {
        "map"
    }

    fn prepare(&mut self, mut input: Flow, _: &mut Context) -> Result<Flow, KernelError> {
        input.may_repeat |= self.merges_rows();
        input.map(|mut chunk| {
            let batch = record_batch(&self.input, std::mem::take(&mut chunk.columns), chunk.weights.len())?;
            let column = |e: &Expr| -> Result<ArrayRef, KernelError> {
                match e.as_column() {
                    Some(i) => Ok(batch.column(i).clone()),
                    None => Ok(normalised(e.evaluate(&batch).map_err(|error| in_row_of(error, &batch))?)),
                }
            };
            chunk.columns = self.expressions.iter().map(column).collect::<Result<_, _>>()?;
            Ok(chunk)
        })
    }

    fn can_refuse(&self) -> bool {
        self.expressions.iter().any(Expr::is_fallible)
    }

    fn merges_rows(&self) -> bool {
        let kept = |i: usize| self.expressions.iter().any(|e| e.as_column() == Some(i));
        !(0..self.input.fields().len()).all(kept)
    }

    fn count(&self, input: Option<Option<i128>>) -> Option<Option<i128>> {
        input
    }
}

/// A condition.
#[derive(Debug)]
pub struct Filter {
    predicate: Expr,
    input: SchemaRef,
}

impl Filter {
    /// This condition over rows of this schema.
    pub fn new(predicate: Expr, input: SchemaRef) -> Self {
        Self { predicate, input }
    }
}

impl Operator for Filter {
    fn kind(&self) -> &'static str {
        "filter"
    }

    fn prepare(&mut self, input: Flow, _: &mut Context) -> Result<Flow, KernelError> {
        input.map(|mut chunk| {
            let batch = record_batch(&self.input, std::mem::take(&mut chunk.columns), chunk.weights.len())?;
            let kept: BooleanArray =
                self.predicate.evaluate_predicate(&batch).map_err(|error| in_row_of(error, &batch))?;
            let batch = arrow_select::filter::filter_record_batch(&batch, &kept).map_err(|e| internal(&e))?;
            let mut keep = kept.iter();
            chunk.weights.retain(|_| keep.next().flatten() == Some(true));
            chunk.columns = batch.columns().to_vec();
            Ok(chunk)
        })
    }

    fn can_refuse(&self) -> bool {
        self.predicate.is_fallible()
    }

    fn count(&self, _: Option<Option<i128>>) -> Option<Option<i128>> {
        None
    }
}

/// The rows of all its inputs.
#[derive(Debug)]
pub struct Union;

impl Operator for Union {
    fn kind(&self) -> &'static str {
        "union"
    }

    fn prepare(&mut self, input: Flow, _: &mut Context) -> Result<Flow, KernelError> {
        Ok(input)
    }

    fn can_refuse(&self) -> bool {
        false
    }

    fn merges_rows(&self) -> bool {
        true
    }

    fn count(&self, input: Option<Option<i128>>) -> Option<Option<i128>> {
        input
    }
}
