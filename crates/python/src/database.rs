//! Tables and views as seen from Python.
//!
//! One mutex guards the whole database: commits are serialised and readers never see one half done. It is only ever taken with the
//! interpreter detached, so a thread that waits for it does not hold up the others.

use crate::errors::{bug, raise, stale};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow_buffer::ScalarBuffer;
use arrow_pyarrow::PyArrowType;
use arrow_schema::{DataType as ArrowType, Field, Schema, SchemaRef};
use everview_expr::DataType;
use everview_kernel::aggregate::Flow;
use everview_kernel::error::KernelError;
use everview_kernel::plan::Plan;
use everview_kernel::retention::Window;
use everview_kernel::table::Change;
use everview_kernel::view;
use everview_kernel::{database as kernel, pool::WordPool};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Tables, views and the commit of batches.
#[pyclass(frozen, module = "everview._kernel")]
pub struct Database {
    inner: Arc<Mutex<kernel::Database>>,
}

/// The reading of a view's full result.
#[pyclass(frozen, module = "everview._kernel")]
pub struct Cursor {
    database: Arc<Mutex<kernel::Database>>,
    view: usize,
    epoch: u64,
    state: Mutex<view::Cursor>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pymethods]
impl Database {
    #[new]
    fn new() -> Self {
        Self { inner: Arc::default() }
    }

    /// Adds a table of columns (name, type, nullable), with a window (`rows`, n, _) or (`time`, microseconds, column); returns its position.
    #[pyo3(signature = (name, columns, key, retention = None))]
    fn create_table(
        &self,
        py: Python<'_>,
        name: &str,
        columns: Vec<(String, String, bool)>,
        key: Vec<usize>,
        retention: Option<(String, i64, usize)>,
    ) -> PyResult<usize> {
        let parse = |(name, text, nullable): (String, String, bool)| -> PyResult<(String, DataType, bool)> {
            Ok((name, text.parse().map_err(|_| bug(format!("not a type: {text}")))?, nullable))
        };
        let columns = columns.into_iter().map(parse).collect::<PyResult<Vec<_>>>()?;
        let window = retention.map(|(kind, amount, column)| match kind.as_str() {
            "rows" => Window::Rows(amount as u64),
            _ => Window::Time { micros: amount, column },
        });
        py.detach(|| lock(&self.inner).create_table(name, &columns, &key, window)).map_err(raise)
    }

    /// Drops a table that no view reads.
    fn drop_table(&self, py: Python<'_>, table: usize) {
        py.detach(|| lock(&self.inner).drop_table(table));
    }

    /// Adds a view from its maintenance plan, built from the tables' rows; returns its position.
    fn create_view(&self, py: Python<'_>, plan: &str) -> PyResult<usize> {
        py.detach(|| {
            let plan: Plan = serde_json::from_str(plan).map_err(|e| KernelError::new("INVALID_PLAN", e.to_string()))?;
            lock(&self.inner).create_view(plan)
        })
        .map_err(raise)
    }

    /// Drops a view.
    fn drop_view(&self, py: Python<'_>, view: usize) {
        py.detach(|| lock(&self.inner).drop_view(view));
    }

    /// Applies changes (table, kind, rows) in one commit; kind is `rows`, `upsert`, `update` or `keys`.
    ///
    /// Returns the views' deltas as (view, record batch with `_multiplicity`), or nothing without `deltas`.
    fn commit(
        &self,
        py: Python<'_>,
        changes: Vec<(usize, String, PyArrowType<RecordBatch>)>,
        deltas: bool,
        ignore_missing: bool,
    ) -> PyResult<Vec<(usize, PyArrowType<RecordBatch>)>> {
        let changes = changes.into_iter().map(|(table, kind, batch)| (table, kind, batch.0)).collect::<Vec<_>>();
        let flows = py.detach(|| -> Result<Vec<(usize, RecordBatch)>, KernelError> {
            let mut database = lock(&self.inner);
            let mut parsed = Vec::with_capacity(changes.len());
            for (table, kind, batch) in changes {
                parsed.push((table, change(&kind, &batch, database.table(table).name())?));
            }
            let flows = database.commit(&parsed, deltas, ignore_missing)?;
            if !deltas {
                return Ok(Vec::new());
            }
            let pool = database.pool().clone();
            flows
                .into_iter()
                .map(|(view, flow)| Ok((view, delta_batch(database.view(view).schema(), flow, &pool)?)))
                .collect()
        });
        Ok(flows.map_err(raise)?.into_iter().map(|(view, batch)| (view, PyArrowType(batch))).collect())
    }

    /// Starts the reading of a view's full result.
    fn open(&self, py: Python<'_>, view: usize) -> Cursor {
        let (state, epoch) = py.detach(|| {
            let database = lock(&self.inner);
            (database.open(view), database.epoch())
        });
        Cursor { database: self.inner.clone(), view, epoch, state: Mutex::new(state) }
    }

    /// Starts the reading of the results in which these head columns have the values of the batch's first row.
    fn lookup(
        &self,
        py: Python<'_>,
        view: usize,
        columns: Vec<usize>,
        values: PyArrowType<RecordBatch>,
    ) -> PyResult<Cursor> {
        let (state, epoch) = py
            .detach(|| {
                let mut database = lock(&self.inner);
                let epoch = database.epoch();
                database.lookup(view, &columns, values.0.columns()).map(|cursor| (cursor, epoch))
            })
            .map_err(raise)?;
        Ok(Cursor { database: self.inner.clone(), view, epoch, state: Mutex::new(state) })
    }

    /// The number of rows of a view's result; `None` if only reading it can tell.
    fn count(&self, py: Python<'_>, view: usize) -> PyResult<Option<i128>> {
        match py.detach(|| lock(&self.inner).view(view).count()) {
            None => Ok(None),
            Some(Some(count)) => Ok(Some(count)),
            Some(None) => Err(raise(KernelError::new("ARITHMETIC_OVERFLOW", "the number of rows leaves 128 bits"))),
        }
    }

    /// All rows of a table: its columns and `_multiplicity`.
    fn table_rows(&self, py: Python<'_>, table: usize) -> PyResult<PyArrowType<RecordBatch>> {
        let batch = py.detach(|| {
            let database = lock(&self.inner);
            let base = database.table(table);
            let rows = base.everything();
            let columns = (0..base.columns().len())
                .map(|c| base.decode(c, &rows.rows, database.interner(), database.pool()))
                .collect();
            let fields = base.columns().iter().map(|c| Field::new(c.name.clone(), c.data_type.arrow(), c.nullable));
            let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
            delta_batch(&schema, Flow { columns, weights: rows.weights, may_repeat: false }, database.pool())
        });
        Ok(PyArrowType(batch.map_err(raise)?))
    }

    /// Rows (with duplicates), distinct rows and bytes of a table.
    fn table_size(&self, py: Python<'_>, table: usize) -> (i64, usize, usize) {
        py.detach(|| {
            let database = lock(&self.inner);
            let base = database.table(table);
            (base.total(), base.len(), base.bytes())
        })
    }

    /// Number and bytes of the texts that tables and views share.
    fn texts_size(&self, py: Python<'_>) -> (usize, usize) {
        py.detach(|| {
            let database = lock(&self.inner);
            (database.interner().len(), database.interner().bytes())
        })
    }

    /// What a view holds and has done.
    fn metrics<'py>(&self, py: Python<'py>, view: usize) -> PyResult<Bound<'py, PyDict>> {
        let (nodes, operators, counters, held) = py.detach(|| {
            let database = lock(&self.inner);
            let view = database.view(view);
            (view.tree().node_sizes(), view.operator_sizes(), *view.counters(), view.tree().held())
        });
        let metrics = PyDict::new(py);
        metrics.set_item("nodes", nodes)?;
        metrics.set_item("operators", operators)?;
        metrics.set_item("held", held)?;
        metrics.set_item("updates", counters.updates)?;
        metrics.set_item("probes", counters.probes)?;
        metrics.set_item("status_changes", counters.status_changes)?;
        metrics.set_item("annotation_changes", counters.annotation_changes)?;
        metrics.set_item("live_changes", counters.live_changes)?;
        metrics.set_item("steps", counters.steps)?;
        metrics.set_item("rows_emitted", counters.emitted)?;
        Ok(metrics)
    }
}

#[pymethods]
impl Cursor {
    /// The next rows with `_multiplicity`, at most `limit`; `None` at the end.
    fn read(&self, py: Python<'_>, limit: usize) -> PyResult<Option<PyArrowType<RecordBatch>>> {
        let outcome = py.detach(|| {
            let mut database = lock(&self.database);
            if database.epoch() != self.epoch {
                return None;
            }
            let mut state = lock(&self.state);
            let pool = database.pool().clone();
            Some(database.read(self.view, &mut state, limit).and_then(|flow| {
                flow.map(|flow| delta_batch(database.view(self.view).schema(), flow, &pool)).transpose()
            }))
        });
        let batch = outcome.ok_or_else(stale)?.map_err(raise)?;
        Ok(batch.map(PyArrowType))
    }
}

/// A flow as a record batch with the column `_multiplicity`.
fn delta_batch(schema: &SchemaRef, flow: Flow, pool: &WordPool) -> Result<RecordBatch, KernelError> {
    let count = flow.weights.len();
    let mut fields: Vec<Arc<Field>> = schema.fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new("_multiplicity", ArrowType::Int64, false)));
    let mut columns = flow.columns;
    if columns.is_empty() && count == 0 {
        columns = schema.fields().iter().map(|f| arrow_array::new_empty_array(f.data_type())).collect();
    }
    let weights = bytemuck::allocation::cast_vec(flow.weights);
    columns.push(Arc::new(Int64Array::new(ScalarBuffer::new(pool.lend(weights), 0, count), None)));
    view::record_batch(&Arc::new(Schema::new(fields)), columns, count)
}

/// The change a batch asks for. The session has put the columns into the table's order, `_change_type` or `_multiplicity` last.
fn change(kind: &str, batch: &RecordBatch, table: &str) -> Result<Change, KernelError> {
    let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
    match kind {
        "upsert" | "update" => return Ok(Change::Upsert { columns, must_exist: kind == "update" }),
        "keys" => return Ok(Change::DeleteKeys(columns)),
        _ => {}
    }
    let count = batch.num_rows();
    let last = batch.num_columns().checked_sub(1).map(|i| batch.schema_ref().field(i).name().as_str());
    let weights = match last {
        Some("_multiplicity") => {
            let array = columns.pop().expect("there is a last column");
            not_null(&array, "_multiplicity", table)?;
            array.as_primitive::<Int64Type>().values().to_vec()
        }
        Some("_change_type") => {
            let array = columns.pop().expect("there is a last column");
            not_null(&array, "_change_type", table)?;
            change_types(&array, table)?
        }
        _ => vec![1; count],
    };
    Ok(Change::Rows(columns, weights))
}

fn not_null(array: &ArrayRef, name: &str, table: &str) -> Result<(), KernelError> {
    match (0..array.len()).find(|&i| array.is_null(i)) {
        Some(row) => Err(KernelError::in_row("INVALID_CHANGE", table, row, format!("`{name}` is NULL"))),
        None => Ok(()),
    }
}

fn change_types(array: &ArrayRef, table: &str) -> Result<Vec<i64>, KernelError> {
    let texts = array.as_string::<i32>();
    let weight = |(row, text): (usize, Option<&str>)| match text {
        Some("insert" | "update_postimage") => Ok(1),
        Some("delete" | "update_preimage") => Ok(-1),
        other => {
            let message = format!("`_change_type` is '{}'", other.unwrap_or_default());
            Err(KernelError::in_row("INVALID_CHANGE", table, row, message)
                .with_hint("use insert, delete, update_preimage or update_postimage"))
        }
    };
    texts.iter().enumerate().map(weight).collect()
}
