//! Tables and views as seen from Python.
//!
//! One mutex guards the whole database: commits are serialised and readers never see one half done. It is only ever taken with the
//! interpreter detached, so a thread that waits for it does not hold up the others.

use crate::errors::{bug, raise, stale};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, UInt32Array};
use arrow_buffer::ScalarBuffer;
use arrow_pyarrow::{PyArrowType, ToPyArrow};
use arrow_schema::{DataType as ArrowType, Field, Schema, SchemaRef};
use everview_expr::{DataType, shown};
use everview_kernel::error::KernelError;
use everview_kernel::flow::{Chunk, Flow, record_batch};
use everview_kernel::plan::Plan;
use everview_kernel::retention::{Window, WindowCounts};
use everview_kernel::table::{BaseTable, Change};
use everview_kernel::{database as kernel, graph_read, pool::WordPool};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::VecDeque;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
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
    epoch: Epoch,
    state: Mutex<Reading>,
}

/// Where a reading stands, and rows that were read but not handed out.
struct Reading {
    cursor: graph_read::Cursor,
    ready: VecDeque<Chunk>,
}

impl Reading {
    fn new(cursor: graph_read::Cursor) -> Mutex<Self> {
        Mutex::new(Self { cursor, ready: VecDeque::new() })
    }
}

/// The state a cursor reads, and the one there is.
struct Epoch {
    mine: u64,
    now: Arc<AtomicU64>,
}

impl Epoch {
    fn of(database: &kernel::Database) -> Self {
        let now = database.epoch();
        Self { mine: now.load(Ordering::Acquire), now }
    }

    fn is_past(&self) -> bool {
        self.now.load(Ordering::Acquire) != self.mine
    }
}

/// Runs the kernel with the interpreter detached. A panic is a bug: it is raised as an internal error, after which the session answers
/// nothing more from this database.
pub(crate) fn run<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, KernelError> + Send) -> PyResult<T> {
    let outcome = py.detach(|| std::panic::catch_unwind(AssertUnwindSafe(work)));
    outcome.unwrap_or_else(|panic| Err(KernelError::new("INTERNAL_ERROR", panic_text(panic.as_ref())))).map_err(raise)
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the kernel failed: {}", text.unwrap_or("no reason given"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pymethods]
impl Database {
    #[new]
    #[pyo3(signature = (threads = 1, delta_bytes = None, text_bytes = None))]
    fn new(threads: usize, delta_bytes: Option<usize>, text_bytes: Option<u64>) -> Self {
        Self { inner: Arc::new(Mutex::new(kernel::Database::new(threads, delta_bytes, text_bytes))) }
    }

    /// Adds a table of columns (name, type, nullable), with a window (`rows`, n, _, _) or (`time`, microseconds, column, the most
    /// microseconds that time moves at once), or without key and window one that keeps no rows; returns its position.
    #[pyo3(signature = (name, columns, key, retention = None, keeps_rows = true))]
    fn create_table(
        &self,
        py: Python<'_>,
        name: &str,
        columns: Vec<(String, String, bool)>,
        key: Vec<usize>,
        retention: Option<(String, i64, usize, i64)>,
        keeps_rows: bool,
    ) -> PyResult<usize> {
        let parse = |(name, text, nullable): (String, String, bool)| -> PyResult<(String, DataType, bool)> {
            Ok((name, text.parse().map_err(|_| bug(format!("not a type: {text}")))?, nullable))
        };
        let columns = columns.into_iter().map(parse).collect::<PyResult<Vec<_>>>()?;
        let window = retention.map(|(kind, amount, column, jump)| match kind.as_str() {
            "rows" => Window::Rows(amount as u64),
            _ => Window::Time { micros: amount, column, jump },
        });
        run(py, || {
            let mut database = lock(&self.inner);
            if keeps_rows {
                database.create_table(name, &columns, &key, window)
            } else {
                database.create_passing_table(name, &columns)
            }
        })
    }

    /// Drops a table that no view reads.
    fn drop_table(&self, py: Python<'_>, table: usize) {
        py.detach(|| lock(&self.inner).drop_table(table));
    }

    /// Adds a view from its maintenance plan, built from the tables' rows; returns its position.
    fn create_view(&self, py: Python<'_>, plan: &str) -> PyResult<usize> {
        run(py, || {
            let plan = parsed(plan)?;
            lock(&self.inner).create_view(plan)
        })
    }

    /// The result of a maintenance plan over the tables and views as they are, as record batches with `_multiplicity`. Changes nothing.
    fn read_once(&self, py: Python<'_>, plan: &str) -> PyResult<Vec<PyArrowType<RecordBatch>>> {
        let batches = run(py, || {
            let plan = parsed(plan)?;
            let mut database = lock(&self.inner);
            let (schema, rows) = database.read_once(plan)?;
            delta_batches(&schema, rows, database.pool())
        })?;
        Ok(to_python(batches))
    }

    /// Drops a view.
    fn drop_view(&self, py: Python<'_>, view: usize) {
        py.detach(|| lock(&self.inner).drop_view(view));
    }

    /// Applies changes (table, kind, rows) in one commit; kind is `rows`, `upsert`, `update` or `keys`.
    ///
    /// Returns the views' deltas as (view, record batches with `_multiplicity`), or nothing without `deltas`.
    ///
    /// With `pieces`, a function of a view and a record batch, parts of the delta of one view may go there before; it must not use this
    /// database. What it raises is raised when the batch has been applied; or put into its attribute `failure`, if it has one.
    #[pyo3(signature = (changes, deltas, ignore_missing, pieces = None))]
    fn commit(
        &self,
        py: Python<'_>,
        changes: Vec<(usize, String, PyArrowType<RecordBatch>)>,
        deltas: bool,
        ignore_missing: bool,
        pieces: Option<Py<PyAny>>,
    ) -> PyResult<Vec<(usize, Vec<PyArrowType<RecordBatch>>)>> {
        let mut failed = None;
        let changes = changes.into_iter().map(|(table, kind, batch)| (table, kind, batch.0)).collect::<Vec<_>>();
        let flows: Vec<(usize, Vec<RecordBatch>)> = run(py, || {
            let mut database = lock(&self.inner);
            let mut parsed = Vec::with_capacity(changes.len());
            for (table, kind, batch) in changes {
                parsed.push((table, change(&kind, &batch, database.table(table).name())?));
            }
            let pool = database.pool().clone();
            let mut hand_over = |view: usize, schema: &SchemaRef, chunk: Chunk| {
                if failed.is_none() {
                    failed = pieces.as_ref().and_then(|pieces| call(pieces, view, schema, chunk, &pool).err());
                }
            };
            let taken = pieces.is_some().then_some(&mut hand_over as kernel::ViewPieces);
            let flows = database.commit(&parsed, deltas, ignore_missing, taken)?;
            if !deltas {
                return Ok(Vec::new());
            }
            flows
                .into_iter()
                .map(|(view, flow)| Ok((view, delta_batches(database.view(view).schema(), flow, &pool)?)))
                .collect()
        })?;
        if let (Some(error), Some(pieces)) = (failed, pieces) {
            let pieces = pieces.bind(py);
            if !pieces.hasattr("failure")? {
                return Err(error);
            }
            pieces.setattr("failure", error)?;
        }
        Ok(flows.into_iter().map(|(view, batches)| (view, to_python(batches))).collect())
    }

    /// Starts the reading of a view's full result.
    fn open(&self, py: Python<'_>, view: usize) -> Cursor {
        let (state, epoch) = py.detach(|| {
            let database = lock(&self.inner);
            (database.open(view), Epoch::of(&database))
        });
        Cursor { database: self.inner.clone(), view, epoch, state: Reading::new(state) }
    }

    /// Starts the reading of the results in which these head columns have the values of the batch's first row.
    fn lookup(
        &self,
        py: Python<'_>,
        view: usize,
        columns: Vec<usize>,
        values: PyArrowType<RecordBatch>,
    ) -> PyResult<Cursor> {
        let (state, epoch) = run(py, || {
            let mut database = lock(&self.inner);
            let epoch = Epoch::of(&database);
            database.lookup(view, &columns, values.0.columns()).map(|cursor| (cursor, epoch))
        })?;
        Ok(Cursor { database: self.inner.clone(), view, epoch, state: Reading::new(state) })
    }

    /// The number of rows of a view's result; `None` if only reading it can tell.
    fn count(&self, py: Python<'_>, view: usize) -> PyResult<Option<i128>> {
        run(py, || match lock(&self.inner).view(view).count() {
            None => Ok(None),
            Some(Some(count)) => Ok(Some(count)),
            Some(None) => Err(KernelError::new("ARITHMETIC_OVERFLOW", "the number of rows leaves 128 bits")),
        })
    }

    /// All rows of a table, in batches: its columns and `_multiplicity`.
    fn table_rows(&self, py: Python<'_>, table: usize) -> PyResult<Vec<PyArrowType<RecordBatch>>> {
        let batches = run(py, || {
            let database = lock(&self.inner);
            let base = database.table(table);
            base.require_rows("a look at its rows")?;
            let all = base.everything();
            let chunk = |range: Range<usize>| Chunk {
                columns: (0..base.columns().len())
                    .map(|c| base.decode(c, &all.rows[range.clone()], database.interner(), database.pool()))
                    .collect(),
                weights: all.weights[range].to_vec(),
            };
            let chunks = base.ranges(&all.rows, database.interner()).into_iter().map(chunk).collect();
            delta_batches(&table_schema(base), Flow::of(chunks), database.pool())
        });
        Ok(to_python(batches?))
    }

    /// How many copies of each row of the batch (whole rows in the table's column order) a table holds, as a `pyarrow.Int64Array`.
    fn copies_of<'py>(
        &self,
        py: Python<'py>,
        table: usize,
        rows: PyArrowType<RecordBatch>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let copies = run(py, || lock(&self.inner).copies_of(table, rows.0.columns()))?;
        Int64Array::from(copies).to_data().to_pyarrow(py)
    }

    /// The rows of a table with the primary keys of the batch: positions of the keys that are there, and a batch of their rows.
    fn rows_with_keys<'py>(
        &self,
        py: Python<'py>,
        table: usize,
        keys: PyArrowType<RecordBatch>,
    ) -> PyResult<(Bound<'py, PyAny>, PyArrowType<RecordBatch>)> {
        let (positions, rows) = run(py, || {
            let mut database = lock(&self.inner);
            let (positions, columns) = database.rows_with_keys(table, keys.0.columns())?;
            let count = positions.len();
            Ok((positions, record_batch(&table_schema(database.table(table)), columns, count)?))
        })?;
        Ok((UInt32Array::from(positions).to_data().to_pyarrow(py)?, PyArrowType(rows)))
    }

    /// Of a table that is a window: the largest time seen (microseconds since 1970), copies that came late, copies that expired, and deletes of
    /// copies that had.
    fn window_state(&self, py: Python<'_>, table: usize) -> Option<(Option<i64>, u64, u64, u64)> {
        let (latest, counts) = py.detach(|| lock(&self.inner).table(table).window_state())?;
        Some((latest, counts.late, counts.expired, counts.missed))
    }

    /// Sets what `window_state` gave.
    fn restore_window(&self, py: Python<'_>, table: usize, state: (Option<i64>, u64, u64, u64)) {
        let (latest, late, expired, missed) = state;
        py.detach(|| lock(&self.inner).restore_window(table, latest, WindowCounts { late, expired, missed }));
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
            (view.node_sizes(), view.operator_sizes(), view.counters(), view.held())
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
    /// Raises if a commit has changed something since the cursor was opened. Waits for nothing.
    fn require_fresh(&self) -> PyResult<()> {
        if self.epoch.is_past() { Err(raise(stale())) } else { Ok(()) }
    }

    /// The next rows with `_multiplicity`, at most `limit`; `None` at the end.
    fn read(&self, py: Python<'_>, limit: usize) -> PyResult<Option<PyArrowType<RecordBatch>>> {
        let batch = run(py, || {
            let mut database = lock(&self.database);
            if self.epoch.is_past() {
                return Err(stale());
            }
            let mut state = lock(&self.state);
            let pool = database.pool().clone();
            while state.ready.is_empty() {
                let Some(flow) = database.read(self.view, &mut state.cursor, limit)? else { return Ok(None) };
                state.ready.extend(flow.chunks);
            }
            let chunk = state.ready.pop_front().expect("there is one");
            delta_batch(database.view(self.view).schema(), chunk, &pool).map(Some)
        })?;
        Ok(batch.map(PyArrowType))
    }
}

/// Hands a piece of a delta to Python.
fn call(pieces: &Py<PyAny>, view: usize, schema: &SchemaRef, chunk: Chunk, pool: &WordPool) -> PyResult<()> {
    let batch = delta_batch(schema, chunk, pool).map_err(raise)?;
    Python::attach(|py| pieces.call1(py, (view, PyArrowType(batch))).map(drop))
}

fn parsed(plan: &str) -> Result<Plan, KernelError> {
    serde_json::from_str(plan).map_err(|e| KernelError::new("INVALID_PLAN", e.to_string()))
}

fn to_python(batches: Vec<RecordBatch>) -> Vec<PyArrowType<RecordBatch>> {
    batches.into_iter().map(PyArrowType).collect()
}

/// A flow as record batches with the column `_multiplicity`; at least one.
fn delta_batches(schema: &SchemaRef, flow: Flow, pool: &WordPool) -> Result<Vec<RecordBatch>, KernelError> {
    let mut chunks = flow.chunks;
    if chunks.is_empty() {
        chunks.push(Chunk::default());
    }
    chunks.into_iter().map(|chunk| delta_batch(schema, chunk, pool)).collect()
}

fn table_schema(table: &BaseTable) -> SchemaRef {
    let fields = table.columns().iter().map(|c| Field::new(c.name.clone(), c.data_type.arrow(), c.nullable));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Rows as a record batch with the column `_multiplicity`.
fn delta_batch(schema: &SchemaRef, flow: Chunk, pool: &WordPool) -> Result<RecordBatch, KernelError> {
    let count = flow.weights.len();
    let mut fields: Vec<Arc<Field>> = schema.fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new("_multiplicity", ArrowType::Int64, false)));
    let mut columns = flow.columns;
    if columns.is_empty() && count == 0 {
        columns = schema.fields().iter().map(|f| arrow_array::new_empty_array(f.data_type())).collect();
    }
    let weights = bytemuck::allocation::cast_vec(flow.weights);
    columns.push(Arc::new(Int64Array::new(ScalarBuffer::new(pool.lend(weights), 0, count), None)));
    record_batch(&Arc::new(Schema::new(fields)), columns, count)
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
            let message = format!("`_change_type` is '{}'", shown(other.unwrap_or_default()));
            Err(KernelError::in_row("INVALID_CHANGE", table, row, message)
                .with_hint("use insert, delete, update_preimage or update_postimage"))
        }
    };
    texts.iter().enumerate().map(weight).collect()
}
