//! What a table holds of given rows: asked before a batch is applied, by those who sort bad changes out of it.

use crate::error::KernelError;
use crate::interner::Interner;
use crate::table::BaseTable;
use arrow_array::{Array, ArrayRef};

impl BaseTable {
    /// How many copies of each of these whole rows the table holds.
    pub fn copies_of(&self, columns: &[ArrayRef], interner: &mut Interner) -> Result<Vec<i64>, KernelError> {
        let mut matrix = Vec::new();
        self.encode_rows(columns, &mut matrix, interner)?;
        let count = columns.first().map_or(0, Array::len);
        let words = |i: usize| &matrix[i * self.width()..(i + 1) * self.width()];
        Ok((0..count).map(|i| self.rows().find(words(i)).map_or(0, |row| self.rows().weight(row))).collect())
    }

    /// The rows with these primary keys (columns in the key's order), for those that are there: positions of the keys, rows.
    pub fn rows_with_keys(
        &self,
        keys: &[ArrayRef],
        interner: &mut Interner,
    ) -> Result<(Vec<u32>, Vec<u32>), KernelError> {
        let matrix = self.encode_keys(keys, "a lookup by key", interner)?;
        let count = keys.first().map_or(0, Array::len);
        let words = |i: usize| &matrix[i * self.width()..(i + 1) * self.width()];
        Ok((0..count).filter_map(|i| self.find_by_key(words(i)).map(|row| (i as u32, row))).unzip())
    }
}
