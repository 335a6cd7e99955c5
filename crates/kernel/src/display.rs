//! Values as text, for error messages.

use arrow_array::ArrayRef;

/// The text of one value.
pub fn value(array: &ArrayRef, row: usize) -> String {
    arrow_cast::display::array_value_to_string(array, row).unwrap_or_else(|_| "?".to_owned())
}
