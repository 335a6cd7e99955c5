//! Words and Arrow columns.
//!
//! Integers, dates, timestamps, decimals of at most 18 digits, booleans, floats and interned texts and byte strings take one 64-bit word;
//! longer decimals take two. Floats are normalised (-0.0 is 0.0, one NaN), so equal values have equal words. NULL is represented apart; its words are 0.

use crate::interner::Interner;
use crate::pool::WordPool;
use crate::shape::NullPlace;
use arrow_array::builder::BinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};
use arrow_array::{
    Array, ArrayAccessor, ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, NullArray, PrimitiveArray, StringArray, TimestampMicrosecondArray,
};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::DataType as ArrowType;
use everview_expr::DataType;
use std::sync::Arc;

/// How many words a value of a type takes.
pub fn words_of(data_type: DataType) -> usize {
    match data_type {
        DataType::Decimal { precision, .. } if precision > 18 => 2,
        _ => 1,
    }
}

/// Whether words of the type are ids of interned texts or byte strings.
pub fn is_text(data_type: DataType) -> bool {
    matches!(data_type, DataType::String | DataType::Char(_) | DataType::VarChar(_) | DataType::Binary)
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
        ArrowType::Float64 => {
            let values = array.as_primitive::<Float64Type>();
            Arc::new(values.unary::<_, Float64Type>(|value| f64::from_bits(double_word(value))))
        }
        ArrowType::Float32 => {
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
        DataType::TinyInt => each(array.as_primitive::<Int8Type>().iter(), |i, v| put(i, v as i64 as u64)),
        DataType::SmallInt => each(array.as_primitive::<Int16Type>().iter(), |i, v| put(i, v as i64 as u64)),
        DataType::Int => each(array.as_primitive::<Int32Type>().iter(), |i, v| put(i, v as i64 as u64)),
        DataType::BigInt => integers(array.as_primitive::<Int64Type>(), put),
        DataType::Float => each(array.as_primitive::<Float32Type>().iter(), |i, v| put(i, float_word(v))),
        DataType::Double => each(array.as_primitive::<Float64Type>().iter(), |i, v| put(i, double_word(v))),
        DataType::Date => each(array.as_primitive::<Date32Type>().iter(), |i, v| put(i, v as i64 as u64)),
        DataType::Timestamp | DataType::TimestampNtz => integers(array.as_primitive::<TimestampMicrosecondType>(), put),
        DataType::Decimal { .. } => {
            let two = words_of(data_type) == 2;
            each(array.as_primitive::<Decimal128Type>().iter(), |i, v: i128| {
                matrix[i * stride + offset] = v as u64;
                if two {
                    matrix[i * stride + offset + 1] = (v >> 64) as u64;
                }
            });
        }
        DataType::String | DataType::Char(_) | DataType::VarChar(_) | DataType::Binary => {
            map_bytes(array, |v| u64::from(interner.intern(v)), put);
        }
        DataType::Null => {}
    }
    // Logically NULL, too, are the entries of a dictionary's NULL and all of an array without values.
    if let (Some((word, bit)), Some(nulls)) = (null, array.logical_nulls()) {
        for i in (0..array.len()).filter(|&i| nulls.is_null(i)) {
            matrix[i * stride + word] |= 1 << bit;
        }
    }
}

/// Maps the texts or byte strings that are not NULL, whatever the layout of the array; each value of a dictionary is mapped once.
pub fn map_bytes<T: Copy>(array: &dyn Array, mut map: impl FnMut(&[u8]) -> T, mut put: impl FnMut(usize, T)) {
    let Some(dictionary) = array.as_any_dictionary_opt() else {
        each_bytes(array, |i, v| put(i, map(v)));
        return;
    };
    let mut mapped = vec![None; dictionary.values().len()];
    each_bytes(dictionary.values(), |i, v| mapped[i] = Some(map(v)));
    if mapped.is_empty() {
        return;
    }
    for (i, key) in dictionary.normalized_keys().into_iter().enumerate().filter(|&(i, _)| array.is_valid(i)) {
        if let Some(value) = mapped[key] {
            put(i, value);
        }
    }
}

fn each_bytes(array: &dyn Array, mut take: impl FnMut(usize, &[u8])) {
    fn present<A: ArrayAccessor>(array: &A, mut take: impl FnMut(usize, A::Item)) {
        for i in (0..array.len()).filter(|&i| array.is_valid(i)) {
            take(i, array.value(i));
        }
    }
    match array.data_type() {
        ArrowType::Utf8 => present(&array.as_string::<i32>(), |i, v| take(i, v.as_bytes())),
        ArrowType::LargeUtf8 => present(&array.as_string::<i64>(), |i, v| take(i, v.as_bytes())),
        ArrowType::Utf8View => present(&array.as_string_view(), |i, v| take(i, v.as_bytes())),
        ArrowType::Binary => present(&array.as_binary::<i32>(), take),
        ArrowType::LargeBinary => present(&array.as_binary::<i64>(), take),
        ArrowType::BinaryView => present(&array.as_binary_view(), take),
        ArrowType::FixedSizeBinary(_) => present(&array.as_fixed_size_binary(), take),
        ArrowType::Null => {}
        other => unreachable!("a column of texts or byte strings is {other}"),
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

/// A value as text, from its words on.
pub fn value_text(data_type: DataType, words: &[u64], is_null: bool, interner: &Interner) -> String {
    if is_null {
        return "NULL".to_owned();
    }
    let high = (words_of(data_type) == 2).then(|| vec![words[1]]);
    let array = decode(data_type, vec![words[0]], high, None, interner, &WordPool::default());
    crate::display::value(&array, 0)
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
        DataType::Timestamp | DataType::TimestampNtz => {
            let values = ScalarBuffer::new(pool.lend(low), 0, length);
            return Arc::new(TimestampMicrosecondArray::new(values, nulls).with_data_type(data_type.arrow()));
        }
        DataType::Boolean => Arc::new(BooleanArray::new(low.iter().map(|&w| w != 0).collect(), nulls)),
        DataType::TinyInt => Arc::new(Int8Array::new(low.iter().map(|&w| w as i8).collect(), nulls)),
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
        DataType::String | DataType::Char(_) | DataType::VarChar(_) | DataType::Binary => {
            let mut builder = BinaryBuilder::with_capacity(length, length * 8);
            for (i, &word) in low.iter().enumerate() {
                if nulls.as_ref().is_some_and(|n| n.is_null(i)) {
                    builder.append_null();
                } else {
                    builder.append_value(interner.text(word as u32));
                }
            }
            let bytes = builder.finish();
            if data_type == DataType::Binary {
                Arc::new(bytes)
            } else {
                // Checked as a whole: a small part of what copying costs.
                Arc::new(StringArray::try_from_binary(bytes).expect("texts are interned from texts"))
            }
        }
        DataType::Null => Arc::new(NullArray::new(length)),
    };
    pool.put(low);
    if let Some(high) = high {
        pool.put(high);
    }
    array
}
