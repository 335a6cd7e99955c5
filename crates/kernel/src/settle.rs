//! One atom's step of a batch: statuses and values travel upward, each hub entry settled once.
//!
//! The step has three parts. Below the connex part, level by level, the changed rows of a node update the side lists and sums of their
//! entries above (`climb`); an entry whose support and sums are afterwards what they were stops the change there. At the lowest connex node
//! C the changed rows are the witnesses: those alive before are enumerated while everything is still in place; then statuses climb up the
//! connex part (`settle_connex`) and live marks come down again; then those born are enumerated.
//!
//! An optional edge stops the climb. If its child is connex, the parent rows of an entry whose first row comes or whose last row leaves lose
//! or get results through the phantom (`flip_phantoms`). All results through such a parent row bind the phantom while it is shown, and
//! nothing above or beside the edge changes in the step: so they are the results through the parent row, before the first row comes or
//! after the last one has left.
//!
//! Invariants: S1 within a step, a node on the path changes only through its one hub on the path, so the old value of a parent row is
//! its other factors times the entry's saved sum. S2 every result that does not bind C to a phantom holds exactly one row of C, so the
//! witnesses' results are disjoint.

use crate::annotation;
use crate::delta::Delta;
use crate::edge::{Changed, Settling, Shift, Touched};
use crate::pending::{Pending, PendingRows};
use crate::rows::{ALIVE, DOOMED, LINKED, LIVE, NEW};
use crate::tree::{AtomChanges, Tree};
use crate::trim::trim_scratch;

/// The edge a change travels over: a side of a hub, and the hub's position below its parent.
#[derive(Clone, Copy, Debug)]
struct Path {
    hub: usize,
    side: usize,
    parent: usize,
    down: usize,
}

/// Rows that change, with the change of the annotation of each: `components` values, none where annotations are not read.
#[derive(Debug, Default)]
struct Level {
    rows: Vec<Changed>,
    values: Vec<i128>,
}

impl Level {
    fn clear(&mut self) {
        self.rows.clear();
        self.values.clear();
    }

    fn give_back(&mut self, used: usize) {
        trim_scratch(&mut self.rows, used);
        trim_scratch(&mut self.values, used * 4);
    }
}

/// Buffers kept between batches, so that the hot path does not allocate.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// The rows of the node that the step has reached.
    level: Level,
    /// The rows of the node above it.
    above: Level,
    /// The changed rows of C while statuses climb above it.
    witnesses: Level,
    pub(crate) settling: Settling,
    /// Entries above a leaf that no row of it refers to any more.
    pub(crate) emptied: Vec<u32>,
    /// Entries of guards that are no longer complete: their projection rows go when the step ends.
    orphaned: Vec<(usize, u32)>,
    born: Vec<(usize, u32)>,
    stack: Vec<(usize, u32)>,
    /// The largest number of rows that a step ended with, since memory was last given back.
    used: usize,
}

impl Scratch {
    /// Gives the memory of steps much larger than the last ones back.
    pub(crate) fn give_back(&mut self) {
        let used = std::mem::take(&mut self.used);
        self.level.give_back(used);
        self.above.give_back(used);
        self.witnesses.give_back(used);
        self.settling.give_back(used);
        trim_scratch(&mut self.emptied, used);
        trim_scratch(&mut self.orphaned, used);
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
        changes: &AtomChanges,
        pending: &PendingRows,
        mut delta: Option<&mut Delta>,
        skip_marked: bool,
    ) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut at = node;
        if self.nodes[node].is_row_free {
            at = self.change_leaf(node, changes, &pending.entries, &mut scratch, delta.is_some());
        } else {
            self.change_rows(node, pending, &mut scratch.level);
        }
        while !self.nodes[at].connex && !scratch.level.rows.is_empty() {
            at = self.climb(at, &mut scratch, delta.is_some());
        }
        std::mem::swap(&mut scratch.witnesses, &mut scratch.level);
        if !scratch.witnesses.rows.is_empty() {
            if let Some(delta) = delta.as_deref_mut() {
                let skip = if skip_marked { NEW } else { 0 };
                let Level { rows, values } = &scratch.witnesses;
                self.emit(at, (rows, values), |c| c.was, delta, skip);
            }
            self.settle_connex(at, &mut scratch, delta.as_deref_mut());
            if let Some(delta) = delta {
                let skip = if skip_marked { DOOMED } else { 0 };
                let Level { rows, values } = &scratch.witnesses;
                self.emit(at, (rows, values), |c| !c.was && c.now, delta, skip);
            }
        }
        scratch.used = scratch.used.max(scratch.witnesses.rows.len());
        scratch.witnesses.clear();
        for entry in scratch.emptied.drain(..) {
            let (hub, _) = self.nodes[node].up.expect("a leaf is below a hub");
            self.release_entry(hub, entry);
        }
        for (hub, entry) in scratch.orphaned.drain(..) {
            self.free_projection_row(hub, entry);
        }
        self.scratch = scratch;
        for change in &pending.rows {
            let rows = &self.nodes[node].rows;
            // a row that is gone but has values is one that was not there (`missing`): it stays until the batch is undone
            if rows.weight(change.row) == 0 && rows.factors(change.row).iter().all(|&factor| factor == 0) {
                self.free_row(node, change.row);
            }
        }
    }

    /// Updates multiplicities and factors; collects the rows whose status or annotation changes.
    fn change_rows(&mut self, node: usize, pending: &PendingRows, level: &mut Level) {
        let components = self.components;
        let stored = self.nodes[node].factors.iter().flatten().count();
        let weightless = self.nodes[node].weightless;
        self.counters.updates += pending.rows.len() as u64;
        let links = if pending.entries.is_empty() { 0 } else { self.nodes[node].links() };
        for (i, &Pending { row, weight }) in pending.rows.iter().enumerate() {
            if !self.nodes[node].rows.has(row, LINKED) {
                self.link_row(node, row, &pending.entries[i * links..(i + 1) * links]);
            }
            let was = self.nodes[node].rows.has(row, ALIVE);
            let start = level.values.len();
            if !weightless && was {
                level.values.resize(start + components, 0);
                self.own(node, row, &mut level.values[start..]);
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
            let now = target.rows.status(row);
            if weightless {
                if was != now {
                    level.rows.push(Changed { row, was, now });
                }
                continue;
            }
            self.overflow |= self.own_overflows(node, row);
            if !was && !now {
                continue;
            }
            // new own minus old own, times what the hubs below pass: they do not change in this atom's step
            level.values.resize(start + 2 * components, 0);
            let (old, new) = level.values[start..].split_at_mut(components);
            if now {
                self.own(node, row, new);
            }
            self.overflow |= annotation::subtract(new, old);
            old.copy_from_slice(new);
            level.values.truncate(start + components);
            self.overflow |= self.times_below(node, row, None, &mut level.values[start..]);
            level.rows.push(Changed { row, was, now });
        }
    }

    /// Settles the entries above a level: moves its rows into or out of their sides. The rows of the parent that change become the level, with
    /// the changes of their annotations if the level is below the connex part. Returns the parent.
    fn climb(&mut self, node: usize, scratch: &mut Scratch, deltas: bool) -> usize {
        let (hub, side) = self.nodes[node].up.expect("the top ends the way up");
        let components = self.components;
        let Scratch { level, settling, .. } = scratch;
        let is_summed = self.edges[hub].is_summed(side);
        for (i, &change) in level.rows.iter().enumerate() {
            let (rows, edge) = (&mut self.nodes[node].rows, &mut self.edges[hub]);
            let entry = rows.up(change.row);
            edge.open(side, entry, settling);
            edge.move_row(rows, side, entry, change);
            if is_summed {
                let value = &level.values[i * components..(i + 1) * components];
                self.overflow |= edge.hub.add_side_sums(entry, side, value);
            }
        }
        self.tell_parents(node, scratch, deltas)
    }

    /// Ends the settling of the entries above a node, as `climb` says.
    pub(crate) fn tell_parents(&mut self, node: usize, scratch: &mut Scratch, deltas: bool) -> usize {
        let (hub, side) = self.nodes[node].up.expect("the top ends the way up");
        let components = self.components;
        let Scratch { level, above, settling, orphaned, .. } = scratch;
        let (parent, down) = (self.edges[hub].parent, self.edges[hub].down);
        let path = Path { hub, side, parent, down };
        let is_projected = self.edges[hub].is_guard && parent != self.top;
        let connex_parent = self.nodes[parent].connex;
        let wants_values = !self.nodes[node].connex && !self.nodes[parent].weightless;
        for i in 0..settling.touched.len() {
            let entry = settling.touched[i].entry;
            let (shift, saved) = self.edges[hub].close(side, i, settling);
            // a connex parent multiplies lazily: a value matters to its live rows only, and only to deltas
            let only_live = shift == Shift::Value && connex_parent;
            if shift == Shift::Nothing || only_live && !deltas {
                continue;
            }
            let first = above.rows.len();
            let visited = if is_projected && shift == Shift::Gained {
                let row = self.create_projection_row(hub, entry);
                let now = self.nodes[parent].rows.status(row);
                above.rows.extend(now.then_some(Changed { row, was: false, now }));
                1
            } else {
                if is_projected && shift == Shift::Lost {
                    orphaned.push((hub, entry));
                }
                let rows = &mut self.nodes[parent].rows;
                self.edges[hub].visit_parents(rows, entry, shift, only_live, &mut above.rows)
            };
            if shift == Shift::Value {
                self.counters.annotation_changes += visited;
            } else {
                self.counters.status_changes += visited;
            }
            if wants_values {
                for &change in &above.rows[first..] {
                    let start = above.values.len();
                    above.values.resize(start + components, 0);
                    self.parent_change(path, change, saved, &mut above.values[start..]);
                }
            }
        }
        settling.clear();
        level.clear();
        std::mem::swap(level, above);
        parent
    }

    /// The change of a parent row's annotation: everything else times (the side's sum now, minus before).
    fn parent_change(&mut self, path: Path, change: Changed, saved: Option<&[i128]>, into: &mut [i128]) {
        let Path { hub, side, parent, down } = path;
        let Changed { row, was, now } = change;
        let Some(saved) = saved else {
            // a support edge among value edges: the factor is 1 where it is there
            self.overflow |= self.annotation(parent, row, into);
            if was && !now {
                annotation::negate(into);
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
        let mut overflow = self.times_below(parent, row, Some(down), rest);
        let edge = &self.edges[hub];
        let entry = self.nodes[parent].rows.down(row, down);
        overflow |= edge.times_other_sides(entry, side, rest);
        if now {
            into.copy_from_slice(edge.hub.side_sums(entry, side));
        } else {
            into.fill(0);
        }
        if was {
            overflow |= annotation::subtract(into, saved);
        }
        overflow |= annotation::multiply(into, rest);
        self.overflow |= overflow;
    }

    /// Statuses of connex rows: from the witnesses up to the top or to an optional edge, then live marks down again.
    fn settle_connex(&mut self, node: usize, scratch: &mut Scratch, mut delta: Option<&mut Delta>) {
        let mut at = node;
        let mark = self.live_is_current;
        scratch.level.rows.extend(scratch.witnesses.rows.iter().filter(|c| c.was != c.now));
        scratch.born.clear();
        while !scratch.level.rows.is_empty() {
            let level = &scratch.level.rows;
            if mark {
                for change in level.iter().filter(|c| c.was) {
                    self.unliven(at, change.row, &mut scratch.stack);
                }
            }
            scratch.born.extend(level.iter().filter(|c| c.now).map(|c| (at, c.row)));
            match self.nodes[at].up {
                None => {
                    let rows = &mut self.nodes[at].rows;
                    for change in scratch.level.rows.drain(..) {
                        if change.now { rows.set(change.row, ALIVE) } else { rows.clear(change.row, ALIVE | LIVE) }
                    }
                }
                Some((hub, _)) if self.edges[hub].shows_phantoms() => {
                    self.flip_phantoms(at, scratch, delta.as_deref_mut());
                }
                Some(_) => at = self.climb(at, scratch, false),
            }
        }
        if mark {
            while let Some((at, row)) = scratch.born.pop() {
                self.enliven(at, row, &mut scratch.stack);
            }
        }
    }

    /// Settles the entries above a level below an optional edge, and emits what the phantoms that leave and come mean to results.
    /// Costs a visit of the live parents of these entries, for deltas only.
    fn flip_phantoms(&mut self, node: usize, scratch: &mut Scratch, mut delta: Option<&mut Delta>) {
        let (hub, side) = self.nodes[node].up.expect("below an edge");
        let Scratch { level, above, settling, .. } = scratch;
        for change in &level.rows {
            let entry = self.nodes[node].rows.up(change.row);
            self.edges[hub].open(side, entry, settling);
        }
        if let Some(delta) = delta.as_deref_mut() {
            let leaves = |tree: &Self, touched| tree.edges[hub].phantom_leaves(touched);
            self.emit_phantoms(hub, &settling.touched, leaves, false, above, delta);
        }
        for change in level.rows.drain(..) {
            let rows = &mut self.nodes[node].rows;
            let entry = rows.up(change.row);
            self.edges[hub].move_row(rows, side, entry, change);
        }
        for i in 0..settling.touched.len() {
            self.edges[hub].close(side, i, settling);
        }
        if let Some(delta) = delta {
            let came = |tree: &Self, touched| tree.edges[hub].phantom_came(touched);
            self.emit_phantoms(hub, &settling.touched, came, true, above, delta);
        }
        settling.clear();
    }

    /// Emits the results through the live parent rows of some entries, all of which bind the phantom, as coming or leaving.
    fn emit_phantoms(
        &mut self,
        hub: usize,
        touched: &[Touched],
        wanted: impl Fn(&Self, Touched) -> bool,
        comes: bool,
        parents: &mut Level,
        delta: &mut Delta,
    ) {
        let parent = self.edges[hub].parent;
        for &one in touched {
            if wanted(self, one) {
                let (edge, rows) = (&self.edges[hub], &mut self.nodes[parent].rows);
                let visited = edge.visit_parents(rows, one.entry, Shift::Value, true, &mut parents.rows);
                self.counters.annotation_changes += visited;
            }
        }
        if parents.rows.is_empty() {
            return;
        }
        self.delta_repeats |= self.edges[hub].phantom_may_look_real;
        for change in &mut parents.rows {
            (change.was, change.now) = (!comes, comes);
            if !self.set {
                let start = parents.values.len();
                parents.values.resize(start + self.components, 0);
                let value = &mut parents.values[start..];
                self.overflow |= self.annotation(parent, change.row, value);
                if !comes {
                    annotation::negate(value);
                }
            }
        }
        self.emit(parent, (&parents.rows, &parents.values), |_| true, delta, 0);
        parents.clear();
    }
}
