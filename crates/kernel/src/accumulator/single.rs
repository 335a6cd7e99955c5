//! The value of the only row of a group: what a scalar subquery gives. A group of two rows is refused.
//!
//! The number of rows is the multiplicity, or a component where rows are partial results. Its value is kept as that of MIN is.

use super::{Accumulator, Aggregated, Order, Refusal, State, Totals};
use crate::bag::End;
use crate::error::KernelError;
use arrow_array::ArrayRef;
use everview_expr::DataType;

#[derive(Debug)]
pub(crate) struct Single;

impl Accumulator for Single {
    fn state(&self) -> State {
        State::Ordered(Order { by: &[], present: 0, end: End::First })
    }

    fn shows(&self, _: &Aggregated) -> Option<usize> {
        None // the value may be NULL
    }

    fn reads_number(&self) -> bool {
        true
    }

    fn can_refuse(&self, _: DataType) -> bool {
        true
    }

    fn finish(&self, aggregate: &Aggregated, groups: &Totals) -> Result<ArrayRef, Refusal> {
        match (0..groups.count).find(|&group| groups.number(aggregate, group) > 1) {
            None => Ok(groups.picked(aggregate)),
            Some(group) => {
                let rows = groups.number(aggregate, group);
                let message = format!("a scalar subquery gives {rows} rows");
                let error = KernelError::new("SCALAR_SUBQUERY_TOO_MANY_ROWS", message)
                    .with_hint("delete rows in the same batch, or aggregate in the subquery, with MIN for example");
                Err((group, error))
            }
        }
    }
}
