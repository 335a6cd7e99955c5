//! Values as text, for error messages: those of a person, not of a machine.

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use arrow_array::{Array, ArrayRef, TimestampMicrosecondArray};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;
use everview_expr::shown;
use std::sync::Arc;

/// The text of one value, cut to a readable length.
pub fn value(array: &ArrayRef, row: usize) -> String {
    if let DataType::Timestamp(_, Some(_)) = array.data_type() {
        return timestamp(array.as_primitive::<TimestampMicrosecondType>().value(row));
    }
    plain(array, row).map_or_else(|| "?".to_owned(), |text| shown(&text).into_owned())
}

fn plain(array: &ArrayRef, row: usize) -> Option<String> {
    let options = FormatOptions::default().with_display_error(false);
    ArrayFormatter::try_new(array, &options).ok()?.value(row).try_to_string().ok()
}

/// A time in microseconds since 1970, in UTC.
pub fn timestamp(micros: i64) -> String {
    let array: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![micros]));
    plain(&array, 0).map_or_else(|| format!("{micros} microseconds since 1970"), |text| text.replacen('T', " ", 1))
}

/// A span of microseconds in its largest whole unit.
pub fn duration(micros: i64) -> String {
    let units = [("days", 86_400_000_000), ("hours", 3_600_000_000), ("minutes", 60_000_000), ("seconds", 1_000_000)];
    let fitting = units.into_iter().find(|(_, size)| micros % size == 0);
    fitting.map_or_else(|| format!("{micros} microseconds"), |(name, size)| format!("{} {name}", micros / size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::StringArray;

    #[test]
    fn timestamps_are_readable() {
        let array: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![1_500_000]).with_timezone("UTC"));
        assert_eq!(value(&array, 0), "1970-01-01 00:00:01.500");
        assert_eq!(timestamp(i64::MAX), format!("{} microseconds since 1970", i64::MAX));
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let array: ArrayRef = Arc::new(StringArray::from(vec!["ž".repeat(70), "short".to_owned()]));
        assert_eq!(value(&array, 0), format!("{}... (70 characters)", "ž".repeat(60)));
        assert_eq!(value(&array, 1), "short");
    }

    #[test]
    fn durations_are_in_their_largest_unit() {
        assert_eq!(
            [duration(86_400_000_000), duration(90_000_000), duration(7)],
            ["1 days", "90 seconds", "7 microseconds"]
        );
    }
}
