//! Words and Arrow columns.
//!
//! Integers, dates, timestamps, decimals of at most 18 digits, booleans, floats and interned texts take one 64-bit word; longer decimals
//! take two. Floats are normalised (-0.0 is 0.0, one NaN), so equal values have equal words. NULL is represented apart; its words are 0.

use crate::interner::Interner;
use crate::pool::WordPool;
use crate::shape::NullPlace;
use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int16Array, Int32Array,
    Int64Array, NullArray, PrimitiveArray, TimestampMicrosecondArray,
};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use everview_expr::DataType;
use std::sync::Arc;

/// How many words a value of a type takes.
pub fn words_of(data_type: DataType) -> usize {
    match data_type {
        DataType::Decimal { precision, .. } if precision > 18 => 2,
        _ => 1,
    }
}

/// Whether words of the type are ids of interned texts.
pub fn is_text(data_type: DataType) -> bool {
    matches!(data_type, DataType::String | DataType::Char(_) | DataType::VarChar(_))
}

/// The word of a double: equal values have equal words.
pub fn double_word(value: f64) -> u64 {
    if value == 0.0 {
        0
    } else if value.is_nan() {
        f64::NAN.to_bits()
    } else {
        value.to_bits()
    }
}

/// The word of a float: equal values have equal words.
pub fn float_word(value: f32) -> u64 {
    if value == 0.0 {
        0
    } else if value.is_nan() {
        u64::from(f32::NAN.to_bits())
    } else {
        u64::from(value.to_bits())
    }
}

/// A computed column as it would be read back if it had been stored: -0.0 is 0.0, and there is one NaN. Equal rows are then the same to the
/// bit, wherever they come from.
pub fn normalised(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        arrow_schema::DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>();
            Arc::new(values.unary::<_, Float64Type>(|value| f64::from_bits(double_word(value))))
        }
        arrow_schema::DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>();
            Arc::new(values.unary::<_, Float32Type>(|value| f32::from_bits(float_word(value) as u32)))
        }
        _ => array,
    }
}

/// A place in a matrix of rows: the first word of a column, and the mask word and bit that say NULL.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Words per row.
    pub stride: usize,
    /// The column's first word.
    pub offset: usize,
    /// The mask word and the column's bit, if it can be NULL.
    pub null: Option<NullPlace>,
}

/// Writes a column into a matrix of rows that is zero where it is written.
///
/// NULLs of a column without a NULL place leave zeros: the caller has dealt with them.
pub fn encode(array: &dyn Array, data_type: DataType, matrix: &mut [u64], place: Place, interner: &mut Interner) {
    let Place { stride, offset, null } = place;
    let mut put = |i: usize, word: u64| matrix[i * stride + offset] = word;
    match data_type {
        DataType::Boolean => each(array.as_boolean().iter(), |i, v| put(i, u64::from(v))),
        DataType::SmallInt => each(array.as_primitive::<Int16Type>().iter(), |i, v| put(i, v as i64 as u64)),
        DataType::Int => each(array.as_primitive::<Int32Type>().iter(), |i, v| put(i, v as i64 as u64)),
        DataType::BigInt => integers(array.as_primitive::<Int64Type>(), put),
        DataType::Float => each(array.as_primitive::<Float32Type>().iter(), |i, v| put(i, float_word(v))),
        DataType::Double => each(array.as_primitive::<Float64Type>().iter(), |i, v| put(i, double_word(v))),
        DataType::Date => each(array.as_primitive::<Date32Type>().iter(), |i, v| put(i, v as i64 as u64)),
        DataType::Timestamp => integers(array.as_primitive::<TimestampMicrosecondType>(), put),
        DataType::Decimal { .. } => {
            let two = words_of(data_type) == 2;
            each(array.as_primitive::<Decimal128Type>().iter(), |i, v: i128| {
                matrix[i * stride + offset] = v as u64;
                if two {
                    matrix[i * stride + offset + 1] = (v >> 64) as u64;
                }
            });
        }
        DataType::String | DataType::Char(_) | DataType::VarChar(_) => {
            each(array.as_string::<i32>().iter(), |i, v| put(i, u64::from(interner.intern(v))));
        }
        DataType::Null => {}
    }
    if let (Some((word, bit)), true) = (null, array.null_count() > 0 || data_type == DataType::Null) {
        for i in (0..array.len()).filter(|&i| array.is_null(i) || data_type == DataType::Null) {
            matrix[i * stride + word] |= 1 << bit;
        }
    }
}

fn each<T>(values: impl Iterator<Item = Option<T>>, mut put: impl FnMut(usize, T)) {
    for (i, value) in values.enumerate() {
        if let Some(value) = value {
            put(i, value);
        }
    }
}

fn integers<T: arrow_array::ArrowPrimitiveType<Native = i64>>(
    array: &PrimitiveArray<T>,
    mut put: impl FnMut(usize, u64),
) {
    if array.null_count() == 0 {
        for (i, &value) in array.values().iter().enumerate() {
            put(i, value as u64);
        }
    } else {
        each(array.iter(), |i, v: i64| put(i, v as u64));
    }
}

/// The Arrow column of a column of words; `high` holds the second words of long decimals.
pub fn decode(
    data_type: DataType,
    low: Vec<u64>,
    high: Option<Vec<u64>>,
    nulls: Option<NullBuffer>,
    interner: &Interner,
    pool: &WordPool,
) -> ArrayRef {
    let length = low.len();
    let array: ArrayRef = match data_type {
        DataType::BigInt => return Arc::new(Int64Array::new(ScalarBuffer::new(pool.lend(low), 0, length), nulls)),
        DataType::Double => return Arc::new(Float64Array::new(ScalarBuffer::new(pool.lend(low), 0, length), nulls)),
        DataType::Timestamp => {
            let values = ScalarBuffer::new(pool.lend(low), 0, length);
            return Arc::new(TimestampMicrosecondArray::new(values, nulls).with_timezone("UTC"));
        }
        DataType::Boolean => Arc::new(BooleanArray::new(low.iter().map(|&w| w != 0).collect(), nulls)),
        DataType::SmallInt => Arc::new(Int16Array::new(low.iter().map(|&w| w as i16).collect(), nulls)),
        DataType::Int => Arc::new(Int32Array::new(low.iter().map(|&w| w as i32).collect(), nulls)),
        DataType::Float => Arc::new(Float32Array::new(low.iter().map(|&w| f32::from_bits(w as u32)).collect(), nulls)),
        DataType::Date => Arc::new(Date32Array::new(low.iter().map(|&w| w as i32).collect(), nulls)),
        DataType::Decimal { precision, scale } => {
            let values: ScalarBuffer<i128> = match &high {
                None => low.iter().map(|&w| i128::from(w as i64)).collect(),
                Some(high) => {
                    low.iter().zip(high).map(|(&l, &h)| (i128::from(h as i64) << 64) | i128::from(l)).collect()
                }
            };
            let array = Decimal128Array::new(values, nulls);
            Arc::new(array.with_precision_and_scale(precision, scale).expect("a decimal type within bounds"))
        }
        DataType::String | DataType::Char(_) | DataType::VarChar(_) => {
            let mut builder = StringBuilder::with_capacity(length, length * 8);
            for (i, &word) in low.iter().enumerate() {
                if nulls.as_ref().is_some_and(|n| n.is_null(i)) {
                    builder.append_null();
                } else {
                    builder.append_value(interner.text(word as u32));
                }
            }
            Arc::new(builder.finish())
        }
        DataType::Null => Arc::new(NullArray::new(length)),
    };
    pool.put(low);
    if let Some(high) = high {
        pool.put(high);
    }
    array
}
