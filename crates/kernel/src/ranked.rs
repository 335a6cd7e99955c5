//! An ordered multiset, and the part of it from one rank to another.
//!
//! What: `[offset, offset + limit)` of rows in order, each counted as often as it is there, and how this part changes.
//! Representation: one ordered map from rows to multiplicities and two cuts, each a rank: the rows before it are counted, the *window* is what
//! is before the second cut and not before the first. A cut knows the row it goes through and how many rows come before that one.
//! Invariants: R1, no multiplicity is zero; R2, a cut has a row iff there are more rows than its rank, and then `before < rank <= before +
//! multiplicity` of it: the row's first `rank - before` copies are before the cut.
//! Cost: a batch costs O(log n) per row, and O(1) per row that comes to the other side of a cut, which are those that enter or leave the
//! window or jump over it.
//! Source: own.

use crate::sort_key::SortKey;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, Range};

/// Rows in order, and a window on them.
#[derive(Debug)]
pub struct Ranked {
    rows: BTreeMap<SortKey, i64>,
    first: Cut,
    last: Cut,
    /// All rows, with multiplicities.
    total: i128,
    key_bytes: usize,
}

/// A rank between the rows.
#[derive(Clone, Debug)]
struct Cut {
    /// How many rows are before it, if there are so many; `None`: all are.
    rank: Option<i128>,
    at: Option<(SortKey, i128)>,
}

impl Cut {
    /// How many of the copies of a row are before it.
    fn takes(&self, key: &[u8], copies: i64) -> i64 {
        match (&self.at, self.rank) {
            (_, Some(0)) => 0,
            (Some((at, before)), Some(rank)) => match key.cmp(at) {
                Ordering::Less => copies,
                Ordering::Equal => copies.min((rank - before) as i64),
                Ordering::Greater => 0,
            },
            _ => copies,
        }
    }
}

/// A change of the rows that is not made yet.
#[derive(Debug)]
pub struct Change {
    /// The rows with their multiplicities afterwards.
    rows: Vec<(SortKey, i64)>,
    first: Cut,
    last: Cut,
    /// All rows afterwards, with multiplicities.
    pub total: i128,
    /// The rows that enter the window (positive) and leave it, in order.
    pub window: Vec<(SortKey, i64)>,
    /// Searches in the ordered map.
    pub probes: u64,
    /// Rows met on the way from where the cuts were to where they will be.
    pub steps: u64,
}

/// How the numbers of rows change.
#[derive(Debug, Default)]
pub struct Renumbered {
    /// Rows with a number that they get (1) or lose (-1), in order. Numbers are from 1.
    pub rows: Vec<(SortKey, i128, i64)>,
    /// Rows met on the way.
    pub steps: u64,
}

impl Renumbered {
    /// The copies of a row had the ranks `was` and have the ranks `is`.
    fn add(&mut self, key: &SortKey, was: Range<i128>, is: Range<i128>) {
        let mut tell = |ranks: &Range<i128>, without: &Range<i128>, weight| {
            let before = ranks.start..ranks.end.min(without.start);
            let after = ranks.start.max(without.end)..ranks.end;
            for rank in before.chain(after) {
                self.rows.push((key.clone(), rank + 1, weight));
            }
        };
        tell(&was, &is, -1);
        tell(&is, &was, 1);
    }
}

/// A multiplicity would leave its range.
#[derive(Debug)]
pub struct TooMany;

impl Ranked {
    /// No rows; the window leaves `offset` of them out and holds at most `limit`.
    pub fn new(offset: u64, limit: Option<u64>) -> Self {
        let cut = |rank| Cut { rank, at: None };
        let last = limit.map(|limit| i128::from(offset) + i128::from(limit));
        Self { rows: BTreeMap::new(), first: cut(Some(offset.into())), last: cut(last), total: 0, key_bytes: 0 }
    }

    /// What a change of multiplicities, each row once, would make of the window.
    pub fn prepare(&self, changes: Vec<(SortKey, i64)>) -> Result<Change, TooMany> {
        let changes: BTreeMap<SortKey, i64> = changes.into_iter().collect();
        let total = self.total + changes.values().map(|&change| i128::from(change)).sum::<i128>();
        let after = After { rows: &self.rows, changes: &changes, total };
        let mut touched = Touched { keys: changes.keys().collect(), probes: 0, steps: 0 };
        let first = after.moved(&self.first, &mut touched);
        let last = after.moved(&self.last, &mut touched);
        let mut window = Vec::new();
        for &key in &touched.keys {
            touched.probes += 1;
            let copies = self.rows.get(key).copied().unwrap_or(0);
            let left = copies.checked_add(changes.get(key).copied().unwrap_or(0)).ok_or(TooMany)?;
            debug_assert!(left >= 0, "the input's deltas are exact");
            let was = self.last.takes(key, copies) - self.first.takes(key, copies);
            let is = last.takes(key, left) - first.takes(key, left);
            if was != is {
                window.push((key.clone(), is - was));
            }
        }
        let Touched { probes, steps, .. } = touched;
        let held = |key: &SortKey| self.rows.get(key).copied().unwrap_or(0);
        let rows = changes.iter().map(|(key, change)| (key.clone(), held(key) + change)).collect();
        Ok(Change { rows, first, last, total, window, probes, steps })
    }

    /// How a change that was prepared on these rows numbers the rows of the window anew: from the first row that changes to the last one, and
    /// further while numbers are shifted. Where the first one stands is counted from the nearer end.
    pub fn renumbered(&self, change: &Change) -> Renumbered {
        let mut found = Renumbered::default();
        let (Some((first, _)), Some((last, _))) = (change.rows.first(), change.rows.last()) else { return found };
        let (start, end) = (self.first.rank.unwrap_or(0), self.last.rank.unwrap_or(i128::MAX));
        let Some(mut was) = self.rank_of(first, end, &mut found.steps) else { return found };
        let mut is = was;
        let inside = |rank: i128, copies: i64| rank.clamp(start, end)..(rank + i128::from(copies)).clamp(start, end);
        let mut rows = self.rows.range::<SortKey, _>(first..).peekable();
        let mut changes = change.rows.iter().peekable();
        loop {
            let order = match (rows.peek(), changes.peek()) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((row, _)), Some((changed, _))) => (*row).cmp(changed),
            };
            let row = if order == Ordering::Greater { None } else { rows.next() };
            let changed = if order == Ordering::Less { None } else { changes.next() };
            let Some(key) = row.map(|(key, _)| key).or(changed.map(|(key, _)| key)) else { break };
            if key > last && was == is || was.min(is) >= end {
                break;
            }
            found.steps += 1;
            let held = row.map_or(0, |(_, &copies)| copies);
            let left = changed.map_or(held, |&(_, copies)| copies);
            found.add(key, inside(was, held), inside(is, left));
            (was, is) = (was + i128::from(held), is + i128::from(left));
        }
        found
    }

    /// How many rows are before a row, if these are less than `end`.
    fn rank_of(&self, key: &SortKey, end: i128, steps: &mut u64) -> Option<i128> {
        let mut before = self.rows.range::<SortKey, _>(..key);
        let mut behind = self.rows.range::<SortKey, _>(key..).rev();
        let (mut rank, mut rest) = (0, self.total);
        while rank < end {
            *steps += 1;
            match before.next() {
                Some((_, &copies)) => rank += i128::from(copies),
                None => return Some(rank),
            }
            match behind.next() {
                Some((_, &copies)) => rest -= i128::from(copies),
                None => return Some(rest).filter(|&rest| rest < end),
            }
        }
        None
    }

    /// Makes a change that was prepared on these rows.
    pub fn commit(&mut self, change: Change) {
        for (key, copies) in change.rows {
            let bytes = key.len();
            if copies == 0 {
                self.rows.remove(&key);
                self.key_bytes -= bytes;
            } else if self.rows.insert(key, copies).is_none() {
                self.key_bytes += bytes;
            }
        }
        (self.first, self.last, self.total) = (change.first, change.last, change.total);
    }

    /// The rows of the window in order, from a row of it on, with their copies inside.
    pub fn window<'a>(&'a self, from: Option<&'a [u8]>) -> impl Iterator<Item = (&'a SortKey, i64)> {
        let first = from.or(self.first.at.as_ref().map(|(key, _)| &**key));
        let is_empty = self.first.at.is_none() && self.first.rank != Some(0) || self.last.rank == Some(0);
        let start = first.map_or(Bound::Unbounded, Bound::Included);
        let rows = (!is_empty).then(|| self.rows.range::<[u8], _>((start, Bound::Unbounded)));
        let inside =
            |(key, &copies): (&'a SortKey, &i64)| (key, self.last.takes(key, copies) - self.first.takes(key, copies));
        let ends = |key: &SortKey| self.last.at.as_ref().is_some_and(|(at, _)| key > at);
        // the first cut may take all copies of the row it goes through
        rows.into_iter().flatten().take_while(move |(key, _)| !ends(key)).map(inside).filter(|&(_, copies)| copies > 0)
    }

    /// How many rows the window has, with multiplicities.
    pub fn window_len(&self) -> i128 {
        let before = |cut: &Cut| cut.rank.map_or(self.total, |rank| rank.min(self.total));
        before(&self.last) - before(&self.first)
    }

    /// Rows held, inside the window and outside.
    pub fn held(&self) -> usize {
        self.rows.len()
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.key_bytes + self.rows.len() * (size_of::<SortKey>() + size_of::<i64>())
    }
}

/// The rows that a batch concerns, and what finding them costs.
struct Touched<'a> {
    keys: BTreeSet<&'a SortKey>,
    probes: u64,
    steps: u64,
}

impl<'a> Touched<'a> {
    fn meet(&mut self, key: &'a SortKey) {
        self.steps += 1;
        self.keys.insert(key);
    }
}

/// The rows as they will be.
struct After<'a> {
    rows: &'a BTreeMap<SortKey, i64>,
    changes: &'a BTreeMap<SortKey, i64>,
    total: i128,
}

impl<'a> After<'a> {
    /// Where a cut will be. It goes there row by row from where it is, or from behind the last row.
    fn moved(&self, cut: &'a Cut, touched: &mut Touched<'a>) -> Cut {
        let Some(rank) = cut.rank.filter(|&rank| rank > 0) else { return cut.clone() };
        let mut moved = Cut { rank: cut.rank, at: None };
        let start = cut.at.as_ref().map(|(at, _)| at);
        let mut before = cut.at.as_ref().map_or(self.total, |(at, before)| {
            let shift = self.changes.range::<SortKey, _>(..at).map(|(_, &change)| i128::from(change)).sum::<i128>();
            before + shift
        });
        if self.total > rank && before >= rank {
            touched.probes += 1;
            if let Some(key) = start {
                touched.meet(key);
            }
            let upto = (Bound::Unbounded::<&SortKey>, start.map_or(Bound::Unbounded, Bound::Excluded));
            let (rows, changes) =
                (self.rows.range::<SortKey, _>(upto).rev(), self.changes.range::<SortKey, _>(upto).rev());
            for (key, copies) in merged(rows, changes, Ordering::Greater) {
                touched.meet(key);
                before -= copies;
                if before < rank {
                    moved.at = Some((key.clone(), before));
                    break;
                }
            }
        } else if let Some(start) = start {
            touched.probes += 1;
            let (rows, changes) = (self.rows.range::<SortKey, _>(start..), self.changes.range::<SortKey, _>(start..));
            for (key, copies) in merged(rows, changes, Ordering::Less) {
                touched.meet(key);
                if self.total > rank && before + copies >= rank {
                    moved.at = Some((key.clone(), before));
                    break;
                }
                before += copies;
            }
        }
        moved
    }
}

/// Rows in order, or against it, with the changes of their multiplicities added; `first` says which of two rows comes first.
fn merged<'a>(
    rows: impl Iterator<Item = (&'a SortKey, &'a i64)>,
    changes: impl Iterator<Item = (&'a SortKey, &'a i64)>,
    first: Ordering,
) -> impl Iterator<Item = (&'a SortKey, i128)> {
    let (mut rows, mut changes) = (rows.peekable(), changes.peekable());
    std::iter::from_fn(move || {
        let order = match (rows.peek(), changes.peek()) {
            (None, None) => return None,
            (Some(_), None) => first,
            (None, Some(_)) => first.reverse(),
            (Some((one, _)), Some((two, _))) => one.cmp(two),
        };
        let row = if order == first.reverse() { None } else { rows.next() };
        let change = if order == first { None } else { changes.next() };
        let key = row.or(change).map(|(key, _)| key)?;
        Some((key, row.into_iter().chain(change).map(|(_, &copies)| i128::from(copies)).sum()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::hash_words;

    type Rows = BTreeMap<u8, i64>;

    fn key(value: u8) -> SortKey {
        Box::new([value])
    }

    fn window_of(rows: &Rows, offset: u64, limit: Option<u64>) -> Rows {
        let copies = rows.iter().flat_map(|(&row, &copies)| std::iter::repeat_n(row, copies as usize));
        let mut found = Rows::new();
        for row in copies.skip(offset as usize).take(limit.map_or(usize::MAX, |limit| limit as usize)) {
            *found.entry(row).or_default() += 1;
        }
        found
    }

    /// Random batches: the window is what sorting gives, and its change is the difference.
    #[test]
    fn windows_are_those_of_sorted_rows() {
        let mut drawn = 0u64;
        let mut draw = |below: u64| {
            drawn += 1;
            hash_words(&[drawn]) % below
        };
        for round in 0..400 {
            let (offset, limit) = (draw(4), (draw(4) > 0).then(|| draw(7)));
            let mut ranked = Ranked::new(offset, limit);
            let (mut rows, mut window) = (Rows::new(), Rows::new());
            let mut numbered: BTreeMap<(i128, u8), i64> = BTreeMap::new();
            for step in 0..30 {
                let mut changes = BTreeMap::new();
                for _ in 0..=draw(5) {
                    let row = draw(12) as u8;
                    let held = rows.get(&row).copied().unwrap_or(0);
                    let change = draw(5) as i64 - 2;
                    changes.insert(row, if step >= 27 { -held } else { change.max(-held) });
                }
                if step == 29 {
                    changes = rows.iter().map(|(&row, &copies)| (row, -copies)).collect();
                }
                changes.retain(|_, change| *change != 0);
                let given = changes.iter().map(|(&row, &change)| (key(row), change)).collect();
                let change = ranked.prepare(given).unwrap();
                let unchanged: Rows = ranked.window(None).map(|(key, copies)| (key[0], copies)).collect();
                assert_eq!(unchanged, window, "nothing is done yet");
                let renumbered = ranked.renumbered(&change).rows;
                let delta: Rows = change.window.iter().map(|(key, copies)| (key[0], *copies)).collect();
                ranked.commit(change);
                for (row, change) in changes {
                    *rows.entry(row).or_default() += change;
                }
                rows.retain(|_, copies| *copies != 0);
                let expected = window_of(&rows, offset, limit);
                for (key, number, weight) in renumbered {
                    *numbered.entry((number, key[0])).or_default() += weight;
                }
                numbered.retain(|_, copies| *copies != 0);
                let copies = expected.iter().flat_map(|(&row, &copies)| std::iter::repeat_n(row, copies as usize));
                let ranks = (i128::from(offset) + 1..).zip(copies).map(|numbered| (numbered, 1));
                assert_eq!(numbered, ranks.collect(), "round {round}, step {step}: {rows:?}, {offset}, {limit:?}");
                for (row, copies) in delta {
                    assert_ne!(copies, 0);
                    *window.entry(row).or_default() += copies;
                }
                window.retain(|_, copies| *copies != 0);
                assert_eq!(window, expected, "round {round}, step {step}: {rows:?}, {offset}, {limit:?}");
                let read: Vec<(u8, i64)> = ranked.window(None).map(|(key, copies)| (key[0], copies)).collect();
                assert_eq!(read, expected.clone().into_iter().collect::<Vec<_>>());
                for &row in expected.keys() {
                    let from = key(row);
                    let rest: Vec<u8> = ranked.window(Some(&from)).map(|(key, _)| key[0]).collect();
                    assert_eq!(rest, expected.range(row..).map(|(&row, _)| row).collect::<Vec<_>>());
                }
                assert_eq!(ranked.window_len(), i128::from(expected.values().sum::<i64>()));
                assert_eq!(ranked.held(), rows.len());
            }
            assert_eq!((ranked.held(), ranked.bytes()), (0, 0));
        }
    }

    /// A row beyond the window changes nothing in it and meets no other row, however many there are; one inside pushes one row out.
    #[test]
    fn work_does_not_depend_on_how_many_rows_there_are() {
        for count in [100u32, 10_000] {
            let key = |value: u32| -> SortKey { Box::new(value.to_be_bytes()) };
            let mut ranked = Ranked::new(0, Some(10));
            let change = ranked.prepare((0..count).map(|row| (key(2 * row), 1)).collect()).unwrap();
            ranked.commit(change);
            let outside = ranked.prepare(vec![(key(2 * count - 1), 1)]).unwrap();
            assert!(outside.window.is_empty());
            assert!(outside.probes + outside.steps <= 6, "{outside:?}");
            let inside = ranked.prepare(vec![(key(5), 1)]).unwrap();
            assert_eq!(inside.window, [(key(5), 1), (key(18), -1)]);
            assert!(inside.probes + inside.steps <= 8, "{inside:?}");
            let gone = ranked.prepare(vec![(key(0), -1)]).unwrap();
            assert_eq!(gone.window, [(key(0), -1), (key(20), 1)]);
        }
    }

    #[test]
    fn a_multiplicity_out_of_range_is_told() {
        let mut ranked = Ranked::new(0, Some(1));
        let change = ranked.prepare(vec![(key(1), i64::MAX)]).unwrap();
        assert_eq!(change.window, [(key(1), 1)]);
        ranked.commit(change);
        assert!(ranked.prepare(vec![(key(1), 1)]).is_err());
        assert_eq!(ranked.window_len(), 1);
    }
}
