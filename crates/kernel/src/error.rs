//! What can be refused, with stable codes.

use everview_expr::EvalError;

/// A refusal: nothing was changed.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{message}")]
pub struct KernelError {
    /// Stable code.
    pub code: &'static str,
    /// The table concerned, if one is.
    pub table: Option<String>,
    /// The row of the user's batch, if one is to blame.
    pub row: Option<usize>,
    /// What is wrong and why.
    pub message: String,
    /// One way out.
    pub hint: Option<&'static str>,
}

impl KernelError {
    /// An error that no row is to blame for.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, table: None, row: None, message: message.into(), hint: None }
    }

    /// An error that concerns a table as a whole.
    pub fn of_table(code: &'static str, table: &str, message: impl Into<String>) -> Self {
        Self { table: Some(table.to_owned()), ..Self::new(code, message) }
    }

    /// An error in a row of a table's batch.
    pub fn in_row(code: &'static str, table: &str, row: usize, message: impl Into<String>) -> Self {
        Self { code, table: Some(table.to_owned()), row: Some(row), message: message.into(), hint: None }
    }

    /// With a way out.
    #[must_use]
    pub fn with_hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }

    /// The error of an expression over rows of a table's batch; `sources` gives the batch row of each evaluated row.
    pub fn in_expression(error: EvalError, table: &str, sources: &[u32]) -> Self {
        let row = error.row.and_then(|row| sources.get(row)).map(|&row| row as usize);
        Self { code: error.code, table: Some(table.to_owned()), row, message: error.message, hint: None }
    }
}

impl From<EvalError> for KernelError {
    fn from(error: EvalError) -> Self {
        Self::new(error.code, error.message)
    }
}
