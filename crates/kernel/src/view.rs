//! A maintained view: a core and the operators above it.
//!
//! `apply` runs a batch through the stages. Every stage updates its state before it can refuse, and the view remembers how many stages did,
//! so that `undo` takes back exactly those. Full results are read chunk by chunk through a cursor: from the last stage that holds its rows,
//! or else from the tree, through the stages above it.

use crate::aggregate::{Flow, GroupAggregate, decode_head};
use crate::codec::{Place, encode, words_of};
use crate::consolidate::{RowCodec, consolidate};
use crate::counters::Counters;
use crate::delta::{Delta, Outlet};
use crate::distinct::{Distinct, take};
use crate::enumerate::{LookupWalk, Sink, Walk};
use crate::error::KernelError;
use crate::interner::Interner;
use crate::plan::{self, Core, Plan, Stage};
use crate::pool::WordPool;
use crate::scan::{AtomScan, internal};
use crate::shape::HeadLayout;
use crate::table::BaseTable;
use crate::tree::{Applied, AtomChanges, Tree};
use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, Schema, SchemaRef};
use everview_expr::{DataType, Expr};
use std::sync::Arc;

/// Rows read at a time when a new view is checked.
const CHECKED_ROWS: usize = 1 << 16;
/// Words of a delta that are worth a piece of their own (4 MiB): enough that handing it over costs nothing, and no more than caches hold.
const PIECE_WORDS: usize = 1 << 19;

/// Takes pieces of a view's delta: the schema of the result, and rows.
pub type Pieces<'a> = &'a mut dyn FnMut(&SchemaRef, Flow);

#[derive(Debug)]
enum Operator {
    /// Directly above the core: reads its words.
    Aggregate(Box<GroupAggregate>),
    /// Above computed rows.
    AggregateRows(Box<(GroupAggregate, RowCodec)>),
    Map(Vec<Expr>),
    Filter(Expr),
    Distinct(Box<Distinct>),
}

#[derive(Debug)]
struct StageState {
    operator: Operator,
    /// The schema of the stage's input, for expressions.
    input: SchemaRef,
}

/// What the stages need of the session.
pub struct Context<'a> {
    /// The session's texts.
    pub interner: &'a mut Interner,
    /// The session's buffers.
    pub pool: &'a WordPool,
    /// How many threads may enumerate.
    pub threads: usize,
}

/// A maintained view.
#[derive(Debug)]
pub struct View {
    name: String,
    core: Core,
    tree: Tree,
    scans: Vec<AtomScan>,
    head: HeadLayout,
    head_types: Vec<DataType>,
    head_schema: SchemaRef,
    stages: Vec<StageState>,
    output: SchemaRef,
    codec: RowCodec,
    /// Equal rows of the core's delta may come apart or together above it, so that deltas are netted at the end.
    nets_at_end: bool,
    /// Stages whose state the last batch changed.
    progress: usize,
}

/// Where the reading of a full result stands.
#[derive(Debug)]
pub enum Cursor {
    /// In the tree.
    Tree(Box<(Walk, Sink)>),
    /// In the tree, through given rows.
    Lookup(Box<(LookupWalk, Sink)>),
    /// Before one group of an aggregate.
    Group(u32),
    /// In the rows held by a stage.
    Held {
        /// The stage.
        stage: usize,
        /// The next row.
        next: u32,
    },
    /// Before the one row of a global aggregate over nothing.
    EmptyGroup,
    /// At the end.
    Done,
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
        let head_types: Vec<DataType> = core.head.iter().map(|&v| core.variables[v].data_type).collect();
        let head_schema = schema_of(&head_types);
        let mut types = head_types.clone();
        let mut compiled = Vec::new();
        let mut nets_at_end = false;
        for (at, stage) in stages.enumerate() {
            let input = schema_of(&types);
            let (from, operator, output) = match stage {
                Stage::Core(_) => return Err(invalid("this kernel runs one core per view")),
                Stage::Aggregate(aggregate) => {
                    let keys = aggregate.keys.iter().map(|&k| types[k]);
                    let output = keys.chain(aggregate.aggregates.iter().map(|a| a.data_type)).collect();
                    let operator = if at == 0 {
                        Operator::Aggregate(Box::new(GroupAggregate::above_core(&aggregate, &core, &tree)))
                    } else {
                        nets_at_end = false;
                        let codec = RowCodec::new(&types);
                        Operator::AggregateRows(Box::new((GroupAggregate::above_rows(&aggregate, &codec), codec)))
                    };
                    (aggregate.input, operator, output)
                }
                Stage::Map { input, columns } => {
                    let kept = |i: usize| columns.iter().any(|c| c.expression.as_column() == Some(i));
                    nets_at_end |= !(0..types.len()).all(kept);
                    let output = columns.iter().map(|c| c.expression.data_type()).collect();
                    (input, Operator::Map(columns.into_iter().map(|c| c.expression).collect()), output)
                }
                Stage::Filter { input, predicate } => (input, Operator::Filter(predicate), types.clone()),
                Stage::Distinct { input } => {
                    nets_at_end = false;
                    (input, Operator::Distinct(Box::new(Distinct::new(&types))), types.clone())
                }
            };
            if from != at {
                return Err(invalid("this kernel runs chains of stages"));
            }
            types = output;
            compiled.push(StageState { operator, input });
        }
        let fields: Vec<Field> =
            plan.output.iter().map(|c| Field::new(c.name.clone(), c.data_type.arrow(), c.nullable)).collect();
        Ok(Self {
            name: plan.view,
            head: tree.head().clone(),
            tree,
            scans,
            head_types,
            head_schema,
            stages: compiled,
            output: Arc::new(Schema::new(fields)),
            codec: RowCodec::new(&types),
            nets_at_end,
            progress: 0,
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

    /// Rows and bytes held by each operator above the core.
    pub fn operator_sizes(&self) -> Vec<(&'static str, usize, usize)> {
        let size = |stage: &StageState| match &stage.operator {
            Operator::Aggregate(a) => ("aggregate", a.size().0, a.size().1),
            Operator::AggregateRows(a) => ("aggregate", a.0.size().0, a.0.size().1),
            Operator::Distinct(d) => ("distinct", d.size().0, d.size().1),
            Operator::Map(_) => ("map", 0, 0),
            Operator::Filter(_) => ("filter", 0, 0),
        };
        self.stages.iter().map(size).collect()
    }

    /// Whether a table feeds this view.
    pub fn reads(&self, table: usize) -> bool {
        self.scans.iter().any(|scan| scan.table == table)
    }

    fn has_state(&self) -> bool {
        self.stages.iter().any(|stage| match &stage.operator {
            Operator::Aggregate(a) => a.has_state(),
            Operator::Distinct(_) | Operator::AggregateRows(_) => true,
            Operator::Map(_) | Operator::Filter(_) => false,
        })
    }

    /// Whether something above the tree can refuse a row: every batch is then run through the stages, so that none is accepted that
    /// could not be read.
    fn is_fallible(&self) -> bool {
        self.stages.iter().any(|stage| match &stage.operator {
            Operator::Aggregate(a) => a.is_fallible(),
            Operator::AggregateRows(a) => a.0.is_fallible(),
            Operator::Map(expressions) => expressions.iter().any(Expr::is_fallible),
            Operator::Filter(predicate) => predicate.is_fallible(),
            Operator::Distinct(_) => false,
        })
    }

    /// Builds the view from the tables' rows, and reads the result once, chunk by chunk, where something above the tree can refuse it.
    pub fn build(&mut self, changes: &[AtomChanges], context: &mut Context) -> Result<(), KernelError> {
        if self.has_state() {
            self.run(changes, true, self.stages.len(), None, context)?;
            return Ok(());
        }
        for (scan, change) in self.scans.iter().zip(changes) {
            refer_texts(scan, change, context.interner);
        }
        if self.tree.apply(changes, None).overflow {
            return Err(overflow());
        }
        let mut cursor = if self.is_fallible() { self.open() } else { Cursor::Done };
        while self.read(&mut cursor, CHECKED_ROWS, context)?.is_some() {}
        Ok(())
    }

    /// Applies a batch. With `deltas`, returns the net change of the result; with `pieces` too, what did not leave there.
    /// On an error, `undo` must follow, and nothing has left.
    pub fn apply(
        &mut self,
        changes: &[AtomChanges],
        deltas: bool,
        pieces: Option<Pieces>,
        context: &mut Context,
    ) -> Result<Flow, KernelError> {
        self.run(changes, deltas, self.stages.len(), pieces, context)
    }

    /// Takes back the batch that `apply` was last given.
    pub fn undo(&mut self, changes: &[AtomChanges], deltas: bool, context: &mut Context) {
        let inverse: Vec<AtomChanges> = changes.iter().map(AtomChanges::inverse).collect();
        // whatever this refuses has been refused before, after the state below it was changed
        let _ = self.run(&inverse, deltas, self.progress, None, context);
    }

    fn run(
        &mut self,
        changes: &[AtomChanges],
        deltas: bool,
        upto: usize,
        pieces: Option<Pieces>,
        context: &mut Context,
    ) -> Result<Flow, KernelError> {
        self.progress = 0;
        for (scan, change) in self.scans.iter().zip(changes) {
            refer_texts(scan, change, context.interner);
        }
        if !deltas && !self.has_state() && !self.is_fallible() {
            let applied = self.tree.apply(changes, None);
            return if applied.overflow { Err(overflow()) } else { Ok(Flow::default()) };
        }
        let mut sink = self.new_sink(context.pool);
        let mut others: Vec<Sink> = (1..context.threads).map(|_| self.new_sink(context.pool)).collect();
        let applied = match pieces {
            Some(pieces) if self.may_leave_early() => {
                self.apply_in_pieces(changes, (&mut sink, &mut others), pieces, context)
            }
            _ => self.tree.apply_into(changes, Some(Delta::new(&mut sink, &mut others, None))),
        };
        for other in &mut others {
            recycle(other, context.pool);
        }
        if applied.overflow {
            return Err(overflow());
        }
        let mut flow = None;
        let groups_next = matches!(self.stages.first(), Some(StageState { operator: Operator::Aggregate(_), .. }));
        if applied.consolidate && !groups_next && !self.nets_at_end {
            consolidate(&mut sink);
        }
        for at in 0..upto.min(self.stages.len()) {
            self.progress = at + 1;
            let next = if groups_next && at == 0 {
                self.aggregate(&mut sink, applied.consolidate, context)?
            } else {
                let input = match flow.take() {
                    Some(flow) => flow,
                    None => self.decode(&mut sink, context),
                };
                self.pass(at, input, context)?
            };
            flow = Some(next);
        }
        let mut flow = match flow {
            Some(flow) => flow,
            None => self.decode(&mut sink, context),
        };
        recycle(&mut sink, context.pool);
        if upto == self.stages.len() && (self.nets_at_end || flow.may_repeat) {
            let (firsts, weights) = self.codec.net(&flow.columns, &flow.weights, context.interner);
            if firsts.len() < flow.weights.len() {
                flow.columns = take(&flow.columns, &firsts)?;
            }
            flow.weights = weights;
        }
        Ok(flow)
    }

    /// Whether each row of the core's delta becomes rows of the view's on its own, and none is refused.
    fn may_leave_early(&self) -> bool {
        let by_row = |stage: &StageState| matches!(stage.operator, Operator::Map(_) | Operator::Filter(_));
        self.stages.iter().all(by_row) && !self.is_fallible() && !self.nets_at_end
    }

    /// Applies a batch and lets its delta leave in pieces, but for what is then in the first sink.
    fn apply_in_pieces(
        &mut self,
        changes: &[AtomChanges],
        (sink, others): (&mut Sink, &mut [Sink]),
        pieces: Pieces,
        context: &mut Context,
    ) -> Applied {
        let Self { tree, head, head_types, stages, output, .. } = self;
        let mut take = |sink: &mut Sink| {
            let flow = decode(head, head_types, sink, context);
            lend_buffers(sink, context.pool);
            let rows = stages.iter().try_fold(flow, |flow, stage| by_row(stage, flow));
            pieces(output, rows.expect("nothing here refuses a row"));
        };
        let outlet = Outlet { rows: PIECE_WORDS / (1 + head.words.len()), take: &mut take };
        tree.apply_into(changes, Some(Delta::new(sink, others, Some(outlet))))
    }

    fn new_sink(&self, pool: &WordPool) -> Sink {
        let mut sink = Sink::new(&self.tree);
        lend_buffers(&mut sink, pool);
        sink
    }

    fn aggregate(&mut self, sink: &mut Sink, repeats: bool, context: &mut Context) -> Result<Flow, KernelError> {
        let Operator::Aggregate(aggregate) = &mut self.stages[0].operator else {
            unreachable!("checked by the caller")
        };
        if aggregate.is_stateless() && !repeats {
            return aggregate.apply_unique(&mut self.tree, sink, context.interner, context.pool);
        }
        let mut batch = None;
        if aggregate.needs_input() {
            let mut words = sink.columns.clone();
            let columns =
                decode_head(&self.head, &self.head_types, &mut words, sink.len(), context.interner, context.pool);
            batch = Some(record_batch(&self.head_schema, columns, sink.len())?);
        }
        aggregate.apply(&mut self.tree, sink, batch.as_ref(), context.interner, context.pool)
    }

    /// The core's rows as Arrow columns.
    fn decode(&self, sink: &mut Sink, context: &Context) -> Flow {
        decode(&self.head, &self.head_types, sink, context)
    }

    /// Runs rows through one stage above an aggregate or a core.
    fn pass(&mut self, at: usize, flow: Flow, context: &mut Context) -> Result<Flow, KernelError> {
        let stage = &mut self.stages[at];
        match &mut stage.operator {
            Operator::Aggregate(_) => unreachable!("it reads the core's words"),
            Operator::AggregateRows(operator) => {
                let (aggregate, codec) = operator.as_mut();
                let sink = codec.emit(&flow.columns, &flow.weights, context.interner);
                let batch = record_batch(&stage.input, flow.columns, flow.weights.len())?;
                aggregate.apply(&mut self.tree, &sink, Some(&batch), context.interner, context.pool)
            }
            Operator::Distinct(distinct) => distinct.apply(&flow, context.interner),
            Operator::Map(_) | Operator::Filter(_) => by_row(stage, flow),
        }
    }

    /// Starts the reading of the full result.
    pub fn open(&self) -> Cursor {
        for (at, stage) in self.stages.iter().enumerate().rev() {
            let holds = match &stage.operator {
                Operator::Aggregate(a) => a.has_state(),
                Operator::Distinct(_) | Operator::AggregateRows(_) => true,
                Operator::Map(_) | Operator::Filter(_) => false,
            };
            if holds {
                return Cursor::Held { stage: at, next: 0 };
            }
        }
        if let Some(Operator::Aggregate(aggregate)) = self.stages.first().map(|s| &s.operator)
            && aggregate.is_global()
            && self.tree.is_empty()
        {
            return Cursor::EmptyGroup;
        }
        Cursor::Tree(Box::new(self.tree.results()))
    }

    /// Starts the reading of the results in which these head columns have these values (arrays of one value each).
    ///
    /// Of a view that holds groups the columns must be all of its keys; otherwise a set that the tree has an index for.
    pub fn lookup(
        &mut self,
        columns: &[usize],
        values: &[ArrayRef],
        interner: &mut Interner,
    ) -> Result<Cursor, KernelError> {
        let no_index = || KernelError::new("NO_INDEX", "the view has no index on these columns");
        let mut encoded = Vec::new();
        for (&column, value) in columns.iter().zip(values) {
            let data_type = self.head_types[column];
            let mut words = vec![0; words_of(data_type) + 1];
            let null = Some((words.len() - 1, 0));
            let place = Place { stride: words.len(), offset: 0, null };
            encode(value, data_type, &mut words, place, interner);
            let is_null = words.pop() == Some(1);
            encoded.push((words, is_null));
        }
        if let Some(Operator::Aggregate(aggregate)) = self.stages.first().map(|s| &s.operator)
            && aggregate.has_state()
        {
            let group = aggregate.find(columns, &encoded).ok_or_else(no_index)?;
            return Ok(group.map_or(Cursor::Done, Cursor::Group));
        }
        if self.has_state() {
            return Err(no_index());
        }
        let variables: Vec<usize> = columns.iter().map(|&c| self.core.head[c]).collect();
        let found = self.tree.lookup(&variables, &encoded).ok_or_else(no_index)?;
        Ok(Cursor::Lookup(Box::new(found)))
    }

    /// The next rows of the full result, at most `limit`; `None` at the end.
    pub fn read(
        &mut self,
        cursor: &mut Cursor,
        limit: usize,
        context: &mut Context,
    ) -> Result<Option<Flow>, KernelError> {
        loop {
            let (mut flow, mut at) = match cursor {
                Cursor::Done => return Ok(None),
                Cursor::EmptyGroup => {
                    *cursor = Cursor::Done;
                    let Operator::Aggregate(aggregate) = &self.stages[0].operator else {
                        unreachable!("only aggregates have one")
                    };
                    (aggregate.empty_row(context.interner, context.pool)?, 1)
                }
                Cursor::Held { stage, next } => {
                    let at = *stage;
                    let (flow, rest) = match &self.stages[at].operator {
                        Operator::Aggregate(a) => a.held_rows(*next, limit, context.interner, context.pool)?,
                        Operator::AggregateRows(a) => a.0.held_rows(*next, limit, context.interner, context.pool)?,
                        Operator::Distinct(d) => d.held_rows(*next, limit, context.interner, context.pool),
                        Operator::Map(_) | Operator::Filter(_) => unreachable!("they hold no rows"),
                    };
                    match rest {
                        Some(row) => *next = row,
                        None => *cursor = Cursor::Done,
                    }
                    (flow, at + 1)
                }
                Cursor::Group(group) => {
                    let group = *group;
                    *cursor = Cursor::Done;
                    let Operator::Aggregate(aggregate) = &self.stages[0].operator else {
                        unreachable!("only aggregates have groups")
                    };
                    (aggregate.held_rows(group, 1, context.interner, context.pool)?.0, 1)
                }
                Cursor::Tree(_) | Cursor::Lookup(_) => {
                    let (overflows, sink) = match cursor {
                        Cursor::Tree(reading) => {
                            (self.tree.next_results(&mut reading.0, &mut reading.1, limit), &mut reading.1)
                        }
                        Cursor::Lookup(reading) => {
                            (self.tree.next_lookup(&mut reading.0, &mut reading.1, limit), &mut reading.1)
                        }
                        _ => unreachable!("matched above"),
                    };
                    if overflows {
                        return Err(overflow());
                    }
                    if sink.is_empty() {
                        *cursor = Cursor::Done;
                        return Ok(None);
                    }
                    if let Some(Operator::Aggregate(aggregate)) = self.stages.first().map(|s| &s.operator) {
                        (aggregate.rows_of_results(sink, context.interner, context.pool)?, 1)
                    } else {
                        (self.decode(sink, context), 0)
                    }
                }
            };
            while at < self.stages.len() {
                flow = self.pass(at, flow, context)?;
                at += 1;
            }
            if !flow.weights.is_empty() {
                return Ok(Some(flow));
            }
        }
    }

    /// The number of rows of the result, without enumerating it where the stages allow; `None` if it must be read.
    pub fn count(&self) -> Option<Option<i128>> {
        let mut count = Some(self.tree.count(false));
        for stage in &self.stages {
            count = match &stage.operator {
                Operator::Aggregate(a) if a.is_global() => Some(Some(1)),
                Operator::Aggregate(a) if a.has_state() => Some(Some(a.size().0 as i128)),
                Operator::Aggregate(_) => Some(self.tree.count(true)),
                Operator::AggregateRows(a) => Some(Some(a.0.size().0 as i128)),
                Operator::Distinct(d) => Some(Some(d.size().0 as i128)),
                Operator::Map(_) => count,
                Operator::Filter(_) => None,
            };
        }
        count
    }

    /// The core's plan.
    pub fn core(&self) -> &Core {
        &self.core
    }
}

impl View {
    /// Gives up the texts that only this view keeps alive; the view is dropped afterwards.
    pub fn release_texts(&self, interner: &mut Interner) {
        for (atom, scan) in self.scans.iter().enumerate() {
            for (words, weight) in self.tree.atom_rows(atom).filter(|_| !scan.computed_texts().is_empty()) {
                scan.computed_texts().iter().for_each(|&text| interner.refer(words[text] as u32, -weight));
            }
        }
        for stage in &self.stages {
            match &stage.operator {
                Operator::Distinct(distinct) => distinct.release_texts(interner),
                Operator::AggregateRows(operator) => operator.0.release_texts(interner),
                Operator::Aggregate(_) | Operator::Map(_) | Operator::Filter(_) => {}
            }
        }
    }
}

fn refer_texts(scan: &AtomScan, change: &AtomChanges, interner: &mut Interner) {
    if scan.computed_texts().is_empty() || change.weights.is_empty() {
        return;
    }
    let width = change.words.len() / change.weights.len();
    for (i, &weight) in change.weights.iter().enumerate() {
        for &text in scan.computed_texts() {
            interner.refer(change.words[i * width + text] as u32, weight);
        }
    }
}

/// The rows of a sink as Arrow columns.
fn decode(head: &HeadLayout, types: &[DataType], sink: &mut Sink, context: &Context) -> Flow {
    let columns =
        decode_head(head, types, &mut sink.columns, sink.multiplicities.len(), context.interner, context.pool);
    Flow { columns, weights: std::mem::take(&mut sink.multiplicities), may_repeat: false }
}

/// Runs rows through a stage that looks at one at a time.
fn by_row(stage: &StageState, flow: Flow) -> Result<Flow, KernelError> {
    match &stage.operator {
        Operator::Map(expressions) => map(expressions, &stage.input, flow),
        Operator::Filter(predicate) => filter(predicate, &stage.input, flow),
        _ => unreachable!("the others hold rows"),
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

fn map(expressions: &[Expr], input: &SchemaRef, mut flow: Flow) -> Result<Flow, KernelError> {
    let batch = record_batch(input, std::mem::take(&mut flow.columns), flow.weights.len())?;
    let columns: Result<Vec<ArrayRef>, KernelError> = expressions
        .iter()
        .map(|e| e.as_column().map_or_else(|| e.evaluate(&batch).map_err(Into::into), |i| Ok(batch.column(i).clone())))
        .collect();
    Ok(Flow { columns: columns?, ..flow })
}

fn filter(predicate: &Expr, input: &SchemaRef, flow: Flow) -> Result<Flow, KernelError> {
    let batch = record_batch(input, flow.columns, flow.weights.len())?;
    let kept: BooleanArray = predicate.evaluate_predicate(&batch)?;
    let batch = arrow_select::filter::filter_record_batch(&batch, &kept).map_err(|e| internal(&e))?;
    let weights =
        flow.weights.iter().zip(kept.iter()).filter(|(_, keep)| *keep == Some(true)).map(|(&w, _)| w).collect();
    Ok(Flow { columns: batch.columns().to_vec(), weights, may_repeat: flow.may_repeat })
}

fn overflow() -> KernelError {
    KernelError::new("ARITHMETIC_OVERFLOW", "a multiplicity or sum leaves its range")
}

fn schema_of(types: &[DataType]) -> SchemaRef {
    let fields = types.iter().enumerate().map(|(i, t)| Field::new(format!("c{i}"), t.arrow(), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// A record batch, also where there are no columns.
pub fn record_batch(schema: &SchemaRef, columns: Vec<ArrayRef>, count: usize) -> Result<RecordBatch, KernelError> {
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options).map_err(|e| internal(&e))
}
