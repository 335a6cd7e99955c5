//! The rows of one node: a slab of fixed-width records with intrusive list links.
//!
//! Representation: parallel arrays indexed by row id. `values` holds the row's words, `weights` its multiplicity, `factors` its
//! annotation factors, `states` its flags, `nexts` the next row of its side, `links` everything else. States and nexts are apart
//! because enumeration walks them: four bytes a row stay in the cache where whole records would not. Freed ids are chained through `nexts` and reused,
//! so ids are dense and space is linear in the largest number of rows held at once.
//!
//! A state has the flags and, above them, the number of hubs below that do not support the row.
//! Links of a row, `3 + 3 * downs` words:
//!   `STAMP`  position in the list of this batch's pending changes, or `NONE`
//!   `UP`     the entry of the hub above
//!   `PREV`   the row before among the alive rows of the same side of that entry (`nexts` has the one after)
//!   then per hub below: its entry, and the neighbours among that entry's parent rows
//!   then, where rows are found by source, the source
//!
//! A row is found by its words through `index`, or, where every row stands for one row of a base table, by the id of that row (its source):
//! `by_source` has the row of each. That is one read instead of a search, and ids that come in order are rows that lie in order.
//!
//! A node that results may bind to a phantom (see `edge`) holds it as row 0, reserved before all others: it is not counted, not found by
//! its words, and in no list; it has no flags, so it is neither alive nor live; its own annotation is 1.
//!
//! Invariants: R1 a row is in the side list of its entry above iff it is `ALIVE`; R2 it is in the parent list of every
//! entry below, the `LIVE` ones before the others; R3 `LIVE` implies `ALIVE`.

use crate::hash::{copy_words, hash_words, push_words, same_words};
use crate::trim::{Trim, trim_buffer};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Slot;

/// The absent id.
pub const NONE: u32 = u32::MAX;

/// The row that stands for no row, in nodes that have one.
pub const PHANTOM: u32 = 0;

/// Every hub below supports the row and its multiplicity is positive.
pub const ALIVE: u32 = 1;
/// Alive and reachable from an alive root row: part of some result.
pub const LIVE: u32 = 2;
/// Inserted by the batch in progress.
pub const NEW: u32 = 4;
/// To be deleted by the batch in progress.
pub const DOOMED: u32 = 8;
/// The row is linked to its entries.
pub const LINKED: u32 = 16;
/// One unsupported hub below, in the upper part of the state word.
const MISSING_ONE: u32 = 1 << 8;

const STAMP: usize = 0;
const UP: usize = 1;
const PREV: usize = 2;
const DOWN: usize = 3;

/// The rows of one node.
#[derive(Debug, Default)]
pub struct Rows {
    width: usize,
    factor_count: usize,
    stride: usize,
    values: Vec<u64>,
    weights: Vec<i64>,
    factors: Vec<i128>,
    states: Vec<u32>,
    nexts: Vec<u32>,
    links: Vec<u32>,
    free: u32,
    len: usize,
    index: HashTable<u32>,
    indexed: bool,
    by_source: Vec<u32>,
    has_sources: bool,
    /// Rows at the start that are no rows of the node: one, if it has a phantom.
    reserved: u32,
    trim: Trim,
}

impl Rows {
    /// An empty slab. Without `indexed` rows cannot be found by value (projection nodes: their guard hub finds them).
    pub fn new(width: usize, factor_count: usize, downs: usize, indexed: bool) -> Self {
        Self { width, factor_count, stride: DOWN + 3 * downs, free: NONE, indexed, ..Self::default() }
    }

    /// An empty slab of rows that are found by source. An index of their words is made when it is first asked for.
    pub fn with_sources(width: usize, factor_count: usize, downs: usize) -> Self {
        let rows = Self::new(width, factor_count, downs, false);
        Self { stride: rows.stride + 1, has_sources: true, ..rows }
    }

    /// Reserves the phantom, with these words. The entries below that it leads to are entry 0 of each hub. To be called before the first
    /// row comes.
    pub fn reserve_phantom(&mut self, words: &[u64]) {
        debug_assert!(self.weights.is_empty());
        let row = self.take(words);
        debug_assert_eq!(row, PHANTOM);
        self.weights[0] = 1;
        self.factors.iter_mut().for_each(|factor| *factor = 1);
        let downs = (self.stride - DOWN) / 3;
        (0..downs).for_each(|down| self.set_down(row, down, 0));
        self.len = 0;
        self.reserved = 1;
    }

    /// The link to the entry above, for `entry`.
    pub const UP: usize = UP;

    /// The link to the entry of the hub in place `down` below, for `entry`.
    pub const fn down_link(down: usize) -> usize {
        DOWN + 3 * down
    }

    /// Number of rows held.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no row is held.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Words per row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// One more than the largest id ever given out.
    pub fn capacity(&self) -> u32 {
        self.weights.len() as u32
    }

    /// Bytes held, counted from the capacities of the arrays and the index.
    pub fn bytes(&self) -> usize {
        self.values.capacity() * 8
            + self.weights.capacity() * 8
            + self.factors.capacity() * 16
            + (self.states.capacity() + self.nexts.capacity() + self.links.capacity() + self.by_source.capacity()) * 4
            + self.index.allocation_size()
    }

    /// The words of a row.
    #[inline]
    pub fn values(&self, row: u32) -> &[u64] {
        let start = row as usize * self.width;
        &self.values[start..start + self.width]
    }

    /// One word of a row.
    #[inline]
    pub fn value(&self, row: u32, word: usize) -> u64 {
        self.values[row as usize * self.width + word]
    }

    /// The multiplicity of a row.
    #[inline]
    pub fn weight(&self, row: u32) -> i64 {
        self.weights[row as usize]
    }

    /// Sets the multiplicity of a row.
    #[inline]
    pub fn set_weight(&mut self, row: u32, weight: i64) {
        self.weights[row as usize] = weight;
    }

    /// The annotation factors of a row.
    #[inline]
    pub fn factors(&self, row: u32) -> &[i128] {
        let start = row as usize * self.factor_count;
        &self.factors[start..start + self.factor_count]
    }

    /// Adds to the annotation factors of a row, modulo 2^128; returns whether one overflowed.
    pub fn add_factors(&mut self, row: u32, change: &[i128]) -> bool {
        let start = row as usize * self.factor_count;
        let mut overflow = false;
        for (factor, &delta) in self.factors[start..start + self.factor_count].iter_mut().zip(change) {
            let (sum, over) = factor.overflowing_add(delta);
            *factor = sum;
            overflow |= over;
        }
        overflow
    }

    #[inline]
    fn link(&self, row: u32, field: usize) -> u32 {
        self.links[row as usize * self.stride + field]
    }

    #[inline]
    fn set_link(&mut self, row: u32, field: usize, value: u32) {
        self.links[row as usize * self.stride + field] = value;
    }

    /// Whether all of `flags` are set.
    #[inline]
    pub fn has(&self, row: u32, flags: u32) -> bool {
        self.states[row as usize] & flags == flags
    }

    /// Whether any of `flags` is set.
    #[inline]
    pub fn has_any(&self, row: u32, flags: u32) -> bool {
        self.states[row as usize] & flags != 0
    }

    /// Sets flags.
    #[inline]
    pub fn set(&mut self, row: u32, flags: u32) {
        self.states[row as usize] |= flags;
    }

    /// Clears flags.
    #[inline]
    pub fn clear(&mut self, row: u32, flags: u32) {
        self.states[row as usize] &= !flags;
    }

    /// Whether every hub below supports the row.
    #[inline]
    pub fn supported(&self, row: u32) -> bool {
        self.states[row as usize] < MISSING_ONE
    }

    /// Whether the row is to be alive: its multiplicity is positive and every hub below supports it. (`ALIVE` says whether it was when its
    /// entry above was last settled.)
    #[inline]
    pub fn status(&self, row: u32) -> bool {
        self.weight(row) > 0 && self.supported(row)
    }

    /// One more hub below does not support the row.
    #[inline]
    pub fn lose_support(&mut self, row: u32) {
        self.states[row as usize] += MISSING_ONE;
    }

    /// One hub more supports the row.
    #[inline]
    pub fn gain_support(&mut self, row: u32) {
        debug_assert!(!self.supported(row));
        self.states[row as usize] -= MISSING_ONE;
    }

    /// The row's place in the batch's list of pending changes, or `NONE`.
    #[inline]
    pub fn stamp(&self, row: u32) -> u32 {
        self.link(row, STAMP)
    }

    /// Sets the row's place in the list of pending changes.
    #[inline]
    pub fn set_stamp(&mut self, row: u32, stamp: u32) {
        self.set_link(row, STAMP, stamp);
    }

    /// The entry that a link leads to.
    #[inline]
    pub fn entry(&self, row: u32, link: usize) -> u32 {
        self.link(row, link)
    }

    /// The entry above.
    #[inline]
    pub fn up(&self, row: u32) -> u32 {
        self.link(row, UP)
    }

    /// Sets the entry above.
    #[inline]
    pub fn set_up(&mut self, row: u32, entry: u32) {
        self.set_link(row, UP, entry);
    }

    /// The entry of the hub in place `down` below.
    #[inline]
    pub fn down(&self, row: u32, down: usize) -> u32 {
        self.link(row, DOWN + 3 * down)
    }

    /// Sets the entry of the hub in place `down` below.
    #[inline]
    pub fn set_down(&mut self, row: u32, down: usize, entry: u32) {
        self.set_link(row, DOWN + 3 * down, entry);
    }

    /// The next alive row of the same side.
    #[inline]
    pub fn next(&self, row: u32) -> u32 {
        self.nexts[row as usize]
    }

    /// The flags of a row (with its missing support above them) and the next alive row of the same side.
    #[inline]
    pub fn state_and_next(&self, row: u32) -> (u32, u32) {
        (self.states[row as usize], self.nexts[row as usize])
    }

    /// The next parent row of the same entry, for the hub in place `down` below.
    #[inline]
    pub fn next_parent(&self, row: u32, down: usize) -> u32 {
        self.link(row, DOWN + 3 * down + 2)
    }

    /// Puts the row in front of the side list that starts at `head`; the row is the new head.
    #[inline]
    pub fn push_front(&mut self, row: u32, head: u32) {
        self.set_link(row, PREV, NONE);
        self.nexts[row as usize] = head;
        if head != NONE {
            self.set_link(head, PREV, row);
        }
    }

    /// Takes the row out of the side list that starts at `head`; returns the new head.
    #[inline]
    pub fn unlink(&mut self, row: u32, head: u32) -> u32 {
        let (prev, next) = (self.link(row, PREV), self.nexts[row as usize]);
        if next != NONE {
            self.set_link(next, PREV, prev);
        }
        if prev == NONE {
            return next;
        }
        self.nexts[prev as usize] = next;
        head
    }

    /// Puts the row at the front (`live`) or the back of the parent list `(head, tail)` of the hub in place `down`.
    #[inline]
    pub fn link_parent(&mut self, row: u32, down: usize, (head, tail): (u32, u32), live: bool) -> (u32, u32) {
        let (prev, next) = (DOWN + 3 * down + 1, DOWN + 3 * down + 2);
        if head == NONE {
            self.set_link(row, prev, NONE);
            self.set_link(row, next, NONE);
            (row, row)
        } else if live {
            self.set_link(row, prev, NONE);
            self.set_link(row, next, head);
            self.set_link(head, prev, row);
            (row, tail)
        } else {
            self.set_link(row, prev, tail);
            self.set_link(row, next, NONE);
            self.set_link(tail, next, row);
            (head, row)
        }
    }

    /// Takes the row out of the parent list `(head, tail)` of the hub in place `down`.
    #[inline]
    pub fn unlink_parent(&mut self, row: u32, down: usize, (head, tail): (u32, u32)) -> (u32, u32) {
        let (prev_field, next_field) = (DOWN + 3 * down + 1, DOWN + 3 * down + 2);
        let (prev, next) = (self.link(row, prev_field), self.link(row, next_field));
        if prev != NONE {
            self.set_link(prev, next_field, next);
        }
        if next != NONE {
            self.set_link(next, prev_field, prev);
        }
        (if prev == NONE { next } else { head }, if next == NONE { prev } else { tail })
    }

    /// The row with these words, if it is held and indexed.
    #[inline]
    pub fn find(&self, words: &[u64]) -> Option<u32> {
        debug_assert!(self.indexed);
        self.index.find(hash_words(words), |&row| same_words(self.values(row), words)).copied()
    }

    /// Makes room for so many rows more.
    pub fn reserve(&mut self, rows: usize) {
        self.values.reserve(rows * self.width);
        self.weights.reserve(rows);
        self.factors.reserve(rows * self.factor_count);
        self.states.reserve(rows);
        self.nexts.reserve(rows);
        self.links.reserve(rows * self.stride);
        if self.indexed {
            let (values, width) = (&self.values, self.width);
            let hash = |&row: &u32| hash_words(&values[row as usize * width..(row as usize + 1) * width]);
            self.index.reserve(rows, hash);
        }
    }

    /// The row with these words; a new one with multiplicity 0 and no links if there is none.
    #[inline]
    pub fn find_or_insert(&mut self, words: &[u64]) -> (u32, bool) {
        debug_assert!(self.indexed);
        let (values, width) = (&self.values, self.width);
        let row_words = |row: u32| &values[row as usize * width..(row as usize + 1) * width];
        let hash = hash_words(words);
        let slot = self.index.entry(hash, |&row| same_words(row_words(row), words), |&row| hash_words(row_words(row)));
        match slot {
            Slot::Occupied(found) => (*found.get(), false),
            Slot::Vacant(vacant) => {
                let row = if self.free == NONE { self.weights.len() as u32 } else { self.free };
                vacant.insert(row);
                let taken = self.take(words);
                debug_assert_eq!(row, taken);
                (row, true)
            }
        }
    }

    /// The row of a source, which has these words; a new one with multiplicity 0 and no links if there is none.
    #[inline]
    pub fn find_or_insert_source(&mut self, source: u32, words: &[u64]) -> u32 {
        debug_assert!(self.has_sources);
        let at = source as usize;
        if at >= self.by_source.len() {
            self.by_source.resize(at + 1, NONE);
        }
        if self.by_source[at] == NONE {
            let row = self.take(words);
            self.by_source[at] = row;
            self.set_link(row, self.stride - 1, source);
            if self.indexed {
                self.put_in_index(row);
            }
        }
        debug_assert!(same_words(self.values(self.by_source[at]), words));
        self.by_source[at]
    }

    /// Makes the index of words, if there is none: one pass over the rows, and from then on kept.
    pub fn ensure_index(&mut self) {
        if !self.indexed {
            self.indexed = true;
            for row in self.ids().collect::<Vec<_>>() {
                self.put_in_index(row);
            }
        }
    }

    fn put_in_index(&mut self, row: u32) {
        let (values, width) = (&self.values, self.width);
        let hash = |&row: &u32| hash_words(&values[row as usize * width..(row as usize + 1) * width]);
        self.index.insert_unique(hash(&row), row, hash);
    }

    /// A new row that is not in the index.
    pub fn insert_unindexed(&mut self, words: &[u64]) -> u32 {
        debug_assert!(!self.indexed);
        self.take(words)
    }

    fn take(&mut self, words: &[u64]) -> u32 {
        self.len += 1;
        let row = self.free;
        if row == NONE {
            let row = self.weights.len() as u32;
            assert!(row < NONE - 1, "a node holds at most 2^32 - 2 rows");
            push_words(&mut self.values, words);
            self.weights.push(0);
            (0..self.factor_count).for_each(|_| self.factors.push(0));
            // links to entries below are set before they are read
            self.states.push(0);
            self.nexts.push(NONE);
            (0..self.stride).for_each(|_| self.links.push(NONE));
            return row;
        }
        self.free = self.nexts[row as usize];
        let start = row as usize * self.width;
        copy_words(&mut self.values[start..start + self.width], words);
        self.weights[row as usize] = 0;
        for factor in &mut self.factors[row as usize * self.factor_count..][..self.factor_count] {
            *factor = 0;
        }
        let start = row as usize * self.stride;
        self.links[start..start + DOWN].copy_from_slice(&[NONE; DOWN]);
        (self.states[row as usize], self.nexts[row as usize]) = (0, NONE);
        row
    }

    /// Drops all rows and keeps the memory.
    pub fn clear_all(&mut self) {
        self.values.clear();
        self.weights.clear();
        self.factors.clear();
        self.states.clear();
        self.nexts.clear();
        self.links.clear();
        self.index.clear();
        self.by_source.clear();
        self.free = NONE;
        self.len = 0;
    }

    /// Gives the row's place back.
    pub fn remove(&mut self, row: u32) {
        if self.indexed {
            let start = row as usize * self.width;
            let hash = hash_words(&self.values[start..start + self.width]);
            if let Ok(found) = self.index.find_entry(hash, |&other| other == row) {
                found.remove();
            }
        }
        if self.has_sources {
            let source = self.link(row, self.stride - 1);
            self.by_source[source as usize] = NONE;
        }
        self.nexts[row as usize] = self.free;
        self.states[row as usize] = 0;
        self.weights[row as usize] = i64::MIN;
        self.free = row;
        self.len -= 1;
    }

    /// Gives memory back if there is much to give: free places at the end. Returns whether it did.
    pub fn give_back(&mut self) -> bool {
        if !self.trim.is_due(self.len, self.weights.len()) {
            return false;
        }
        let places = self.ids().last().map_or(self.reserved as usize, |row| row as usize + 1);
        self.values.truncate(places * self.width);
        self.weights.truncate(places);
        self.factors.truncate(places * self.factor_count);
        self.states.truncate(places);
        self.nexts.truncate(places);
        self.links.truncate(places * self.stride);
        self.free = NONE;
        for row in (0..places).rev().filter(|&row| self.weights[row] == i64::MIN) {
            self.nexts[row] = self.free;
            self.free = row as u32;
        }
        let sources = self.by_source.iter().rposition(|&row| row != NONE).map_or(0, |last| last + 1);
        self.by_source.truncate(sources);
        trim_buffer(&mut self.values);
        trim_buffer(&mut self.weights);
        trim_buffer(&mut self.factors);
        trim_buffer(&mut self.states);
        trim_buffer(&mut self.nexts);
        trim_buffer(&mut self.links);
        trim_buffer(&mut self.by_source);
        let (values, width) = (&self.values, self.width);
        self.index.shrink_to(0, |&row| hash_words(&values[row as usize * width..(row as usize + 1) * width]));
        true
    }

    /// The ids of all rows held, in order of id. Costs one pass over the slab.
    pub fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.ids_from(self.reserved)
    }

    /// The ids of the rows held from `from` on.
    pub fn ids_from(&self, from: u32) -> impl Iterator<Item = u32> + '_ {
        (from..self.capacity()).filter(|&row| self.weights[row as usize] != i64::MIN)
    }
}
