//! Rows as byte strings that compare as the rows are ordered.
//!
//! What: the order of ORDER BY as the order of bytes, so that an ordered map needs to know nothing of types, and from the bytes the row again.
//! Representation: every column of the row once: those of ORDER BY in its order and direction, then the others, ascending, NULL first. A value
//! is a marker, which says whether it is NULL, and its bytes: numbers in as many as their type takes, the highest first, so shifted that
//! negative ones come first; texts with 0 written as 0 255, ended by 0 0. The bytes of a descending value are inverted.
//! Columns that part the rows come before those of ORDER BY, so that the keys of a partition have a beginning in common.
//! Invariants: K1, keys are equal iff the rows are; K2, keys compare as Spark orders the rows: texts by bytes, NaN above all numbers, decimals
//! by value; rows that ORDER BY leaves equal compare by their other columns, in their order; K3, no key begins another.
//! Cost: linear in the bytes of the row.
//! Source: own.

use crate::codec::{self, Place, is_text, words_of};
use crate::consolidate::RowCodec;
use crate::flow::Chunk;
use crate::interner::Interner;
use crate::plan::SortColumn;
use crate::pool::WordPool;
use arrow_array::builder::BinaryBuilder;
use arrow_array::{ArrayRef, StringArray};
use arrow_buffer::NullBuffer;
use everview_expr::DataType;
use std::sync::Arc;

/// A row as a byte string.
pub type SortKey = Box<[u8]>;

const NULL_FIRST: u8 = 0;
const VALUE: u8 = 1;
const NULL_LAST: u8 = 2;

/// The order of rows with columns of some types.
#[derive(Debug)]
pub struct RowOrder {
    types: Vec<DataType>,
    /// All columns, the most significant first.
    columns: Vec<SortColumn>,
    /// How many of the first columns say the partition of a row.
    leading: usize,
}

impl RowOrder {
    /// Rows of these types by these columns; what is equal there is ordered by the others.
    pub fn new(types: &[DataType], by: &[SortColumn]) -> Self {
        Self::partitioned(types, &[], by)
    }

    /// As `new`, for rows that some columns part: these come first, ascending, NULL first.
    pub fn partitioned(types: &[DataType], partition: &[usize], by: &[SortColumn]) -> Self {
        let mut columns: Vec<SortColumn> = Vec::with_capacity(types.len());
        let ascending = |column| SortColumn { column, descending: false, nulls_first: true };
        let all = partition.iter().copied().map(ascending).chain(by.iter().copied());
        for column in all.chain((0..types.len()).map(ascending)) {
            if columns.iter().all(|known| known.column != column.column) {
                columns.push(column);
            }
        }
        let leading = columns.iter().take_while(|column| partition.contains(&column.column)).count();
        Self { types: types.to_vec(), columns, leading }
    }

    /// How many of the first bytes of a key say the partition of its row.
    pub fn partition_len(&self, key: &[u8]) -> usize {
        let mut rest = key;
        for &SortColumn { column, .. } in &self.columns[..self.leading] {
            let (marker, after) = rest.split_first().expect("a key has a marker per column");
            rest = match *marker {
                VALUE if is_text(self.types[column]) => after_text(after),
                VALUE => &after[width_of(self.types[column])..],
                _ => after,
            };
        }
        key.len() - rest.len()
    }

    /// The key of a row given as words.
    pub fn key(&self, words: &[u64], codec: &RowCodec, interner: &Interner) -> SortKey {
        let mut key = Vec::with_capacity(words.len() * 8);
        for column in &self.columns {
            let Place { offset, null, .. } = codec.place(column.column);
            let data_type = self.types[column.column];
            let value = if null.is_some_and(|(word, bit)| words[word] >> bit & 1 == 1) {
                Value::Null
            } else if is_text(data_type) {
                Value::Text(interner.text(words[offset] as u32))
            } else {
                Value::Number(words[offset], if words_of(data_type) == 2 { words[offset + 1] } else { 0 })
            };
            push_value(&mut key, value, data_type, *column);
        }
        key.into_boxed_slice()
    }

    /// The keys of so many rows of Arrow columns; no text is interned.
    pub fn keys(&self, columns: &[ArrayRef], count: usize) -> Vec<SortKey> {
        let mut interner = Interner::default(); // of numbers alone
        let mut read = Vec::with_capacity(columns.len());
        for (array, &data_type) in columns.iter().zip(&self.types) {
            let (mut texts, mut places, mut words) = (Vec::new(), Vec::new(), Vec::new());
            if is_text(data_type) {
                places = vec![(0, 0); count];
                let copy = |text: &[u8]| (texts.len(), (texts.extend_from_slice(text), texts.len()).1);
                codec::map_bytes(array, copy, |row, place| places[row] = place);
            } else {
                words = vec![0; 2 * count];
                codec::encode(array, data_type, &mut words, Place { stride: 2, offset: 0, null: None }, &mut interner);
            }
            read.push((texts, places, words, array.logical_nulls()));
        }
        let key = |row: usize| {
            let mut key = Vec::new();
            for column in &self.columns {
                let (texts, places, words, nulls) = &read[column.column];
                let data_type = self.types[column.column];
                let value = if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                    Value::Null
                } else if is_text(data_type) {
                    Value::Text(&texts[places[row].0..places[row].1])
                } else {
                    Value::Number(words[2 * row], words[2 * row + 1])
                };
                push_value(&mut key, value, data_type, *column);
            }
            key.into_boxed_slice()
        };
        (0..count).map(key).collect()
    }

    /// The key of a row of NULLs.
    pub fn null_key(&self) -> SortKey {
        let mut key = Vec::with_capacity(self.columns.len());
        self.columns.iter().for_each(|column| push_value(&mut key, Value::Null, self.types[column.column], *column));
        key.into_boxed_slice()
    }

    /// The rows of some keys with their multiplicities, in the order given, in chunks whose texts fit.
    pub fn rows<'a>(
        &self,
        keys: impl IntoIterator<Item = (&'a [u8], i64)>,
        (interner, pool): (&Interner, &WordPool),
    ) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        let mut part = Part::new(self);
        for (key, weight) in keys {
            if part.bytes + key.len() as u64 > interner.chunk_bytes() && !part.weights.is_empty() {
                chunks.push(std::mem::replace(&mut part, Part::new(self)).finish(self, interner, pool));
            }
            part.push(self, key, weight);
        }
        chunks.push(part.finish(self, interner, pool));
        chunks
    }
}

/// A value on its way into a key.
#[derive(Clone, Copy)]
enum Value<'a> {
    Null,
    Text(&'a [u8]),
    Number(u64, u64),
}

fn push_value(key: &mut Vec<u8>, value: Value, data_type: DataType, column: SortColumn) {
    let start = key.len() + 1;
    match value {
        Value::Null => return key.push(if column.nulls_first { NULL_FIRST } else { NULL_LAST }),
        Value::Text(text) => {
            key.push(VALUE);
            push_text(key, text);
        }
        Value::Number(low, high) => {
            key.push(VALUE);
            let number = ordered(data_type, low, high).to_be_bytes();
            key.extend_from_slice(&number[16 - width_of(data_type)..]);
        }
    }
    if column.descending {
        key[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// Bytes of a number in a key.
fn width_of(data_type: DataType) -> usize {
    match data_type {
        DataType::Null => 0,
        DataType::Boolean | DataType::TinyInt => 1,
        DataType::SmallInt => 2,
        DataType::Int | DataType::Date | DataType::Float => 4,
        _ => 8 * words_of(data_type),
    }
}

/// The words of a number as an unsigned one of `width_of` bytes that compares like it.
fn ordered(data_type: DataType, low: u64, high: u64) -> u128 {
    let bits = 8 * width_of(data_type) as u32;
    let sign = 1u128 << (bits.max(1) - 1);
    match data_type {
        DataType::Null => 0,
        DataType::Boolean => u128::from(low),
        DataType::Float | DataType::Double => {
            let value = u128::from(low);
            if value & sign == 0 { value | sign } else { !value & (sign | (sign - 1)) }
        }
        _ if bits == 128 => (u128::from(high) << 64 | u128::from(low)) ^ sign,
        _ => (u128::from(low) & (sign | (sign - 1))) ^ sign,
    }
}

/// The words of what `ordered` gives.
fn unordered(data_type: DataType, value: u128) -> (u64, u64) {
    let bits = 8 * width_of(data_type) as u32;
    let sign = 1u128 << (bits.max(1) - 1);
    match data_type {
        DataType::Null => (0, 0),
        DataType::Boolean => (value as u64, 0),
        DataType::Float | DataType::Double => {
            let word = if value & sign == 0 { !value & (sign | (sign - 1)) } else { value & (sign - 1) };
            (word as u64, 0)
        }
        _ if bits == 128 => ((value ^ sign) as u64, ((value ^ sign) >> 64) as u64),
        _ => {
            let shift = 64 - bits; // words hold small integers as 64-bit ones
            ((((((value ^ sign) as u64) << shift) as i64) >> shift) as u64, 0)
        }
    }
}

fn push_text(key: &mut Vec<u8>, text: &[u8]) {
    for &byte in text {
        key.push(byte);
        if byte == 0 {
            key.push(255);
        }
    }
    key.extend_from_slice(&[0, 0]);
}

/// The values of one column as they are read from keys.
#[derive(Debug)]
enum Values {
    Words(Vec<u64>, Option<Vec<u64>>),
    Texts(BinaryBuilder),
}

/// A chunk in the making.
#[derive(Debug)]
struct Part {
    /// In the order of the row's columns.
    columns: Vec<(Values, Vec<bool>)>,
    weights: Vec<i64>,
    bytes: u64,
    text: Vec<u8>,
}

impl Part {
    fn new(order: &RowOrder) -> Self {
        let values = |&data_type: &DataType| match data_type {
            _ if is_text(data_type) => Values::Texts(BinaryBuilder::new()),
            _ => Values::Words(Vec::new(), (words_of(data_type) == 2).then(Vec::new)),
        };
        let columns = order.types.iter().map(|data_type| (values(data_type), Vec::new())).collect();
        Self { columns, weights: Vec::new(), bytes: 0, text: Vec::new() }
    }

    fn push(&mut self, order: &RowOrder, key: &[u8], weight: i64) {
        let mut rest = key;
        for &SortColumn { column, descending, .. } in &order.columns {
            let flip = if descending { 255 } else { 0 };
            let (marker, after) = rest.split_first().expect("a key has a marker per column");
            rest = after;
            let (values, valid) = &mut self.columns[column];
            let is_value = *marker == VALUE;
            valid.push(is_value);
            match values {
                Values::Texts(texts) if is_value => {
                    rest = read_text(rest, flip, &mut self.text);
                    texts.append_value(&self.text);
                }
                Values::Texts(texts) => texts.append_null(),
                Values::Words(low, high) => {
                    let data_type = order.types[column];
                    let (number, after) = rest.split_at(if is_value { width_of(data_type) } else { 0 });
                    rest = after;
                    let value = number.iter().fold(0, |sum, byte| sum << 8 | u128::from(byte ^ flip));
                    let words = if is_value { unordered(data_type, value) } else { (0, 0) };
                    low.push(words.0);
                    if let Some(high) = high {
                        high.push(words.1);
                    }
                }
            }
        }
        self.weights.push(weight);
        self.bytes += key.len() as u64;
    }

    fn finish(self, order: &RowOrder, interner: &Interner, pool: &WordPool) -> Chunk {
        let column = |((values, valid), &data_type): ((Values, Vec<bool>), &DataType)| -> ArrayRef {
            match values {
                Values::Words(low, high) => {
                    let nulls = NullBuffer::from(valid);
                    let nulls = Some(nulls).filter(|n| n.null_count() > 0 && data_type != DataType::Null);
                    codec::decode(data_type, low, high, nulls, interner, pool)
                }
                Values::Texts(mut texts) if data_type == DataType::Binary => Arc::new(texts.finish()),
                Values::Texts(mut texts) => {
                    Arc::new(StringArray::try_from_binary(texts.finish()).expect("keys of texts are made from texts"))
                }
            }
        };
        Chunk { columns: self.columns.into_iter().zip(&order.types).map(column).collect(), weights: self.weights }
    }
}

/// What is behind an ascending text.
fn after_text(bytes: &[u8]) -> &[u8] {
    let mut at = 0;
    loop {
        match (bytes[at], bytes.get(at + 1)) {
            (0, Some(255)) => at += 2,
            (0, _) => return &bytes[at + 2..],
            _ => at += 1,
        }
    }
}

/// Reads a text, each byte flipped, and gives what is behind it.
fn read_text<'a>(bytes: &'a [u8], flip: u8, into: &mut Vec<u8>) -> &'a [u8] {
    into.clear();
    let mut at = 0;
    loop {
        let byte = bytes[at] ^ flip;
        if byte != 0 {
            into.push(byte);
            at += 1;
        } else if bytes[at + 1] ^ flip == 255 {
            into.push(0);
            at += 2;
        } else {
            return &bytes[at + 2..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::display;
    use arrow_array::cast::AsArray;
    use arrow_array::{
        Array, BinaryArray, BooleanArray, Decimal128Array, Float32Array, Float64Array, Int8Array, Int64Array,
    };

    fn by(column: usize, descending: bool, nulls_first: bool) -> SortColumn {
        SortColumn { column, descending, nulls_first }
    }

    /// The rows of some columns in an order, a few to a chunk.
    fn chunks(types: &[DataType], columns: &[ArrayRef], order: &[SortColumn]) -> Vec<Chunk> {
        let (mut interner, pool) = (Interner::default(), WordPool::default());
        let (codec, order) = (RowCodec::new(types), RowOrder::new(types, order));
        let (count, width) = (columns[0].len(), codec.width());
        let words = codec.encode(columns, count, &mut interner);
        let key = |i: usize| order.key(&words[i * width..(i + 1) * width], &codec, &interner);
        let mut keys: Vec<SortKey> = (0..count).map(key).collect();
        assert_eq!(keys, order.keys(columns, count));
        keys.sort();
        interner.set_chunk_bytes(60);
        let chunks = order.rows(keys.iter().map(|key| (&**key, 1)), (&interner, &pool));
        for (column, given) in chunks.iter().flat_map(|chunk| chunk.columns.iter().zip(columns)) {
            assert_eq!(column.data_type(), given.data_type());
        }
        chunks
    }

    /// The rows in order as texts.
    fn sorted(types: &[DataType], columns: &[ArrayRef], order: &[SortColumn]) -> Vec<String> {
        let shown = |chunk: &Chunk, row: usize| {
            let value = |c: &ArrayRef| if c.is_null(row) { "NULL".to_owned() } else { display::value(c, row) };
            chunk.columns.iter().map(value).collect::<Vec<_>>().join(" ")
        };
        let chunks = chunks(types, columns, order);
        chunks.iter().flat_map(|chunk| (0..chunk.weights.len()).map(move |row| shown(chunk, row))).collect()
    }

    #[test]
    fn numbers_compare_by_value() {
        let ints: ArrayRef = Arc::new(Int64Array::from(vec![Some(3), None, Some(-5), Some(i64::MAX), Some(i64::MIN)]));
        let (min, max) = (i64::MIN.to_string(), i64::MAX.to_string());
        let up = [&*min, "-5", "3", &*max];
        let columns = std::slice::from_ref(&ints);
        assert_eq!(sorted(&[DataType::BigInt], columns, &[]), ["NULL", up[0], up[1], up[2], up[3]]);
        let down = [by(0, true, false)];
        assert_eq!(sorted(&[DataType::BigInt], columns, &down), [up[3], up[2], up[1], up[0], "NULL"]);
        let down = [by(0, true, true)];
        assert_eq!(sorted(&[DataType::BigInt], columns, &down), ["NULL", up[3], up[2], up[1], up[0]]);
        let small: ArrayRef = Arc::new(Int8Array::from(vec![127, -128, 0, -1, 1]));
        assert_eq!(sorted(&[DataType::TinyInt], &[small], &[]), ["-128", "-1", "0", "1", "127"]);
        let flags: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]));
        assert_eq!(sorted(&[DataType::Boolean], &[flags], &[by(0, true, false)]), ["true", "false", "NULL"]);
    }

    #[test]
    fn nan_is_above_all_numbers() {
        let values = [1.5, f64::NAN, f64::NEG_INFINITY, -2.5, f64::INFINITY, 0.0];
        let doubles: ArrayRef = Arc::new(Float64Array::from(values.to_vec()));
        let up = sorted(&[DataType::Double], &[doubles], &[]);
        assert_eq!(up[1..4], ["-2.5", "0.0", "1.5"]);
        assert_eq!(up[5], "NaN");
        let floats: ArrayRef = Arc::new(Float32Array::from(vec![1.5f32, f32::NAN, -1.0]));
        assert_eq!(sorted(&[DataType::Float], &[floats], &[by(0, true, false)]), ["NaN", "1.5", "-1.0"]);
    }

    #[test]
    fn decimals_compare_by_value_whatever_they_take() {
        let values = [-(10i128.pow(30)), 10i128.pow(30), -1, 0, 7];
        for precision in [18u8, 38] {
            let kept: Vec<i128> = values.iter().copied().filter(|v| precision == 38 || v.abs() < 1000).collect();
            let array = Decimal128Array::from(kept.clone()).with_precision_and_scale(precision, 2).unwrap();
            let data_type = DataType::Decimal { precision, scale: 2 };
            let up = sorted(&[data_type], &[Arc::new(array.clone())], &[]);
            let mut expected = kept;
            expected.sort_unstable();
            let shown = Decimal128Array::from(expected).with_precision_and_scale(precision, 2).unwrap();
            let shown: ArrayRef = Arc::new(shown);
            assert_eq!(up, (0..shown.len()).map(|i| display::value(&shown, i)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn texts_compare_by_bytes_not_by_when_they_came() {
        let given: ArrayRef = Arc::new(StringArray::from(vec!["b", "", "ä", "a\0", "a", "a\u{1}", "ab", "Z"]));
        let mut expected = ["", "Z", "a", "a\0", "a\u{1}", "ab", "b", "ä"];
        for descending in [false, true] {
            let found = chunks(&[DataType::String], std::slice::from_ref(&given), &[by(0, descending, false)]);
            let texts = found.iter().flat_map(|chunk| chunk.columns[0].as_string::<i32>().iter());
            assert_eq!(texts.map(Option::unwrap).collect::<Vec<_>>(), expected);
            expected.reverse();
        }
        let given: ArrayRef = Arc::new(BinaryArray::from(vec![&[255u8][..], &[0, 0], &[0], &[0, 255]]));
        let found = chunks(&[DataType::Binary], &[given], &[]);
        let bytes = found.iter().flat_map(|chunk| chunk.columns[0].as_binary::<i32>().iter());
        assert_eq!(bytes.map(Option::unwrap).collect::<Vec<_>>(), [&[0][..], &[0, 0], &[0, 255], &[255]]);
    }

    #[test]
    fn ties_are_broken_by_the_other_columns_in_order() {
        let one: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), Some(1), None, Some(0), Some(0)]));
        let two: ArrayRef = Arc::new(Int64Array::from(vec![Some(2), Some(1), Some(1), None, Some(2)]));
        let types = [DataType::BigInt, DataType::BigInt];
        let found = sorted(&types, &[one, two], &[by(1, true, false)]);
        assert_eq!(found, ["0 2", "1 2", "NULL 1", "1 1", "0 NULL"]);
    }
}
