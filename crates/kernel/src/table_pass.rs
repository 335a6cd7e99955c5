//! Tables that keep no rows: their changes pass to the atoms of the views as they come.
//!
//! What is checked of a batch is what can be judged by the batch alone: NULL where none is allowed, texts that are too long, copies that
//! leave 64 bits. Whether a deleted row was ever there is only noticed by a view that keeps it (`tree`, `leaf`).
//!
//! Representation: `Passing` has the batch's columns as expressions read them (texts with 32-bit offsets, CHAR padded, one NaN, no -0.0), in
//! chunks whose texts fit, and the rows of the batch that they stand for. It is not net by row: that would take a hash of every column of
//! every row, also of those that no view reads. Trees add rows up by themselves. Only an expression can tell the difference, by failing on
//! a row that the batch both brings and takes away; so when one fails, the batch is netted and scanned again (`Database::commit`).
//!
//! Invariant: a view that reads the table was created before its first change.
//!
//! Cost: nothing per row but for texts in other layouts, CHAR and VARCHAR, and floats.

use crate::codec::{self, normalised};
use crate::consolidate::RowCodec;
use crate::error::KernelError;
use crate::flow::{Chunk, Flow};
use crate::interner::Interner;
use crate::scan::internal;
use crate::table::{BaseTable, Change, Staged};
use crate::table_fit::copy;
use arrow_array::{Array, ArrayRef};
use everview_expr::DataType;
use std::ops::Range;

/// What has passed through a table that keeps no rows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passed {
    /// Copies inserted since the table was created: no view holds more of a row.
    inserted: u64,
    /// Commits that brought changes.
    batches: u64,
}

/// The changes of a batch, on their way to views.
#[derive(Debug)]
pub(crate) struct Passing {
    pub(crate) chunks: Vec<Chunk>,
    /// Per chunk the rows of the user's batch.
    rows: Vec<Rows>,
    inserted: u64,
    is_net: bool,
}

/// Which rows of the user's batch those of a chunk are.
#[derive(Debug)]
enum Rows {
    /// All from this one on.
    From(usize),
    /// These.
    At(Vec<u32>),
}

impl Passing {
    /// Whether nothing changes.
    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.iter().all(|chunk| chunk.weights.is_empty())
    }

    /// The row of the user's batch that a row of a chunk is.
    pub(crate) fn source(&self, chunk: usize, row: usize) -> usize {
        match &self.rows[chunk] {
            Rows::From(first) => first + row,
            Rows::At(rows) => rows[row] as usize,
        }
    }

    /// Adds equal rows up; returns whether that was still to be done.
    fn net(&mut self, types: &[DataType], interner: &mut Interner) -> Result<bool, KernelError> {
        if self.is_net {
            return Ok(false);
        }
        self.is_net = true;
        let flow = Flow { chunks: std::mem::take(&mut self.chunks), may_repeat: true };
        let net = RowCodec::new(types).net(&flow, interner)?;
        let mut picked = vec![(Vec::new(), Vec::new()); flow.chunks.len()];
        for ((chunk, position), weight) in net.firsts.into_iter().zip(net.weights) {
            picked[chunk].0.push(position);
            picked[chunk].1.push(weight);
        }
        let mut rows = Vec::with_capacity(picked.len());
        for (at, (positions, _)) in picked.iter().enumerate() {
            rows.push(Rows::At(positions.iter().map(|&row| self.source(at, row as usize) as u32).collect()));
        }
        self.rows = rows;
        let taken = flow.chunks.iter().zip(picked).map(|(chunk, (positions, weights))| chunk.take(positions, weights));
        self.chunks = taken.collect::<Result<_, _>>()?;
        Ok(true)
    }
}

impl Staged {
    /// Adds up equal rows of changes that pass a table; returns whether that was still to be done.
    pub(crate) fn net_passing(&mut self, base: &BaseTable, interner: &mut Interner) -> Result<bool, KernelError> {
        let types: Vec<DataType> = base.columns().iter().map(|c| c.data_type).collect();
        self.passing.as_mut().map_or(Ok(false), |passing| passing.net(&types, interner))
    }
}

impl BaseTable {
    /// Whether the table keeps its rows.
    pub fn keeps_rows(&self) -> bool {
        self.passed.is_none()
    }

    /// Refuses what needs the rows of a table that keeps none.
    pub fn require_rows(&self, what: &str) -> Result<(), KernelError> {
        if self.keeps_rows() { Ok(()) } else { Err(self.keeps_none(what)) }
    }

    /// Refuses a query over rows that are not kept.
    pub(crate) fn require_rows_for_query(&self) -> Result<(), KernelError> {
        let hint = "query a view that reads it, or create the table without keep = 'views'";
        self.require_rows("a query").map_err(|error| error.with_hint(hint))
    }

    fn keeps_none(&self, what: &str) -> KernelError {
        let message = format!("{what} needs the rows of table `{}`, which keeps none", self.name());
        KernelError::of_table("ROWS_NOT_KEPT", self.name(), message)
            .with_hint("create the table without keep = 'views'")
    }

    /// Refuses to build a view from rows that have passed.
    pub(crate) fn require_all_rows(&self, view: &str) -> Result<(), KernelError> {
        if self.passed.is_none_or(|passed| passed.batches == 0) {
            return Ok(());
        }
        let message = format!(
            "view `{view}` reads table `{}`, which keeps no rows and has received changes before the view was there",
            self.name()
        );
        Err(KernelError::of_table("ROWS_NOT_KEPT", self.name(), message)
            .with_hint("create all views before the first change, or the table without keep = 'views'"))
    }

    /// Checks a batch and brings its columns into the form that expressions read.
    pub(crate) fn stage_passing(
        &self,
        change: &Change,
        ignore_missing: bool,
        interner: &Interner,
    ) -> Result<Staged, KernelError> {
        let (columns, weights) = match change {
            Change::Rows(columns, weights) => (columns, weights),
            Change::Upsert { must_exist: false, .. } => return Err(self.keeps_none("an upsert")),
            Change::Upsert { .. } => return Err(self.keeps_none("an update")),
            Change::DeleteKeys(_) => return Err(self.keeps_none("a delete by key")),
        };
        if ignore_missing && weights.iter().any(|&weight| weight < 0) {
            return Err(self.keeps_none("on_missing=\"ignore\""));
        }
        let inserted = weights.iter().fold(0u64, |sum, &weight| sum.saturating_add(weight.max(0) as u64));
        let leaving = weights.iter().fold(0u64, |sum, &weight| sum.saturating_add(weight.min(0).unsigned_abs()));
        let before = self.passed.map_or(0, |passed| passed.inserted);
        self.check_total(inserted.saturating_add(leaving), before, "would have received")?;
        for (position, array) in columns.iter().enumerate() {
            self.check_not_null(position, array)?;
        }
        let (mut chunks, mut rows) = (Vec::new(), Vec::new());
        for range in self.cuts(columns, weights.len(), interner.chunk_bytes()) {
            let read = |(position, array): (usize, &ArrayRef)| self.as_read(position, array, &range);
            let columns = columns.iter().enumerate().map(read).collect::<Result<_, _>>()?;
            chunks.push(Chunk { columns, weights: weights[range.clone()].to_vec() });
            rows.push(Rows::From(range.start));
        }
        let mut staged = Staged::default();
        staged.passing = Some(Passing { chunks, rows, inserted, is_net: false });
        Ok(staged)
    }

    /// Some rows of a column, as it would be read if the table had kept it.
    fn as_read(&self, column: usize, array: &ArrayRef, rows: &Range<usize>) -> Result<ArrayRef, KernelError> {
        let data_type = self.columns()[column].data_type;
        let mut array = if rows.len() == array.len() { array.clone() } else { copy(array, rows)? };
        if *array.data_type() != data_type.arrow() {
            array = arrow_cast::cast(&array, &data_type.arrow()).map_err(|e| internal(&e))?;
        }
        match &self.fits[column] {
            Some(cast) => self.fit(column, cast, &array, rows.start),
            None => Ok(normalised(array)),
        }
    }

    /// Cuts a batch into ranges of rows whose texts, padded where they are, have so many bytes per column at most.
    fn cuts(&self, columns: &[ArrayRef], count: usize, most: u64) -> Vec<Range<usize>> {
        let texts = self.columns().iter().zip(columns).filter(|(column, _)| codec::is_text(column.data_type));
        let lengths = texts.map(|(column, array)| {
            let padding = if let DataType::Char(length) = column.data_type { u64::from(length) } else { 0 };
            let mut lengths = vec![padding; count];
            codec::map_bytes(array, <[u8]>::len, |row, length| lengths[row] += length as u64);
            lengths
        });
        let lengths: Vec<Vec<u64>> = lengths.filter(|lengths| lengths.iter().sum::<u64>() > most).collect();
        let (mut starts, mut filled) = (vec![0], vec![0; lengths.len()]);
        for row in 0..if lengths.is_empty() { 0 } else { count } {
            let is_full = filled.iter().zip(&lengths).any(|(&filled, lengths)| filled + lengths[row] > most);
            if is_full && starts.last() != Some(&row) {
                starts.push(row);
                filled.fill(0);
            }
            filled.iter_mut().zip(&lengths).for_each(|(filled, lengths)| *filled += lengths[row]);
        }
        starts.push(count);
        starts.windows(2).map(|ends| ends[0]..ends[1]).collect()
    }

    /// Notes that a staged batch passes, or that it was taken back.
    pub(crate) fn note_passing(&mut self, staged: &Staged, passes: bool) {
        if let (Some(passed), Some(passing)) = (&mut self.passed, &staged.passing)
            && !passing.is_empty()
        {
            if passes {
                passed.inserted += passing.inserted;
                passed.batches += 1;
            } else {
                passed.inserted -= passing.inserted;
                passed.batches -= 1;
            }
        }
    }
}
