//! Rows that travel between engines: hashes, groups of equal rows, net changes.

use crate::database::run;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, Int64Array, RecordBatch, UInt32Array, UInt64Array};
use arrow_pyarrow::{PyArrowType, ToPyArrow};
use everview_kernel::exchange as kernel;
use pyo3::prelude::*;

/// The hash of each row of a record batch, the same in every process, as a `pyarrow.UInt64Array`.
#[pyfunction]
pub fn hash_rows(py: Python<'_>, batch: PyArrowType<RecordBatch>) -> PyResult<Bound<'_, PyAny>> {
    let PyArrowType(batch) = batch;
    let hashes = run(py, || kernel::hash_rows(batch.columns(), batch.num_rows()))?;
    UInt64Array::from(hashes).to_data().to_pyarrow(py)
}

/// The number of the group of equal rows that each row is in, counted as they appear, as a `pyarrow.UInt32Array`.
#[pyfunction]
pub fn group_rows(py: Python<'_>, batch: PyArrowType<RecordBatch>) -> PyResult<Bound<'_, PyAny>> {
    let PyArrowType(batch) = batch;
    let groups = run(py, || kernel::group_rows(batch.columns(), batch.num_rows()))?;
    UInt32Array::from(groups).to_data().to_pyarrow(py)
}

/// Of each set of equal rows that does not cancel out, the position of one and the sum of the multiplicities, as two arrays.
/// The batch's last column is `_multiplicity`.
#[pyfunction]
pub fn net_rows(py: Python<'_>, batch: PyArrowType<RecordBatch>) -> PyResult<(Bound<'_, PyAny>, Bound<'_, PyAny>)> {
    let PyArrowType(batch) = batch;
    let (rows, sums) = run(py, || {
        let (multiplicities, columns) = batch.columns().split_last().expect("a batch has `_multiplicity`");
        kernel::net_rows(columns, multiplicities.as_primitive::<Int64Type>().values())
    })?;
    Ok((UInt32Array::from(rows).to_data().to_pyarrow(py)?, Int64Array::from(sums).to_data().to_pyarrow(py)?))
}
