//! Reading a view's full result, chunk by chunk, and building a view from loaded tables.
//!
//! A result is read from the last stages that hold its rows, cores or operators, through the operators above, which treat every row by
//! itself. Building goes the same way, stage by stage: what is below a stage that holds rows is read in chunks and taken in, so a build needs
//! no more memory than the view itself, however large its joins.

use crate::core_stage::{AtomSource, BUILT_ROWS, CoreCursor, CoreStage};
use crate::error::KernelError;
use crate::flow::Flow;
use crate::graph::{Scanned, Stage, View};
use crate::interner::Interner;
use crate::operator::{Context, Position};
use crate::tree::AtomChanges;
use arrow_array::ArrayRef;

/// Where the reading of what a stage gives stands.
#[derive(Debug)]
pub enum Cursor {
    /// In the results of a core.
    Core(usize, CoreCursor),
    /// In the rows held by an operator.
    Held {
        /// The operator.
        operator: usize,
        /// Its next row.
        next: Position,
    },
    /// In the inputs of an operator that holds none.
    Below {
        /// The operator.
        operator: usize,
        /// Which of its inputs is being read.
        input: usize,
        /// Where.
        at: Box<Cursor>,
    },
    /// At the end.
    Done,
}

impl View {
    /// Starts the reading of the full result.
    pub fn open(&self) -> Cursor {
        self.open_stage(self.nodes.len() - 1)
    }

    fn open_stage(&self, stage: usize) -> Cursor {
        match &self.nodes[stage].stage {
            Stage::Core(core) => Cursor::Core(stage, core.open()),
            Stage::Operator(operator) if operator.is_stateful() => {
                Cursor::Held { operator: stage, next: Position::Start }
            }
            Stage::Operator(_) => {
                let at = Box::new(self.open_stage(self.nodes[stage].inputs[0]));
                Cursor::Below { operator: stage, input: 0, at }
            }
        }
    }

    /// Starts the reading of the results in which these columns of a core's head have these values (arrays of one value each). The core is
    /// the one that the result is read from, through operators that hold no rows and have one input each.
    pub fn lookup(
        &mut self,
        columns: &[usize],
        values: &[ArrayRef],
        interner: &mut Interner,
    ) -> Result<Cursor, KernelError> {
        let no_index = || KernelError::new("NO_INDEX", "the view has no index on these columns");
        let mut path = Vec::new();
        let mut stage = self.nodes.len() - 1;
        let mut cursor = loop {
            let node = &mut self.nodes[stage];
            match &mut node.stage {
                Stage::Core(core) => {
                    let found = core.lookup(columns, values, interner).ok_or_else(no_index)?;
                    break Cursor::Core(stage, found);
                }
                Stage::Operator(operator) if operator.is_stateful() || node.inputs.len() > 1 => {
                    return Err(no_index());
                }
                Stage::Operator(_) => {
                    path.push(stage);
                    stage = node.inputs[0];
                }
            }
        };
        for operator in path.into_iter().rev() {
            cursor = Cursor::Below { operator, input: 0, at: Box::new(cursor) };
        }
        Ok(cursor)
    }

    /// The next rows of what is read, about `limit`, but at least one; `None` at the end.
    pub fn read(
        &mut self,
        cursor: &mut Cursor,
        limit: usize,
        context: &mut Context,
    ) -> Result<Option<Flow>, KernelError> {
        while let Some(flow) = self.step(cursor, limit, context)? {
            if !flow.is_empty() {
                return Ok(Some(flow));
            }
        }
        Ok(None)
    }

    /// As `read`, but there may be no rows before the end.
    fn step(&mut self, cursor: &mut Cursor, limit: usize, context: &mut Context) -> Result<Option<Flow>, KernelError> {
        match cursor {
            Cursor::Done => Ok(None),
            Cursor::Core(stage, at) => {
                let Stage::Core(core) = &mut self.nodes[*stage].stage else { unreachable!("opened on a core") };
                core.read(at, limit, context)
            }
            Cursor::Held { operator, next } => {
                let at = *operator;
                let Stage::Operator(held) = &mut self.nodes[at].stage else { unreachable!("opened on an operator") };
                let held = held.held().expect("opened where rows are held");
                let (flow, rest) = held.read(next, limit, context)?;
                *cursor = rest.map_or(Cursor::Done, |next| Cursor::Held { operator: at, next });
                Ok(Some(flow))
            }
            Cursor::Below { operator, input, at } => {
                let Some(flow) = self.step(at, limit, context)? else {
                    *input += 1;
                    let Some(&next) = self.nodes[*operator].inputs.get(*input) else {
                        *cursor = Cursor::Done;
                        return Ok(None);
                    };
                    **at = self.open_stage(next);
                    return Ok(Some(Flow::default()));
                };
                let Stage::Operator(above) = &mut self.nodes[*operator].stage else { unreachable!("an operator") };
                above.prepare(flow, context).map(Some)
            }
        }
    }

    /// Builds the view from the tables' rows and from those of the views it reads.
    pub fn build(
        &mut self,
        scanned: Scanned,
        views: &mut [Option<View>],
        context: &mut Context,
    ) -> Result<(), KernelError> {
        for (stage, mut changes) in scanned.into_iter().enumerate() {
            if let Stage::Core(_) = &self.nodes[stage].stage {
                for (atom, change) in changes.iter_mut().enumerate() {
                    self.gather((stage, atom), change, views, context)?;
                }
                let Stage::Core(core) = &mut self.nodes[stage].stage else { unreachable!("a core, as above") };
                core.build(changes, context)?;
            } else if self.nodes[stage].is_stateful() {
                for input in self.nodes[stage].inputs.clone() {
                    let mut cursor = self.open_stage(input);
                    while let Some(flow) = self.read(&mut cursor, BUILT_ROWS, context)? {
                        let Stage::Operator(held) = &mut self.nodes[stage].stage else { unreachable!("an operator") };
                        held.held().expect("it is stateful").absorb(flow, context)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads the result once where something can refuse it.
    pub fn check(&mut self, context: &mut Context) -> Result<(), KernelError> {
        let checked = self.can_refuse() || self.cores().any(CoreStage::may_overflow_counts);
        let mut cursor = if checked { self.open() } else { Cursor::Done };
        while self.read(&mut cursor, BUILT_ROWS, context)?.is_some() {}
        Ok(())
    }

    /// Adds the rows of an atom that reads a stage or a view, as changes.
    fn gather(
        &mut self,
        (stage, atom): (usize, usize),
        into: &mut AtomChanges,
        views: &mut [Option<View>],
        context: &mut Context,
    ) -> Result<(), KernelError> {
        let Stage::Core(core) = &self.nodes[stage].stage else { unreachable!("asked for cores") };
        let (scan, source, mut cursor) = match &core.sources()[atom] {
            AtomSource::Table(_) | AtomSource::Passing(..) => return Ok(()),
            AtomSource::Stage(source, scan) => {
                let (scan, cursor) = (scan.clone(), self.open_stage(*source));
                (scan, &mut *self, cursor)
            }
            AtomSource::View(view, scan) => {
                let source = views[*view].as_mut().expect("views are dropped after those that read them");
                let cursor = source.open();
                (scan.clone(), source, cursor)
            }
        };
        while let Some(flow) = source.read(&mut cursor, BUILT_ROWS, context)? {
            scan.scan(&flow, into, context.interner)?;
        }
        Ok(())
    }

    /// The number of rows of the result, without enumerating it where the operators allow; `None` if it must be read.
    #[allow(clippy::option_option)]
    pub fn count(&self) -> Option<Option<i128>> {
        self.count_stage(self.nodes.len() - 1)
    }

    #[allow(clippy::option_option)]
    fn count_stage(&self, stage: usize) -> Option<Option<i128>> {
        match &self.nodes[stage].stage {
            Stage::Core(core) => Some(core.count()),
            Stage::Operator(operator) => {
                let mut sum = Some(Some(0i128));
                for &input in &self.nodes[stage].inputs {
                    sum = match (sum, self.count_stage(input)) {
                        (Some(one), Some(two)) => Some(one.zip(two).and_then(|(one, two)| one.checked_add(two))),
                        _ => None,
                    };
                }
                operator.count(sum)
            }
        }
    }
}
