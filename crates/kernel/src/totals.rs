//! Answers from the tree without enumeration: the annotation of one result, the number of results.

use crate::annotation;
use crate::rows::ALIVE;
use crate::shape::KeySpec;
use crate::tree::Tree;

/// How to find a connex node's row, given the emitted words of a result.
#[derive(Debug)]
pub(crate) struct Locator {
    node: usize,
    /// Cuts the node's words out of the emitted ones.
    row: KeySpec,
}

/// How to find all rows of a result.
#[derive(Debug)]
pub struct ResultLocator {
    nodes: Vec<Locator>,
}

/// Buffers of `Tree::total`, kept between calls.
#[derive(Debug, Default)]
pub struct TotalScratch {
    words: Vec<u64>,
    weight: Vec<i128>,
}

impl Tree {
    /// How to find the rows of a result given its emitted words.
    pub fn result_locator(&self, shape: &crate::shape::TreeShape) -> ResultLocator {
        let head = |v: usize| self.head.columns[shape.head.iter().position(|&h| h == v).expect("a head variable")];
        let nodes = (0..shape.nodes.len()).filter(|&n| shape.nodes[n].connex).map(|node| {
            let columns = &shape.nodes[node].columns;
            let words = columns.iter().flat_map(|&v| head(v).first..head(v).first + head(v).words).collect();
            Locator { node, row: KeySpec::new(words, columns.iter().map(|&v| head(v).null).collect()) }
        });
        ResultLocator { nodes: nodes.collect() }
    }

    /// The annotation of the result with these emitted words: all zeros if there is no such result. Returns whether it overflowed.
    pub fn total(
        &mut self,
        locator: &ResultLocator,
        emitted: &[u64],
        into: &mut [i128],
        scratch: &mut TotalScratch,
    ) -> bool {
        let TotalScratch { words, weight } = scratch;
        weight.resize(into.len(), 0);
        into.fill(0);
        if self.is_empty() {
            return false;
        }
        self.own(self.top, 0, into);
        let mut overflow = self.times_below(self.top, 0, None, into);
        for Locator { node, row } in &locator.nodes {
            row.cut(|at| emitted[at], words);
            self.counters.probes += 1;
            let Some(row) = self.find_row(*node, words).filter(|&row| self.nodes[*node].rows.has(row, ALIVE)) else {
                into.fill(0);
                return false;
            };
            self.own(*node, row, weight);
            overflow |= self.times_below(*node, row, None, weight);
            overflow |= annotation::multiply(into, weight);
        }
        overflow
    }

    /// The row of a node with these words.
    pub(crate) fn find_row(&mut self, node: usize, words: &[u64]) -> Option<u32> {
        if self.nodes[node].is_relation {
            self.nodes[node].rows.ensure_index();
            return self.nodes[node].rows.find(words);
        }
        let guard = &self.edges[self.nodes[node].downs[0]].hub;
        guard.find(words).map(|entry| guard.parent_list(entry).0)
    }

    /// Whether there are no results.
    pub fn is_empty(&self) -> bool {
        !self.nodes[self.top].rows.has(0, ALIVE)
    }

    /// The number of results: with their multiplicities, or of distinct head tuples. One pass over the connex part.
    ///
    /// `None` if it leaves 128 bits.
    pub fn count(&self, distinct: bool) -> Option<i128> {
        let mut order = vec![self.top];
        let mut at = 0;
        while at < order.len() {
            let downs = &self.nodes[order[at]].downs;
            order.extend(
                downs.iter().flat_map(|&h| self.edges[h].connex_sides.iter().map(move |&s| self.edges[h].children[s])),
            );
            at += 1;
        }
        let mut sums: Vec<Vec<i128>> = self.edges.iter().map(|e| vec![0; e.hub.capacity() * e.hub.sides()]).collect();
        let mut weight = vec![0; self.components];
        for &node in order.iter().rev() {
            let source = &self.nodes[node];
            for row in source.rows.ids().filter(|&row| source.rows.has(row, ALIVE)) {
                let mut count = 1i128;
                if !distinct && !self.set {
                    self.own(node, row, &mut weight);
                    if self.times_below(node, row, None, &mut weight) {
                        return None;
                    }
                    count = weight[0];
                }
                for (place, &hub) in source.downs.iter().enumerate() {
                    let edge = &self.edges[hub];
                    let entry = source.rows.down(row, place) as usize;
                    for &side in &edge.connex_sides {
                        count = count.checked_mul(sums[hub][entry * edge.hub.sides() + side])?;
                    }
                }
                let Some((hub, side)) = source.up else { return Some(count) };
                let sum = &mut sums[hub][source.rows.up(row) as usize * self.edges[hub].hub.sides() + side];
                *sum = sum.checked_add(count)?;
            }
        }
        Some(0)
    }
}
