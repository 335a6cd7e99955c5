//! Results as Arrow columns, NULL where a group has no value, refused where one does not fit.

use super::{Aggregated, Refusal, Totals};
use crate::error::KernelError;
use crate::scan::internal;
use arrow_array::{ArrayRef, Decimal128Array, Float64Array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use everview_expr::DataType;
use std::sync::Arc;

/// Which groups have no value, if any.
pub(crate) fn nulls(aggregate: &Aggregated, groups: &Totals) -> Option<NullBuffer> {
    let has_value = |group| groups.number(aggregate, group) > 0;
    let nulls = NullBuffer::new(BooleanBuffer::collect_bool(groups.count, has_value));
    Some(nulls).filter(|n| n.null_count() > 0)
}

/// Numbers of so many groups as 64-bit integers.
pub(crate) fn bigints(count: usize, number: impl Fn(usize) -> i128, what: &str) -> Result<Vec<i64>, Refusal> {
    let value =
        |group| i64::try_from(number(group)).map_err(|_| (group, KernelError::new("ARITHMETIC_OVERFLOW", what)));
    (0..count).map(value).collect()
}

/// Doubles from each group's sum and number of values.
pub(crate) fn doubles(aggregate: &Aggregated, groups: &Totals, value: impl Fn(f64, i128) -> f64) -> ArrayRef {
    let of_group = |group| match groups.number(aggregate, group) {
        0 => 0.0,
        number => value(groups.double(aggregate, group), number),
    };
    Arc::new(Float64Array::new((0..groups.count).map(of_group).collect(), nulls(aggregate, groups)))
}

/// Decimals from each group's sum, its number of values, and by how many digits the result has more than the sum; `None` does not fit.
pub(crate) fn decimals(
    aggregate: &Aggregated,
    groups: &Totals,
    value: impl Fn(i128, i128, u32) -> Option<i128>,
) -> Result<ArrayRef, Refusal> {
    let DataType::Decimal { precision, scale } = aggregate.data_type else {
        let message = format!("no aggregate has the type {}", aggregate.data_type);
        return Err((0, KernelError::new("INVALID_PLAN", message)));
    };
    let digits = (scale - aggregate.argument_scale()) as u32;
    let limit = 10i128.checked_pow(u32::from(precision)).unwrap_or(i128::MAX);
    let of_group = |group: usize| -> Result<i128, Refusal> {
        let number = groups.number(aggregate, group);
        if number == 0 {
            return Ok(0);
        }
        let found = value(groups.exact(aggregate, group), number, digits);
        found.filter(|v| v.unsigned_abs() < limit.unsigned_abs()).ok_or_else(|| {
            let message = format!("an aggregate does not fit decimal({precision},{scale})");
            (group, KernelError::new("NUMERIC_VALUE_OUT_OF_RANGE", message))
        })
    };
    let values: Result<Vec<i128>, _> = (0..groups.count).map(of_group).collect();
    let array = Decimal128Array::new(values?.into(), nulls(aggregate, groups));
    let typed = array.with_precision_and_scale(precision, scale).map_err(|e| (0, internal(&e)))?;
    Ok(Arc::new(typed))
}
