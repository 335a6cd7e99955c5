//! After every batch the tree's result equals the nested-loop join, and the deltas add up to it.
#![allow(missing_docs)]

mod common;
use common::{Bag, Query, Random, brute, enumerate, push, queries, rows_of};
use everview_kernel::delta::{Delta, Outlet};
use everview_kernel::enumerate::Sink;
use everview_kernel::tree::{AtomChanges, Tree};
use std::collections::BTreeMap;

type Totals = BTreeMap<Vec<u64>, Vec<i128>>;

fn random_batch(
    query: &Query,
    data: &mut [Bag],
    random: &mut Random,
    sizes: &[u64],
    domain: u64,
    sets: bool,
) -> Vec<AtomChanges> {
    let mut changes = vec![AtomChanges::default(); query.atoms.len()];
    for (atom, bag) in data.iter_mut().enumerate() {
        let size = sizes[random.below(sizes.len() as u64) as usize];
        for _ in 0..size {
            let stored = query.factor_count(atom);
            if !bag.is_empty() && random.below(100) < 50 {
                let nth = random.below(bag.len() as u64) as usize;
                let row = bag.keys().nth(nth).unwrap().clone();
                let (weight, factors) = bag.get_mut(&row).unwrap();
                // the row's factors are those of its copies: remove one copy's share, all of it with the last
                let share: Vec<i128> =
                    if *weight == 1 { factors.clone() } else { factors.iter().map(|f| f / 2).collect() };
                *weight -= 1;
                for (f, s) in factors.iter_mut().zip(&share) {
                    *f -= s;
                }
                let negated: Vec<i128> = share.iter().map(|s| -s).collect();
                push(&mut changes[atom], &row, -1, &negated);
                if *weight == 0 {
                    bag.remove(&row);
                }
            } else {
                let row: Vec<u64> = query.atoms[atom].bytes().map(|_| random.below(domain)).collect();
                if sets && bag.contains_key(&row) {
                    continue;
                }
                let share: Vec<i128> = (0..stored).map(|_| i128::from(random.below(7)) - 3).collect();
                let (weight, factors) = bag.entry(row.clone()).or_insert_with(|| (0, vec![0; stored]));
                *weight += 1;
                for (f, s) in factors.iter_mut().zip(&share) {
                    *f += s;
                }
                push(&mut changes[atom], &row, 1, &share);
            }
        }
    }
    changes
}

fn add(totals: &mut Totals, rows: &[(Vec<u64>, Vec<i128>)]) {
    for (tuple, change) in rows {
        let sum = totals.entry(tuple.clone()).or_insert_with(|| vec![0; change.len()]);
        for (s, c) in sum.iter_mut().zip(change) {
            *s += c;
        }
        if sum.iter().all(|&s| s == 0) {
            totals.remove(tuple);
        }
    }
}

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
            let id = *self.ids.entry(row).or_insert_with(|| self.free.pop().unwrap_or(fresh));
            changes.sources.push(id);
        }
    }

    fn forget(&mut self, bag: &Bag) {
        let gone: Vec<Vec<u64>> = self.ids.keys().filter(|row| !bag.contains_key(*row)).cloned().collect();
        self.free.extend(gone.iter().filter_map(|row| self.ids.remove(row)));
    }
}

/// Applies a batch, perhaps with too little room for its delta, and takes it back: nothing of it is left.
fn take_back(tree: &mut Tree, changes: &[AtomChanges], random: &mut Random, at: &str) {
    let before: Totals = enumerate(tree, 3).into_iter().collect();
    let held = tree.held();
    let mut sink = Sink::new(tree);
    let room = (random.below(2) == 0).then(|| random.below(4) as usize);
    sink.set_room(room);
    let quiet = random.below(4) == 0;
    let applied = tree.apply_into(changes, (!quiet).then(|| Delta::new(&mut sink, &mut [], None)));
    assert!(applied.full || room.is_none_or(|room| sink.len() <= room), "{at}");
    tree.undo(changes);
    assert_eq!(enumerate(tree, 3).into_iter().collect::<Totals>(), before, "taken back: {at}");
    assert_eq!(tree.held(), held, "taken back: {at}");
}

/// Returns how many pieces of deltas left before their batch had been applied.
fn run(query: &Query, seed: u64, sets: bool) -> usize {
    let mut random = Random(seed);
    let mut tree = Tree::new(&query.shape());
    let mut data = vec![Bag::new(); query.atoms.len()];
    let mut sources: Vec<Option<Sources>> =
        query.atoms.iter().map(|_| (random.below(2) == 0).then(Sources::default)).collect();
    for atom in (0..sources.len()).filter(|&atom| sources[atom].is_some()) {
        tree.find_by_source(atom);
    }
    let mut summed = Totals::new();
    let mut pieces = 0;
    let domain = 2 + random.below(4);
    for step in 0..25 {
        let at = format!(
            "{} set={} factors={:?} head={} seed={seed} step={step}",
            query.name, query.set, query.factors, query.head
        );
        let mut changes = random_batch(query, &mut data, &mut random, &[0, 1, 1, 3, 8], domain, sets);
        for (atom, ids) in sources.iter_mut().enumerate() {
            if let Some(ids) = ids {
                ids.name(&mut changes[atom], query.atoms[atom].len());
                ids.forget(&data[atom]);
            }
        }
        if random.below(3) == 0 {
            take_back(&mut tree, &changes, &mut random, &at);
        }
        let quiet = random.below(10) == 0;
        let before = brute_before(&summed);
        let mut sink = Sink::new(&tree);
        let helpers = if random.below(4) == 0 { 1 + random.below(2) } else { 0 };
        let mut others: Vec<Sink> = (0..helpers).map(|_| Sink::new(&tree)).collect();
        let mut delta = Vec::new();
        let layout = tree.head().clone();
        let mut take = |sink: &mut Sink| {
            pieces += 1;
            delta.extend(rows_of(&layout, sink));
            sink.clear();
        };
        let outlet = Outlet { rows: 1 + random.below(5) as usize, take: &mut take };
        let into = Delta::new(&mut sink, &mut others, (random.below(2) == 0).then_some(outlet));
        let applied = tree.apply_into(&changes, (!quiet).then_some(into.in_shares_of(1 + random.below(3) as usize)));
        assert!(!applied.overflow);
        assert!(others.iter().all(Sink::is_empty), "everything is brought together: {at}");
        let want = brute(query, &data);
        let got = enumerate(&mut tree, 1 + random.below(5) as usize);
        let as_map: Totals = got.iter().cloned().collect();
        assert_eq!(got.len(), as_map.len(), "a result twice: {at}");
        assert_eq!(as_map, want, "result: {at}");
        if quiet {
            summed.clone_from(&want);
            continue;
        }
        delta.extend(rows_of(tree.head(), &sink));
        if !applied.consolidate {
            let distinct: std::collections::BTreeSet<_> = delta.iter().map(|(t, _)| t).collect();
            assert_eq!(distinct.len(), delta.len(), "a delta row twice: {at}");
            assert!(!query.factors.is_empty() || delta.iter().all(|(_, a)| a[0] != 0));
        }
        add(&mut summed, &delta);
        let mut want_sum = want.clone();
        want_sum.retain(|_, v| v.iter().any(|&x| x != 0));
        assert_eq!(summed, want_sum, "delta {delta:?} before {before:?}: {at}");
    }
    let everything: Vec<AtomChanges> = data
        .iter()
        .enumerate()
        .map(|(atom, bag)| {
            let mut changes = AtomChanges::default();
            for (row, (weight, factors)) in bag {
                let negated: Vec<i128> = factors.iter().map(|f| -f).collect();
                push(&mut changes, row, -weight, &negated);
            }
            if let Some(ids) = &mut sources[atom] {
                ids.name(&mut changes, query.atoms[atom].len());
            }
            changes
        })
        .collect();
    let mut sink = Sink::new(&tree);
    tree.apply(&everything, Some(&mut sink));
    add(&mut summed, &rows_of(tree.head(), &sink));
    assert_eq!(summed, Totals::new());
    assert_eq!(tree.held(), 0, "{}: everything deleted, nothing may be held", query.name);
    pieces
}

fn brute_before(summed: &Totals) -> Totals {
    summed.clone()
}

#[test]
fn bags() {
    for query in queries() {
        for seed in 0..40 {
            run(&query, seed * 7919 + 1, false);
        }
    }
}

#[test]
fn sets() {
    let mut pieces = 0;
    for query in queries() {
        for seed in 0..40 {
            pieces += run(&query, seed * 104_729 + 3, true);
        }
    }
    assert!(pieces > 1000, "{pieces}: joins of sets let their deltas go early");
}
