//! Dates and timestamps: arithmetic, fields, truncation. Everything is UTC.

use std::sync::Arc;

use arrow_array::types::{Date32Type, Decimal128Type, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{ArrayRef, PrimitiveArray, new_null_array};

use super::{BIGINT, BOOLEAN, DATE, DOUBLE, Function, INT, Slot, TIMESTAMP, function};
use crate::calendar::{self, DAY, civil, day_number};
use crate::column::Input;
use crate::datatype::DataType;
use crate::error::Fault;

const MOMENT: Slot = Slot::Moment;
const UNIT: Slot = Slot::TextLiteral;
/// Seconds of a minute with their fraction.
const SECONDS: Slot = Slot::Is(DataType::Decimal { precision: 8, scale: 6 });
/// Microseconds of a minute.
const MINUTE: i64 = 60_000_000;

/// The group.
pub(super) const FUNCTIONS: &[Function] = &[
    function("date_add", &[DATE, INT], DATE, |input, _| {
        let sum = |a: i32, b: i32| a.checked_add(b).ok_or_else(|| Fault::datetime("date_add"));
        Ok(Arc::new(input.try_map2::<Date32Type, Int32Type, Date32Type>(sum)?))
    })
    .failing(),
    function("date_sub", &[DATE, INT], DATE, |input, _| {
        let difference = |a: i32, b: i32| a.checked_sub(b).ok_or_else(|| Fault::datetime("date_sub"));
        Ok(Arc::new(input.try_map2::<Date32Type, Int32Type, Date32Type>(difference)?))
    })
    .failing(),
    function("datediff", &[DATE, DATE], INT, |input, _| {
        let difference = |a: i32, b: i32| a.checked_sub(b).ok_or_else(|| Fault::datetime("datediff"));
        Ok(Arc::new(input.try_map2::<Date32Type, Date32Type, Int32Type>(difference)?))
    })
    .failing(),
    function("add_months", &[DATE, INT], DATE, |input, _| {
        Ok(Arc::new(input.try_map2::<Date32Type, Int32Type, Date32Type>(|days, months| {
            date(calendar::add_months(i64::from(days), i64::from(months)), "add_months")
        })?))
    })
    .failing(),
    function("timestamp_add", &[MOMENT, BIGINT], Slot::First, |input, result| {
        let sum = |a: i64, b: i64| a.checked_add(b).ok_or_else(|| Fault::datetime("timestamp_add"));
        Ok(timestamps(input.try_map2::<TimestampMicrosecondType, Int64Type, _>(sum)?, result))
    })
    .failing(),
    function("timestamp_add_months", &[MOMENT, INT], Slot::First, |input, result| {
        let sums = input.try_map2::<TimestampMicrosecondType, Int32Type, _>(|micros, months| {
            let days = calendar::add_months(micros.div_euclid(DAY), i64::from(months));
            let sum = days.checked_mul(DAY).and_then(|start| start.checked_add(micros.rem_euclid(DAY)));
            sum.ok_or_else(|| Fault::datetime("timestamp_add_months"))
        })?;
        Ok(timestamps(sums, result))
    })
    .failing(),
    function("timestamp_diff", &[MOMENT, Slot::First], BIGINT, |input, _| {
        let difference = |a: i64, b: i64| a.checked_sub(b).ok_or_else(|| Fault::datetime("timestamp_diff"));
        Ok(Arc::new(input.try_map2::<TimestampMicrosecondType, TimestampMicrosecondType, Int64Type>(difference)?))
    })
    .failing(),
    function("date_trunc", &[UNIT, TIMESTAMP], TIMESTAMP, |input, result| {
        match Unit::from_name(input.text(0).get(0)) {
            None => Ok(new_null_array(&result.arrow(), input.rows)),
            Some(unit) => {
                let values = input.operand::<TimestampMicrosecondType>(1);
                let fault = || Fault::datetime("date_trunc");
                let values = input.try_map(|row| truncate(values.get(row), unit).ok_or_else(fault))?;
                Ok(timestamps(values, result))
            }
        }
    })
    .failing(),
    function("trunc", &[DATE, UNIT], DATE, |input, result| match Unit::from_name(input.text(1).get(0)) {
        None | Some(Unit::Micros(_)) => Ok(new_null_array(&result.arrow(), input.rows)),
        Some(unit) => Ok(Arc::new(
            input.try_map1::<Date32Type, Date32Type>(|days| date(unit.first_day(i64::from(days)), "trunc"))?,
        )),
    })
    .failing(),
    function("hour", &[MOMENT], INT, |input, _| Ok(time_of_day(input, 3_600_000_000, 24))),
    function("minute", &[MOMENT], INT, |input, _| Ok(time_of_day(input, 60_000_000, 60))),
    function("second", &[MOMENT], INT, |input, _| Ok(time_of_day(input, 1_000_000, 60))),
    function("year", &[Slot::Day], INT, |input, _| Ok(field(input, |days| civil(days).0))),
    function("month", &[Slot::Day], INT, |input, _| Ok(field(input, |days| civil(days).1))),
    function("day", &[Slot::Day], INT, |input, _| Ok(field(input, |days| civil(days).2))),
    function("quarter", &[Slot::Day], INT, |input, _| Ok(field(input, |days| (civil(days).1 - 1) / 3 + 1))),
    function("dayofweek", &[Slot::Day], INT, |input, _| Ok(field(input, |days| (days + 4).rem_euclid(7) + 1))),
    function("dayofyear", &[Slot::Day], INT, |input, _| Ok(field(input, day_of_year))),
    function("weekday", &[Slot::Day], INT, |input, _| Ok(field(input, weekday))),
    function("yearofweek", &[Slot::Day], INT, |input, _| Ok(field(input, |days| week(days).0))),
    function("weekofyear", &[Slot::Day], INT, |input, _| Ok(field(input, |days| week(days).1))),
    function("second_fraction", &[MOMENT], SECONDS, |input, result| {
        let values =
            input.map1::<TimestampMicrosecondType, Decimal128Type>(|micros| i128::from(micros.rem_euclid(MINUTE)));
        Ok(Arc::new(values.with_data_type(result.arrow())))
    }),
    function("last_day", &[DATE], DATE, |input, _| {
        Ok(Arc::new(input.try_map1::<Date32Type, Date32Type>(|days| {
            let (year, month, _) = civil(i64::from(days));
            date(day_number(year, month, calendar::days_of_month(year, month)), "last_day")
        })?))
    })
    .failing(),
    // The first day after a date that is some days after Monday.
    function("next_day", &[DATE, INT], DATE, |input, _| {
        Ok(Arc::new(input.try_map2::<Date32Type, Int32Type, Date32Type>(|days, wanted| {
            let days = i64::from(days);
            date(days + 1 + (i64::from(wanted) - weekday(days) - 1).rem_euclid(7), "next_day")
        })?))
    })
    .failing(),
    function("make_date", &[INT, INT, INT], DATE, |input, _| {
        let parts = [0, 1, 2].map(|position| input.operand::<Int32Type>(position));
        Ok(Arc::new(input.try_map::<Date32Type>(|row| {
            let [year, month, day] = parts.map(|part| i64::from(part.get(row)));
            let exists = (1..=12).contains(&month) && (1..=calendar::days_of_month(year, month)).contains(&day);
            if !exists || year.abs() > 999_999_999 {
                return Err(Fault::new(
                    "DATETIME_FIELD_OUT_OF_BOUNDS",
                    format!("there is no date {year}-{month}-{day}"),
                ));
            }
            date(day_number(year, month, day), "make_date")
        })?))
    })
    .failing(),
    // Months between two timestamps, 31 days each where days matter; the third argument rounds to 8 digits.
    function("months_between", &[TIMESTAMP, TIMESTAMP, BOOLEAN], DOUBLE, |input, _| {
        let (end, start) = (input.operand::<TimestampMicrosecondType>(0), input.operand::<TimestampMicrosecondType>(1));
        let rounded = input.column(2).clone().into_booleans(input.rows)?;
        Ok(Arc::new(input.map::<Float64Type>(|row| {
            let months = months_between(end.get(row), start.get(row));
            if rounded.value(row) { (months * 1e8).round() / 1e8 } else { months }
        })))
    }),
    // From the first to the second, in microseconds and in whole months.
    function("timestamp_until", &[MOMENT, Slot::First], BIGINT, |input, _| {
        let difference = |start: i64, end: i64| end.checked_sub(start).ok_or_else(|| Fault::datetime("the difference"));
        Ok(Arc::new(input.try_map2::<TimestampMicrosecondType, TimestampMicrosecondType, Int64Type>(difference)?))
    })
    .failing(),
    function("timestamp_until_months", &[MOMENT, Slot::First], BIGINT, |input, _| {
        Ok(Arc::new(input.map2::<TimestampMicrosecondType, TimestampMicrosecondType, Int64Type>(whole_months)))
    }),
    function("unix_micros", &[MOMENT], BIGINT, |input, _| {
        Ok(Arc::new(input.map1::<TimestampMicrosecondType, Int64Type>(|micros| micros)))
    }),
    // A timestamp from a number of units of some microseconds.
    function("timestamp_from", &[BIGINT, BIGINT], TIMESTAMP, |input, result| {
        let micros = |a: i64, b: i64| a.checked_mul(b).ok_or_else(|| Fault::datetime("the timestamp"));
        Ok(timestamps(input.try_map2::<Int64Type, Int64Type, _>(micros)?, result))
    })
    .failing(),
    function("unix_date", &[DATE], INT, |input, _| Ok(Arc::new(input.map1::<Date32Type, Int32Type>(|days| days)))),
    function("date_from_unix_date", &[INT], DATE, |input, _| {
        Ok(Arc::new(input.map1::<Int32Type, Date32Type>(|days| days)))
    }),
];

/// Java's way to count: equal days of the month, or two last days, are whole months whatever the time is.
fn months_between(end: i64, start: i64) -> f64 {
    let parts = |micros: i64| {
        let (year, month, day) = civil(micros.div_euclid(DAY));
        (year * 12 + month, day, day == calendar::days_of_month(year, month), micros.rem_euclid(DAY) / 1_000_000)
    };
    let ((months1, day1, last1, seconds1), (months2, day2, last2, seconds2)) = (parts(end), parts(start));
    let months = (months1 - months2) as f64;
    if day1 == day2 || (last1 && last2) {
        return months;
    }
    let seconds = (day1 - day2) * 86_400 + seconds1 - seconds2;
    months + seconds as f64 / (31.0 * 86_400.0)
}

/// As Java: a day counts if the time of the end has reached that of the start, a month if its day has.
fn whole_months(start: i64, end: i64) -> i64 {
    let (first, mut last) = (start.div_euclid(DAY), end.div_euclid(DAY));
    let (from, to) = (start.rem_euclid(DAY), end.rem_euclid(DAY));
    if last > first && to < from {
        last -= 1;
    } else if last < first && to > from {
        last += 1;
    }
    let packed = |days: i64| {
        let (year, month, day) = civil(days);
        (year * 12 + month) * 32 + day
    };
    (packed(last) - packed(first)) / 32
}

fn date(days: i64, name: &str) -> Result<i32, Fault> {
    i32::try_from(days).map_err(|_| Fault::datetime(name))
}

/// A unit of `date_trunc` and `trunc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Year,
    Quarter,
    Month,
    Week,
    /// A fixed number of microseconds, from `day` down.
    Micros(i64),
}

impl Unit {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name.to_ascii_uppercase().as_str() {
            "YEAR" | "YYYY" | "YY" => Self::Year,
            "QUARTER" => Self::Quarter,
            "MONTH" | "MM" | "MON" => Self::Month,
            "WEEK" => Self::Week,
            "DAY" | "DD" => Self::Micros(DAY),
            "HOUR" => Self::Micros(3_600_000_000),
            "MINUTE" => Self::Micros(60_000_000),
            "SECOND" => Self::Micros(1_000_000),
            "MILLISECOND" => Self::Micros(1000),
            "MICROSECOND" => Self::Micros(1),
            _ => return None,
        })
    }

    /// First day of the unit that contains a day.
    fn first_day(self, days: i64) -> i64 {
        let (year, month, _) = civil(days);
        match self {
            Self::Year => day_number(year, 1, 1),
            Self::Quarter => day_number(year, (month - 1) / 3 * 3 + 1, 1),
            Self::Month => day_number(year, month, 1),
            Self::Week => days - weekday(days),
            Self::Micros(_) => days,
        }
    }
}

/// Days since Monday.
pub(super) fn weekday(days: i64) -> i64 {
    (days + 3).rem_euclid(7)
}

fn timestamps(values: PrimitiveArray<TimestampMicrosecondType>, data_type: DataType) -> ArrayRef {
    Arc::new(values.with_data_type(data_type.arrow()))
}

fn truncate(micros: i64, unit: Unit) -> Option<i64> {
    match unit {
        Unit::Micros(size) => micros.div_euclid(size).checked_mul(size),
        _ => unit.first_day(micros.div_euclid(DAY)).checked_mul(DAY),
    }
}

fn time_of_day(input: &Input, unit: i64, modulus: i64) -> ArrayRef {
    let part = |micros: i64| micros.div_euclid(unit).rem_euclid(modulus) as i32;
    Arc::new(input.map1::<TimestampMicrosecondType, Int32Type>(part))
}

pub(super) fn day_of_year(days: i64) -> i64 {
    days - day_number(civil(days).0, 1, 1) + 1
}

/// The ISO week of a day, which is that of its Thursday, with its year.
fn week(days: i64) -> (i64, i64) {
    let thursday = days - weekday(days) + 3;
    (civil(thursday).0, (day_of_year(thursday) - 1) / 7 + 1)
}

/// A calendar field of dates or timestamps.
fn field(input: &Input, part: impl Fn(i64) -> i64) -> ArrayRef {
    if *input.column(0).array().data_type() == DataType::Date.arrow() {
        Arc::new(input.map1::<Date32Type, Int32Type>(|days| part(i64::from(days)) as i32))
    } else {
        Arc::new(input.map1::<TimestampMicrosecondType, Int32Type>(|micros| part(micros.div_euclid(DAY)) as i32))
    }
}
