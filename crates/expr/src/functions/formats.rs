//! Timestamps as texts, and texts as timestamps, by a pattern of letters, in English and UTC.
//!
//! The front end lets only patterns through that [`parse`] understands and Spark accepts.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::types::TimestampMicrosecondType;

use super::build::try_texts;
use super::dates::{day_of_year, weekday};
use super::{Function, Slot, TIMESTAMP, function};
use crate::calendar::{DAY, civil, day_number, days_of_month};
use crate::error::{Fault, shown};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// The group.
pub(super) const FUNCTIONS: &[Function] = &[
    function("date_format", &[TIMESTAMP, Slot::TextLiteral], Slot::Text, |input, _| {
        let values = input.operand::<TimestampMicrosecondType>(0);
        let pattern = parse(input.text(1).get(0));
        try_texts(input, |row, out| match &pattern {
            Ok(parts) => {
                let moment = Moment::of(values.get(row));
                parts.iter().try_for_each(|part| moment.write(part, out))
            }
            Err(fault) => Err(fault.clone()),
        })
    })
    .failing(),
    function("parse_timestamp", &[Slot::Text, Slot::TextLiteral], TIMESTAMP, |input, result| {
        let (text, pattern) = (input.text(0), parse(input.text(1).get(0)));
        let values = input.try_map::<TimestampMicrosecondType>(|row| match &pattern {
            Ok(parts) => read(text.get(row), parts).ok_or_else(|| {
                let message = format!("the text '{}' does not have the format", shown(text.get(row)));
                Fault::new("CANNOT_PARSE_TIMESTAMP", message)
            }),
            Err(fault) => Err(fault.clone()),
        })?;
        Ok(Arc::new(values.with_data_type(result.arrow())))
    })
    .failing(),
];

/// The timestamp that a text denotes by a pattern; what the pattern leaves open is that of 1970-01-01 00:00:00.
fn read(text: &str, parts: &[Part]) -> Option<i64> {
    let mut rest = text;
    let (mut year, mut month, mut day, mut hour, mut minute, mut second, mut fraction) = (1970, 1, 1, 0, 0, 0, 0);
    let mut afternoon = None;
    for part in parts {
        let (letter, count) = match part {
            Part::Text(text) => {
                let start = rest.get(..text.len()).filter(|start| start.eq_ignore_ascii_case(text))?;
                rest = &rest[start.len()..];
                continue;
            }
            Part::Field(letter, count) => (*letter, *count),
        };
        match letter {
            'M' | 'L' if count >= 3 => {
                let length = |name: &str| if count == 3 { 3 } else { name.len() };
                let found = MONTHS.iter().position(|name| {
                    rest.get(..length(name)).is_some_and(|start| start.eq_ignore_ascii_case(&name[..length(name)]))
                })?;
                rest = &rest[length(MONTHS[found])..];
                month = found as i64 + 1;
            }
            'a' => {
                let half = rest.get(..2)?;
                afternoon = Some(half.eq_ignore_ascii_case("pm"));
                (half.eq_ignore_ascii_case("am") || half.eq_ignore_ascii_case("pm")).then_some(())?;
                rest = &rest[2..];
            }
            'S' => {
                let digits = digits(&mut rest, count, count)?;
                fraction = digits.parse::<i64>().ok()?.checked_mul(10_i64.pow(9 - count.min(9) as u32))? / 1000;
            }
            'y' if count == 4 && rest.starts_with('+') => {
                rest = &rest[1..];
                year = digits(&mut rest, 5, 9)?.parse().ok()?;
            }
            _ => {
                let most = if count == 1 { 9 } else { count };
                let value: i64 = digits(&mut rest, count, most)?.parse().ok()?;
                match letter {
                    'y' => year = if count == 2 { 2000 + value } else { value },
                    'M' | 'L' => month = value,
                    'd' => day = value,
                    'H' => hour = value,
                    'h' => hour = (1..=12).contains(&value).then_some(value % 12)?,
                    'm' => minute = value,
                    's' => second = value,
                    _ => return None,
                }
            }
        }
    }
    let exists = (1..=12).contains(&month) && (1..=days_of_month(year, month)).contains(&day);
    (rest.is_empty() && exists && hour < 24 && minute < 60 && second < 60).then_some(())?;
    hour += if afternoon == Some(true) { 12 } else { 0 };
    let time = ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction;
    day_number(year, month, day).checked_mul(DAY)?.checked_add(time)
}

/// Takes `least` to `most` digits off a text.
fn digits<'a>(rest: &mut &'a str, least: usize, most: usize) -> Option<&'a str> {
    let length = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
    let (digits, after) = rest.split_at(length);
    *rest = after;
    (length >= least).then_some(digits)
}

/// A part of a pattern.
enum Part {
    Text(String),
    /// A letter and how often it stands there.
    Field(char, usize),
}

fn parse(pattern: &str) -> Result<Vec<Part>, Fault> {
    let mut parts = Vec::new();
    let mut rest = pattern.chars().peekable();
    while let Some(character) = rest.next() {
        if character == '\'' {
            // Two quotes are one, inside of a quoted text and outside.
            let mut text = String::new();
            loop {
                match rest.next() {
                    Some('\'') if rest.peek() == Some(&'\'') => {
                        rest.next();
                        text.push('\'');
                    }
                    Some('\'') => break,
                    Some(other) => text.push(other),
                    None => return Err(bad(pattern)),
                }
            }
            parts.push(Part::Text(if text.is_empty() { "'".to_owned() } else { text }));
        } else if character.is_ascii_alphabetic() {
            let mut count = 1;
            while rest.next_if_eq(&character).is_some() {
                count += 1;
            }
            parts.push(Part::Field(character, count));
        } else {
            parts.push(Part::Text(character.to_string()));
        }
    }
    Ok(parts)
}

fn bad(pattern: &str) -> Fault {
    Fault::new("INVALID_DATETIME_PATTERN", format!("'{}' is not a pattern of dates and times", shown(pattern)))
}

/// A timestamp in parts.
struct Moment {
    days: i64,
    year: i64,
    month: i64,
    day: i64,
    micros: i64,
}

impl Moment {
    fn of(micros: i64) -> Self {
        let days = micros.div_euclid(DAY);
        let (year, month, day) = civil(days);
        Self { days, year, month, day, micros: micros.rem_euclid(DAY) }
    }

    fn write(&self, part: &Part, out: &mut String) -> Result<(), Fault> {
        let (letter, count) = match part {
            Part::Text(text) => {
                out.push_str(text);
                return Ok(());
            }
            Part::Field(letter, count) => (*letter, *count),
        };
        let seconds = self.micros / 1_000_000;
        let (hour, month) = (seconds / 3600, MONTHS[self.month as usize - 1]);
        let weekday = WEEKDAYS[weekday(self.days) as usize];
        let quarter = (self.month - 1) / 3 + 1;
        let number = match letter {
            'y' if count == 2 => self.year.rem_euclid(100),
            'y' => {
                // As Java: a year that needs more than the digits asked for has a sign, if these are at least four.
                if self.year < 0 {
                    out.push('-');
                } else if count >= 4 && self.year >= 10_i64.pow(count.min(18) as u32) {
                    out.push('+');
                }
                self.year.abs()
            }
            'M' | 'L' if count == 3 => return text(&month[..3], out),
            'M' | 'L' if count == 4 => return text(month, out),
            'M' | 'L' => self.month,
            'd' => self.day,
            'D' => day_of_year(self.days),
            'E' if count < 4 => return text(&weekday[..3], out),
            'E' => return text(weekday, out),
            'Q' | 'q' if count == 3 => return text(["Q1", "Q2", "Q3", "Q4"][quarter as usize - 1], out),
            'Q' | 'q' if count == 4 => {
                let names = ["1st quarter", "2nd quarter", "3rd quarter", "4th quarter"];
                return text(names[quarter as usize - 1], out);
            }
            'Q' | 'q' => quarter,
            'H' => hour,
            'k' => (hour + 23) % 24 + 1,
            'K' => hour % 12,
            'h' => (hour + 11) % 12 + 1,
            'm' => seconds / 60 % 60,
            's' => seconds % 60,
            'S' => {
                let digits = format!("{:06}000", self.micros % 1_000_000);
                return text(&digits[..count.min(9)], out);
            }
            'a' => return text(if hour < 12 { "AM" } else { "PM" }, out),
            'X' => return text("Z", out),
            'x' => return text(["+00", "+0000", "+00:00"][count.min(3) - 1], out),
            'Z' => return text("+0000", out),
            _ => return Err(bad(&letter.to_string())),
        };
        let _ = write!(out, "{number:0count$}"); // writing to a string cannot fail
        Ok(())
    }
}

fn text(text: &str, out: &mut String) -> Result<(), Fault> {
    out.push_str(text);
    Ok(())
}
