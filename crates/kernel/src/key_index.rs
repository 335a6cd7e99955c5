//! The primary key of a base table: from the key's words to the row that has them.

use crate::hash::hash_each;
use crate::rows::Rows;
use hashbrown::HashTable;

/// Rows by primary key.
#[derive(Debug, Default)]
pub(crate) struct KeyIndex {
    /// The positions of the key's columns.
    pub(crate) columns: Vec<usize>,
    /// The words of a row that are the key.
    pub(crate) words: Vec<usize>,
    pub(crate) index: HashTable<u32>,
}

impl KeyIndex {
    /// The row with the key found in these words (of a whole row).
    pub(crate) fn find(&self, words: &[u64], rows: &Rows) -> Option<u32> {
        let same = |&row: &u32| self.words.iter().all(|&w| rows.value(row, w) == words[w]);
        self.index.find(hash_key(&self.words, words), same).copied()
    }

    pub(crate) fn insert(&mut self, row: u32, rows: &Rows) {
        let hash = hash_key(&self.words, rows.values(row));
        self.index.insert_unique(hash, row, |&other| hash_key(&self.words, rows.values(other)));
    }

    pub(crate) fn give_back(&mut self, rows: &Rows) {
        self.index.shrink_to(0, |&row| hash_key(&self.words, rows.values(row)));
    }

    pub(crate) fn remove(&mut self, row: u32, rows: &Rows) {
        let hash = hash_key(&self.words, rows.values(row));
        if let Ok(found) = self.index.find_entry(hash, |&other| other == row) {
            found.remove();
        }
    }
}

/// The hash of the key found in these words (of a whole row).
pub(crate) fn hash_key(key: &[usize], words: &[u64]) -> u64 {
    hash_each(key.iter().map(|&word| words[word]))
}
