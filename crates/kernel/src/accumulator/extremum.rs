//! MIN and MAX: an end of the group's values in order; NULL where there is none.

use super::{Accumulator, Aggregated, Order, Refusal, State, Totals};
use crate::bag::End;
use arrow_array::ArrayRef;
use everview_expr::DataType;

#[derive(Debug)]
pub(crate) struct Extremum(End);

pub(crate) const MIN: Extremum = Extremum(End::First);
pub(crate) const MAX: Extremum = Extremum(End::Last);

impl Accumulator for Extremum {
    fn state(&self) -> State {
        State::Ordered(Order { by: &[], present: 0, end: self.0 })
    }

    fn shows(&self, _: &Aggregated) -> Option<usize> {
        None // it may stay the same whatever changes
    }

    fn can_refuse(&self, _: DataType) -> bool {
        false
    }

    fn finish(&self, aggregate: &Aggregated, groups: &Totals) -> Result<ArrayRef, Refusal> {
        Ok(groups.picked(aggregate))
    }
}
