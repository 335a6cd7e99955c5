//! A core as a stage of a view: a semi-join tree, the scans that feed its atoms, and the aggregate that reads its words, if there is one.
//!
//! A batch is prepared in three steps: the tree takes its changes and emits the delta of the core, the delta is made net, and it passes the
//! aggregate, which changes nothing yet. The tree's ring arithmetic is undone exactly by the inverse batch, so until `commit` the stage can
//! be brought back to where it was (`undo`).

use crate::aggregate::GroupAggregate;
use crate::codec::{Place, encode, words_of};
use crate::consolidate::{consolidate, out_of_range};
use crate::delta::{Delta, Outlet};
use crate::enumerate::{LookupWalk, Sink, Walk};
use crate::error::KernelError;
use crate::flow::{Chunk, Flow, decode_head, record_batch, schema_of};
use crate::interner::Interner;
use crate::operator::Context;
use crate::plan::{Aggregate, Core, Source};
use crate::pool::WordPool;
use crate::scan::{AtomScan, RowScan};
use crate::shape::HeadLayout;
use crate::tree::{Applied, AtomChanges, Tree};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema, SchemaRef};
use everview_expr::DataType;
use std::ops::Range;
use std::sync::Arc;

/// Words of a delta that are worth a piece of their own (4 MiB): enough that handing it over costs nothing, and no more than caches hold.
const PIECE_WORDS: usize = 1 << 19;

/// Rows read at a time when a view is built or checked.
pub(crate) const BUILT_ROWS: usize = 1 << 16;

/// Takes pieces of a core's delta.
pub(crate) type Pieces<'a> = &'a mut dyn FnMut(Flow, &mut Context);

/// The results of a core, as what is above reads them.
#[derive(Debug)]
pub(crate) struct CoreRows {
    head: HeadLayout,
    types: Vec<DataType>,
    schema: SchemaRef,
}

impl CoreRows {
    /// The rows of a sink, which are taken out of it.
    fn decode(&self, sink: &mut Sink, context: &Context) -> Flow {
        let weights = std::mem::take(&mut sink.multiplicities);
        let text = (&*context.interner, context.pool);
        let mut parts = decode_head(&self.head, &self.types, &mut sink.columns, weights.len(), None, text);
        if parts.len() == 1 {
            let columns = parts.swap_remove(0).1;
            return Flow::of(vec![Chunk { columns, weights }]);
        }
        let chunk = |(range, columns): (Range<usize>, _)| Chunk { columns, weights: weights[range].to_vec() };
        Flow::of(parts.into_iter().map(chunk).collect())
    }

    /// Some columns of the rows of a sink, which stay there.
    fn columns_of(
        &self,
        sink: &Sink,
        wanted: &[usize],
        context: &Context,
    ) -> Result<Vec<(Range<usize>, RecordBatch)>, KernelError> {
        let mut words: Vec<Vec<u64>> = vec![Vec::new(); sink.columns.len()];
        for &column in wanted {
            let place = self.head.columns[column];
            let masks = place.null.map(|(mask, _)| mask);
            for at in (place.first..place.first + place.words).chain(masks) {
                words[at].clone_from(&sink.columns[at]);
            }
        }
        let nullable = self.head.columns.iter().enumerate().map(|(c, place)| {
            let null = place.null.filter(|_| wanted.contains(&c));
            crate::shape::HeadColumn { null, ..*place }
        });
        let head = HeadLayout { columns: nullable.collect(), words: Vec::new() };
        let fields = self.schema.fields().iter().enumerate().map(|(c, field)| {
            let read = if wanted.contains(&c) { field.data_type().clone() } else { arrow_schema::DataType::Null };
            Field::new(field.name(), read, true)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let text = (&*context.interner, context.pool);
        let parts = decode_head(&head, &self.types, &mut words, sink.len(), Some(wanted), text);
        let batch = |(range, columns): (Range<usize>, _)| {
            let count = range.len();
            Ok((range, record_batch(&schema, columns, count)?))
        };
        parts.into_iter().map(batch).collect()
    }
}

/// Where the rows of an atom come from.
#[derive(Debug)]
pub enum AtomSource {
    /// A table of the session.
    Table(AtomScan),
    /// A table that keeps no rows.
    Passing(usize, RowScan),
    /// A stage of the same view.
    Stage(usize, RowScan),
    /// Another view of the session.
    View(usize, RowScan),
}

impl AtomSource {
    /// Words of the atom's rows that hold texts of its own.
    fn own_texts(&self) -> &[usize] {
        match self {
            Self::Table(scan) => scan.computed_texts(),
            Self::Passing(_, scan) | Self::Stage(_, scan) | Self::View(_, scan) => scan.texts(),
        }
    }
}

/// What a reader asks of a core's delta.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// The delta is read by someone.
    pub(crate) delta: bool,
    /// Every row of it must be there once.
    pub(crate) net: bool,
}

/// Where the reading of a core's full result stands.
#[derive(Debug)]
pub enum CoreCursor {
    /// In the tree.
    Tree(Box<(Walk, Sink)>),
    /// In the tree, through given rows.
    Lookup(Box<(LookupWalk, Sink)>),
    /// Before one group of the aggregate.
    Group(u32),
    /// In the groups held by the aggregate.
    Groups(u32),
    /// Before the one row of a global aggregate over nothing.
    EmptyGroup,
    /// At the end.
    Done,
}

/// A core.
#[derive(Debug)]
pub struct CoreStage {
    core: Core,
    tree: Tree,
    sources: Vec<AtomSource>,
    results: CoreRows,
    /// The aggregate that reads the core's words, if there is one.
    groups: Option<Box<GroupAggregate>>,
    /// The changes of the batch in progress.
    applied: Option<Vec<AtomChanges>>,
}

impl CoreStage {
    /// An empty core. `aggregate` is the only reader of its results, if one is given.
    pub(crate) fn new(core: Core, sources: Vec<AtomSource>, aggregate: Option<&Aggregate>) -> Self {
        let mut shape = core.shape();
        for node in &mut shape.nodes {
            // texts of an atom's own are kept alive by its rows, and given up by them when the view is dropped
            node.stores_rows = node.atom.is_some_and(|atom| !sources[atom].own_texts().is_empty());
        }
        let mut tree = Tree::new(&shape);
        for (atom, source) in sources.iter().enumerate() {
            if let AtomSource::Table(scan) = source
                && scan.keeps_rows()
            {
                tree.find_by_source(atom);
            }
        }
        let columns = core.head_columns();
        let schema = schema_of(columns.clone());
        let results = CoreRows {
            head: tree.head().clone(),
            types: columns.iter().map(|c| c.1).collect(),
            schema: schema.clone(),
        };
        let groups = aggregate.map(|a| Box::new(GroupAggregate::above_core(a, &core, &tree, schema)));
        Self { core, tree, sources, results, groups, applied: None }
    }

    /// The sources of the atoms, in order.
    pub fn sources(&self) -> &[AtomSource] {
        &self.sources
    }

    /// The tree.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Groups and bytes held by the aggregate, if there is one.
    pub fn groups_size(&self) -> Option<(usize, usize)> {
        self.groups.as_ref().map(|groups| groups.size())
    }

    /// Whether the aggregate holds groups of its own.
    pub(crate) fn is_stateful(&self) -> bool {
        self.groups.as_ref().is_some_and(|groups| groups.is_stateful())
    }

    /// Whether the aggregate can refuse a row.
    pub(crate) fn can_refuse(&self) -> bool {
        self.groups.as_ref().is_some_and(|groups| groups.can_refuse())
    }

    /// Whether each row of the tree's delta is a row of the core's.
    pub(crate) fn gives_rows_as_they_come(&self) -> bool {
        self.groups.is_none()
    }

    /// Whether a result may have a multiplicity that cannot be read.
    pub(crate) fn may_overflow_counts(&self) -> bool {
        self.tree.may_overflow_counts()
    }

    // ---- a batch ------------------------------------------------------------------------------------------------

    /// Applies a batch to the tree and prepares the aggregate. Returns the change of the core's output if it is wanted; with `pieces`, what
    /// did not leave there. `commit` or `undo` must follow, `undo` after an error; nothing has left then.
    pub(crate) fn prepare(
        &mut self,
        changes: Vec<AtomChanges>,
        wanted: Wanted,
        pieces: Option<Pieces>,
        context: &mut Context,
    ) -> Result<Flow, KernelError> {
        let outcome = self.apply(&changes, wanted, pieces, context);
        if let Some((node, words)) = self.tree.take_missing() {
            self.tree.undo(&changes);
            return Err(self.not_found(node, &words, context.interner));
        }
        self.refer_texts(&changes, 1, context.interner);
        self.applied = Some(changes);
        outcome
    }

    /// The refusal of a batch that deletes a row which is not there. Tables that keep their rows have noticed before.
    fn not_found(&self, node: usize, words: &[u64], interner: &Interner) -> KernelError {
        let text = self.tree.describe(
            node,
            words,
            |variable| {
                let variable = &self.core.variables[variable];
                (variable.name.as_str(), variable.data_type)
            },
            interner,
        );
        let message = format!("cannot delete {text}: more than there are");
        let atom = self.tree.atom_of(node).map(|atom| &self.core.atoms[atom].source);
        let error = match atom {
            Some(Source::Table(name)) => KernelError::of_table("ROW_NOT_FOUND", name, message),
            _ => KernelError::new("ROW_NOT_FOUND", message),
        };
        error.with_hint("delete only rows that were inserted after the view was created")
    }

    fn apply(
        &mut self,
        changes: &[AtomChanges],
        wanted: Wanted,
        pieces: Option<Pieces>,
        context: &mut Context,
    ) -> Result<Flow, KernelError> {
        let heard = wanted.delta || self.is_stateful() || self.can_refuse();
        if !heard && !self.tree.may_overflow_counts() {
            let applied = self.tree.apply(changes, None);
            if applied.missing || !applied.overflow && !self.tree.may_overflow_counts() {
                return Ok(Flow::default());
            }
            // some result may have a multiplicity that cannot be read: its delta tells
            self.tree.undo(changes);
        }
        let mut sink = self.new_sink(context);
        let mut others: Vec<Sink> = (1..context.threads).map(|_| self.new_sink(context)).collect();
        let mut applied = match pieces {
            Some(pieces) => self.apply_in_pieces(changes, (&mut sink, &mut others), pieces, context),
            _ => self.tree.apply_into(changes, Some(Delta::new(&mut sink, &mut others, None))),
        };
        for other in &mut others {
            recycle(other, context.pool);
        }
        if applied.overflow && !applied.missing {
            self.tree.undo(changes);
            sink.clear();
            applied = self.apply_deletes_first(changes, &mut sink);
        }
        let outcome = if applied.missing {
            Ok(Flow::default())
        } else if applied.overflow {
            Err(out_of_range())
        } else if applied.full {
            Err(self.too_large(context))
        } else {
            self.operate(&mut sink, applied.consolidate, wanted.net, context)
        };
        recycle(&mut sink, context.pool);
        outcome
    }

    /// Applies a batch in two: what leaves, then what comes. A result that the batch adds by one atom and removes by another may be out of
    /// range on the way; this way every state in between is a part of the one before the batch or of the one after it, so nothing is out of
    /// range unless one of these is. (But for sums whose terms cancel out.)
    fn apply_deletes_first(&mut self, changes: &[AtomChanges], sink: &mut Sink) -> Applied {
        let net: Vec<(AtomChanges, bool)> = changes.iter().map(AtomChanges::netted).collect();
        let parts = [false, true].map(|comes| net.iter().map(|(c, _)| c.of_sign(comes)).collect::<Vec<_>>());
        let [leaving, coming] = parts.map(|part| self.tree.apply(&part, Some(sink)));
        Applied {
            overflow: leaving.overflow || coming.overflow || net.iter().any(|&(_, overflow)| overflow),
            consolidate: true,
            full: leaving.full || coming.full,
            missing: leaving.missing || coming.missing,
        }
    }

    /// The change of the output for the delta of the tree.
    fn operate(
        &mut self,
        sink: &mut Sink,
        mut repeats: bool,
        net: bool,
        context: &mut Context,
    ) -> Result<Flow, KernelError> {
        // grouping adds equal rows up; without it, or before arguments that may fail, they are netted here
        let by_group = self.groups.as_ref().is_some_and(|groups| !groups.needs_input());
        if repeats && !by_group && (net || self.groups.is_some()) {
            if consolidate(sink) {
                return Err(out_of_range());
            }
            repeats = false;
        }
        match &mut self.groups {
            Some(groups) if groups.is_stateless() && !repeats => groups.prepare_unique(&mut self.tree, sink, context),
            Some(groups) => {
                let input = if groups.needs_input() {
                    self.results.columns_of(sink, &groups.columns_read(), context)?
                } else {
                    Vec::new()
                };
                groups.prepare_core(&mut self.tree, sink, &input, context)
            }
            None => Ok(Flow { may_repeat: repeats, ..self.results.decode(sink, context) }),
        }
    }

    /// Makes what was prepared last.
    pub(crate) fn commit(&mut self, interner: &mut Interner) {
        self.applied = None;
        self.groups.iter_mut().for_each(|groups| groups.commit(interner));
    }

    /// Takes back the batch that `prepare` was last given, whatever came of it.
    pub(crate) fn undo(&mut self, interner: &mut Interner) {
        self.groups.iter_mut().for_each(|groups| groups.abort());
        if let Some(changes) = self.applied.take() {
            self.tree.undo(&changes);
            self.refer_texts(&changes, -1, interner);
        }
    }

    /// Gives memory back if there is much to give.
    pub(crate) fn give_back(&mut self) {
        self.tree.give_back();
        self.groups.iter_mut().for_each(|groups| groups.give_back());
    }

    /// Applies a batch and lets its delta leave in pieces, but for what is then in the first sink.
    fn apply_in_pieces(
        &mut self,
        changes: &[AtomChanges],
        (sink, others): (&mut Sink, &mut [Sink]),
        pieces: Pieces,
        context: &mut Context,
    ) -> Applied {
        let Self { tree, results, .. } = self;
        let mut take = |sink: &mut Sink| {
            let flow = results.decode(sink, context);
            lend_buffers(sink, context.pool);
            pieces(flow, context);
        };
        let outlet = Outlet { rows: PIECE_WORDS / (1 + results.head.words.len()), take: &mut take };
        tree.apply_into(changes, Some(Delta::new(sink, others, Some(outlet))))
    }

    /// Bytes that a row of the core's delta takes here and on its way out.
    fn delta_row_bytes(&self) -> usize {
        2 * (8 * (self.results.head.words.len() + 1) + 16 * self.tree.extra_components())
    }

    fn new_sink(&self, context: &Context) -> Sink {
        let mut sink = Sink::new(&self.tree);
        sink.set_room(Some(context.delta_bytes / self.delta_row_bytes()));
        lend_buffers(&mut sink, context.pool);
        sink
    }

    fn too_large(&self, context: &Context) -> KernelError {
        let rows = context.delta_bytes / self.delta_row_bytes();
        let message =
            format!("the batch changes more than {rows} results of the join: more than the limit for one delta");
        KernelError::new("DELTA_TOO_LARGE", message)
    }

    /// Counts the references that the tree's rows make to texts of their own.
    fn refer_texts(&self, changes: &[AtomChanges], sign: i64, interner: &mut Interner) {
        for (source, change) in self.sources.iter().zip(changes) {
            if source.own_texts().is_empty() || change.weights.is_empty() {
                continue;
            }
            let width = change.words.len() / change.weights.len();
            // new references first: a batch may bring a row after it takes it away, and no number is ever below zero
            for comes in [true, false] {
                for (i, &weight) in change.weights.iter().enumerate().filter(|&(_, w)| (sign * w > 0) == comes) {
                    for &text in source.own_texts() {
                        interner.refer(change.words[i * width + text] as u32, sign * weight);
                    }
                }
            }
        }
    }

    /// Gives up the texts that only this core keeps alive; it is dropped afterwards.
    pub(crate) fn release_texts(&self, interner: &mut Interner) {
        for (atom, source) in self.sources.iter().enumerate() {
            for (words, weight) in self.tree.atom_rows(atom).filter(|_| !source.own_texts().is_empty()) {
                source.own_texts().iter().for_each(|&text| interner.refer(words[text] as u32, -weight));
            }
        }
        self.groups.iter().for_each(|groups| groups.release_texts(interner));
    }

    // ---- the whole result ---------------------------------------------------------------------------------------

    /// Builds the core from all rows of its atoms.
    pub(crate) fn build(&mut self, changes: Vec<AtomChanges>, context: &mut Context) -> Result<(), KernelError> {
        let (applied, changes) = self.tree.build(changes);
        self.refer_texts(&changes, 1, context.interner);
        drop(changes);
        if applied.overflow {
            return Err(out_of_range());
        }
        let Some(mut groups) = self.groups.take_if(|groups| groups.is_stateful()) else { return Ok(()) };
        let (mut walk, mut sink) = self.tree.results();
        let columns = groups.columns_read();
        loop {
            if self.tree.next_results(&mut walk, &mut sink, BUILT_ROWS) {
                return Err(out_of_range());
            }
            if sink.is_empty() {
                break;
            }
            let input =
                if groups.needs_input() { self.results.columns_of(&sink, &columns, context)? } else { Vec::new() };
            groups.absorb_core(&sink, &input, context.interner)?;
        }
        self.groups = Some(groups);
        Ok(())
    }

    /// Starts the reading of the full output.
    pub(crate) fn open(&self) -> CoreCursor {
        match &self.groups {
            Some(groups) if groups.is_stateful() => CoreCursor::Groups(0),
            Some(groups) if groups.is_global() && self.tree.is_empty() => CoreCursor::EmptyGroup,
            _ => CoreCursor::Tree(Box::new(self.tree.results())),
        }
    }

    /// Starts the reading of the results in which these head columns have these values (arrays of one value each); `None` if there is no
    /// index for it. Of a core that holds groups the columns must be all of its keys; otherwise a set that the tree has an index for.
    pub(crate) fn lookup(
        &mut self,
        columns: &[usize],
        values: &[ArrayRef],
        interner: &mut Interner,
    ) -> Option<CoreCursor> {
        let mut encoded = Vec::new();
        for (&column, value) in columns.iter().zip(values) {
            let data_type = self.results.types[column];
            let mut words = vec![0; words_of(data_type) + 1];
            let null = Some((words.len() - 1, 0));
            let place = Place { stride: words.len(), offset: 0, null };
            encode(value, data_type, &mut words, place, interner);
            let is_null = words.pop() == Some(1);
            encoded.push((words, is_null));
        }
        if let Some(groups) = self.groups.as_ref().filter(|groups| groups.is_stateful()) {
            let group = groups.find(columns, &encoded)?;
            return Some(group.map_or(CoreCursor::Done, CoreCursor::Group));
        }
        let variables: Vec<usize> = columns.iter().map(|&c| self.core.head[c]).collect();
        let found = self.tree.lookup(&variables, &encoded)?;
        Some(CoreCursor::Lookup(Box::new(found)))
    }

    /// The next rows where the cursor stands, about `limit`; `None` at the end.
    pub(crate) fn read(
        &mut self,
        cursor: &mut CoreCursor,
        limit: usize,
        context: &mut Context,
    ) -> Result<Option<Flow>, KernelError> {
        let aggregate = || self.groups.as_ref().expect("opened where there are groups");
        let (flow, rest) = match cursor {
            CoreCursor::Done => return Ok(None),
            CoreCursor::EmptyGroup => (aggregate().empty_row(context)?, None),
            CoreCursor::Group(group) => (aggregate().held_rows(*group, 1, context)?.0, None),
            CoreCursor::Groups(next) => {
                let (flow, rest) = aggregate().held_rows(*next, limit, context)?;
                (flow, rest.map(CoreCursor::Groups))
            }
            CoreCursor::Tree(reading) => {
                let overflows = self.tree.next_results(&mut reading.0, &mut reading.1, limit);
                return self.take_results(cursor, overflows, context);
            }
            CoreCursor::Lookup(reading) => {
                let overflows = self.tree.next_lookup(&mut reading.0, &mut reading.1, limit);
                return self.take_results(cursor, overflows, context);
            }
        };
        *cursor = rest.unwrap_or(CoreCursor::Done);
        Ok(Some(flow))
    }

    /// The rows that the tree has just put into the cursor's sink.
    fn take_results(
        &self,
        cursor: &mut CoreCursor,
        overflows: bool,
        context: &Context,
    ) -> Result<Option<Flow>, KernelError> {
        let sink = match cursor {
            CoreCursor::Tree(reading) => &mut reading.1,
            CoreCursor::Lookup(reading) => &mut reading.1,
            _ => unreachable!("only these have a sink"),
        };
        if overflows {
            return Err(out_of_range());
        }
        if sink.is_empty() {
            *cursor = CoreCursor::Done;
            return Ok(None);
        }
        match &self.groups {
            Some(groups) => groups.rows_of_results(sink, context).map(Some),
            None => Ok(Some(self.results.decode(sink, context))),
        }
    }

    /// The number of rows of the output.
    pub(crate) fn count(&self) -> Option<i128> {
        match &self.groups {
            None => self.tree.count(false),
            Some(groups) if groups.is_global() => Some(1),
            Some(groups) if groups.is_stateful() => Some(groups.size().0 as i128),
            Some(_) => self.tree.count(true),
        }
    }
}

/// Gives an empty sink recycled buffers.
fn lend_buffers(sink: &mut Sink, pool: &WordPool) {
    sink.columns.iter_mut().for_each(|column| *column = pool.take());
    sink.multiplicities = bytemuck::allocation::cast_vec(pool.take());
}

fn recycle(sink: &mut Sink, pool: &WordPool) {
    sink.columns.drain(..).for_each(|column| pool.put(column));
    pool.put(bytemuck::allocation::cast_vec(std::mem::take(&mut sink.multiplicities)));
}
