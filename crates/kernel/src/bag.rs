//! Ordered bags: the values of an aggregate's argument in a group, in order, each with how often it is there.
//!
//! What: the first and the last value of a group under any inserts and deletes, which no sum tells.
//! Representation: sort keys (`sort_key.rs`) in an ordered map, with counts. The change of a batch is a bag too, whose counts may be negative; it is
//! merged only by `commit`, and until then the ends of the bag after it are found without touching it.
//! Invariants: B1, no count is zero; B2, of a bag that is held all counts are positive.
//! Cost: O(log n) per changed value; an end after a change costs O(log n) per value that leaves at this end. Space is linear in the distinct
//! values.
//! Source: own.

use crate::sort_key::SortKey;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// What an entry takes beside the bytes of its key.
const ENTRY_BYTES: usize = 64;

/// Which value of a bag is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    First,
    Last,
}

/// Values in order, each with its number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bag {
    values: BTreeMap<SortKey, i128>,
}

impl Bag {
    /// Adds a value so many times. Returns by how many bytes the bag grows.
    pub(crate) fn add(&mut self, value: SortKey, times: i128) -> isize {
        let bytes = (value.len() + ENTRY_BYTES) as isize;
        match self.values.entry(value) {
            Entry::Vacant(entry) => {
                entry.insert(times);
                bytes
            }
            Entry::Occupied(mut entry) => {
                *entry.get_mut() += times;
                if *entry.get() == 0 {
                    entry.remove();
                    return -bytes;
                }
                0
            }
        }
    }

    /// Adds what another bag holds. Returns by how many bytes it grows.
    pub(crate) fn merge(&mut self, change: Self) -> isize {
        change.values.into_iter().map(|(value, times)| self.add(value, times)).sum()
    }

    /// The first or the last value once a change is made.
    pub(crate) fn end<'a>(&'a self, end: End, change: Option<&'a Self>) -> Option<&'a SortKey> {
        let Some(change) = change else {
            let entry = if end == End::First { self.values.first_key_value() } else { self.values.last_key_value() };
            return entry.map(|(value, _)| value);
        };
        let stays = |&(value, number): &(&SortKey, &i128)| change.values.get(value).is_none_or(|by| number + by > 0);
        let comes = |&(_, number): &(&SortKey, &i128)| *number > 0;
        let ends = match end {
            End::First => [self.values.iter().find(stays), change.values.iter().find(comes)],
            End::Last => [self.values.iter().rev().find(stays), change.values.iter().rev().find(comes)],
        };
        let found = ends.into_iter().flatten().map(|(value, _)| value);
        if end == End::First { found.min() } else { found.max() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(value: u8) -> SortKey {
        Box::new([value])
    }

    #[test]
    fn the_ends_after_a_change_are_those_of_the_merged_bag() {
        let mut random = 7u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        for _ in 0..200 {
            let (mut bag, mut bytes) = (Bag::default(), 0isize);
            for _ in 0..20 {
                let mut change = Bag::default();
                for _ in 0..next(6) {
                    let value = next(8) as u8;
                    let held = bag.values.get(&key(value)).copied().unwrap_or(0);
                    let by = change.values.get(&key(value)).copied().unwrap_or(0);
                    let times = if held + by > 0 && next(2) == 0 { -1 } else { 1 };
                    change.add(key(value), times);
                }
                let ends = [End::First, End::Last].map(|end| bag.end(end, Some(&change)).cloned());
                bytes += bag.merge(change);
                assert_eq!(ends, [End::First, End::Last].map(|end| bag.end(end, None).cloned()));
                assert!(bag.values.values().all(|&number| number > 0));
                assert_eq!(bytes as usize, bag.values.len() * (1 + ENTRY_BYTES));
            }
        }
    }
}
