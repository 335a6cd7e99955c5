//! A maintained view: a core and the operators above it.
//!
//! A batch is prepared in three steps: the tree takes its changes and emits the delta of the core, the delta is made net, and it passes the
//! operators, which change nothing yet. The tree's ring arithmetic is undone exactly by the inverse batch, so until `commit` the view can
//! be brought back to where it was (`undo`). Full results are read through a cursor (`read`).

use crate::aggregate::{AggregateRows, GroupAggregate};
use crate::consolidate::{RowCodec, consolidate, out_of_range};
use crate::counters::Counters;
use crate::delta::{Delta, Outlet};
use crate::distinct::Distinct;
use crate::enumerate::Sink;
use crate::error::KernelError;
use crate::flow::{Chunk, Flow, decode_head, record_batch, schema_of};
use crate::interner::Interner;
use crate::operator::{Context, Filter, Map, Operator, Rows};
use crate::plan::{self, Core, Plan, Stage};
use crate::pool::WordPool;
use crate::scan::AtomScan;
use crate::shape::HeadLayout;
use crate::table::BaseTable;
use crate::tree::{Applied, AtomChanges, Tree};
use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema, SchemaRef};
use everview_expr::DataType;
use std::ops::Range;
use std::sync::Arc;

/// Words of a delta that are worth a piece of their own (4 MiB): enough that handing it over costs nothing, and no more than caches hold.
const PIECE_WORDS: usize = 1 << 19;

/// Takes pieces of a view's delta: the schema of the result, and rows.
pub type Pieces<'a> = &'a mut dyn FnMut(&SchemaRef, Chunk);

/// The results of a core, as what is above reads them.
#[derive(Debug)]
pub(crate) struct CoreRows {
    pub(crate) head: HeadLayout,
    pub(crate) types: Vec<DataType>,
    pub(crate) schema: SchemaRef,
}

impl CoreRows {
    /// The rows of a sink, which are taken out of it.
    pub(crate) fn decode(&self, sink: &mut Sink, context: &Context) -> Flow {
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
    pub(crate) fn columns_of(
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

/// A maintained view.
#[derive(Debug)]
pub struct View {
    name: String,
    pub(crate) core: Core,
    pub(crate) tree: Tree,
    scans: Vec<AtomScan>,
    pub(crate) results: CoreRows,
    /// The aggregate that reads the core's words, if there is one.
    pub(crate) groups: Option<Box<GroupAggregate>>,
    /// The operators above.
    pub(crate) operators: Vec<Box<dyn Operator>>,
    output: SchemaRef,
    codec: RowCodec,
    /// Equal rows may come apart or together above the core, so that deltas are netted at the end.
    nets_at_end: bool,
}

impl View {
    /// Compiles a plan; `find` gives the position of a table by name.
    pub fn new(
        plan: Plan,
        tables: &[Option<BaseTable>],
        find: impl Fn(&str) -> Option<usize>,
    ) -> Result<Self, KernelError> {
        let invalid = |message: &str| KernelError::new("INVALID_PLAN", message.to_owned());
        if plan.version != plan::VERSION {
            return Err(invalid("the plan is of another version than this kernel"));
        }
        let mut stages = plan.stages.into_iter();
        let Some(Stage::Core(core)) = stages.next() else { return Err(invalid("the first stage must be a core")) };
        let mut tree = Tree::new(&core.shape());
        let mut scans = Vec::new();
        for atom in &core.atoms {
            let table = find(&atom.table).ok_or_else(|| invalid("an atom reads an unknown table"))?;
            let scan = AtomScan::new(&core, atom, table, tables[table].as_ref().expect("found tables exist"));
            if scan.keeps_rows() {
                tree.find_by_source(scans.len());
            }
            scans.push(scan);
        }
        let head = core.head.iter().map(|&v| (core.variables[v].name.clone(), core.variables[v].data_type));
        let mut columns: Vec<(String, DataType)> = head.collect();
        let results = CoreRows {
            head: tree.head().clone(),
            types: columns.iter().map(|c| c.1).collect(),
            schema: schema_of(columns.clone()),
        };
        let (mut groups, mut operators) = (None, Vec::<Box<dyn Operator>>::new());
        for (at, stage) in stages.enumerate() {
            let input = schema_of(columns.clone());
            let types: Vec<DataType> = columns.iter().map(|c| c.1).collect();
            let from = match stage {
                Stage::Core(_) => return Err(invalid("this kernel runs one core per view")),
                Stage::Aggregate(aggregate) => {
                    let keys = aggregate.keys.iter().map(|&k| columns[k].clone());
                    let values = aggregate.aggregates.iter().map(|a| (a.function.to_string(), a.data_type));
                    columns = keys.chain(values).collect();
                    if at == 0 {
                        groups = Some(Box::new(GroupAggregate::above_core(&aggregate, &core, &tree, input)));
                    } else {
                        operators.push(Box::new(AggregateRows::new(&aggregate, &types, input)));
                    }
                    aggregate.input
                }
                Stage::Map { input: from, columns: computed } => {
                    columns = computed.iter().map(|c| (c.name.clone(), c.expression.data_type())).collect();
                    operators.push(Box::new(Map::new(computed.into_iter().map(|c| c.expression).collect(), input)));
                    from
                }
                Stage::Filter { input: from, predicate } => {
                    operators.push(Box::new(Filter::new(predicate, input)));
                    from
                }
                Stage::Distinct { input } => {
                    operators.push(Box::new(Distinct::new(&types)));
                    input
                }
            };
            if from != at {
                return Err(invalid("this kernel runs chains of stages"));
            }
        }
        let nets_at_end = operators.iter().fold(false, |nets, operator| match operator.rows() {
            Rows::Apart => nets,
            Rows::MayMerge => true,
            Rows::Netted => false,
        });
        let fields = plan.output.iter().map(|c| Field::new(c.name.clone(), c.data_type.arrow(), c.nullable));
        Ok(Self {
            name: plan.view,
            tree,
            scans,
            results,
            groups,
            operators,
            output: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            codec: RowCodec::new(&columns.iter().map(|c| c.1).collect::<Vec<_>>()),
            nets_at_end,
            core,
        })
    }

    /// The view's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The schema of the result.
    pub fn schema(&self) -> &SchemaRef {
        &self.output
    }

    /// The scans of the atoms, in order.
    pub fn scans(&self) -> &[AtomScan] {
        &self.scans
    }

    /// The work done by the tree.
    pub fn counters(&self) -> &Counters {
        self.tree.counters()
    }

    /// The tree, for tests and metrics.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The core's plan.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// Rows and bytes held by each operator above the core.
    pub fn operator_sizes(&self) -> Vec<(&'static str, usize, usize)> {
        let groups = self.groups.iter().map(|groups| ("aggregate", groups.size().0, groups.size().1));
        groups.chain(self.operators.iter().map(|o| (o.kind(), o.size().0, o.size().1))).collect()
    }

    /// Whether a table feeds this view.
    pub fn reads(&self, table: usize) -> bool {
        self.scans.iter().any(|scan| scan.table == table)
    }

    /// Whether something above the tree holds rows, so that it must hear of every change.
    pub(crate) fn is_stateful(&self) -> bool {
        self.groups.as_ref().is_some_and(|groups| groups.is_stateful())
            || self.operators.iter().any(|o| o.is_stateful())
    }

    /// Whether something above the tree can refuse a row: every batch is then run through the operators, so that none is accepted that
    /// could not be read.
    pub(crate) fn can_refuse(&self) -> bool {
        self.groups.as_ref().is_some_and(|groups| groups.can_refuse()) || self.operators.iter().any(|o| o.can_refuse())
    }

    /// Applies a batch to the tree and prepares the operators. With `deltas`, returns the net change of the result; with `pieces` too, what
    /// did not leave there. `commit` or `undo` must follow, `undo` after an error; nothing has left then.
    pub fn prepare(
        &mut self,
        changes: &[AtomChanges],
        deltas: bool,
        pieces: Option<Pieces>,
        context: &mut Context,
    ) -> Result<Flow, KernelError> {
        self.refer_texts(changes, 1, context.interner);
        if !deltas && !self.is_stateful() && !self.can_refuse() && !self.tree.may_overflow_counts() {
            let overflow = self.tree.apply(changes, None).overflow;
            if !overflow && !self.tree.may_overflow_counts() {
                return Ok(Flow::default());
            }
            // some result may have a multiplicity that cannot be read: its delta tells
            self.tree.undo(changes);
        }
        let mut sink = self.new_sink(context);
        let mut others: Vec<Sink> = (1..context.threads).map(|_| self.new_sink(context)).collect();
        let mut applied = match pieces {
            Some(pieces) if self.may_leave_early() => {
                self.apply_in_pieces(changes, (&mut sink, &mut others), pieces, context)
            }
            _ => self.tree.apply_into(changes, Some(Delta::new(&mut sink, &mut others, None))),
        };
        for other in &mut others {
            recycle(other, context.pool);
        }
        if applied.overflow {
            self.tree.undo(changes);
            sink.clear();
            applied = self.apply_deletes_first(changes, &mut sink);
        }
        let outcome = if applied.overflow {
            Err(out_of_range())
        } else if applied.full {
            Err(self.too_large(context))
        } else {
            self.operate(&mut sink, applied.consolidate, context)
        };
        recycle(&mut sink, context.pool);
        outcome
    }

    /// Applies a batch in two: what leaves, then what comes. A result that the batch adds by one atom and removes by another may be out of
    /// range on the way; this way every state in between is a part of the one before the batch or of the one after it, so nothing is out of
    /// range unless one of these is. (But for sums whose terms cancel out.)
    fn apply_deletes_first(&mut self, changes: &[AtomChanges], sink: &mut Sink) -> Applied {
        let parts = [false, true].map(|comes| changes.iter().map(|c| c.of_sign(comes)).collect::<Vec<_>>());
        let [leaving, coming] = parts.map(|part| self.tree.apply(&part, Some(sink)));
        Applied { overflow: leaving.overflow || coming.overflow, consolidate: true, full: leaving.full || coming.full }
    }

    /// The change of the result for the delta of the core.
    fn operate(&mut self, sink: &mut Sink, repeats: bool, context: &mut Context) -> Result<Flow, KernelError> {
        // grouping adds equal rows up; without it they are netted before anything that can fail sees them, or at the end
        let by_group = self.groups.as_ref().is_some_and(|groups| !groups.needs_input());
        if repeats && !by_group && (!self.nets_at_end || self.can_refuse()) && consolidate(sink) {
            return Err(out_of_range());
        }
        let mut flow = match &mut self.groups {
            Some(groups) if groups.is_stateless() && !repeats => {
                groups.prepare_unique(&mut self.tree, sink, context)?
            }
            Some(groups) => {
                let input = if groups.needs_input() {
                    self.results.columns_of(sink, &groups.columns_read(), context)?
                } else {
                    Vec::new()
                };
                groups.prepare_core(&mut self.tree, sink, &input, context)?
            }
            None => self.results.decode(sink, context),
        };
        for operator in &mut self.operators {
            flow = operator.prepare(flow, context)?;
        }
        if self.nets_at_end || flow.may_repeat {
            flow = self.codec.netted(flow, context.interner)?;
        }
        Ok(flow)
    }

    /// Makes what was prepared last.
    pub fn commit(&mut self, interner: &mut Interner) {
        self.groups.iter_mut().for_each(|groups| groups.commit(interner));
        self.operators.iter_mut().for_each(|operator| operator.commit(interner));
    }

    /// Takes back the batch that `prepare` was last given, whatever came of it.
    pub fn undo(&mut self, changes: &[AtomChanges], interner: &mut Interner) {
        self.groups.iter_mut().for_each(|groups| groups.abort());
        self.operators.iter_mut().for_each(|operator| operator.abort());
        self.tree.undo(changes);
        self.refer_texts(changes, -1, interner);
    }

    /// Gives memory back if there is much to give.
    pub fn give_back(&mut self) {
        self.tree.give_back();
        self.groups.iter_mut().for_each(|groups| groups.give_back());
        self.operators.iter_mut().for_each(|operator| operator.give_back());
    }

    /// Whether each row of the core's delta becomes rows of the view's on its own, and none is refused.
    pub(crate) fn may_leave_early(&self) -> bool {
        self.groups.is_none() && !self.is_stateful() && !self.can_refuse() && !self.nets_at_end
    }

    /// Applies a batch and lets its delta leave in pieces, but for what is then in the first sink.
    fn apply_in_pieces(
        &mut self,
        changes: &[AtomChanges],
        (sink, others): (&mut Sink, &mut [Sink]),
        pieces: Pieces,
        context: &mut Context,
    ) -> Applied {
        let Self { tree, results, operators, output, .. } = self;
        let mut take = |sink: &mut Sink| {
            let flow = results.decode(sink, context);
            lend_buffers(sink, context.pool);
            let rows = operators.iter_mut().try_fold(flow, |flow, operator| operator.prepare(flow, context));
            rows.expect("nothing here refuses a row").chunks.into_iter().for_each(|chunk| pieces(output, chunk));
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
        for (scan, change) in self.scans.iter().zip(changes) {
            if scan.computed_texts().is_empty() || change.weights.is_empty() {
                continue;
            }
            let width = change.words.len() / change.weights.len();
            for (i, &weight) in change.weights.iter().enumerate() {
                for &text in scan.computed_texts() {
                    interner.refer(change.words[i * width + text] as u32, sign * weight);
                }
            }
        }
    }

    /// Builds the tree from the tables' rows; `read::fill` does the operators.
    pub(crate) fn build_tree(&mut self, changes: &[AtomChanges], interner: &mut Interner) -> Result<(), KernelError> {
        self.refer_texts(changes, 1, interner);
        if self.tree.apply(changes, None).overflow { Err(out_of_range()) } else { Ok(()) }
    }

    /// Gives up the texts that only this view keeps alive; the view is dropped afterwards.
    pub fn release_texts(&self, interner: &mut Interner) {
        for (atom, scan) in self.scans.iter().enumerate() {
            for (words, weight) in self.tree.atom_rows(atom).filter(|_| !scan.computed_texts().is_empty()) {
                scan.computed_texts().iter().for_each(|&text| interner.refer(words[text] as u32, -weight));
            }
        }
        self.groups.iter().for_each(|groups| groups.release_texts(interner));
        self.operators.iter().for_each(|operator| operator.release_texts(interner));
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
