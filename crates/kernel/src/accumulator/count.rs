//! COUNT: never NULL; it fits its type where the number of rows does.

use super::value::bigints;
use super::{Accumulator, Aggregated, Refusal, State, Totals};
use arrow_array::{ArrayRef, Int64Array};
use everview_expr::DataType;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Count;

impl Accumulator for Count {
    fn state(&self) -> State {
        State::Number
    }

    fn shows(&self, aggregate: &Aggregated) -> Option<usize> {
        Some(aggregate.count_at)
    }

    fn can_refuse(&self, _: DataType) -> bool {
        false
    }

    fn finish(&self, aggregate: &Aggregated, groups: &Totals) -> Result<ArrayRef, Refusal> {
        let counts = bigints(groups.count, |group| groups.number(aggregate, group), "a COUNT leaves BIGINT")?;
        Ok(Arc::new(Int64Array::from(counts)))
    }
}
