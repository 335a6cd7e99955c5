//! Texts as the columns of a table have them: CHAR(n) padded, VARCHAR(n) no longer than it may be.

use crate::codec::{self, Place, encode};
use crate::error::KernelError;
use crate::interner::Interner;
use crate::scan::internal;
use crate::table::BaseTable;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt64Array};
use arrow_schema::{Field, Schema};
use everview_expr::{DataType, Expr};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of text that are padded and checked at a time (64 MiB).
const MOST_TEXT: usize = 1 << 26;

impl BaseTable {
    /// Encodes a column; CHAR(n) is padded and VARCHAR(n) checked before, in pieces, since Arrow's texts end at 2 GiB and a column need not.
    pub(crate) fn encode_fitted(
        &self,
        column: usize,
        array: &ArrayRef,
        matrix: &mut [u64],
        place: Place,
        interner: &mut Interner,
    ) -> Result<(), KernelError> {
        let data_type = self.columns()[column].data_type;
        let Some(cast) = &self.fits[column] else {
            encode(array, data_type, matrix, place, interner);
            return Ok(());
        };
        for rows in pieces(array, data_type) {
            let piece = if rows.len() == array.len() { array.clone() } else { copy(array, &rows)? };
            let piece = self.fit(column, cast, &piece, rows.start)?;
            encode(&piece, data_type, &mut matrix[rows.start * place.stride..], place, interner);
        }
        Ok(())
    }

    /// The texts of some rows of a batch, from its row `first` on, as their type has them.
    pub(crate) fn fit(
        &self,
        column: usize,
        cast: &Expr,
        array: &ArrayRef,
        first: usize,
    ) -> Result<ArrayRef, KernelError> {
        let schema = Schema::new(vec![Field::new("value", array.data_type().clone(), true)]);
        let batch = RecordBatch::try_new(Arc::new(schema), vec![array.clone()]).map_err(|e| internal(&e))?;
        cast.evaluate(&batch).map_err(|error| {
            let sources: Vec<u32> = (first..first + array.len()).map(|row| row as u32).collect();
            let mut refused = KernelError::in_expression(error, self.name(), &sources);
            refused.message = format!("column `{}`: {}", self.columns()[column].name, refused.message);
            refused
        })
    }
}

/// Some rows of a column in an array of their own: a slice keeps its offsets, and Arrow casts by these.
pub(crate) fn copy(array: &ArrayRef, rows: &Range<usize>) -> Result<ArrayRef, KernelError> {
    let positions = UInt64Array::from_iter_values(rows.clone().map(|row| row as u64));
    arrow_select::take::take(array, &positions, None).map_err(|e| internal(&e))
}

/// Cuts a column of texts such that no piece is longer than Arrow's arrays can be, before or after its texts are padded.
fn pieces(array: &ArrayRef, data_type: DataType) -> Vec<Range<usize>> {
    let padding = if let DataType::Char(length) = data_type { length as usize } else { 0 };
    let (mut cuts, mut held) = (vec![0], 0);
    codec::map_bytes(array, <[u8]>::len, |row, length| {
        held += length + padding;
        if held > MOST_TEXT && row > 0 {
            cuts.push(row);
            held = length + padding;
        }
    });
    cuts.push(array.len());
    cuts.dedup();
    cuts.windows(2).map(|ends| ends[0]..ends[1]).collect()
}
