//! ORDER BY with LIMIT and OFFSET, of all rows or per partition: the rows from one rank to another, and their ranks if wanted.
//!
//! What: of each partition of the input (all of it, where no columns part it), ordered, the rows after the first `offset`, at most `limit` of
//! them; a row counts as often as it is there, so that some of its copies may be inside and others not. Rows that ORDER BY leaves equal are
//! ordered by all their columns: which of them are inside depends on nothing but the rows, and a replay gives the same. With a rank column every
//! row inside is given with its number in its partition, copies one by one.
//! Representation: all rows of the input, inside and outside, as sort keys in ordered multisets (`partitions.rs`, `ranked.rs`, `sort_key.rs`):
//! when a row leaves, the next one comes in.
//! Invariants: those of `Ranked`. What `prepare` finds out is in `prepared` until `commit` makes it or `abort` forgets it.
//! Cost: O(log n) per row of the input's delta, and O(1) per row that enters or leaves. A row outside changes nothing and emits nothing.
//! Ranks cost O(1) per row inside whose rank changes, and the way from the nearer end of the partition to the first of them.
//! Source: own.

use crate::consolidate::RowCodec;
use crate::counters::Counters;
use crate::error::KernelError;
use crate::flow::{Chunk, Flow};
use crate::interner::Interner;
use crate::operator::{Context, Held, Operator, Position};
use crate::partitions::{PartitionChange, Partitions};
use crate::plan;
use crate::pool::WordPool;
use crate::sort_key::RowOrder;
use arrow_array::Int32Array;
use everview_expr::DataType;
use std::sync::Arc;

/// The largest rank that there is a number for.
const LAST_RANK: i128 = i32::MAX as i128;

/// The rows of the input in order, and which of them are inside.
#[derive(Debug)]
pub struct TopK {
    codec: RowCodec,
    order: RowOrder,
    rows: Partitions,
    /// LIMIT 0: nothing is ever inside, so nothing is kept.
    is_void: bool,
    /// The rank of the first row inside, and behind which rank there is none, if rows are numbered.
    numbers: Option<(i128, i128)>,
    prepared: Option<Vec<PartitionChange>>,
    counters: Counters,
}

/// Rows on their way out: keys, ranks where these are shown, multiplicities.
#[derive(Default)]
struct Shown<'a> {
    keys: Vec<(&'a [u8], i64)>,
    ranks: Vec<i32>,
}

impl TopK {
    /// Of rows with columns of these types.
    pub fn new(plan: &plan::TopK, types: &[DataType]) -> Self {
        let offset = i128::from(plan.offset);
        let end = plan.limit.map_or(i128::MAX, |limit| offset + i128::from(limit));
        Self {
            codec: RowCodec::new(types),
            order: RowOrder::partitioned(types, &plan.partition, &plan.order),
            rows: Partitions::new(plan.offset, plan.limit),
            is_void: plan.limit == Some(0),
            numbers: plan.rank.as_ref().map(|_| (offset + 1, end)),
            prepared: None,
            counters: Counters::default(),
        }
    }

    /// Finds out what a change of the input does.
    fn change(&mut self, input: &Flow, interner: &mut Interner) -> Result<Vec<PartitionChange>, KernelError> {
        let net = self.codec.net(input, interner)?;
        let width = self.codec.width();
        let key = |row: usize| self.order.key(&net.words[row * width..(row + 1) * width], &self.codec, interner);
        let keyed = net.weights.iter().enumerate().map(|(row, &weight)| (key(row), weight)).collect();
        let changes = self.rows.prepare(keyed, &self.order).map_err(|_| too_many())?;
        for PartitionChange { change, .. } in &changes {
            self.counters.probes += change.probes;
            self.counters.steps += change.steps;
            if self.numbers.is_some_and(|(_, end)| change.total.min(end) > LAST_RANK) {
                return Err(too_many_numbers());
            }
        }
        Ok(changes)
    }

    /// What a change does to the rows inside with their ranks.
    fn renumbered(&mut self, changes: &[PartitionChange], context: &Context) -> Flow {
        let mut rows = Vec::new();
        for change in changes {
            let empty = self.rows.empty();
            let found = self.rows.before(change).unwrap_or(&empty).renumbered(&change.change);
            self.counters.steps += found.steps;
            rows.extend(found.rows);
        }
        let mut shown = Shown::default();
        for (key, rank, weight) in &rows {
            shown.keys.push((key, *weight));
            shown.ranks.push(*rank as i32);
        }
        self.shown(shown, context.interner, context.pool)
    }

    fn shown(&self, shown: Shown, interner: &Interner, pool: &WordPool) -> Flow {
        let mut chunks = self.order.rows(shown.keys, (interner, pool));
        let mut ranks = shown.ranks.as_slice();
        let mut number = |chunk: &mut Chunk| {
            let (mine, rest) = ranks.split_at(chunk.weights.len());
            ranks = rest;
            chunk.columns.push(Arc::new(Int32Array::from(mine.to_vec())));
        };
        if self.numbers.is_some() {
            chunks.iter_mut().for_each(&mut number);
        }
        Flow::of(chunks)
    }
}

impl Operator for TopK {
    fn kind(&self) -> &'static str {
        "topk"
    }

    fn prepare(&mut self, input: Flow, context: &mut Context) -> Result<Flow, KernelError> {
        if self.is_void {
            return Ok(Flow::default());
        }
        let changes = self.change(&input, context.interner)?;
        let flow = if self.numbers.is_some() {
            self.renumbered(&changes, context)
        } else {
            let entering = changes.iter().flat_map(|found| &found.change.window);
            let keys = entering.map(|(key, copies)| (&**key, *copies)).collect();
            self.shown(Shown { keys, ranks: Vec::new() }, context.interner, context.pool)
        };
        self.prepared = Some(changes);
        Ok(flow)
    }

    fn commit(&mut self, _: &mut Interner) {
        if let Some(changes) = self.prepared.take() {
            self.rows.commit(changes);
        }
    }

    fn abort(&mut self) {
        self.prepared = None;
    }

    fn held(&mut self) -> Option<&mut dyn Held> {
        Some(self)
    }

    fn is_stateful(&self) -> bool {
        true
    }

    fn size(&self) -> (usize, usize) {
        (self.rows.held(), self.rows.bytes())
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn can_refuse(&self) -> bool {
        self.numbers.is_some_and(|(_, end)| end > LAST_RANK)
    }

    fn adds_up(&self) -> bool {
        true
    }

    fn count(&self, _: Option<Option<i128>>) -> Option<Option<i128>> {
        Some(Some(self.rows.window_len()))
    }
}

impl Held for TopK {
    /// Partition by partition, each in the order of ORDER BY.
    fn read(&self, from: &Position, limit: usize, context: &Context) -> Result<(Flow, Option<Position>), KernelError> {
        let (from, mut rank) = match from {
            Position::Key(key, rank) => (Some(&**key), *rank),
            _ => (None, 0),
        };
        let mut window = self.rows.window(from);
        let mut shown = Shown::default();
        let mut next = window.next();
        while let Some((key, copies, is_first)) = next.filter(|_| shown.keys.len() < limit) {
            match self.numbers {
                None => shown.keys.push((&**key, copies)),
                Some((first, _)) => {
                    rank = if is_first { first } else { rank };
                    for _ in 0..copies {
                        shown.keys.push((&**key, 1));
                        shown.ranks.push(rank as i32);
                        rank += 1;
                    }
                }
            }
            next = window.next();
        }
        let rest = next.map(|(key, _, is_first)| {
            let first = self.numbers.map_or(0, |(first, _)| first);
            Position::Key(key.clone(), if is_first { first } else { rank })
        });
        Ok((self.shown(shown, context.interner, context.pool), rest))
    }

    fn absorb(&mut self, input: Flow, context: &mut Context) -> Result<(), KernelError> {
        if !self.is_void {
            let changes = self.change(&input, context.interner)?;
            self.rows.commit(changes);
        }
        Ok(())
    }
}

fn too_many() -> KernelError {
    KernelError::new("ARITHMETIC_OVERFLOW", "a row below a LIMIT is there more than 2^63 times")
}

fn too_many_numbers() -> KernelError {
    KernelError::new("ARITHMETIC_OVERFLOW", "a row_number() is above 2^31 - 1")
}
