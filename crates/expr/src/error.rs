//! What can go wrong while an expression is evaluated.
//!
//! Column loops meet a [`Fault`] at some position; only the caller of the loop knows which row that is. A fault therefore
//! carries the condition and the text, and becomes an [`EvalError`] once the position is known. Short-circuiting
//! operations evaluate on selected rows and translate the position back to the batch they were given.

use std::fmt::Write as _;

use arrow_schema::ArrowError;
use std::borrow::Cow;

/// Characters of a value that a message shows.
const SHOWN: usize = 60;

/// The most bytes of a text that is made of a number: by `repeat` or padding.
pub(crate) const MOST_TEXT: usize = 256 << 20;

/// A text as a message shows it: cut to a readable length.
pub fn shown(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}... ({} characters)", &text[..end], text.chars().count())),
    }
}

/// An error of the data (overflow, bad cast) or of the call (columns that do not fit the expression).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("[{code}] {message}{}", .row.map(|row| format!(" (row {row})")).unwrap_or_default())]
pub struct EvalError {
    /// Stable condition name as in Spark, for example `ARITHMETIC_OVERFLOW`.
    pub code: &'static str,
    /// First offending row of the batch given to the outermost evaluation; `None` if no row is to blame.
    pub row: Option<usize>,
    /// What is wrong, naming the values.
    pub message: String,
}

impl EvalError {
    /// The batch or the expression is unusable, whatever the rows hold.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self { code: "INVALID_EXPRESSION", row: None, message: message.into() }
    }

    /// The same error seen from the batch whose rows `positions` were selected.
    pub(crate) fn relocated(mut self, positions: &[usize]) -> Self {
        self.row = self.row.map(|row| positions.get(row).copied().unwrap_or(row));
        self
    }
}

impl From<ArrowError> for EvalError {
    fn from(error: ArrowError) -> Self {
        Self::invalid(error.to_string())
    }
}

/// An error at a position that the raiser does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Condition name.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
}

impl Fault {
    /// A fault of the given condition.
    #[cold]
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Integer arithmetic left its type.
    #[cold]
    pub fn overflow(what: &str) -> Self {
        Self::new("ARITHMETIC_OVERFLOW", format!("{what} overflows"))
    }

    /// A quotient has the divisor zero.
    #[cold]
    pub fn divide_by_zero() -> Self {
        Self::new("DIVIDE_BY_ZERO", "division by zero")
    }

    /// A remainder has the divisor zero.
    #[cold]
    pub fn remainder_by_zero() -> Self {
        Self::new("REMAINDER_BY_ZERO", "remainder by zero")
    }

    /// A text does not denote a value of the target type.
    #[cold]
    pub fn invalid_input(text: &str, target: impl std::fmt::Display) -> Self {
        let message = format!("the text '{}' cannot be cast to {target}: it is malformed or out of range", shown(text));
        Self::new("CAST_INVALID_INPUT", message)
    }

    /// Bytes that are no text.
    #[cold]
    pub fn not_utf8(bytes: &[u8], target: impl std::fmt::Display) -> Self {
        let mut shown = String::new();
        for byte in bytes.iter().take(32) {
            // Writing to a string cannot fail.
            let _ = write!(shown, "{byte:02X}");
        }
        let more = if bytes.len() > 32 { "..." } else { "" };
        let message = format!("the bytes X'{shown}{more}' cannot be cast to {target}: they are not valid UTF-8");
        Self::new("CAST_INVALID_INPUT", message)
    }

    /// A number does not fit the target type.
    #[cold]
    pub fn cast_overflow(value: impl std::fmt::Display, target: impl std::fmt::Display) -> Self {
        Self::new("CAST_OVERFLOW", format!("the value {value} does not fit {target}"))
    }

    /// A number does not fit the target decimal.
    #[cold]
    pub fn out_of_range(value: impl std::fmt::Display, precision: u8, scale: i8) -> Self {
        Self::new("NUMERIC_VALUE_OUT_OF_RANGE", format!("{value} does not fit decimal({precision},{scale})"))
    }

    /// A date or timestamp left its range.
    #[cold]
    pub fn datetime(what: &str) -> Self {
        Self::new("DATETIME_OVERFLOW", format!("{what} leaves the range of the type"))
    }

    /// A text that would be longer than [`MOST_TEXT`].
    #[cold]
    pub fn too_long() -> Self {
        Self::new("EXCEED_LIMIT_LENGTH", format!("the text would have more than {} MiB", MOST_TEXT >> 20))
    }

    /// The fault located at a row.
    #[cold]
    pub fn at(self, row: usize) -> EvalError {
        EvalError { code: self.code, row: Some(row), message: self.message }
    }
}
