//! Building a tree from all rows of its atoms at once, when a view is created on loaded tables.
//!
//! Atoms are applied from the leaves up, so that every row finds the support it will have when it is linked: no status changes twice. What
//! such a build waits for is memory: rows come in any order, and every look at a hub entry is somewhere else. So the rows of an atom are
//! first brought into the order in which the entries of one of its hubs lie in the hub's index. Rows and entries that are made or met one
//! after another are then neighbours, for all atoms around the hub.
//!
//! Representation: a permutation by the upper bits of the place in an index that has room for one entry per row, in parts that fit a cache.
//!
//! Cost: one hash and two copies per row, for atoms of more than `SMALL` rows.

use crate::hash::hash_words;
use crate::shape::KeySpec;
use crate::tree::{Applied, AtomChanges, Tree};

/// Atoms with fewer rows are taken as they come.
const SMALL: usize = 1 << 14;
/// About how many rows a part has.
const PART: usize = 1 << 12;
/// The most parts.
const PARTS: usize = 1 << 11;

impl Tree {
    /// Takes all rows of all atoms into an empty tree.
    pub(crate) fn build(&mut self, mut changes: Vec<AtomChanges>) -> (Applied, Vec<AtomChanges>) {
        for (atom, change) in changes.iter_mut().enumerate() {
            self.reserve(atom, change.weights.len());
            if let Some(order) = self.order_of_entries(atom, change) {
                *change = change.permuted(&order);
            }
        }
        let applied = self.apply(&changes, None);
        for edge in &mut self.edges {
            edge.hub.give_back_reserve();
        }
        (applied, changes)
    }

    /// Makes room for the rows of an atom and the entries they may lead to.
    fn reserve(&mut self, atom: usize, rows: usize) {
        let node = &mut self.nodes[self.atom_nodes[atom]];
        if !node.is_row_free {
            node.rows.reserve(rows);
        }
        for link in 0..node.links() {
            self.edges[node.link(link).0].hub.reserve(rows);
        }
    }

    /// The rows of an atom in the order of the entries of a hub that they lead to: the one above if other atoms meet there, else the first
    /// below, else none.
    fn order_of_entries(&self, atom: usize, changes: &AtomChanges) -> Option<Vec<u32>> {
        let (node, rows) = (&self.nodes[self.atom_nodes[atom]], changes.weights.len());
        if rows < SMALL {
            return None;
        }
        let is_shared = |&(hub, _): &(usize, &KeySpec)| {
            let edge = &self.edges[hub];
            !edge.key.is_empty() && (edge.children.len() > 1 || self.nodes[edge.parent].is_relation)
        };
        // links are those below, then the one above
        let (_, spec) = (0..node.links()).rev().map(|link| node.link(link)).find(is_shared)?;
        let places = (rows * 8 / 7).next_power_of_two();
        let parts = (rows / PART).next_power_of_two().clamp(2, PARTS);
        let (width, mut key) = (node.rows.width(), Vec::new());
        let mut part_of = Vec::with_capacity(rows);
        let mut starts = vec![0u32; parts + 1];
        for i in 0..rows {
            let words = &changes.words[i * width..(i + 1) * width];
            spec.cut(|at| words[at], &mut key);
            let part = (hash_words(&key) as usize & (places - 1)) / (places / parts);
            part_of.push(part as u16);
            starts[part + 1] += 1;
        }
        for part in 0..parts {
            starts[part + 1] += starts[part];
        }
        let mut order = vec![0; rows];
        for (i, &part) in part_of.iter().enumerate() {
            let next = &mut starts[usize::from(part)];
            order[*next as usize] = i as u32;
            *next += 1;
        }
        Some(order)
    }
}

impl AtomChanges {
    /// The same changes in another order.
    fn permuted(&self, order: &[u32]) -> Self {
        let rows = self.weights.len().max(1);
        let (width, factors) = (self.words.len() / rows, self.factors.len() / rows);
        let mut to = Self {
            words: Vec::with_capacity(self.words.len()),
            weights: order.iter().map(|&i| self.weights[i as usize]).collect(),
            factors: Vec::with_capacity(self.factors.len()),
            sources: Vec::with_capacity(self.sources.len()),
        };
        for i in order.iter().map(|&i| i as usize) {
            to.words.extend_from_slice(&self.words[i * width..(i + 1) * width]);
            to.factors.extend_from_slice(&self.factors[i * factors..(i + 1) * factors]);
            to.sources.extend(self.sources.get(i));
        }
        to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_keep_what_belongs_together() {
        let changes = AtomChanges {
            words: vec![1, 2, 3, 4, 5, 6],
            weights: vec![1, -1, 2],
            factors: vec![10, 20, 30],
            sources: vec![7, 8, 9],
        };
        let found = changes.permuted(&[2, 0, 1]);
        assert_eq!((found.words, found.weights), (vec![5, 6, 1, 2, 3, 4], vec![2, 1, -1]));
        assert_eq!((found.factors, found.sources), (vec![30, 10, 20], vec![9, 7, 8]));
    }
}
