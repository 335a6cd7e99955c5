//! Random trees of required, exists, forbids and optional edges: after every batch the tree's answers equal the definition, and the
//! deltas add up to them.
#![allow(missing_docs)]

mod common;
use common::Random;
use common::random_tree::{RandomTree, Results, Table, Value, emitted};
use everview_kernel::consolidate::consolidate;
use everview_kernel::delta::{Delta, Outlet};
use everview_kernel::enumerate::Sink;
use everview_kernel::shape::EdgeKind;
use everview_kernel::totals::TotalScratch;
use everview_kernel::tree::{AtomChanges, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// The ids of an atom's rows in their base table: a row keeps its id while it is held, and ids are used again.
#[derive(Default)]
struct Sources {
    ids: BTreeMap<Vec<u64>, u32>,
    free: Vec<u32>,
}

impl Sources {
    fn name(&mut self, changes: &mut AtomChanges, width: usize) {
        for i in 0..changes.weights.len() {
            let fresh = self.ids.len() as u32 + self.free.len() as u32;
            let row = changes.words[i * width..(i + 1) * width].to_vec();
            changes.sources.push(*self.ids.entry(row).or_insert_with(|| self.free.pop().unwrap_or(fresh)));
        }
    }

    fn forget(&mut self, held: &BTreeSet<Vec<u64>>) {
        let gone: Vec<Vec<u64>> = self.ids.keys().filter(|row| !held.contains(*row)).cloned().collect();
        self.free.extend(gone.iter().filter_map(|row| self.ids.remove(row)));
    }
}

struct Case {
    query: RandomTree,
    tree: Tree,
    data: Vec<Table>,
    sources: Vec<Option<Sources>>,
    summed: Results,
    domain: u64,
    sets: bool,
    /// What is being done, for messages.
    at: String,
}

impl Case {
    fn new(seed: u64, random: &mut Random) -> Self {
        let query = RandomTree::new(random);
        let mut tree = Tree::new(&query.shape);
        let mut sources = Vec::new();
        for atom in 0..query.atoms.len() {
            let named = random.below(3) == 0;
            if named {
                tree.find_by_source(atom);
            }
            sources.push(named.then(Sources::default));
        }
        let data = vec![Table::new(); query.tables.len()];
        let at = format!("seed {seed}: {query:#?}");
        let (domain, sets) = (2 + random.below(2), random.below(2) == 0);
        Self { query, tree, data, sources, summed: Results::new(), domain, sets, at }
    }

    fn random_row(&self, table: usize, random: &mut Random) -> Vec<Value> {
        let columns = self.query.columns_of(table);
        let value = |&v: &usize| {
            let is_null = self.query.has_nulls[v] && random.below(4) == 0;
            (!is_null).then(|| 1 + random.below(self.domain))
        };
        columns.iter().map(value).collect()
    }

    /// Random changes of some tables, fanned out to the atoms that read them.
    fn random_batch(&mut self, random: &mut Random) -> Vec<AtomChanges> {
        let mut changes = vec![AtomChanges::default(); self.query.atoms.len()];
        let only = (random.below(2) == 0).then(|| random.below(self.data.len() as u64) as usize);
        for table in (0..self.data.len()).filter(|&table| only.is_none_or(|only| only == table)) {
            for _ in 0..[0, 1, 1, 2, 5][random.below(5) as usize] {
                let held = self.data[table].len() as u64;
                let (row, weight) = if held > 0 && random.below(100) < 30 + 8 * held.min(6) {
                    let row = self.data[table].keys().nth(random.below(held) as usize).unwrap().clone();
                    (row, -1)
                } else {
                    let row = self.random_row(table, random);
                    if self.sets && self.data[table].contains_key(&row) {
                        continue;
                    }
                    (row, 1)
                };
                self.change(table, &row, weight, &mut changes);
            }
        }
        self.name_sources(&mut changes);
        changes
    }

    fn change(&mut self, table: usize, row: &[Value], weight: i64, changes: &mut [AtomChanges]) {
        let count = self.data[table].entry(row.to_vec()).or_insert(0);
        *count += weight;
        if *count == 0 {
            self.data[table].remove(row);
        }
        for (atom, changes) in changes.iter_mut().enumerate() {
            if self.query.atoms[atom].table == table {
                self.query.push(atom, row, weight, changes);
            }
        }
    }

    fn name_sources(&mut self, changes: &mut [AtomChanges]) {
        for (atom, ids) in self.sources.iter_mut().enumerate() {
            let Some(ids) = ids else { continue };
            ids.name(&mut changes[atom], self.tree.atom_width(atom));
            let of = &self.query.atoms[atom];
            let columns = &self.query.shape.nodes[of.node].columns;
            let stored = |row: &&Vec<Value>| row.iter().zip(&of.drops_null).all(|(v, drops)| v.is_some() || !drops);
            let rows = self.data[of.table].keys().filter(stored);
            ids.forget(&rows.map(|row| self.query.encode(columns, row)).collect());
        }
    }

    fn enumerate(&mut self, chunk: usize) -> Vec<(Vec<Value>, Vec<i128>)> {
        let (mut walk, mut sink) = self.tree.results();
        let mut rows = Vec::new();
        loop {
            assert!(!self.tree.next_results(&mut walk, &mut sink, chunk), "out of range");
            if sink.is_empty() {
                return rows;
            }
            rows.extend(emitted(self.tree.head(), &sink));
        }
    }

    /// Applies a batch, perhaps with too little room for its delta, and takes it back: nothing of it is left.
    fn take_back(&mut self, changes: &[AtomChanges], random: &mut Random) {
        let before: Results = self.enumerate(3).into_iter().collect();
        let held = self.tree.held();
        let mut sink = Sink::new(&self.tree);
        sink.set_room((random.below(2) == 0).then(|| random.below(4) as usize));
        let quiet = random.below(4) == 0;
        self.tree.apply_into(changes, (!quiet).then(|| Delta::new(&mut sink, &mut [], None)));
        self.tree.undo(changes);
        assert_eq!(self.enumerate(3).into_iter().collect::<Results>(), before, "taken back: {}", self.at);
        assert_eq!(self.tree.held(), held, "taken back: {}", self.at);
    }

    /// Applies a batch with values that leave their range, and takes it back: ring arithmetic undoes what it did.
    fn overflow(&mut self, random: &mut Random) -> bool {
        let before: Results = self.enumerate(3).into_iter().collect();
        let held = self.tree.held();
        let mut changes = vec![AtomChanges::default(); self.query.atoms.len()];
        for table in 0..self.data.len() {
            for _ in 0..random.below(3) {
                let row = self.random_row(table, random);
                let weight = 1 << (40 + random.below(21));
                for (atom, changes) in changes.iter_mut().enumerate() {
                    if self.query.atoms[atom].table == table {
                        self.query.push(atom, &row, weight, changes);
                    }
                }
            }
        }
        for factor in changes.iter_mut().flat_map(|changes| &mut changes.factors) {
            *factor = factor.wrapping_mul(1 << (20 + random.below(60)));
        }
        for (atom, ids) in self.sources.iter_mut().enumerate() {
            if let Some(ids) = ids {
                ids.name(&mut changes[atom], self.tree.atom_width(atom));
            }
        }
        let mut sink = Sink::new(&self.tree);
        let quiet = random.below(3) == 0;
        let overflow = self.tree.apply(&changes, (!quiet).then_some(&mut sink)).overflow;
        self.tree.undo(&changes);
        self.name_sources(&mut vec![AtomChanges::default(); self.query.atoms.len()]);
        assert_eq!(self.enumerate(3).into_iter().collect::<Results>(), before, "out of range: {}", self.at);
        assert_eq!(self.tree.held(), held, "out of range: {}", self.at);
        overflow
    }

    /// Applies a batch; its delta makes the results before to those after. Returns the rows of the delta that left early.
    fn apply(&mut self, changes: &[AtomChanges], random: &mut Random) -> usize {
        let want = self.query.results(&self.data);
        if random.below(10) == 0 {
            assert!(!self.tree.apply(changes, None).overflow);
            self.summed.clone_from(&want);
            return 0;
        }
        let mut sink = Sink::new(&self.tree);
        let mut others: Vec<Sink> = (0..random.below(3)).map(|_| Sink::new(&self.tree)).collect();
        let head = self.tree.head().clone();
        let mut delta = Vec::new();
        let mut take = |sink: &mut Sink| {
            delta.extend(emitted(&head, sink));
            sink.clear();
        };
        let outlet = Outlet { rows: 1 + random.below(5) as usize, take: &mut take };
        let into = Delta::new(&mut sink, &mut others, (random.below(2) == 0).then_some(outlet));
        let applied = self.tree.apply_into(changes, Some(into.in_shares_of(1 + random.below(3) as usize)));
        assert!(!applied.overflow && !applied.full, "{}", self.at);
        let early = delta.len();
        if applied.consolidate {
            assert!(!consolidate(&mut sink));
        }
        delta.extend(emitted(&head, &sink));
        let distinct: BTreeSet<_> = delta.iter().map(|(tuple, _)| tuple).collect();
        assert_eq!(distinct.len(), delta.len(), "a row of the delta twice: {}", self.at);
        let before = self.summed.clone();
        for (tuple, change) in &delta {
            let sum = self.summed.entry(tuple.clone()).or_insert_with(|| vec![0; change.len()]);
            sum.iter_mut().zip(change).for_each(|(s, c)| *s += c);
        }
        self.summed.retain(|_, sum| sum.iter().any(|&s| s != 0));
        let mut want = want;
        want.retain(|_, sum| sum.iter().any(|&s| s != 0));
        assert_eq!(self.summed, want, "delta {delta:?} on {before:?}: {}", self.at);
        early
    }

    /// Results, counts, totals and look-ups. Returns the number of results.
    fn check(&mut self, random: &mut Random) -> usize {
        let want = self.query.results(&self.data);
        let got = self.enumerate(1 + random.below(5) as usize);
        let as_map: Results = got.iter().cloned().collect();
        assert_eq!(got.len(), as_map.len(), "a result twice: {}", self.at);
        assert_eq!(as_map, want, "results of {:?}: {}", self.data, self.at);
        let rows: i128 = want.values().map(|annotation| annotation[0]).sum();
        assert_eq!(self.tree.count(false), Some(rows), "{}", self.at);
        assert_eq!(self.tree.count(true), Some(want.len() as i128), "{}", self.at);
        self.check_totals(&want, random);
        self.check_lookups(&want, random);
        want.len()
    }

    /// Some tuple of the head, which is perhaps a result.
    fn random_tuple(&self, want: &Results, random: &mut Random) -> Vec<Value> {
        let mut tuple = match want.len() as u64 {
            0 => vec![None; self.query.shape.head.len()],
            some => want.keys().nth(random.below(some) as usize).unwrap().clone(),
        };
        for (value, &v) in tuple.iter_mut().zip(&self.query.shape.head) {
            if random.below(6) == 0 {
                let is_null = self.query.shape.variables[v].nullable && random.below(2) == 0;
                *value = (!is_null).then(|| 1 + random.below(self.domain));
            }
            if value.is_none() && !self.query.shape.variables[v].nullable {
                *value = Some(1);
            }
        }
        tuple
    }

    fn check_totals(&mut self, want: &Results, random: &mut Random) {
        if self.query.shape.set {
            return;
        }
        let locator = self.tree.result_locator(&self.query.shape);
        let head = self.tree.head().clone();
        for _ in 0..6 {
            let tuple = self.random_tuple(want, random);
            let mut words = vec![0; head.words.len()];
            for (column, value) in head.columns.iter().zip(&tuple) {
                if let Some(value) = value {
                    words[column.first] = *value;
                } else {
                    let (word, bit) = column.null.expect("room for NULL");
                    words[word] |= 1 << bit;
                }
            }
            let mut total = vec![0; 1 + self.query.shape.components];
            assert!(!self.tree.total(&locator, &words, &mut total, &mut TotalScratch::default()));
            let expected = want.get(&tuple).cloned().unwrap_or_else(|| vec![0; total.len()]);
            assert_eq!(total, expected, "total of {tuple:?}: {}", self.at);
        }
    }

    fn check_lookups(&mut self, want: &Results, random: &mut Random) {
        let shape = &self.query.shape;
        let nodes = shape.nodes.iter().filter(|node| node.connex).map(|node| node.columns.clone());
        let hubs = shape.hubs.iter().filter(|hub| hub.parent.is_some_and(|n| shape.nodes[n].connex));
        let indexed: Vec<Vec<usize>> = nodes.chain(hubs.map(|hub| hub.key.clone())).collect();
        for variables in indexed {
            let tuple = self.random_tuple(want, random);
            let place = |v: &usize| self.query.shape.head.iter().position(|h| h == v).unwrap();
            let asked: Vec<Value> = variables.iter().map(|v| tuple[place(v)]).collect();
            let words = |(&v, value): (&usize, &Value)| {
                let mut words = vec![0; self.query.shape.variables[v].words];
                words[0] = value.unwrap_or(0);
                (words, value.is_none())
            };
            let values: Vec<(Vec<u64>, bool)> = variables.iter().zip(&asked).map(words).collect();
            let expected: Results = want
                .iter()
                .filter(|(tuple, _)| variables.iter().zip(&asked).all(|(v, value)| tuple[place(v)] == *value))
                .map(|(tuple, annotation)| (tuple.clone(), annotation.clone()))
                .collect();
            let Some((mut walk, mut sink)) = self.tree.lookup(&variables, &values) else {
                // only phantoms, of which there is no index, may be in the way
                assert!(self.query.has_kind(EdgeKind::Optional), "{}", self.at);
                continue;
            };
            let mut got = Vec::new();
            loop {
                assert!(!self.tree.next_lookup(&mut walk, &mut sink, 1 + random.below(3) as usize));
                if sink.is_empty() {
                    break;
                }
                got.extend(emitted(self.tree.head(), &sink));
            }
            let as_map: Results = got.iter().cloned().collect();
            assert_eq!(got.len(), as_map.len(), "a result twice: {}", self.at);
            assert_eq!(as_map, expected, "look-up of {variables:?} = {asked:?}: {}", self.at);
        }
    }

    /// Deletes everything: nothing is held then.
    fn clear(&mut self, random: &mut Random) {
        let mut changes = vec![AtomChanges::default(); self.query.atoms.len()];
        for table in 0..self.data.len() {
            for (row, weight) in self.data[table].clone() {
                self.change(table, &row, -weight, &mut changes);
            }
        }
        self.name_sources(&mut changes);
        self.apply(&changes, random);
        self.check(random);
        assert_eq!(self.tree.held(), 0, "everything deleted, nothing may be held: {}", self.at);
    }
}

/// What was met on the way: a test that meets little shows little.
#[derive(Debug, Default)]
struct Met {
    /// States with results.
    with_results: usize,
    /// Rows of deltas that left early.
    early: usize,
    /// Batches that left the range of values.
    overflows: usize,
    /// Trees with required, exists, forbids and optional edges, and with an optional one that shows phantoms below another.
    kinds: [usize; 5],
}

fn run(seed: u64, steps: usize, met: &mut Met) {
    let mut random = Random(seed * 7919 + 1);
    let mut case = Case::new(seed, &mut random);
    for step in 0..steps {
        let changes = case.random_batch(&mut random);
        case.at = format!("step {step} of seed {seed}: {:#?}", case.query);
        if random.below(3) == 0 {
            case.take_back(&changes, &mut random);
        }
        met.early += case.apply(&changes, &mut random);
        if random.below(6) == 0 {
            met.overflows += usize::from(case.overflow(&mut random));
        }
        met.with_results += usize::from(case.check(&mut random) > 0);
    }
    case.clear(&mut random);
    let kinds = [EdgeKind::Required, EdgeKind::Exists, EdgeKind::Forbids, EdgeKind::Optional];
    let here = kinds.map(|kind| case.query.has_kind(kind)).into_iter().chain([case.query.nests_phantoms()]);
    met.kinds.iter_mut().zip(here).for_each(|(count, is_here)| *count += usize::from(is_here));
}

fn run_seeds(seeds: std::ops::Range<u64>) {
    let (mut met, steps) = (Met::default(), 12);
    let trees = seeds.clone().count();
    seeds.for_each(|seed| run(seed, steps, &mut met));
    assert!(met.with_results > trees * steps / 4 && met.early > 100 && met.overflows > 100, "{met:?}");
    assert!(met.kinds.iter().all(|&count| count > trees / 50), "{met:?}");
}

fn seeds() -> u64 {
    std::env::var("EVERVIEW_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2000)
}

#[test]
fn small_seeds() {
    run_seeds(0..seeds() / 2);
}

#[test]
fn large_seeds() {
    run_seeds(1_000_000..1_000_000 + seeds() / 2);
}
