//! Columns of texts and byte strings, written row by row.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{BinaryBuilder, StringBuilder};

use crate::column::Input;
use crate::error::{EvalError, Fault};

/// Builds a column of texts; the closure writes the text of a row.
pub(crate) fn texts(input: &Input, mut write: impl FnMut(usize, &mut String)) -> Result<ArrayRef, EvalError> {
    try_texts(input, |row, out| {
        write(row, out);
        Ok(())
    })
}

/// Builds a column of texts; the closure writes the text of a row or fails.
pub(crate) fn try_texts(
    input: &Input,
    mut write: impl FnMut(usize, &mut String) -> Result<(), Fault>,
) -> Result<ArrayRef, EvalError> {
    optional_texts(input, |row, out| write(row, out).map(|()| true))
}

/// Builds a column of texts; the closure writes the text of a row, says that it is NULL (`false`), or fails.
pub(crate) fn optional_texts(
    input: &Input,
    mut write: impl FnMut(usize, &mut String) -> Result<bool, Fault>,
) -> Result<ArrayRef, EvalError> {
    let mut builder = StringBuilder::with_capacity(input.rows, 0);
    let mut text = String::new();
    let mut total = 0_usize;
    for row in 0..input.rows {
        text.clear();
        if !input.is_valid(row) || !write(row, &mut text).map_err(|fault| fault.at(row))? {
            builder.append_null();
            continue;
        }
        total += text.len();
        if total > i32::MAX as usize {
            return Err(EvalError::invalid("a column of texts exceeds 2 GiB: use smaller batches"));
        }
        builder.append_value(&text);
    }
    Ok(Arc::new(builder.finish()))
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
