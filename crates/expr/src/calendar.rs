//! The proleptic Gregorian calendar: days since 1970-01-01 to fields and back, and the text forms of dates and timestamps.
//!
//! Texts follow Spark: years of four to seven digits with an optional sign, short months, days, hours, minutes and
//! seconds, fractions cut to microseconds, and an optional zone after the seconds. Zones are `Z`, offsets, and the names
//! of UTC; other region names are not known here.

use std::fmt::Write as _;

/// Microseconds of a day.
pub(crate) const DAY: i64 = 86_400_000_000;
const SECOND: i64 = 1_000_000;

/// Year, month (1 to 12) and day of month of a day number.
pub(crate) fn civil(days: i64) -> (i64, i64, i64) {
    // Years start in March, so that the leap day is the last; eras are 400 years of 146097 days.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Day number of a date; the date must exist.
pub(crate) fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Number of days of a month.
pub(crate) fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// The day number some months later, the day cut to the length of the month.
pub(crate) fn add_months(days: i64, months: i64) -> i64 {
    let (year, month, day) = civil(days);
    let total = year * 12 + month - 1 + months;
    let (year, month) = (total.div_euclid(12), total.rem_euclid(12) + 1);
    day_number(year, month, day.min(days_of_month(year, month)))
}

/// Writes `yyyy-MM-dd`.
pub(crate) fn format_date(days: i64, out: &mut String) {
    let (year, month, day) = civil(days);
    let sign = match year {
        10_000.. => "+",
        0.. => "",
        _ => "-",
    };
    // Writing to a string cannot fail.
    let _ = write!(out, "{sign}{:04}-{month:02}-{day:02}", year.unsigned_abs());
}

/// Writes `yyyy-MM-dd HH:mm:ss[.f]` without trailing zeros.
pub(crate) fn format_timestamp(micros: i64, out: &mut String) {
    format_date(micros.div_euclid(DAY), out);
    let time = micros.rem_euclid(DAY);
    let (seconds, fraction) = (time / SECOND, time % SECOND);
    let _ = write!(out, " {:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction > 0 {
        let digits = format!("{fraction:06}");
        let _ = write!(out, ".{}", digits.trim_end_matches('0'));
    }
}

/// Cuts what Spark takes for white space around numbers and dates.
pub(crate) fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c <= ' ' || c == '\u{7f}')
}

/// A position in a text of digits and separators.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    /// Reads a number of `least` to `most` digits.
    fn number(&mut self, least: usize, most: usize) -> Option<i64> {
        let length = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if length < least || length > most {
            return None;
        }
        let value = self.0[..length].iter().fold(0, |value, byte| value * 10 + i64::from(byte - b'0'));
        self.0 = &self.0[length..];
        Some(value)
    }

    /// Reads one of the bytes if it is next.
    fn accept(&mut self, bytes: &[u8]) -> bool {
        match self.0.split_first() {
            Some((first, rest)) if bytes.contains(first) => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    /// Reads `[+-]yyyy[-[m]m[-[d]d]]`; also tells whether the day was given.
    fn date(&mut self, year_digits: usize) -> Option<(i64, bool)> {
        let negative = self.0.first() == Some(&b'-');
        self.accept(b"+-");
        let year = self.number(4, year_digits)?;
        let month = if self.accept(b"-") { Some(self.number(1, 2)?) } else { None };
        let day = if month.is_some() && self.accept(b"-") { Some(self.number(1, 2)?) } else { None };
        let (year, month) = (if negative { -year } else { year }, month.unwrap_or(1));
        let day_of_month = day.unwrap_or(1);
        let exists = (1..=12).contains(&month) && (1..=days_of_month(year, month)).contains(&day_of_month);
        exists.then(|| (day_number(year, month, day_of_month), day.is_some()))
    }

    /// Reads `[h]h[:[m]m[:[s]s[.f*][zone]]]`: the microseconds, and those that the zone is east of UTC.
    fn time(&mut self) -> Option<(i64, i64)> {
        let hour = self.number(1, 2)?;
        let minute = if self.accept(b":") { Some(self.number(1, 2)?) } else { None };
        let second = if minute.is_some() && self.accept(b":") { Some(self.number(1, 2)?) } else { None };
        let (minute, seconds) = (minute.unwrap_or(0), second.unwrap_or(0));
        if hour > 23 || minute > 59 || seconds > 59 {
            return None;
        }
        let mut micros = ((hour * 60 + minute) * 60 + seconds) * SECOND;
        if second.is_some() && self.accept(b".") {
            let length = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let mut unit = SECOND / 10;
            for byte in &self.0[..length.min(6)] {
                micros += i64::from(byte - b'0') * unit;
                unit /= 10;
            }
            self.0 = &self.0[length..];
        }
        if self.0.is_empty() {
            return Some((micros, 0));
        }
        second?;
        let zone = std::str::from_utf8(self.0).ok()?;
        Some((micros, offset(zone.trim_matches(|c: char| c <= ' '))? * SECOND))
    }
}

/// The day number that a text denotes.
pub(crate) fn parse_date(text: &str) -> Option<i32> {
    let mut reader = Reader(trim(text).as_bytes());
    let (days, complete) = reader.date(7)?;
    // After a complete date, anything may follow a blank or a T.
    let ends = reader.0.is_empty() || (complete && matches!(reader.0[0], b' ' | b'T'));
    if ends { i32::try_from(days).ok() } else { None }
}

/// The microseconds that a text denotes, in UTC.
pub(crate) fn parse_timestamp(text: &str) -> Option<i64> {
    parse_moment(text).and_then(|(local, east)| i64::try_from(local - i128::from(east)).ok())
}

/// The microseconds that a text denotes as a date and a time of day; a zone is read and ignored.
pub(crate) fn parse_timestamp_ntz(text: &str) -> Option<i64> {
    parse_moment(text).and_then(|(local, _)| i64::try_from(local).ok())
}

/// A date and a time of day in microseconds, and the zone's offset.
fn parse_moment(text: &str) -> Option<(i128, i64)> {
    let mut reader = Reader(trim(text).as_bytes());
    let (days, complete) = reader.date(6)?;
    let midnight = i128::from(days) * i128::from(DAY);
    if reader.0.is_empty() {
        return Some((midnight, 0));
    }
    if !complete || !reader.accept(b" T") {
        return None;
    }
    let (time, east) = reader.time()?;
    Some((midnight + i128::from(time), east))
}

/// Seconds east of UTC of a zone.
fn offset(zone: &str) -> Option<i64> {
    if matches!(zone, "Z" | "UTC" | "GMT" | "UT" | "Zulu" | "Universal" | "Etc/UTC" | "Etc/GMT" | "Etc/UCT" | "UCT") {
        return Some(0);
    }
    let rest = ["UTC", "GMT", "UT"].iter().find_map(|prefix| zone.strip_prefix(prefix)).unwrap_or(zone);
    let mut reader = Reader(rest.as_bytes());
    let negative = reader.0.first() == Some(&b'-');
    if !reader.accept(b"+-") {
        return None;
    }
    let seconds = if reader.0.contains(&b':') {
        let hours = reader.number(1, 2)?;
        reader.accept(b":");
        let least = if reader.0.contains(&b':') { 2 } else { 1 };
        let minutes = reader.number(least, 2)?;
        let seconds = if reader.accept(b":") { reader.number(2, 2)? } else { 0 };
        (hours, minutes, seconds)
    } else {
        let length = reader.0.len();
        let number = reader.number(1, 6)?;
        match length {
            1 | 2 => (number, 0, 0),
            4 => (number / 100, number % 100, 0),
            6 => (number / 10_000, number / 100 % 100, number % 100),
            _ => return None,
        }
    };
    let (hours, minutes, seconds) = seconds;
    let total = (hours * 60 + minutes) * 60 + seconds;
    if !reader.0.is_empty() || minutes > 59 || seconds > 59 || total > 18 * 3600 {
        return None;
    }
    Some(if negative { -total } else { total })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn civil_and_day_number_are_inverse() {
        for days in
            (-1_000_000..1_000_000).step_by(37).chain([-719_162, 0, 11_016, i64::from(i32::MAX), i64::from(i32::MIN)])
        {
            let (year, month, day) = civil(days);
            assert!((1..=12).contains(&month) && (1..=days_of_month(year, month)).contains(&day));
            assert_eq!(day_number(year, month, day), days);
        }
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(-719_162), (1, 1, 1));
    }

    /// Texts and results as Spark 4.3 gives them.
    #[test]
    fn timestamps_as_in_spark() {
        let cases = [
            ("2020", Some("2020-01-01 00:00:00")),
            ("2020-1", Some("2020-01-01 00:00:00")),
            ("2020-1-5T", None),
            ("2020-1-5 1", Some("2020-01-05 01:00:00")),
            ("2020-1-5 1:", None),
            ("2020-1-5 1:2", Some("2020-01-05 01:02:00")),
            ("2020-1-5 1:2:3.", Some("2020-01-05 01:02:03")),
            ("2020-1-5 1:2:3.123456789", Some("2020-01-05 01:02:03.123456")),
            ("2020-1-5T01:02:03 Z", Some("2020-01-05 01:02:03")),
            ("2020-1-5T01:02:03+1:3", Some("2020-01-04 23:59:03")),
            ("2020-1-5T01:02:03-0130", Some("2020-01-05 02:32:03")),
            ("2020-1-5T01:02:03+1", Some("2020-01-05 00:02:03")),
            ("2020-1-5T01:02:03+01:30:15", Some("2020-01-04 23:31:48")),
            ("2020-1-5T01:02:03+18:00", Some("2020-01-04 07:02:03")),
            ("2020-1-5T01:02:03+18:01", None),
            ("2020-1-5T01:02:03 UTC+2", Some("2020-01-04 23:02:03")),
            ("2020-1-5T01:02:03.5z", None),
            ("2020-1-5 24:00:00", None),
            ("2020-1-5 011:00:00", None),
            ("2020-1-5  01:00:00", None),
            ("2020-01-05 1:2+01:00", None),
            ("2020-01-05Z", None),
            ("202001", Some("+202001-01-01 00:00:00")),
            ("-2020-01-05 10:00:00", Some("-2020-01-05 10:00:00")),
            ("294247-01-10 04:00:54.775807", Some("+294247-01-10 04:00:54.775807")),
            ("294248-01-10 04:00:54.775807", None),
            ("", None),
            ("abc", None),
        ];
        for (text, expected) in cases {
            let formatted = parse_timestamp(text).map(|micros| {
                let mut out = String::new();
                format_timestamp(micros, &mut out);
                out
            });
            assert_eq!(formatted.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_zone_does_not_move_a_timestamp_without_one() {
        let cases = [
            ("2020-1-5", "2020-01-05"),
            ("2020-1-5T01:02:03-0130", "2020-01-05 01:02:03"),
            ("294247-01-10 03:00:54.775807-01:00", "294247-01-10 03:00:54.775807"),
        ];
        for (text, same) in cases {
            assert_eq!(parse_timestamp_ntz(text), parse_timestamp(same), "{text}");
        }
        for text in ["2020-1-5T01:02:03 Nowhere", "12:34:56", "294247-01-10 05:00:54.775807+01:00"] {
            assert_eq!(parse_timestamp_ntz(text), None, "{text}");
        }
        assert!(parse_timestamp("294247-01-10 05:00:54.775807+01:00").is_some());
    }

    #[test]
    fn dates_as_in_spark() {
        let cases = [
            ("2020", Some("2020-01-01")),
            ("2020-1-5", Some("2020-01-05")),
            ("2020-01-05Tabc", Some("2020-01-05")),
            ("2020-01-05 abc", Some("2020-01-05")),
            ("2020-01-05abc", None),
            (" +2020-01-05 ", Some("2020-01-05")),
            ("12020-01-05", Some("+12020-01-05")),
            ("9999999-01-05", None),
            ("202-01-05", None),
            ("2020-02-30", None),
            ("2020-01-005", None),
            ("2020-", None),
            ("-0001-01-01", Some("-0001-01-01")),
        ];
        for (text, expected) in cases {
            let formatted = parse_date(text).map(|days| {
                let mut out = String::new();
                format_date(i64::from(days), &mut out);
                out
            });
            assert_eq!(formatted.as_deref(), expected, "{text}");
        }
    }
}
