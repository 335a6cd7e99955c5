//! How rows come into the tree and leave it: their links to hub entries, projection rows, phantoms.

use crate::rows::{ALIVE, LINKED, LIVE, NONE, PHANTOM};
use crate::tree::Tree;

impl Tree {
    /// Links a new row to its entries below and above. `known`: those of them that were looked up before, in this order, `NONE` for others.
    pub(crate) fn link_row(&mut self, node: usize, row: u32, known: &[u32]) {
        let mut key = self.keys.pop().unwrap_or_default();
        for down in 0..self.nodes[node].downs.len() {
            let entry = self.entry_of(node, row, down, known, &mut key);
            self.attach_below(node, row, down, entry);
        }
        let from = &self.nodes[node];
        if let Some((hub, _)) = from.up {
            let entry = self.entry_of(node, row, from.downs.len(), known, &mut key);
            self.nodes[node].rows.set_up(row, entry);
            self.edges[hub].hub.add_child(entry);
        }
        self.nodes[node].rows.set(row, LINKED);
        self.keys.push(key);
    }

    /// The entry of a row at one of its links; see `Node::link`.
    fn entry_of(&mut self, node: usize, row: u32, link: usize, known: &[u32], key: &mut Vec<u64>) -> u32 {
        if let Some(&entry) = known.get(link)
            && entry != NONE
        {
            self.counters.probes += 1;
            return entry;
        }
        let from = &self.nodes[node];
        let (hub, spec) = from.link(link);
        let words = from.rows.values(row);
        spec.cut(|at| words[at], key);
        self.entry(hub, key)
    }

    fn attach_below(&mut self, node: usize, row: u32, down: usize, entry: u32) {
        let node = &mut self.nodes[node];
        self.edges[node.downs[down]].attach_parent(&mut node.rows, row, entry);
    }

    /// The entry of a key, made if need be.
    #[inline]
    pub(crate) fn entry(&mut self, hub: usize, key: &[u64]) -> u32 {
        self.counters.probes += 1;
        self.edges[hub].hub.find_or_insert(key).0
    }

    /// Makes the row of a guard's entry that has become complete, and what it refers to.
    pub(crate) fn create_projection_row(&mut self, hub: usize, entry: u32) -> u32 {
        let node = self.edges[hub].parent;
        let row = self.nodes[node].rows.insert_unindexed(self.edges[hub].hub.key(entry));
        self.nodes[node].rows.set_weight(row, 1);
        let mut key = self.keys.pop().unwrap_or_default();
        self.attach_below(node, row, 0, entry);
        for down in 1..self.nodes[node].downs.len() {
            let from = &self.nodes[node];
            let words = from.rows.values(row);
            from.down_keys[down].cut(|at| words[at], &mut key);
            let below = self.entry(from.downs[down], &key);
            self.attach_below(node, row, down, below);
        }
        let from = &self.nodes[node];
        if let Some((above, _)) = from.up {
            let words = from.rows.values(row);
            from.up_key.cut(|at| words[at], &mut key);
            let up = self.entry(above, &key);
            self.nodes[node].rows.set_up(row, up);
            self.edges[above].hub.add_child(up);
        }
        self.nodes[node].rows.set(row, LINKED);
        self.keys.push(key);
        row
    }

    /// Takes a dead row out of the tree and frees what nothing refers to any more.
    pub(crate) fn free_row(&mut self, node: usize, row: u32) {
        debug_assert!(!self.nodes[node].rows.has_any(row, ALIVE | LIVE));
        let from = &mut self.nodes[node];
        for &hub in &from.downs {
            self.edges[hub].detach_parent(&mut from.rows, row);
        }
        let up = from.up.map(|(hub, _)| (hub, from.rows.up(row)));
        from.rows.remove(row);
        let Some((hub, entry)) = up else { return };
        if self.edges[hub].hub.drop_child(entry) == 0 {
            self.release_entry(hub, entry);
        }
    }

    /// Frees an entry that no row below refers to, unless one above does. That of a guard takes its projection row with it.
    pub(crate) fn release_entry(&mut self, hub: usize, entry: u32) {
        let edge = &mut self.edges[hub];
        if edge.parent == self.top {
            return;
        }
        if edge.hub.parents(entry) == 0 {
            edge.hub.remove(entry);
        } else if edge.is_guard {
            self.free_projection_row(hub, entry);
        }
    }

    /// Frees the projection row of a guard's entry, and the entry if nothing else refers to it; unless they are gone already.
    pub(crate) fn free_projection_row(&mut self, hub: usize, entry: u32) {
        let edge = &self.edges[hub];
        if edge.hub.parents(entry) > 0 {
            let (projection, parent) = (edge.hub.parent_list(entry).0, edge.parent);
            self.free_row(parent, projection);
        }
    }

    /// Reserves the phantom of a node that results may bind to one: all columns are NULL.
    pub(crate) fn reserve_phantom_row(&mut self, node: usize) {
        let node = &mut self.nodes[node];
        let mut words = vec![0; node.rows.width()];
        for position in 0..node.columns.len() {
            if let Some((word, bit)) = node.layout.null(position) {
                words[word] |= 1 << bit;
            }
        }
        node.rows.reserve_phantom(&words);
    }

    /// Reserves the phantoms of all nodes that results may bind to one, and the entries that lead from one to the next.
    pub(crate) fn reserve_phantoms(&mut self) {
        for node in (0..self.nodes.len()).filter(|&node| self.nodes[node].has_phantom).collect::<Vec<_>>() {
            self.reserve_phantom_row(node);
            for &hub in &self.nodes[node].downs {
                let edge = &mut self.edges[hub];
                let head = |&child: &usize| if self.nodes[child].connex { PHANTOM } else { NONE };
                let heads: Vec<u32> = edge.children.iter().map(head).collect();
                edge.hub.reserve_phantom_entry(&heads);
            }
        }
    }
}
