//! Reading a view's full result, chunk by chunk, and building a view from loaded tables.
//!
//! A result is read from the last operator that holds its rows, or else from the tree, through the operators above, which treat every row
//! by itself. Building goes the same way once per operator that holds rows: what is below it is read in chunks and taken in, so a build
//! needs no more memory than the view itself, however large the join.

use crate::codec::{Place, encode, words_of};
use crate::consolidate::out_of_range;
use crate::enumerate::{LookupWalk, Sink, Walk};
use crate::error::KernelError;
use crate::flow::Flow;
use crate::interner::Interner;
use crate::operator::Context;
use crate::tree::AtomChanges;
use crate::view::View;
use arrow_array::ArrayRef;

/// Rows read at a time when a view is built or checked.
const BUILT_ROWS: usize = 1 << 16;

/// Where the reading of a full result stands.
#[derive(Debug)]
pub enum Cursor {
    /// In the tree.
    Tree(Box<(Walk, Sink)>),
    /// In the tree, through given rows.
    Lookup(Box<(LookupWalk, Sink)>),
    /// Before one group of the core's aggregate.
    Group(u32),
    /// In the groups held by the core's aggregate.
    Groups {
        /// The next group.
        next: u32,
    },
    /// In the rows held by an operator.
    Held {
        /// The operator.
        operator: usize,
        /// Its next row.
        next: u32,
    },
    /// Before the one row of a global aggregate over nothing.
    EmptyGroup,
    /// At the end.
    Done,
}

impl View {
    /// Starts the reading of the full result.
    pub fn open(&self) -> Cursor {
        self.open_below(self.operators.len())
    }

    /// Starts the reading of what the first `upto` operators give.
    fn open_below(&self, upto: usize) -> Cursor {
        if let Some(operator) = (0..upto).rev().find(|&at| self.operators[at].is_stateful()) {
            return Cursor::Held { operator, next: 0 };
        }
        match &self.groups {
            Some(groups) if groups.is_stateful() => Cursor::Groups { next: 0 },
            Some(groups) if groups.is_global() && self.tree.is_empty() => Cursor::EmptyGroup,
            _ => Cursor::Tree(Box::new(self.tree.results())),
        }
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
            let data_type = self.results.types[column];
            let mut words = vec![0; words_of(data_type) + 1];
            let null = Some((words.len() - 1, 0));
            let place = Place { stride: words.len(), offset: 0, null };
            encode(value, data_type, &mut words, place, interner);
            let is_null = words.pop() == Some(1);
            encoded.push((words, is_null));
        }
        if let Some(groups) = self.groups.as_ref().filter(|groups| groups.is_stateful()) {
            let group = groups.find(columns, &encoded).ok_or_else(no_index)?;
            return Ok(group.map_or(Cursor::Done, Cursor::Group));
        }
        if self.is_stateful() {
            return Err(no_index());
        }
        let variables: Vec<usize> = columns.iter().map(|&c| self.core.head[c]).collect();
        let found = self.tree.lookup(&variables, &encoded).ok_or_else(no_index)?;
        Ok(Cursor::Lookup(Box::new(found)))
    }

    /// The next rows of the full result, about `limit`; `None` at the end.
    pub fn read(
        &mut self,
        cursor: &mut Cursor,
        limit: usize,
        context: &mut Context,
    ) -> Result<Option<Flow>, KernelError> {
        self.read_below(self.operators.len(), cursor, limit, context)
    }

    /// The next rows of what the first `upto` operators give.
    fn read_below(
        &mut self,
        upto: usize,
        cursor: &mut Cursor,
        limit: usize,
        context: &mut Context,
    ) -> Result<Option<Flow>, KernelError> {
        loop {
            let Some((mut flow, above)) = self.read_held(cursor, limit, context)? else { return Ok(None) };
            for operator in &mut self.operators[above..upto] {
                flow = operator.prepare(flow, context)?;
            }
            if !flow.is_empty() {
                return Ok(Some(flow));
            }
        }
    }

    /// The next rows where the cursor stands, and the first operator above them.
    fn read_held(
        &mut self,
        cursor: &mut Cursor,
        limit: usize,
        context: &mut Context,
    ) -> Result<Option<(Flow, usize)>, KernelError> {
        let (flow, rest) = match cursor {
            Cursor::Done => return Ok(None),
            Cursor::EmptyGroup => (self.aggregate().empty_row(context)?, None),
            Cursor::Group(group) => (self.aggregate().held_rows(*group, 1, context)?.0, None),
            Cursor::Groups { next } => {
                let (flow, rest) = self.aggregate().held_rows(*next, limit, context)?;
                (flow, rest.map(|next| Cursor::Groups { next }))
            }
            Cursor::Held { operator, next } => {
                let at = *operator;
                let held = self.operators[at].held().expect("opened where rows are held");
                let (flow, rest) = held.read(*next, limit, context)?;
                *cursor = rest.map_or(Cursor::Done, |next| Cursor::Held { operator: at, next });
                return Ok(Some((flow, at + 1)));
            }
            Cursor::Tree(reading) => {
                let overflows = self.tree.next_results(&mut reading.0, &mut reading.1, limit);
                return self.take_results(cursor, overflows, context);
            }
            Cursor::Lookup(reading) => {
                let overflows = self.tree.next_lookup(&mut reading.0, &mut reading.1, limit);
                return self.take_results(cursor, overflows, context);
            }
        };
        *cursor = rest.unwrap_or(Cursor::Done);
        Ok(Some((flow, 0)))
    }

    /// The rows that the tree has just put into the cursor's sink.
    fn take_results(
        &mut self,
        cursor: &mut Cursor,
        overflows: bool,
        context: &mut Context,
    ) -> Result<Option<(Flow, usize)>, KernelError> {
        let sink = match cursor {
            Cursor::Tree(reading) => &mut reading.1,
            Cursor::Lookup(reading) => &mut reading.1,
            _ => unreachable!("only these have a sink"),
        };
        if overflows {
            return Err(out_of_range());
        }
        if sink.is_empty() {
            *cursor = Cursor::Done;
            return Ok(None);
        }
        let flow = match &self.groups {
            Some(groups) => groups.rows_of_results(sink, context)?,
            None => self.results.decode(sink, context),
        };
        Ok(Some((flow, 0)))
    }

    fn aggregate(&self) -> &crate::aggregate::GroupAggregate {
        self.groups.as_ref().expect("opened where there are groups")
    }

    /// Builds the view from the tables' rows, and reads the result once where something above the tree can refuse it.
    pub fn build(&mut self, changes: &[AtomChanges], context: &mut Context) -> Result<(), KernelError> {
        self.build_tree(changes, context.interner)?;
        if let Some(mut groups) = self.groups.take_if(|groups| groups.is_stateful()) {
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
        }
        for at in 0..self.operators.len() {
            if !self.operators[at].is_stateful() {
                continue;
            }
            let mut cursor = self.open_below(at);
            while let Some(flow) = self.read_below(at, &mut cursor, BUILT_ROWS, context)? {
                let held = self.operators[at].held().expect("it is stateful");
                held.absorb(flow, context)?;
            }
        }
        let mut cursor = if self.can_refuse() || self.tree.may_overflow_counts() { self.open() } else { Cursor::Done };
        while self.read(&mut cursor, BUILT_ROWS, context)?.is_some() {}
        Ok(())
    }

    /// The number of rows of the result, without enumerating it where the operators allow; `None` if it must be read.
    pub fn count(&self) -> Option<Option<i128>> {
        let core = match &self.groups {
            None => self.tree.count(false),
            Some(groups) if groups.is_global() => Some(1),
            Some(groups) if groups.is_stateful() => Some(groups.size().0 as i128),
            Some(_) => self.tree.count(true),
        };
        let mut count = Some(core);
        for operator in &self.operators {
            count = operator.count(count);
        }
        count
    }
}
