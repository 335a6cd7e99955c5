//! Ordered multisets side by side, one per partition of the rows, and the window of each.
//!
//! What: of every partition the rows from one rank to another, as `ranked.rs` has it for one.
//! Representation: an ordered map from the bytes that the keys of a partition have in common to its rows. Without columns that part the rows
//! there is one partition, of the empty beginning.
//! Invariants: no partition is empty; `held`, `bytes` and `window_len` are the sums over all.
//! Cost: that of `Ranked` for the partitions that a batch concerns, and O(log p) to find each of them.
//! Source: own.

use crate::ranked::{Change, Ranked, TooMany};
use crate::sort_key::{RowOrder, SortKey};
use std::collections::BTreeMap;
use std::ops::Bound;

/// Rows in order, partition by partition.
#[derive(Debug)]
pub struct Partitions {
    offset: u64,
    limit: Option<u64>,
    rows: BTreeMap<SortKey, Ranked>,
    held: usize,
    bytes: usize,
    window_len: i128,
}

/// A change of one partition that is not made yet.
#[derive(Debug)]
pub struct PartitionChange {
    partition: SortKey,
    /// What changes in it.
    pub change: Change,
}

impl Partitions {
    /// No rows; the window of a partition leaves `offset` rows out and holds at most `limit`.
    pub fn new(offset: u64, limit: Option<u64>) -> Self {
        Self { offset, limit, rows: BTreeMap::new(), held: 0, bytes: 0, window_len: 0 }
    }

    /// What a change of multiplicities, each row once, would make of the windows.
    pub fn prepare(&self, mut changes: Vec<(SortKey, i64)>, order: &RowOrder) -> Result<Vec<PartitionChange>, TooMany> {
        changes.sort_unstable_by(|one, two| one.0.cmp(&two.0));
        let mut found = Vec::new();
        let mut changes = changes.into_iter().peekable();
        while let Some((key, _)) = changes.peek() {
            let partition: SortKey = key[..order.partition_len(key)].into();
            let mine = std::iter::from_fn(|| changes.next_if(|(key, _)| key.starts_with(&partition))).collect();
            let change = match self.rows.get(&partition) {
                Some(rows) => rows.prepare(mine)?,
                None => Ranked::new(self.offset, self.limit).prepare(mine)?,
            };
            found.push(PartitionChange { partition, change });
        }
        Ok(found)
    }

    /// The rows of a partition that is to change, before it does; `None` if there are none.
    pub fn before(&self, change: &PartitionChange) -> Option<&Ranked> {
        self.rows.get(&change.partition)
    }

    /// No rows, as those of a partition that is not there.
    pub fn empty(&self) -> Ranked {
        Ranked::new(self.offset, self.limit)
    }

    /// Makes changes that were prepared on these rows.
    pub fn commit(&mut self, changes: Vec<PartitionChange>) {
        for PartitionChange { partition, change } in changes {
            let bytes = partition.len() + size_of::<SortKey>() + size_of::<Ranked>();
            let empty = || Ranked::new(self.offset, self.limit);
            let rows = self.rows.entry(partition.clone()).or_insert_with(empty);
            if rows.held() > 0 {
                (self.held, self.bytes) = (self.held - rows.held(), self.bytes - rows.bytes() - bytes);
                self.window_len -= rows.window_len();
            }
            rows.commit(change);
            if rows.held() > 0 {
                (self.held, self.bytes) = (self.held + rows.held(), self.bytes + rows.bytes() + bytes);
                self.window_len += rows.window_len();
            } else {
                self.rows.remove(&partition);
            }
        }
    }

    /// The rows of all windows in order, from a row of one of them on, with their copies inside; and whether it is the first of its partition's
    /// window that is given.
    pub fn window<'a>(&'a self, from: Option<&'a [u8]>) -> impl Iterator<Item = (&'a SortKey, i64, bool)> {
        // the beginning of a key is not above it, and that of a later partition is
        let first = from.and_then(|key| {
            let upto = (Bound::Unbounded, Bound::Included(key));
            self.rows.range::<[u8], _>(upto).next_back().map(|(partition, _)| &**partition)
        });
        let start = first.map_or(Bound::Unbounded, Bound::Included);
        let partitions = self.rows.range::<[u8], _>((start, Bound::Unbounded));
        partitions.flat_map(move |(partition, rows)| {
            let from = from.filter(|_| first == Some(&**partition));
            rows.window(from).enumerate().map(move |(at, (key, copies))| (key, copies, at == 0 && from.is_none()))
        })
    }

    /// How many rows the windows have, with multiplicities.
    pub fn window_len(&self) -> i128 {
        self.window_len
    }

    /// Rows held, inside the windows and outside.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
