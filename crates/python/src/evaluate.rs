//! Evaluation of scalar expressions from Python: JSON and a record batch in, one Arrow array out.

use arrow_array::{Array, RecordBatch};
use arrow_pyarrow::{PyArrowType, ToPyArrow};
use everview_expr::Expr;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Evaluates an expression, given as JSON, on every row of a record batch and returns a `pyarrow.Array`.
///
/// Raises `ValueError` with the text `[CODE] message (row N)` if a row fails, and with the code `INVALID_EXPRESSION`
/// and no row if the expression is not well typed or does not fit the batch. The GIL is released meanwhile.
#[pyfunction]
pub fn evaluate<'py>(
    py: Python<'py>,
    expression: &str,
    batch: PyArrowType<RecordBatch>,
) -> PyResult<Bound<'py, PyAny>> {
    let PyArrowType(batch) = batch;
    let expression: Expr = serde_json::from_str(expression)
        .map_err(|error| PyValueError::new_err(format!("[INVALID_EXPRESSION] {error}")))?;
    let result = py.detach(|| expression.evaluate(&batch));
    let array = result.map_err(|error| PyValueError::new_err(error.to_string()))?;
    array.to_data().to_pyarrow(py)
}
