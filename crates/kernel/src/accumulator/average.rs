//! AVG: the sum divided by the number of values, rounded half away from zero; NULL where there is no value.

use super::value::{decimals, doubles};
use super::{Accumulator, Aggregated, Refusal, Totals};
use arrow_array::ArrayRef;
use arrow_buffer::i256;
use everview_expr::DataType;

#[derive(Debug)]
pub(crate) struct Average;

impl Accumulator for Average {
    fn shows(&self, _: &Aggregated) -> Option<usize> {
        None // a mean may stay the same though sum and number change
    }

    fn finish(&self, aggregate: &Aggregated, groups: &Totals) -> Result<ArrayRef, Refusal> {
        if aggregate.data_type == DataType::Double {
            return Ok(doubles(aggregate, groups, |sum, number| sum / number as f64));
        }
        decimals(aggregate, groups, mean)
    }
}

/// `sum * 10^digits / count`, rounded half away from zero.
fn mean(sum: i128, count: i128, digits: u32) -> Option<i128> {
    let scaled = i256::from_i128(sum).checked_mul(i256::from_i128(10i128.pow(digits)))?;
    let count = i256::from_i128(count);
    let (quotient, rest) = (scaled.checked_div(count)?, scaled.checked_rem(count)?);
    let round = rest.wrapping_abs().checked_mul(i256::from_i128(2))? >= count;
    let one = if sum < 0 { i256::MINUS_ONE } else { i256::ONE };
    (if round { quotient.checked_add(one)? } else { quotient }).to_i128()
}
