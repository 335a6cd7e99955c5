//! Functions of byte strings. Positions and lengths count bytes.

use std::sync::Arc;

use arrow_array::types::Int32Type;

use super::build::binaries;
use super::text::bounds;
use super::{BINARY, BOOLEAN, Function, INT, Nulls, function};
use crate::column::{Bytes, Input};

/// The group.
pub(super) const FUNCTIONS: &[Function] = &[
    function("length", &[BINARY], INT, |input, _| {
        let bytes = input.bytes(0);
        Ok(Arc::new(input.map::<Int32Type>(|row| bytes.get(row).len() as i32)))
    }),
    function("starts_with", &[BINARY, BINARY], BOOLEAN, |input, _| {
        Ok(Arc::new(test(input, |bytes, prefix| bytes.starts_with(prefix))))
    }),
    function("ends_with", &[BINARY, BINARY], BOOLEAN, |input, _| {
        Ok(Arc::new(test(input, |bytes, suffix| bytes.ends_with(suffix))))
    }),
    function("contains", &[BINARY, BINARY], BOOLEAN, |input, _| {
        Ok(Arc::new(test(input, |bytes, wanted| {
            wanted.is_empty() || bytes.windows(wanted.len()).any(|window| window == wanted)
        })))
    }),
    function("concat", &[BINARY], BINARY, |input, _| {
        let parts: Vec<Bytes> = (0..input.len()).map(|position| input.bytes(position)).collect();
        binaries(input, |row, out| parts.iter().for_each(|part| out.extend_from_slice(part.get(row))))
    })
    .repeating()
    .with_nulls(Nulls::StrictAfterAll),
    function("left", &[BINARY, INT], BINARY, |input, _| {
        let (bytes, count) = (input.bytes(0), input.operand::<Int32Type>(1));
        binaries(input, |row, out| out.extend_from_slice(slice(bytes.get(row), 0, i64::from(count.get(row)))))
    }),
    function("reverse", &[BINARY], BINARY, |input, _| {
        let bytes = input.bytes(0);
        binaries(input, |row, out| out.extend(bytes.get(row).iter().rev()))
    }),
    function("substring", &[BINARY, INT], BINARY, substring),
    function("substring", &[BINARY, INT, INT], BINARY, substring),
];

fn test(input: &Input, holds: impl Fn(&[u8], &[u8]) -> bool) -> arrow_array::BooleanArray {
    let (bytes, other) = (input.bytes(0), input.bytes(1));
    input.map_booleans(|row| holds(bytes.get(row), other.get(row)))
}

fn substring(input: &Input, _: crate::DataType) -> Result<arrow_array::ArrayRef, crate::EvalError> {
    let (bytes, position) = (input.bytes(0), input.operand::<Int32Type>(1));
    let count = (input.len() == 3).then(|| input.operand::<Int32Type>(2));
    binaries(input, |row, out| {
        let bytes = bytes.get(row);
        let (start, end) = bounds(bytes.len(), position.get(row), count.map(|count| count.get(row)));
        out.extend_from_slice(slice(bytes, start, end));
    })
}

/// The bytes from `start` up to `end`, as far as they exist.
fn slice(bytes: &[u8], start: i64, end: i64) -> &[u8] {
    let offset = |position: i64| usize::try_from(position).unwrap_or(0).min(bytes.len());
    if end <= start { &[] } else { &bytes[offset(start)..offset(end)] }
}
