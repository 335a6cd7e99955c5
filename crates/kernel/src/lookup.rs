//! Look-ups: the results in which some variables have given values, without a search.

use crate::enumerate::{Limit, Sink, Walk, live_or_none};
use crate::rows::NONE;
use crate::shape::pack_key;
use crate::tree::Tree;

/// The reading of the results that go through given rows.
#[derive(Debug)]
pub struct LookupWalk {
    node: usize,
    /// The hub below whose entry's parents are the rows; `None` for a single row.
    down: Option<usize>,
    row: u32,
    walk: Walk,
}

impl Tree {
    /// Starts the reading of the results in which these variables have these words (per variable: its words, and whether it is NULL).
    ///
    /// The variables must be the columns of a connex node, or the key of a hub below one; `None` if they are neither. A node that may be a
    /// phantom in such results does not do: it does if it shows one of the variables, which is not to be NULL.
    pub fn lookup(&mut self, variables: &[usize], values: &[(Vec<u64>, bool)]) -> Option<(LookupWalk, Sink)> {
        let same =
            |columns: &[usize]| columns.len() == variables.len() && columns.iter().all(|c| variables.contains(c));
        let value = |c: &usize| &values[variables.iter().position(|v| v == c).expect("the same variables")];
        let words = |columns: &[usize], masked: bool| pack_key(columns.iter().map(value), masked);
        let is_bound = |v: &usize| variables.iter().zip(values).any(|(of, (_, is_null))| of == v && !is_null);
        let leads = |node: usize| {
            let node = &self.nodes[node];
            node.connex && (!node.has_phantom || node.shown.iter().any(is_bound))
        };
        let mut found = None;
        if let Some(node) = (0..self.top).find(|&n| same(&self.nodes[n].columns) && leads(n)) {
            let target = &self.nodes[node];
            let words = words(&target.columns, target.layout.mask.is_some());
            let row = words.and_then(|words| self.find_row(node, &words)).unwrap_or(NONE);
            found = Some((node, None, row));
        } else if let Some(edge) = self.edges.iter().skip(1).find(|e| same(&e.key) && leads(e.parent)) {
            let entry = words(&edge.key, edge.masked).and_then(|words| edge.hub.find(&words));
            found = Some((edge.parent, Some(edge.down), entry.map_or(NONE, |entry| edge.hub.parent_list(entry).0)));
        }
        let (node, down, row) = found?;
        self.ensure_live();
        let row = match down {
            // marking reorders parents: live ones come first now
            Some(at) if row != NONE => {
                let entry = self.nodes[node].rows.down(row, at);
                self.edges[self.nodes[node].downs[at]].hub.parent_list(entry).0
            }
            _ => row,
        };
        let mut sink = Sink::new(self);
        sink.unit = self.weighs_one();
        Some((LookupWalk { node, down, row: live_or_none(self, node, row), walk: Walk::default() }, sink))
    }

    /// Emits the next results of a lookup, at most `limit`, into the sink (emptied first); returns whether a value left its range.
    pub fn next_lookup(&mut self, lookup: &mut LookupWalk, sink: &mut Sink, limit: usize) -> bool {
        sink.clear();
        let (mut visited, mut overflow) = (0, false);
        let program = self.programs[lookup.node].as_ref().expect("lookups start at connex nodes");
        while lookup.row != NONE {
            if lookup.walk.at == 0 {
                let mut weight = vec![1; self.components];
                if !self.set {
                    overflow |= self.annotation(lookup.node, lookup.row, &mut weight);
                }
                sink.start(&weight);
                program.begin(self, lookup.row, &mut lookup.walk, sink, 0);
            }
            let (steps, over) = program.run(self, &mut lookup.walk, sink, 0, Limit::Exactly(limit));
            visited += steps;
            overflow |= over;
            if lookup.walk.at != 0 {
                break;
            }
            let next = lookup.down.map_or(NONE, |down| self.nodes[lookup.node].rows.next_parent(lookup.row, down));
            lookup.row = live_or_none(self, lookup.node, next);
            if sink.len() >= limit {
                break;
            }
        }
        self.counters.steps += visited;
        self.counters.emitted += sink.len() as u64;
        self.clear_hidden_bits(sink);
        overflow
    }
}
