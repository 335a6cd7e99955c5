//! The delta of one step: the results through its witnesses, found on as many threads as there are sinks for.
//!
//! Enumeration only reads the tree, and every witness's results are its own (invariant S2 of `settle`): witnesses are dealt out in
//! contiguous shares, one per thread, and each thread fills its sink. What comes out does not depend on time, only on the number of threads.

use crate::delta::Delta;
use crate::edge::Changed;
use crate::enumerate::{Program, Sink};
use crate::rows::LIVE;
use crate::sink::Block;
use crate::threads::side_by_side;
use crate::tree::Tree;

/// One direction of a step: how to enumerate from its witnesses, and which of them count.
struct Pass<'a, W> {
    node: usize,
    program: &'a Program,
    /// Whether results of witnesses with the same entry above differ in the witness only.
    repeats: bool,
    wanted: W,
    skip: u32,
}

/// Witnesses that a thread has yet to enumerate, and their values.
#[derive(Clone, Copy, Default)]
struct Part<'a> {
    witnesses: &'a [Changed],
    values: &'a [i128],
}

impl Part<'_> {
    fn is_empty(&self) -> bool {
        self.witnesses.is_empty()
    }
}

/// Rows visited, and whether a product overflowed.
#[derive(Clone, Copy, Default)]
struct Effort {
    steps: u64,
    overflow: bool,
}

impl Tree {
    /// Emits the results through the witnesses that `wanted` selects, weighted with the change of their annotation (`components` values
    /// per witness).
    pub(crate) fn emit(
        &mut self,
        node: usize,
        (witnesses, values): (&[Changed], &[i128]),
        wanted: impl Fn(&Changed) -> bool + Sync,
        delta: &mut Delta,
        skip: u32,
    ) {
        let program = self.programs[node].take().expect("connex nodes have a program");
        let repeats = witnesses.len() > 1 && program.repeats(delta.sink);
        let pass = Pass { node, program: &program, repeats, wanted, skip };
        let before = delta.rows();
        let per_witness = if self.set { 0 } else { self.components };
        let mut dealt = 0;
        let mut parts = vec![Part::default(); delta.threads()];
        loop {
            if delta.is_full() {
                break;
            }
            if parts.iter().all(Part::is_empty) && !delta.is_midway() {
                let threads = parts.len().min((witnesses.len() - dealt).div_ceil(delta.share()));
                for (part, left) in parts.iter_mut().zip((1..=threads).rev()) {
                    let end = dealt + (witnesses.len() - dealt).div_ceil(left).min(delta.share());
                    *part = Part {
                        witnesses: &witnesses[dealt..end],
                        values: &values[dealt * per_witness..end * per_witness],
                    };
                    dealt = end;
                }
                if threads == 0 {
                    break;
                }
            }
            let effort = pass.run_all(self, &mut parts, delta);
            self.counters.steps += effort.steps;
            self.overflow |= effort.overflow;
            delta.release();
        }
        self.counters.emitted += delta.rows() - before;
        delta.forget_blocks();
        self.programs[node] = Some(program);
    }
}

impl<W: Fn(&Changed) -> bool + Sync> Pass<'_, W> {
    /// Every thread's part, up to its end or until a piece of the delta is full.
    fn run_all(&self, tree: &Tree, parts: &mut [Part], delta: &mut Delta) -> Effort {
        let full = delta.piece();
        let (sink, others) = delta.sinks();
        let sinks = std::iter::once(sink).chain(others);
        let busy = parts.iter_mut().zip(sinks).filter(|(part, sink)| !part.is_empty() || sink.is_midway());
        let done = side_by_side(busy, |(part, sink)| self.run(tree, part, sink, full));
        done.into_iter().fold(Effort::default(), |sum, one| Effort {
            steps: sum.steps + one.steps,
            overflow: sum.overflow | one.overflow,
        })
    }

    /// The results of a part's witnesses, which are taken out of it, until the sink holds `full` rows or has no room. The results of one
    /// witness may be cut by that: the next call goes on with them.
    ///
    /// Where all else depends on the entry above the witness only, the results of a second witness with this entry are those of the first
    /// but for the witness: they are copied. They count as visited all the same.
    fn run(&self, tree: &Tree, part: &mut Part, sink: &mut Sink, full: usize) -> Effort {
        let mut effort = Effort::default();
        let rows = &tree.nodes[self.node].rows;
        let components = tree.components;
        let mut add = |(steps, overflow): (u64, bool)| {
            effort.steps += steps;
            effort.overflow |= overflow;
        };
        if sink.is_midway() {
            add(self.program.go_on(tree, sink, self.skip, full));
        }
        while sink.len() < full
            && !sink.is_full()
            && let Some((change, rest)) = part.witnesses.split_first()
        {
            part.witnesses = rest;
            let sign = [if change.now { 1 } else { -1 }];
            let weight = if tree.set {
                &sign[..]
            } else {
                let (weight, rest) = part.values.split_at(components);
                part.values = rest;
                weight
            };
            if !(self.wanted)(change) || !rows.has(change.row, LIVE) || rows.has_any(change.row, self.skip) {
                continue;
            }
            if weight.iter().all(|&v| v == 0) {
                continue;
            }
            if self.program.is_single() {
                add((1, self.program.emit_single(tree, change.row, weight, sink)));
                continue;
            }
            sink.start(weight);
            let entry = self.repeats.then(|| rows.up(change.row));
            if let Some(block) = entry.and_then(|entry| sink.blocks.find(entry)) {
                self.program.repeat(tree, change.row, block, sink);
                add((block.steps, false));
                continue;
            }
            let first = sink.len();
            let (steps, overflow) = self.program.run_from(tree, change.row, sink, self.skip, full);
            add((steps, overflow));
            if let Some(entry) = entry.filter(|_| !sink.is_midway()) {
                sink.blocks.insert(entry, Block { first, end: sink.len(), steps });
            }
        }
        effort
    }
}
