//! Edges: a hub with the node above and the nodes below it, of one of four kinds, which the plan says.
//!
//! ```text
//!            a parent row has support while                          and the edge contributes to it
//! required   every side of its entry has an alive row                the rows of connex sides, the sums of the others
//! exists     the one side has an alive row                           nothing (a factor of 1)
//! forbids    the one side has no alive row                           nothing (a factor of 1)
//! optional   always                                                  as required; one phantom while the side has no alive row
//! ```
//!
//! All kinds keep the same lists and counters, so a change below costs the same on each of them: an entry is settled once per atom, and
//! only if its support or value differs afterwards are its parent rows visited, in one loop (`visit_parents`).
//!
//! A *phantom* stands for the whole subtree below an optional edge. Where the child is not connex it is a value: the entry's sums are the
//! phantom's while the side has no alive row. Where the child is connex it is a row: every connex node below has one (row 0 of its slab, all
//! NULL) that leads to the phantoms further below, and a side without alive rows shows it, so that enumeration binds it like any other; its
//! own annotation is 1, and the entry passes the phantom's components to the parent row.

use crate::annotation;
use crate::hub::{Blank, Hub};
use crate::rows::{ALIVE, LIVE, NONE, PHANTOM, Rows};
use crate::shape::{EdgeKind, HubShape, NodeShape, TreeShape, row_layout};
use crate::trim::trim_scratch;

/// A row whose status or annotation changes: its status before and after.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Changed {
    pub(crate) row: u32,
    pub(crate) was: bool,
    pub(crate) now: bool,
}

/// An entry that is being settled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touched {
    pub(crate) entry: u32,
    was_complete: bool,
}

/// The entries of one hub that are being settled, with their state before.
#[derive(Debug, Default)]
pub(crate) struct Settling {
    pub(crate) touched: Vec<Touched>,
    /// The sums of the entries' side before, where its rows are summed.
    saved: Vec<i128>,
}

impl Settling {
    /// The sums of the side before, of the entry touched as the `i`-th.
    fn saved(&self, i: usize, components: usize) -> &[i128] {
        &self.saved[i * components..(i + 1) * components]
    }

    pub(crate) fn clear(&mut self) {
        self.touched.clear();
        self.saved.clear();
    }

    pub(crate) fn give_back(&mut self, used: usize) {
        trim_scratch(&mut self.touched, used);
        trim_scratch(&mut self.saved, used * 4);
    }
}

/// What the settling of an entry means to its parent rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shift {
    /// All is as before.
    Nothing,
    /// They gained support.
    Gained,
    /// They lost support.
    Lost,
    /// They are supported as before, with another value.
    Value,
}

/// A hub and what it knows of its surroundings.
#[derive(Debug)]
pub(crate) struct Edge {
    pub(crate) hub: Hub,
    pub(crate) kind: EdgeKind,
    pub(crate) parent: usize,
    /// The position of this hub among the parent's hubs below.
    pub(crate) down: usize,
    pub(crate) children: Vec<usize>,
    /// The parent is a projection that has one row per entry of this hub.
    pub(crate) is_guard: bool,
    /// Sides in the connex part.
    pub(crate) connex_sides: Vec<usize>,
    /// Per side whether the annotations of its rows are summed up: those outside the connex part, unless only existence matters.
    summed_sides: Vec<bool>,
    /// Whether results through a phantom may be equal to results through the rows that come in its place.
    pub(crate) phantom_may_look_real: bool,
    /// The key variables.
    pub(crate) key: Vec<usize>,
    /// Whether the key ends in a mask word.
    pub(crate) masked: bool,
}

impl Edge {
    /// The edge of hub `h`, whose parent may be the top. `weightless`: the nodes whose annotations nobody reads.
    pub(crate) fn new(h: usize, hub: &HubShape, nodes: &[NodeShape], shape: &TreeShape, weightless: &[bool]) -> Self {
        let parent = hub.parent.expect("every hub has a parent once the top is there");
        let down = nodes[parent].downs.iter().position(|&d| d == h).expect("the parent lists the hub");
        let is_optional = hub.kind == EdgeKind::Optional;
        let is_connex = |side: &usize| nodes[hub.children[*side]].connex;
        let summed_sides: Vec<bool> = hub.children.iter().map(|&c| !nodes[c].connex && !weightless[c]).collect();
        let mut blank = Blank::default();
        let mut values = summed_sides.clone();
        let is_counted = |(&child, &is_summed): (&usize, &bool)| nodes[child].is_row_free() && !is_summed;
        let counted: Vec<bool> = hub.children.iter().zip(&summed_sides).map(is_counted).collect();
        if is_optional {
            let shows_phantoms = is_connex(&0);
            if shows_phantoms {
                blank.head = PHANTOM;
                values[0] = !weightless[hub.children[0]] && hub.phantom.iter().any(|&component| component != 1);
            }
            if values[0] {
                blank.sums = std::iter::once(1).chain(hub.phantom.iter().copied()).collect();
            }
        }
        let layout = row_layout(&hub.key, &shape.variables);
        Self {
            masked: layout.mask.is_some(),
            hub: Hub::new(layout.width, &values, &counted, shape.components + 1, blank),
            kind: hub.kind,
            parent,
            down,
            children: hub.children.clone(),
            is_guard: nodes[parent].atom.is_none() && down == 0,
            connex_sides: (0..hub.children.len()).filter(is_connex).collect(),
            summed_sides,
            phantom_may_look_real: is_optional && shape.phantom_may_look_real(h),
            key: hub.key.clone(),
        }
    }

    /// Whether an entry supports its parent rows.
    #[inline]
    pub(crate) fn fits(&self, entry: u32) -> bool {
        self.fits_when(self.hub.complete(entry))
    }

    /// Whether an entry supports its parent rows, given whether every side has an alive row.
    #[inline]
    fn fits_when(&self, complete: bool) -> bool {
        match self.kind {
            EdgeKind::Required | EdgeKind::Exists => complete,
            EdgeKind::Forbids => !complete,
            EdgeKind::Optional => true,
        }
    }

    /// Whether results bind a phantom where nothing is below.
    #[inline]
    pub(crate) fn shows_phantoms(&self) -> bool {
        self.kind == EdgeKind::Optional && !self.connex_sides.is_empty()
    }

    /// Whether results through the parent rows of an entry bind the phantom.
    #[inline]
    pub(crate) fn shows_phantom(&self, entry: u32) -> bool {
        self.shows_phantoms() && !self.hub.complete(entry)
    }

    /// Whether the annotations of a side's rows are summed up.
    #[inline]
    pub(crate) fn is_summed(&self, side: usize) -> bool {
        self.summed_sides[side]
    }

    // ---- parent rows ----------------------------------------------------------------------------------------------------------------

    /// Links a new parent row to its entry.
    #[inline]
    pub(crate) fn attach_parent(&mut self, rows: &mut Rows, row: u32, entry: u32) {
        rows.set_down(row, self.down, entry);
        let list = rows.link_parent(row, self.down, self.hub.parent_list(entry), false);
        self.hub.set_parent_list(entry, list);
        self.hub.count_parent(entry, 1);
        if !self.fits(entry) {
            rows.lose_support(row);
        }
    }

    /// Takes a parent row out of its entry, which is freed if nothing else refers to it.
    #[inline]
    pub(crate) fn detach_parent(&mut self, rows: &mut Rows, row: u32) {
        let entry = rows.down(row, self.down);
        let list = rows.unlink_parent(row, self.down, self.hub.parent_list(entry));
        self.hub.set_parent_list(entry, list);
        self.hub.count_parent(entry, -1);
        if self.hub.parents(entry) == 0 && self.hub.children(entry) == 0 {
            self.hub.remove(entry);
        }
    }

    /// Moves a parent row to or from the live ones of its entry. Returns the entry if its first live parent came or its last one left.
    #[inline]
    pub(crate) fn move_parent(&mut self, rows: &mut Rows, row: u32, live: bool) -> Option<u32> {
        let entry = rows.down(row, self.down);
        let list = rows.unlink_parent(row, self.down, self.hub.parent_list(entry));
        let list = rows.link_parent(row, self.down, list, live);
        self.hub.set_parent_list(entry, list);
        let before = self.hub.live_parents(entry);
        let after = if live { before + 1 } else { before - 1 };
        self.hub.set_live_parents(entry, after);
        (before.min(after) == 0).then_some(entry)
    }

    /// Tells the parent rows of a settled entry, and collects those whose status or annotation changes thereby. This is the one place where
    /// the support of a linked row changes. With `only_live`, rows that are part of no result are passed over; returns the rows visited.
    #[inline]
    pub(crate) fn visit_parents(
        &self,
        rows: &mut Rows,
        entry: u32,
        shift: Shift,
        only_live: bool,
        found: &mut Vec<Changed>,
    ) -> u64 {
        let mut visited = 0;
        let mut row = self.hub.parent_list(entry).0;
        while row != NONE {
            if only_live && !rows.has(row, LIVE) {
                break;
            }
            let next = rows.next_parent(row, self.down);
            visited += 1;
            match shift {
                Shift::Gained => rows.gain_support(row),
                Shift::Lost => rows.lose_support(row),
                Shift::Value | Shift::Nothing => {}
            }
            let (was, now) = (rows.has(row, ALIVE), rows.status(row));
            if was || now {
                found.push(Changed { row, was, now });
            }
            row = next;
        }
        visited
    }

    // ---- child rows -----------------------------------------------------------------------------------------------------------------

    /// Notes an entry, with its state before, the first time a level touches it. While it is settled, its sums are those of its rows only.
    #[inline]
    pub(crate) fn open(&mut self, side: usize, entry: u32, settling: &mut Settling) {
        if self.hub.stamp(entry) != NONE {
            return;
        }
        self.hub.set_stamp(entry, settling.touched.len() as u32);
        let was_complete = self.hub.complete(entry);
        settling.touched.push(Touched { entry, was_complete });
        if self.is_summed(side) {
            settling.saved.extend_from_slice(self.hub.side_sums(entry, side));
            if self.kind == EdgeKind::Optional && !was_complete {
                self.hub.fill_sums(entry, 0);
            }
        }
    }

    /// Puts a row into its side or takes it out, as its status changed.
    #[inline]
    pub(crate) fn move_row(&mut self, rows: &mut Rows, side: usize, entry: u32, change: Changed) {
        if change.was == change.now {
            return;
        }
        let head = self.hub.alive_head(entry, side);
        if change.now {
            rows.set(change.row, ALIVE);
            rows.push_front(change.row, head);
            self.hub.side_gained(entry, side, change.row);
        } else {
            rows.clear(change.row, ALIVE | LIVE);
            let head = rows.unlink(change.row, head);
            self.hub.side_lost(entry, side, head);
        }
    }

    /// Gives a side whose rows are not stored its status, by the number of rows it has. Returns whether what it has cannot
    /// be: fewer rows than none, or none whose values add up to something.
    #[inline]
    pub(crate) fn settle_unstored(&mut self, side: usize, entry: u32) -> bool {
        let (rows, is_left) = if self.is_summed(side) {
            let sums = self.hub.side_sums(entry, side);
            (sums[0], sums[1..].iter().any(|&sum| sum != 0))
        } else {
            (i128::from(self.hub.total(entry, side)), false)
        };
        match (self.hub.side_count(entry, side) > 0, rows != 0) {
            (false, true) => {
                self.hub.side_gained(entry, side, NONE);
                self.hub.add_child(entry);
            }
            (true, false) => {
                self.hub.side_lost(entry, side, NONE);
                self.hub.drop_child(entry);
            }
            _ => {}
        }
        rows < 0 || rows == 0 && is_left
    }

    /// Ends the settling of the entry touched as the `i`-th: what it means to its parent rows, and the side's sums before if they are kept.
    #[inline]
    pub(crate) fn close<'a>(&mut self, side: usize, i: usize, settling: &'a Settling) -> (Shift, Option<&'a [i128]>) {
        let Touched { entry, was_complete } = settling.touched[i];
        self.hub.set_stamp(entry, NONE);
        let complete = self.hub.complete(entry);
        let mut saved = None;
        let mut revalued = false;
        if self.is_summed(side) {
            if self.kind == EdgeKind::Optional && !complete {
                self.hub.blank_sums(entry);
            }
            let sums = self.hub.side_sums(entry, side);
            let before = settling.saved(i, sums.len());
            revalued = before != sums;
            saved = Some(before);
        } else if self.shows_phantoms() && self.hub.has_values() && complete != was_complete {
            if complete {
                self.hub.fill_sums(entry, 1);
            } else {
                self.hub.blank_sums(entry);
            }
        }
        let (was, now) = (self.fits_when(was_complete), self.fits_when(complete));
        let shift = match (was, now) {
            (false, true) => Shift::Gained,
            (true, false) => Shift::Lost,
            (true, true) if revalued => Shift::Value,
            _ => Shift::Nothing,
        };
        (shift, saved)
    }

    /// Whether the phantom of an entry that is being settled leaves: it had no alive row, and what changes a side without one adds to it.
    pub(crate) fn phantom_leaves(&self, touched: Touched) -> bool {
        self.shows_phantoms() && !touched.was_complete
    }

    /// Whether the phantom of an entry that has been settled came.
    pub(crate) fn phantom_came(&self, touched: Touched) -> bool {
        touched.was_complete && self.shows_phantom(touched.entry)
    }

    // ---- values ---------------------------------------------------------------------------------------------------------------------

    /// Multiplies `into` by the value that the edge passes; returns whether a product overflowed.
    #[inline]
    pub(crate) fn times_value(&self, entry: u32, into: &mut [i128]) -> bool {
        let mut overflow = false;
        for sums in self.hub.all_sums(entry).chunks_exact(into.len()) {
            overflow |= annotation::multiply(into, sums);
        }
        overflow
    }

    /// Multiplies `into` by the values that the sides other than `side` pass; returns whether a product overflowed.
    #[inline]
    pub(crate) fn times_other_sides(&self, entry: u32, side: usize, into: &mut [i128]) -> bool {
        let others = (0..self.hub.sides()).filter(|&other| other != side && self.hub.is_value_side(other));
        others.fold(false, |overflow, other| overflow | annotation::multiply(into, self.hub.side_sums(entry, other)))
    }
}
