//! Functions of texts. Positions and lengths count characters, not bytes; purely ASCII texts take the short way.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{ArrayRef, BooleanArray, Datum, StringArray};
use arrow_schema::ArrowError;
use arrow_string::like;

use super::build::{optional_texts, texts, try_texts};
use super::pattern::Pattern;
use super::{BIGINT, BOOLEAN, Function, INT, Nulls, Slot, function};
use crate::column::{Column, Input, Text};
use crate::datatype::DataType;
use crate::error::{EvalError, Fault, MOST_TEXT};
use crate::expr::Expr;

const TEXT: Slot = Slot::Text;

/// The group.
pub(super) const FUNCTIONS: &[Function] = &[
    function("like", &[TEXT, TEXT], BOOLEAN, matches).failing_if(is_bad_pattern),
    function("like", &[TEXT, TEXT, Slot::Character], BOOLEAN, matches).failing_if(is_bad_pattern),
    function("starts_with", &[TEXT, TEXT], BOOLEAN, |input, _| search(like::starts_with, input)),
    function("ends_with", &[TEXT, TEXT], BOOLEAN, |input, _| search(like::ends_with, input)),
    function("contains", &[TEXT, TEXT], BOOLEAN, |input, _| search(like::contains, input)),
    function("length", &[TEXT], INT, |input, _| {
        let text = input.text(0);
        Ok(Arc::new(input.map::<Int32Type>(|row| length(text.get(row)) as i32)))
    }),
    function("upper", &[TEXT], TEXT, |input, _| {
        let text = input.text(0);
        texts(input, |row, out| change_case(text.get(row), true, out))
    }),
    function("lower", &[TEXT], TEXT, |input, _| {
        let text = input.text(0);
        texts(input, |row, out| change_case(text.get(row), false, out))
    }),
    function("concat", &[TEXT], TEXT, |input, _| {
        let parts: Vec<Text> = (0..input.len()).map(|position| input.text(position)).collect();
        texts(input, |row, out| parts.iter().for_each(|part| out.push_str(part.get(row))))
    })
    .repeating()
    .with_nulls(Nulls::StrictAfterAll),
    function("replace", &[TEXT, TEXT, TEXT], TEXT, |input, _| {
        let (text, search, replacement) = (input.text(0), input.text(1), input.text(2));
        texts(input, |row, out| replace(text.get(row), search.get(row), replacement.get(row), out))
    }),
    function("left", &[TEXT, INT], TEXT, |input, _| {
        let (text, count) = (input.text(0), input.operand::<Int32Type>(1));
        texts(input, |row, out| out.push_str(slice(text.get(row), 0, i64::from(count.get(row)))))
    }),
    function("right", &[TEXT, INT], TEXT, |input, _| {
        let (text, count) = (input.text(0), input.operand::<Int32Type>(1));
        texts(input, |row, out| {
            let (text, count) = (text.get(row), i64::from(count.get(row)));
            if count > 0 {
                out.push_str(slice(text, length(text) as i64 - count, i64::MAX));
            }
        })
    }),
    function("substring", &[TEXT, INT], TEXT, substring),
    function("substring", &[TEXT, INT, INT], TEXT, substring),
];

/// Further functions of the group, which are made of loops over characters.
pub(super) const MORE: &[Function] = &[
    // Without characters to take off, blanks.
    function("trim", &[TEXT], TEXT, |input, _| trim(input, true, true)),
    function("trim", &[TEXT, TEXT], TEXT, |input, _| trim(input, true, true)),
    function("ltrim", &[TEXT], TEXT, |input, _| trim(input, true, false)),
    function("ltrim", &[TEXT, TEXT], TEXT, |input, _| trim(input, true, false)),
    function("rtrim", &[TEXT], TEXT, |input, _| trim(input, false, true)),
    function("rtrim", &[TEXT, TEXT], TEXT, |input, _| trim(input, false, true)),
    // The separator, then what it stands between; NULLs are left out.
    function("concat_ws", &[TEXT], TEXT, |input, _| {
        let parts: Vec<(&Column, Text)> =
            (1..input.len()).map(|position| (input.column(position), input.text(position))).collect();
        let separator = input.text(0);
        optional_texts(input, |row, out| {
            let present = parts.iter().filter(|(column, _)| column.is_valid(row));
            for (number, (_, text)) in present.enumerate() {
                if number > 0 {
                    out.push_str(separator.get(row));
                }
                out.push_str(text.get(row));
            }
            Ok(input.column(0).is_valid(row))
        })
    })
    .repeating()
    .with_nulls(Nulls::Seen),
    // locate(part, text, position)
    function("locate", &[TEXT, TEXT, INT], INT, |input, _| {
        let (part, text, from) = (input.text(0), input.text(1), input.operand::<Int32Type>(2));
        Ok(Arc::new(input.map::<Int32Type>(|row| locate(part.get(row), text.get(row), from.get(row)))))
    }),
    function("lpad", &[TEXT, INT, TEXT], TEXT, |input, _| pad(input, true)).failing(),
    function("rpad", &[TEXT, INT, TEXT], TEXT, |input, _| pad(input, false)).failing(),
    function("repeat", &[TEXT, INT], TEXT, |input, _| {
        let (text, count) = (input.text(0), input.operand::<Int32Type>(1));
        try_texts(input, |row, out| {
            let (text, count) = (text.get(row), count.get(row).max(0) as usize);
            if text.len().saturating_mul(count) > MOST_TEXT {
                return Err(Fault::too_long());
            }
            (0..if text.is_empty() { 0 } else { count }).for_each(|_| out.push_str(text));
            Ok(())
        })
    })
    .failing(),
    function("reverse", &[TEXT], TEXT, |input, _| {
        let text = input.text(0);
        texts(input, |row, out| out.extend(text.get(row).chars().rev()))
    }),
    function("initcap", &[TEXT], TEXT, |input, _| {
        let text = input.text(0);
        texts(input, |row, out| {
            for (number, word) in text.get(row).split(' ').enumerate() {
                if number > 0 {
                    out.push(' ');
                }
                capitalise(word, out);
            }
        })
    }),
    function("translate", &[TEXT, TEXT, TEXT], TEXT, |input, _| {
        let (text, from, to) = (input.text(0), input.text(1), input.text(2));
        let mut map: HashMap<char, Option<char>> = HashMap::new();
        let mut known = None;
        texts(input, |row, out| {
            if known != Some((from.get(row), to.get(row))) {
                known = Some((from.get(row), to.get(row)));
                map.clear();
                let mut to = to.get(row).chars();
                for character in from.get(row).chars() {
                    let other = to.next();
                    map.entry(character).or_insert(other);
                }
            }
            out.extend(text.get(row).chars().filter_map(|character| *map.get(&character).unwrap_or(&Some(character))));
        })
    }),
    function("split_part", &[TEXT, TEXT, INT], TEXT, |input, _| {
        let (text, delimiter, number) = (input.text(0), input.text(1), input.operand::<Int32Type>(2));
        try_texts(input, |row, out| {
            let (text, delimiter) = (text.get(row), delimiter.get(row));
            let number = number.get(row);
            let place = number.unsigned_abs() as usize;
            if place == 0 {
                return Err(Fault::new("INVALID_INDEX_OF_ZERO", "the parts of split_part are counted from 1 or -1"));
            }
            let whole = [text];
            let found = if delimiter.is_empty() {
                whole.get(place - 1).copied()
            } else if number > 0 {
                text.split(delimiter).nth(place - 1)
            } else {
                let count = text.split(delimiter).count();
                count.checked_sub(place).and_then(|index| text.split(delimiter).nth(index))
            };
            out.push_str(found.unwrap_or(""));
            Ok(())
        })
    })
    .failing(),
    function("substring_index", &[TEXT, TEXT, INT], TEXT, |input, _| {
        let (text, delimiter, count) = (input.text(0), input.text(1), input.operand::<Int32Type>(2));
        texts(input, |row, out| out.push_str(before(text.get(row), delimiter.get(row), count.get(row))))
    }),
    function("ascii", &[TEXT], INT, |input, _| {
        let text = input.text(0);
        Ok(Arc::new(input.map::<Int32Type>(|row| text.get(row).chars().next().map_or(0, |first| first as i32))))
    }),
    function("chr", &[BIGINT], TEXT, |input, _| {
        let number = input.operand::<Int64Type>(0);
        texts(input, |row, out| {
            if number.get(row) >= 0 {
                out.push(char::from((number.get(row) & 255) as u8));
            }
        })
    }),
];

fn trim(input: &Input, start: bool, end: bool) -> Result<ArrayRef, EvalError> {
    let text = input.text(0);
    let characters = if input.len() > 1 { input.text(1) } else { Text::Constant(" ") };
    texts(input, |row, out| {
        let (mut text, characters) = (text.get(row), characters.get(row));
        let is_cut = |character: char| characters.contains(character);
        if start {
            text = text.trim_start_matches(is_cut);
        }
        out.push_str(if end { text.trim_end_matches(is_cut) } else { text });
    })
}

/// The place of a part in a text, from 1, not before a place; 0 if there is none. The empty text is at the start.
fn locate(part: &str, text: &str, from: i32) -> i32 {
    if from < 1 || part.is_empty() {
        return i32::from(from >= 1);
    }
    let skipped = from as usize - 1;
    let Some(start) = text.char_indices().map(|(start, _)| start).nth(skipped) else { return 0 };
    text[start..].find(part).map_or(0, |place| (skipped + length(&text[start..start + place])) as i32 + 1)
}

fn pad(input: &Input, left: bool) -> Result<ArrayRef, EvalError> {
    let (text, width, pad) = (input.text(0), input.operand::<Int32Type>(1), input.text(2));
    try_texts(input, |row, out| {
        let (text, pad, width) = (text.get(row), pad.get(row), width.get(row).max(0) as usize);
        let missing = width.saturating_sub(length(text));
        if missing == 0 {
            out.push_str(slice(text, 0, width as i64));
            return Ok(());
        }
        if missing.saturating_mul(if pad.is_ascii() { 1 } else { 4 }) + text.len() > MOST_TEXT {
            return Err(Fault::too_long());
        }
        if !left {
            out.push_str(text);
        }
        out.extend(pad.chars().cycle().take(missing));
        if left {
            out.push_str(text);
        }
        Ok(())
    })
}

/// What is before the `count`-th delimiter, or after it, counted from the end, if `count` is negative.
fn before<'a>(text: &'a str, delimiter: &str, count: i32) -> &'a str {
    if delimiter.is_empty() || count == 0 {
        return "";
    }
    let place = count.unsigned_abs() as usize - 1;
    // Occurrences may overlap.
    let mut starts = text.char_indices().map(|(start, _)| start).filter(|&start| text[start..].starts_with(delimiter));
    if count > 0 {
        starts.nth(place).map_or(text, |start| &text[..start])
    } else {
        starts.rev().nth(place).map_or(text, |start| &text[start + delimiter.len()..])
    }
}

/// Writes a word with its first character in title case and the others in lower case.
fn capitalise(word: &str, out: &mut String) {
    let Some(first) = word.chars().next() else { return };
    match first {
        '\u{10d0}'..='\u{10ff}' => out.push(first), // Georgian has no title case
        'Ǆ'..='ǆ' => out.push('ǅ'),
        'Ǉ'..='ǉ' => out.push('ǈ'),
        'Ǌ'..='ǌ' => out.push('ǋ'),
        'Ǳ'..='ǳ' => out.push('ǲ'),
        _ => {
            let mut upper = first.to_uppercase();
            out.extend(upper.next());
            out.extend(upper.flat_map(char::to_lowercase));
        }
    }
    // The whole word decides on the form of a last sigma.
    let lower = word.to_lowercase();
    out.push_str(&lower[first.to_lowercase().map(char::len_utf8).sum()..]);
}

fn substring(input: &Input, _: DataType) -> Result<ArrayRef, EvalError> {
    let (text, position) = (input.text(0), input.operand::<Int32Type>(1));
    let count = (input.len() == 3).then(|| input.operand::<Int32Type>(2));
    texts(input, |row, out| {
        let text = text.get(row);
        // The length matters for positions from the end only.
        let characters = if position.get(row) < 0 { length(text) } else { 0 };
        let (start, end) = bounds(characters, position.get(row), count.map(|count| count.get(row)));
        out.push_str(slice(text, start, end));
    })
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

fn search(kernel: Kernel, input: &Input) -> Result<ArrayRef, EvalError> {
    Ok(Arc::new(kernel(input.column(0).datum().as_ref(), input.column(1).datum().as_ref())?))
}

/// The escape character of `like`, and its default.
fn escape(text: Option<&str>) -> char {
    text.and_then(|text| text.chars().next()).unwrap_or('\\')
}

/// Whether the pattern of a call of `like` is not known to be a good one.
fn is_bad_pattern(args: &[Expr]) -> bool {
    let escape = escape(args.get(2).and_then(Expr::as_text));
    args[1].as_text().is_none_or(|pattern| Pattern::parse(pattern, escape).is_err())
}

fn matches(input: &Input, _: DataType) -> Result<ArrayRef, EvalError> {
    Ok(Arc::new(like(input)?))
}

/// `like`; the pattern is compiled once where it is constant.
fn like(input: &Input) -> Result<BooleanArray, EvalError> {
    let (text, pattern) = (input.text(0), input.text(1));
    let escape = escape((input.len() == 3).then(|| input.text(2).get(0)));
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
