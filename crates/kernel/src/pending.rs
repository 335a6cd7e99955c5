//! The rows of a batch, atom by atom: found or made and marked before it is applied, unmarked afterwards.
//!
//! Every atom has a node of its own, so with a large batch the atoms are shared out to threads.

use crate::rows::{DOOMED, NEW, NONE};
use crate::threads::side_by_side;
use crate::tree::{AtomChanges, Node, Tree};
use crate::trim::trim_scratch;

/// A pending change of one row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub(crate) row: u32,
    pub(crate) weight: i64,
}

/// The pending changes of an atom. Kept between batches, for their memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingRows {
    pub(crate) rows: Vec<Pending>,
    /// The change of each factor of each row, one row after another.
    pub(crate) factors: Vec<i128>,
    /// The entries of each row's links that are known, one row after another; nothing if they were not looked up.
    pub(crate) entries: Vec<u32>,
    /// A row that after the batch is there less often than not at all, or not at all with values other than 0.
    pub(crate) missing: Option<u32>,
    /// How much of these the last batch used.
    used: [usize; 3],
}

/// What is learnt from the rows of a batch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Resolved {
    /// A row of a connex node has multiplicity above one before or after.
    pub(crate) repeated: bool,
    /// The change of a factor left 128 bits.
    pub(crate) overflow: bool,
}

impl Resolved {
    fn or(self, other: Self) -> Self {
        Self { repeated: self.repeated | other.repeated, overflow: self.overflow | other.overflow }
    }
}

impl PendingRows {
    /// Finds or makes the rows that changes speak of, adds the changes up by row, and marks the rows.
    pub(crate) fn resolve(&mut self, node: &mut Node, changes: &AtomChanges) -> Resolved {
        if node.is_row_free {
            return Resolved::default();
        }
        let (width, stored) = (node.rows.width(), node.factors.iter().flatten().count());
        let Self { rows: pending, factors: pending_factors, .. } = self;
        let mut resolved = Resolved::default();
        for (i, &weight) in changes.weights.iter().enumerate() {
            let words = &changes.words[i * width..(i + 1) * width];
            let row = match changes.sources.get(i) {
                Some(&source) => node.rows.find_or_insert_source(source, words),
                None => node.rows.find_or_insert(words).0,
            };
            let stamp = node.rows.stamp(row);
            let factors = &changes.factors[i * stored..(i + 1) * stored];
            if stamp == NONE {
                node.rows.set_stamp(row, pending.len() as u32);
                pending.push(Pending { row, weight });
                pending_factors.extend_from_slice(factors);
            } else {
                pending[stamp as usize].weight += weight;
                let start = stamp as usize * stored;
                for (sum, &change) in pending_factors[start..start + stored].iter_mut().zip(factors) {
                    let (total, over) = sum.overflowing_add(change);
                    *sum = total;
                    resolved.overflow |= over;
                }
            }
        }
        let mut kept = 0;
        for i in 0..pending.len() {
            let Pending { row, weight } = pending[i];
            node.rows.set_stamp(row, NONE);
            let before = node.rows.weight(row);
            let factors = i * stored..(i + 1) * stored;
            let is_left = |(&held, &change): (&i128, &i128)| held.wrapping_add(change) != 0;
            let values = || node.rows.factors(row).iter().zip(&pending_factors[factors.clone()]);
            if before + weight < 0 || before + weight == 0 && stored > 0 && values().any(is_left) {
                self.missing = Some(row);
            }
            if weight == 0 && pending_factors[factors.clone()].iter().all(|&f| f == 0) {
                if before == 0 {
                    node.rows.remove(row);
                }
                continue;
            }
            if before == 0 {
                node.rows.set(row, NEW);
            } else if before + weight == 0 {
                node.rows.set(row, DOOMED);
            }
            resolved.repeated |= node.connex && (before > 1 || before + weight > 1);
            pending[kept] = pending[i];
            pending_factors.copy_within(factors, kept * stored);
            kept += 1;
        }
        pending.truncate(kept);
        pending_factors.truncate(kept * stored);
        resolved
    }

    /// Gives the memory of a batch much larger than the last one back.
    pub(crate) fn give_back(&mut self) {
        let [rows, factors, entries] = self.used;
        trim_scratch(&mut self.rows, rows);
        trim_scratch(&mut self.factors, factors);
        trim_scratch(&mut self.entries, entries);
    }

    /// Takes the marks off the rows and forgets them.
    pub(crate) fn unmark(&mut self, node: &mut Node) -> Resolved {
        self.used = [self.rows.len(), self.factors.len(), self.entries.len()];
        for pending in self.rows.drain(..) {
            node.rows.clear(pending.row, NEW | DOOMED);
        }
        self.factors.clear();
        self.entries.clear();
        self.missing = None;
        Resolved::default()
    }
}

impl Tree {
    /// Looks up the entries that the links of an atom's new rows lead to, or those above each change of a leaf without rows, if there is more
    /// than one thread to do it. They stay what they are until they are needed: entries are only added on the way there.
    pub(crate) fn find_entries(&self, node: usize, changes: &AtomChanges, pending: &mut PendingRows, threads: usize) {
        if threads == 1 {
            return;
        }
        let PendingRows { rows, entries, .. } = pending;
        if self.nodes[node].is_row_free {
            let (count, width) = (changes.weights.len(), self.nodes[node].rows.width());
            entries.resize(count, NONE);
            let share = count.div_ceil(threads).max(1);
            let parts = entries.chunks_mut(share).enumerate();
            side_by_side(parts, |(part, entries)| {
                self.find_leaf_entries(node, &changes.words[part * share * width..], entries);
            });
            return;
        }
        let links = self.nodes[node].links();
        entries.resize(rows.len() * links, NONE);
        let share = rows.len().div_ceil(threads).max(1);
        let parts = rows.chunks(share).zip(entries.chunks_mut(share * links));
        side_by_side(parts, |(rows, entries)| self.find_some_entries(node, rows, entries));
    }

    fn find_leaf_entries(&self, node: usize, words: &[u64], entries: &mut [u32]) {
        let from = &self.nodes[node];
        let (hub, _) = from.up.expect("a leaf is below a hub");
        let width = from.rows.width();
        let mut key = Vec::new();
        for (i, entry) in entries.iter_mut().enumerate() {
            from.up_key.cut(|at| words[i * width + at], &mut key);
            *entry = self.edges[hub].hub.find(&key).unwrap_or(NONE);
        }
    }

    fn find_some_entries(&self, node: usize, pending: &[Pending], entries: &mut [u32]) {
        let from = &self.nodes[node];
        let mut key = Vec::new();
        let links = from.links();
        for link in 0..links {
            let (hub, spec) = from.link(link);
            for (i, change) in pending.iter().enumerate().filter(|(_, change)| from.rows.has(change.row, NEW)) {
                let words = from.rows.values(change.row);
                spec.cut(|at| words[at], &mut key);
                entries[i * links + link] = self.edges[hub].hub.find(&key).unwrap_or(NONE);
            }
        }
    }

    /// Does something with the rows of every atom, on so many threads.
    pub(crate) fn each_atom(
        &mut self,
        threads: usize,
        work: impl Fn(usize, &mut Node, &mut PendingRows) -> Resolved + Sync,
    ) -> Resolved {
        let Self { nodes, atom_nodes, pending, .. } = self;
        if threads == 1 {
            let atoms = pending.iter_mut().enumerate();
            return atoms.fold(Resolved::default(), |found, (atom, rows)| {
                found.or(work(atom, &mut nodes[atom_nodes[atom]], rows))
            });
        }
        let mut nodes: Vec<Option<&mut Node>> = nodes.iter_mut().map(Some).collect();
        let mut shares: Vec<Vec<(usize, &mut Node, &mut PendingRows)>> = (0..threads).map(|_| Vec::new()).collect();
        for (atom, rows) in pending.iter_mut().enumerate() {
            let node = nodes[atom_nodes[atom]].take().expect("an atom has a node of its own");
            shares[atom % threads].push((atom, node, rows));
        }
        let work = |share: Vec<(usize, &mut Node, &mut PendingRows)>| {
            share.into_iter().fold(Resolved::default(), |found, (atom, node, rows)| found.or(work(atom, node, rows)))
        };
        side_by_side(shares.into_iter().filter(|share| !share.is_empty()), work)
            .into_iter()
            .fold(Resolved::default(), Resolved::or)
    }
}
