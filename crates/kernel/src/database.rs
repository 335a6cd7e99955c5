//! Tables and views, and the commit of a batch over all of them.
//!
//! A commit stages every table's changes, scans them for every atom of every view (what a single row can do wrong happens here, before
//! anything changes), commits the tables, prepares every view, and when all have accepted the batch, commits the views and finishes. If a
//! view refuses, the views are undone in reverse order and the tables uncommitted: the state is as before, whichever view refused.

use crate::error::KernelError;
use crate::flow::{Chunk, Flow};
use crate::graph::{Scanned, Surroundings, View};
use crate::graph_read::Cursor;
use crate::interner::Interner;
use crate::operator::Context;
use crate::plan::Plan;
use crate::pool::WordPool;
use crate::retention::{Window, WindowCounts};
use crate::table::{BaseTable, Change, Staged};
use arrow_array::ArrayRef;
use arrow_schema::SchemaRef;
use everview_expr::DataType;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Takes pieces of views' deltas: the view, the schema of its result, and rows.
pub type ViewPieces<'a> = &'a mut dyn FnMut(usize, &SchemaRef, Chunk);

/// How many rows are read at once where all are wanted.
const READ_ROWS: usize = 1 << 16;

/// Tables, views, and what they share.
#[derive(Debug, Default)]
pub struct Database {
    tables: Vec<Option<BaseTable>>,
    views: Vec<Option<View>>,
    /// The views in the order in which they were made: a view reads earlier ones.
    order: Vec<usize>,
    interner: Interner,
    pool: WordPool,
    /// Counts the commits that changed a row, and dropped definitions: cursors of an earlier epoch are stale.
    epoch: Arc<AtomicU64>,
    /// How many threads may enumerate a delta, beside the one that commits.
    helpers: usize,
    /// How many bytes the words of one delta may take; without a limit, as many as there are.
    delta_bytes: Option<usize>,
}

/// What views need of a database whose views are borrowed.
macro_rules! context {
    ($database:ident) => {
        Context {
            interner: &mut $database.interner,
            pool: &$database.pool,
            threads: 1 + $database.helpers,
            delta_bytes: $database.delta_bytes.unwrap_or(usize::MAX),
        }
    };
}

impl Database {
    /// An empty database that uses so many threads at most, refuses batches whose delta would take more bytes, and cuts rows into chunks
    /// with so many bytes of text per column.
    pub fn new(threads: usize, delta_bytes: Option<usize>, text_bytes: Option<u64>) -> Self {
        let mut database = Self { helpers: threads.saturating_sub(1), delta_bytes, ..Self::default() };
        if let Some(bytes) = text_bytes {
            database.interner.set_chunk_bytes(bytes);
        }
        database
    }

    /// Adds a table; returns its position.
    pub fn create_table(
        &mut self,
        name: &str,
        columns: &[(String, DataType, bool)],
        key: &[usize],
        window: Option<Window>,
    ) -> Result<usize, KernelError> {
        Ok(put(&mut self.tables, BaseTable::new(name.to_owned(), columns, key, window)?))
    }

    /// Adds a table that keeps no rows: its changes pass to the views that read it. Returns its position.
    pub fn create_passing_table(
        &mut self,
        name: &str,
        columns: &[(String, DataType, bool)],
    ) -> Result<usize, KernelError> {
        Ok(put(&mut self.tables, BaseTable::passing(name.to_owned(), columns)?))
    }

    /// Drops a table that no view reads.
    pub fn drop_table(&mut self, table: usize) {
        if let Some(dropped) = self.tables[table].take() {
            dropped.release_texts(&mut self.interner);
            self.interner.sweep();
        }
        self.next_epoch();
    }

    /// Adds a view, built from the tables' rows; returns its position.
    pub fn create_view(&mut self, plan: Plan) -> Result<usize, KernelError> {
        let mut view = self.build_view(plan, false)?;
        if let Err(error) = view.check(&mut context!(self)) {
            self.forget(view);
            return Err(error);
        }
        let place = put(&mut self.views, view);
        self.order.push(place);
        Ok(place)
    }

    /// The result of a plan over the tables and views as they are: the schema, and the rows in pieces. It is built as a view would be, read,
    /// and forgotten within this call: the database is as before, cursors stay fresh.
    pub fn read_once(&mut self, plan: Plan) -> Result<(SchemaRef, Flow), KernelError> {
        let mut view = self.build_view(plan, true)?;
        let mut cursor = view.open();
        let mut rows = Flow::default();
        let outcome = loop {
            match view.read(&mut cursor, READ_ROWS, &mut context!(self)) {
                Ok(Some(flow)) => rows.chunks.extend(flow.chunks),
                Ok(None) => break Ok((view.schema().clone(), rows)),
                Err(error) => break Err(error),
            }
        };
        self.forget(view);
        outcome
    }

    /// A view that is built, but nowhere yet; to be read `once`, from those rows of the tables that it can read, or to stay.
    fn build_view(&mut self, plan: Plan, once: bool) -> Result<View, KernelError> {
        let Self { tables, views, .. } = self;
        let table =
            |name: &str| tables.iter().position(|t| t.as_ref().is_some_and(|t| t.name().eq_ignore_ascii_case(name)));
        let other = |name: &str| {
            let found = views.iter().position(|v| v.as_ref().is_some_and(|v| v.name().eq_ignore_ascii_case(name)))?;
            Some((found, views[found].as_ref()?.columns()))
        };
        let mut view = View::new(plan, &Surroundings { tables, table: &table, view: &other })?;
        let mut staged: Vec<Option<Staged>> = Vec::with_capacity(tables.len());
        for (at, base) in tables.iter().enumerate() {
            let Some(base) = base.as_ref().filter(|_| view.reads(at)) else {
                staged.push(None);
                continue;
            };
            if once { base.require_rows_for_query() } else { base.require_all_rows(view.name()) }?;
            let picked = if once { view.picked_rows(at, base, &mut self.interner) } else { None };
            staged.push(Some(picked.unwrap_or_else(|| base.everything())));
        }
        let built = view.scan(&self.tables, &staged, &mut self.interner, &self.pool).and_then(|scanned| {
            let mut views = std::mem::take(&mut self.views);
            let built = view.build(scanned, &mut views, &mut context!(self));
            self.views = views;
            built
        });
        if let Err(error) = built {
            self.forget(view);
            return Err(error);
        }
        self.interner.sweep();
        Ok(view)
    }

    /// Frees the texts of a view that is nowhere.
    fn forget(&mut self, view: View) {
        view.release_texts(&mut self.interner);
        self.interner.sweep();
    }

    /// Drops a view that no other reads.
    pub fn drop_view(&mut self, view: usize) {
        self.order.retain(|&other| other != view);
        if let Some(dropped) = self.views[view].take() {
            dropped.release_texts(&mut self.interner);
            self.interner.sweep();
        }
        self.next_epoch();
    }

    /// A table.
    pub fn table(&self, table: usize) -> &BaseTable {
        self.tables[table].as_ref().expect("the session knows which tables there are")
    }

    /// How many copies of each of these whole rows a table holds.
    pub fn copies_of(&mut self, table: usize, columns: &[ArrayRef]) -> Result<Vec<i64>, KernelError> {
        let base = self.tables[table].as_ref().expect("the session knows which tables there are");
        base.require_rows("a look at its rows")?;
        let copies = base.copies_of(columns, &mut self.interner);
        self.interner.sweep();
        copies
    }

    /// The rows of a table with these primary keys: positions of the keys that are there, and their rows' columns.
    pub fn rows_with_keys(
        &mut self,
        table: usize,
        keys: &[ArrayRef],
    ) -> Result<(Vec<u32>, Vec<ArrayRef>), KernelError> {
        let base = self.tables[table].as_ref().expect("the session knows which tables there are");
        let found = base.rows_with_keys(keys, &mut self.interner);
        let columns = found.map(|(positions, rows)| {
            let decode = |column| base.decode(column, &rows, &self.interner, &self.pool);
            (positions, (0..base.columns().len()).map(decode).collect())
        });
        self.interner.sweep();
        columns
    }

    /// Sets what a table's window has seen and done, when it is restored.
    pub fn restore_window(&mut self, table: usize, latest: Option<i64>, counts: WindowCounts) {
        let target = self.tables[table].as_mut().expect("the session knows which tables there are");
        target.restore_window(latest, counts);
    }

    /// A view.
    pub fn view(&self, view: usize) -> &View {
        self.views[view].as_ref().expect("the session knows which views there are")
    }

    /// The state cursors are tied to; can be read without the database.
    pub fn epoch(&self) -> Arc<AtomicU64> {
        self.epoch.clone()
    }

    fn next_epoch(&mut self) {
        self.epoch.fetch_add(1, Ordering::Release);
    }

    /// The shared buffers.
    pub fn pool(&self) -> &WordPool {
        &self.pool
    }

    /// The shared texts.
    pub fn interner(&self) -> &Interner {
        &self.interner
    }

    /// Applies a batch over some tables. With `deltas`, returns the net change of every view that a table concerned feeds.
    ///
    /// With `pieces`, parts of the change of one view may leave there, before the batch has been applied but when nothing can refuse it any
    /// more; what is returned is the rest.
    pub fn commit(
        &mut self,
        changes: &[(usize, Change)],
        deltas: bool,
        ignore_missing: bool,
        mut pieces: Option<ViewPieces>,
    ) -> Result<Vec<(usize, Flow)>, KernelError> {
        let mut staged: Vec<Option<Staged>> = Vec::new();
        staged.resize_with(self.tables.len(), || None);
        let outcome = self.stage(changes, ignore_missing, &mut staged).and_then(|()| self.scan_all(&mut staged));
        let mut scanned = match outcome {
            Ok(scanned) => scanned,
            Err(error) => {
                self.unstage(&staged);
                return Err(error);
            }
        };
        for (table, batch) in self.tables.iter_mut().zip(&mut staged) {
            if let (Some(table), Some(batch)) = (table, batch) {
                table.commit(batch, &mut self.interner);
            }
        }
        let last = self.last_to_leave(&mut scanned, pieces.is_some());
        let mut flows: Vec<(usize, Flow)> = Vec::with_capacity(scanned.len());
        let mut refused = None;
        let order: Vec<usize> = scanned.iter().map(|(view, _)| *view).collect();
        for (view, changes) in scanned {
            let read = self.views.iter().flatten().any(|other| other.reads_view(view));
            let target = self.views[view].as_mut().expect("scanned views exist");
            let outcome = match pieces.take_if(|_| last == Some(view)) {
                Some(pieces) => {
                    let mut hand_over = |schema: &SchemaRef, chunk| pieces(view, schema, chunk);
                    target.prepare(changes, &flows, deltas, Some(&mut hand_over), &mut context!(self))
                }
                None => target.prepare(changes, &flows, deltas || read, None, &mut context!(self)),
            };
            match outcome {
                Ok(flow) => flows.push((view, flow)),
                Err(error) => {
                    refused = Some((view, error));
                    break;
                }
            }
        }
        if let Some((by, mut error)) = refused {
            for &view in order.iter().rev() {
                self.views[view].as_mut().expect("scanned views exist").undo(&mut self.interner);
            }
            for (table, batch) in self.tables.iter_mut().zip(&mut staged) {
                if let (Some(table), Some(batch)) = (table, batch) {
                    table.uncommit(batch, &mut self.interner);
                }
            }
            self.unstage(&staged);
            error.message = format!("{}, in view `{}`", error.message, self.view(by).name());
            return Err(error);
        }
        for &view in &order {
            self.views[view].as_mut().expect("scanned views exist").commit(&mut self.interner);
        }
        for (table, batch) in self.tables.iter_mut().zip(&staged) {
            if let (Some(table), Some(batch)) = (table, batch) {
                table.finish(batch, &mut self.interner);
                table.give_back();
            }
        }
        for &view in &order {
            self.views[view].as_mut().expect("scanned views exist").give_back();
        }
        self.interner.sweep();
        if !staged.iter().flatten().all(Staged::is_empty) {
            self.next_epoch();
        }
        Ok(flows)
    }

    fn stage(
        &mut self,
        changes: &[(usize, Change)],
        ignore_missing: bool,
        staged: &mut [Option<Staged>],
    ) -> Result<(), KernelError> {
        for (table, change) in changes {
            let target = self.tables[*table].as_mut().expect("the session knows which tables there are");
            staged[*table] = Some(target.stage(change, ignore_missing, &mut self.interner)?);
        }
        Ok(())
    }

    /// Per view that a batch concerns the changes of its atoms that read tables, in the order of `order`. If an expression fails, changes
    /// that pass tables are netted first: it may have failed on a row that the batch both brings and takes away.
    fn scan_all(&mut self, staged: &mut [Option<Staged>]) -> Result<Vec<(usize, Scanned)>, KernelError> {
        let outcome = self.scan_views(staged);
        let Err(error) = outcome else { return outcome };
        let mut differs = false;
        for (table, batch) in self.tables.iter().zip(staged.iter_mut()) {
            if let (Some(table), Some(batch)) = (table, batch) {
                differs |= batch.net_passing(table, &mut self.interner)?;
            }
        }
        if differs { self.scan_views(staged) } else { Err(error) }
    }

    fn scan_views(&mut self, staged: &[Option<Staged>]) -> Result<Vec<(usize, Scanned)>, KernelError> {
        let mut scanned: Vec<(usize, Scanned)> = Vec::new();
        for &at in &self.order {
            let view = self.views[at].as_ref().expect("views in order exist");
            let by_table = staged.iter().enumerate().any(|(table, batch)| batch.is_some() && view.reads(table));
            if by_table || scanned.iter().any(|(other, _)| view.reads_view(*other)) {
                scanned.push((at, view.scan(&self.tables, staged, &mut self.interner, &self.pool)?));
            }
        }
        Ok(scanned)
    }

    /// The view whose delta may leave in pieces: when it is prepared, all others have accepted the batch. It is put last.
    fn last_to_leave(&self, scanned: &mut [(usize, Scanned)], pieces: bool) -> Option<usize> {
        let is_read = |view: usize| self.views.iter().flatten().any(|other| other.reads_view(view));
        let at =
            scanned.iter().rposition(|(view, _)| pieces && !is_read(*view) && self.view(*view).may_leave_early())?;
        scanned[at..].rotate_left(1);
        scanned.last().map(|(view, _)| *view)
    }

    fn unstage(&mut self, staged: &[Option<Staged>]) {
        for (table, batch) in self.tables.iter_mut().zip(staged) {
            if let (Some(table), Some(batch)) = (table, batch) {
                table.unstage(batch);
            }
        }
        self.interner.sweep();
    }

    /// Starts the reading of a view's full result.
    pub fn open(&self, view: usize) -> Cursor {
        self.view(view).open()
    }

    /// Starts the reading of the results with given values; see `View::lookup`.
    pub fn lookup(&mut self, view: usize, columns: &[usize], values: &[ArrayRef]) -> Result<Cursor, KernelError> {
        let target = self.views[view].as_mut().expect("the session knows which views there are");
        let cursor = target.lookup(columns, values, &mut self.interner);
        self.interner.sweep();
        cursor
    }

    /// The next rows of a view's full result.
    pub fn read(&mut self, view: usize, cursor: &mut Cursor, limit: usize) -> Result<Option<Flow>, KernelError> {
        let target = self.views[view].as_mut().expect("the session knows which views there are");
        target.read(cursor, limit, &mut context!(self))
    }
}

/// Puts something into the first free place.
fn put<T>(places: &mut Vec<Option<T>>, value: T) -> usize {
    let free = places.iter().position(Option::is_none).unwrap_or(places.len());
    if free == places.len() {
        places.push(None);
    }
    places[free] = Some(value);
    free
}
