//! ORDER BY with LIMIT and OFFSET: the rows from one rank to another.
//!
//! What: of the input, ordered, the rows after the first `offset`, at most `limit` of them; a row counts as often as it is there, so that some of
//! its copies may be inside and others not. Rows that ORDER BY leaves equal are ordered by all their columns: which of them are inside depends
//! on nothing but the rows, and a replay gives the same.
//! Representation: all rows of the input, inside and outside, as sort keys in an ordered multiset (`ranked.rs`, `sort_key.rs`): when a row leaves,
//! the next one comes in.
//! Invariants: those of `Ranked`. What `prepare` finds out is in `prepared` until `commit` makes it or `abort` forgets it.
//! Cost: O(log n) per row of the input's delta, and O(1) per row that enters or leaves. A row outside changes nothing and emits nothing.
//! Source: own.

use crate::consolidate::RowCodec;
use crate::counters::Counters;
use crate::error::KernelError;
use crate::flow::Flow;
use crate::interner::Interner;
use crate::operator::{Context, Held, Operator, Position};
use crate::plan;
use crate::ranked::{Change, Ranked};
use crate::sort_key::{RowOrder, SortKey};
use everview_expr::DataType;

/// The rows of the input in order, and which of them are inside.
#[derive(Debug)]
pub struct TopK {
    codec: RowCodec,
    order: RowOrder,
    rows: Ranked,
    /// LIMIT 0: nothing is ever inside, so nothing is kept.
    is_void: bool,
    prepared: Option<Change>,
    counters: Counters,
}

impl TopK {
    /// Of rows with columns of these types.
    pub fn new(plan: &plan::TopK, types: &[DataType]) -> Self {
        Self {
            codec: RowCodec::new(types),
            order: RowOrder::new(types, &plan.order),
            rows: Ranked::new(plan.offset, plan.limit),
            is_void: plan.limit == Some(0),
            prepared: None,
            counters: Counters::default(),
        }
    }

    /// Finds out what a change of the input does.
    fn change(&mut self, input: &Flow, interner: &mut Interner) -> Result<Change, KernelError> {
        let net = self.codec.net(input, interner)?;
        let width = self.codec.width();
        let key = |row: usize| self.order.key(&net.words[row * width..(row + 1) * width], &self.codec, interner);
        let keyed = net.weights.iter().enumerate().map(|(row, &weight)| (key(row), weight)).collect();
        let change = self.rows.prepare(keyed).map_err(|_| too_many())?;
        self.counters.probes += change.probes;
        self.counters.steps += change.steps;
        Ok(change)
    }
}

impl Operator for TopK {
    fn kind(&self) -> &'static str {
        "topk"
    }

    fn prepare(&mut self, input: Flow, context: &mut Context) -> Result<Flow, KernelError> {
        if self.is_void {
            return Ok(Flow::default());
        }
        let change = self.change(&input, context.interner)?;
        let rows = change.window.iter().map(|(key, copies)| (&**key, *copies));
        let chunks = self.order.rows(rows, (&*context.interner, context.pool));
        self.prepared = Some(change);
        Ok(Flow::of(chunks))
    }

    fn commit(&mut self, _: &mut Interner) {
        if let Some(change) = self.prepared.take() {
            self.rows.commit(change);
        }
    }

    fn abort(&mut self) {
        self.prepared = None;
    }

    fn held(&mut self) -> Option<&mut dyn Held> {
        Some(self)
    }

    fn is_stateful(&self) -> bool {
        true
    }

    fn size(&self) -> (usize, usize) {
        (self.rows.held(), self.rows.bytes())
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn can_refuse(&self) -> bool {
        false
    }

    fn adds_up(&self) -> bool {
        true
    }

    fn count(&self, _: Option<Option<i128>>) -> Option<Option<i128>> {
        Some(Some(self.rows.window_len()))
    }
}

impl Held for TopK {
    /// In the order of ORDER BY.
    fn read(&self, from: &Position, limit: usize, context: &Context) -> Result<(Flow, Option<Position>), KernelError> {
        let from = if let Position::Key(key) = from { Some(&**key) } else { None };
        let mut window = self.rows.window(from);
        let rows: Vec<(&SortKey, i64)> = window.by_ref().take(limit).collect();
        let keys = rows.iter().map(|&(key, copies)| (&**key, copies));
        let chunks = self.order.rows(keys, (&*context.interner, context.pool));
        Ok((Flow::of(chunks), window.next().map(|(key, _)| Position::Key(key.clone()))))
    }

    fn absorb(&mut self, input: Flow, context: &mut Context) -> Result<(), KernelError> {
        if !self.is_void {
            let change = self.change(&input, context.interner)?;
            self.rows.commit(change);
        }
        Ok(())
    }
}

fn too_many() -> KernelError {
    KernelError::new("ARITHMETIC_OVERFLOW", "a row below a LIMIT is there more than 2^63 times")
}
