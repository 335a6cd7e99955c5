//! A maintained view: a graph of stages, cores and operators, and the life of a batch in it.
//!
//! Stages are in topological order and a batch passes them once. A core takes the changes of its atoms: those of tables, scanned before
//! anything changed; those of other stages and of other views as their net deltas. An operator takes the deltas of its inputs, one after
//! another (several inputs are a UNION ALL). A stage used twice is computed once.
//!
//! A batch is prepared in all stages of all views before it is committed in any. If one refuses, trees are undone and operators forget, in
//! reverse order: the state is as before. Deltas are net before anything sees them that can fail, so that nothing is evaluated that neither
//! the state before nor the state after contains.

use crate::aggregate::AggregateRows;
use crate::consolidate::RowCodec;
use crate::core_stage::{AtomSource, CoreStage, Wanted};
use crate::counters::Counters;
use crate::distinct::Distinct;
use crate::error::KernelError;
use crate::flow::{Chunk, Flow, schema_of};
use crate::interner::Interner;
use crate::operator::{Context, Filter, Map, Operator, Union};
use crate::plan::{self, Plan, Source};
use crate::pool::WordPool;
use crate::repeat::Repeat;
use crate::scan::{AtomScan, RowScan};
use crate::table::{BaseTable, Staged};
use crate::top_k::TopK;
use crate::tree::AtomChanges;
use crate::values::Values;
use arrow_schema::{Field, Schema, SchemaRef};
use everview_expr::DataType;
use std::sync::Arc;

/// Takes pieces of a view's delta: the schema of the result, and rows.
pub type Pieces<'a> = &'a mut dyn FnMut(&SchemaRef, Chunk);

/// The changes of the atoms that read tables, by stage and atom.
pub type Scanned = Vec<Vec<AtomChanges>>;

/// The columns of a source of rows: names and types.
pub type Columns = Vec<(String, DataType)>;

/// What the plan of a view may refer to.
pub struct Surroundings<'a> {
    /// The tables of the session.
    pub tables: &'a [Option<BaseTable>],
    /// The place of a table by name.
    pub table: &'a dyn Fn(&str) -> Option<usize>,
    /// The place of a view by name, and its columns.
    pub view: &'a dyn Fn(&str) -> Option<(usize, Columns)>,
}

#[derive(Debug)]
pub(crate) enum Stage {
    Core(Box<CoreStage>),
    Operator(Box<dyn Operator>),
}

/// A stage in its place.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) stage: Stage,
    /// The stages it reads; those of a core's atoms, each once.
    pub(crate) inputs: Vec<usize>,
    /// Someone above keeps rows or may refuse one, so the stage's delta is computed whether the view's is wanted or not.
    heard: bool,
    /// Someone reads the delta who needs every row once; where nobody does, equal rows are added up later anyway.
    nets: bool,
    codec: RowCodec,
}

impl Node {
    pub(crate) fn is_stateful(&self) -> bool {
        match &self.stage {
            Stage::Core(core) => core.is_stateful(),
            Stage::Operator(operator) => operator.is_stateful(),
        }
    }

    fn can_refuse(&self) -> bool {
        match &self.stage {
            Stage::Core(core) => core.can_refuse(),
            Stage::Operator(operator) => operator.can_refuse(),
        }
    }
}

/// A maintained view.
#[derive(Debug)]
pub struct View {
    name: String,
    pub(crate) nodes: Vec<Node>,
    output: SchemaRef,
    columns: Columns,
}

impl View {
    /// Compiles a plan.
    pub fn new(plan: Plan, around: &Surroundings) -> Result<Self, KernelError> {
        let invalid = |message: &str| KernelError::new("INVALID_PLAN", message.to_owned());
        if plan.version != plan::VERSION {
            return Err(invalid("the plan is of another version than this kernel"));
        }
        let mut compiler = Compiler { nodes: Vec::new(), columns: Vec::new(), places: Vec::new() };
        let stages = plan.stages;
        for at in 0..stages.len() {
            compiler.add(at, &stages, around)?;
        }
        let Compiler { mut nodes, mut columns, .. } = compiler;
        let columns = columns.pop().ok_or_else(|| invalid("a plan has at least one stage"))?;
        if nodes.iter().enumerate().any(|(at, node)| node.inputs.iter().any(|&input| input >= at)) {
            return Err(invalid("stages read earlier ones"));
        }
        judge(&mut nodes);
        let fields = plan.output.iter().map(|c| Field::new(c.name.clone(), c.data_type.arrow(), c.nullable));
        Ok(Self { name: plan.view, nodes, output: Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns })
    }

    /// The view's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The schema of the result.
    pub fn schema(&self) -> &SchemaRef {
        &self.output
    }

    /// The columns of the result, as other views read them.
    pub fn columns(&self) -> Columns {
        let named = self.output.fields().iter().zip(&self.columns);
        named.map(|(field, (_, data_type))| (field.name().clone(), *data_type)).collect()
    }

    pub(crate) fn cores(&self) -> impl Iterator<Item = &CoreStage> {
        self.nodes.iter().filter_map(|node| if let Stage::Core(core) = &node.stage { Some(&**core) } else { None })
    }

    fn sources(&self) -> impl Iterator<Item = &AtomSource> {
        self.cores().flat_map(CoreStage::sources)
    }

    /// The work done by the trees, and by the operators that count it.
    pub fn counters(&self) -> Counters {
        let work = |node: &Node| match &node.stage {
            Stage::Core(core) => *core.tree().counters(),
            Stage::Operator(operator) => operator.counters(),
        };
        self.nodes.iter().map(work).fold(Counters::default(), |sum, one| sum + one)
    }

    /// Rows and bytes of the nodes of each tree, tops last, in the order of the cores.
    pub fn node_sizes(&self) -> Vec<Vec<(usize, usize)>> {
        self.cores().map(|core| core.tree().node_sizes()).collect()
    }

    /// Rows and entries held in the trees: zero where there is nothing.
    pub fn held(&self) -> usize {
        self.cores().map(|core| core.tree().held()).sum()
    }

    /// Rows and bytes held by each operator.
    pub fn operator_sizes(&self) -> Vec<(&'static str, usize, usize)> {
        let size = |node: &Node| match &node.stage {
            Stage::Core(core) => core.groups_size().map(|(rows, bytes)| ("aggregate", rows, bytes)),
            Stage::Operator(operator) => Some((operator.kind(), operator.size().0, operator.size().1)),
        };
        self.nodes.iter().filter_map(size).collect()
    }

    /// Whether a table feeds this view itself.
    pub fn reads(&self, table: usize) -> bool {
        self.sources().any(|source| match source {
            AtomSource::Table(scan) => scan.table == table,
            AtomSource::Passing(read, _) => *read == table,
            AtomSource::Stage(..) | AtomSource::View(..) => false,
        })
    }

    /// Whether another view feeds this view.
    pub fn reads_view(&self, view: usize) -> bool {
        self.sources().any(|source| matches!(source, AtomSource::View(other, _) if *other == view))
    }

    /// Whether something in the view can refuse a row: every batch is then run through the stages, so that none is accepted that could not be
    /// read.
    pub(crate) fn can_refuse(&self) -> bool {
        self.nodes.iter().any(Node::can_refuse)
    }

    /// The operators above the first stage, if that is a core and the rest a chain in which each row becomes rows of the view on its own, and
    /// none is refused.
    pub(crate) fn may_leave_early(&self) -> bool {
        let Some((first, rest)) = self.nodes.split_first() else { return false };
        let Stage::Core(core) = &first.stage else { return false };
        let passes = |(at, node): (usize, &Node)| match &node.stage {
            Stage::Operator(operator) => {
                node.inputs == [at] && !operator.is_stateful() && !operator.can_refuse() && !operator.merges_rows()
            }
            Stage::Core(_) => false,
        };
        core.gives_rows_as_they_come() && rest.iter().enumerate().all(passes)
    }

    // ---- a batch ------------------------------------------------------------------------------------------------

    /// The changes of the atoms that read tables.
    pub fn scan(
        &self,
        tables: &[Option<BaseTable>],
        staged: &[Option<Staged>],
        interner: &mut Interner,
        pool: &WordPool,
    ) -> Result<Scanned, KernelError> {
        let mut atom = |source: &AtomSource| match source {
            AtomSource::Table(scan) => match (&tables[scan.table], &staged[scan.table]) {
                (Some(base), Some(batch)) => scan.scan(base, batch, interner, pool),
                _ => Ok(AtomChanges::default()),
            },
            AtomSource::Passing(table, scan) => match (&tables[*table], &staged[*table]) {
                (Some(base), Some(Staged { passing: Some(passing), .. })) => {
                    scan.scan_passing(base.name(), passing, interner)
                }
                _ => Ok(AtomChanges::default()),
            },
            _ => Ok(AtomChanges::default()),
        };
        let mut node = |node: &Node| match &node.stage {
            Stage::Core(core) => core.sources().iter().map(&mut atom).collect(),
            Stage::Operator(_) => Ok(Vec::new()),
        };
        self.nodes.iter().map(&mut node).collect()
    }

    /// Applies a batch to the trees and prepares the operators. `views` has the deltas of the views that this one reads. With `deltas`,
    /// returns the net change of the result; with `pieces` too, what did not leave there. `commit` or `undo` must follow, `undo` after an
    /// error; nothing has left then.
    pub fn prepare(
        &mut self,
        mut scanned: Scanned,
        views: &[(usize, Flow)],
        deltas: bool,
        pieces: Option<Pieces>,
        context: &mut Context,
    ) -> Result<Flow, KernelError> {
        if let Some(pieces) = pieces.filter(|_| self.may_leave_early()) {
            let mut changes = scanned.swap_remove(0);
            if let Stage::Core(core) = &self.nodes[0].stage {
                take_rows(core, &mut changes, &[], views, context)?;
            }
            return self.prepare_in_pieces(changes, pieces, context);
        }
        let last = self.nodes.len() - 1;
        let mut flows: Vec<Flow> = Vec::with_capacity(self.nodes.len());
        for (at, node) in self.nodes.iter_mut().enumerate() {
            let mut flow = match &mut node.stage {
                Stage::Core(core) => {
                    let mut changes = std::mem::take(&mut scanned[at]);
                    take_rows(core, &mut changes, &flows, views, context)?;
                    if changes.iter().all(|change| change.weights.is_empty()) {
                        Flow::default()
                    } else {
                        let wanted = Wanted { delta: deltas || node.heard, net: node.nets };
                        core.prepare(changes, wanted, None, context)?
                    }
                }
                Stage::Operator(operator) => {
                    let input = joined(&node.inputs, &flows);
                    if input.is_empty() || !(deltas || node.heard || operator.is_stateful() || operator.can_refuse()) {
                        Flow::default()
                    } else {
                        operator.prepare(input, context)?
                    }
                }
            };
            if flow.may_repeat && (node.nets || at == last) {
                flow = node.codec.netted(flow, context.interner)?;
            }
            flows.push(flow);
        }
        Ok(flows.pop().expect("there is a last stage"))
    }

    /// As `prepare`, for a view all of whose rows may leave early.
    fn prepare_in_pieces(
        &mut self,
        changes: Vec<AtomChanges>,
        pieces: Pieces,
        context: &mut Context,
    ) -> Result<Flow, KernelError> {
        let (first, rest) = self.nodes.split_first_mut().expect("it has a core");
        let output = &self.output;
        let mut above = |flow: Flow, context: &mut Context| {
            rest.iter_mut().fold(flow, |flow, node| {
                let Stage::Operator(operator) = &mut node.stage else { unreachable!("a chain of operators") };
                operator.prepare(flow, context).expect("nothing here refuses a row")
            })
        };
        let Stage::Core(core) = &mut first.stage else { unreachable!("the first stage is a core") };
        let mut hand_over = |flow: Flow, context: &mut Context| {
            above(flow, context).chunks.into_iter().for_each(|chunk| pieces(output, chunk));
        };
        let held = core.prepare(changes, Wanted { delta: true, net: true }, Some(&mut hand_over), context)?;
        Ok(above(held, context))
    }

    /// Makes what was prepared last.
    pub fn commit(&mut self, interner: &mut Interner) {
        for node in &mut self.nodes {
            match &mut node.stage {
                Stage::Core(core) => core.commit(interner),
                Stage::Operator(operator) => operator.commit(interner),
            }
        }
    }

    /// Takes back the batch that `prepare` was last given, whatever came of it.
    pub fn undo(&mut self, interner: &mut Interner) {
        for node in self.nodes.iter_mut().rev() {
            match &mut node.stage {
                Stage::Core(core) => core.undo(interner),
                Stage::Operator(operator) => operator.abort(),
            }
        }
    }

    /// Gives memory back if there is much to give.
    pub fn give_back(&mut self) {
        for node in &mut self.nodes {
            match &mut node.stage {
                Stage::Core(core) => core.give_back(),
                Stage::Operator(operator) => operator.give_back(),
            }
        }
    }

    /// Gives up the texts that only this view keeps alive; the view is dropped afterwards.
    pub fn release_texts(&self, interner: &mut Interner) {
        for node in &self.nodes {
            match &node.stage {
                Stage::Core(core) => core.release_texts(interner),
                Stage::Operator(operator) => operator.release_texts(interner),
            }
        }
    }
}

/// Puts the changes of the atoms of a core that read stages and views beside those that read tables.
fn take_rows(
    core: &CoreStage,
    changes: &mut [AtomChanges],
    flows: &[Flow],
    views: &[(usize, Flow)],
    context: &mut Context,
) -> Result<(), KernelError> {
    for (source, change) in core.sources().iter().zip(changes) {
        let (scan, flow) = match source {
            AtomSource::Table(_) | AtomSource::Passing(..) => continue,
            AtomSource::Stage(stage, scan) => (scan, Some(&flows[*stage])),
            AtomSource::View(view, scan) => (scan, views.iter().find(|(at, _)| at == view).map(|(_, flow)| flow)),
        };
        if let Some(flow) = flow {
            scan.scan(flow, change, context.interner)?;
        }
    }
    Ok(())
}

/// The rows of several stages, one after another.
fn joined(inputs: &[usize], flows: &[Flow]) -> Flow {
    match inputs {
        [input] => flows[*input].clone(),
        inputs => {
            let chunks = inputs.iter().flat_map(|&input| flows[input].chunks.iter().cloned());
            Flow { chunks: chunks.collect(), may_repeat: true }
        }
    }
}

/// Finds out what each stage must do for those above it.
fn judge(nodes: &mut [Node]) {
    let last = nodes.len() - 1;
    for at in (0..nodes.len()).rev() {
        let readers = nodes.iter().filter(|node| node.inputs.contains(&at));
        let (mut heard, mut nets) = (false, at == last);
        for reader in readers {
            heard |= reader.heard || reader.is_stateful() || reader.can_refuse();
            match &reader.stage {
                Stage::Core(_) => (heard, nets) = (true, true),
                Stage::Operator(operator) => {
                    nets |= operator.can_refuse() || !operator.adds_up() && !operator.merges_rows() && reader.nets;
                }
            }
        }
        (nodes[at].heard, nodes[at].nets) = (heard, nets);
    }
}

/// Makes nodes of the stages of a plan.
struct Compiler {
    nodes: Vec<Node>,
    /// The columns of each node.
    columns: Vec<Columns>,
    /// The node of each stage of the plan: an aggregate that is the only reader of a core is one with it.
    places: Vec<usize>,
}

impl Compiler {
    fn add(&mut self, at: usize, stages: &[plan::Stage], around: &Surroundings) -> Result<(), KernelError> {
        let invalid = |message: &str| KernelError::new("INVALID_PLAN", message.to_owned());
        if stages[at].inputs().iter().any(|&input| input >= at) {
            return Err(invalid("a stage reads a later one"));
        }
        let inputs: Vec<usize> = stages[at].inputs().iter().map(|&input| self.places[input]).collect();
        let input = inputs.first().map(|&node| self.columns[node].clone()).unwrap_or_default();
        let types: Vec<DataType> = input.iter().map(|c| c.1).collect();
        let schema = schema_of(input.clone());
        let (stage, columns): (Stage, Columns) = match &stages[at] {
            plan::Stage::Core(core) => {
                let fused = only_aggregate(at, stages);
                let sources =
                    core.atoms.iter().map(|atom| self.source(core, atom, around)).collect::<Result<_, _>>()?;
                let columns = fused.map_or_else(|| core.head_columns(), |a| a.columns(&core.head_columns()));
                (Stage::Core(Box::new(CoreStage::new(core.clone(), sources, fused))), columns)
            }
            plan::Stage::Aggregate(aggregate) => {
                if let plan::Stage::Core(_) = &stages[aggregate.input]
                    && only_aggregate(aggregate.input, stages).is_some()
                {
                    self.places.push(self.places[aggregate.input]);
                    return Ok(());
                }
                let columns = aggregate.columns(&input);
                (Stage::Operator(Box::new(AggregateRows::new(aggregate, &types, schema))), columns)
            }
            plan::Stage::Map { columns, .. } => {
                let computed = columns.iter().map(|c| c.expression.clone()).collect();
                let named = columns.iter().map(|c| (c.name.clone(), c.expression.data_type())).collect();
                (Stage::Operator(Box::new(Map::new(computed, schema))), named)
            }
            plan::Stage::Filter { predicate, .. } => {
                (Stage::Operator(Box::new(Filter::new(predicate.clone(), schema))), input)
            }
            plan::Stage::Distinct { .. } => (Stage::Operator(Box::new(Distinct::new(&types))), input),
            plan::Stage::TopK(top_k) => {
                let by = top_k.order.iter().map(|by| by.column).chain(top_k.partition.iter().copied());
                if by.into_iter().any(|column| column >= types.len()) {
                    return Err(invalid("a top-k orders by columns of its input"));
                }
                let number = top_k.rank.iter().map(|name| (name.clone(), DataType::Int));
                let columns = input.into_iter().chain(number).collect();
                (Stage::Operator(Box::new(TopK::new(top_k, &types))), columns)
            }
            plan::Stage::Repeat { count, .. } => {
                if count.data_type() != DataType::BigInt {
                    return Err(invalid("how often a row is there is a BIGINT"));
                }
                (Stage::Operator(Box::new(Repeat::new(count.clone(), schema))), input)
            }
            plan::Stage::Values(values) => {
                let columns = values.columns.iter().map(|column| (column.name.clone(), column.data_type)).collect();
                (Stage::Operator(Box::new(Values::new(values)?)), columns)
            }
            plan::Stage::Union { .. } => {
                let same = |&node: &usize| self.columns[node].iter().map(|c| c.1).eq(types.iter().copied());
                if inputs.is_empty() || !inputs.iter().all(same) {
                    return Err(invalid("the inputs of a union have the same types"));
                }
                (Stage::Operator(Box::new(Union)), input)
            }
        };
        let codec = RowCodec::new(&columns.iter().map(|c| c.1).collect::<Vec<_>>());
        self.places.push(self.nodes.len());
        self.nodes.push(Node { stage, inputs, heard: false, nets: false, codec });
        self.columns.push(columns);
        Ok(())
    }

    fn source(&self, core: &plan::Core, atom: &plan::Atom, around: &Surroundings) -> Result<AtomSource, KernelError> {
        let unknown = |what: &str| KernelError::new("INVALID_PLAN", format!("an atom reads an unknown {what}"));
        match &atom.source {
            Source::Table(name) => {
                let table = (around.table)(name).ok_or_else(|| unknown("table"))?;
                let base = around.tables[table].as_ref().expect("found tables exist");
                if !base.keeps_rows() {
                    let columns: Columns = base.columns().iter().map(|c| (c.name.clone(), c.data_type)).collect();
                    return Ok(AtomSource::Passing(table, RowScan::new(core, atom, &columns)));
                }
                Ok(AtomSource::Table(AtomScan::new(core, atom, table, base)))
            }
            Source::Stage(stage) => {
                let node = self.places[*stage];
                Ok(AtomSource::Stage(node, RowScan::new(core, atom, &self.columns[node])))
            }
            Source::View(name) => {
                let (view, columns) = (around.view)(name).ok_or_else(|| unknown("view"))?;
                Ok(AtomSource::View(view, RowScan::new(core, atom, &columns)))
            }
        }
    }
}

/// The aggregate above a core, if nothing else reads the core: it then reads the core's words.
fn only_aggregate(core: usize, stages: &[plan::Stage]) -> Option<&plan::Aggregate> {
    let mut readers = stages.iter().filter(|stage| stage.inputs().contains(&core));
    match (readers.next(), readers.next()) {
        (Some(plan::Stage::Aggregate(aggregate)), None) => Some(aggregate),
        _ => None,
    }
}
