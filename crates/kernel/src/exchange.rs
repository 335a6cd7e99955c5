//! Rows that travel between engines: where each goes, which are equal, what is left of them.
//!
//! Engines of one view stand in different processes, so hashes depend on values alone (not on interned ids, addresses or the machine) and
//! must never change: rows of earlier batches lie where they put them.

use crate::codec::{double_word, float_word, map_bytes};
use crate::consolidate::RowCodec;
use crate::error::KernelError;
use crate::flow::{Chunk, Flow};
use crate::hash::{fold_by, hash_words};
use crate::interner::Interner;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType as ArrowType, TimeUnit};
use everview_expr::DataType;
use hashbrown::HashTable;

const SEED: u64 = 0x1319_8A2E_0370_7344;
const NULL: u64 = 0xA409_3822_299F_31D0;
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

fn fold(hash: u64, word: u64) -> u64 {
    fold_by(hash, word, MULTIPLIER)
}

/// The hash of each row of some columns. Equal values of one type have equal hashes; NULLs are equal.
pub fn hash_rows(columns: &[ArrayRef], count: usize) -> Result<Vec<u64>, KernelError> {
    let mut hashes = vec![SEED; count];
    for array in columns {
        hash_column(array, &mut hashes)?;
    }
    Ok(hashes)
}

fn hash_column(array: &ArrayRef, hashes: &mut [u64]) -> Result<(), KernelError> {
    match type_of(array.data_type())? {
        DataType::Boolean => mix(array.as_boolean().iter(), hashes, u64::from),
        DataType::TinyInt => mix(array.as_primitive::<Int8Type>().iter(), hashes, |v| v as i64 as u64),
        DataType::SmallInt => mix(array.as_primitive::<Int16Type>().iter(), hashes, |v| v as i64 as u64),
        DataType::Int => mix(array.as_primitive::<Int32Type>().iter(), hashes, |v| v as i64 as u64),
        DataType::BigInt => mix(array.as_primitive::<Int64Type>().iter(), hashes, |v| v as u64),
        DataType::Float => mix(array.as_primitive::<Float32Type>().iter(), hashes, float_word),
        DataType::Double => mix(array.as_primitive::<Float64Type>().iter(), hashes, double_word),
        DataType::Date => mix(array.as_primitive::<Date32Type>().iter(), hashes, |v| v as i64 as u64),
        DataType::Timestamp | DataType::TimestampNtz => {
            mix(array.as_primitive::<TimestampMicrosecondType>().iter(), hashes, |v| v as u64);
        }
        DataType::Decimal { .. } => {
            let words = |v: i128| fold(v as u64, (v >> 64) as u64);
            mix(array.as_primitive::<Decimal128Type>().iter(), hashes, words);
        }
        DataType::String | DataType::Char(_) | DataType::VarChar(_) | DataType::Binary => {
            let mut words = vec![NULL; hashes.len()];
            map_bytes(array, hash_bytes, |i, word| words[i] = word);
            hashes.iter_mut().zip(words).for_each(|(hash, word)| *hash = fold(*hash, word));
        }
        DataType::Null => hashes.iter_mut().for_each(|hash| *hash = fold(*hash, NULL)),
    }
    Ok(())
}

fn mix<T>(values: impl Iterator<Item = Option<T>>, hashes: &mut [u64], word: impl Fn(T) -> u64) {
    for (hash, value) in hashes.iter_mut().zip(values) {
        *hash = fold(*hash, value.map_or(NULL, &word));
    }
}

fn hash_bytes(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(bytes.len() as u64, |hash, word| fold(hash, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    fold(hash, u64::from_le_bytes(last))
}

/// For each row the number of its group: rows are in one group if all their columns are equal. Groups count from 0 as they appear.
pub fn group_rows(columns: &[ArrayRef], count: usize) -> Result<Vec<u32>, KernelError> {
    let codec = codec_of(columns)?;
    let matrix = codec.encode(columns, count, &mut Interner::default());
    let width = codec.width();
    let row = |i: u32| &matrix[i as usize * width..(i as usize + 1) * width];
    let mut index: HashTable<(u32, u32)> = HashTable::with_capacity(count);
    let mut groups = Vec::with_capacity(count);
    let mut next = 0;
    for i in 0..count as u32 {
        let words = row(i);
        let hash = hash_words(words);
        let group = index.find(hash, |&(other, _)| row(other) == words).map(|&(_, group)| group);
        groups.push(group.unwrap_or_else(|| {
            index.insert_unique(hash, (i, next), |&(other, _)| hash_words(row(other)));
            next += 1;
            next - 1
        }));
    }
    Ok(groups)
}

/// The positions of one row of each set of equal rows that does not cancel out, with the sum of the multiplicities.
pub fn net_rows(columns: &[ArrayRef], weights: &[i64]) -> Result<(Vec<u32>, Vec<i64>), KernelError> {
    let rows = Flow::of(vec![Chunk { columns: columns.to_vec(), weights: weights.to_vec() }]);
    let net = codec_of(columns)?.net(&rows, &mut Interner::default())?;
    Ok((net.firsts.into_iter().map(|(_, position)| position).collect(), net.weights))
}

fn codec_of(columns: &[ArrayRef]) -> Result<RowCodec, KernelError> {
    let types = columns.iter().map(|c| type_of(c.data_type())).collect::<Result<Vec<_>, _>>()?;
    Ok(RowCodec::new(&types))
}

/// The SQL type whose values an Arrow column holds.
fn type_of(arrow: &ArrowType) -> Result<DataType, KernelError> {
    Ok(match arrow {
        ArrowType::Boolean => DataType::Boolean,
        ArrowType::Int8 => DataType::TinyInt,
        ArrowType::Int16 => DataType::SmallInt,
        ArrowType::Int32 => DataType::Int,
        ArrowType::Int64 => DataType::BigInt,
        ArrowType::Float32 => DataType::Float,
        ArrowType::Float64 => DataType::Double,
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View => DataType::String,
        ArrowType::Binary | ArrowType::LargeBinary | ArrowType::BinaryView | ArrowType::FixedSizeBinary(_) => {
            DataType::Binary
        }
        ArrowType::Dictionary(_, values) if values.is_string() || values.is_binary() => type_of(values)?,
        ArrowType::Date32 => DataType::Date,
        ArrowType::Timestamp(TimeUnit::Microsecond, Some(_)) => DataType::Timestamp,
        ArrowType::Timestamp(TimeUnit::Microsecond, None) => DataType::TimestampNtz,
        ArrowType::Decimal128(precision, scale) => DataType::Decimal { precision: *precision, scale: *scale },
        ArrowType::Null => DataType::Null,
        other => return Err(KernelError::new("INTERNAL_ERROR", format!("no column has the Arrow type {other}"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{
        BinaryArray, DictionaryArray, Float64Array, Int8Array, Int64Array, StringArray, TimestampMicrosecondArray,
    };
    use std::sync::Arc;

    #[test]
    fn hashes_are_what_they_have_always_been() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(-1)]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["", "eight by", "nine byte"]));
        let hashes = hash_rows(&[numbers, texts], 3).unwrap();
        assert_eq!(hashes, [15_183_884_126_103_393_944, 7_980_608_608_717_791_073, 11_757_680_587_827_569_313]);
    }

    #[test]
    fn hashes_of_later_types_are_what_they_have_always_been() {
        let small: ArrayRef = Arc::new(Int8Array::from(vec![Some(1), None, Some(-1)]));
        let bytes: ArrayRef = Arc::new(BinaryArray::from_vec(vec![b"", b"\xff\xfe", b"nine byte"]));
        let moments: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![0, -1, 1]));
        let hashes = hash_rows(&[small, bytes, moments], 3).unwrap();
        assert_eq!(hashes, [3_147_863_532_436_879_516, 9_788_368_588_377_305_467, 3_235_548_730_654_354_969]);
    }

    #[test]
    fn layouts_do_not_change_hashes_nor_what_is_equal() {
        let plain: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("longer than a view"), Some("a")]));
        let expected = hash_rows(std::slice::from_ref(&plain), 4).unwrap();
        let keys = ArrowType::Int8;
        let dictionary = |values: ArrowType| ArrowType::Dictionary(Box::new(keys.clone()), Box::new(values));
        let texts =
            [ArrowType::LargeUtf8, ArrowType::Utf8View, dictionary(ArrowType::Utf8), dictionary(ArrowType::LargeUtf8)];
        let bytes = [ArrowType::Binary, ArrowType::LargeBinary, ArrowType::BinaryView, dictionary(ArrowType::Binary)];
        for layout in texts.into_iter().chain(bytes) {
            let array = arrow_cast::cast(&plain, &layout).unwrap();
            assert_eq!(hash_rows(std::slice::from_ref(&array), 4).unwrap(), expected, "{layout}");
            assert_eq!(group_rows(&[array], 4).unwrap(), [0, 1, 2, 0], "{layout}");
        }
        // A NULL among the values of a dictionary, and a dictionary without values.
        let values: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
        let nulls = DictionaryArray::new(Int8Array::from(vec![Some(0), Some(1), None]), values);
        assert_eq!(group_rows(&[Arc::new(nulls)], 3).unwrap(), [0, 1, 1]);
        let empty = DictionaryArray::new(Int8Array::from(vec![None, None]), Arc::new(StringArray::from(vec![""; 0])));
        assert_eq!(group_rows(&[Arc::new(empty)], 2).unwrap(), [0, 0]);
    }

    #[test]
    fn equal_doubles_hash_alike_and_group_together() {
        let values: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0, f64::NAN, -f64::NAN, 1.0]));
        let hashes = hash_rows(std::slice::from_ref(&values), 5).unwrap();
        assert_eq!((hashes[0], hashes[2]), (hashes[1], hashes[3]));
        assert_eq!(group_rows(&[values], 5).unwrap(), [0, 0, 1, 1, 2]);
    }

    #[test]
    fn shares_are_even() {
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values((0..70_000).map(|i| i * 8)));
        let mut counts = [0; 7];
        for hash in hash_rows(&[values], 70_000).unwrap() {
            counts[(hash % 7) as usize] += 1;
        }
        assert!(counts.iter().all(|&c| (9_500..10_500).contains(&c)), "{counts:?}");
    }

    #[test]
    fn rows_cancel() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("a"), None, Some("b")]));
        assert_eq!(net_rows(&[texts], &[1, -1, -1, -1, 2]).unwrap(), (vec![1, 4], vec![-2, 2]));
    }
}
