//! One atom's step of a batch: statuses and values travel upward, each hub entry settled once.
//!
//! The step has three parts. Below the connex part (`rise`), level by level, the changed rows of a node update the side lists and
//! sums of their entries above; an entry whose support and sums are afterwards what they were stops the change there. At the lowest
//! connex node C the changed rows are the witnesses: those alive before are enumerated while everything is still in place; then
//! statuses travel up the connex part (`settle_status`) and live marks down again; then those born are enumerated.
//!
//! Invariants: S1 within a step, a node on the path changes only through its one hub on the path, so the old value of a parent row is
//! its other factors times the entry's saved sum. S2 every result holds exactly one row of C, so the witnesses' results are disjoint.

use crate::annotation;
use crate::delta::Delta;
use crate::pending::{Pending, PendingRows};
use crate::rows::{ALIVE, DOOMED, LIVE, NEW, NONE};
use crate::tree::Tree;
use crate::trim::trim_scratch;

/// A row of the level being settled: its status before and after.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Changed {
    pub(crate) row: u32,
    pub(crate) was: bool,
    pub(crate) now: bool,
}

/// An entry touched while settling a level.
#[derive(Clone, Copy, Debug)]
struct Touched {
    entry: u32,
    was_complete: bool,
}

/// The edge a change travels over: a side of a hub, and the hub's place below its parent.
#[derive(Clone, Copy, Debug)]
struct Path {
    hub: usize,
    side: usize,
    parent: usize,
    place: usize,
}

/// Buffers kept between batches, so that the hot path does not allocate.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    level: Vec<Changed>,
    /// The change of annotation of each row of `level`, `components` values each.
    values: Vec<i128>,
    next_level: Vec<Changed>,
    next_values: Vec<i128>,
    touched: Vec<Touched>,
    /// The sums of the touched entries' side before, `components` values each.
    saved: Vec<i128>,
    born: Vec<(usize, u32)>,
    stack: Vec<(usize, u32)>,
    /// The largest number of rows that a step ended with, since memory was last given back.
    used: usize,
}

impl Scratch {
    /// Gives the memory of steps much larger than the last ones back.
    pub(crate) fn give_back(&mut self) {
        let used = std::mem::take(&mut self.used);
        trim_scratch(&mut self.level, used);
        trim_scratch(&mut self.next_level, used);
        trim_scratch(&mut self.values, used * 4);
        trim_scratch(&mut self.next_values, used * 4);
        trim_scratch(&mut self.touched, used);
        trim_scratch(&mut self.saved, used * 4);
        trim_scratch(&mut self.born, used);
        trim_scratch(&mut self.stack, used);
    }
}

impl Tree {
    /// Applies the pending changes of one relation node and emits their delta.
    ///
    /// With `skip_marked`, additions through DOOMED rows and removals through NEW rows are left out (exact for set-valued full joins).
    pub(crate) fn step(
        &mut self,
        node: usize,
        pending: &PendingRows,
        mut delta: Option<&mut Delta>,
        skip_marked: bool,
    ) {
        let mut scratch = std::mem::take(&mut self.scratch);
        self.change_rows(node, pending, &mut scratch);
        let mut at = node;
        while !self.nodes[at].connex {
            if scratch.level.is_empty() {
                break;
            }
            at = self.rise(at, &mut scratch, delta.is_some());
        }
        if !scratch.level.is_empty() {
            if let Some(delta) = delta.as_deref_mut() {
                let skip = if skip_marked { NEW } else { 0 };
                self.emit(at, (&scratch.level, &scratch.values), |c| c.was, delta, skip);
            }
            self.settle_status(at, &mut scratch);
            if let Some(delta) = delta {
                let skip = if skip_marked { DOOMED } else { 0 };
                self.emit(at, (&scratch.level, &scratch.values), |c| !c.was && c.now, delta, skip);
            }
        }
        scratch.used = scratch.used.max(scratch.level.len());
        scratch.level.clear();
        scratch.values.clear();
        self.scratch = scratch;
        for change in &pending.rows {
            if self.nodes[node].rows.weight(change.row) == 0 {
                self.free_row(node, change.row);
            }
        }
    }

    /// Updates multiplicities and factors; collects the rows whose status or annotation changes into `level`.
    fn change_rows(&mut self, node: usize, pending: &PendingRows, scratch: &mut Scratch) {
        let components = self.components;
        let stored = self.nodes[node].factors.iter().flatten().count();
        let weightless = self.set;
        self.counters.updates += pending.rows.len() as u64;
        let links = if pending.entries.is_empty() { 0 } else { self.nodes[node].links() };
        for (i, &Pending { row, weight }) in pending.rows.iter().enumerate() {
            if self.nodes[node].rows.has(row, NEW) {
                self.link_row(node, row, &pending.entries[i * links..(i + 1) * links]);
            }
            let was = self.nodes[node].rows.has(row, ALIVE);
            let start = scratch.values.len();
            if !weightless && was {
                scratch.values.resize(start + components, 0);
                self.own(node, row, &mut scratch.values[start..]);
            }
            let target = &mut self.nodes[node];
            let before = target.rows.weight(row);
            let after = before + weight;
            target.rows.set_weight(row, after);
            target.repeated = target.repeated + usize::from(after > 1) - usize::from(before > 1);
            target.peak = target.peak.max(after);
            if stored > 0 {
                self.overflow |= target.rows.add_factors(row, &pending.factors[i * stored..(i + 1) * stored]);
            }
            let now = after > 0 && target.rows.supported(row);
            self.overflow |= self.own_overflows(node, row);
            if weightless {
                if was != now {
                    scratch.level.push(Changed { row, was, now });
                }
                continue;
            }
            if !was && !now {
                continue;
            }
            // new own minus old own, times what the hubs below pass: they do not change in this atom's step
            scratch.values.resize(start + 2 * components, 0);
            let (old, new) = scratch.values[start..].split_at_mut(components);
            if now {
                self.own(node, row, new);
            }
            self.overflow |= annotation::subtract(new, old);
            old.copy_from_slice(new);
            scratch.values.truncate(start + components);
            self.overflow |= self.times_below(node, row, None, &mut scratch.values[start..]);
            scratch.level.push(Changed { row, was, now });
        }
    }

    /// Settles the entries above a non-connex level; the rows of the parent that change become the level. Returns the parent.
    fn rise(&mut self, node: usize, scratch: &mut Scratch, deltas: bool) -> usize {
        let (hub, side) = self.nodes[node].up.expect("the top is connex");
        let components = self.components;
        let (parent, place) = (self.edges[hub].parent, self.edges[hub].place);
        let path = Path { hub, side, parent, place };
        let is_value = self.edges[hub].hub.is_value_side(side);
        let connex_parent = self.nodes[parent].connex;
        for (i, &change) in scratch.level.iter().enumerate() {
            let entry = self.nodes[node].rows.up(change.row);
            self.touch(hub, side, entry, is_value, &mut scratch.touched, &mut scratch.saved);
            self.move_row(node, hub, side, entry, change);
            if is_value {
                let value = &scratch.values[i * components..(i + 1) * components];
                self.overflow |= self.edges[hub].hub.add_side_sums(entry, side, value);
            }
        }
        scratch.next_level.clear();
        scratch.next_values.clear();
        for (i, &Touched { entry, was_complete }) in scratch.touched.iter().enumerate() {
            let edge = &mut self.edges[hub];
            edge.hub.set_stamp(entry, NONE);
            let complete = edge.hub.complete(entry);
            let flipped = complete != was_complete;
            let saved = is_value.then(|| &scratch.saved[i * components..(i + 1) * components]);
            let revalued = saved.is_some_and(|old| old != edge.hub.side_sums(entry, side));
            // a connex parent multiplies lazily: without a flip only its live rows matter, and only to deltas
            if !flipped && (!revalued || !complete || connex_parent && !deltas) {
                continue;
            }
            let only_live = connex_parent && !flipped;
            let mut row = edge.hub.parent_list(entry).0;
            while row != NONE {
                let rows = &mut self.nodes[parent].rows;
                let next = rows.next_parent(row, place);
                if only_live && !rows.has(row, LIVE) {
                    break;
                }
                let was = rows.has(row, ALIVE);
                if flipped {
                    self.counters.status_changes += 1;
                    if complete {
                        rows.gain_support(row);
                    } else {
                        rows.lose_support(row);
                    }
                } else {
                    self.counters.annotation_changes += 1;
                }
                let now = rows.weight(row) > 0 && rows.supported(row);
                if was || now {
                    scratch.next_level.push(Changed { row, was, now });
                    if !self.set {
                        let start = scratch.next_values.len();
                        scratch.next_values.resize(start + components, 0);
                        self.parent_change(path, row, saved, (was, now), &mut scratch.next_values[start..]);
                    }
                }
                row = next;
            }
        }
        scratch.touched.clear();
        scratch.saved.clear();
        std::mem::swap(&mut scratch.level, &mut scratch.next_level);
        std::mem::swap(&mut scratch.values, &mut scratch.next_values);
        parent
    }

    /// The change of a parent row's annotation: everything else times (the side's sum now, minus before).
    fn parent_change(
        &mut self,
        path: Path,
        row: u32,
        saved: Option<&[i128]>,
        (was, now): (bool, bool),
        into: &mut [i128],
    ) {
        let Path { hub, side, parent, place } = path;
        let Some(saved) = saved else {
            // a support edge among value edges: the factor is 1 where it is there
            self.own(parent, row, into);
            self.overflow |= self.times_below(parent, row, None, into);
            if was && !now {
                for value in into.iter_mut() {
                    *value = value.wrapping_neg();
                }
            } else if was {
                into.fill(0);
            }
            return;
        };
        let mut rest = [0i128; 8];
        let mut heap;
        let rest: &mut [i128] = if into.len() <= rest.len() {
            &mut rest[..into.len()]
        } else {
            heap = vec![0; into.len()];
            &mut heap
        };
        self.own(parent, row, rest);
        let mut overflow = self.times_below(parent, row, Some(place), rest);
        let edge = &self.edges[hub].hub;
        let entry = self.nodes[parent].rows.down(row, place);
        for other in (0..edge.sides()).filter(|&s| s != side && edge.is_value_side(s)) {
            overflow |= annotation::multiply(rest, edge.side_sums(entry, other));
        }
        if now {
            into.copy_from_slice(edge.side_sums(entry, side));
        } else {
            into.fill(0);
        }
        if was {
            overflow |= annotation::subtract(into, saved);
        }
        overflow |= annotation::multiply(into, rest);
        self.overflow |= overflow;
    }

    /// Notes an entry, with its state before, the first time a level touches it.
    #[inline]
    fn touch(
        &mut self,
        hub: usize,
        side: usize,
        entry: u32,
        is_value: bool,
        touched: &mut Vec<Touched>,
        saved: &mut Vec<i128>,
    ) {
        let hub = &mut self.edges[hub].hub;
        if hub.stamp(entry) == NONE {
            hub.set_stamp(entry, touched.len() as u32);
            touched.push(Touched { entry, was_complete: hub.complete(entry) });
            if is_value {
                saved.extend_from_slice(hub.side_sums(entry, side));
            }
        }
    }

    /// Puts a row into its side or takes it out, as its status changed.
    #[inline]
    fn move_row(&mut self, node: usize, hub: usize, side: usize, entry: u32, change: Changed) {
        if change.was == change.now {
            return;
        }
        let (rows, hub) = (&mut self.nodes[node].rows, &mut self.edges[hub].hub);
        let head = hub.side_head(entry, side);
        if change.now {
            rows.set(change.row, ALIVE);
            rows.push_front(change.row, head);
            hub.side_gained(entry, side, change.row);
        } else {
            rows.clear(change.row, ALIVE | LIVE);
            let head = rows.unlink(change.row, head);
            hub.side_lost(entry, side, head);
        }
    }

    /// Statuses of connex rows: up to the top, then live marks down again.
    fn settle_status(&mut self, node: usize, scratch: &mut Scratch) {
        let mut at = node;
        let mark = self.marks_live();
        let mut level = std::mem::take(&mut scratch.next_level);
        level.clear();
        level.extend(scratch.level.iter().filter(|c| c.was != c.now));
        let mut above = Vec::new();
        scratch.born.clear();
        while !level.is_empty() {
            if mark {
                for change in level.iter().filter(|c| c.was) {
                    self.unliven(at, change.row, &mut scratch.stack);
                }
            }
            scratch.born.extend(level.iter().filter(|c| c.now).map(|c| (at, c.row)));
            let Some((hub, side)) = self.nodes[at].up else {
                for change in &level {
                    let rows = &mut self.nodes[at].rows;
                    if change.now { rows.set(change.row, ALIVE) } else { rows.clear(change.row, ALIVE | LIVE) }
                }
                break;
            };
            for &change in &level {
                let entry = self.nodes[at].rows.up(change.row);
                self.touch(hub, side, entry, false, &mut scratch.touched, &mut scratch.saved);
                self.move_row(at, hub, side, entry, change);
            }
            above.clear();
            let (parent, place) = (self.edges[hub].parent, self.edges[hub].place);
            for &Touched { entry, was_complete } in &scratch.touched {
                let hub = &mut self.edges[hub].hub;
                hub.set_stamp(entry, NONE);
                let complete = hub.complete(entry);
                if complete == was_complete {
                    continue;
                }
                let rows = &mut self.nodes[parent].rows;
                let mut row = hub.parent_list(entry).0;
                while row != NONE {
                    let next = rows.next_parent(row, place);
                    self.counters.status_changes += 1;
                    let was = rows.has(row, ALIVE);
                    if complete {
                        rows.gain_support(row);
                    } else {
                        rows.lose_support(row);
                    }
                    let now = rows.weight(row) > 0 && rows.supported(row);
                    if was != now {
                        above.push(Changed { row, was, now });
                    }
                    row = next;
                }
            }
            scratch.touched.clear();
            std::mem::swap(&mut level, &mut above);
            at = parent;
        }
        scratch.next_level = level;
        if mark {
            while let Some((at, row)) = scratch.born.pop() {
                self.enliven_with(at, row, &mut scratch.stack);
            }
        }
    }

    /// Marks a row live if it is part of a result, and everything that becomes part of one through it.
    pub(crate) fn enliven(&mut self, node: usize, row: u32) {
        let mut stack = Vec::new();
        self.enliven_with(node, row, &mut stack);
    }

    fn enliven_with(&mut self, node: usize, row: u32, stack: &mut Vec<(usize, u32)>) {
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
            for place in 0..self.nodes[node].downs.len() {
                let edge = &mut self.edges[self.nodes[node].downs[place]];
                let rows = &mut self.nodes[node].rows;
                let entry = rows.down(row, place);
                let list = rows.unlink_parent(row, place, edge.hub.parent_list(entry));
                let list = rows.link_parent(row, place, list, true);
                edge.hub.set_parent_list(entry, list);
                let live = edge.hub.live_parents(entry);
                edge.hub.set_live_parents(entry, live + 1);
                if live == 0 {
                    push_sides(self, node, place, entry, stack);
                }
            }
        }
    }

    fn unliven(&mut self, node: usize, row: u32, stack: &mut Vec<(usize, u32)>) {
        stack.push((node, row));
        while let Some((node, row)) = stack.pop() {
            if !self.nodes[node].rows.has(row, LIVE) {
                continue;
            }
            self.counters.live_changes += 1;
            self.nodes[node].rows.clear(row, LIVE);
            for place in 0..self.nodes[node].downs.len() {
                let edge = &mut self.edges[self.nodes[node].downs[place]];
                let rows = &mut self.nodes[node].rows;
                let entry = rows.down(row, place);
                let list = rows.unlink_parent(row, place, edge.hub.parent_list(entry));
                let list = rows.link_parent(row, place, list, false);
                edge.hub.set_parent_list(entry, list);
                let live = edge.hub.live_parents(entry) - 1;
                edge.hub.set_live_parents(entry, live);
                if live == 0 {
                    push_sides(self, node, place, entry, stack);
                }
            }
        }
    }
}

/// Puts the alive rows of the connex sides of an entry on the stack.
fn push_sides(tree: &Tree, node: usize, place: usize, entry: u32, stack: &mut Vec<(usize, u32)>) {
    let edge = &tree.edges[tree.nodes[node].downs[place]];
    for &side in &edge.connex_sides {
        let child = edge.children[side];
        let mut row = edge.hub.side_head(entry, side);
        while row != NONE {
            stack.push((child, row));
            row = tree.nodes[child].rows.next(row);
        }
    }
}
