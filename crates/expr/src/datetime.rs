//! Dates and timestamps: arithmetic, fields, truncation. Everything is UTC.

use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, Date32Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{ArrayRef, PrimitiveArray, new_null_array};

use crate::calendar::{self, DAY, civil, day_number};
use crate::column::Input;
use crate::datatype::DataType;
use crate::error::{EvalError, Fault};
use crate::operation::Operation;

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
fn weekday(days: i64) -> i64 {
    (days + 3).rem_euclid(7)
}

/// Computes an operation on dates or timestamps.
pub(crate) fn compute(operation: Operation, input: &Input, first: DataType) -> Result<ArrayRef, EvalError> {
    let fault = || Fault::datetime(operation.name());
    let date = |days: i64| i32::try_from(days).map_err(|_| fault());
    Ok(match operation {
        Operation::DateAdd => {
            Arc::new(input.try_map2::<Date32Type, Int32Type, Date32Type>(|a, b| a.checked_add(b).ok_or_else(fault))?)
        }
        Operation::DateSub => {
            Arc::new(input.try_map2::<Date32Type, Int32Type, Date32Type>(|a, b| a.checked_sub(b).ok_or_else(fault))?)
        }
        Operation::DateDiff => {
            Arc::new(input.try_map2::<Date32Type, Date32Type, Int32Type>(|a, b| a.checked_sub(b).ok_or_else(fault))?)
        }
        Operation::AddMonths => Arc::new(input.try_map2::<Date32Type, Int32Type, Date32Type>(|days, months| {
            date(calendar::add_months(i64::from(days), i64::from(months)))
        })?),
        Operation::TimestampAdd => timestamps(
            input.try_map2::<TimestampMicrosecondType, Int64Type, _>(|a, b| a.checked_add(b).ok_or_else(fault))?,
            first,
        ),
        Operation::TimestampAddMonths => {
            let sums = input.try_map2::<TimestampMicrosecondType, Int32Type, _>(|micros, months| {
                let days = calendar::add_months(micros.div_euclid(DAY), i64::from(months));
                let sum = days.checked_mul(DAY).and_then(|start| start.checked_add(micros.rem_euclid(DAY)));
                sum.ok_or_else(fault)
            })?;
            timestamps(sums, first)
        }
        Operation::TimestampDiff => {
            let difference = |a: i64, b: i64| a.checked_sub(b).ok_or_else(fault);
            Arc::new(input.try_map2::<TimestampMicrosecondType, TimestampMicrosecondType, Int64Type>(difference)?)
        }
        Operation::DateTrunc => match Unit::from_name(input.text(0).get(0)) {
            None => new_null_array(&DataType::Timestamp.arrow(), input.rows),
            Some(unit) => {
                let values = input.operand::<TimestampMicrosecondType>(1);
                let values = input.try_map(|row| truncate(values.get(row), unit).ok_or_else(fault))?;
                timestamps(values, DataType::Timestamp)
            }
        },
        Operation::Trunc => match Unit::from_name(input.text(1).get(0)) {
            None | Some(Unit::Micros(_)) => new_null_array(&DataType::Date.arrow(), input.rows),
            Some(unit) => {
                Arc::new(input.try_map1::<Date32Type, Date32Type>(|days| date(unit.first_day(i64::from(days))))?)
            }
        },
        Operation::Hour => time_of_day(input, 3_600_000_000, 24),
        Operation::Minute => time_of_day(input, 60_000_000, 60),
        Operation::Second => time_of_day(input, 1_000_000, 60),
        _ => field(operation, input, first),
    })
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

/// A calendar field of dates or timestamps.
fn field(operation: Operation, input: &Input, data_type: DataType) -> ArrayRef {
    match operation {
        Operation::Year => fields(input, data_type, |days| civil(days).0),
        Operation::Month => fields(input, data_type, |days| civil(days).1),
        Operation::Day => fields(input, data_type, |days| civil(days).2),
        Operation::Quarter => fields(input, data_type, |days| (civil(days).1 - 1) / 3 + 1),
        Operation::DayOfWeek => fields(input, data_type, |days| (days + 4).rem_euclid(7) + 1),
        Operation::DayOfYear => fields(input, data_type, day_of_year),
        // The ISO week is that of its Thursday.
        _ => fields(input, data_type, |days| (day_of_year(days - weekday(days) + 3) - 1) / 7 + 1),
    }
}

fn day_of_year(days: i64) -> i64 {
    days - day_number(civil(days).0, 1, 1) + 1
}

fn fields(input: &Input, data_type: DataType, part: impl Fn(i64) -> i64) -> ArrayRef {
    Arc::new(if data_type == DataType::Date {
        days_of::<Date32Type>(input, |days| part(i64::from(days)))
    } else {
        days_of::<TimestampMicrosecondType>(input, |micros| part(micros.div_euclid(DAY)))
    })
}

fn days_of<T: ArrowPrimitiveType>(input: &Input, part: impl Fn(T::Native) -> i64) -> PrimitiveArray<Int32Type> {
    input.map1::<T, Int32Type>(|value| part(value) as i32)
}
