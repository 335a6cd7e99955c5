//! Regular expressions, matched in time linear in the text (the `regex` crate).
//!
//! Patterns are literals in the syntax of that crate: the front end has translated them from Java's. A group whose name
//! starts with `__end` stands for a line terminator at the end of the text that Java's `$` looks over; it is no part of
//! the match, and not counted among the groups.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BooleanArray};
use regex::{CaptureLocations, Regex, RegexBuilder};

use super::build::{optional_texts, try_texts};
use super::{BOOLEAN, Function, INT, Slot, function};
use crate::column::Input;
use crate::datatype::DataType;
use crate::error::{EvalError, Fault, shown};
use crate::expr::Expr;

const TEXT: Slot = Slot::Text;
const PATTERN: Slot = Slot::TextLiteral;
/// The most bytes of a compiled pattern.
const MOST_BYTES: usize = 64 << 20;

/// The group.
pub(super) const FUNCTIONS: &[Function] = &[
    function("regexp_like", &[TEXT, PATTERN], BOOLEAN, |input, _| {
        let Some(pattern) = Pattern::of(input)? else {
            return Ok(Arc::new(BooleanArray::new_null(input.rows)));
        };
        let text = input.text(0);
        Ok(Arc::new(input.map_booleans(|row| pattern.regex.is_match(text.get(row)))))
    })
    .failing_if(is_bad_pattern),
    function("regexp_count", &[TEXT, PATTERN], INT, |input, result| {
        let Some(mut pattern) = Pattern::of(input)? else { return null(input, result) };
        let text = input.text(0);
        Ok(Arc::new(input.map_optional::<Int32Type>(|row| {
            let mut count = 0;
            pattern.each(text.get(row), |_, _, _| count += 1);
            Ok(Some(count))
        })?))
    })
    .failing_if(is_bad_pattern),
    function("regexp_substr", &[TEXT, PATTERN], TEXT, |input, result| {
        let Some(mut pattern) = Pattern::of(input)? else { return null(input, result) };
        let text = input.text(0);
        optional_texts(input, |row, out| {
            let text = text.get(row);
            let found = pattern.find(text, 0);
            found.iter().for_each(|&(start, end)| out.push_str(&text[start..end]));
            Ok(!out.is_empty()) // as Spark, to which an empty match is none
        })
    })
    .failing_if(is_bad_pattern),
    function("regexp_extract", &[TEXT, PATTERN, INT], TEXT, |input, result| {
        let Some(mut pattern) = Pattern::of(input)? else { return null(input, result) };
        let (text, group) = (input.text(0), input.operand::<Int32Type>(2));
        try_texts(input, |row, out| {
            let text = text.get(row);
            let group = usize::try_from(group.get(row)).ok().filter(|&group| group < pattern.groups.len());
            let group = group.ok_or_else(|| pattern.no_group())?;
            if pattern.find(text, 0).is_some() {
                pattern.group(group).iter().for_each(|&(start, end)| out.push_str(&text[start..end]));
            }
            Ok(())
        })
    })
    .failing(),
    function("regexp_replace", &[TEXT, PATTERN, TEXT, INT], TEXT, |input, result| {
        let Some(mut pattern) = Pattern::of(input)? else { return null(input, result) };
        let (text, replacement, position) = (input.text(0), input.text(2), input.operand::<Int32Type>(3));
        try_texts(input, |row, out| {
            let text = text.get(row);
            let parts = pattern.replacement(replacement.get(row))?;
            let from = i64::from(position.get(row)) - 1;
            if from < 0 {
                return Err(Fault::new("INVALID_PARAMETER_VALUE", "the position of regexp_replace must be positive"));
            }
            // Spark looks at the rest of the text alone, and leaves texts without characters there as they are.
            let Some((from, _)) = text.char_indices().nth(from as usize) else {
                if from == 0 {
                    pattern.replace("", &parts, out);
                } else {
                    out.push_str(text);
                }
                return Ok(());
            };
            out.push_str(&text[..from]);
            pattern.replace(&text[from..], &parts, out);
            Ok(())
        })
    })
    .failing(),
];

fn compile(pattern: &str) -> Result<Regex, Fault> {
    RegexBuilder::new(pattern).size_limit(MOST_BYTES).build().map_err(|error| {
        let reason = error.to_string();
        let reason = reason.lines().last().unwrap_or_default();
        Fault::new("INVALID_PARAMETER_VALUE", format!("the pattern '{}' is not supported: {reason}", shown(pattern)))
    })
}

fn is_bad_pattern(args: &[Expr]) -> bool {
    args[1].as_text().is_none_or(|pattern| compile(pattern).is_err())
}

fn null(input: &Input, result: DataType) -> Result<ArrayRef, EvalError> {
    Ok(arrow_array::new_null_array(&result.arrow(), input.rows))
}

/// A part of a replacement.
enum Part {
    Text(String),
    Group(usize),
}

/// A compiled pattern and the last match.
struct Pattern {
    regex: Regex,
    /// The number of each group that the user knows; the whole match is the first.
    groups: Vec<usize>,
    /// The groups that are line terminators before the end.
    ends: Vec<usize>,
    places: CaptureLocations,
}

impl Pattern {
    /// The pattern of a call; `None` if no row needs it.
    fn of(input: &Input) -> Result<Option<Self>, EvalError> {
        let Some(row) = (0..input.rows).find(|&row| input.is_valid(row)) else { return Ok(None) };
        let regex = compile(input.text(1).get(0)).map_err(|fault| fault.at(row))?;
        let is_end = |name: Option<&str>| name.is_some_and(|name| name.starts_with("__end"));
        let (ends, groups): (Vec<_>, Vec<_>) = regex.capture_names().enumerate().partition(|&(_, name)| is_end(name));
        let numbers = |named: Vec<(usize, Option<&str>)>| named.into_iter().map(|(number, _)| number).collect();
        let (ends, groups) = (numbers(ends), numbers(groups));
        let places = regex.capture_locations();
        Ok(Some(Self { regex, groups, ends, places }))
    }

    fn no_group(&self) -> Fault {
        let message = format!("there is no such group: the pattern has {}", self.groups.len() - 1);
        Fault::new("INVALID_PARAMETER_VALUE", message)
    }

    /// The first match from a place on.
    fn find(&mut self, text: &str, from: usize) -> Option<(usize, usize)> {
        self.regex.captures_read_at(&mut self.places, text, from)?;
        self.group(0)
    }

    /// A group of the last match.
    fn group(&self, group: usize) -> Option<(usize, usize)> {
        let (start, end) = self.places.get(self.groups[group])?;
        let most = self.ends.iter().filter_map(|&end| self.places.get(end)).map(|(start, _)| start).min();
        let most = most.unwrap_or(end);
        Some((start.min(most), end.min(most)))
    }

    /// Visits all matches; after an empty one the search goes on one character further, as in Java.
    fn each(&mut self, text: &str, mut visit: impl FnMut(&Self, usize, usize)) {
        let mut from = 0;
        while let Some((start, end)) = self.find(text, from) {
            visit(self, start, end);
            from = end;
            if start == end {
                match text[end..].chars().next() {
                    Some(next) => from += next.len_utf8(),
                    None => break,
                }
            }
        }
    }

    /// Parses a replacement: `$1` is a group, and `\` makes the next character an ordinary one.
    fn replacement(&self, text: &str) -> Result<Vec<Part>, Fault> {
        let bad =
            |what: &str| Fault::new("INVALID_PARAMETER_VALUE", format!("the replacement '{}' {what}", shown(text)));
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text.chars().peekable();
        while let Some(character) = rest.next() {
            if character == '\\' {
                plain.push(rest.next().ok_or_else(|| bad("ends with a backslash"))?);
                continue;
            }
            if character != '$' {
                plain.push(character);
                continue;
            }
            let digit = |character: Option<&char>| character.and_then(|c| c.to_digit(10)).map(|digit| digit as usize);
            let mut group = digit(rest.peek()).ok_or_else(|| bad("has a $ without the number of a group"))?;
            rest.next();
            if group >= self.groups.len() {
                return Err(self.no_group());
            }
            while let Some(longer) = digit(rest.peek()).map(|digit| group * 10 + digit) {
                if longer >= self.groups.len() {
                    break;
                }
                group = longer;
                rest.next();
            }
            parts.push(Part::Text(std::mem::take(&mut plain)));
            parts.push(Part::Group(group));
        }
        parts.push(Part::Text(plain));
        Ok(parts)
    }

    fn replace(&mut self, text: &str, parts: &[Part], out: &mut String) {
        let mut done = 0;
        self.each(text, |found, start, end| {
            out.push_str(&text[done..start]);
            for part in parts {
                match part {
                    Part::Text(plain) => out.push_str(plain),
                    Part::Group(group) => {
                        found.group(*group).iter().for_each(|&(start, end)| out.push_str(&text[start..end]));
                    }
                }
            }
            done = end;
        });
        out.push_str(&text[done..]);
    }
}
