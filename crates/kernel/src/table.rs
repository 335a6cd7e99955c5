//! Base tables: all columns of every row, with multiplicities, shared by the views of a session.
//!
//! A batch is *staged*: encoded, resolved to rows, netted by row, and judged on the state after it. A staged batch has reserved its new
//! rows but changed no multiplicity; it is then either committed or unstaged, which restores the table exactly.
//! Rows that a commit leaves without multiplicity are freed by `finish`, after the views have decoded their deltas.
//!
//! A table may also keep nothing: its changes then pass to the views as they come (see `table_pass`).
//!
//! Cost: one probe per row of the batch; one more where a primary key comes that is there already.

use crate::codec::{self, Place, normalised, words_of};
use crate::error::KernelError;
use crate::flow::text_ranges;
use crate::hash::hash_each;
use crate::interner::Interner;
use crate::pool::WordPool;
use crate::retention::{Moves, Retention, RetentionLog, Window};
use crate::row_store::{BLOCK, RowStore};
use crate::rows::NONE;
use crate::shape::{NullPlace, mask_words, null_place};
use crate::table_pass::{Passed, Passing};
use crate::trim::trim_buffer;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use everview_expr::{DataType, Expr};
use hashbrown::HashTable;
use std::ops::Range;

/// The most rows of a table, counting duplicates, and the most that one batch moves.
const MOST_ROWS: u64 = 1 << 62;

/// A column of a base table.
#[derive(Clone, Debug)]
pub struct BaseColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// Whether it can be NULL.
    pub nullable: bool,
    /// Its first word in a row.
    pub offset: usize,
}

impl Staged {
    /// The changes at these positions.
    #[must_use]
    pub fn select(&self, positions: impl Iterator<Item = usize> + Clone) -> Self {
        Self {
            rows: positions.clone().map(|i| self.rows[i]).collect(),
            weights: positions.clone().map(|i| self.weights[i]).collect(),
            sources: positions.map(|i| self.sources[i]).collect(),
            ..Self::default()
        }
    }
}

/// What is asked of a table in one commit.
#[derive(Debug)]
pub enum Change {
    /// Rows (columns in the table's order) with the change of multiplicity of each.
    Rows(Vec<ArrayRef>, Vec<i64>),
    /// Rows that replace those with the same primary key; of several with one key the last counts.
    Upsert {
        /// The rows.
        columns: Vec<ArrayRef>,
        /// Whether every key must be there already.
        must_exist: bool,
    },
    /// Primary keys (columns in the key's order) whose rows are deleted.
    DeleteKeys(Vec<ArrayRef>),
}

/// A staged batch: the net change of each row concerned.
#[derive(Debug, Default)]
pub struct Staged {
    /// The rows.
    pub rows: Vec<u32>,
    /// The change of multiplicity of each.
    pub weights: Vec<i64>,
    /// The row of the user's batch each came from.
    pub sources: Vec<u32>,
    /// Columns of the user's batch, if its rows are these, one by one: what expressions read of them is what would be decoded of the rows.
    /// Texts are left out: in the batch they may be longer than columns can be, or not padded.
    pub(crate) columns: Vec<Option<ArrayRef>>,
    /// Rows come that may have the primary key of others, or are there more than once.
    may_share_keys: bool,
    /// Rows that the commit left without multiplicity.
    emptied: Vec<u32>,
    /// For windows: the copies that come, in the order of the batch.
    pub(crate) arrivals: Vec<(u32, i64)>,
    /// For windows: copies to delete that are not there because they may have expired.
    pub(crate) missed: u64,
    pub(crate) moves: Moves,
    log: Option<RetentionLog>,
    /// The changes of a table that keeps nothing; there are no rows then.
    pub(crate) passing: Option<Passing>,
}

impl Staged {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.passing.as_ref().is_none_or(Passing::is_empty)
    }
}

/// A base table.
#[derive(Debug)]
pub struct BaseTable {
    name: String,
    columns: Vec<BaseColumn>,
    mask: Option<usize>,
    width: usize,
    rows: RowStore,
    /// The positions of the primary key's columns.
    key: Vec<usize>,
    /// The words of a row that are the primary key.
    key_words: Vec<usize>,
    text_words: Vec<usize>,
    /// The rows of a batch as words, kept for its memory.
    matrix: Vec<u64>,
    /// Casts that pad CHAR(n) and check VARCHAR(n).
    pub(crate) fits: Vec<Option<Expr>>,
    /// Sum of the multiplicities.
    total: i64,
    pub(crate) retention: Option<Retention>,
    /// Of a table that keeps no rows, what has passed.
    pub(crate) passed: Option<Passed>,
}

impl BaseTable {
    /// A table that keeps no rows: its changes pass to the views.
    pub fn passing(name: String, columns: &[(String, DataType, bool)]) -> Result<Self, KernelError> {
        Ok(Self { passed: Some(Passed::default()), ..Self::new(name, columns, &[], None)? })
    }

    /// An empty table; `key` lists the positions of the primary key's columns.
    pub fn new(
        name: String,
        columns: &[(String, DataType, bool)],
        key: &[usize],
        window: Option<Window>,
    ) -> Result<Self, KernelError> {
        let mut width = 0;
        let columns: Vec<BaseColumn> = columns
            .iter()
            .map(|(name, data_type, nullable)| BaseColumn {
                name: name.clone(),
                data_type: *data_type,
                nullable: *nullable,
                offset: (width, width += words_of(*data_type)).0,
            })
            .collect();
        let mask = columns.iter().any(|c| c.nullable).then_some(width);
        let width = width + mask.map_or(0, |_| mask_words(columns.len()));
        let words = |&column: &usize| {
            let first = columns[column].offset;
            first..first + words_of(columns[column].data_type)
        };
        let key_words: Vec<usize> = key.iter().flat_map(words).collect();
        let fits = columns.iter().map(fit).collect::<Result<_, _>>()?;
        Ok(Self {
            rows: RowStore::new(width, key_words.clone()),
            key: key.to_vec(),
            key_words,
            matrix: Vec::new(),
            text_words: columns.iter().filter(|c| codec::is_text(c.data_type)).map(|c| c.offset).collect(),
            name,
            mask,
            width,
            fits,
            columns,
            total: 0,
            retention: window.map(Retention::new),
            passed: None,
        })
    }

    /// The table's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The columns.
    pub fn columns(&self) -> &[BaseColumn] {
        &self.columns
    }

    /// The rows.
    pub(crate) fn rows(&self) -> &RowStore {
        &self.rows
    }

    /// The words of a row.
    #[inline]
    pub fn row(&self, row: u32) -> &[u64] {
        self.rows.values(row)
    }

    /// Words per row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The NULL bit of a column, if it can be NULL.
    #[inline]
    pub fn null(&self, column: usize) -> Option<NullPlace> {
        self.mask.filter(|_| self.columns[column].nullable).map(|mask| null_place(mask, column))
    }

    /// Whether a column is NULL in a row with these words.
    #[inline]
    pub(crate) fn is_null(&self, words: &[u64], column: usize) -> bool {
        self.null(column).is_some_and(|(at, bit)| words[at] >> bit & 1 == 1)
    }

    /// Rows held, counting duplicates.
    pub fn total(&self) -> i64 {
        self.total
    }

    /// Distinct rows held.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether no row is held.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 0
    }

    /// Bytes held, without texts.
    pub fn bytes(&self) -> usize {
        self.rows.bytes()
    }

    /// All rows as a staged batch, for views created on a loaded table; those of a window run by run in order of expiry.
    pub fn everything(&self) -> Staged {
        let (rows, weights): (Vec<u32>, Vec<i64>) = if let Some(retention) = &self.retention {
            retention.runs().unzip()
        } else {
            let held = self.rows.ids().filter(|&row| self.rows.weight(row) > 0);
            held.map(|row| (row, self.rows.weight(row))).unzip()
        };
        let sources = (0..rows.len() as u32).collect();
        Staged { rows, weights, sources, ..Staged::default() }
    }

    /// Some rows, each once and with all of its copies.
    pub(crate) fn some(&self, rows: Vec<u32>) -> Staged {
        let weights = rows.iter().map(|&row| self.rows.weight(row)).collect();
        let sources = (0..rows.len() as u32).collect();
        Staged { rows, weights, sources, ..Staged::default() }
    }

    /// The positions of the primary key's columns.
    pub(crate) fn key(&self) -> &[usize] {
        &self.key
    }

    /// Cuts rows into ranges whose texts fit into columns.
    pub fn ranges(&self, rows: &[u32], interner: &Interner) -> Vec<Range<usize>> {
        text_ranges(rows.len(), &self.text_words, |&at, i| self.rows.value(rows[i], at), interner)
    }

    /// One column of some rows, whose texts must fit; see `ranges`.
    pub fn decode(&self, column: usize, rows: &[u32], interner: &Interner, pool: &WordPool) -> ArrayRef {
        let BaseColumn { data_type, offset, .. } = self.columns[column];
        let word = |at: usize| {
            let mut words = pool.take();
            words.extend(rows.iter().map(|&row| self.rows.value(row, at)));
            words
        };
        let nulls = self.null(column).map(|(mask, bit)| {
            NullBuffer::new(BooleanBuffer::collect_bool(rows.len(), |i| self.rows.value(rows[i], mask) >> bit & 1 == 0))
        });
        let high = (words_of(data_type) == 2).then(|| word(offset + 1));
        codec::decode(data_type, word(offset), high, nulls.filter(|n| n.null_count() > 0), interner, pool)
    }

    /// Encodes, nets and checks a batch. On an error the table is as it was.
    pub fn stage(
        &mut self,
        change: &Change,
        ignore_missing: bool,
        interner: &mut Interner,
    ) -> Result<Staged, KernelError> {
        if self.passed.is_some() {
            return self.stage_passing(change, ignore_missing, interner);
        }
        let mut staged = Staged::default();
        self.check_size(change)?;
        let outcome = match change {
            Change::Rows(columns, weights) => self.stage_rows(columns, weights, &mut staged, interner),
            Change::Upsert { columns, must_exist } => self.stage_upsert(columns, *must_exist, &mut staged, interner),
            Change::DeleteKeys(columns) => self.stage_key_deletes(columns, ignore_missing, &mut staged, interner),
        };
        for &row in &staged.rows {
            self.rows.set_stamp(row, NONE);
        }
        let outcome = outcome.and_then(|()| self.check(&mut staged, ignore_missing, interner));
        if let Err(error) = outcome.and_then(|()| self.expire(&mut staged)) {
            self.drop_new_rows(&staged);
            return Err(error);
        }
        self.drop_unchanged(&mut staged);
        if let Err(error) = self.check_keys(&staged, interner) {
            self.drop_new_rows(&staged);
            return Err(error);
        }
        if let Change::Rows(columns, weights) = change
            && weights.len() == staged.rows.len()
            && self.retention.is_none()
        {
            staged.columns = columns.iter().enumerate().map(|(i, array)| self.as_decoded(i, array)).collect();
        }
        Ok(staged)
    }

    /// A column as it would be decoded, unless it is one of texts.
    fn as_decoded(&self, column: usize, array: &ArrayRef) -> Option<ArrayRef> {
        let data_type = self.columns[column].data_type;
        let is_same = !codec::is_text(data_type) && *array.data_type() == data_type.arrow();
        is_same.then(|| normalised(array.clone()))
    }

    /// Refuses batches after which multiplicities could leave 64 bits: then none does, in this table or in a view.
    fn check_size(&self, change: &Change) -> Result<(), KernelError> {
        let Change::Rows(_, weights) = change else { return Ok(()) };
        let moved = weights.iter().fold(0u64, |sum, weight| sum.saturating_add(weight.unsigned_abs()));
        self.check_total(moved, self.total.unsigned_abs(), "would hold")
    }

    /// Refuses more copies than are ever counted in 64 bits.
    pub(crate) fn check_total(&self, coming: u64, there: u64, what: &str) -> Result<(), KernelError> {
        if coming.saturating_add(there) <= MOST_ROWS {
            return Ok(());
        }
        let message = format!("table `{}` {what} more than 2^62 rows", self.name);
        Err(KernelError::of_table("TOO_MANY_ROWS", &self.name, message).with_hint("check the values of _multiplicity"))
    }

    fn stage_rows(
        &mut self,
        columns: &[ArrayRef],
        weights: &[i64],
        staged: &mut Staged,
        interner: &mut Interner,
    ) -> Result<(), KernelError> {
        let mut matrix = std::mem::take(&mut self.matrix);
        let encoded = self.encode_rows(columns, &mut matrix, interner);
        if encoded.is_ok() {
            self.rows.reserve(weights.iter().filter(|&&weight| weight > 0).count());
            let mut found = Vec::with_capacity(weights.len().min(BLOCK));
            for (block, (rows, weights)) in matrix.chunks(BLOCK * self.width).zip(weights.chunks(BLOCK)).enumerate() {
                self.rows.find_block(rows, &mut found);
                for (at, (&(row, hash), &weight)) in found.iter().zip(weights).enumerate() {
                    let (row, is_beside) = match row {
                        NONE => self.rows.find_or_insert_hashed(&rows[at * self.width..(at + 1) * self.width], hash),
                        row => (row, false),
                    };
                    staged.may_share_keys |= is_beside;
                    self.pend(row, weight, (block * BLOCK + at) as u32, staged);
                }
            }
        }
        self.matrix = matrix;
        encoded
    }

    /// Adds to the pending change of the row with these words.
    fn pend_words(&mut self, words: &[u64], weight: i64, source: u32, staged: &mut Staged) {
        let (row, is_beside) = self.rows.find_or_insert(words);
        staged.may_share_keys |= is_beside;
        self.pend(row, weight, source, staged);
    }

    /// Adds to the pending change of a row.
    #[inline]
    fn pend(&mut self, row: u32, weight: i64, source: u32, staged: &mut Staged) {
        if weight > 0 && self.retention.is_some() {
            staged.arrivals.push((row, weight));
        }
        let stamp = self.rows.stamp(row);
        if stamp == NONE {
            self.rows.set_stamp(row, staged.rows.len() as u32);
            staged.rows.push(row);
            staged.weights.push(weight);
            staged.sources.push(source);
        } else {
            staged.weights[stamp as usize] += weight;
            if weight < 0 {
                staged.sources[stamp as usize] = source;
            }
        }
    }

    fn stage_upsert(
        &mut self,
        columns: &[ArrayRef],
        must_exist: bool,
        staged: &mut Staged,
        interner: &mut Interner,
    ) -> Result<(), KernelError> {
        if self.key.is_empty() {
            return Err(self.needs_key("an upsert"));
        }
        let mut matrix = Vec::new();
        self.encode_rows(columns, &mut matrix, interner)?;
        let key_words = self.key_words.clone();
        let hash_key = |words: &[u64]| hash_each(key_words.iter().map(|&word| words[word]));
        let mut seen: HashTable<usize> = HashTable::new();
        let width = self.width;
        let row_words = |i: usize| &matrix[i * width..(i + 1) * width];
        let mut kept = Vec::new();
        for i in (0..columns.first().map_or(0, Array::len)).rev() {
            let hash = hash_key(row_words(i));
            let same = |&other: &usize| key_words.iter().all(|&w| row_words(other)[w] == row_words(i)[w]);
            if seen.find(hash, same).is_none() {
                seen.insert_unique(hash, i, |&other| hash_key(row_words(other)));
                kept.push(i);
            }
        }
        for &i in kept.iter().rev() {
            let words = row_words(i);
            if let Some(old) = self.find_by_key(words) {
                self.pend(old, -1, i as u32, staged);
            } else if must_exist {
                return Err(self
                    .no_such_key(words, i, interner)
                    .with_hint("use upsert to insert rows that are not there"));
            }
            self.pend_words(words, 1, i as u32, staged);
        }
        Ok(())
    }

    fn stage_key_deletes(
        &mut self,
        columns: &[ArrayRef],
        ignore_missing: bool,
        staged: &mut Staged,
        interner: &mut Interner,
    ) -> Result<(), KernelError> {
        let matrix = self.encode_keys(columns, "a delete by key", interner)?;
        for i in 0..columns.first().map_or(0, Array::len) {
            let words = &matrix[i * self.width..(i + 1) * self.width];
            match self.find_by_key(words) {
                Some(old) if self.rows.stamp(old) == NONE => self.pend(old, -1, i as u32, staged),
                Some(_) => {} // the key is named twice
                None if ignore_missing => {}
                None if self.key_may_have_expired() => staged.missed += 1,
                None => {
                    return Err(self
                        .no_such_key(words, i, interner)
                        .with_hint("pass on_missing=\"ignore\" to skip deletes of absent rows"));
                }
            }
        }
        Ok(())
    }

    fn no_such_key(&self, words: &[u64], row: usize, interner: &Interner) -> KernelError {
        let text = self.describe(words, &self.key, interner);
        KernelError::in_row("ROW_NOT_FOUND", &self.name, row, format!("there is no row with the key {text}"))
    }

    fn needs_key(&self, what: &str) -> KernelError {
        let message = format!("{what} needs a primary key and table `{}` has none", self.name);
        KernelError::of_table("NO_PRIMARY_KEY", &self.name, message)
            .with_hint("declare PRIMARY KEY (...) in CREATE TABLE, or pass whole rows")
    }

    /// Rows in which only the words of the primary key are set.
    pub(crate) fn encode_keys(
        &self,
        columns: &[ArrayRef],
        what: &str,
        interner: &mut Interner,
    ) -> Result<Vec<u64>, KernelError> {
        if self.key.is_empty() {
            return Err(self.needs_key(what));
        }
        let mut matrix = vec![0; columns.first().map_or(0, Array::len) * self.width];
        for (array, &column) in columns.iter().zip(&self.key) {
            self.check_not_null(column, array)?;
            let spec = &self.columns[column];
            let place = Place { stride: self.width, offset: spec.offset, null: None };
            self.encode_fitted(column, array, &mut matrix, place, interner)?;
        }
        Ok(matrix)
    }

    /// Writes whole rows into a matrix, whatever it had.
    pub(crate) fn encode_rows(
        &self,
        columns: &[ArrayRef],
        matrix: &mut Vec<u64>,
        interner: &mut Interner,
    ) -> Result<(), KernelError> {
        let words = columns.first().map_or(0, Array::len) * self.width;
        if columns.iter().all(|array| array.logical_null_count() == 0) {
            // every word is written but for the masks
            matrix.resize(words, 0);
            if let Some(mask) = self.mask {
                matrix.chunks_exact_mut(self.width).for_each(|row| row[mask..].fill(0));
            }
        } else {
            matrix.clear();
            matrix.resize(words, 0);
        }
        for (position, array) in columns.iter().enumerate() {
            let spec = &self.columns[position];
            self.check_not_null(position, array)?;
            let place = Place { stride: self.width, offset: spec.offset, null: self.null(position) };
            self.encode_fitted(position, array, matrix, place, interner)?;
        }
        Ok(())
    }

    pub(crate) fn check_not_null(&self, column: usize, array: &ArrayRef) -> Result<(), KernelError> {
        let Some(nulls) = array.logical_nulls().filter(|n| n.null_count() > 0 && !self.columns[column].nullable) else {
            return Ok(());
        };
        let row = (0..array.len()).find(|&i| nulls.is_null(i)).expect("there is a NULL");
        let name = &self.columns[column].name;
        Err(KernelError::in_row(
            "NULL_NOT_ALLOWED",
            &self.name,
            row,
            format!("column `{name}` is NOT NULL and got NULL"),
        ))
    }

    /// Judges the multiplicities after the batch.
    fn check(&self, staged: &mut Staged, ignore_missing: bool, interner: &Interner) -> Result<(), KernelError> {
        for i in 0..staged.rows.len() {
            let row = staged.rows[i];
            let before = self.rows.weight(row);
            staged.may_share_keys |= before + staged.weights[i] > 1;
            if before + staged.weights[i] >= 0 {
                continue;
            }
            let missing = -(before + staged.weights[i]);
            if !ignore_missing && self.may_have_expired(row) {
                staged.missed += missing as u64;
            } else if !ignore_missing {
                let columns: Vec<usize> = (0..self.columns.len()).collect();
                let text = self.describe(self.rows.values(row), &columns, interner);
                let source = staged.sources[i] as usize;
                let message = format!("cannot delete {text}: {missing} more than the table holds");
                return Err(KernelError::in_row("ROW_NOT_FOUND", &self.name, source, message)
                    .with_hint("pass on_missing=\"ignore\" to skip deletes of absent rows"));
            }
            staged.weights[i] = -before;
        }
        Ok(())
    }

    /// Drops what nets to nothing.
    fn drop_unchanged(&mut self, staged: &mut Staged) {
        if !staged.weights.contains(&0) {
            return;
        }
        let mut kept = 0;
        for i in 0..staged.rows.len() {
            let row = staged.rows[i];
            if staged.weights[i] != 0 {
                (staged.rows[kept], staged.weights[kept], staged.sources[kept]) =
                    (row, staged.weights[i], staged.sources[i]);
                kept += 1;
            } else if self.rows.weight(row) == 0 {
                self.rows.remove(row);
            }
        }
        staged.rows.truncate(kept);
        staged.weights.truncate(kept);
        staged.sources.truncate(kept);
    }

    /// Refuses two rows with one key.
    fn check_keys(&mut self, staged: &Staged, interner: &Interner) -> Result<(), KernelError> {
        if self.key.is_empty() || !staged.may_share_keys {
            return Ok(());
        }
        for (i, &row) in staged.rows.iter().enumerate() {
            self.rows.set_stamp(row, i as u32);
        }
        let refused = (0..staged.rows.len()).find_map(|i| self.with_same_key(staged, i).map(|other| (i, other)));
        for &row in &staged.rows {
            self.rows.set_stamp(row, NONE);
        }
        let Some((at, other)) = refused else { return Ok(()) };
        let text = self.describe(self.rows.values(staged.rows[at]), &self.key, interner);
        let source = staged.sources[at] as usize;
        Err(if self.rows.weight(other) > 0 {
            let message = format!("a row with the primary key {text} is there already");
            KernelError::in_row("DUPLICATE_KEY", &self.name, source, message)
                .with_hint("use upsert to replace rows by key, or delete the old row in the same batch")
        } else {
            let message = format!("the batch has the primary key {text} twice");
            KernelError::in_row("DUPLICATE_KEY", &self.name, source, message)
                .with_hint("pass one row per key, or use upsert: of several rows with one key the last counts")
        })
    }

    /// A row that stays or comes before the `i`-th of a staged batch and has its key, where that comes; itself, if it is there twice.
    fn with_same_key(&self, staged: &Staged, i: usize) -> Option<u32> {
        let row = staged.rows[i];
        let before = self.rows.weight(row);
        if before + staged.weights[i] > 1 {
            return Some(row);
        }
        let is_there = |&other: &u32| {
            let (weight, stamp) = (self.rows.weight(other), self.rows.stamp(other));
            if weight > 0 { stamp == NONE || weight + staged.weights[stamp as usize] > 0 } else { stamp < i as u32 }
        };
        if before > 0 { None } else { self.rows.with_key(self.rows.values(row)).find(is_there) }
    }

    /// The row with the primary key found in these words (of a whole row).
    pub(crate) fn find_by_key(&self, words: &[u64]) -> Option<u32> {
        self.rows.with_key(words).find(|&row| self.rows.weight(row) > 0)
    }

    fn drop_new_rows(&mut self, staged: &Staged) {
        for &row in &staged.rows {
            if self.rows.weight(row) == 0 {
                self.rows.remove(row);
            }
        }
    }

    /// Takes a staged batch back before it was committed.
    pub fn unstage(&mut self, staged: &Staged) {
        self.drop_new_rows(staged);
    }

    /// Commits a staged batch; `finish` must follow.
    pub fn commit(&mut self, staged: &mut Staged, interner: &mut Interner) {
        self.note_passing(staged, true);
        staged.log = self.retention.as_mut().map(|retention| retention.commit(&staged.moves));
        self.add_weights(staged, 1, interner);
    }

    /// Undoes a commit that `finish` has not sealed; the batch is staged again afterwards.
    pub fn uncommit(&mut self, staged: &mut Staged, interner: &mut Interner) {
        self.note_passing(staged, false);
        if let (Some(retention), Some(log)) = (&mut self.retention, staged.log.take()) {
            retention.uncommit(&log);
        }
        self.add_weights(staged, -1, interner);
    }

    fn add_weights(&mut self, staged: &mut Staged, sign: i64, interner: &mut Interner) {
        staged.emptied.clear();
        for (&row, &weight) in staged.rows.iter().zip(&staged.weights) {
            let before = self.rows.weight(row);
            let after = before + sign * weight;
            self.rows.set_weight(row, after);
            self.total += sign * weight;
            if after == 0 {
                staged.emptied.push(row);
            }
            // texts of rows that leave stay until `finish`: deltas still speak of them
            let references = if before == 0 && sign > 0 {
                1
            } else if after == 0 && sign < 0 {
                -1
            } else {
                continue;
            };
            for &word in &self.text_words {
                interner.refer(self.rows.value(row, word) as u32, references);
            }
        }
    }

    /// Frees the rows that the committed batch left without multiplicity.
    pub fn finish(&mut self, staged: &Staged, interner: &mut Interner) {
        for &row in &staged.emptied {
            for &word in &self.text_words {
                interner.refer(self.rows.value(row, word) as u32, -1);
            }
            self.rows.remove(row);
        }
    }

    /// Gives memory back if there is much to give.
    pub fn give_back(&mut self) {
        self.rows.give_back();
        trim_buffer(&mut self.matrix);
    }

    /// Gives up the texts of the rows held; the table is dropped afterwards.
    pub fn release_texts(&self, interner: &mut Interner) {
        for row in self.rows.ids() {
            self.text_words.iter().for_each(|&word| interner.refer(self.rows.value(row, word) as u32, -1));
        }
    }

    fn describe(&self, words: &[u64], columns: &[usize], interner: &Interner) -> String {
        let parts = columns.iter().map(|&column| {
            let spec = &self.columns[column];
            let is_null = self.is_null(words, column);
            format!("{}={}", spec.name, codec::value_text(spec.data_type, &words[spec.offset..], is_null, interner))
        });
        format!("({})", parts.collect::<Vec<_>>().join(", "))
    }
}

fn fit(column: &BaseColumn) -> Result<Option<Expr>, KernelError> {
    if !matches!(column.data_type, DataType::Char(_) | DataType::VarChar(_)) {
        return Ok(None);
    }
    let target = column.data_type;
    let json = format!(r#"{{"op":"cast","args":[{{"op":"column","index":0,"type":"string"}}],"type":"{target}"}}"#);
    serde_json::from_str(&json).map(Some).map_err(|e| KernelError::new("INTERNAL_ERROR", e.to_string()))
}
