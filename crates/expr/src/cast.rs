//! Casts, as ANSI mode has them: what does not fit is an error, never a wrapped or missing value. The one exception is
//! Spark's own: NaN and infinity become NULL as decimals.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray, new_null_array};
use arrow_buffer::{BooleanBuffer, NullBuffer};

use crate::arithmetic::target;
use crate::cast_text;
use crate::column::Input;
use crate::datatype::DataType;
use crate::decimal::{self, Target};
use crate::error::{EvalError, Fault};

const SECOND: i64 = 1_000_000;

/// Whether the cast exists.
pub(crate) fn is_supported(from: DataType, to: DataType) -> bool {
    match (from, to) {
        (DataType::Null, _) => true,
        (_, DataType::Null) => false,
        _ if from.is_text() || to.is_text() || from == to => true,
        (DataType::Binary, _) | (_, DataType::Binary) => false,
        (DataType::Date, _) => to.is_timestamp(),
        (DataType::Timestamp, _) => matches!(to, DataType::Date | DataType::TimestampNtz) || to.is_numeric(),
        (DataType::TimestampNtz, _) => matches!(to, DataType::Date | DataType::Timestamp),
        (_, DataType::Timestamp) => from.is_numeric(),
        (_, DataType::Date | DataType::TimestampNtz) => false,
        // Only numbers and truth values are left.
        _ => true,
    }
}

/// Whether the cast can fail on some value.
pub(crate) fn can_fail(from: DataType, to: DataType) -> bool {
    let digits = |data_type| match data_type {
        DataType::Boolean => Some((1, 0)),
        DataType::TinyInt => Some((3, 0)),
        DataType::SmallInt => Some((5, 0)),
        DataType::Int => Some((10, 0)),
        DataType::BigInt => Some((19, 0)),
        DataType::Decimal { precision, scale } => Some((i32::from(precision) - i32::from(scale), i32::from(scale))),
        _ => None,
    };
    match (from, to) {
        // Bytes are a text only if they are UTF-8; a text always is bytes.
        (DataType::Binary, _) => from != to,
        (_, DataType::Binary) | (DataType::Timestamp, DataType::BigInt | DataType::Float | DataType::Double) => false,
        (DataType::Null, _) | (_, DataType::String | DataType::Boolean) if !from.is_text() => false,
        _ if from.is_timestamp() && (to == DataType::Date || to.is_timestamp()) => false,
        _ if from == to || (from.is_text() && to == DataType::String) => false,
        _ if from.is_numeric() || from == DataType::Boolean => {
            let narrow = match (digits(from), digits(to)) {
                // Rounding away digits can add one before the point.
                (Some(from), Some(to)) => from.0 + i32::from(from.1 > to.1) > to.0,
                _ => !to.is_floating(),
            };
            // Integer types do not hold all numbers of their number of digits.
            narrow || (from.is_decimal() && to.is_integer())
        }
        _ => true,
    }
}

/// Casts a column.
pub(crate) fn cast(input: &Input, from: DataType, to: DataType) -> Result<ArrayRef, EvalError> {
    if from == to || (from.is_text() && to == DataType::String) {
        return Ok(Arc::clone(input.column(0).array()));
    }
    if to.is_text() {
        return cast_text::to_text(input, from, to);
    }
    match from {
        DataType::Null => Ok(new_null_array(&to.arrow(), input.rows)),
        DataType::Boolean => from_boolean(input, to),
        DataType::TinyInt => from_integer::<Int8Type>(input, to),
        DataType::SmallInt => from_integer::<Int16Type>(input, to),
        DataType::Int => from_integer::<Int32Type>(input, to),
        DataType::BigInt => from_integer::<Int64Type>(input, to),
        DataType::Float => from_floating::<Float32Type>(input, to),
        DataType::Double => from_floating::<Float64Type>(input, to),
        DataType::Decimal { scale, .. } => from_decimal(input, i32::from(scale), to),
        DataType::String | DataType::Char(_) | DataType::VarChar(_) => cast_text::from_text(input, to),
        DataType::Date => {
            let micros = input.try_map1::<Date32Type, TimestampMicrosecondType>(|days| {
                i64::from(days)
                    .checked_mul(crate::calendar::DAY)
                    .ok_or_else(|| Fault::datetime("the timestamp of a date"))
            })?;
            Ok(Arc::new(micros.with_data_type(to.arrow())))
        }
        DataType::Timestamp | DataType::TimestampNtz => from_timestamp(input, to),
        // Only texts.
        DataType::Binary => Err(unsupported(to)),
    }
}

/// A column of the decimal type `to`.
pub(crate) fn decimals(values: PrimitiveArray<Decimal128Type>, to: DataType) -> ArrayRef {
    Arc::new(values.with_data_type(to.arrow()))
}

fn timestamps(values: PrimitiveArray<TimestampMicrosecondType>) -> ArrayRef {
    Arc::new(values.with_data_type(DataType::Timestamp.arrow()))
}

fn unsupported(to: DataType) -> EvalError {
    EvalError::invalid(format!("no cast to {to}"))
}

fn from_boolean(input: &Input, to: DataType) -> Result<ArrayRef, EvalError> {
    let column = input.column(0).array().as_boolean();
    let bit = |row: usize| column.value(row);
    Ok(match to {
        DataType::TinyInt => Arc::new(input.map::<Int8Type>(|row| i8::from(bit(row)))),
        DataType::SmallInt => Arc::new(input.map::<Int16Type>(|row| i16::from(bit(row)))),
        DataType::Int => Arc::new(input.map::<Int32Type>(|row| i32::from(bit(row)))),
        DataType::BigInt => Arc::new(input.map::<Int64Type>(|row| i64::from(bit(row)))),
        DataType::Float => Arc::new(input.map::<Float32Type>(|row| f32::from(u8::from(bit(row))))),
        DataType::Double => Arc::new(input.map::<Float64Type>(|row| f64::from(u8::from(bit(row))))),
        DataType::Decimal { .. } => {
            let target = target(to);
            decimals(input.try_map(|row| decimal::settle(i128::from(bit(row)), 0, target))?, to)
        }
        _ => return Err(unsupported(to)),
    })
}

fn from_integer<T>(input: &Input, to: DataType) -> Result<ArrayRef, EvalError>
where
    T: ArrowPrimitiveType,
    T::Native: Into<i64>,
{
    let overflow = |value: i64| Fault::cast_overflow(value, to);
    Ok(match to {
        DataType::Boolean => boolean::<T>(input, |x| x.into() != 0),
        DataType::TinyInt => Arc::new(input.try_map1::<T, Int8Type>(|x| {
            let x = x.into();
            i8::try_from(x).map_err(|_| overflow(x))
        })?),
        DataType::SmallInt => Arc::new(input.try_map1::<T, Int16Type>(|x| {
            let x = x.into();
            i16::try_from(x).map_err(|_| overflow(x))
        })?),
        DataType::Int => Arc::new(input.try_map1::<T, Int32Type>(|x| {
            let x = x.into();
            i32::try_from(x).map_err(|_| overflow(x))
        })?),
        DataType::BigInt => Arc::new(input.map1::<T, Int64Type>(Into::into)),
        DataType::Float => Arc::new(input.map1::<T, Float32Type>(|x| x.into() as f32)),
        DataType::Double => Arc::new(input.map1::<T, Float64Type>(|x| x.into() as f64)),
        DataType::Decimal { .. } => {
            let target = target(to);
            decimals(input.try_map1::<T, Decimal128Type>(|x| decimal::settle(i128::from(x.into()), 0, target))?, to)
        }
        DataType::Timestamp => timestamps(input.try_map1::<T, _>(|x| {
            let x = x.into();
            x.checked_mul(SECOND).ok_or_else(|| overflow(x))
        })?),
        _ => return Err(unsupported(to)),
    })
}

fn from_floating<T>(input: &Input, to: DataType) -> Result<ArrayRef, EvalError>
where
    T: ArrowPrimitiveType,
    T::Native: Into<f64>,
{
    // As Spark: the value cut to an integer must lie within the bounds seen as doubles, so 2^63 passes for bigint.
    let whole = |x: f64, least: i64, most: i64| {
        if x.floor() <= most as f64 && x.ceil() >= least as f64 {
            Ok(x as i64)
        } else {
            Err(Fault::cast_overflow(java(x), to))
        }
    };
    Ok(match to {
        DataType::Boolean => boolean::<T>(input, |x| x.into() != 0.0),
        DataType::TinyInt => Arc::new(
            input.try_map1::<T, Int8Type>(|x| whole(x.into(), i8::MIN.into(), i8::MAX.into()).map(|x| x as i8))?,
        ),
        DataType::SmallInt => Arc::new(
            input.try_map1::<T, Int16Type>(|x| whole(x.into(), i16::MIN.into(), i16::MAX.into()).map(|x| x as i16))?,
        ),
        DataType::Int => Arc::new(
            input.try_map1::<T, Int32Type>(|x| whole(x.into(), i32::MIN.into(), i32::MAX.into()).map(|x| x as i32))?,
        ),
        DataType::BigInt => Arc::new(input.try_map1::<T, Int64Type>(|x| whole(x.into(), i64::MIN, i64::MAX))?),
        DataType::Float => Arc::new(input.map1::<T, Float32Type>(|x| x.into() as f32)),
        DataType::Double => Arc::new(input.map1::<T, Float64Type>(Into::into)),
        DataType::Decimal { .. } => {
            let target = target(to);
            let values = input.try_map1::<T, Decimal128Type>(|x| from_double(x.into(), target))?;
            let operand = input.operand::<T>(0);
            let finite = BooleanBuffer::collect_bool(input.rows, |row| operand.get(row).into().is_finite());
            let nulls = NullBuffer::union(values.nulls(), Some(&NullBuffer::new(finite)));
            decimals(PrimitiveArray::new(values.values().clone(), nulls.filter(|nulls| nulls.null_count() > 0)), to)
        }
        DataType::Timestamp => timestamps(input.try_map1::<T, _>(|x| {
            let x: f64 = x.into();
            let micros = x * SECOND as f64;
            if !x.is_finite() {
                Err(Fault::invalid_input(&java(x), to))
            } else if micros.abs() > i64::MAX as f64 {
                Err(Fault::cast_overflow(java(x), to))
            } else {
                Ok(micros as i64)
            }
        })?),
        _ => return Err(unsupported(to)),
    })
}

/// A finite double as a decimal, by its shortest digits; 0 stands for what becomes NULL.
fn from_double(value: f64, target: Target) -> Result<i128, Fault> {
    let Some(digits) = decimal::shortest(value) else {
        return Ok(0);
    };
    match digits.to_scale(i32::from(target.scale)) {
        Some(unscaled) if decimal::fits(unscaled, target.precision) => Ok(unscaled),
        _ => Err(Fault::out_of_range(java(value), target.precision, target.scale)),
    }
}

fn java(value: f64) -> String {
    let mut text = String::new();
    crate::number_text::write_double(value, &mut text);
    text
}

fn from_decimal(input: &Input, scale: i32, to: DataType) -> Result<ArrayRef, EvalError> {
    let power = decimal::POWERS[scale.clamp(0, 38) as usize];
    let whole = |x: i128| i64::try_from(x / power).map_err(|_| Fault::cast_overflow(decimal::format(x, scale), to));
    let overflow = |x: i128| Fault::cast_overflow(decimal::format(x, scale), to);
    Ok(match to {
        DataType::Boolean => boolean::<Decimal128Type>(input, |x| x != 0),
        DataType::TinyInt => {
            Arc::new(input.try_map1::<Decimal128Type, Int8Type>(|x| i8::try_from(whole(x)?).map_err(|_| overflow(x)))?)
        }
        DataType::SmallInt => Arc::new(
            input.try_map1::<Decimal128Type, Int16Type>(|x| i16::try_from(whole(x)?).map_err(|_| overflow(x)))?,
        ),
        DataType::Int => Arc::new(
            input.try_map1::<Decimal128Type, Int32Type>(|x| i32::try_from(whole(x)?).map_err(|_| overflow(x)))?,
        ),
        DataType::BigInt => Arc::new(input.try_map1::<Decimal128Type, Int64Type>(whole)?),
        DataType::Float => Arc::new(input.map1::<Decimal128Type, Float32Type>(|x| {
            // Correctly rounded: two numbers that are exact as floats, or through the text.
            if x.unsigned_abs() < 1 << 24 && scale <= 10 {
                x as f32 / power as f32
            } else {
                decimal::format(x, scale).parse().unwrap_or(f32::NAN)
            }
        })),
        DataType::Double => Arc::new(input.map1::<Decimal128Type, Float64Type>(|x| to_double(x, scale))),
        DataType::Decimal { .. } => {
            let target = target(to);
            decimals(input.try_map1::<Decimal128Type, Decimal128Type>(|x| decimal::settle(x, scale, target))?, to)
        }
        DataType::Timestamp => timestamps(input.try_map1::<Decimal128Type, _>(|x| {
            let micros =
                if scale > 6 { Some(x / decimal::POWERS[(scale - 6) as usize]) } else { decimal::rescale(x, scale, 6) };
            micros.and_then(|micros| i64::try_from(micros).ok()).ok_or_else(|| overflow(x))
        })?),
        _ => return Err(unsupported(to)),
    })
}

/// The double closest to a decimal.
fn to_double(value: i128, scale: i32) -> f64 {
    // Two numbers that are exact as doubles have a correctly rounded quotient.
    if value.unsigned_abs() < 1 << 53 && scale <= 22 {
        return value as f64 / decimal::POWERS[scale.clamp(0, 38) as usize] as f64;
    }
    decimal::format(value, scale).parse().unwrap_or(f64::NAN)
}

fn from_timestamp(input: &Input, to: DataType) -> Result<ArrayRef, EvalError> {
    type Source = TimestampMicrosecondType;
    let seconds = |micros: i64| micros.div_euclid(SECOND);
    let overflow = |micros: i64| {
        let mut text = String::new();
        crate::calendar::format_timestamp(micros, &mut text);
        Fault::cast_overflow(text, to)
    };
    Ok(match to {
        DataType::Date => {
            Arc::new(input.map1::<Source, Date32Type>(|micros| micros.div_euclid(crate::calendar::DAY) as i32))
        }
        // The same digits: what has no zone is in UTC.
        DataType::Timestamp | DataType::TimestampNtz => {
            Arc::new(input.map1::<Source, Source>(|micros| micros).with_data_type(to.arrow()))
        }
        DataType::TinyInt => {
            Arc::new(input.try_map1::<Source, Int8Type>(|x| i8::try_from(seconds(x)).map_err(|_| overflow(x)))?)
        }
        DataType::SmallInt => {
            Arc::new(input.try_map1::<Source, Int16Type>(|x| i16::try_from(seconds(x)).map_err(|_| overflow(x)))?)
        }
        DataType::Int => {
            Arc::new(input.try_map1::<Source, Int32Type>(|x| i32::try_from(seconds(x)).map_err(|_| overflow(x)))?)
        }
        DataType::BigInt => Arc::new(input.map1::<Source, Int64Type>(seconds)),
        DataType::Float => Arc::new(input.map1::<Source, Float32Type>(|x| (x as f64 / SECOND as f64) as f32)),
        DataType::Double => Arc::new(input.map1::<Source, Float64Type>(|x| x as f64 / SECOND as f64)),
        DataType::Decimal { .. } => {
            let target = target(to);
            decimals(input.try_map1::<Source, Decimal128Type>(|x| decimal::settle(i128::from(x), 6, target))?, to)
        }
        _ => return Err(unsupported(to)),
    })
}

fn boolean<T: ArrowPrimitiveType>(input: &Input, test: impl Fn(T::Native) -> bool) -> ArrayRef {
    let operand = input.operand::<T>(0);
    let values: BooleanArray = input.map_booleans(|row| test(operand.get(row)));
    Arc::new(values)
}
