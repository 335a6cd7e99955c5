//! Literals: from JSON values to arrays of one value.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, StringArray, TimestampMicrosecondArray, new_null_array,
};
use serde_json::Value;

use crate::datatype::DataType;
use crate::decimal;

/// The literal as an array of length one; `None` if the value does not fit the type.
pub(crate) fn build(value: &Value, data_type: DataType) -> Option<ArrayRef> {
    if value.is_null() {
        return Some(new_null_array(&data_type.arrow(), 1));
    }
    let array: ArrayRef = match data_type {
        DataType::Boolean => Arc::new(BooleanArray::from(vec![value.as_bool()?])),
        DataType::TinyInt => Arc::new(Int8Array::from(vec![i8::try_from(value.as_i64()?).ok()?])),
        DataType::SmallInt => Arc::new(Int16Array::from(vec![i16::try_from(value.as_i64()?).ok()?])),
        DataType::Int => Arc::new(Int32Array::from(vec![i32::try_from(value.as_i64()?).ok()?])),
        DataType::BigInt => Arc::new(Int64Array::from(vec![value.as_i64()?])),
        DataType::Float => Arc::new(Float32Array::from(vec![floating(value)? as f32])),
        DataType::Double => Arc::new(Float64Array::from(vec![floating(value)?])),
        DataType::Decimal { precision, scale } => {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                _ => return None,
            };
            let parsed = decimal::parse(&text)?;
            let unscaled = parsed.to_scale_exactly(scale)?;
            decimal::fits(unscaled, precision).then_some(())?;
            let array = Decimal128Array::from(vec![unscaled]);
            Arc::new(array.with_precision_and_scale(precision, scale).ok()?)
        }
        DataType::String => Arc::new(StringArray::from(vec![value.as_str()?])),
        DataType::Char(length) | DataType::VarChar(length) => {
            let text = value.as_str()?;
            let characters = text.chars().count();
            let fits = characters == length as usize
                || (matches!(data_type, DataType::VarChar(_)) && characters <= length as usize);
            fits.then_some(())?;
            Arc::new(StringArray::from(vec![text]))
        }
        DataType::Binary => Arc::new(BinaryArray::from_vec(vec![&hexadecimal(value.as_str()?)?])),
        DataType::Date => Arc::new(Date32Array::from(vec![i32::try_from(value.as_i64()?).ok()?])),
        DataType::Timestamp => Arc::new(TimestampMicrosecondArray::from(vec![value.as_i64()?]).with_timezone("UTC")),
        DataType::TimestampNtz => Arc::new(TimestampMicrosecondArray::from(vec![value.as_i64()?])),
        DataType::Null => return None,
    };
    Some(array)
}

/// The bytes that pairs of hexadecimal digits denote.
fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    rest.is_empty().then_some(())?;
    pairs.iter().map(|&[high, low]| Some((digit(high)? * 16 + digit(low)?) as u8)).collect()
}

fn floating(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => match text.to_ascii_lowercase().as_str() {
            "nan" => Some(f64::NAN),
            "inf" | "+inf" | "infinity" | "+infinity" => Some(f64::INFINITY),
            "-inf" | "-infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}
