//! SUM: exact for integers and decimals, refused where it does not fit; NULL where there is no value.

use super::value::{bigints, decimals, doubles, nulls};
use super::{Accumulator, Aggregated, Refusal, Totals};
use arrow_array::{ArrayRef, Int64Array};
use everview_expr::DataType;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Sum;

impl Accumulator for Sum {
    fn shows(&self, aggregate: &Aggregated) -> Option<usize> {
        aggregate.sum_at
    }

    fn finish(&self, aggregate: &Aggregated, groups: &Totals) -> Result<ArrayRef, Refusal> {
        if aggregate.data_type == DataType::BigInt {
            let sums = bigints(groups.count, |group| groups.exact(aggregate, group), "a SUM leaves BIGINT")?;
            return Ok(Arc::new(Int64Array::new(sums.into(), nulls(aggregate, groups))));
        }
        if aggregate.data_type == DataType::Double {
            return Ok(doubles(aggregate, groups, |sum, _| sum));
        }
        decimals(aggregate, groups, |sum, _, _| Some(sum))
    }
}
