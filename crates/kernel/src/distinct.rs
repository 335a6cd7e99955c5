//! DISTINCT above a core: a count per row, needed where the tree's own support counting does not apply (computed rows, heads that had to be
//! extended). Emits a row when its count leaves or reaches zero.

use crate::aggregate::Flow;
use crate::codec::{self, words_of};
use crate::consolidate::RowCodec;
use crate::interner::Interner;
use crate::pool::WordPool;
use crate::rows::Rows;
use crate::scan::internal;
use arrow_array::{ArrayRef, UInt32Array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use everview_expr::DataType;

use crate::error::KernelError;

/// The rows seen so far, each with the number of times it is there.
#[derive(Debug)]
pub struct Distinct {
    codec: RowCodec,
    rows: Rows,
    texts: Vec<usize>,
}

impl Distinct {
    /// An empty set of rows with columns of these types.
    pub fn new(types: &[DataType]) -> Self {
        let codec = RowCodec::new(types);
        let texts = (0..types.len()).filter(|&c| codec::is_text(types[c])).map(|c| codec.place(c).offset).collect();
        Self { rows: Rows::new(codec.width(), 0, 0, true), codec, texts }
    }

    /// Rows and bytes held.
    pub fn size(&self) -> (usize, usize) {
        (self.rows.len(), self.rows.bytes())
    }

    /// Counts the changes and returns the rows that come and leave.
    pub fn apply(&mut self, flow: &Flow, interner: &mut Interner) -> Result<Flow, KernelError> {
        let (firsts, sums) = self.codec.net(&flow.columns, &flow.weights, interner);
        let picked = take(&flow.columns, &firsts)?;
        let matrix = self.codec.encode(&picked, firsts.len(), interner);
        let (mut positions, mut weights) = (Vec::new(), Vec::new());
        for (i, &sum) in sums.iter().enumerate() {
            let words = &matrix[i * self.codec.width()..(i + 1) * self.codec.width()];
            let (row, _) = self.rows.find_or_insert(words);
            let (before, after) = (self.rows.weight(row), self.rows.weight(row) + sum);
            debug_assert!(after >= 0, "the core's deltas are exact");
            self.rows.set_weight(row, after);
            if before > 0 && after > 0 {
                continue;
            }
            let sign = if after > 0 { 1 } else { -1 };
            self.texts.iter().for_each(|&text| interner.refer(words[text] as u32, sign));
            positions.push(i as u32);
            weights.push(sign);
            if after == 0 {
                self.rows.remove(row);
            }
        }
        Ok(Flow { columns: take(&picked, &positions)?, weights, may_repeat: false })
    }

    /// Gives up the texts of the rows held.
    pub fn release_texts(&self, interner: &mut Interner) {
        for row in self.rows.ids() {
            self.texts.iter().for_each(|&text| interner.refer(self.rows.value(row, text) as u32, -1));
        }
    }

    /// At most `limit` of the rows held, from position `from` on; the position to go on from, if there are more.
    pub fn held_rows(&self, from: u32, limit: usize, interner: &Interner, pool: &WordPool) -> (Flow, Option<u32>) {
        let mut ids = self.rows.ids_from(from);
        let rows: Vec<u32> = ids.by_ref().take(limit).collect();
        let columns = self.codec.types().iter().enumerate().map(|(column, &data_type)| {
            let place = self.codec.place(column);
            let (mask, bit) = place.null.expect("every column has a mask bit");
            let word = |at: usize| rows.iter().map(|&row| self.rows.value(row, at)).collect::<Vec<u64>>();
            let nulls = NullBuffer::new(BooleanBuffer::collect_bool(rows.len(), |i| {
                self.rows.value(rows[i], mask) >> bit & 1 == 0
            }));
            let high = (words_of(data_type) == 2).then(|| word(place.offset + 1));
            codec::decode(
                data_type,
                word(place.offset),
                high,
                Some(nulls).filter(|n| n.null_count() > 0),
                interner,
                pool,
            )
        });
        (Flow { columns: columns.collect(), weights: vec![1; rows.len()], may_repeat: false }, ids.next())
    }
}

/// The rows of the columns at these positions.
pub fn take(columns: &[ArrayRef], positions: &[u32]) -> Result<Vec<ArrayRef>, KernelError> {
    let indices = UInt32Array::from(positions.to_vec());
    columns.iter().map(|column| arrow_select::take::take(column, &indices, None).map_err(|e| internal(&e))).collect()
}
