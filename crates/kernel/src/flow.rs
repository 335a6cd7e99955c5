//! Rows on their way through the operators of a view: Arrow columns with multiplicities, in chunks.
//!
//! A chunk's text columns have 32-bit offsets, so rows are cut where their texts would outgrow them: nothing here depends on how much text a
//! batch or a result holds.

use crate::codec::{self, words_of};
use crate::error::KernelError;
use crate::interner::Interner;
use crate::pool::WordPool;
use crate::scan::internal;
use crate::shape::HeadLayout;
use arrow_array::{Array, ArrayRef, NullArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{Field, Schema, SchemaRef};
use everview_expr::{DataType, EvalError};
use std::ops::Range;
use std::sync::Arc;

/// Some rows with their multiplicities, column by column.
#[derive(Clone, Debug, Default)]
pub struct Chunk {
    /// The columns.
    pub columns: Vec<ArrayRef>,
    /// The multiplicity of each row.
    pub weights: Vec<i64>,
}

impl Chunk {
    /// The rows at these positions, with other multiplicities.
    pub fn take(&self, positions: Vec<u32>, weights: Vec<i64>) -> Result<Self, KernelError> {
        let indices = UInt32Array::from(positions);
        let taken = |column: &ArrayRef| arrow_select::take::take(column, &indices, None).map_err(|e| internal(&e));
        Ok(Self { columns: self.columns.iter().map(taken).collect::<Result<_, _>>()?, weights })
    }
}

/// Rows with their multiplicities.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// The rows.
    pub chunks: Vec<Chunk>,
    /// Whether equal rows may be among them, so that they must be netted.
    pub may_repeat: bool,
}

impl Flow {
    /// Rows of which no two are equal, unless their source says so.
    pub fn of(chunks: Vec<Chunk>) -> Self {
        Self { chunks, may_repeat: false }
    }

    /// How many rows there are, not counting multiplicities.
    pub fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.weights.len()).sum()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same for every chunk.
    pub fn map(self, change: impl FnMut(Chunk) -> Result<Chunk, KernelError>) -> Result<Self, KernelError> {
        let chunks = self.chunks.into_iter().map(change).collect::<Result<_, _>>()?;
        Ok(Self { chunks, may_repeat: self.may_repeat })
    }
}

/// Cuts rows into ranges whose texts fit a chunk. `texts` are the text columns, `id` gives the text of a row in one of them. Costs nothing
/// where the longest text there is cannot fill a chunk, and one pass over the ids otherwise.
#[allow(clippy::single_range_in_vec_init)]
pub fn text_ranges<T>(
    count: usize,
    texts: &[T],
    id: impl Fn(&T, usize) -> u64,
    interner: &Interner,
) -> Vec<Range<usize>> {
    let most = interner.chunk_bytes();
    if texts.is_empty() || (count as u64).saturating_mul(interner.longest() as u64) <= most {
        return vec![0..count];
    }
    let mut ranges = Vec::new();
    let mut start = 0;
    let mut filled = vec![0; texts.len()];
    for row in 0..count {
        let sizes = texts.iter().map(|text| interner.text(id(text, row) as u32).len() as u64);
        let full = filled.iter_mut().zip(sizes.clone()).fold(false, |full, (sum, size)| {
            *sum += size;
            full || *sum > most
        });
        if full && row > start {
            ranges.push(start..row);
            start = row;
            filled.iter_mut().zip(sizes).for_each(|(sum, size)| *sum = size);
        }
    }
    ranges.push(start..count);
    ranges
}

/// The Arrow columns of emitted words, chunk by chunk. Takes the words out of `words`.
///
/// With `wanted`, other columns are left out: arrays of NULLs stand in their place.
pub fn decode_head(
    head: &HeadLayout,
    types: &[DataType],
    words: &mut [Vec<u64>],
    count: usize,
    wanted: Option<&[usize]>,
    (interner, pool): (&Interner, &WordPool),
) -> Vec<(Range<usize>, Vec<ArrayRef>)> {
    let is_wanted = |column: usize| wanted.is_none_or(|wanted| wanted.contains(&column));
    let texts: Vec<&[u64]> = (0..types.len())
        .filter(|&c| codec::is_text(types[c]) && is_wanted(c))
        .map(|c| words[head.columns[c].first].as_slice())
        .collect();
    let ranges = text_ranges(count, &texts, |ids, row| ids[row], interner);
    let whole = ranges.len() == 1;
    let mut chunks = Vec::with_capacity(ranges.len());
    for range in ranges {
        let nulls: Vec<Option<NullBuffer>> = head
            .columns
            .iter()
            .map(|column| {
                let (mask, bit) = column.null?;
                let masks = &words[mask][range.clone()];
                let nulls = NullBuffer::new(BooleanBuffer::collect_bool(masks.len(), |i| masks[i] >> bit & 1 == 0));
                Some(nulls).filter(|n| n.null_count() > 0)
            })
            .collect();
        let mut part =
            |at: usize| if whole { std::mem::take(&mut words[at]) } else { words[at][range.clone()].to_vec() };
        let columns =
            head.columns.iter().zip(types).zip(nulls).enumerate().map(|(c, ((column, &data_type), nulls))| {
                if !is_wanted(c) {
                    return Arc::new(NullArray::new(range.len())) as ArrayRef;
                }
                let low = part(column.first);
                let high = (words_of(data_type) == 2).then(|| part(column.first + 1));
                codec::decode(data_type, low, high, nulls, interner, pool)
            });
        let columns = columns.collect();
        chunks.push((range, columns));
    }
    chunks
}

/// A schema of nullable columns.
pub fn schema_of(columns: impl IntoIterator<Item = (String, DataType)>) -> SchemaRef {
    let fields = columns.into_iter().map(|(name, data_type)| Field::new(name, data_type.arrow(), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// A record batch, also where there are no columns.
pub fn record_batch(schema: &SchemaRef, columns: Vec<ArrayRef>, count: usize) -> Result<RecordBatch, KernelError> {
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options).map_err(|e| internal(&e))
}

/// The error of an expression over rows of a result, with the values of the row it failed on, as far as they were decoded.
pub fn in_row_of(error: EvalError, rows: &RecordBatch) -> KernelError {
    let mut refused = KernelError::new(error.code, error.message);
    if let Some(row) = error.row.filter(|&row| row < rows.num_rows()) {
        let values = rows.schema_ref().fields().iter().zip(rows.columns());
        let known = values.filter(|(_, array)| *array.data_type() != arrow_schema::DataType::Null);
        refused.message =
            format!("{} for the row {}", refused.message, describe(known.map(|(f, a)| (f.name().as_str(), a)), row));
    }
    refused
}

/// One row as text.
pub fn describe<'a>(columns: impl Iterator<Item = (&'a str, &'a ArrayRef)>, row: usize) -> String {
    let parts = columns.map(|(name, array)| {
        let value = if array.is_null(row) { "NULL".to_owned() } else { crate::display::value(array, row) };
        format!("{name}={value}")
    });
    format!("({})", parts.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_all_rows_in_order_and_fit() {
        let mut interner = Interner::default();
        let ids: Vec<u64> =
            (0..20u64).map(|i| u64::from(interner.intern("x".repeat(i as usize % 7).as_bytes()))).collect();
        for most in 1..40 {
            interner.set_chunk_bytes(most);
            let ranges = text_ranges(ids.len(), &[&ids, &ids], |ids, row| ids[row], &interner);
            assert_eq!(ranges.iter().cloned().flatten().collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
            for range in ranges {
                let size: usize = ids[range.clone()].iter().map(|&id| interner.text(id as u32).len()).sum();
                assert!(size as u64 <= most || range.len() == 1, "{range:?} holds {size}");
            }
        }
        assert_eq!(text_ranges(3, &[], |(), _| 0, &interner).len(), 1, "no texts");
        assert_eq!(text_ranges(0, &[()], |(), _| 0, &interner).len(), 1, "no rows");
    }
}
