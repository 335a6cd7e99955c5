//! Arithmetic on columns: integers with overflow as an error, IEEE doubles, decimals to the given result type.

use std::cell::Cell;
use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
};
use arrow_array::{ArrayRef, PrimitiveArray};

use crate::column::Input;
use crate::datatype::DataType;
use crate::decimal::{self, Target};
use crate::error::{EvalError, Fault};
use crate::operation::Operation;

/// Precision and scale of a decimal type.
pub(crate) fn target(data_type: DataType) -> Target {
    match data_type {
        DataType::Decimal { precision, scale } => Target { precision, scale },
        _ => Target { precision: 38, scale: 0 },
    }
}

/// `add`, `subtract`, `multiply`, `divide`, `int_div`, `modulo`.
pub(crate) fn binary(
    operation: Operation,
    input: &Input,
    types: (DataType, DataType),
    result: DataType,
) -> Result<ArrayRef, EvalError> {
    macro_rules! integers {
        ($arrow:ty, $native:ty) => {
            match operation {
                Operation::Add => shared(overflowing::<$arrow>(input, <$native>::overflowing_add, "the sum")?),
                Operation::Subtract => {
                    shared(overflowing::<$arrow>(input, <$native>::overflowing_sub, "the difference")?)
                }
                Operation::Multiply => shared(overflowing::<$arrow>(input, <$native>::overflowing_mul, "the product")?),
                Operation::Modulo => shared(input.try_map2::<$arrow, $arrow, $arrow>(|a, b| {
                    if b == 0 { Err(Fault::remainder_by_zero()) } else { Ok(a.wrapping_rem(b)) }
                })?),
                _ => shared(input.try_map2::<$arrow, $arrow, Int64Type>(|a, b| match i64::from(b) {
                    0 => Err(Fault::divide_by_zero()),
                    b => i64::from(a).checked_div(b).ok_or_else(|| Fault::overflow("the integral quotient")),
                })?),
            }
        };
    }
    macro_rules! floats {
        ($arrow:ty) => {
            match operation {
                Operation::Add => shared(input.map2::<$arrow, $arrow, $arrow>(|a, b| a + b)),
                Operation::Subtract => shared(input.map2::<$arrow, $arrow, $arrow>(|a, b| a - b)),
                Operation::Multiply => shared(input.map2::<$arrow, $arrow, $arrow>(|a, b| a * b)),
                Operation::Modulo => shared(input.try_map2::<$arrow, $arrow, $arrow>(|a, b| {
                    if b == 0.0 { Err(Fault::remainder_by_zero()) } else { Ok(a % b) }
                })?),
                _ => shared(input.try_map2::<$arrow, $arrow, $arrow>(|a, b| {
                    if b == 0.0 { Err(Fault::divide_by_zero()) } else { Ok(a / b) }
                })?),
            }
        };
    }
    Ok(match types.0 {
        DataType::TinyInt => integers!(Int8Type, i8),
        DataType::SmallInt => integers!(Int16Type, i16),
        DataType::Int => integers!(Int32Type, i32),
        DataType::BigInt => integers!(Int64Type, i64),
        DataType::Float => floats!(Float32Type),
        DataType::Double => floats!(Float64Type),
        _ => return decimals(operation, input, types, result),
    })
}

/// Short name for the loops below.
type D = Decimal128Type;

fn decimals(
    operation: Operation,
    input: &Input,
    types: (DataType, DataType),
    result: DataType,
) -> Result<ArrayRef, EvalError> {
    let (p, q) = (i32::from(types.0.scale()), i32::from(types.1.scale()));
    let target = target(result);
    if operation == Operation::IntDiv {
        let quotients =
            input.try_map2::<Decimal128Type, Decimal128Type, Int64Type>(|a, b| decimal::integer_divide(a, p, b, q))?;
        return Ok(Arc::new(quotients));
    }
    let values = match operation {
        Operation::Add => input.try_map2::<D, D, D>(|a, b| decimal::add(a, p, b, q, false, target)),
        Operation::Subtract => input.try_map2::<D, D, D>(|a, b| decimal::add(a, p, b, q, true, target)),
        Operation::Multiply => input.try_map2::<D, D, D>(|a, b| decimal::multiply(a, p, b, q, target)),
        Operation::Divide => input.try_map2::<D, D, D>(|a, b| decimal::divide(a, p, b, q, target)),
        _ => input.try_map2::<D, D, D>(|a, b| decimal::remainder(a, p, b, q, target)),
    }?;
    Ok(Arc::new(values.with_data_type(result.arrow())))
}

/// `negate`, `abs`.
pub(crate) fn unary(operation: Operation, input: &Input, data_type: DataType) -> Result<ArrayRef, EvalError> {
    let negate = operation == Operation::Negate;
    macro_rules! integers {
        ($arrow:ty) => {
            shared(input.try_map1::<$arrow, $arrow>(|a| {
                let value = if negate { a.checked_neg() } else { a.checked_abs() };
                value.ok_or_else(|| Fault::overflow(if negate { "the negation" } else { "the absolute value" }))
            })?)
        };
    }
    Ok(match data_type {
        DataType::TinyInt => integers!(Int8Type),
        DataType::SmallInt => integers!(Int16Type),
        DataType::Int => integers!(Int32Type),
        DataType::BigInt => integers!(Int64Type),
        DataType::Float => shared(input.map1::<Float32Type, Float32Type>(|a| if negate { -a } else { a.abs() })),
        DataType::Double => shared(input.map1::<Float64Type, Float64Type>(|a| if negate { -a } else { a.abs() })),
        _ => {
            let values = input
                .map1::<Decimal128Type, Decimal128Type>(|a| if negate { a.wrapping_neg() } else { a.wrapping_abs() });
            shared(values.with_data_type(data_type.arrow()))
        }
    })
}

/// Computes all rows without branches; only if some slot overflowed, looks for a row that is not NULL among them.
pub(crate) fn overflowing<T: ArrowPrimitiveType>(
    input: &Input,
    op: impl Fn(T::Native, T::Native) -> (T::Native, bool),
    what: &str,
) -> Result<PrimitiveArray<T>, EvalError> {
    let overflowed = Cell::new(false);
    let values = input.map2::<T, T, T>(|a, b| {
        let (value, overflow) = op(a, b);
        overflowed.set(overflowed.get() | overflow);
        value
    });
    if !overflowed.get() {
        return Ok(values);
    }
    input.try_map2::<T, T, T>(|a, b| match op(a, b) {
        (value, false) => Ok(value),
        _ => Err(Fault::overflow(what)),
    })
}

fn shared<T: ArrowPrimitiveType>(values: PrimitiveArray<T>) -> ArrayRef {
    Arc::new(values)
}
