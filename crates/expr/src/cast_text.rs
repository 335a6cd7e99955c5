//! Casts to and from texts. A text is valid UTF-8, so bytes that are not are an error.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType,
};

use crate::arithmetic::target;
use crate::calendar;
use crate::cast::decimals;
use crate::column::Input;
use crate::datatype::DataType;
use crate::decimal;
use crate::error::{EvalError, Fault, shown};
use crate::functions::build::{binaries, try_texts};
use crate::functions::text::length;
use crate::number_text;

/// Any type to `string`, `char(n)` or `varchar(n)`.
pub(crate) fn to_text(input: &Input, from: DataType, to: DataType) -> Result<ArrayRef, EvalError> {
    match from {
        DataType::Boolean => {
            let column = input.column(0).array().as_boolean();
            write_texts(input, to, |row, out| {
                out.push_str(if column.value(row) { "true" } else { "false" });
            })
        }
        DataType::TinyInt => displayed::<Int8Type>(input, to),
        DataType::SmallInt => displayed::<Int16Type>(input, to),
        DataType::Int => displayed::<Int32Type>(input, to),
        DataType::BigInt => displayed::<Int64Type>(input, to),
        DataType::Float => {
            let column = input.operand::<Float32Type>(0);
            write_texts(input, to, |row, out| {
                number_text::write_float(column.get(row), out);
            })
        }
        DataType::Double => {
            let column = input.operand::<Float64Type>(0);
            write_texts(input, to, |row, out| {
                number_text::write_double(column.get(row), out);
            })
        }
        DataType::Decimal { scale, .. } => {
            let column = input.operand::<Decimal128Type>(0);
            write_texts(input, to, |row, out| {
                out.push_str(&decimal::format(column.get(row), i32::from(scale)));
            })
        }
        DataType::Date => {
            let column = input.operand::<Date32Type>(0);
            write_texts(input, to, |row, out| {
                calendar::format_date(i64::from(column.get(row)), out);
            })
        }
        DataType::Timestamp | DataType::TimestampNtz => {
            let column = input.operand::<TimestampMicrosecondType>(0);
            write_texts(input, to, |row, out| {
                calendar::format_timestamp(column.get(row), out);
            })
        }
        DataType::String | DataType::Char(_) | DataType::VarChar(_) => {
            let column = input.text(0);
            write_texts(input, to, |row, out| out.push_str(column.get(row)))
        }
        DataType::Binary => {
            let column = input.bytes(0);
            try_texts(input, |row, out| {
                let bytes = column.get(row);
                out.push_str(std::str::from_utf8(bytes).map_err(|_| Fault::not_utf8(bytes, to))?);
                fit(out, to)
            })
        }
        DataType::Null => Ok(arrow_array::new_null_array(&to.arrow(), input.rows)),
    }
}

fn displayed<T: ArrowPrimitiveType>(input: &Input, to: DataType) -> Result<ArrayRef, EvalError>
where
    T::Native: std::fmt::Display,
{
    let column = input.operand::<T>(0);
    write_texts(input, to, |row, out| {
        // Writing to a string cannot fail.
        let _ = write!(out, "{}", column.get(row));
    })
}

fn write_texts(input: &Input, to: DataType, write: impl Fn(usize, &mut String)) -> Result<ArrayRef, EvalError> {
    try_texts(input, |row, out| {
        write(row, out);
        fit(out, to)
    })
}

/// Brings a text to its declared length: blanks beyond it are cut, anything else beyond it is an error, `char` is padded.
fn fit(text: &mut String, to: DataType) -> Result<(), Fault> {
    let (DataType::Char(limit) | DataType::VarChar(limit)) = to else {
        return Ok(());
    };
    let characters = length(text);
    let limit = limit as usize;
    if characters > limit {
        // Every character that goes is a blank, so characters are bytes here.
        let surplus = characters - limit;
        let kept = text.len() - surplus;
        if !text.as_bytes()[kept..].iter().all(|&byte| byte == b' ') {
            let message = format!("the text '{}' has {characters} characters, more than {to} holds", shown(text));
            return Err(Fault::new("EXCEED_LIMIT_LENGTH", message));
        }
        text.truncate(kept);
    } else if matches!(to, DataType::Char(_)) {
        let missing = limit - characters;
        if missing > i32::MAX as usize {
            return Err(Fault::new("EXCEED_LIMIT_LENGTH", format!("{to} is too long to be padded")));
        }
        text.extend(std::iter::repeat_n(' ', missing));
    }
    Ok(())
}

/// Texts to every other type.
pub(crate) fn from_text(input: &Input, to: DataType) -> Result<ArrayRef, EvalError> {
    let text = input.text(0);
    let invalid = |text: &str| Fault::invalid_input(text, to);
    Ok(match to {
        DataType::Boolean => {
            Arc::new(input.try_map_booleans(|row| {
                number_text::parse_boolean(text.get(row)).ok_or_else(|| invalid(text.get(row)))
            })?)
        }
        DataType::TinyInt => Arc::new(input.try_map::<Int8Type>(|row| {
            let value = number_text::parse_integer(text.get(row)).and_then(|value| i8::try_from(value).ok());
            value.ok_or_else(|| invalid(text.get(row)))
        })?),
        DataType::SmallInt => Arc::new(input.try_map::<Int16Type>(|row| {
            let value = number_text::parse_integer(text.get(row)).and_then(|value| i16::try_from(value).ok());
            value.ok_or_else(|| invalid(text.get(row)))
        })?),
        DataType::Int => Arc::new(input.try_map::<Int32Type>(|row| {
            let value = number_text::parse_integer(text.get(row)).and_then(|value| i32::try_from(value).ok());
            value.ok_or_else(|| invalid(text.get(row)))
        })?),
        DataType::BigInt => Arc::new(input.try_map::<Int64Type>(|row| {
            number_text::parse_integer(text.get(row)).ok_or_else(|| invalid(text.get(row)))
        })?),
        DataType::Float => Arc::new(input.try_map::<Float32Type>(|row| {
            number_text::parse_floating(text.get(row)).ok_or_else(|| invalid(text.get(row)))
        })?),
        DataType::Double => Arc::new(input.try_map::<Float64Type>(|row| {
            number_text::parse_floating(text.get(row)).ok_or_else(|| invalid(text.get(row)))
        })?),
        DataType::Decimal { precision, scale } => {
            let target = target(to);
            let values = input.try_map::<Decimal128Type>(|row| {
                let source = text.get(row);
                let digits = decimal::parse(source.trim_matches(|c: char| c <= ' ')).ok_or_else(|| invalid(source))?;
                if digits.whole_digits() > 38 {
                    let message = format!("the number '{}' has more than 38 digits", shown(source));
                    return Err(Fault::new("NUMERIC_OUT_OF_SUPPORTED_RANGE", message));
                }
                match digits.to_scale(i32::from(target.scale)) {
                    Some(unscaled) if decimal::fits(unscaled, precision) => Ok(unscaled),
                    _ => Err(Fault::out_of_range(source, precision, scale)),
                }
            })?;
            decimals(values, to)
        }
        DataType::Date => {
            Arc::new(input.try_map::<Date32Type>(|row| {
                calendar::parse_date(text.get(row)).ok_or_else(|| invalid(text.get(row)))
            })?)
        }
        DataType::Timestamp => {
            let values = input.try_map::<TimestampMicrosecondType>(|row| {
                calendar::parse_timestamp(text.get(row)).ok_or_else(|| invalid(text.get(row)))
            })?;
            Arc::new(values.with_data_type(to.arrow()))
        }
        DataType::TimestampNtz => Arc::new(input.try_map::<TimestampMicrosecondType>(|row| {
            calendar::parse_timestamp_ntz(text.get(row)).ok_or_else(|| invalid(text.get(row)))
        })?),
        DataType::Binary => binaries(input, |row, out| out.extend_from_slice(text.get(row).as_bytes()))?,
        DataType::String | DataType::Char(_) | DataType::VarChar(_) | DataType::Null => {
            return to_text(input, DataType::String, to);
        }
    })
}
