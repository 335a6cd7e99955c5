//! Hubs: for the join key between nodes, one hash map from key value to entry.
//!
//! An entry knows, for each child below it (a *side*), the list of the child's alive rows with this key, and the list of
//! the parent's rows that carry the key. It is CROWN's projection view (the count of a side) and generalized relation
//! (several sides) at once.
//!
//! Links of an entry, `7 + 2 * sides` words: the number of child rows that refer to it (alive or not), of parent rows, the
//! first and last parent row, the number of live parent rows, the number of empty sides, a stamp for the settling in
//! progress; then per side the first alive row and their number.
//! `sums` holds, per side that passes values, what it passes: the sum of the annotations of its alive rows.
//!
//! `totals` holds, per side of which only that is known, how many rows it has, copies counted (see `leaf`).
//!
//! A side without alive rows is `Blank`: of most hubs its list is empty and its sums are zero, but where nothing below is answered by a
//! phantom, the list then shows the phantom row and the sums are the phantom's.
//!
//! Invariants: H1 an entry is held iff a child row or a parent row refers to it; H2 `lacking` is the number of sides
//! without an alive row; H3 the first `live` parents in the list are exactly the live ones; H4 outside the settling of an entry, a side
//! without an alive row is blank.

use crate::hash::{copy_words, hash_words, push_words, same_words};
use crate::rows::NONE;
use crate::trim::{Trim, trim_buffer};
use hashbrown::HashTable;

const CHILDREN: usize = 0;
const PARENTS: usize = 1;
const FIRST: usize = 2;
const LAST: usize = 3;
const LIVE_PARENTS: usize = 4;
const LACKING: usize = 5;
const STAMP: usize = 6;
const SIDES: usize = 7;

/// What a side shows while it has no alive row.
#[derive(Clone, Debug)]
pub struct Blank {
    /// The first row of its list: none, or a phantom, which is never alive and has no next row.
    pub head: u32,
    /// What it passes, if it passes values; zeros where this is empty.
    pub sums: Vec<i128>,
}

impl Default for Blank {
    fn default() -> Self {
        Self { head: NONE, sums: Vec::new() }
    }
}

/// The entries of one join key.
#[derive(Debug)]
pub struct Hub {
    width: usize,
    sides: usize,
    stride: usize,
    /// Per side the place of its sums within an entry's sums, or `None` for a support edge.
    value_sides: Vec<Option<usize>>,
    sum_stride: usize,
    components: usize,
    /// Per side its position among an entry's totals, or `None` if it has none.
    counted_sides: Vec<Option<usize>>,
    total_stride: usize,
    totals: Vec<i64>,
    /// The first row of a side without an alive row.
    blank_head: u32,
    /// The sums of an entry without alive rows.
    blank_sums: Vec<i128>,
    keys: Vec<u64>,
    links: Vec<u32>,
    sums: Vec<i128>,
    /// Per side the largest number of rows (the first component) that an entry's sums have ever told.
    peaks: Vec<i128>,
    free: u32,
    len: usize,
    index: HashTable<u32>,
    trim: Trim,
}

impl Hub {
    /// An empty hub; `values[i]` says whether side `i` passes values of `components` components each, `counted[i]` whether it has a total.
    /// Only the one side of a hub with a single side may be other than empty while it is blank.
    pub fn new(width: usize, values: &[bool], counted: &[bool], components: usize, blank: Blank) -> Self {
        let mut total_stride = 0;
        let counted_sides =
            counted.iter().map(|&is_counted| is_counted.then(|| (total_stride, total_stride += 1).0)).collect();
        let mut next = 0;
        let value_sides = values.iter().map(|&is_value| is_value.then(|| (next, next += components).0)).collect();
        Self {
            width,
            sides: values.len(),
            stride: SIDES + 2 * values.len(),
            value_sides,
            sum_stride: next,
            components,
            counted_sides,
            total_stride,
            totals: Vec::new(),
            blank_head: blank.head,
            blank_sums: if blank.sums.is_empty() { vec![0; next] } else { blank.sums },
            keys: Vec::new(),
            links: Vec::new(),
            sums: Vec::new(),
            peaks: vec![1; values.len()],
            free: NONE,
            len: 0,
            index: HashTable::new(),
            trim: Trim::default(),
        }
    }

    /// Number of entries held.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no entry is held.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// One more than the largest entry id ever given out.
    pub fn capacity(&self) -> usize {
        self.links.len() / self.stride
    }

    /// Number of sides.
    pub fn sides(&self) -> usize {
        self.sides
    }

    /// Bytes held, counted from the capacities of the arrays and the index.
    pub fn bytes(&self) -> usize {
        (self.keys.capacity() + self.totals.capacity()) * 8
            + self.links.capacity() * 4
            + self.sums.capacity() * 16
            + self.index.allocation_size()
    }

    /// The key of an entry.
    #[inline]
    pub fn key(&self, entry: u32) -> &[u64] {
        let start = entry as usize * self.width;
        &self.keys[start..start + self.width]
    }

    /// The entry of a key.
    #[inline]
    pub fn find(&self, key: &[u64]) -> Option<u32> {
        self.index.find(hash_words(key), |&entry| same_words(self.key(entry), key)).copied()
    }

    /// The entry of a key; a new one without rows if there is none.
    #[inline]
    pub fn find_or_insert(&mut self, key: &[u64]) -> (u32, bool) {
        let hash = hash_words(key);
        if let Some(&entry) = self.index.find(hash, |&entry| same_words(self.key(entry), key)) {
            return (entry, false);
        }
        let entry = if self.free == NONE {
            let entry = self.capacity() as u32;
            push_words(&mut self.keys, key);
            self.links.resize(self.links.len() + self.stride, 0);
            self.sums.extend_from_slice(&self.blank_sums);
            self.totals.resize(self.totals.len() + self.total_stride, 0);
            entry
        } else {
            let entry = self.free;
            self.free = self.link(entry, FIRST);
            let start = entry as usize * self.width;
            copy_words(&mut self.keys[start..start + self.width], key);
            let start = entry as usize * self.sum_stride;
            self.sums[start..start + self.sum_stride].copy_from_slice(&self.blank_sums);
            let start = entry as usize * self.total_stride;
            self.totals[start..start + self.total_stride].fill(0);
            entry
        };
        self.reset_links(entry);
        let (keys, width) = (&self.keys, self.width);
        self.index.insert_unique(hash, entry, |&e| hash_words(&keys[e as usize * width..(e as usize + 1) * width]));
        self.len += 1;
        (entry, true)
    }

    /// Makes room in the index for as many entries as rows are to come.
    pub fn reserve(&mut self, rows: usize) {
        let (keys, width) = (&self.keys, self.width);
        let more = if width == 0 { 0 } else { rows.saturating_sub(self.len) };
        self.index.reserve(more, |&e| hash_words(&keys[e as usize * width..(e as usize + 1) * width]));
    }

    /// Gives back what was reserved if it was far too much: many rows had one key.
    pub fn give_back_reserve(&mut self) {
        if self.index.capacity() > 4 * self.len.max(1024) {
            let (keys, width) = (&self.keys, self.width);
            self.index.shrink_to(self.len, |&e| hash_words(&keys[e as usize * width..(e as usize + 1) * width]));
        }
    }

    fn reset_links(&mut self, entry: u32) {
        let start = entry as usize * self.stride;
        let links = &mut self.links[start..start + self.stride];
        links.fill(0);
        (links[FIRST], links[LAST], links[STAMP], links[LACKING]) = (NONE, NONE, NONE, self.sides as u32);
        for side in 0..self.sides {
            links[SIDES + 2 * side] = self.blank_head;
        }
    }

    /// Makes the entry that phantom rows above refer to, entry 0: no key leads to it, it is not counted, and it stays. Its sides show the
    /// rows `heads`, and it passes 1. To be called before the first entry is made.
    pub fn reserve_phantom_entry(&mut self, heads: &[u32]) {
        debug_assert!(self.links.is_empty());
        push_words(&mut self.keys, &vec![0; self.width]);
        self.links.resize(self.stride, 0);
        self.sums.resize(self.sum_stride, 1);
        self.totals.resize(self.total_stride, 0);
        self.reset_links(0);
        self.set_link(0, CHILDREN, 1);
        for (side, &head) in heads.iter().enumerate() {
            self.set_link(0, SIDES + 2 * side, head);
        }
    }

    /// Gives an entry's place back.
    pub fn remove(&mut self, entry: u32) {
        debug_assert!(self.link(entry, CHILDREN) == 0 && self.link(entry, PARENTS) == 0);
        let hash = hash_words(self.key(entry));
        if let Ok(found) = self.index.find_entry(hash, |&other| other == entry) {
            found.remove();
        }
        self.set_link(entry, FIRST, self.free);
        self.free = entry;
        self.len -= 1;
    }

    /// Gives memory back if there is much to give: free places at the end.
    pub fn give_back(&mut self) {
        if !self.trim.is_due(self.len, self.capacity()) {
            return;
        }
        let is_free = |links: &[u32]| links[CHILDREN] == 0 && links[PARENTS] == 0;
        let places = self.links.chunks_exact(self.stride).rposition(|links| !is_free(links)).map_or(0, |last| last + 1);
        self.keys.truncate(places * self.width);
        self.links.truncate(places * self.stride);
        self.sums.truncate(places * self.sum_stride);
        self.totals.truncate(places * self.total_stride);
        self.free = NONE;
        for entry in (0..places).rev() {
            if is_free(&self.links[entry * self.stride..(entry + 1) * self.stride]) {
                self.links[entry * self.stride + FIRST] = self.free;
                self.free = entry as u32;
            }
        }
        trim_buffer(&mut self.keys);
        trim_buffer(&mut self.links);
        trim_buffer(&mut self.sums);
        trim_buffer(&mut self.totals);
        let (keys, width) = (&self.keys, self.width);
        self.index.shrink_to(0, |&e| hash_words(&keys[e as usize * width..(e as usize + 1) * width]));
    }

    #[inline]
    fn link(&self, entry: u32, field: usize) -> u32 {
        self.links[entry as usize * self.stride + field]
    }

    #[inline]
    fn set_link(&mut self, entry: u32, field: usize, value: u32) {
        self.links[entry as usize * self.stride + field] = value;
    }

    /// A child row refers to the entry.
    #[inline]
    pub fn add_child(&mut self, entry: u32) {
        self.links[entry as usize * self.stride + CHILDREN] += 1;
    }

    /// A child row no longer refers to the entry; returns how many still do.
    #[inline]
    pub fn drop_child(&mut self, entry: u32) -> u32 {
        let count = &mut self.links[entry as usize * self.stride + CHILDREN];
        *count -= 1;
        *count
    }

    /// How many child rows refer to the entry, alive or not.
    #[inline]
    pub fn children(&self, entry: u32) -> u32 {
        self.link(entry, CHILDREN)
    }

    /// How many parent rows refer to the entry.
    #[inline]
    pub fn parents(&self, entry: u32) -> u32 {
        self.link(entry, PARENTS)
    }

    /// Adds to the number of parent rows.
    #[inline]
    pub fn count_parent(&mut self, entry: u32, change: i32) {
        let count = &mut self.links[entry as usize * self.stride + PARENTS];
        *count = count.wrapping_add_signed(change);
    }

    /// First and last parent row.
    #[inline]
    pub fn parent_list(&self, entry: u32) -> (u32, u32) {
        (self.link(entry, FIRST), self.link(entry, LAST))
    }

    /// Sets first and last parent row.
    #[inline]
    pub fn set_parent_list(&mut self, entry: u32, (first, last): (u32, u32)) {
        self.set_link(entry, FIRST, first);
        self.set_link(entry, LAST, last);
    }

    /// Number of live parent rows.
    #[inline]
    pub fn live_parents(&self, entry: u32) -> u32 {
        self.link(entry, LIVE_PARENTS)
    }

    /// Sets the number of live parent rows.
    #[inline]
    pub fn set_live_parents(&mut self, entry: u32, count: u32) {
        self.set_link(entry, LIVE_PARENTS, count);
    }

    /// Sets the number of live parent rows of every entry to zero.
    pub fn forget_live_parents(&mut self) {
        self.links.iter_mut().skip(LIVE_PARENTS).step_by(self.stride).for_each(|count| *count = 0);
    }

    /// Whether every side has an alive row.
    #[inline]
    pub fn complete(&self, entry: u32) -> bool {
        self.link(entry, LACKING) == 0
    }

    /// The place of the entry in the settling in progress, or `NONE`.
    #[inline]
    pub fn stamp(&self, entry: u32) -> u32 {
        self.link(entry, STAMP)
    }

    /// Sets the place of the entry in the settling in progress.
    #[inline]
    pub fn set_stamp(&mut self, entry: u32, stamp: u32) {
        self.set_link(entry, STAMP, stamp);
    }

    /// The first alive row of a side; of a side without one, its phantom or none.
    #[inline]
    pub fn side_head(&self, entry: u32, side: usize) -> u32 {
        self.link(entry, SIDES + 2 * side)
    }

    /// The first alive row of a side, or none.
    #[inline]
    pub fn alive_head(&self, entry: u32, side: usize) -> u32 {
        let head = self.side_head(entry, side);
        if head == self.blank_head { NONE } else { head }
    }

    /// The number of alive rows of a side.
    #[inline]
    pub fn side_count(&self, entry: u32, side: usize) -> u32 {
        self.link(entry, SIDES + 2 * side + 1)
    }

    /// A row was put in front of a side.
    #[inline]
    pub fn side_gained(&mut self, entry: u32, side: usize, head: u32) {
        let start = entry as usize * self.stride;
        let links = &mut self.links[start..start + self.stride];
        links[SIDES + 2 * side] = head;
        links[SIDES + 2 * side + 1] += 1;
        if links[SIDES + 2 * side + 1] == 1 {
            links[LACKING] -= 1;
        }
    }

    /// A row was taken out of a side whose first row is now `head`.
    #[inline]
    pub fn side_lost(&mut self, entry: u32, side: usize, head: u32) {
        let start = entry as usize * self.stride;
        let links = &mut self.links[start..start + self.stride];
        links[SIDES + 2 * side] = if head == NONE { self.blank_head } else { head };
        links[SIDES + 2 * side + 1] -= 1;
        if links[SIDES + 2 * side + 1] == 0 {
            links[LACKING] += 1;
        }
    }

    /// Whether some side passes values.
    #[inline]
    pub fn has_values(&self) -> bool {
        self.sum_stride > 0
    }

    /// Whether this side passes values.
    #[inline]
    pub fn is_value_side(&self, side: usize) -> bool {
        self.value_sides[side].is_some()
    }

    /// The sums of a side that passes values.
    #[inline]
    pub fn side_sums(&self, entry: u32, side: usize) -> &[i128] {
        let start = entry as usize * self.sum_stride + self.value_sides[side].expect("a value side");
        &self.sums[start..start + self.components]
    }

    /// Adds to the sums of a side, modulo 2^128; returns whether one overflowed.
    #[inline]
    pub fn add_side_sums(&mut self, entry: u32, side: usize, change: &[i128]) -> bool {
        let start = entry as usize * self.sum_stride + self.value_sides[side].expect("a value side");
        let mut overflow = false;
        for (sum, &delta) in self.sums[start..start + self.components].iter_mut().zip(change) {
            let (total, over) = sum.overflowing_add(delta);
            *sum = total;
            overflow |= over;
        }
        if self.sums[start] > self.peaks[side] {
            self.peaks[side] = self.sums[start];
        }
        overflow
    }

    /// The number of rows of a side that has a total.
    #[inline]
    pub fn total(&self, entry: u32, side: usize) -> i64 {
        self.totals[entry as usize * self.total_stride + self.counted_sides[side].expect("a counted side")]
    }

    /// Adds to the number of rows of a side that has a total.
    #[inline]
    pub fn add_total(&mut self, entry: u32, side: usize, change: i64) {
        let place = entry as usize * self.total_stride + self.counted_sides[side].expect("a counted side");
        self.totals[place] = self.totals[place].wrapping_add(change);
    }

    /// Sets all sums of an entry to the same value.
    pub fn fill_sums(&mut self, entry: u32, value: i128) {
        let start = entry as usize * self.sum_stride;
        self.sums[start..start + self.sum_stride].fill(value);
    }

    /// Sets the sums of an entry without alive rows to those of blank sides.
    pub fn blank_sums(&mut self, entry: u32) {
        debug_assert!(self.link(entry, LACKING) == self.sides as u32);
        let start = entry as usize * self.sum_stride;
        self.sums[start..start + self.sum_stride].copy_from_slice(&self.blank_sums);
    }

    /// The largest number of rows that a side has ever passed.
    pub fn peak(&self, side: usize) -> i128 {
        self.peaks[side]
    }

    /// The sums of all value sides of an entry, one after another.
    #[inline]
    pub fn all_sums(&self, entry: u32) -> &[i128] {
        let start = entry as usize * self.sum_stride;
        &self.sums[start..start + self.sum_stride]
    }

    /// The place of a side's sums within `all_sums`.
    #[inline]
    pub fn sum_place(&self, side: usize) -> Option<usize> {
        self.value_sides[side]
    }
}
