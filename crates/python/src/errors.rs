//! One way from kernel errors to Python: an exception that carries the parts, which the session turns into its own errors.

use everview_kernel::error::KernelError as Refusal;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

pyo3::create_exception!(
    everview._kernel,
    KernelError,
    PyException,
    "A refusal of the kernel: (code, message, table, row, hint)."
);

/// The exception for a refusal.
pub fn raise(error: Refusal) -> PyErr {
    KernelError::new_err((error.code, error.message, error.table, error.row, error.hint))
}

/// Whether an exception of the kernel says that nothing was changed.
pub fn is_refusal(py: Python<'_>, error: &PyErr) -> bool {
    let code = |error: &PyErr| error.value(py).getattr("args")?.get_item(0)?.extract::<String>();
    error.is_instance_of::<KernelError>(py) && code(error).is_ok_and(|code| code != "INTERNAL_ERROR")
}

/// A bug: the kernel was called in a way the session excludes.
pub fn bug(message: impl Into<String>) -> PyErr {
    raise(Refusal::new("INTERNAL_ERROR", message.into()))
}

/// A cursor met a later commit.
pub fn stale() -> Refusal {
    let message = "the session has committed a change since this iterator was opened";
    Refusal::new("STALE_ITERATOR", message).with_hint("open a new one")
}
