//! Leaves whose rows are not stored.
//!
//! Nothing enumerates the rows of a relation outside the connex part, and where no hub is below it, its rows have no status of their own:
//! each is alive while it is there. Its entries say all that is asked: the sums of the annotations, whose first component is the number of
//! rows, or just that number where only existence matters. A change costs one look-up, and a row no memory. A number that is negative
//! when all changes of an atom are in, or zero where the sums are not, tells of a row that was deleted and not there.

use crate::hash::same_words;
use crate::rows::NONE;
use crate::settle::Scratch;
use crate::tree::{AtomChanges, Tree};

impl Tree {
    /// Applies the changes of such a leaf: as `change_rows` and `climb`. `known`: the entry above each, as far as it was looked up before.
    /// Returns the parent, whose rows that change become the level.
    pub(crate) fn change_leaf(
        &mut self,
        node: usize,
        changes: &AtomChanges,
        known: &[u32],
        scratch: &mut Scratch,
        deltas: bool,
    ) -> usize {
        let (hub, side) = self.nodes[node].up.expect("a leaf is below a hub");
        let is_summed = self.edges[hub].is_summed(side);
        let (width, stored) = (self.nodes[node].rows.width(), self.nodes[node].factors.iter().flatten().count());
        let mut key = self.keys.pop().unwrap_or_default();
        let mut value = vec![0; self.components];
        self.counters.updates += changes.weights.len() as u64;
        // rows with one key often come together, and leave together; entries stay until the step ends
        let mut recent = [NONE; 2];
        for (i, &weight) in changes.weights.iter().enumerate() {
            let entry = match known.get(i) {
                Some(&entry) if entry != NONE => {
                    self.counters.probes += 1;
                    entry
                }
                _ => {
                    let words = &changes.words[i * width..(i + 1) * width];
                    self.nodes[node].up_key.cut(|at| words[at], &mut key);
                    let near = &mut recent[usize::from(weight > 0)];
                    if *near == NONE || !same_words(self.edges[hub].hub.key(*near), &key) {
                        *near = self.entry(hub, &key);
                    }
                    *near
                }
            };
            let edge = &mut self.edges[hub];
            edge.open(side, entry, &mut scratch.settling);
            if is_summed {
                value[0] = i128::from(weight);
                let factors = &changes.factors[i * stored..(i + 1) * stored];
                for (component, place) in value[1..].iter_mut().zip(&self.nodes[node].factors) {
                    *component = place.map_or(i128::from(weight), |place| factors[place]);
                }
                self.overflow |= edge.hub.add_side_sums(entry, side, &value);
            } else {
                edge.hub.add_total(entry, side, weight);
            }
        }
        self.keys.push(key);
        let mut below_zero = None;
        let above = hub;
        let hub = &mut self.edges[hub];
        for touched in &scratch.settling.touched {
            if hub.settle_unstored(side, touched.entry) {
                below_zero = Some(touched.entry); // stays until the batch is undone
            } else if hub.hub.children(touched.entry) == 0 {
                scratch.emptied.push(touched.entry);
            }
        }
        if let Some(entry) = below_zero {
            self.missing = Some((node, self.deleted_row(node, changes, self.edges[above].hub.key(entry))));
        }
        self.tell_parents(node, scratch, deltas)
    }

    /// The words of a row with this key that the changes delete.
    fn deleted_row(&self, node: usize, changes: &AtomChanges, key: &[u64]) -> Vec<u64> {
        let width = self.nodes[node].rows.width();
        let mut found = Vec::new();
        let deleted = (0..changes.weights.len()).filter(|&i| changes.weights[i] < 0);
        let mut words = deleted.map(|i| &changes.words[i * width..(i + 1) * width]);
        let has_key = |words: &&[u64]| {
            self.nodes[node].up_key.cut(|at| words[at], &mut found);
            found == key
        };
        words.find(has_key).expect("a number that fell tells of a row that left").to_vec()
    }
}
