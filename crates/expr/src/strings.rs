//! Functions of texts. Positions and lengths count characters, not bytes; purely ASCII texts take the short way.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BooleanArray, Datum, StringArray};
use arrow_schema::ArrowError;
use arrow_string::like;

use crate::column::{Column, Input, Text};
use crate::error::{EvalError, Fault};
use crate::operation::Operation;
use crate::pattern::Pattern;

/// Computes an operation on texts.
pub(crate) fn compute(operation: Operation, input: &Input) -> Result<ArrayRef, EvalError> {
    let first = input.text(0);
    Ok(match operation {
        Operation::Like => Arc::new(matches(input)?),
        Operation::StartsWith => {
            Arc::new(like::starts_with(input.column(0).datum().as_ref(), input.column(1).datum().as_ref())?)
        }
        Operation::EndsWith => {
            Arc::new(like::ends_with(input.column(0).datum().as_ref(), input.column(1).datum().as_ref())?)
        }
        Operation::Contains => {
            Arc::new(like::contains(input.column(0).datum().as_ref(), input.column(1).datum().as_ref())?)
        }
        Operation::Length => Arc::new(input.map::<Int32Type>(|row| length(first.get(row)) as i32)),
        Operation::Upper => texts(input, |row, out| change_case(first.get(row), true, out))?,
        Operation::Lower => texts(input, |row, out| change_case(first.get(row), false, out))?,
        Operation::Trim => texts(input, |row, out| {
            out.push_str(first.get(row).trim_matches(' '));
        })?,
        Operation::LTrim => texts(input, |row, out| {
            out.push_str(first.get(row).trim_start_matches(' '));
        })?,
        Operation::RTrim => texts(input, |row, out| {
            out.push_str(first.get(row).trim_end_matches(' '));
        })?,
        Operation::Concat => {
            let parts: Vec<Text> = (0..input.len()).map(|position| input.text(position)).collect();
            texts(input, |row, out| {
                for part in &parts {
                    out.push_str(part.get(row));
                }
            })?
        }
        Operation::Replace => {
            let search = input.text(1);
            let replacement = if input.len() == 3 { input.text(2) } else { Text::Constant("") };
            texts(input, |row, out| {
                replace(first.get(row), search.get(row), replacement.get(row), out);
            })?
        }
        Operation::Left => {
            let count = input.operand::<Int32Type>(1);
            texts(input, |row, out| {
                out.push_str(slice(first.get(row), 0, i64::from(count.get(row))));
            })?
        }
        Operation::Right => {
            let count = input.operand::<Int32Type>(1);
            texts(input, |row, out| {
                let (text, count) = (first.get(row), i64::from(count.get(row)));
                if count > 0 {
                    out.push_str(slice(text, length(text) as i64 - count, i64::MAX));
                }
            })?
        }
        // Substring.
        _ => {
            let position = input.operand::<Int32Type>(1);
            let count = (input.len() == 3).then(|| input.operand::<Int32Type>(2));
            texts(input, |row, out| {
                let text = first.get(row);
                // The length matters for positions from the end only.
                let characters = if position.get(row) < 0 { length(text) } else { 0 };
                let (start, end) = bounds(characters, position.get(row), count.map(|count| count.get(row)));
                out.push_str(slice(text, start, end));
            })?
        }
    })
}

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
    let mut builder = StringBuilder::with_capacity(input.rows, 0);
    let mut text = String::new();
    let mut total = 0_usize;
    for row in 0..input.rows {
        if !input.is_valid(row) {
            builder.append_null();
            continue;
        }
        text.clear();
        write(row, &mut text).map_err(|fault| fault.at(row))?;
        total += text.len();
        if total > i32::MAX as usize {
            return Err(EvalError::invalid("a column of texts exceeds 2 GiB: use smaller batches"));
        }
        builder.append_value(&text);
    }
    let array: StringArray = builder.finish();
    Ok(Arc::new(array))
}

/// Where a substring from `position` (from 1; 0 is 1; negative ones count from the end of a value of `length`) starts and ends.
pub(crate) fn bounds(length: usize, position: i32, count: Option<i32>) -> (i64, i64) {
    let start = match i64::from(position) {
        position @ 1.. => position - 1,
        0 => 0,
        position => length as i64 + position,
    };
    (start, count.map_or(i64::MAX, |count| start + i64::from(count)))
}

/// Number of characters.
pub(crate) fn length(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

/// The characters from `start` up to `end`, as far as they exist.
fn slice(text: &str, start: i64, end: i64) -> &str {
    if end <= start || end <= 0 {
        return "";
    }
    let offset = |position: i64| {
        let position = usize::try_from(position).unwrap_or(0);
        if text.is_ascii() {
            return position.min(text.len());
        }
        text.char_indices().nth(position).map_or(text.len(), |(offset, _)| offset)
    };
    &text[offset(start)..offset(end)]
}

fn change_case(text: &str, upper: bool, out: &mut String) {
    if text.is_ascii() {
        out.push_str(text);
        if upper {
            out.make_ascii_uppercase();
        } else {
            out.make_ascii_lowercase();
        }
    } else {
        out.push_str(&if upper { text.to_uppercase() } else { text.to_lowercase() });
    }
}

fn replace(text: &str, search: &str, replacement: &str, out: &mut String) {
    if search.is_empty() {
        out.push_str(text);
        return;
    }
    let mut rest = text;
    while let Some(position) = rest.find(search) {
        out.push_str(&rest[..position]);
        out.push_str(replacement);
        rest = &rest[position + search.len()..];
    }
    out.push_str(rest);
}

/// An Arrow kernel that looks for one text in another.
type Kernel = fn(&dyn Datum, &dyn Datum) -> Result<BooleanArray, ArrowError>;

/// `like`; the pattern is compiled once where it is constant.
fn matches(input: &Input) -> Result<BooleanArray, EvalError> {
    let (text, pattern) = (input.text(0), input.text(1));
    let escape = if input.len() == 3 { input.text(2).get(0).chars().next().unwrap_or('\\') } else { '\\' };
    if let Text::Constant(pattern) = pattern {
        // Without a row that is not NULL there is nobody to report a bad pattern.
        let Some(row) = (0..input.rows).find(|&row| input.is_valid(row)) else {
            return Ok(BooleanArray::new_null(input.rows));
        };
        let pattern = Pattern::parse(pattern, escape).map_err(|fault| fault.at(row))?;
        if let Column::Array(column) = input.column(0) {
            let search = |kernel: Kernel, wanted: &str| Ok(kernel(column, &StringArray::new_scalar(wanted))?);
            if let Some(infix) = pattern.as_infix() {
                return search(like::contains, infix);
            }
            if let Some(prefix) = pattern.as_prefix() {
                return search(like::starts_with, prefix);
            }
            if let Some(suffix) = pattern.as_suffix() {
                return search(like::ends_with, suffix);
            }
        }
        return Ok(input.map_booleans(|row| pattern.matches(text.get(row))));
    }
    let mut last: Option<(&str, Pattern)> = None;
    input.try_map_booleans(|row| {
        let source = pattern.get(row);
        if last.as_ref().is_none_or(|(known, _)| *known != source) {
            last = Some((source, Pattern::parse(source, escape)?));
        }
        Ok(last.as_ref().is_some_and(|(_, pattern)| pattern.matches(text.get(row))))
    })
}
