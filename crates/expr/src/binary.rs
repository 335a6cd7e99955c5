//! Functions of byte strings. Positions and lengths count bytes.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::BinaryBuilder;
use arrow_array::types::Int32Type;

use crate::column::{Bytes, Input};
use crate::error::EvalError;
use crate::operation::Operation;
use crate::strings::bounds;

/// Computes an operation on byte strings.
pub(crate) fn compute(operation: Operation, input: &Input) -> Result<ArrayRef, EvalError> {
    let first = input.bytes(0);
    Ok(match operation {
        Operation::Length => Arc::new(input.map::<Int32Type>(|row| first.get(row).len() as i32)),
        Operation::StartsWith => {
            let prefix = input.bytes(1);
            Arc::new(input.map_booleans(|row| first.get(row).starts_with(prefix.get(row))))
        }
        Operation::EndsWith => {
            let suffix = input.bytes(1);
            Arc::new(input.map_booleans(|row| first.get(row).ends_with(suffix.get(row))))
        }
        Operation::Contains => {
            let wanted = input.bytes(1);
            Arc::new(input.map_booleans(|row| contains(first.get(row), wanted.get(row))))
        }
        Operation::Concat => {
            let parts: Vec<Bytes> = (0..input.len()).map(|position| input.bytes(position)).collect();
            binaries(input, |row, out| {
                for part in &parts {
                    out.extend_from_slice(part.get(row));
                }
            })?
        }
        Operation::Left => {
            let count = input.operand::<Int32Type>(1);
            binaries(input, |row, out| out.extend_from_slice(slice(first.get(row), 0, i64::from(count.get(row)))))?
        }
        // Substring.
        _ => {
            let position = input.operand::<Int32Type>(1);
            let count = (input.len() == 3).then(|| input.operand::<Int32Type>(2));
            binaries(input, |row, out| {
                let bytes = first.get(row);
                let (start, end) = bounds(bytes.len(), position.get(row), count.map(|count| count.get(row)));
                out.extend_from_slice(slice(bytes, start, end));
            })?
        }
    })
}

/// Builds a column of byte strings; the closure writes that of a row.
pub(crate) fn binaries(input: &Input, mut write: impl FnMut(usize, &mut Vec<u8>)) -> Result<ArrayRef, EvalError> {
    let mut builder = BinaryBuilder::with_capacity(input.rows, 0);
    let mut bytes = Vec::new();
    let mut total = 0_usize;
    for row in 0..input.rows {
        if !input.is_valid(row) {
            builder.append_null();
            continue;
        }
        bytes.clear();
        write(row, &mut bytes);
        total += bytes.len();
        if total > i32::MAX as usize {
            return Err(EvalError::invalid("a column of byte strings exceeds 2 GiB: use smaller batches"));
        }
        builder.append_value(&bytes);
    }
    Ok(Arc::new(builder.finish()))
}

/// The bytes from `start` up to `end`, as far as they exist.
fn slice(bytes: &[u8], start: i64, end: i64) -> &[u8] {
    let offset = |position: i64| usize::try_from(position).unwrap_or(0).min(bytes.len());
    if end <= start { &[] } else { &bytes[offset(start)..offset(end)] }
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    wanted.is_empty() || bytes.windows(wanted.len()).any(|window| window == wanted)
}
