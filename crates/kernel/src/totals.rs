//! Answers from the tree without enumeration: the annotation of one result, the number of results.

use crate::annotation;
use crate::rows::{ALIVE, NONE, PHANTOM};
use crate::shape::{KeySpec, NullPlace, TreeShape};
use crate::tree::Tree;

/// How to find a connex node's row, given the emitted words of a result.
#[derive(Debug)]
pub(crate) struct Locator {
    node: usize,
    /// Cuts the node's words out of the emitted ones.
    row: KeySpec,
    /// For a node that may be a phantom: the locator of the node above it, and the hub between them.
    above: Option<(usize, usize)>,
    /// The emitted NULL bits of the variables that results take from the node.
    shown: Vec<NullPlace>,
}

/// How to find all rows of a result, those above before those below.
#[derive(Debug)]
pub struct ResultLocator {
    nodes: Vec<Locator>,
}

/// Buffers of `Tree::total`, kept between calls.
#[derive(Debug, Default)]
pub struct TotalScratch {
    words: Vec<u64>,
    weight: Vec<i128>,
    rows: Vec<u32>,
}

impl Tree {
    /// How to find the rows of a result given its emitted words.
    pub fn result_locator(&self, shape: &TreeShape) -> ResultLocator {
        let head = |v: usize| self.head.columns[shape.head.iter().position(|&h| h == v).expect("a head variable")];
        let order = shape.connex_top_down();
        let locator = |&node: &usize| {
            let source = &self.nodes[node];
            let words = source.columns.iter().flat_map(|&v| head(v).first..head(v).first + head(v).words).collect();
            let above = source.up.filter(|_| source.has_phantom).map(|(hub, _)| {
                let parent = self.edges[hub].parent;
                (order.iter().position(|&n| n == parent).expect("the node above is connex"), hub)
            });
            Locator {
                node,
                row: KeySpec::new(words, source.columns.iter().map(|&v| head(v).null).collect()),
                above,
                shown: source.shown.iter().filter_map(|&v| head(v).null).collect(),
            }
        };
        ResultLocator { nodes: order.iter().map(locator).collect() }
    }

    /// The annotation of the result with these emitted words: all zeros if there is no such result. Returns whether it overflowed.
    pub fn total(
        &mut self,
        locator: &ResultLocator,
        emitted: &[u64],
        into: &mut [i128],
        scratch: &mut TotalScratch,
    ) -> bool {
        let TotalScratch { words, weight, rows } = scratch;
        weight.resize(into.len(), 0);
        into.fill(0);
        if self.is_empty() {
            return false;
        }
        let mut overflow = self.annotation(self.top, 0, into);
        rows.clear();
        for Locator { node, row, above, shown } in &locator.nodes {
            if above.is_some_and(|(at, hub)| self.binds_phantom(rows[at], hub)) {
                let is_null = |&(word, bit): &NullPlace| emitted[word] >> bit & 1 == 1;
                if !shown.iter().all(is_null) {
                    into.fill(0);
                    return false;
                }
                rows.push(PHANTOM);
                continue; // its annotation is 1
            }
            row.cut(|at| emitted[at], words);
            self.counters.probes += 1;
            let Some(row) = self.find_row(*node, words).filter(|&row| self.nodes[*node].rows.has(row, ALIVE)) else {
                into.fill(0);
                return false;
            };
            rows.push(row);
            overflow |= self.annotation(*node, row, weight);
            overflow |= annotation::multiply(into, weight);
        }
        overflow
    }

    /// Whether results through a row above a hub bind what is below it to phantoms.
    fn binds_phantom(&self, row: u32, hub: usize) -> bool {
        let edge = &self.edges[hub];
        let parent = &self.nodes[edge.parent];
        parent.has_phantom && row == PHANTOM || edge.shows_phantom(parent.rows.down(row, edge.down))
    }

    /// The row of a node with these words.
    pub(crate) fn find_row(&mut self, node: usize, words: &[u64]) -> Option<u32> {
        if self.nodes[node].is_relation {
            self.nodes[node].rows.ensure_index();
            return self.nodes[node].rows.find(words);
        }
        let guard = &self.edges[self.nodes[node].downs[0]].hub;
        guard.find(words).map(|entry| guard.parent_list(entry).0).filter(|&row| row != NONE)
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
                    if self.annotation(node, row, &mut weight) {
                        return None;
                    }
                    count = weight[0];
                }
                for (down, &hub) in source.downs.iter().enumerate() {
                    let edge = &self.edges[hub];
                    let entry = source.rows.down(row, down);
                    if edge.shows_phantom(entry) {
                        continue;
                    }
                    for &side in &edge.connex_sides {
                        count = count.checked_mul(sums[hub][entry as usize * edge.hub.sides() + side])?;
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
