//! The rows of a base table: a slab of fixed-width records with multiplicities, found by their words or by the primary key among them.
//!
//! Representation: `values` holds the words of the rows, `heads` beside them all else that is told of a row: its multiplicity, its place in
//! the batch that is being staged, and its hash, so that neither growth of the index nor the removal of a row reads its words. Freed
//! places are chained through `stamp` and reused.
//!
//! One index finds rows both ways: what is hashed is the *identity*, the words of the primary key or, without one, all words. Rows that
//! differ but have one key, of which a batch replaces one by another, are then neighbours in it.
//!
//! Invariants: T1 every row held is in the index once; T2 outside the staging of a batch every stamp is `NONE` and every multiplicity
//! positive; T3 of the rows with one primary key at most one is there outside the staging of a batch.
//!
//! Cost: one probe to find, to insert and to remove a row; a batch reserves its room in the index once.

use crate::hash::{copy_words, hash_each, hash_words, push_words, same_words};
use crate::rows::NONE;
use crate::trim::{Trim, trim_buffer};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Slot;

/// How many rows are best looked for together: what they need of memory must fit the first cache.
pub(crate) const BLOCK: usize = 64;

/// The multiplicity of a free place.
const FREE: i64 = i64::MIN;

#[derive(Clone, Copy, Debug)]
struct Head {
    weight: i64,
    /// The row's place in the batch that is being staged, or `NONE`; of a free place, the next free one.
    stamp: u32,
    hash: u32,
}

/// The rows of a base table.
#[derive(Debug)]
pub(crate) struct RowStore {
    width: usize,
    values: Vec<u64>,
    heads: Vec<Head>,
    index: HashTable<u32>,
    /// The words of the primary key; none where rows are found as a whole only.
    key: Vec<usize>,
    free: u32,
    len: usize,
    trim: Trim,
}

/// A hash for the index, from what is kept of it.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

impl RowStore {
    /// An empty store of rows with so many words, some of which may be a primary key.
    pub(crate) fn new(width: usize, key: Vec<usize>) -> Self {
        let (values, heads, index) = (Vec::new(), Vec::new(), HashTable::new());
        Self { width, values, heads, index, key, free: NONE, len: 0, trim: Trim::default() }
    }

    /// Number of rows held.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes held, counted from the capacities of the arrays and the index.
    pub(crate) fn bytes(&self) -> usize {
        self.values.capacity() * 8 + self.heads.capacity() * size_of::<Head>() + self.index.allocation_size()
    }

    /// The words of a row.
    #[inline]
    pub(crate) fn values(&self, row: u32) -> &[u64] {
        let start = row as usize * self.width;
        &self.values[start..start + self.width]
    }

    /// One word of a row.
    #[inline]
    pub(crate) fn value(&self, row: u32, word: usize) -> u64 {
        self.values[row as usize * self.width + word]
    }

    /// The multiplicity of a row.
    #[inline]
    pub(crate) fn weight(&self, row: u32) -> i64 {
        self.heads[row as usize].weight
    }

    /// Sets the multiplicity of a row.
    #[inline]
    pub(crate) fn set_weight(&mut self, row: u32, weight: i64) {
        self.heads[row as usize].weight = weight;
    }

    /// The row's place in the batch that is being staged, or `NONE`.
    #[inline]
    pub(crate) fn stamp(&self, row: u32) -> u32 {
        self.heads[row as usize].stamp
    }

    /// Sets the row's place in the batch that is being staged.
    #[inline]
    pub(crate) fn set_stamp(&mut self, row: u32, stamp: u32) {
        self.heads[row as usize].stamp = stamp;
    }

    /// The hash of the identity of a row with these words.
    #[inline]
    fn hash(&self, words: &[u64]) -> u32 {
        let hash =
            if self.key.is_empty() { hash_words(words) } else { hash_each(self.key.iter().map(|&word| words[word])) };
        (hash ^ hash >> 32) as u32
    }

    /// Makes room in the index for so many rows more.
    pub(crate) fn reserve(&mut self, rows: usize) {
        let heads = &self.heads;
        self.index.reserve(rows, |&row| spread(heads[row as usize].hash));
    }

    /// The row with these words, if it is held.
    pub(crate) fn find(&self, words: &[u64]) -> Option<u32> {
        let hash = self.hash(words);
        self.index.find(spread(hash), |&row| same_words(self.values(row), words)).copied()
    }

    /// The rows with the primary key found in these words (of a whole row), those of a batch that is being staged among them.
    pub(crate) fn with_key(&self, words: &[u64]) -> impl Iterator<Item = u32> {
        let hash = self.hash(words);
        let same = move |row: &u32| {
            self.heads[*row as usize].hash == hash && self.key.iter().all(|&w| self.value(*row, w) == words[w])
        };
        self.index.iter_hash(spread(hash)).copied().filter(same)
    }

    /// The rows with these words, row after row, that are held, and the hashes of all; `NONE` for others. At most `BLOCK` at a time. None of
    /// these looks waits for another, so that they wait for memory together.
    pub(crate) fn find_block(&self, matrix: &[u64], found: &mut Vec<(u32, u32)>) {
        found.clear();
        found.extend(matrix.chunks_exact(self.width.max(1)).map(|words| (NONE, self.hash(words))));
        for ((row, hash), words) in found.iter_mut().zip(matrix.chunks_exact(self.width.max(1))) {
            let same = |&row: &u32| self.heads[row as usize].hash == *hash && same_words(self.values(row), words);
            *row = self.index.find(spread(*hash), same).copied().unwrap_or(NONE);
        }
    }

    /// The row with these words; a new one with multiplicity 0 if there is none. Also whether it is new and there is another whose identity
    /// may be the same.
    #[inline]
    pub(crate) fn find_or_insert(&mut self, words: &[u64]) -> (u32, bool) {
        self.find_or_insert_hashed(words, self.hash(words))
    }

    /// As `find_or_insert`, with the hash that `find_block` gave.
    #[inline]
    pub(crate) fn find_or_insert_hashed(&mut self, words: &[u64], hash: u32) -> (u32, bool) {
        let (values, heads, width) = (&self.values, &self.heads, self.width);
        let mut is_beside = false;
        let same = |&row: &u32| {
            let row = row as usize;
            let is_alike = heads[row].hash == hash;
            let is_same = is_alike && same_words(&values[row * width..(row + 1) * width], words);
            is_beside |= is_alike && !is_same;
            is_same
        };
        let vacant = match self.index.entry(spread(hash), same, |&row| spread(heads[row as usize].hash)) {
            Slot::Occupied(found) => return (*found.get(), false),
            Slot::Vacant(vacant) => vacant,
        };
        self.len += 1;
        let head = Head { weight: 0, stamp: NONE, hash };
        if self.free == NONE {
            let row = self.heads.len() as u32;
            assert!(row < NONE - 1, "a table holds at most 2^32 - 2 different rows");
            vacant.insert(row);
            push_words(&mut self.values, words);
            self.heads.push(head);
            return (row, is_beside);
        }
        let row = self.free;
        vacant.insert(row);
        self.free = self.heads[row as usize].stamp;
        copy_words(&mut self.values[row as usize * width..(row as usize + 1) * width], words);
        self.heads[row as usize] = head;
        (row, is_beside)
    }

    /// Gives the row's place back.
    pub(crate) fn remove(&mut self, row: u32) {
        let head = &mut self.heads[row as usize];
        if let Ok(found) = self.index.find_entry(spread(head.hash), |&other| other == row) {
            found.remove();
        }
        (head.weight, head.stamp) = (FREE, self.free);
        self.free = row;
        self.len -= 1;
    }

    /// Gives memory back if there is much to give: free places at the end.
    pub(crate) fn give_back(&mut self) {
        if !self.trim.is_due(self.len, self.heads.len()) {
            return;
        }
        let places = self.heads.iter().rposition(|head| head.weight != FREE).map_or(0, |last| last + 1);
        self.values.truncate(places * self.width);
        self.heads.truncate(places);
        self.free = NONE;
        for (row, head) in self.heads.iter_mut().enumerate().rev().filter(|(_, head)| head.weight == FREE) {
            head.stamp = self.free;
            self.free = row as u32;
        }
        trim_buffer(&mut self.values);
        trim_buffer(&mut self.heads);
        let heads = &self.heads;
        self.index.shrink_to(0, |&row| spread(heads[row as usize].hash));
    }

    /// The ids of all rows held, in order of id. Costs one pass over the slab.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.heads.len() as u32).filter(|&row| self.weight(row) != FREE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_key_are_found_by_it_and_as_a_whole() {
        let mut rows = RowStore::new(2, vec![0]);
        let ((one, alone), (two, beside)) = (rows.find_or_insert(&[1, 10]), rows.find_or_insert(&[1, 20]));
        assert!(!alone && beside);
        let other = rows.find_or_insert(&[2, 10]).0;
        assert_eq!(rows.find_or_insert(&[1, 10]), (one, false));
        let mut found = Vec::new();
        rows.find_block(&[2, 10, 7, 7, 1, 20], &mut found);
        assert_eq!(found.iter().map(|&(row, _)| row).collect::<Vec<_>>(), [other, NONE, two]);
        assert_eq!((rows.find(&[1, 20]), rows.find(&[1, 30]), rows.len()), (Some(two), None, 3));
        let mut found: Vec<u32> = rows.with_key(&[1, 0]).collect();
        found.sort_unstable();
        assert_eq!(found, [one, two]);
        rows.remove(one);
        assert_eq!(rows.with_key(&[1, 0]).collect::<Vec<_>>(), [two]);
        assert_eq!(rows.find_or_insert(&[3, 3]).0, one, "places are used again");
        assert_eq!(rows.ids().collect::<Vec<_>>(), [one, two, other]);
    }

    #[test]
    fn many_rows_come_and_go() {
        let mut rows = RowStore::new(1, Vec::new());
        for round in 0..4u64 {
            rows.reserve(5000);
            for value in 0..5000 {
                let row = rows.find_or_insert(&[value * 7 + round]).0;
                rows.set_weight(row, 1);
            }
            for value in 0..5000 {
                rows.remove(rows.find(&[value * 7 + round]).unwrap());
            }
            rows.give_back();
            assert_eq!((rows.len(), rows.ids().count()), (0, 0));
        }
        assert!(rows.bytes() < 1 << 12, "{}", rows.bytes());
    }
}
