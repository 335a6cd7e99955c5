//! From a group's sums to the values of its aggregates.

use crate::double_sum::DoubleSum;
use crate::error::KernelError;
use crate::plan::Function;
use crate::scan::internal;
use arrow_array::{ArrayRef, Decimal128Array, Float64Array, Int64Array};
use arrow_buffer::{BooleanBuffer, NullBuffer, i256};
use everview_expr::DataType;
use std::sync::Arc;

/// An aggregate: its function, and where it finds its sums in a group's vector.
#[derive(Debug)]
pub(crate) struct Spec {
    pub(crate) function: Function,
    pub(crate) data_type: DataType,
    pub(crate) argument_type: Option<DataType>,
    /// Where the number of values stands in a group's vector.
    pub(crate) count_at: usize,
    /// Where their sum stands, if it is exact.
    pub(crate) sum_at: Option<usize>,
    /// Which of the group's double sums is theirs.
    pub(crate) double_at: Option<usize>,
}

impl Spec {
    /// Whether a result may not fit its type. Counts do, as long as the number of rows does.
    pub(crate) fn can_refuse(&self) -> bool {
        self.function != Function::Count && self.data_type != DataType::Double
    }

    /// One aggregate's results.
    ///
    /// `sums` and `doubles` hold so many groups one after another, each of the width given with them. An error comes with the group it is of.
    pub(crate) fn finish(
        &self,
        count: usize,
        (sums, width): (&[i128], usize),
        (doubles, double_width): (&[DoubleSum], usize),
    ) -> Result<ArrayRef, (usize, KernelError)> {
        let number = |i: usize| sums[i * width + self.count_at];
        if self.function == Function::Count {
            return Ok(Arc::new(Int64Array::from(bigints(count, number, "a COUNT leaves BIGINT")?)));
        }
        let exact = |i: usize| sums[i * width + self.sum_at.expect("an exact sum")];
        let nulls = NullBuffer::new(BooleanBuffer::collect_bool(count, |i| number(i) > 0));
        let nulls = Some(nulls).filter(|n| n.null_count() > 0);
        let is_avg = self.function == Function::Avg;
        match self.data_type {
            DataType::Double => {
                let scale = if let Some(DataType::Decimal { scale, .. }) = self.argument_type { scale } else { 0 };
                let value = |i: usize| {
                    let sum = match self.double_at {
                        Some(at) => doubles[i * double_width + at].value(),
                        None => exact(i) as f64 / 10f64.powi(i32::from(scale)),
                    };
                    if number(i) == 0 {
                        0.0
                    } else if is_avg {
                        sum / number(i) as f64
                    } else {
                        sum
                    }
                };
                Ok(Arc::new(Float64Array::new((0..count).map(value).collect(), nulls)))
            }
            DataType::BigInt => {
                Ok(Arc::new(Int64Array::new(bigints(count, exact, "a SUM leaves BIGINT")?.into(), nulls)))
            }
            DataType::Decimal { precision, scale } => {
                let from = if let Some(DataType::Decimal { scale, .. }) = self.argument_type { scale } else { 0 };
                let limit = 10i128.checked_pow(u32::from(precision)).unwrap_or(i128::MAX);
                let value = |i: usize| -> Result<i128, (usize, KernelError)> {
                    if number(i) == 0 {
                        return Ok(0);
                    }
                    let value = if is_avg { mean(exact(i), number(i), (scale - from) as u32) } else { Some(exact(i)) };
                    value.filter(|v| v.unsigned_abs() < limit.unsigned_abs()).ok_or_else(|| {
                        let message = format!("an aggregate does not fit decimal({precision},{scale})");
                        (i, KernelError::new("NUMERIC_VALUE_OUT_OF_RANGE", message))
                    })
                };
                let values: Result<Vec<i128>, _> = (0..count).map(value).collect();
                let array = Decimal128Array::new(values?.into(), nulls);
                let typed = array.with_precision_and_scale(precision, scale).map_err(|e| (0, internal(&e)))?;
                Ok(Arc::new(typed))
            }
            other => Err((0, KernelError::new("INVALID_PLAN", format!("no aggregate has the type {other}")))),
        }
    }
}

/// Sums of so many groups as 64-bit integers.
fn bigints(count: usize, sum: impl Fn(usize) -> i128, what: &str) -> Result<Vec<i64>, (usize, KernelError)> {
    let value = |i| i64::try_from(sum(i)).map_err(|_| (i, KernelError::new("ARITHMETIC_OVERFLOW", what)));
    (0..count).map(value).collect()
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
