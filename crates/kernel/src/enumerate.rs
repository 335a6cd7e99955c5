//! Enumeration: nested iteration over the connex part, from the top for full results, from a witness for deltas.
//!
//! A program is the order in which the connex nodes are bound, starting at one of them: first upward to the top through live parent
//! rows, then downward into the sides of what is bound. Every step finds at least one row (alive and live see to it), so there are no
//! dead ends (where there is no row below an optional edge, the side shows a phantom): the delay between two emitted rows is bounded by the number of steps, whatever the data. A projection at the end of the way
//! up is not bound: its row is the entry that the row below it refers to.
//!
//! The last step is a tight loop that appends the words of its own rows and repeats those of the others. Following links costs a cache
//! miss a row, copying does not: where the rows of the last step are the same for all rows of the step before (`emit_product`), and where
//! witnesses of a batch lead to the same rows (`repeat`), they are walked once and copied from the sink.

use crate::annotation;
use crate::rows::{LIVE, NONE, Rows};
use crate::shape::EmittedWord;
use crate::sink::Block;
use crate::tree::Tree;

pub use crate::lookup::LookupWalk;
pub use crate::sink::Sink;

/// Where the rows of a step come from, given the rows of earlier steps.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// The row the program starts from.
    Start,
    /// The live parents of the entry above step `from`'s row; `down` is the hub's position below the parent.
    Parents { from: usize, hub: usize, down: usize },
    /// The alive rows on a side of the entry that link `link` of step `from`'s row leads to, or the phantom that the side shows.
    Side { from: usize, hub: usize, link: usize, side: usize },
}

#[derive(Clone, Copy, Debug)]
struct Step {
    node: usize,
    source: Source,
}

/// The order of binding from one connex node.
#[derive(Debug)]
pub(crate) struct Program {
    steps: Vec<Step>,
    /// Per step but the last its emitted columns: column, word. They are filled in when the step's row changes, many rows at a time.
    outer: Vec<Vec<(usize, usize)>>,
    /// Emitted columns of the last step: column, word.
    inner: Vec<(usize, usize)>,
}

/// How many rows a sink is to hold at the end of an enumeration that is not complete.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    /// So many.
    Exactly(usize),
    /// So many, or more by what belongs together.
    About(usize),
}

/// Where an enumeration stands. Valid as long as the tree does not change.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    rows: Vec<u32>,
    pub(crate) at: usize,
    /// The product of the annotations of the steps bound so far, per step.
    weights: Vec<i128>,
    /// Rows passed over because of their marks.
    passed: u64,
}

impl Program {
    /// The program that starts at `node`, if it is connex.
    pub(crate) fn build(tree: &Tree, node: usize) -> Option<Self> {
        if !tree.nodes[node].connex {
            return None;
        }
        let mut steps = vec![Step { node, source: Source::Start }];
        let mut came_from = vec![None];
        let mut at = node;
        let mut above = None;
        while let Some((hub, _)) = tree.nodes[at].up {
            let edge = &tree.edges[hub];
            let from = steps.len() - 1;
            if ends_at_top(tree, hub) {
                break;
            }
            if is_entry(tree, hub) {
                above = Some(hub);
                break;
            }
            steps.push(Step { node: edge.parent, source: Source::Parents { from, hub, down: edge.down } });
            came_from.push(Some(at));
            at = edge.parent;
        }
        let mut from = 0;
        let highest = steps.len() - 1;
        while from < steps.len() {
            let bound = &tree.nodes[steps[from].node];
            let below = bound.downs.iter().enumerate().map(|(down, &hub)| (hub, Rows::down_link(down)));
            let beside = above.filter(|_| from == highest).map(|hub| (hub, Rows::UP));
            for (hub, link) in below.chain(beside) {
                let edge = &tree.edges[hub];
                let known = if link == Rows::UP { Some(at) } else { came_from.get(from).copied().flatten() };
                for &side in edge.connex_sides.iter().filter(|&&side| known != Some(edge.children[side])) {
                    let source = Source::Side { from, hub, link, side };
                    steps.push(Step { node: edge.children[side], source });
                }
            }
            from += 1;
        }
        let last = steps.len() - 1;
        let (mut outer, mut inner) = (vec![Vec::new(); last], Vec::new());
        for (column, &EmittedWord { node, word }) in tree.head.words.iter().enumerate() {
            let (step, word) = match steps.iter().position(|s| s.node == node) {
                Some(step) => (step, word),
                None => (highest, tree.nodes[at].up_key.word(word)), // the projection that is the entry above
            };
            if step == last {
                inner.push((column, word));
            } else {
                outer[step].push((column, word));
            }
        }
        Some(Self { steps, outer, inner })
    }

    /// Whether a result is one row of the starting node.
    pub(crate) fn is_single(&self) -> bool {
        self.steps.len() == 1
    }

    /// Emits the one result that is `row`, with this weight; returns whether the weight left its range.
    #[inline]
    pub(crate) fn emit_single(&self, tree: &Tree, row: u32, weight: &[i128], sink: &mut Sink) -> bool {
        if !sink.has_room_for(1) {
            return false;
        }
        let rows = &tree.nodes[self.steps[0].node].rows;
        for &(column, word) in &self.inner {
            sink.columns[column].push(rows.value(row, word));
        }
        sink.push_weight(weight)
    }

    /// Whether the results through two rows with the same entry above differ in these rows only: the starting node binds nothing below
    /// itself, and weights do not depend on it.
    pub(crate) fn repeats(&self, sink: &Sink) -> bool {
        let below_start = |step: &Step| matches!(step.source, Source::Side { from: 0, link, .. } if link != Rows::UP);
        sink.unit && !self.is_single() && !self.steps.iter().any(below_start)
    }

    /// Emits the results through `row`, which are those of `block` but for the row itself.
    pub(crate) fn repeat(&self, tree: &Tree, row: u32, block: Block, sink: &mut Sink) {
        if !sink.has_room_for(block.end - block.first) {
            return;
        }
        let length = sink.len() + block.end - block.first;
        for &(column, _) in self.outer[1..].iter().flatten().chain(&self.inner) {
            sink.columns[column].extend_from_within(block.first..block.end);
        }
        for &(column, word) in &self.outer[0] {
            sink.columns[column].resize(length, tree.nodes[self.steps[0].node].rows.value(row, word));
        }
        sink.multiplicities.resize(length, sink.start[0] as i64);
    }

    /// Emits the results through `row`, weighted with the sink's start weight, until the sink holds `limit` rows or more; `go_on` has the
    /// rest. Returns rows visited and whether a product overflowed.
    pub(crate) fn run_from(&self, tree: &Tree, row: u32, sink: &mut Sink, skip: u32, limit: usize) -> (u64, bool) {
        let mut walk = std::mem::take(&mut sink.walk);
        self.begin(tree, row, &mut walk, sink, skip);
        sink.walk = walk;
        self.go_on(tree, sink, skip, limit)
    }

    /// Goes on with the results through the row of `run_from`.
    pub(crate) fn go_on(&self, tree: &Tree, sink: &mut Sink, skip: u32, limit: usize) -> (u64, bool) {
        let mut walk = std::mem::take(&mut sink.walk);
        let room = sink.room.map_or(usize::MAX, |room| room.saturating_add(1));
        let (steps, overflow) = self.run(tree, &mut walk, sink, skip, Limit::About(limit.min(room)));
        let passed = std::mem::take(&mut walk.passed);
        if !sink.has_room_for(0) {
            walk.at = 0;
        }
        sink.walk = walk;
        (steps + passed, overflow)
    }

    /// Places a walk before the first result through `row`.
    pub(crate) fn begin(&self, tree: &Tree, row: u32, walk: &mut Walk, sink: &Sink, skip: u32) {
        // what an earlier walk left behind is overwritten before it is read
        walk.rows.resize(self.steps.len(), NONE);
        walk.rows[0] = row;
        walk.at = 1;
        if !sink.unit {
            walk.weights.resize(self.steps.len() * tree.components, 0);
            walk.weights[..tree.components].copy_from_slice(&sink.start);
        }
        if self.steps.len() > 1 {
            walk.rows[1] = self.first(tree, walk, 1, skip);
        }
    }

    /// Emits results until the walk ends or the sink is at its limit.
    pub(crate) fn run(&self, tree: &Tree, walk: &mut Walk, sink: &mut Sink, skip: u32, limit: Limit) -> (u64, bool) {
        let (limit, is_exact) = match limit {
            Limit::Exactly(limit) => (limit, true),
            Limit::About(limit) => (limit, false),
        };
        let last = self.steps.len() - 1;
        let (mut steps, mut overflow) = (0, false);
        if last == 0 {
            if walk.at != 0 && sink.len() < limit {
                walk.at = 0;
                let weight = std::mem::take(&mut sink.start);
                overflow |= self.emit_single(tree, walk.rows[0], &weight, sink);
                sink.start = weight;
                steps = 1;
            }
            return (steps, overflow);
        }
        let mut length = sink.len();
        while walk.at != 0 {
            let at = walk.at;
            let row = walk.rows[at];
            if row == NONE {
                self.fill(tree, walk, at - 1, length, sink);
                walk.at = at - 1;
                if at > 1 {
                    walk.rows[at - 1] = self.next(tree, walk.rows[at - 1], at - 1, skip, &mut walk.passed);
                }
                continue;
            }
            if at + 1 == last && sink.unit && self.pairs() {
                steps += self.emit_pairs(tree, walk, sink, skip, limit);
                length = sink.columns[self.inner[0].0].len();
                continue;
            }
            if at + 1 == last && sink.unit && !is_exact && self.is_product() {
                if length >= limit {
                    break;
                }
                steps += self.emit_product(tree, walk, sink, skip, limit);
                length = sink.columns[self.inner[0].0].len();
                continue;
            }
            if at == last {
                if length >= limit {
                    break;
                }
                let (rest, visited, over) = self.emit_run(tree, walk, sink, skip, limit - length);
                walk.rows[last] = rest;
                length += visited;
                steps += visited as u64;
                overflow |= over;
                continue;
            }
            steps += 1;
            if !sink.unit {
                overflow |= bind_weight(tree, self.steps[at].node, row, at, &mut walk.weights);
            }
            walk.at = at + 1;
            walk.rows[at + 1] = self.first(tree, walk, at + 1, skip);
        }
        for at in 0..last.min(walk.at + 1) {
            self.fill(tree, walk, at, length, sink);
        }
        if sink.unit {
            let weight = sink.start[0] as i64;
            sink.multiplicities.resize(length, weight);
        }
        (steps, overflow)
    }

    /// Whether the last step walks a side below the step before it and has one column: then the two run as one double loop.
    fn pairs(&self) -> bool {
        let last = self.steps.len() - 1;
        matches!(self.steps[last].source, Source::Side { from, .. } if from + 1 == last) && self.inner.len() == 1
    }

    /// The last two steps at once, from the row the walk stands at: until the step before the last has no more rows or the sink
    /// holds `limit`. Rows weigh 1. Returns the rows visited.
    fn emit_pairs(&self, tree: &Tree, walk: &mut Walk, sink: &mut Sink, skip: u32, limit: usize) -> u64 {
        let last = self.steps.len() - 1;
        let Source::Side { hub, link, side, .. } = self.steps[last].source else { unreachable!("see `pairs`") };
        let (column, word) = self.inner[0];
        let mut values = std::mem::take(&mut sink.columns[column]);
        let (hub, inner) = (&tree.edges[hub].hub, &tree.nodes[self.steps[last].node].rows);
        let outer = &tree.nodes[self.steps[last - 1].node].rows;
        let (mut row, mut steps) = (walk.rows[last - 1], 0);
        let mut below = NONE;
        while row != NONE {
            let before = values.len();
            below = hub.side_head(outer.entry(row, link), side);
            while below != NONE && values.len() < limit {
                let (state, next) = inner.state_and_next(below);
                if state & skip == 0 {
                    values.push(inner.value(below, word));
                }
                steps += 1;
                below = next;
            }
            steps += 1;
            if values.len() > before {
                for &(column, word) in &self.outer[last - 1] {
                    sink.columns[column].resize(values.len(), outer.value(row, word));
                }
            }
            if below != NONE {
                break;
            }
            row = self.next(tree, row, last - 1, skip, &mut walk.passed);
        }
        sink.columns[column] = values;
        walk.rows[last - 1] = row;
        walk.rows[last] = below;
        walk.at = if row == NONE { last - 1 } else { last };
        steps
    }

    /// Whether the last step has a column and the same rows for every row of the step before it.
    fn is_product(&self) -> bool {
        let last = self.steps.len() - 1;
        matches!(self.steps[last].source, Source::Side { from, .. } if from + 1 < last) && !self.inner.is_empty()
    }

    /// The last two steps at once, from the row the walk stands at until the step before the last has no more rows or the sink holds `limit`:
    /// the rows of the last step are read once and copied for the others, all of them for each. Rows weigh 1. Returns the rows visited,
    /// copies among them.
    fn emit_product(&self, tree: &Tree, walk: &mut Walk, sink: &mut Sink, skip: u32, limit: usize) -> u64 {
        let last = self.steps.len() - 1;
        let outer = &tree.nodes[self.steps[last - 1].node].rows;
        let start = sink.columns[self.inner[0].0].len();
        let passed = walk.passed;
        walk.rows[last] = self.first(tree, walk, last, skip);
        let (_, count, _) = self.emit_run(tree, walk, sink, skip, usize::MAX);
        let visited = 1 + count as u64 + std::mem::replace(&mut walk.passed, passed) - passed;
        let (mut row, mut steps, mut end) = (walk.rows[last - 1], 0, start);
        while row != NONE && end < limit {
            if end > start {
                for &(column, _) in &self.inner {
                    sink.columns[column].extend_from_within(start..start + count);
                }
            }
            end += count;
            for &(column, word) in &self.outer[last - 1] {
                sink.columns[column].resize(end, outer.value(row, word));
            }
            steps += visited;
            row = self.next(tree, row, last - 1, skip, &mut walk.passed);
        }
        (walk.rows[last - 1], walk.at) = (row, last - 1);
        steps
    }

    /// Repeats the words of a step's row in its columns, for all rows emitted since it was bound.
    #[inline]
    fn fill(&self, tree: &Tree, walk: &Walk, at: usize, length: usize, sink: &mut Sink) {
        for &(column, word) in &self.outer[at] {
            let value = tree.nodes[self.steps[at].node].rows.value(walk.rows[at], word);
            sink.columns[column].resize(length, value);
        }
    }

    /// The tight loop over the rows of the last step: at most `room` rows. Returns where it stopped and how many it emitted.
    #[inline]
    fn emit_run(&self, tree: &Tree, walk: &mut Walk, sink: &mut Sink, skip: u32, room: usize) -> (u32, usize, bool) {
        let last = self.steps.len() - 1;
        let Step { node, source } = self.steps[last];
        let rows = &tree.nodes[node].rows;
        let mut row = walk.rows[last];
        let mut overflow = false;
        let mut count = 0;
        if let (true, [(column, word)], Source::Side { .. }) = (sink.unit, self.inner.as_slice(), source) {
            let column = &mut sink.columns[*column];
            while row != NONE && count < room {
                let (state, next) = rows.state_and_next(row);
                if state & skip == 0 {
                    column.push(rows.value(row, *word));
                    count += 1;
                } else {
                    walk.passed += 1;
                }
                row = next;
            }
            return (row, count, false);
        }
        let components = tree.components;
        while row != NONE && count < room {
            for &(column, word) in &self.inner {
                sink.columns[column].push(rows.value(row, word));
            }
            if !sink.unit {
                overflow |= bind_weight(tree, node, row, last, &mut walk.weights);
                overflow |= sink.push_weight(&walk.weights[last * components..(last + 1) * components]);
            }
            count += 1;
            row = self.next(tree, row, last, skip, &mut walk.passed);
        }
        (row, count, overflow)
    }

    #[inline]
    fn first(&self, tree: &Tree, walk: &mut Walk, at: usize, skip: u32) -> u32 {
        let rows = &walk.rows;
        let row = match self.steps[at].source {
            Source::Start => NONE,
            Source::Parents { from, hub, .. } => {
                let entry = tree.nodes[self.steps[from].node].rows.up(rows[from]);
                live_or_none(tree, self.steps[at].node, tree.edges[hub].hub.parent_list(entry).0)
            }
            Source::Side { from, hub, link, side } => {
                let entry = tree.nodes[self.steps[from].node].rows.entry(rows[from], link);
                tree.edges[hub].hub.side_head(entry, side)
            }
        };
        if skip != 0 && row != NONE && tree.nodes[self.steps[at].node].rows.has_any(row, skip) {
            walk.passed += 1;
            return self.next(tree, row, at, skip, &mut walk.passed);
        }
        row
    }

    #[inline]
    fn next(&self, tree: &Tree, row: u32, at: usize, skip: u32, passed: &mut u64) -> u32 {
        let rows = &tree.nodes[self.steps[at].node].rows;
        let mut row = row;
        loop {
            row = match self.steps[at].source {
                Source::Start => NONE,
                Source::Parents { down, .. } => live_or_none(tree, self.steps[at].node, rows.next_parent(row, down)),
                Source::Side { .. } => rows.next(row),
            };
            if skip == 0 || row == NONE || !rows.has_any(row, skip) {
                return row;
            }
            *passed += 1;
        }
    }
}

/// Whether nothing is to be bound above a hub: its parent is the top, which has one row and weighs 1, and there are no other sides.
fn ends_at_top(tree: &Tree, hub: usize) -> bool {
    let edge = &tree.edges[hub];
    edge.parent == tree.top && edge.connex_sides.len() == 1 && !edge.hub.has_values()
}

/// Whether the parent of a hub is a projection that need not be bound: its row is the hub's entry, weighs 1, and leads nowhere else.
fn is_entry(tree: &Tree, hub: usize) -> bool {
    let edge = &tree.edges[hub];
    let parent = &tree.nodes[edge.parent];
    edge.is_guard
        && !edge.masked
        && !edge.hub.has_values()
        && parent.downs.len() == 1
        && parent.up.is_some_and(|(above, _)| ends_at_top(tree, above))
}

#[inline]
pub(crate) fn live_or_none(tree: &Tree, node: usize, row: u32) -> u32 {
    if row != NONE && tree.nodes[node].rows.has(row, LIVE) { row } else { NONE }
}

/// The weight of step `at` is that of the step before times the row's annotation.
#[inline]
fn bind_weight(tree: &Tree, node: usize, row: u32, at: usize, weights: &mut [i128]) -> bool {
    let components = tree.components;
    let (before, here) = weights.split_at_mut(at * components);
    let here = &mut here[..components];
    let mut overflow = false;
    if tree.set {
        here.fill(1);
    } else {
        overflow = tree.annotation(node, row, here);
    }
    overflow | annotation::multiply(here, &before[(at - 1) * components..])
}

impl Tree {
    /// Starts an enumeration of the full result; `next_results` goes on with it.
    pub fn results(&self) -> (Walk, Sink) {
        let mut sink = Sink::new(self);
        let mut walk = Walk::default();
        if self.nodes[self.top].rows.has(0, crate::rows::ALIVE) {
            let mut weight = vec![1; self.components];
            self.annotation(self.top, 0, &mut weight);
            sink.start(&weight);
            sink.unit = self.weighs_one();
            if self.set {
                sink.start(&[1]);
            }
            self.programs[self.top].as_ref().expect("the top is connex").begin(self, 0, &mut walk, &sink, 0);
        }
        (walk, sink)
    }

    /// Emits the next results, at most `limit`, into the sink (emptied first); returns whether a value left its range.
    pub fn next_results(&mut self, walk: &mut Walk, sink: &mut Sink, limit: usize) -> bool {
        sink.clear();
        let program = self.programs[self.top].as_ref().expect("the top is connex");
        let (steps, overflow) = program.run(self, walk, sink, 0, Limit::Exactly(limit));
        self.counters.steps += steps;
        self.counters.emitted += sink.len() as u64;
        self.clear_hidden_bits(sink);
        overflow
    }
}
