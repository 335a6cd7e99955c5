//! Complexity bounds on the work counters, on hand-written trees that the planner would not choose or the public API not reach.
#![allow(missing_docs)]

mod common;
use common::{Bag, N, Query, Random, brute, enumerate, proj, push, rel, rows_of};
use everview_kernel::counters::Counters;
use everview_kernel::enumerate::Sink;
use everview_kernel::tree::{Applied, AtomChanges, Tree};
use std::collections::BTreeMap;

type Change<'a> = (i64, usize, &'a [u64]);

fn query(name: &'static str, head: &'static str, atoms: &[&'static str], root: Vec<N>, set: bool) -> Query {
    Query { name, head, atoms: atoms.to_vec(), root, set, factors: Vec::new() }
}

fn batch(query: &Query, changes: &[Change]) -> Vec<AtomChanges> {
    let mut found = vec![AtomChanges::default(); query.atoms.len()];
    for &(weight, atom, row) in changes {
        push(&mut found[atom], row, weight, &vec![0; query.factor_count(atom)]);
    }
    found
}

/// The work between two readings.
fn since(before: &Counters, after: &Counters) -> Counters {
    Counters {
        updates: after.updates - before.updates,
        probes: after.probes - before.probes,
        status_changes: after.status_changes - before.status_changes,
        annotation_changes: after.annotation_changes - before.annotation_changes,
        live_changes: after.live_changes - before.live_changes,
        steps: after.steps - before.steps,
        emitted: after.emitted - before.emitted,
    }
}

/// Applies changes as one batch, with or without deltas; returns the work.
fn apply(tree: &mut Tree, query: &Query, changes: &[Change], deltas: bool) -> Counters {
    let before = *tree.counters();
    let mut sink = Sink::new(tree);
    let applied = tree.apply(&batch(query, changes), deltas.then_some(&mut sink));
    assert!(!applied.overflow);
    since(&before, tree.counters())
}

fn propagation(work: &Counters) -> u64 {
    work.status_changes + work.annotation_changes
}

/// Figure 2 of the paper: R1(a, b) and R2(b, c) with R1 on top, R2 on top, and a generalized [b] on top.
fn figure_2(tree: usize) -> Query {
    let (r1, r2) = (|hubs| rel(0, "ab", hubs), |hubs| rel(1, "bc", hubs));
    let root = match tree {
        1 => r1(vec![("b", vec![r2(vec![])])]),
        2 => r2(vec![("b", vec![r1(vec![])])]),
        _ => proj("b", vec![r1(vec![]), r2(vec![])], vec![]),
    };
    query("figure 2", "abc", &["ab", "bc"], vec![root], false)
}

/// Rows changed in one batch that lead to the same results emit copies of them: what is emitted, in which order, and the rows counted as
/// visited are those of the changes one by one.
#[test]
fn copied_results_equal_and_count_as_enumerated_ones() {
    for (set, atom) in [(false, 0), (false, 1), (false, 2), (true, 0), (true, 1), (true, 2)] {
        let tail = rel(1, "bc", vec![("c", vec![rel(2, "cd", vec![])])]);
        let root = vec![proj("b", vec![rel(0, "ab", vec![]), tail], vec![])];
        let query = query("3-hop", "abcd", &["ab", "bc", "cd"], root, set);
        let (mut at_once, mut one_by_one) = (Tree::new(&query.shape()), Tree::new(&query.shape()));
        let rows: Vec<[u64; 2]> = (0..36).map(|i| [i / 6, i % 6]).collect();
        for row in &rows {
            for tree in [&mut at_once, &mut one_by_one] {
                apply(tree, &query, &[(1, 0, row), (1, 1, row), (1, 2, row)], true);
            }
        }
        // half of the rows of each key, so that no key loses its support
        let half: Vec<&[u64; 2]> = rows.iter().filter(|row| (row[0] + row[1]) % 2 == 0).collect();
        for weight in [-1, 1] {
            let before = (*at_once.counters(), *one_by_one.counters());
            let changes: Vec<Change> = half.iter().map(|row| (weight, atom, &row[..])).collect();
            let mut sink = Sink::new(&at_once);
            at_once.apply(&batch(&query, &changes), Some(&mut sink));
            let mut apart = Vec::new();
            for &change in &changes {
                let mut sink = Sink::new(&one_by_one);
                one_by_one.apply(&batch(&query, &[change]), Some(&mut sink));
                apart.extend(rows_of(one_by_one.head(), &sink));
            }
            assert!(rows_of(at_once.head(), &sink) == apart, "set={set} atom={atom} weight={weight}");
            assert_eq!(apart.len(), 18 * 36);
            let work = [since(&before.0, at_once.counters()), since(&before.1, one_by_one.counters())];
            assert_eq!((work[0].steps, work[0].emitted), (work[1].steps, work[1].emitted));
        }
    }
}

/// Example 6.5: lambda is n on T1 and T2 and 1 on T3; so is the work per update.
#[test]
fn the_stream_of_figure_4_costs_lambda_at_height_2_and_a_constant_at_height_1() {
    for n in [1, 2, 4, 8, 16, 32, 64u64] {
        for tree_number in 1..=3 {
            let query = figure_2(tree_number);
            let mut tree = Tree::new(&query.shape());
            let long = 8 * n;
            for i in 0..long {
                apply(&mut tree, &query, &[(1, 0, &[i, 0]), (1, 1, &[1, i])], false);
            }
            let before = *tree.counters();
            for i in 0..n {
                for change in [(1, 0, [i, 1]), (-1, 0, [i, 1]), (1, 1, [0, i]), (-1, 1, [0, i])] {
                    apply(&mut tree, &query, &[(change.0, change.1, &change.2)], false);
                }
            }
            let work = since(&before, tree.counters());
            if tree_number == 3 {
                assert!(work.status_changes <= 2 * work.updates, "n={n}: {work:?}");
            } else {
                // 8n long rows with n enclosed lifespans each: on and off, and the top
                let per_long_row = work.status_changes as f64 / long as f64 / n as f64;
                assert!((2.0..=2.5).contains(&per_long_row), "T{tree_number}, n={n}: {per_long_row}");
            }
        }
    }
}

fn five(hub: &'static str) -> Vec<N> {
    assert_eq!(hub, "b");
    vec![rel(1, "bc", vec![]), rel(2, "bd", vec![]), rel(3, "be", vec![]), rel(4, "bf", vec![]), rel(5, "bg", vec![])]
}

const FIVE: [&str; 6] = ["ab", "bc", "bd", "be", "bf", "bg"];

/// A hub with five sides below a relation: a row above gains and loses support once per completed entry, not once per side.
#[test]
fn a_hub_with_five_sides_is_settled_as_one() {
    for set in [false, true] {
        for n in [1, 16, 256u64] {
            let query = query("five sides", "abcdefg", &FIVE, vec![rel(0, "ab", vec![("b", five("b"))])], set);
            let mut tree = Tree::new(&query.shape());
            for i in 0..n {
                apply(&mut tree, &query, &[(1, 0, &[i, 0])], true);
            }
            for side in 1..5 {
                assert_eq!(propagation(&apply(&mut tree, &query, &[(1, side, &[0, 0])], true)), 0, "not complete yet");
            }
            let completed = apply(&mut tree, &query, &[(1, 5, &[0, 0])], true);
            assert_eq!(completed.status_changes, n + 1, "every row above once, and the top");
            assert_eq!(completed.emitted, n);
            assert!(completed.steps <= 7 * n && completed.live_changes <= n + 5 + 1);
            assert_eq!(propagation(&apply(&mut tree, &query, &[(1, 3, &[0, 1])], true)), 0, "more of what there is");
            assert_eq!(propagation(&apply(&mut tree, &query, &[(-1, 3, &[0, 0])], true)), 0);
            let replaced =
                apply(&mut tree, &query, &[(-1, 3, &[0, 1]), (1, 3, &[0, 2]), (-1, 5, &[0, 0]), (1, 5, &[0, 9])], true);
            assert_eq!(propagation(&replaced), 0, "replaced in two sides at once");
            assert_eq!(apply(&mut tree, &query, &[(-1, 2, &[0, 0])], true).status_changes, n + 1);
        }
    }
}

/// The same query on a tree of height 1: constant for every single change of any stream.
#[test]
fn a_projection_with_six_guards_costs_a_constant() {
    for set in [false, true] {
        let mut sides = five("b");
        sides.push(rel(0, "ab", vec![]));
        let query = query("six guards", "abcdefg", &FIVE, vec![proj("b", sides, vec![])], set);
        let mut tree = Tree::new(&query.shape());
        let mut random = Random(5);
        let mut held: Vec<(usize, [u64; 2])> = Vec::new();
        for _ in 0..2000 {
            let work = if !held.is_empty() && random.below(2) == 0 {
                let (atom, row) = held.swap_remove(random.below(held.len() as u64) as usize);
                apply(&mut tree, &query, &[(-1, atom, &row)], false)
            } else {
                let atom = random.below(6) as usize;
                let (key, other) = (random.below(2), random.below(20));
                let row = if atom == 0 { [other, key] } else { [key, other] };
                held.push((atom, row));
                apply(&mut tree, &query, &[(1, atom, &row)], false)
            };
            assert!(propagation(&work) <= 2, "P(b) and the top");
            assert!(work.probes <= 3);
        }
        for (atom, row) in held {
            apply(&mut tree, &query, &[(-1, atom, &row)], false);
        }
        assert_eq!(tree.held(), 0);
    }
}

fn nested() -> Vec<N> {
    let abc = proj("abc", vec![rel(0, "abcd", vec![]), rel(1, "abce", vec![])], vec![]);
    let ab = proj("ab", vec![abc, rel(2, "abf", vec![])], vec![]);
    vec![proj("a", vec![ab, rel(3, "ag", vec![])], vec![])]
}

const NESTED: [&str; 4] = ["abcd", "abce", "abf", "ag"];

/// Projections nested three deep: a change visits one row per projection, whatever its partners; and full results need no more
/// visits per row than there are nodes.
#[test]
fn projections_nested_three_deep_cost_a_constant() {
    for (head, set) in [
        ("abcdefg", false),
        ("abcdefg", true),
        ("abc", true),
        ("ab", true),
        ("a", true),
        ("abc", false),
        ("a", false),
        ("", false),
    ] {
        for n in [1, 8, 32u64] {
            let query = query("nested", head, &NESTED, nested(), set);
            let mut tree = Tree::new(&query.shape());
            for i in 0..n {
                apply(&mut tree, &query, &[(1, 1, &[0, i, i, i]), (1, 2, &[0, i, i]), (1, 3, &[0, i])], false);
            }
            for _ in 0..3 {
                for i in 0..n {
                    for weight in [1, -1] {
                        let work = apply(&mut tree, &query, &[(weight, 0, &[0, i, i, 0])], false);
                        assert!(propagation(&work) <= 4, "{head} {set}: {work:?}");
                        assert!(work.probes <= 5);
                    }
                }
            }
            for i in 0..n {
                apply(&mut tree, &query, &[(1, 0, &[0, i, i, 0])], true);
            }
            let before = *tree.counters();
            let results = enumerate(&mut tree, 100).len() as u64;
            let work = since(&before, tree.counters());
            assert!(work.steps <= 7 * results, "{head}: {work:?}");
            assert_eq!(work.emitted, results);
        }
    }
}

fn wide() -> Vec<N> {
    let sides = vec![
        rel(1, "zb", vec![]),
        rel(2, "zc", vec![]),
        rel(3, "zd", vec![]),
        rel(4, "ze", vec![]),
        rel(5, "zf", vec![]),
    ];
    vec![proj("a", vec![rel(0, "az", vec![("z", sides)])], vec![])]
}

const WIDE: [&str; 6] = ["az", "zb", "zc", "zd", "ze", "zf"];

/// A star of five below a node that is not connex. DISTINCT: only the first and the last row of a side travel, to each row above once.
/// Bags: every changed value does (the stated bound of a fan-out), unless the sum stays what it was.
#[test]
fn a_wide_star_below_a_node_that_is_not_connex() {
    for set in [true, false] {
        for n in [1, 16, 256u64] {
            let query = query("wide", "a", &WIDE, wide(), set);
            let mut tree = Tree::new(&query.shape());
            for i in 0..n {
                apply(&mut tree, &query, &[(1, 0, &[i, 0])], false);
            }
            for side in 1..5 {
                assert_eq!(propagation(&apply(&mut tree, &query, &[(1, side, &[0, 0])], false)), 0);
            }
            let completed = apply(&mut tree, &query, &[(1, 5, &[0, 0])], false);
            assert_eq!(completed.status_changes, 2 * n + 1, "the rows, their projections, the top");
            let again = apply(&mut tree, &query, &[(1, 2, &[0, 7])], false);
            assert_eq!(again.status_changes, 0);
            // P(a) is connex and has a guard: its sum changes in place, it is visited only for deltas
            assert_eq!(again.annotation_changes, if set { 0 } else { n });
            let same = apply(&mut tree, &query, &[(-1, 2, &[0, 7]), (1, 2, &[0, 8])], true);
            assert_eq!((propagation(&same), same.emitted), (0, 0), "replaced: the sum is what it was");
            let grown = apply(&mut tree, &query, &[(1, 4, &[0, 3])], true);
            assert_eq!(grown.annotation_changes, if set { 0 } else { 2 * n });
            assert_eq!(grown.emitted, if set { 0 } else { n });
        }
    }
}

/// Insert-only streams on all shapes of this file: each row gains support from each of its hubs once, and becomes live once.
#[test]
fn insert_only_streams_cost_a_constant() {
    let shapes = [
        query("five sides", "abcdefg", &FIVE, vec![rel(0, "ab", vec![("b", five("b"))])], true),
        query("nested", "abcdefg", &NESTED, nested(), true),
        query("nested half", "ab", &NESTED, nested(), true),
        query("wide", "a", &WIDE, wide(), true),
    ];
    for query in shapes {
        for (n, domain) in [(200u64, 3), (2000, 12), (2000, 200)] {
            let mut tree = Tree::new(&query.shape());
            let mut random = Random(n);
            for _ in 0..n {
                let atom = random.below(query.atoms.len() as u64) as usize;
                let row: Vec<u64> = query.atoms[atom].bytes().map(|_| random.below(domain)).collect();
                apply(&mut tree, &query, &[(1, atom, &row)], false);
            }
            let work = *tree.counters();
            assert!(work.status_changes <= 5 * n, "{}: {work:?}", query.name);
            assert!(work.maintenance() <= 12 * n, "{}: {work:?}", query.name);
            let held = tree.held() as u64;
            let marked = apply(&mut tree, &query, &[], true);
            assert!(marked.live_changes <= held + 1);
        }
    }
}

/// More than eight components: values of parent rows no longer fit the array on the stack.
#[test]
fn ten_components_equal_recomputation() {
    let factors: Vec<Vec<usize>> =
        (0..9).map(|c| (0..3).filter(|atom| c >> atom & 1 == 1 || c == 8).collect()).collect();
    let hop = || vec![rel(1, "bc", vec![("b", vec![rel(0, "ab", vec![])]), ("c", vec![rel(2, "cd", vec![])])])];
    for (head, root) in [("bc", hop()), ("", hop()), ("b", vec![proj("b", hop(), vec![])]), ("abcd", hop())] {
        let query = Query {
            name: "ten components",
            head,
            atoms: vec!["ab", "bc", "cd"],
            root,
            set: false,
            factors: factors.clone(),
        };
        assert!(query.shape().components + 1 > 8);
        let mut tree = Tree::new(&query.shape());
        let mut data = vec![Bag::new(); 3];
        let mut summed: BTreeMap<Vec<u64>, Vec<i128>> = BTreeMap::new();
        let mut random = Random(17);
        for _ in 0..60 {
            let mut changes = vec![AtomChanges::default(); 3];
            for (atom, bag) in data.iter_mut().enumerate() {
                for _ in 0..random.below(4) {
                    let row = vec![random.below(3), random.below(3)];
                    if let Some((weight, factors)) = bag.remove(&row) {
                        let negated: Vec<i128> = factors.iter().map(|f| -f).collect();
                        push(&mut changes[atom], &row, -weight, &negated);
                    } else {
                        let weight = 1 + random.below(2) as i64;
                        let own: Vec<i128> =
                            (0..query.factor_count(atom)).map(|_| i128::from(random.below(9)) - 4).collect();
                        push(&mut changes[atom], &row, weight, &own);
                        bag.insert(row, (weight, own));
                    }
                }
            }
            let mut sink = Sink::new(&tree);
            assert!(!tree.apply(&changes, Some(&mut sink)).overflow);
            for (tuple, change) in rows_of(tree.head(), &sink) {
                let sum = summed.entry(tuple).or_insert_with(|| vec![0; change.len()]);
                sum.iter_mut().zip(&change).for_each(|(s, c)| *s += c);
            }
            summed.retain(|_, v| v.iter().any(|&x| x != 0));
            let mut want = brute(&query, &data);
            let got: BTreeMap<_, _> = enumerate(&mut tree, 3).into_iter().collect();
            assert_eq!(got, want, "head {head}");
            want.retain(|_, v| v.iter().any(|&x| x != 0));
            assert_eq!(summed, want, "head {head}");
        }
    }
}

/// An atom, a change of multiplicity, a row and the change of its factors.
type Huge = (usize, i64, &'static [u64], Vec<i128>);

/// The same, borrowed.
type Given<'a> = (usize, i64, &'a [u64], &'a [i128]);

/// A tree with sums of products over the ends of a 3-hop, and a twin that never sees what is undone.
struct Twins {
    query: Query,
    tree: Tree,
    twin: Tree,
}

impl Twins {
    fn new(head: &'static str, root: Vec<N>) -> Self {
        let query = Query {
            name: "overflow",
            head,
            atoms: vec!["ab", "bc", "cd"],
            root,
            set: false,
            factors: vec![vec![0, 2], vec![1]],
        };
        let (tree, twin) = (Tree::new(&query.shape()), Tree::new(&query.shape()));
        let mut twins = Self { query, tree, twin };
        for i in 0..3 {
            twins.both(&[(0, 1, &[i, i], &[5]), (1, 2, &[i, i], &[-7]), (2, 1, &[i, i], &[11])]);
            twins.both(&[(0, 1, &[i, 0], &[2]), (1, 1, &[0, i + 1], &[3]), (2, 3, &[0, i + 1], &[4])]);
        }
        twins
    }

    fn changes(&self, changes: &[Given]) -> Vec<AtomChanges> {
        let mut found = vec![AtomChanges::default(); self.query.atoms.len()];
        for &(atom, weight, row, factors) in changes {
            push(&mut found[atom], row, weight, factors);
        }
        found
    }

    /// Applies a batch to both; their deltas must be equal.
    fn both(&mut self, changes: &[Given]) {
        let changes = self.changes(changes);
        let delta = |tree: &mut Tree| {
            let mut sink = Sink::new(tree);
            assert!(!tree.apply(&changes, Some(&mut sink)).overflow);
            let mut sums: BTreeMap<Vec<u64>, Vec<i128>> = BTreeMap::new();
            for (tuple, change) in rows_of(tree.head(), &sink) {
                let sum = sums.entry(tuple).or_insert_with(|| vec![0; change.len()]);
                sum.iter_mut().zip(&change).for_each(|(s, c)| *s += c);
            }
            sums
        };
        assert_eq!(delta(&mut self.tree), delta(&mut self.twin));
    }

    fn attempt(&mut self, changes: &[Given], deltas: bool) -> Applied {
        let changes = self.changes(changes);
        let mut sink = Sink::new(&self.tree);
        let applied = self.tree.apply(&changes, deltas.then_some(&mut sink));
        let inverse: Vec<AtomChanges> = changes.iter().map(AtomChanges::inverse).collect();
        let mut sink = Sink::new(&self.tree);
        self.tree.apply(&inverse, deltas.then_some(&mut sink));
        applied
    }

    fn equal(&mut self) {
        let sorted = |tree: &mut Tree| enumerate(tree, 4).into_iter().collect::<BTreeMap<_, _>>();
        assert_eq!(sorted(&mut self.tree), sorted(&mut self.twin));
        assert_eq!(self.tree.count(false), self.twin.count(false));
        assert_eq!(self.tree.count(true), self.twin.count(true));
        assert_eq!(self.tree.held(), self.twin.held());
    }
}

/// A batch that overflows is reported, and its inverse restores results, counts and further deltas exactly.
#[test]
fn overflow_is_reported_and_undone_exactly() {
    let hop = || vec![rel(1, "bc", vec![("b", vec![rel(0, "ab", vec![])]), ("c", vec![rel(2, "cd", vec![])])])];
    let huge = i128::MAX / 4;
    for (head, root) in [("bc", hop()), ("abcd", hop()), ("", hop()), ("b", vec![proj("b", hop(), vec![])])] {
        let mut twins = Twins::new(head, root);
        twins.equal();
        let cases: Vec<Vec<Huge>> = vec![
            vec![(0, 1, &[9, 0], vec![huge]), (2, 1, &[0, 9], vec![huge])], // a product
            vec![(0, 1, &[9, 0], vec![i128::MAX]), (0, 1, &[9, 0], vec![i128::MAX]), (1, 1, &[9, 9], vec![1])], // a factor
            vec![(0, 1, &[9, 0], vec![i128::MAX]), (0, 1, &[8, 0], vec![i128::MAX]), (0, 1, &[7, 0], vec![i128::MAX])], // a sum, or products
            vec![(0, 1 << 62, &[9, 0], vec![1]), (1, 1 << 62, &[0, 0], vec![1]), (2, 1 << 62, &[0, 9], vec![1])], // multiplicities
            vec![(0, 1 << 32, &[9, 0], vec![1 << 64]), (2, 1 << 32, &[0, 9], vec![1 << 64])], // wraps round to zero
        ];
        for (number, case) in cases.iter().enumerate() {
            let changes: Vec<Given> = case.iter().map(|(a, w, r, f)| (*a, *w, *r, f.as_slice())).collect();
            let applied = twins.attempt(&changes, true);
            assert!(applied.overflow, "head {head:?}, case {number}");
            twins.equal();
            twins.both(&[(0, 1, &[number as u64, 2], &[6]), (1, 1, &[2, 0], &[1]), (2, 1, &[2, number as u64], &[-1])]);
            twins.equal();
            twins.attempt(&changes, false); // whether reported or not: undone as exactly
            twins.equal();
            twins.both(&[(0, -1, &[number as u64, 2], &[-6]), (1, -1, &[2, 0], &[-1])]);
            twins.both(&[(2, -1, &[2, number as u64], &[1])]);
            twins.equal();
        }
    }
}

/// Values are multiplied lazily in connex parents, so without deltas nothing multiplies them during the batch: an overflow is reported
/// at the latest when the result is read, and undone as exactly.
#[test]
fn overflow_is_reported_without_deltas_when_the_result_is_read() {
    let hop = || vec![rel(1, "bc", vec![("b", vec![rel(0, "ab", vec![])]), ("c", vec![rel(2, "cd", vec![])])])];
    let huge = i128::MAX / 4;
    for (head, root) in [("bc", hop()), ("abcd", hop()), ("", hop()), ("b", vec![proj("b", hop(), vec![])])] {
        let mut twins = Twins::new(head, root);
        let cases: [[Given; 2]; 2] = [
            [(0, 1, &[9, 0], &[huge]), (2, 1, &[0, 9], &[huge])],
            [(0, 1 << 62, &[9, 0], &[1]), (2, 1 << 62, &[0, 9], &[1])],
        ];
        for case in &cases {
            let changes = twins.changes(case);
            let mut reported = twins.tree.apply(&changes, None).overflow;
            let (mut walk, mut sink) = twins.tree.results();
            loop {
                reported |= twins.tree.next_results(&mut walk, &mut sink, 10);
                if sink.is_empty() {
                    break;
                }
            }
            assert!(reported, "head {head:?}");
            let inverse: Vec<AtomChanges> = changes.iter().map(AtomChanges::inverse).collect();
            twins.tree.apply(&inverse, None);
            twins.equal();
            twins.both(&[(0, 1, &[7, 0], &[1])]);
            twins.both(&[(0, -1, &[7, 0], &[-1])]);
            twins.equal();
        }
    }
}
