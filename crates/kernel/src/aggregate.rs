//! Group aggregates above a core.
//!
//! A group's state is a vector of 128-bit sums: the number of rows, the core's components, and for arguments that the tree does not carry
//! the number and the sum of their values; sums of doubles are kept exactly beside it. The operator adds up a batch's changes by group,
//! takes the groups' totals before and after, and emits the old row with -1 and the new one with +1.
//!
//! Where the groups are exactly the core's results and every aggregate is a component, the totals are read from the tree (one probe per
//! connex node) and the operator holds no state: space stays linear in the data even where there are more groups than rows.
//! Otherwise it keeps one vector per group.

use crate::codec::{self, words_of};
use crate::consolidate::RowCodec;
use crate::double_sum::DoubleSum;
use crate::enumerate::Sink;
use crate::error::KernelError;
use crate::hash::push_words;
use crate::interner::Interner;
use crate::plan::{self, Function};
use crate::pool::WordPool;
use crate::rows::Rows;
use crate::scan::exact_values;
use crate::shape::{HeadColumn, HeadLayout};
use crate::totals::{ResultLocator, TotalScratch};
use crate::tree::Tree;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, Decimal128Array, Float64Array, Int64Array, RecordBatch};
use arrow_buffer::{BooleanBuffer, NullBuffer, i256};
use everview_expr::{DataType, Expr};
use std::sync::Arc;

#[derive(Debug)]
struct Spec {
    function: Function,
    data_type: DataType,
    argument_type: Option<DataType>,
    /// Where the number of values stands in a group's vector.
    count_at: usize,
    /// Where their sum stands, if it is exact.
    sum_at: Option<usize>,
    /// Which of the group's double sums is theirs.
    double_at: Option<usize>,
}

#[derive(Debug)]
struct Argument {
    expression: Expr,
    count_at: usize,
    sum_at: Option<usize>,
    double_at: Option<usize>,
}

/// Sums per group.
#[derive(Debug)]
struct Groups {
    keys: Rows,
    width: usize,
    sums: Vec<i128>,
    doubles_per_group: usize,
    doubles: Vec<DoubleSum>,
}

impl Groups {
    fn new(key_width: usize, width: usize, doubles_per_group: usize) -> Self {
        Self { keys: Rows::new(key_width, 0, 0, true), width, sums: Vec::new(), doubles_per_group, doubles: Vec::new() }
    }

    fn find_or_insert(&mut self, key: &[u64]) -> usize {
        let (row, is_new) = self.keys.find_or_insert(key);
        let group = row as usize;
        if is_new {
            self.keys.set_weight(row, 1);
            self.sums.resize((group + 1).max(self.sums.len() / self.width) * self.width, 0);
            self.sums[group * self.width..(group + 1) * self.width].fill(0);
            self.doubles.resize(((group + 1) * self.doubles_per_group).max(self.doubles.len()), DoubleSum::default());
            self.doubles[group * self.doubles_per_group..(group + 1) * self.doubles_per_group]
                .fill(DoubleSum::default());
        }
        group
    }

    /// Drops all groups and keeps the memory.
    fn clear(&mut self) {
        self.keys.clear_all();
        self.sums.clear();
        self.doubles.clear();
    }

    fn sums(&self, group: usize) -> &[i128] {
        &self.sums[group * self.width..(group + 1) * self.width]
    }

    fn doubles(&self, group: usize) -> &[DoubleSum] {
        &self.doubles[group * self.doubles_per_group..(group + 1) * self.doubles_per_group]
    }
}

/// A group aggregate.
#[derive(Debug)]
pub struct GroupAggregate {
    specs: Vec<Spec>,
    arguments: Vec<Argument>,
    /// The positions of the keys in the core's head.
    keys: Vec<usize>,
    /// The key columns in the core's head.
    key_columns: Vec<HeadColumn>,
    key_types: Vec<DataType>,
    /// Words of a group's key that hold texts nothing else keeps alive.
    key_texts: Vec<usize>,
    /// Words of a group's vector.
    width: usize,
    doubles: usize,
    /// Reads totals from the tree.
    locator: Option<ResultLocator>,
    groups: Option<Groups>,
    /// Places of a group's vector whose change shows in the output for sure.
    telling: Vec<usize>,
    /// Some output (a mean, a sum of doubles, a sum without its count) may stay the same though the vector changes.
    reticent: bool,
    /// The changes of the batch in progress by group; kept for its memory.
    changes: Groups,
}

/// Rows with their multiplicities, column by column.
#[derive(Debug, Default)]
pub struct Flow {
    /// The columns.
    pub columns: Vec<ArrayRef>,
    /// The multiplicity of each row.
    pub weights: Vec<i64>,
    /// Whether equal rows may be among them, so that they must be netted.
    pub may_repeat: bool,
}

/// The vectors of some groups, ready to be turned into rows.
#[derive(Default)]
struct Snapshot {
    /// Key words, in the layout of `GroupAggregate::key`.
    keys: Vec<u64>,
    sums: Vec<i128>,
    doubles: Vec<DoubleSum>,
    weights: Vec<i64>,
    may_repeat: bool,
}

impl GroupAggregate {
    /// Compiles the operator above a core: where its groups are the core's results, it reads their totals from the tree.
    pub fn above_core(aggregate: &plan::Aggregate, core: &plan::Core, tree: &Tree) -> Self {
        let types: Vec<DataType> = core.head.iter().map(|&v| core.variables[v].data_type).collect();
        let mut keys = aggregate.keys.clone();
        keys.sort_unstable();
        keys.dedup();
        let stateless = keys.len() == core.head.len() && aggregate.aggregates.iter().all(|a| a.argument.is_none());
        let locator = stateless.then(|| tree.result_locator(&core.shape()));
        Self::new(aggregate, tree.head(), &types, core.components, locator)
    }

    /// Compiles the operator above computed rows, which hold texts of their own.
    pub fn above_rows(aggregate: &plan::Aggregate, codec: &RowCodec) -> Self {
        let mut operator = Self::new(aggregate, &codec.head(), codec.types(), 0, None);
        let mut offset = 0;
        for (column, &data_type) in operator.key_columns.iter().zip(&operator.key_types) {
            if codec::is_text(data_type) {
                operator.key_texts.push(offset);
            }
            offset += column.words;
        }
        operator
    }

    fn new(
        aggregate: &plan::Aggregate,
        head: &HeadLayout,
        types: &[DataType],
        components: usize,
        locator: Option<ResultLocator>,
    ) -> Self {
        let stateless = locator.is_some();
        let (mut width, mut doubles) = (1 + components, 0);
        let mut arguments = Vec::new();
        let specs = aggregate.aggregates.iter().map(|column| {
            let (mut count_at, mut sum_at, mut double_at) =
                (column.count.map_or(0, |c| c + 1), column.sum.map(|c| c + 1), None);
            if let Some(expression) = &column.argument {
                (count_at, width) = (width, width + 1);
                if matches!(expression.data_type(), DataType::Double) {
                    (double_at, doubles) = (Some(doubles), doubles + 1);
                } else if column.function != Function::Count {
                    (sum_at, width) = (Some(width), width + 1);
                }
                arguments.push(Argument { expression: expression.clone(), count_at, sum_at, double_at });
            }
            Spec {
                function: column.function,
                data_type: column.data_type,
                argument_type: column.argument_type,
                count_at,
                sum_at,
                double_at,
            }
        });
        let specs: Vec<Spec> = specs.collect();
        let key_columns: Vec<HeadColumn> = aggregate.keys.iter().map(|&k| head.columns[k]).collect();
        let key_types: Vec<DataType> = aggregate.keys.iter().map(|&k| types[k]).collect();
        let tells = |spec: &Spec| match spec.function {
            Function::Count => Some(spec.count_at),
            Function::Sum => spec.sum_at,
            Function::Avg => None,
        };
        let telling: Vec<usize> = specs.iter().filter_map(tells).collect();
        let reticent =
            !telling.contains(&0) || specs.iter().any(|s| tells(s).is_none() || !telling.contains(&s.count_at));
        let key_width = if stateless { head.words.len() } else { 0 };
        let mut operator = Self {
            telling,
            reticent,
            changes: Groups::new(key_width, width, doubles),
            specs,
            arguments,
            keys: aggregate.keys.clone(),
            key_types,
            width,
            doubles,
            locator,
            key_texts: Vec::new(),
            groups: None,
            key_columns,
        };
        if !stateless {
            operator.changes = Groups::new(operator.key_width(), width, doubles);
            let mut groups = Groups::new(operator.key_width(), width, doubles);
            if operator.key_columns.is_empty() {
                groups.find_or_insert(&[]);
            }
            operator.groups = Some(groups);
        }
        operator
    }

    /// Whether the operator holds groups of its own.
    pub fn has_state(&self) -> bool {
        self.groups.is_some()
    }

    /// Whether a result may not fit its type.
    pub fn is_fallible(&self) -> bool {
        let sums = |spec: &Spec| spec.function != Function::Count && spec.data_type != DataType::Double;
        self.specs.iter().any(sums) || self.arguments.iter().any(|a| a.expression.is_fallible())
    }

    /// Groups and bytes held.
    pub fn size(&self) -> (usize, usize) {
        let bytes = |g: &Groups| {
            g.keys.bytes() + g.sums.capacity() * 16 + g.doubles.capacity() * std::mem::size_of::<DoubleSum>()
        };
        self.groups.as_ref().map_or((0, 0), |g| (g.keys.len(), bytes(g)))
    }

    /// The group with these values of these head columns: `None` if they are not the keys, `Some(None)` if there is no such group.
    #[allow(clippy::option_option)]
    pub fn find(&self, columns: &[usize], values: &[(Vec<u64>, bool)]) -> Option<Option<u32>> {
        if columns.len() != self.keys.len() || !self.keys.iter().all(|k| columns.contains(k)) {
            return None;
        }
        let mut words = Vec::new();
        let mut mask = None;
        for (bit, (key, column)) in self.keys.iter().zip(&self.key_columns).enumerate() {
            let (value, is_null) = &values[columns.iter().position(|c| c == key).expect("checked above")];
            words.extend_from_slice(value);
            if column.null.is_some() {
                *mask.get_or_insert(0) |= u64::from(*is_null) << bit;
            } else if *is_null {
                return Some(None);
            }
        }
        words.extend(mask);
        Some(self.groups.as_ref().and_then(|groups| groups.keys.find(&words)))
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
        self.key_columns.is_empty()
    }

    fn key_width(&self) -> usize {
        self.key_columns.iter().map(|c| c.words).sum::<usize>()
            + usize::from(self.key_columns.iter().any(|c| c.null.is_some()))
    }

    /// The key of an emitted row: its words, then a mask with a bit per key column.
    fn key(&self, word: impl Fn(usize) -> u64, key: &mut Vec<u64>) {
        key.clear();
        let mut mask = None;
        for (bit, column) in self.key_columns.iter().enumerate() {
            key.extend((column.first..column.first + column.words).map(&word));
            if let Some((at, from)) = column.null {
                *mask.get_or_insert(0) |= (word(at) >> from & 1) << bit;
            }
        }
        key.extend(mask);
    }

    /// As `apply`, for totals read from the tree and a delta that has every group at most once.
    pub fn apply_unique(
        &mut self,
        tree: &mut Tree,
        delta: &Sink,
        interner: &Interner,
        pool: &WordPool,
    ) -> Result<Flow, KernelError> {
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
            self.key(|at| words[at], &mut key);
            self.change(&mut snapshot, &key, (&before, &[]), (&after, &[]));
        }
        if overflow {
            return Err(KernelError::new("ARITHMETIC_OVERFLOW", "an aggregate leaves 128 bits"));
        }
        self.rows(&snapshot, interner, pool)
    }

    /// Adds a batch's changes up by group and returns the rows that leave and come. State is updated before anything can be refused.
    pub fn apply(
        &mut self,
        tree: &mut Tree,
        delta: &Sink,
        input: Option<&RecordBatch>,
        interner: &mut Interner,
        pool: &WordPool,
    ) -> Result<Flow, KernelError> {
        let mut changes = std::mem::replace(&mut self.changes, Groups::new(0, self.width, self.doubles));
        let group_of = self.group_changes(delta, &mut changes);
        let mut overflow = self.add_components(delta, &group_of, &mut changes);
        let outcome = self.add_arguments(delta, input, &group_of, &mut changes);
        let mut snapshot = Snapshot::default();
        let (mut key, mut before, mut after) = (Vec::new(), Vec::new(), vec![0; self.width]);
        let mut scratch = TotalScratch::default();
        for group in changes.keys.ids() {
            let change = changes.sums(group as usize);
            let words = changes.keys.values(group);
            if let Some(locator) = &self.locator {
                overflow |= tree.total(locator, words, &mut after, &mut scratch);
                before.clear();
                before.extend(after.iter().zip(change).map(|(a, c)| a.wrapping_sub(*c)));
                self.key(|at| words[at], &mut key);
                self.change(&mut snapshot, &key, (&before, &[]), (&after, &[]));
            } else {
                let is_global = self.is_global();
                let groups = self.groups.as_mut().expect("no locator, so groups");
                let held = groups.keys.len();
                let known = groups.find_or_insert(words);
                if groups.keys.len() > held {
                    self.key_texts.iter().for_each(|&text| interner.refer(words[text] as u32, 1));
                }
                let before = (groups.sums(known).to_vec(), groups.doubles(known).to_vec());
                for (sum, &by) in groups.sums[known * self.width..].iter_mut().zip(change) {
                    let (total, over) = sum.overflowing_add(by);
                    *sum = total;
                    overflow |= over;
                }
                for (sum, by) in groups.doubles[known * self.doubles..].iter_mut().zip(changes.doubles(group as usize))
                {
                    overflow |= sum.merge(by);
                }
                let is_empty = groups.sums(known)[0] == 0;
                if let Some(groups) = &self.groups {
                    self.change(
                        &mut snapshot,
                        words,
                        (&before.0, &before.1),
                        (groups.sums(known), groups.doubles(known)),
                    );
                }
                if let (true, false, Some(groups)) = (is_empty, is_global, &mut self.groups) {
                    groups.keys.remove(known as u32);
                    self.key_texts.iter().for_each(|&text| interner.refer(words[text] as u32, -1));
                }
            }
        }
        changes.clear();
        self.changes = changes;
        if outcome? || overflow {
            return Err(KernelError::new("ARITHMETIC_OVERFLOW", "an aggregate leaves 128 bits"));
        }
        self.rows(&snapshot, interner, pool)
    }

    /// A group's old row leaves and its new row comes, where there are rows.
    fn change(
        &self,
        snapshot: &mut Snapshot,
        key: &[u64],
        before: (&[i128], &[DoubleSum]),
        after: (&[i128], &[DoubleSum]),
    ) {
        if before.0.iter().eq(after.0) && before.1 == after.1 {
            return;
        }
        snapshot.may_repeat |= self.reticent && self.telling.iter().all(|&at| before.0[at] == after.0[at]);
        for ((sums, doubles), weight) in [(before, -1), (after, 1)] {
            if self.is_global() || sums[0] != 0 {
                snapshot.push(key, sums, doubles, weight);
            }
        }
    }

    fn group_changes(&self, delta: &Sink, changes: &mut Groups) -> Vec<usize> {
        let mut key = Vec::new();
        (0..delta.len())
            .map(|i| {
                if self.locator.is_some() {
                    key.clear();
                    key.extend(delta.columns.iter().map(|column| column[i]));
                } else {
                    self.key(|at| delta.columns[at][i], &mut key);
                }
                changes.find_or_insert(&key)
            })
            .collect()
    }

    fn add_components(&self, delta: &Sink, group_of: &[usize], changes: &mut Groups) -> bool {
        let mut overflow = false;
        for (i, &group) in group_of.iter().enumerate() {
            let sums = &mut changes.sums[group * self.width..(group + 1) * self.width];
            sums[0] += i128::from(delta.multiplicities[i]);
            for (sum, column) in sums[1..].iter_mut().zip(&delta.components) {
                let (total, over) = sum.overflowing_add(column[i]);
                *sum = total;
                overflow |= over;
            }
        }
        overflow
    }

    /// Adds the arguments' values; whether a sum overflowed. Sums wrap, so that the inverse batch takes back exactly what this one added.
    fn add_arguments(
        &self,
        delta: &Sink,
        input: Option<&RecordBatch>,
        group_of: &[usize],
        changes: &mut Groups,
    ) -> Result<bool, KernelError> {
        let mut overflow = false;
        for argument in &self.arguments {
            let array = argument.expression.evaluate(input.expect("decoded for arguments"))?;
            for (i, &group) in group_of.iter().enumerate() {
                if !array.is_null(i) {
                    changes.sums[group * self.width + argument.count_at] += i128::from(delta.multiplicities[i]);
                }
            }
            if let Some(at) = argument.double_at {
                for (i, value) in array.as_primitive::<Float64Type>().iter().enumerate() {
                    let sum = &mut changes.doubles[group_of[i] * self.doubles + at];
                    overflow |= value.is_some_and(|value| sum.add(value, delta.multiplicities[i]));
                }
            } else if let Some(at) = argument.sum_at {
                for (i, value) in exact_values(&array, argument.expression.data_type())?.enumerate() {
                    let sum = &mut changes.sums[group_of[i] * self.width + at];
                    let (term, over) = value.unwrap_or(0).overflowing_mul(i128::from(delta.multiplicities[i]));
                    let (total, over_again) = sum.overflowing_add(term);
                    *sum = total;
                    overflow |= over | over_again;
                }
            }
        }
        Ok(overflow)
    }

    /// Whether arguments must be evaluated on the core's rows.
    pub fn needs_input(&self) -> bool {
        !self.arguments.is_empty()
    }

    /// Whether the totals are read from the tree.
    pub fn is_stateless(&self) -> bool {
        self.locator.is_some()
    }

    /// The rows of full results of a stateless aggregate.
    pub fn rows_of_results(&self, results: &Sink, interner: &Interner, pool: &WordPool) -> Result<Flow, KernelError> {
        let mut snapshot = Snapshot::default();
        let mut key = Vec::new();
        for i in 0..results.len() {
            self.key(|at| results.columns[at][i], &mut key);
            snapshot.keys.extend_from_slice(&key);
            snapshot.sums.push(i128::from(results.multiplicities[i]));
            snapshot.sums.extend(results.components.iter().map(|c| c[i]));
            snapshot.weights.push(1);
        }
        self.rows(&snapshot, interner, pool)
    }

    /// The one row of a global aggregate over no rows.
    pub fn empty_row(&self, interner: &Interner, pool: &WordPool) -> Result<Flow, KernelError> {
        let snapshot = Snapshot {
            sums: vec![0; self.width],
            doubles: vec![DoubleSum::default(); self.doubles],
            weights: vec![1],
            ..Snapshot::default()
        };
        self.rows(&snapshot, interner, pool)
    }

    /// At most `limit` of the groups held, from position `from` on; the position to go on from, if there are more.
    pub fn held_rows(
        &self,
        from: u32,
        limit: usize,
        interner: &Interner,
        pool: &WordPool,
    ) -> Result<(Flow, Option<u32>), KernelError> {
        let groups = self.groups.as_ref().expect("asked only of operators with state");
        let mut snapshot = Snapshot::default();
        let mut next = None;
        for group in groups.keys.ids_from(from) {
            if snapshot.weights.len() == limit {
                next = Some(group);
                break;
            }
            snapshot.push(groups.keys.values(group), groups.sums(group as usize), groups.doubles(group as usize), 1);
        }
        Ok((self.rows(&snapshot, interner, pool)?, next))
    }

    fn rows(&self, snapshot: &Snapshot, interner: &Interner, pool: &WordPool) -> Result<Flow, KernelError> {
        let count = snapshot.weights.len();
        let key_width = self.key_width();
        let mut columns = Vec::with_capacity(self.key_types.len() + self.specs.len());
        let mut offset = 0;
        for (bit, (column, &data_type)) in self.key_columns.iter().zip(&self.key_types).enumerate() {
            let word = |at: usize| {
                let mut words = pool.take();
                words.extend((0..count).map(|i| snapshot.keys[i * key_width + at]));
                words
            };
            let nulls = column.null.map(|_| {
                NullBuffer::new(BooleanBuffer::collect_bool(count, |i| {
                    snapshot.keys[(i + 1) * key_width - 1] >> bit & 1 == 0
                }))
            });
            let high = (words_of(data_type) == 2).then(|| word(offset + 1));
            columns.push(codec::decode(data_type, word(offset), high, nulls, interner, pool));
            offset += column.words;
        }
        for spec in &self.specs {
            columns.push(self.finish(spec, snapshot, count)?);
        }
        Ok(Flow { columns, weights: snapshot.weights.clone(), may_repeat: snapshot.may_repeat })
    }

    /// One aggregate's results.
    fn finish(&self, spec: &Spec, snapshot: &Snapshot, count: usize) -> Result<ArrayRef, KernelError> {
        let number = |i: usize| snapshot.sums[i * self.width + spec.count_at];
        if spec.function == Function::Count {
            let values: Result<Vec<i64>, _> = (0..count).map(|i| i64::try_from(number(i))).collect();
            let values = values.map_err(|_| KernelError::new("ARITHMETIC_OVERFLOW", "a count leaves BIGINT"))?;
            return Ok(Arc::new(Int64Array::from(values)));
        }
        let exact = |i: usize| snapshot.sums[i * self.width + spec.sum_at.expect("an exact sum")];
        let nulls = NullBuffer::new(BooleanBuffer::collect_bool(count, |i| number(i) > 0));
        let nulls = Some(nulls).filter(|n| n.null_count() > 0);
        let is_avg = spec.function == Function::Avg;
        match spec.data_type {
            DataType::Double => {
                let scale = if let Some(DataType::Decimal { scale, .. }) = spec.argument_type { scale } else { 0 };
                let value = |i: usize| {
                    let sum = match spec.double_at {
                        Some(at) => snapshot.doubles[i * self.doubles + at].value(),
                        None => exact(i) as f64 / 10f64.powi(i32::from(scale)),
                    };
                    if number(i) == 0 {
                        0.0
                    } else if is_avg {
                        sum / number(i) as f64
                    } else {
                        sum
                    }
                };
                Ok(Arc::new(Float64Array::new((0..count).map(value).collect(), nulls)))
            }
            DataType::BigInt => {
                let values: Result<Vec<i64>, _> = (0..count).map(|i| i64::try_from(exact(i))).collect();
                let values = values.map_err(|_| KernelError::new("ARITHMETIC_OVERFLOW", "a SUM leaves BIGINT"))?;
                Ok(Arc::new(Int64Array::new(values.into(), nulls)))
            }
            DataType::Decimal { precision, scale } => {
                let from = if let Some(DataType::Decimal { scale, .. }) = spec.argument_type { scale } else { 0 };
                let limit = 10i128.checked_pow(u32::from(precision)).unwrap_or(i128::MAX);
                let value = |i: usize| -> Result<i128, KernelError> {
                    if number(i) == 0 {
                        return Ok(0);
                    }
                    let value = if is_avg { mean(exact(i), number(i), (scale - from) as u32) } else { Some(exact(i)) };
                    value.filter(|v| v.unsigned_abs() < limit.unsigned_abs()).ok_or_else(|| {
                        let message = format!("an aggregate does not fit decimal({precision},{scale})");
                        KernelError::new("NUMERIC_VALUE_OUT_OF_RANGE", message)
                    })
                };
                let values: Result<Vec<i128>, _> = (0..count).map(value).collect();
                let array = Decimal128Array::new(values?.into(), nulls);
                Ok(Arc::new(array.with_precision_and_scale(precision, scale).map_err(|e| crate::scan::internal(&e))?))
            }
            other => Err(KernelError::new("INVALID_PLAN", format!("no aggregate has the type {other}"))),
        }
    }
}

/// `sum * 10^digits / count`, rounded half away from zero.
fn mean(sum: i128, count: i128, digits: u32) -> Option<i128> {
    let scaled = i256::from_i128(sum).checked_mul(i256::from_i128(10i128.pow(digits)))?;
    let count = i256::from_i128(count);
    let (quotient, rest) = (scaled.checked_div(count)?, scaled.checked_rem(count)?);
    let round = rest.wrapping_abs().checked_mul(i256::from_i128(2))? >= count;
    let one = if sum < 0 { i256::MINUS_ONE } else { i256::ONE };
    (if round { quotient.checked_add(one)? } else { quotient }).to_i128()
}

impl Snapshot {
    fn push(&mut self, key: &[u64], sums: &[i128], doubles: &[DoubleSum], weight: i64) {
        push_words(&mut self.keys, key);
        match sums {
            [count] => self.sums.push(*count),
            sums => self.sums.extend_from_slice(sums),
        }
        self.doubles.extend_from_slice(doubles);
        self.weights.push(weight);
    }
}

/// The Arrow columns of emitted words.
pub fn decode_head(
    head: &HeadLayout,
    types: &[DataType],
    words: &mut [Vec<u64>],
    count: usize,
    interner: &Interner,
    pool: &WordPool,
) -> Vec<ArrayRef> {
    let nulls: Vec<Option<NullBuffer>> = head
        .columns
        .iter()
        .map(|column| {
            let (mask, bit) = column.null?;
            let masks = &words[mask];
            Some(NullBuffer::new(BooleanBuffer::collect_bool(count, |i| masks[i] >> bit & 1 == 0)))
                .filter(|n| n.null_count() > 0)
        })
        .collect();
    let arrays = head.columns.iter().zip(types).zip(nulls).map(|((column, &data_type), nulls)| {
        let low = std::mem::take(&mut words[column.first]);
        let high = (column.words == 2).then(|| std::mem::take(&mut words[column.first + 1]));
        codec::decode(data_type, low, high, nulls, interner, pool)
    });
    arrays.collect()
}
