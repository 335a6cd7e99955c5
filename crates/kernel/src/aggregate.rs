//! Group aggregates.
//!
//! A group's state is a vector of 128-bit sums: the number of rows, the core's components, and for arguments that the tree does not carry
//! the number and the sum of their values; sums of doubles are kept exactly beside it, and of arguments whose order counts the values
//! themselves (`bag.rs`), from whose ends results are picked. The operator adds up a batch's changes by group,
//! takes the groups' totals before and after, and emits the old row with -1 and the new one with +1, unless all that results are computed
//! from is as it was.
//!
//! Where the groups are exactly the core's results and every aggregate is a component, the totals are read from the tree (one probe per
//! connex node) and the operator holds no state: space stays linear in the data even where there are more groups than rows.
//! Otherwise it keeps one vector per group.
//!
//! Two phases, as of all operators: what is prepared is in `changes`, with the totals after the batch and the changes of bags; only `commit` touches the
//! groups held.

use crate::accumulator::{Aggregated, Order, State, Totals, accumulator};
use crate::bag::{Bag, End};
use crate::codec;
use crate::consolidate::{RowCodec, out_of_range};
use crate::double_sum::DoubleSum;
use crate::enumerate::Sink;
use crate::error::KernelError;
use crate::flow::{Chunk, Flow, decode_head, describe, in_row_of, record_batch};
use crate::groups::Groups;
use crate::hash::push_words;
use crate::interner::Interner;
use crate::operator::{Context, Held, Operator, Position};
use crate::plan;
use crate::rows::NONE;
use crate::scan::exact_values;
use crate::shape::{HeadColumn, HeadLayout, KeySpec, null_place, pack_key};
use crate::sort_key::{RowOrder, SortKey};
use crate::totals::{ResultLocator, TotalScratch};
use crate::tree::Tree;
use crate::trim::trim_buffer;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use everview_expr::{DataType, Expr};
use std::ops::Range;

#[derive(Debug)]
struct Argument {
    expressions: Vec<Expr>,
    /// Where the rows are counted in which all of them have values, if they are.
    count_at: Option<usize>,
    added: Added,
}

/// What is added up of an argument, and where.
#[derive(Debug)]
enum Added {
    /// Nothing but the number of values.
    Nothing,
    /// Exact numbers.
    Exact(usize),
    /// Doubles.
    Doubles(usize),
    /// Doubles and products of two.
    Products(usize, &'static [(usize, usize)]),
    /// So many sums of doubles, as bytes.
    States(usize, usize),
}

/// Arguments whose values are kept in order, one bag per group.
#[derive(Debug)]
struct Ordered {
    /// Of which aggregates of the same arguments share a bag.
    kept: Order,
    arguments: Vec<Expr>,
    order: RowOrder,
    /// What stands for a value where there is none.
    nothing: SortKey,
}

/// A group aggregate.
#[derive(Debug)]
pub struct GroupAggregate {
    aggregates: Vec<Aggregated>,
    arguments: Vec<Argument>,
    ordered: Vec<Ordered>,
    /// What is picked from a group's bags: which bag, and which end of it.
    picks: Vec<(usize, End)>,
    /// The schema of the input, of which the arguments are evaluated.
    input: SchemaRef,
    /// The positions of the keys in the input.
    keys: Vec<usize>,
    /// Cuts a group's key out of the words of an input row.
    key: KeySpec,
    /// Where the key columns stand in a group's key.
    key_head: HeadLayout,
    key_types: Vec<DataType>,
    /// Words of a group's key that hold texts nothing else keeps alive.
    key_texts: Vec<usize>,
    /// Words of a group's vector.
    width: usize,
    doubles: usize,
    /// Reads totals from the tree.
    locator: Option<ResultLocator>,
    groups: Option<Groups>,
    /// Places of a group's vector that results are computed from.
    read: Vec<usize>,
    /// Places of a group's vector whose change shows in the output for sure.
    visible: Vec<usize>,
    /// Some output (a mean, a sum of doubles, a sum without its count) may stay the same though the vector changes.
    may_hide: bool,
    /// The batch in progress by group: the changes, and once they are prepared, the totals after it.
    changes: Groups,
    /// Per group of `changes` its place among the groups held, or `NONE`.
    known: Vec<u32>,
}

/// The vectors of some groups, ready to be turned into rows.
#[derive(Default)]
struct Snapshot {
    /// Key words, in the layout of `GroupAggregate::key`.
    keys: Vec<u64>,
    sums: Vec<i128>,
    doubles: Vec<DoubleSum>,
    picks: Vec<SortKey>,
    weights: Vec<i64>,
    may_repeat: bool,
}

/// What a group's row is computed from.
#[derive(Clone, Copy)]
struct Contents<'a> {
    sums: &'a [i128],
    doubles: &'a [DoubleSum],
    picks: &'a [SortKey],
}

impl GroupAggregate {
    /// Compiles the operator above a core: where its groups are the core's results, it reads their totals from the tree.
    pub fn above_core(aggregate: &plan::Aggregate, core: &plan::Core, tree: &Tree, input: SchemaRef) -> Self {
        let types: Vec<DataType> = core.head.iter().map(|&v| core.variables[v].data_type).collect();
        let mut keys = aggregate.keys.clone();
        keys.sort_unstable();
        keys.dedup();
        let stateless = keys.len() == core.head.len() && aggregate.aggregates.iter().all(|a| a.argument.is_none());
        let locator = stateless.then(|| tree.result_locator(&core.shape()));
        Self::new(aggregate, tree.head(), &types, core.components, locator, input)
    }

    /// Compiles the operator above computed rows, which hold texts of their own.
    pub fn above_rows(aggregate: &plan::Aggregate, codec: &RowCodec, input: SchemaRef) -> Self {
        let mut operator = Self::new(aggregate, &codec.head(), codec.types(), 0, None, input);
        let columns = operator.key_head.columns.iter().zip(&operator.key_types);
        operator.key_texts = columns.filter(|(_, t)| codec::is_text(**t)).map(|(column, _)| column.first).collect();
        operator
    }

    fn new(
        aggregate: &plan::Aggregate,
        head: &HeadLayout,
        types: &[DataType],
        components: usize,
        locator: Option<ResultLocator>,
        input: SchemaRef,
    ) -> Self {
        let (mut width, mut doubles) = (1 + components, 0);
        let mut arguments = Vec::new();
        let (mut ordered, mut picks) = (Vec::new(), Vec::new());
        let aggregates = aggregate.aggregates.iter().map(|column| {
            let function = accumulator(column.function);
            let (mut count_at, mut sum_at, mut double_at) =
                (column.count.map_or(0, |c| c + 1), column.sum.map(|c| c + 1), None);
            let (mut pick_at, mut sums) = (None, 1);
            let given: Vec<Expr> = column.argument.iter().chain(&column.second).cloned().collect();
            if let State::Ordered(order) = function.state() {
                (pick_at, sum_at) = (Some(picks.len()), None);
                picks.push((bag_of(&mut ordered, order, given), order.end));
            } else if let Some(expression) = &column.argument {
                let is_counted = column.count.is_none(); // else by a component
                if is_counted {
                    (count_at, width) = (width, width + 1);
                }
                sum_at = None;
                let added = match (function.state(), expression.data_type()) {
                    (State::Number, _) => Added::Nothing,
                    (State::Products(products), data_type) => {
                        let is_state = data_type == DataType::Binary;
                        sums = products.len() + 1 + products.iter().map(|&(one, two)| one.max(two)).max().unwrap_or(0);
                        (double_at, doubles) = (Some(doubles), doubles + sums);
                        let first = doubles - sums;
                        if is_state { Added::States(first, sums) } else { Added::Products(first, products) }
                    }
                    (_, DataType::Double) => {
                        (double_at, doubles) = (Some(doubles), doubles + 1);
                        Added::Doubles(doubles - 1)
                    }
                    _ => {
                        (sum_at, width) = (Some(width), width + 1);
                        Added::Exact(width - 1)
                    }
                };
                arguments.push(Argument { expressions: given, count_at: is_counted.then_some(count_at), added });
            }
            Aggregated {
                function,
                data_type: column.data_type,
                argument_type: column.argument_type,
                count_at,
                sum_at,
                double_at,
                doubles: sums,
                pick_at,
            }
        });
        let aggregates: Vec<Aggregated> = aggregates.collect();
        let columns: Vec<HeadColumn> = aggregate.keys.iter().map(|&k| head.columns[k]).collect();
        let words = columns.iter().flat_map(|c| c.first..c.first + c.words).collect();
        let key = KeySpec::new(words, columns.iter().map(|c| c.null).collect());
        let visible: Vec<usize> = aggregates.iter().filter_map(Aggregated::shows).collect();
        let hides = |a: &Aggregated| a.shows().is_none() || !visible.contains(&a.count_at);
        let may_hide = !visible.contains(&0) || aggregates.iter().any(hides);
        let stateless = locator.is_some();
        let mut groups = (!stateless).then(|| Groups::new(key.width(), width, doubles, ordered.len()));
        let mut read: Vec<usize> = aggregates.iter().flat_map(Aggregated::reads).collect();
        read.sort_unstable();
        read.dedup();
        if let Some(groups) = groups.as_mut().filter(|_| columns.is_empty()) {
            groups.find_or_insert(&[]);
        }
        Self {
            read,
            visible,
            may_hide,
            changes: Groups::new(if stateless { head.words.len() } else { key.width() }, width, doubles, ordered.len()),
            known: Vec::new(),
            aggregates,
            arguments,
            ordered,
            picks,
            input,
            keys: aggregate.keys.clone(),
            key_types: aggregate.keys.iter().map(|&k| types[k]).collect(),
            key_head: key_head(&columns, key.mask()),
            key,
            width,
            doubles,
            locator,
            key_texts: Vec::new(),
            groups,
        }
    }

    /// Whether the operator holds groups of its own.
    pub fn is_stateful(&self) -> bool {
        self.groups.is_some()
    }

    /// Whether a result may not fit its type, or an argument may fail.
    pub fn can_refuse(&self) -> bool {
        self.aggregates.iter().any(Aggregated::can_refuse) || self.expressions().any(Expr::is_fallible)
    }

    /// The expressions that are evaluated on the input's rows.
    fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let ordered = self.ordered.iter().flat_map(|ordered| &ordered.arguments);
        self.arguments.iter().flat_map(|argument| &argument.expressions).chain(ordered)
    }

    /// Whether counts are among the results: they fit their type where the number of rows does.
    pub fn counts(&self) -> bool {
        self.aggregates.iter().any(|aggregate| aggregate.function.state() == State::Number)
    }

    /// Groups and bytes held.
    pub fn size(&self) -> (usize, usize) {
        self.groups.as_ref().map_or((0, 0), |g| (g.keys.len(), g.bytes()))
    }

    /// The group with these values of these input columns: `None` if they are not the keys, `Some(None)` if there is no such group.
    #[allow(clippy::option_option)]
    pub fn find(&self, columns: &[usize], values: &[(Vec<u64>, bool)]) -> Option<Option<u32>> {
        if columns.len() != self.keys.len() || !self.keys.iter().all(|k| columns.contains(k)) {
            return None;
        }
        let value = |key| &values[columns.iter().position(|c| c == key).expect("checked above")];
        let words = pack_key(self.keys.iter().map(value), self.key.mask().is_some());
        Some(words.and_then(|words| self.groups.as_ref().and_then(|groups| groups.keys.find(&words))))
    }

    /// Gives up the texts of the groups held.
    pub fn release_texts(&self, interner: &mut Interner) {
        let Some(groups) = self.groups.as_ref().filter(|_| !self.key_texts.is_empty()) else { return };
        for group in groups.keys.ids() {
            self.key_texts.iter().for_each(|&text| interner.refer(groups.keys.value(group, text) as u32, -1));
        }
    }

    /// Whether there is one group, whatever the data.
    pub fn is_global(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether arguments must be evaluated on the input's rows, which must be net then.
    pub fn needs_input(&self) -> bool {
        self.expressions().next().is_some()
    }

    /// Whether the totals are read from the tree.
    pub fn is_stateless(&self) -> bool {
        self.locator.is_some()
    }

    /// The columns of the input that arguments read.
    pub fn columns_read(&self) -> Vec<usize> {
        let mut columns: Vec<usize> = self.expressions().flat_map(Expr::columns).collect();
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// As `prepare`, for totals read from the tree and a delta that has every group at most once.
    pub fn prepare_unique(&mut self, tree: &mut Tree, delta: &Sink, context: &Context) -> Result<Flow, KernelError> {
        let locator = self.locator.as_ref().expect("asked only where totals are read from the tree");
        let (mut snapshot, mut scratch) = (Snapshot::default(), TotalScratch::default());
        let (mut words, mut key, mut before, mut after) = (Vec::new(), Vec::new(), Vec::new(), vec![0; self.width]);
        let mut overflow = false;
        for i in 0..delta.len() {
            words.clear();
            words.extend(delta.columns.iter().map(|column| column[i]));
            overflow |= tree.total(locator, &words, &mut after, &mut scratch);
            before.clear();
            before.push(after[0].wrapping_sub(i128::from(delta.multiplicities[i])));
            before.extend(after[1..].iter().zip(&delta.components).map(|(a, c)| a.wrapping_sub(c[i])));
            self.key.cut(|at| words[at], &mut key);
            self.change(&mut snapshot, &key, Contents::of_sums(&before), Contents::of_sums(&after));
        }
        if overflow {
            return Err(out_of_range());
        }
        self.rows(&snapshot, context)
    }

    /// Adds the changes of some rows to what is prepared. `input` has the rows that arguments are evaluated on, where there are any.
    fn gather(&mut self, delta: &Sink, input: &[(Range<usize>, RecordBatch)]) -> Result<(), KernelError> {
        let mut key = Vec::new();
        let group_of: Vec<usize> = (0..delta.len())
            .map(|i| {
                if self.locator.is_some() {
                    key.clear();
                    key.extend(delta.columns.iter().map(|column| column[i]));
                } else {
                    self.key.cut(|at| delta.columns[at][i], &mut key);
                }
                self.changes.find_or_insert(&key)
            })
            .collect();
        let mut overflow = self.add_components(delta, &group_of);
        for (range, batch) in input {
            let (multiplicities, groups) = (&delta.multiplicities[range.clone()], &group_of[range.clone()]);
            overflow |= self.add_arguments(multiplicities, batch, groups)?;
            self.add_ordered(multiplicities, batch, groups)?;
        }
        if overflow { Err(out_of_range()) } else { Ok(()) }
    }

    fn add_components(&mut self, delta: &Sink, group_of: &[usize]) -> bool {
        let mut overflow = false;
        for (i, &group) in group_of.iter().enumerate() {
            let sums = self.changes.sums_mut(group);
            sums[0] += i128::from(delta.multiplicities[i]);
            for (sum, column) in sums[1..].iter_mut().zip(&delta.components) {
                let (total, over) = sum.overflowing_add(column[i]);
                *sum = total;
                overflow |= over;
            }
        }
        overflow
    }

    /// Adds the arguments' values; whether a sum overflowed.
    fn add_arguments(
        &mut self,
        multiplicities: &[i64],
        input: &RecordBatch,
        group_of: &[usize],
    ) -> Result<bool, KernelError> {
        let mut overflow = false;
        let changes = &mut self.changes;
        for argument in &self.arguments {
            let value = |e: &Expr| e.evaluate(input).map_err(|error| in_row_of(error, input));
            let arrays: Vec<ArrayRef> = argument.expressions.iter().map(value).collect::<Result<_, _>>()?;
            if let Some(at) = argument.count_at {
                for (i, &group) in group_of.iter().enumerate() {
                    if arrays.iter().all(|array| !array.is_null(i)) {
                        changes.sums_mut(group)[at] += i128::from(multiplicities[i]);
                    }
                }
            }
            match argument.added {
                Added::Nothing => {}
                Added::Exact(at) => {
                    for (i, value) in exact_values(&arrays[0], argument.expressions[0].data_type())?.enumerate() {
                        let sum = &mut changes.sums_mut(group_of[i])[at];
                        let (term, over) = value.unwrap_or(0).overflowing_mul(i128::from(multiplicities[i]));
                        let (total, over_again) = sum.overflowing_add(term);
                        *sum = total;
                        overflow |= over | over_again;
                    }
                }
                Added::Doubles(at) => {
                    for (i, value) in arrays[0].as_primitive::<Float64Type>().iter().enumerate() {
                        let sum = &mut changes.doubles_mut(group_of[i])[at];
                        overflow |= value.is_some_and(|value| sum.add(value, multiplicities[i]));
                    }
                }
                Added::Products(at, products) => {
                    let columns: Vec<_> = arrays.iter().map(AsArray::as_primitive::<Float64Type>).collect();
                    for (i, &group) in group_of.iter().enumerate() {
                        if columns.iter().any(|column| column.is_null(i)) {
                            continue;
                        }
                        let (single, double) = changes.doubles_mut(group)[at..].split_at_mut(columns.len());
                        for (sum, column) in single.iter_mut().zip(&columns) {
                            overflow |= sum.add(column.value(i), multiplicities[i]);
                        }
                        for (sum, &(one, two)) in double.iter_mut().zip(products) {
                            overflow |=
                                sum.add_product(columns[one].value(i), columns[two].value(i), multiplicities[i]);
                        }
                    }
                }
                Added::States(at, sums) => {
                    for (i, state) in arrays[0].as_binary::<i32>().iter().enumerate() {
                        let Some(mut rest) = state else { continue };
                        for sum in &mut changes.doubles_mut(group_of[i])[at..at + sums] {
                            let (read, after) = DoubleSum::read(rest).ok_or_else(no_state)?;
                            overflow |= sum.merge_times(&read, multiplicities[i]);
                            rest = after;
                        }
                    }
                }
            }
        }
        Ok(overflow)
    }

    /// Adds the values that are kept in order to the changes of bags.
    fn add_ordered(
        &mut self,
        multiplicities: &[i64],
        input: &RecordBatch,
        group_of: &[usize],
    ) -> Result<(), KernelError> {
        for (bag, ordered) in self.ordered.iter().enumerate() {
            let value = |e: &Expr| e.evaluate(input).map_err(|error| in_row_of(error, input));
            let arrays: Vec<ArrayRef> = ordered.arguments.iter().map(value).collect::<Result<_, _>>()?;
            let nulls = arrays[ordered.kept.present].logical_nulls();
            for (row, key) in ordered.order.keys(&arrays, group_of.len()).into_iter().enumerate() {
                if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) {
                    self.changes.bags_mut(group_of[row])[bag].add(key, i128::from(multiplicities[row]));
                }
            }
        }
        Ok(())
    }

    /// The values picked from a group's bags, after a change of these if one is given.
    fn pick(&self, bags: &[Bag], changes: Option<&[Bag]>, into: &mut Vec<SortKey>) {
        for &(bag, end) in &self.picks {
            let found = bags.get(bag).and_then(|held| held.end(end, changes.map(|changes| &changes[bag])));
            into.push(found.unwrap_or(&self.ordered[bag].nothing).clone());
        }
    }

    /// The rows that leave and come, from the gathered changes; these become the totals after the batch.
    fn settle(&mut self, tree: Option<&mut Tree>, context: &Context) -> Result<Flow, KernelError> {
        let mut changes = std::mem::replace(&mut self.changes, Groups::new(0, 1, 0, 0));
        let snapshot = self.totals(tree, &mut changes);
        self.changes = changes;
        self.rows(&snapshot?, context)
    }

    /// Turns the gathered changes into the totals after the batch; takes a group's row before and after where they differ.
    fn totals(&mut self, tree: Option<&mut Tree>, changes: &mut Groups) -> Result<Snapshot, KernelError> {
        let mut snapshot = Snapshot::default();
        let mut overflow = false;
        self.known.clear();
        if let Some(locator) = &self.locator {
            let tree = tree.expect("totals are read from the tree");
            let (mut key, mut before, mut after) = (Vec::new(), Vec::new(), vec![0; self.width]);
            let mut scratch = TotalScratch::default();
            for group in changes.keys.ids() {
                let words = changes.keys.values(group);
                overflow |= tree.total(locator, words, &mut after, &mut scratch);
                before.clear();
                before.extend(after.iter().zip(changes.sums(group as usize)).map(|(a, c)| a.wrapping_sub(*c)));
                self.key.cut(|at| words[at], &mut key);
                self.change(&mut snapshot, &key, Contents::of_sums(&before), Contents::of_sums(&after));
            }
        } else {
            let groups = self.groups.as_ref().expect("no locator, so groups");
            let (none, no_doubles) = (vec![0; self.width], vec![DoubleSum::default(); self.doubles]);
            let no_bags = vec![Bag::default(); self.ordered.len()];
            let (mut picks_before, mut picks_after) = (Vec::new(), Vec::new());
            for group in changes.keys.ids().collect::<Vec<_>>() {
                let known = groups.keys.find(changes.keys.values(group));
                self.known.push(known.unwrap_or(NONE));
                let (before, doubles_before, bags) = match known.map(|known| known as usize) {
                    Some(known) => (groups.sums(known), groups.doubles(known), groups.bags(known)),
                    None => (none.as_slice(), no_doubles.as_slice(), no_bags.as_slice()),
                };
                let group = group as usize;
                picks_before.clear();
                picks_after.clear();
                self.pick(bags, None, &mut picks_before);
                self.pick(bags, Some(changes.bags(group)), &mut picks_after);
                for (sum, &by) in changes.sums_mut(group).iter_mut().zip(before) {
                    let (total, over) = sum.overflowing_add(by);
                    *sum = total;
                    overflow |= over;
                }
                for (sum, by) in changes.doubles_mut(group).iter_mut().zip(doubles_before) {
                    overflow |= sum.merge(by);
                }
                let before = Contents { sums: before, doubles: doubles_before, picks: &picks_before };
                let after =
                    Contents { sums: changes.sums(group), doubles: changes.doubles(group), picks: &picks_after };
                self.change(&mut snapshot, changes.keys.values(group as u32), before, after);
            }
        }
        if overflow { Err(out_of_range()) } else { Ok(snapshot) }
    }

    /// The change of the groups for the change of a core's results.
    pub fn prepare_core(
        &mut self,
        tree: &mut Tree,
        delta: &Sink,
        input: &[(Range<usize>, RecordBatch)],
        context: &Context,
    ) -> Result<Flow, KernelError> {
        self.gather(delta, input)?;
        self.settle(Some(tree), context)
    }

    /// Takes results of a core in, while a view is built.
    pub fn absorb_core(
        &mut self,
        results: &Sink,
        input: &[(Range<usize>, RecordBatch)],
        interner: &mut Interner,
    ) -> Result<(), KernelError> {
        self.gather(results, input)?;
        self.take_in(interner)
    }

    /// Takes what was gathered in, without a look at what comes out.
    fn take_in(&mut self, interner: &mut Interner) -> Result<(), KernelError> {
        let mut changes = std::mem::replace(&mut self.changes, Groups::new(0, 1, 0, 0));
        let outcome = self.totals(None, &mut changes).map(drop);
        self.changes = changes;
        outcome?;
        self.commit(interner);
        Ok(())
    }

    /// Makes the prepared change.
    pub fn commit(&mut self, interner: &mut Interner) {
        let is_global = self.is_global();
        let Self { changes, groups, known, key_texts, .. } = self;
        for (group, &known) in changes.keys.ids().collect::<Vec<_>>().into_iter().zip(known.iter()) {
            let Some(groups) = groups else { break };
            let words = changes.keys.values(group);
            let refer = |interner: &mut Interner, count| {
                for &text in key_texts.iter() {
                    interner.refer(words[text] as u32, count);
                }
            };
            let after = changes.sums(group as usize);
            if after[0] == 0 && !is_global {
                if known != NONE {
                    groups.remove(known);
                    refer(interner, -1);
                }
                continue;
            }
            let at = if known == NONE {
                refer(interner, 1);
                groups.find_or_insert(words)
            } else {
                known as usize
            };
            groups.sums_mut(at).copy_from_slice(after);
            groups.doubles_mut(at).clone_from_slice(changes.doubles(group as usize));
            groups.merge_bags(at, changes.bags_mut(group as usize));
        }
        self.abort();
    }

    /// Forgets the prepared change.
    pub fn abort(&mut self) {
        self.changes.clear();
        self.known.clear();
    }

    /// Gives memory back if there is much to give.
    pub fn give_back(&mut self) {
        self.groups.iter_mut().for_each(Groups::give_back);
        trim_buffer(&mut self.known);
    }

    /// A group's old row leaves and its new row comes, where there are rows and something of them may have changed.
    fn change(&self, snapshot: &mut Snapshot, key: &[u64], before: Contents, after: Contents) {
        let is_there = |contents: &Contents| self.is_global() || contents.sums[0] != 0;
        if is_there(&before) == is_there(&after)
            && self.read.iter().all(|&at| before.sums[at] == after.sums[at])
            && before.doubles == after.doubles
            && before.picks == after.picks
        {
            return;
        }
        snapshot.may_repeat |= self.may_hide && self.visible.iter().all(|&at| before.sums[at] == after.sums[at]);
        for (contents, weight) in [(before, -1), (after, 1)] {
            if is_there(&contents) {
                snapshot.push(key, contents, weight);
            }
        }
    }

    /// The rows of full results of a stateless aggregate.
    pub fn rows_of_results(&self, results: &Sink, context: &Context) -> Result<Flow, KernelError> {
        let mut snapshot = Snapshot::default();
        let mut key = Vec::new();
        for i in 0..results.len() {
            self.key.cut(|at| results.columns[at][i], &mut key);
            snapshot.keys.extend_from_slice(&key);
            snapshot.sums.push(i128::from(results.multiplicities[i]));
            snapshot.sums.extend(results.components.iter().map(|c| c[i]));
            snapshot.weights.push(1);
        }
        self.rows(&snapshot, context)
    }

    /// The one row of a global aggregate over no rows.
    pub fn empty_row(&self, context: &Context) -> Result<Flow, KernelError> {
        let snapshot = Snapshot {
            sums: vec![0; self.width],
            doubles: vec![DoubleSum::default(); self.doubles],
            picks: self.picks.iter().map(|&(bag, _)| self.ordered[bag].nothing.clone()).collect(),
            weights: vec![1],
            ..Snapshot::default()
        };
        self.rows(&snapshot, context)
    }

    /// At most `limit` of the groups held, from position `from` on; the position to go on from, if there are more.
    pub fn held_rows(&self, from: u32, limit: usize, context: &Context) -> Result<(Flow, Option<u32>), KernelError> {
        let groups = self.groups.as_ref().expect("asked only of operators with state");
        let mut snapshot = Snapshot::default();
        let (mut next, mut picks) = (None, Vec::new());
        for group in groups.keys.ids_from(from) {
            if snapshot.weights.len() == limit {
                next = Some(group);
                break;
            }
            let at = group as usize;
            picks.clear();
            self.pick(groups.bags(at), None, &mut picks);
            let contents = Contents { sums: groups.sums(at), doubles: groups.doubles(at), picks: &picks };
            snapshot.push(groups.keys.values(group), contents, 1);
        }
        Ok((self.rows(&snapshot, context)?, next))
    }

    fn rows(&self, snapshot: &Snapshot, context: &Context) -> Result<Flow, KernelError> {
        let count = snapshot.weights.len();
        let width = self.key.width();
        let word = |at: usize| {
            let mut words = context.pool.take();
            words.extend((0..count).map(|i| snapshot.keys[i * width + at]));
            words
        };
        let mut words: Vec<Vec<u64>> = (0..width).map(word).collect();
        let text = (&*context.interner, context.pool);
        let parts = decode_head(&self.key_head, &self.key_types, &mut words, count, None, text);
        for words in words {
            context.pool.put(words);
        }
        let parts = parts.into_iter().flat_map(|part| self.cut(part, snapshot, context));
        let mut chunks = Vec::new();
        for (range, mut columns) in parts {
            let picks: Vec<ArrayRef> =
                (0..self.picks.len()).map(|at| self.picked(at, range.clone(), snapshot, context)).collect();
            let groups = Totals {
                count: range.len(),
                sums: &snapshot.sums[range.start * self.width..range.end * self.width],
                width: self.width,
                doubles: &snapshot.doubles[range.start * self.doubles..range.end * self.doubles],
                double_width: self.doubles,
                picks: &picks,
            };
            for aggregate in &self.aggregates {
                columns.push(aggregate.finish(&groups).map_err(|(row, error)| {
                    let keys = self.keys.iter().map(|&k| self.input.field(k).name().as_str());
                    self.in_group(error, &describe(keys.zip(&columns), row))
                })?);
            }
            chunks.push(Chunk { columns, weights: snapshot.weights[range].to_vec() });
        }
        Ok(Flow { chunks, may_repeat: snapshot.may_repeat })
    }

    /// Cuts rows into parts whose picked values fit a chunk.
    fn cut(
        &self,
        (range, columns): (Range<usize>, Vec<ArrayRef>),
        snapshot: &Snapshot,
        context: &Context,
    ) -> Vec<(Range<usize>, Vec<ArrayRef>)> {
        if self.picks.is_empty() {
            return vec![(range, columns)];
        }
        let most = context.interner.chunk_bytes();
        let mut filled = vec![0; self.picks.len()];
        let (mut starts, mut parts) = (vec![range.start], Vec::new());
        for row in range.clone() {
            let sizes = &snapshot.picks[row * self.picks.len()..(row + 1) * self.picks.len()];
            filled.iter_mut().zip(sizes).for_each(|(sum, key)| *sum += key.len() as u64);
            if filled.iter().any(|&sum| sum > most) && row > starts[starts.len() - 1] {
                starts.push(row);
                filled.iter_mut().zip(sizes).for_each(|(sum, key)| *sum = key.len() as u64);
            }
        }
        for (at, &start) in starts.iter().enumerate() {
            let part = start..starts.get(at + 1).copied().unwrap_or(range.end);
            let sliced = columns.iter().map(|column| column.slice(part.start - range.start, part.len())).collect();
            parts.push((part, sliced));
        }
        parts
    }

    /// The first argument of what is picked for some rows.
    fn picked(&self, pick: usize, rows: Range<usize>, snapshot: &Snapshot, context: &Context) -> ArrayRef {
        let keys = rows.map(|row| (&*snapshot.picks[row * self.picks.len() + pick], 1));
        let order = &self.ordered[self.picks[pick].0].order;
        let mut chunks = order.rows(keys, (&*context.interner, context.pool));
        chunks.swap_remove(0).columns.swap_remove(0) // one chunk: they fit
    }

    fn in_group(&self, mut error: KernelError, group: &str) -> KernelError {
        if !self.is_global() {
            error.message = format!("{} for the group {group}", error.message);
        }
        error
    }
}

fn no_state() -> KernelError {
    KernelError::new("INVALID_PLAN", "a partial result has bytes that are none")
}

/// The layout of a group's key, whose columns are these of the input.
fn key_head(columns: &[HeadColumn], mask: Option<usize>) -> HeadLayout {
    let mut first = 0;
    let column = |(position, column): (usize, &HeadColumn)| HeadColumn {
        first: (first, first += column.words).0,
        words: column.words,
        null: mask.filter(|_| column.null.is_some()).map(|mask| null_place(mask, position)),
    };
    HeadLayout { columns: columns.iter().enumerate().map(column).collect(), words: Vec::new() }
}

/// The bag that holds these arguments in this order, shared where they are plain columns.
fn bag_of(ordered: &mut Vec<Ordered>, kept: Order, arguments: Vec<Expr>) -> usize {
    let same = |other: &Ordered| {
        let columns = |arguments: &[Expr]| arguments.iter().map(Expr::as_column).collect::<Option<Vec<_>>>();
        let (one, two) = (columns(&arguments), columns(&other.arguments));
        one.is_some() && one == two && (kept.by, kept.present) == (other.kept.by, other.kept.present)
    };
    ordered.iter().position(same).unwrap_or_else(|| {
        let types: Vec<DataType> = arguments.iter().map(Expr::data_type).collect();
        let order = RowOrder::new(&types, kept.by);
        ordered.push(Ordered { kept, nothing: order.null_key(), arguments, order });
        ordered.len() - 1
    })
}

impl<'a> Contents<'a> {
    /// Of groups that the tree holds.
    fn of_sums(sums: &'a [i128]) -> Self {
        Self { sums, doubles: &[], picks: &[] }
    }
}

impl Snapshot {
    fn push(&mut self, key: &[u64], contents: Contents, weight: i64) {
        push_words(&mut self.keys, key);
        match contents.sums {
            [count] => self.sums.push(*count),
            sums => self.sums.extend_from_slice(sums),
        }
        self.doubles.extend_from_slice(contents.doubles);
        self.picks.extend_from_slice(contents.picks);
        self.weights.push(weight);
    }
}

/// A group aggregate above computed rows.
#[derive(Debug)]
pub struct AggregateRows {
    aggregate: GroupAggregate,
    codec: RowCodec,
}

impl AggregateRows {
    /// Compiles the operator above rows of these types.
    pub fn new(aggregate: &plan::Aggregate, types: &[DataType], input: SchemaRef) -> Self {
        let codec = RowCodec::new(types);
        Self { aggregate: GroupAggregate::above_rows(aggregate, &codec, input), codec }
    }

    fn gather(&mut self, input: Flow, interner: &mut Interner) -> Result<(), KernelError> {
        for chunk in input.chunks {
            let sink = self.codec.emit(&chunk.columns, &chunk.weights, interner);
            let count = chunk.weights.len();
            let batch = record_batch(&self.aggregate.input, chunk.columns, count)?;
            self.aggregate.gather(&sink, &[(0..count, batch)])?;
        }
        Ok(())
    }
}

impl Operator for AggregateRows {
    fn kind(&self) -> &'static str {
        "aggregate"
    }

    fn prepare(&mut self, input: Flow, context: &mut Context) -> Result<Flow, KernelError> {
        self.gather(input, context.interner)?;
        self.aggregate.settle(None, context)
    }

    fn commit(&mut self, interner: &mut Interner) {
        self.aggregate.commit(interner);
    }

    fn abort(&mut self) {
        self.aggregate.abort();
    }

    fn give_back(&mut self) {
        self.aggregate.give_back();
    }

    fn held(&mut self) -> Option<&mut dyn Held> {
        Some(self)
    }

    fn is_stateful(&self) -> bool {
        true
    }

    fn size(&self) -> (usize, usize) {
        self.aggregate.size()
    }

    fn can_refuse(&self) -> bool {
        self.aggregate.can_refuse() || self.aggregate.counts()
    }

    fn adds_up(&self) -> bool {
        true
    }

    fn count(&self, _: Option<Option<i128>>) -> Option<Option<i128>> {
        Some(Some(self.aggregate.size().0 as i128))
    }

    fn release_texts(&self, interner: &mut Interner) {
        self.aggregate.release_texts(interner);
    }
}

impl Held for AggregateRows {
    fn read(&self, from: &Position, limit: usize, context: &Context) -> Result<(Flow, Option<Position>), KernelError> {
        let (flow, next) = self.aggregate.held_rows(from.row(), limit, context)?;
        Ok((flow, next.map(Position::Row)))
    }

    fn absorb(&mut self, input: Flow, context: &mut Context) -> Result<(), KernelError> {
        self.gather(input, context.interner)?;
        self.aggregate.take_in(context.interner)
    }
}
