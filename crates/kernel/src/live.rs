//! Live marks: which rows of the connex part are part of some result.
//!
//! A row is live if it is alive and an entry above it has a live parent; the top row is live if it is alive. Marks are needed for deltas and
//! look-ups only. Phantoms are never marked: they are bound from above, never found from below.

use crate::rows::{ALIVE, LIVE, NONE};
use crate::tree::Tree;

impl Tree {
    /// Brings live marks up to date: one pass over the connex part after a time without deltas.
    pub(crate) fn ensure_live(&mut self) {
        if self.live_is_current {
            return;
        }
        for node in 0..self.nodes.len() {
            if self.nodes[node].connex && node != self.top {
                for row in self.nodes[node].rows.ids().collect::<Vec<_>>() {
                    self.nodes[node].rows.clear(row, LIVE);
                }
            }
        }
        self.nodes[self.top].rows.clear(0, LIVE);
        for edge in &mut self.edges {
            edge.hub.forget_live_parents();
        }
        self.live_is_current = true;
        self.enliven(self.top, 0, &mut Vec::new());
    }

    /// Marks a row live if it is part of a result, and everything that becomes part of one through it.
    pub(crate) fn enliven(&mut self, node: usize, row: u32, stack: &mut Vec<(usize, u32)>) {
        if let Some((hub, _)) = self.nodes[node].up
            && self.edges[hub].hub.live_parents(self.nodes[node].rows.up(row)) == 0
        {
            return;
        }
        stack.push((node, row));
        while let Some((node, row)) = stack.pop() {
            if self.nodes[node].rows.has(row, LIVE) || !self.nodes[node].rows.has(row, ALIVE) {
                continue;
            }
            self.counters.live_changes += 1;
            self.nodes[node].rows.set(row, LIVE);
            self.move_below(node, row, true, stack);
        }
    }

    /// Takes the mark off a row, and off everything that was part of results through it only.
    pub(crate) fn unliven(&mut self, node: usize, row: u32, stack: &mut Vec<(usize, u32)>) {
        stack.push((node, row));
        while let Some((node, row)) = stack.pop() {
            if !self.nodes[node].rows.has(row, LIVE) {
                continue;
            }
            self.counters.live_changes += 1;
            self.nodes[node].rows.clear(row, LIVE);
            self.move_below(node, row, false, stack);
        }
    }

    /// Tells the entries below a row that it is live or not any more; the rows below those for which that makes a difference go on the stack.
    #[inline]
    fn move_below(&mut self, node: usize, row: u32, live: bool, stack: &mut Vec<(usize, u32)>) {
        for down in 0..self.nodes[node].downs.len() {
            let above = &mut self.nodes[node];
            let edge = &mut self.edges[above.downs[down]];
            let Some(entry) = edge.move_parent(&mut above.rows, row, live) else { continue };
            for &side in &edge.connex_sides {
                let child = edge.children[side];
                let mut row = edge.hub.alive_head(entry, side);
                while row != NONE {
                    stack.push((child, row));
                    row = self.nodes[child].rows.next(row);
                }
            }
        }
    }
}
