//! Rows as often as a column of theirs says: what EXCEPT ALL and INTERSECT ALL make of the counts of a row on both sides.
//!
//! What: a row of the input n times, where n is its number by an expression; not at all where that is NULL or below one.
//! Representation: none; a row with multiplicity m has multiplicity m n. So a row whose count changes leaves as often as it was there and
//! comes as often as it is, and the net of both is what changes where nothing above reads the count.
//! Cost: O(1) per row of the delta, however large n is.

use crate::error::KernelError;
use crate::flow::{Flow, in_row_of, record_batch};
use crate::operator::{Context, Operator};
use crate::scan::internal;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, BooleanArray};
use arrow_schema::SchemaRef;
use everview_expr::Expr;

/// Rows, each as often as an expression says.
#[derive(Debug)]
pub struct Repeat {
    count: Expr,
    input: SchemaRef,
}

impl Repeat {
    /// By this expression, which is a BIGINT, over rows of this schema.
    pub fn new(count: Expr, input: SchemaRef) -> Self {
        Self { count, input }
    }
}

impl Operator for Repeat {
    fn kind(&self) -> &'static str {
        "repeat"
    }

    fn prepare(&mut self, input: Flow, _: &mut Context) -> Result<Flow, KernelError> {
        input.map(|mut chunk| {
            let batch = record_batch(&self.input, std::mem::take(&mut chunk.columns), chunk.weights.len())?;
            let counts = self.count.evaluate(&batch).map_err(|error| in_row_of(error, &batch))?;
            let counts = counts.as_primitive::<Int64Type>();
            let times = |row: usize| if counts.is_null(row) { 0 } else { counts.value(row).max(0) };
            let kept: BooleanArray = (0..counts.len()).map(|row| Some(times(row) > 0)).collect();
            let weights = chunk.weights.iter().enumerate().filter(|&(row, _)| kept.value(row));
            chunk.weights = weights
                .map(|(row, &weight)| weight.checked_mul(times(row)).ok_or_else(too_many))
                .collect::<Result<_, _>>()?;
            let batch = arrow_select::filter::filter_record_batch(&batch, &kept).map_err(|e| internal(&e))?;
            chunk.columns = batch.columns().to_vec();
            Ok(chunk)
        })
    }

    fn can_refuse(&self) -> bool {
        true
    }

    fn count(&self, _: Option<Option<i128>>) -> Option<Option<i128>> {
        None
    }
}

fn too_many() -> KernelError {
    KernelError::new("ARITHMETIC_OVERFLOW", "a row of EXCEPT ALL or INTERSECT ALL is there more than 2^63 times")
}
