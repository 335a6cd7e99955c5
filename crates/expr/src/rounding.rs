//! `round`, `bround`, `floor`, `ceil`.
//!
//! Spark rounds a double by its shortest decimal digits, not by its binary value: `round(1.005, 2)` is 1.01.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
};

use crate::arithmetic::target;
use crate::column::Input;
use crate::datatype::DataType;
use crate::decimal;
use crate::error::{EvalError, Fault};

/// `round(x, places)`: `HALF_UP`, or (`even`) `bround`: `HALF_EVEN`; negative places round before the point.
pub(crate) fn round(even: bool, input: &Input, data_type: DataType, result: DataType) -> Result<ArrayRef, EvalError> {
    let places = input.column(1).array().as_primitive::<Int32Type>().value(0);
    Ok(match data_type {
        DataType::TinyInt => Arc::new(integers::<Int8Type>(even, input, places)?),
        DataType::SmallInt => Arc::new(integers::<Int16Type>(even, input, places)?),
        DataType::Int => Arc::new(integers::<Int32Type>(even, input, places)?),
        DataType::BigInt => Arc::new(integers::<Int64Type>(even, input, places)?),
        DataType::Float => {
            Arc::new(input.map1::<Float32Type, Float32Type>(|x| round_double(f64::from(x), places, even) as f32))
        }
        DataType::Double => Arc::new(input.map1::<Float64Type, Float64Type>(|x| round_double(x, places, even))),
        _ => {
            let scale = i32::from(data_type.scale());
            let target = target(result);
            let kept = places.clamp(-39, scale);
            let values = input.try_map1::<Decimal128Type, Decimal128Type>(|x| {
                // First to the places asked for, then to the scale of the result, which is never negative.
                let power = decimal::POWERS.get((scale - kept) as usize);
                let rounded = power.map_or(0, |&power| divide(x, power, even));
                decimal::settle(rounded, kept, target)
            })?;
            Arc::new(values.with_data_type(result.arrow()))
        }
    })
}

/// A quotient, rounded half up (away from zero) or half to even.
fn divide(value: i128, divisor: i128, even: bool) -> i128 {
    let rounded = decimal::divide_half_up(value, divisor);
    let is_half = value.checked_rem(divisor).is_some_and(|rest| divisor % 2 == 0 && rest.abs() == divisor / 2);
    if even && is_half && rounded % 2 != 0 { rounded - value.signum() } else { rounded }
}

fn integers<T>(even: bool, input: &Input, places: i32) -> Result<arrow_array::PrimitiveArray<T>, EvalError>
where
    T: ArrowPrimitiveType,
    T::Native: Into<i64> + TryFrom<i64>,
{
    input.try_map1::<T, T>(|x| {
        if places >= 0 {
            return Ok(x);
        }
        let Some(&power) = decimal::POWERS.get(places.unsigned_abs() as usize) else {
            return Ok(T::Native::default());
        };
        let rounded = divide(i128::from(x.into()), power, even).checked_mul(power);
        let rounded = rounded.and_then(|value| i64::try_from(value).ok());
        rounded.and_then(|value| T::Native::try_from(value).ok()).ok_or_else(|| Fault::overflow("the rounded value"))
    })
}

fn round_double(value: f64, places: i32, even: bool) -> f64 {
    if !value.is_finite() {
        return value;
    }
    if places >= 0 && value.fract() == 0.0 {
        return value + 0.0; // no negative zero, as in Spark
    }
    let digits = format!("{value:e}");
    round_digits(&digits, places, even).unwrap_or(value)
}

/// Rounds a number in the form `-d.ddde-x`.
fn round_digits(text: &str, places: i32, even: bool) -> Option<f64> {
    let (mantissa, exponent) = text.split_once('e')?;
    let (negative, mantissa) = mantissa.strip_prefix('-').map_or((false, mantissa), |rest| (true, rest));
    let mut digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    let exponent: i64 = exponent.parse().ok()?;
    // digits[0] has weight 10^exponent; the last digit kept has weight 10^-places.
    let kept = exponent + i64::from(places) + 1;
    if kept >= digits.len() as i64 {
        return text.parse::<f64>().ok().map(|value| value + 0.0);
    }
    if kept < 0 {
        return Some(0.0);
    }
    let (before, after) = digits.split_at(kept as usize);
    let half = after[0] == b'5' && after[1..].iter().all(|&digit| digit == b'0');
    let up = if half && even { before.last().is_some_and(|digit| digit % 2 == 1) } else { after[0] >= b'5' };
    digits.truncate(kept as usize);
    let mut carry = up;
    for digit in digits.iter_mut().rev() {
        if !carry {
            break;
        }
        if *digit == b'9' {
            *digit = b'0';
        } else {
            *digit += 1;
            carry = false;
        }
    }
    if carry {
        digits.insert(0, b'1');
    }
    if digits.is_empty() {
        return Some(0.0);
    }
    let sign = if negative { "-" } else { "" };
    let number = format!("{sign}{}e{}", String::from_utf8(digits).ok()?, -i64::from(places));
    number.parse::<f64>().ok().map(|value| value + 0.0)
}

/// `floor` and `ceil`: doubles to bigint, decimals to decimals without fraction.
pub(crate) fn floor(up: bool, input: &Input, data_type: DataType, result: DataType) -> Result<ArrayRef, EvalError> {
    let whole = |x: f64| {
        let value = if up { x.ceil() } else { x.floor() };
        // as Spark: NaN is 0
        if value.is_nan() || (value >= i64::MIN as f64 && value < -(i64::MIN as f64)) {
            Ok(value as i64)
        } else {
            Err(Fault::overflow(if up { "the ceiling" } else { "the floor" }))
        }
    };
    Ok(match data_type {
        DataType::BigInt => Arc::clone(input.column(0).array()),
        DataType::Float => Arc::new(input.try_map1::<Float32Type, Int64Type>(|x| whole(f64::from(x)))?),
        DataType::Double => Arc::new(input.try_map1::<Float64Type, Int64Type>(whole)?),
        _ => {
            let power = decimal::POWERS[data_type.scale().unsigned_abs() as usize];
            let target = target(result);
            let values = input.try_map1::<Decimal128Type, Decimal128Type>(|x| {
                let value = if up { x.wrapping_neg().div_euclid(power).wrapping_neg() } else { x.div_euclid(power) };
                decimal::settle(value, 0, target)
            })?;
            Arc::new(values.with_data_type(result.arrow()))
        }
    })
}
