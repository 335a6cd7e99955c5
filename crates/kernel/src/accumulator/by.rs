//! `MIN_BY` and `MAX_BY`: the first argument in the row whose second is least or greatest; of such rows, the least first argument, NULL last.

use super::{Accumulator, Aggregated, Order, Refusal, State, Totals};
use crate::bag::End;
use crate::plan::SortColumn;
use arrow_array::ArrayRef;
use everview_expr::DataType;

const VALUE: SortColumn = SortColumn { column: 0, descending: false, nulls_first: false };

#[derive(Debug)]
pub(crate) struct By(&'static [SortColumn]);

pub(crate) const MIN_BY: By = By(&[SortColumn { column: 1, descending: false, nulls_first: false }, VALUE]);
pub(crate) const MAX_BY: By = By(&[SortColumn { column: 1, descending: true, nulls_first: false }, VALUE]);

impl Accumulator for By {
    fn state(&self) -> State {
        State::Ordered(Order { by: self.0, present: 1, end: End::First })
    }

    fn shows(&self, _: &Aggregated) -> Option<usize> {
        None
    }

    fn can_refuse(&self, _: DataType) -> bool {
        false
    }

    fn finish(&self, aggregate: &Aggregated, groups: &Totals) -> Result<ArrayRef, Refusal> {
        Ok(groups.picked(aggregate))
    }
}
