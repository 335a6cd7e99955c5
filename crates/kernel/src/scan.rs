//! From a table's changes to an atom's: filter, project, encode.
//!
//! Plain columns are copied as words from the base rows. Expressions read the columns of the batch, or what is decoded of the base rows
//! where these are other rows or other texts; only rows that pass the filter reach the other expressions. Rows that bind NULL where the plan says that they cannot match are dropped.

use crate::codec::{self, Place, encode, words_of};
use crate::error::KernelError;
use crate::flow::{Chunk, Flow, in_row_of, record_batch, schema_of, text_ranges};
use crate::hash::{copy_words, push_words};
use crate::interner::Interner;
use crate::plan::{Atom, Core};
use crate::pool::WordPool;
use crate::shape::{NullPlace, row_layout};
use crate::table::{BaseTable, Staged};
use crate::table_pass::Passing;
use crate::tree::AtomChanges;
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, NullArray, RecordBatch};
use arrow_schema::SchemaRef;
use arrow_select::filter::FilterBuilder;
use everview_expr::{DataType, EvalError, Expr};
use std::sync::Arc;

/// Where an atom's column comes from.
#[derive(Debug)]
enum Binding {
    /// Words copied from the base row: first word, and the mask word and bit if it can be NULL there.
    Copied { from: usize, words: usize, null: Option<NullPlace> },
    /// A computed column.
    Computed(Expr),
}

#[derive(Debug)]
struct ScanColumn {
    binding: Binding,
    data_type: DataType,
    /// Its place in the atom's rows.
    place: Place,
    /// Rows where it is NULL are dropped; always so where the place has no room for NULL.
    drops_null: bool,
}

/// The rows a scan works on, and what was decoded of them.
struct Input<'a> {
    base: &'a BaseTable,
    rows: &'a [u32],
    sources: &'a [u32],
    batch: Option<&'a RecordBatch>,
}

/// The scan of one atom.
#[derive(Debug)]
pub struct AtomScan {
    /// The table read.
    pub table: usize,
    filter: Option<Expr>,
    columns: Vec<ScanColumn>,
    factors: Vec<Expr>,
    /// Columns of the table that expressions read, and those among them that are read of rows which pass the filter.
    read: Vec<usize>,
    read_beyond: Vec<usize>,
    schema: SchemaRef,
    schema_beyond: SchemaRef,
    width: usize,
    /// The atom's rows are the table's, word for word.
    verbatim: bool,
    /// Words of computed texts, which the atom's rows keep alive.
    computed_texts: Vec<usize>,
    keeps_rows: bool,
}

impl AtomScan {
    /// Compiles the scan of an atom of a core.
    pub fn new(core: &Core, atom: &Atom, table: usize, base: &BaseTable) -> Self {
        let shape = core.shape();
        let variables: Vec<usize> = atom.columns.iter().map(|c| c.variable).collect();
        let layout = row_layout(&variables, &shape.variables);
        let columns: Vec<ScanColumn> = atom
            .columns
            .iter()
            .enumerate()
            .map(|(position, column)| {
                let data_type = core.variables[column.variable].data_type;
                let null = layout.null(position).filter(|_| shape.variables[column.variable].nullable);
                let place = Place { stride: layout.width, offset: layout.offsets[position], null };
                let plain = column.expression.as_column();
                let binding = plain.map_or_else(
                    || Binding::Computed(column.expression.clone()),
                    |source| Binding::Copied {
                        from: base.columns()[source].offset,
                        words: words_of(data_type),
                        null: base.null(source),
                    },
                );
                ScanColumn { binding, data_type, place, drops_null: null.is_none() || core.drops_null(column) }
            })
            .collect();
        let factors: Vec<Expr> = atom.factors.iter().flatten().cloned().collect();
        let read_beyond = columns_read(computed_by(&columns).chain(&factors));
        let read = columns_read(computed_by(&columns).chain(&factors).chain(&atom.filter));
        let source: Vec<(String, DataType)> = base.columns().iter().map(|c| (c.name.clone(), c.data_type)).collect();
        let verbatim = base.width() == layout.width
            && columns.len() == base.columns().len()
            && columns.iter().enumerate().all(|(i, c)| {
                matches!(c.binding, Binding::Copied { from, null, .. }
                    if from == c.place.offset && base.columns()[i].offset == from && null == c.place.null
                        && (null.is_none() || !c.drops_null))
            });
        let copies = |source: usize| {
            let from = base.columns()[source].offset;
            columns.iter().any(|c| matches!(c.binding, Binding::Copied { from: copied, .. } if copied == from))
        };
        let keeps_rows = atom.filter.is_none() && (0..base.columns().len()).all(copies);
        let computed_texts = columns
            .iter()
            .filter(|c| matches!(c.binding, Binding::Computed(_)) && codec::is_text(c.data_type))
            .map(|c| c.place.offset)
            .collect();
        Self {
            table,
            filter: atom.filter.clone(),
            schema: schema_with(&source, &read),
            schema_beyond: schema_with(&source, &read_beyond),
            columns,
            factors,
            read,
            read_beyond,
            width: layout.width,
            verbatim,
            computed_texts,
            keeps_rows,
        }
    }

    /// Whether every row of the table is a row of its own of the atom: all columns are kept, and no row is filtered out. (With a filter
    /// this would be so, too, but the atom may then be much smaller than the table.)
    pub fn keeps_rows(&self) -> bool {
        self.keeps_rows
    }

    /// The condition on rows of the table.
    pub fn filter(&self) -> Option<&Expr> {
        self.filter.as_ref()
    }

    /// Words of the atom's rows that hold texts of its own.
    pub fn computed_texts(&self) -> &[usize] {
        &self.computed_texts
    }

    /// The atom's changes for a table's staged changes.
    pub fn scan(
        &self,
        base: &BaseTable,
        staged: &Staged,
        interner: &mut Interner,
        pool: &WordPool,
    ) -> Result<AtomChanges, KernelError> {
        let count = staged.rows.len();
        let mut changes = AtomChanges { words: Vec::with_capacity(count * self.width), ..AtomChanges::default() };
        let texts: Vec<usize> = self
            .read
            .iter()
            .filter(|&&c| codec::is_text(base.columns()[c].data_type))
            .map(|&c| base.columns()[c].offset)
            .collect();
        for range in text_ranges(count, &texts, |&at, i| base.row(staged.rows[i])[at], interner) {
            if range.len() == count {
                return self.scan_part(base, staged, changes, interner, pool);
            }
            changes = self.scan_part(base, &staged.select(range), changes, interner, pool)?;
        }
        Ok(changes)
    }

    /// Adds the changes for a part of a table's, whose texts fit into columns.
    fn scan_part(
        &self,
        base: &BaseTable,
        staged: &Staged,
        mut changes: AtomChanges,
        interner: &mut Interner,
        pool: &WordPool,
    ) -> Result<AtomChanges, KernelError> {
        let selected;
        let (mut rows, mut weights, mut sources) = (&staged.rows, &staged.weights, &staged.sources);
        let mut batch = None;
        if !self.read.is_empty() || self.filter.is_some() || self.reads_beyond_filter() {
            batch = Some(self.decode(base, staged, interner, pool)?);
        }
        if let (Some(filter), Some(all)) = (&self.filter, &batch) {
            let kept =
                filter.evaluate_predicate(all).map_err(|e| KernelError::in_expression(e, base.name(), sources))?;
            if kept.true_count() < rows.len() {
                selected = staged.select(kept.values().set_indices().collect::<Vec<_>>().iter().copied());
                (rows, weights, sources) = (&selected.rows, &selected.weights, &selected.sources);
                if self.reads_beyond_filter() {
                    batch = Some(filtered(all.columns(), &kept, &self.read_beyond, &self.schema_beyond)?);
                }
            }
        }
        let first = changes.weights.len();
        changes.weights.extend_from_slice(weights);
        if self.keeps_rows {
            changes.sources.extend_from_slice(rows);
        }
        let mut dropped = Vec::new();
        if self.verbatim {
            for &row in rows {
                push_words(&mut changes.words, base.row(row));
            }
        } else {
            changes.words.resize((first + rows.len()) * self.width, 0);
            let input = Input { base, rows, sources, batch: batch.as_ref() };
            for column in &self.columns {
                Self::bind(column, &input, &mut changes.words[first * self.width..], &mut dropped, interner)?;
            }
        }
        if let Some(batch) = batch.as_ref().filter(|_| !self.factors.is_empty()) {
            let blame = |e: EvalError| KernelError::in_expression(e, base.name(), sources);
            weigh(&self.factors, batch, weights, &mut changes.factors, &blame)?;
        }
        if !dropped.is_empty() {
            for row in &mut dropped {
                *row += first;
            }
            drop_rows(&mut changes, &mut dropped, self.width, self.factors.len());
        }
        Ok(changes)
    }

    fn reads_beyond_filter(&self) -> bool {
        !self.factors.is_empty() || self.columns.iter().any(|c| matches!(c.binding, Binding::Computed(_)))
    }

    fn decode(
        &self,
        base: &BaseTable,
        staged: &Staged,
        interner: &Interner,
        pool: &WordPool,
    ) -> Result<RecordBatch, KernelError> {
        let column = |i: usize| -> ArrayRef {
            if self.read.binary_search(&i).is_err() {
                Arc::new(NullArray::new(staged.rows.len()))
            } else if let Some(Some(array)) = staged.columns.get(i) {
                array.clone()
            } else {
                base.decode(i, &staged.rows, interner, pool)
            }
        };
        record_batch(&self.schema, (0..base.columns().len()).map(column).collect(), staged.rows.len())
    }

    /// Writes one column of the atom's rows; notes the rows to be dropped because it is NULL.
    fn bind(
        column: &ScanColumn,
        input: &Input,
        words: &mut [u64],
        dropped: &mut Vec<usize>,
        interner: &mut Interner,
    ) -> Result<(), KernelError> {
        let Input { base, rows, sources, batch } = *input;
        let Place { stride, offset, null: to } = column.place;
        match &column.binding {
            &Binding::Copied { from, words: count, null } => {
                for (i, &row) in rows.iter().enumerate() {
                    let source = base.row(row);
                    let target = &mut words[i * stride..(i + 1) * stride];
                    copy_words(&mut target[offset..offset + count], &source[from..from + count]);
                    if null.is_some_and(|(mask, bit)| source[mask] >> bit & 1 == 1) {
                        match to.filter(|_| !column.drops_null) {
                            Some((mask, bit)) => target[mask] |= 1 << bit,
                            None => dropped.push(i),
                        }
                    }
                }
            }
            Binding::Computed(expression) => {
                let batch = batch.expect("decoded for computed columns");
                let array =
                    expression.evaluate(batch).map_err(|e| KernelError::in_expression(e, base.name(), sources))?;
                if column.drops_null && array.null_count() > 0 {
                    dropped.extend((0..array.len()).filter(|&i| array.is_null(i)));
                }
                encode(&array, column.data_type, words, column.place, interner);
            }
        }
        Ok(())
    }
}

/// A column of an atom that reads rows as Arrow columns.
#[derive(Clone, Debug)]
struct RowColumn {
    expression: Expr,
    data_type: DataType,
    place: Place,
    drops_null: bool,
}

/// The scan of an atom that reads rows as Arrow columns: those of a stage, of a view, or of a table that keeps none.
#[derive(Clone, Debug)]
pub struct RowScan {
    filter: Option<Expr>,
    columns: Vec<RowColumn>,
    factors: Vec<Expr>,
    schema: SchemaRef,
    /// The columns of the source that are read of rows which pass the filter, and the schema in which all others are left out.
    read: Vec<usize>,
    read_schema: SchemaRef,
    width: usize,
    texts: Vec<usize>,
}

/// Says whose fault an error of an expression is: it failed on this row of this chunk.
type Blame<'a> = &'a dyn Fn(EvalError, usize, &RecordBatch) -> KernelError;

impl RowScan {
    /// Compiles the scan of an atom of a core, of rows with these columns.
    pub fn new(core: &Core, atom: &Atom, source: &[(String, DataType)]) -> Self {
        let shape = core.shape();
        let variables: Vec<usize> = atom.columns.iter().map(|c| c.variable).collect();
        let layout = row_layout(&variables, &shape.variables);
        let columns: Vec<RowColumn> = atom
            .columns
            .iter()
            .enumerate()
            .map(|(position, column)| {
                let null = layout.null(position).filter(|_| shape.variables[column.variable].nullable);
                let place = Place { stride: layout.width, offset: layout.offsets[position], null };
                RowColumn {
                    expression: column.expression.clone(),
                    data_type: core.variables[column.variable].data_type,
                    place,
                    drops_null: null.is_none() || core.drops_null(column),
                }
            })
            .collect();
        let factors: Vec<Expr> = atom.factors.iter().flatten().cloned().collect();
        let read = columns_read(columns.iter().map(|c| &c.expression).chain(&factors));
        let texts = columns.iter().filter(|c| codec::is_text(c.data_type)).map(|c| c.place.offset).collect();
        Self {
            filter: atom.filter.clone(),
            columns,
            factors,
            schema: schema_of(source.iter().cloned()),
            read_schema: schema_with(source, &read),
            read,
            width: layout.width,
            texts,
        }
    }

    /// Words of the atom's rows that hold texts, all of which are its own.
    pub fn texts(&self) -> &[usize] {
        &self.texts
    }

    /// Adds the atom's changes for a change of a stage or a view.
    pub fn scan(&self, rows: &Flow, changes: &mut AtomChanges, interner: &mut Interner) -> Result<(), KernelError> {
        let blame = |error: EvalError, _: usize, batch: &RecordBatch| in_row_of(error, batch);
        self.scan_chunks(&rows.chunks, changes, &blame, interner)
    }

    /// The atom's changes for those that pass a table.
    pub(crate) fn scan_passing(
        &self,
        table: &str,
        passing: &Passing,
        interner: &mut Interner,
    ) -> Result<AtomChanges, KernelError> {
        let mut changes = AtomChanges::default();
        let blame = |error: EvalError, chunk: usize, _: &RecordBatch| {
            let source = error.row.map(|row| passing.source(chunk, row));
            KernelError { row: source, ..KernelError::of_table(error.code, table, error.message) }
        };
        self.scan_chunks(&passing.chunks, &mut changes, &blame, interner)?;
        Ok(changes)
    }

    /// Only rows that pass the filter are evaluated further, and of them only the columns that are read; only they are encoded.
    fn scan_chunks(
        &self,
        chunks: &[Chunk],
        changes: &mut AtomChanges,
        blame: Blame,
        interner: &mut Interner,
    ) -> Result<(), KernelError> {
        for (at, chunk) in chunks.iter().enumerate() {
            let batch = record_batch(&self.schema, chunk.columns.clone(), chunk.weights.len())?;
            let kept = match &self.filter {
                Some(filter) => Some(filter.evaluate_predicate(&batch).map_err(|e| blame(e, at, &batch))?),
                None => None,
            };
            let Some(kept) = kept.filter(|kept| kept.true_count() < batch.num_rows()) else {
                self.add(&batch, &chunk.weights, changes, &|e| blame(e, at, &batch), interner)?;
                continue;
            };
            let weights: Vec<i64> = kept.values().set_indices().map(|row| chunk.weights[row]).collect();
            let picked = filtered(&chunk.columns, &kept, &self.read, &self.read_schema)?;
            let in_chunk = |mut error: EvalError| {
                error.row = error.row.and_then(|row| kept.values().set_indices().nth(row));
                blame(error, at, &batch)
            };
            self.add(&picked, &weights, changes, &in_chunk, interner)?;
        }
        Ok(())
    }

    fn add(
        &self,
        batch: &RecordBatch,
        weights: &[i64],
        changes: &mut AtomChanges,
        blame: &dyn Fn(EvalError) -> KernelError,
        interner: &mut Interner,
    ) -> Result<(), KernelError> {
        let first = changes.weights.len();
        changes.weights.extend_from_slice(weights);
        changes.words.resize((first + weights.len()) * self.width, 0);
        let words = &mut changes.words[first * self.width..];
        let mut dropped = Vec::new();
        for RowColumn { expression, data_type, place, drops_null } in &self.columns {
            let array = expression.evaluate(batch).map_err(blame)?;
            if *drops_null && array.null_count() > 0 {
                dropped.extend((0..array.len()).filter(|&i| array.is_null(i)).map(|i| first + i));
            }
            encode(&array, *data_type, words, *place, interner);
        }
        weigh(&self.factors, batch, weights, &mut changes.factors, blame)?;
        if !dropped.is_empty() {
            drop_rows(changes, &mut dropped, self.width, self.factors.len());
        }
        Ok(())
    }
}

/// The expressions of the computed columns among an atom's.
fn computed_by(columns: &[ScanColumn]) -> impl Iterator<Item = &Expr> {
    columns.iter().filter_map(|c| if let Binding::Computed(e) = &c.binding { Some(e) } else { None })
}

/// The columns that expressions read, in order.
fn columns_read<'a>(expressions: impl Iterator<Item = &'a Expr>) -> Vec<usize> {
    let mut read: Vec<usize> = expressions.flat_map(Expr::columns).collect();
    read.sort_unstable();
    read.dedup();
    read
}

/// The schema of rows of which some columns are read and the others left out.
fn schema_with(source: &[(String, DataType)], read: &[usize]) -> SchemaRef {
    let column = |(i, (name, data_type)): (usize, &(String, DataType))| {
        (name.clone(), if read.binary_search(&i).is_ok() { *data_type } else { DataType::Null })
    };
    schema_of(source.iter().enumerate().map(column))
}

/// Some columns of the rows that are kept.
fn filtered(
    columns: &[ArrayRef],
    kept: &BooleanArray,
    read: &[usize],
    schema: &SchemaRef,
) -> Result<RecordBatch, KernelError> {
    let (pick, count) = (FilterBuilder::new(kept).optimize().build(), kept.true_count());
    let column = |i: usize| match read.binary_search(&i) {
        Ok(_) => pick.filter(&columns[i]).map_err(|e| internal(&e)),
        Err(_) => Ok(Arc::new(NullArray::new(count)) as ArrayRef),
    };
    record_batch(schema, (0..columns.len()).map(column).collect::<Result<_, _>>()?, count)
}

/// Appends the factors of rows times their change of multiplicity, one row after another; that of NULL is 0.
fn weigh(
    factors: &[Expr],
    batch: &RecordBatch,
    weights: &[i64],
    into: &mut Vec<i128>,
    blame: &dyn Fn(EvalError) -> KernelError,
) -> Result<(), KernelError> {
    let (first, count) = (into.len(), factors.len());
    into.resize(first + weights.len() * count, 0);
    for (f, expression) in factors.iter().enumerate() {
        let array = expression.evaluate(batch).map_err(blame)?;
        let places = into[first..].iter_mut().skip(f).step_by(count).zip(weights);
        if let Some(values) = array.as_primitive_opt::<Int64Type>().filter(|values| values.null_count() == 0) {
            // two factors of 64 bits
            places.zip(values.values()).for_each(|((place, &w), &value)| *place = i128::from(value) * i128::from(w));
            continue;
        }
        for (i, ((place, &weight), value)) in places.zip(exact_values(&array, expression.data_type())?).enumerate() {
            *place = value.unwrap_or(0).checked_mul(i128::from(weight)).ok_or_else(|| {
                let message = "a summed value times its multiplicity leaves 128 bits";
                blame(EvalError { code: "ARITHMETIC_OVERFLOW", message: message.to_owned(), row: Some(i) })
            })?;
        }
    }
    Ok(())
}

/// The values of an integer or decimal column, decimals unscaled.
pub fn exact_values(
    array: &ArrayRef,
    data_type: DataType,
) -> Result<Box<dyn Iterator<Item = Option<i128>> + '_>, KernelError> {
    match data_type {
        DataType::BigInt => Ok(Box::new(array.as_primitive::<Int64Type>().iter().map(|v| v.map(i128::from)))),
        DataType::Decimal { .. } => Ok(Box::new(array.as_primitive::<Decimal128Type>().iter())),
        other => Err(KernelError::new(
            "INVALID_PLAN",
            format!("{other} values cannot be summed exactly: cast them to bigint"),
        )),
    }
}

fn drop_rows(changes: &mut AtomChanges, dropped: &mut Vec<usize>, width: usize, factors: usize) {
    dropped.sort_unstable();
    dropped.dedup();
    let (mut kept, mut next) = (0, 0);
    for i in 0..changes.weights.len() {
        if dropped.get(next) == Some(&i) {
            next += 1;
            continue;
        }
        changes.words.copy_within(i * width..(i + 1) * width, kept * width);
        changes.factors.copy_within(i * factors..(i + 1) * factors, kept * factors);
        changes.weights[kept] = changes.weights[i];
        if let Some(&source) = changes.sources.get(i) {
            changes.sources[kept] = source;
        }
        kept += 1;
    }
    changes.words.truncate(kept * width);
    changes.factors.truncate(kept * factors);
    changes.weights.truncate(kept);
    changes.sources.truncate(kept);
}

/// An error that the plan's checks exclude.
pub fn internal(error: &arrow_schema::ArrowError) -> KernelError {
    KernelError::new("INTERNAL_ERROR", error.to_string())
}
