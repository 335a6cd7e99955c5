//! What changes below each kind of edge cost, on the work counters.
#![allow(missing_docs)]

mod common;
use common::{N, Query, Random, push, rel};
use everview_kernel::counters::Counters;
use everview_kernel::enumerate::Sink;
use everview_kernel::shape::{EdgeKind, TreeShape};
use everview_kernel::tree::{AtomChanges, Tree};

type Change<'a> = (i64, usize, &'a [u64]);

/// A tree over `root` in which the hub below this node (in order of the shape's hubs) has a kind of its own.
fn shape(head: &'static str, atoms: &[&'static str], root: N, hub: usize, kind: EdgeKind, set: bool) -> TreeShape {
    let query = Query { name: "", head, atoms: atoms.to_vec(), root: vec![root], set, factors: Vec::new() };
    let mut shape = query.shape();
    shape.hubs[hub].kind = kind;
    shape.allow_phantoms();
    shape
}

struct Counted {
    tree: Tree,
    atoms: usize,
    /// Per atom whether its rows end in a mask word.
    masked: Vec<bool>,
}

impl Counted {
    fn new(shape: &TreeShape) -> Self {
        let tree = Tree::new(shape);
        let columns = |atom| shape.nodes.iter().find(|node| node.atom == Some(atom)).unwrap().columns.len();
        let atoms = shape.nodes.iter().filter(|node| node.atom.is_some()).count();
        let masked = (0..atoms).map(|atom| tree.atom_width(atom) > columns(atom)).collect();
        Self { tree, atoms, masked }
    }

    /// The work of one batch, and whether its delta needs netting.
    fn apply(&mut self, changes: &[Change], deltas: bool) -> (Counters, bool) {
        let mut batch = vec![AtomChanges::default(); self.atoms];
        for &(weight, atom, row) in changes {
            let mut words = row.to_vec();
            words.extend(self.masked[atom].then_some(0));
            push(&mut batch[atom], &words, weight, &[]);
        }
        let before = *self.tree.counters();
        let mut sink = Sink::new(&self.tree);
        let applied = self.tree.apply(&batch, deltas.then_some(&mut sink));
        let after = self.tree.counters();
        let work = Counters {
            updates: after.updates - before.updates,
            probes: after.probes - before.probes,
            status_changes: after.status_changes - before.status_changes,
            annotation_changes: after.annotation_changes - before.annotation_changes,
            live_changes: after.live_changes - before.live_changes,
            steps: after.steps - before.steps,
            emitted: after.emitted - before.emitted,
        };
        (work, applied.consolidate)
    }

    fn work(&mut self, changes: &[Change], deltas: bool) -> Counters {
        self.apply(changes, deltas).0
    }
}

fn propagation(work: &Counters) -> u64 {
    work.status_changes + work.annotation_changes
}

/// R(a, b) whose rows need, or must not have, a row of S(b, z).
fn semi_join(kind: EdgeKind, set: bool) -> Counted {
    let root = rel(0, "ab", vec![("b", vec![rel(1, "bz", vec![])])]);
    Counted::new(&shape("ab", &["ab", "bz"], root, 1, kind, set))
}

/// Rows below a NOT EXISTS that only come: each blocks the rows with its key once, whatever their number, so the whole stream flips each row
/// above at most once, and an update costs a constant amortised.
#[test]
fn an_insert_only_stream_below_not_exists_costs_a_constant() {
    for kind in [EdgeKind::Exists, EdgeKind::Forbids] {
        for set in [false, true] {
            for (n, keys) in [(500u64, 5), (2000, 40), (2000, 1000)] {
                let mut counted = semi_join(kind, set);
                for i in 0..n {
                    counted.work(&[(1, 0, &[i, i % keys])], false);
                }
                let before = *counted.tree.counters();
                let mut random = Random(n);
                for i in 0..n {
                    counted.work(&[(1, 1, &[random.below(keys), i])], i % 2 == 0);
                }
                let after = counted.tree.counters();
                let status_changes = after.status_changes - before.status_changes;
                assert!(status_changes <= n + 2, "{kind:?}: {status_changes} for {n} rows above, and the top");
                assert_eq!(after.annotation_changes, before.annotation_changes);
                assert!(after.probes - before.probes <= 3 * n);
            }
        }
    }
}

/// The last blocking row that leaves visits exactly the rows that it frees; one of several, or one that another replaces, none.
#[test]
fn the_last_blocking_row_visits_the_rows_it_frees() {
    for set in [false, true] {
        for n in [1, 16, 256u64] {
            let mut counted = semi_join(EdgeKind::Forbids, set);
            for i in 0..n {
                counted.work(&[(1, 0, &[i, 0]), (1, 0, &[i, 1])], true);
            }
            let blocked = counted.work(&[(1, 1, &[0, 7])], true);
            assert_eq!((blocked.status_changes, blocked.emitted), (n, n), "the top is alive by the other key");
            assert_eq!(propagation(&counted.work(&[(1, 1, &[0, 8])], true)), 0, "one more");
            assert_eq!(propagation(&counted.work(&[(-1, 1, &[0, 7])], true)), 0, "one of two");
            assert_eq!(propagation(&counted.work(&[(-1, 1, &[0, 8]), (1, 1, &[0, 9])], true)), 0, "replaced");
            let elsewhere = counted.work(&[(1, 1, &[5, 9]), (-1, 1, &[5, 9])], true);
            assert_eq!(propagation(&elsewhere), 0, "no row above has the key");
            let freed = counted.work(&[(-1, 1, &[0, 9])], true);
            assert_eq!((freed.status_changes, freed.emitted, freed.annotation_changes), (n, n, 0));
            let born = counted.work(&[(1, 0, &[n, 0])], true);
            assert_eq!((propagation(&born), born.emitted), (0, 1), "a row that nothing blocks");
        }
    }
}

/// Multiplicities below an exists or forbids edge are nobody's business, and neither are further rows.
#[test]
fn values_do_not_pass_support_edges() {
    for kind in [EdgeKind::Exists, EdgeKind::Forbids] {
        let mut counted = semi_join(kind, false);
        for i in 0..10 {
            counted.work(&[(1, 0, &[i, 0])], true);
        }
        counted.work(&[(1, 1, &[0, 0])], true);
        let more = counted.work(&[(5, 1, &[0, 0]), (2, 1, &[0, 1])], true);
        assert_eq!((propagation(&more), more.emitted), (0, 0), "{kind:?}");
    }
}

/// An optional edge stops propagation: below U(u, a), R(a, b) and an optional S(b, c), a change of S flips phantoms of rows of R, visited
/// for deltas only, and nothing above changes its status.
#[test]
fn an_optional_edge_stops_propagation() {
    for set in [false, true] {
        for n in [1, 16, 256u64] {
            let s = rel(2, "bc", vec![]);
            let root = rel(0, "ua", vec![("a", vec![rel(1, "ab", vec![("b", vec![s])])])]);
            let mut counted = Counted::new(&shape("uabc", &["ua", "ab", "bc"], root, 2, EdgeKind::Optional, set));
            for i in 0..n {
                counted.work(&[(1, 0, &[i, i]), (1, 1, &[i, 0])], true);
            }
            for i in 0..5 * n {
                counted.work(&[(1, 1, &[1000 + i, 0])], true); // in no result
            }
            let (first, needs_netting) = counted.apply(&[(1, 2, &[0, 1])], true);
            assert_eq!((first.status_changes, first.annotation_changes), (0, n), "live rows of R only");
            assert_eq!(first.emitted, 2 * n, "results through the phantom leave, others come");
            assert!(!needs_netting, "c is never NULL in rows");
            let second = counted.work(&[(1, 2, &[0, 2])], true);
            assert_eq!((propagation(&second), second.emitted), (0, n));
            let replaced = counted.work(&[(-1, 2, &[0, 1]), (-1, 2, &[0, 2]), (1, 2, &[0, 3])], true);
            assert_eq!((propagation(&replaced), replaced.emitted), (0, 3 * n), "the phantom did not come");
            let last = counted.work(&[(-1, 2, &[0, 3])], true);
            assert_eq!((last.status_changes, last.annotation_changes, last.emitted), (0, n, 2 * n));
            let quiet = counted.work(&[(1, 2, &[0, 4])], false);
            assert_eq!(propagation(&quiet), 0, "without deltas nothing above is visited");
        }
    }
}

/// An optional child outside the connex part passes a value to live rows above, for deltas only; nothing for DISTINCT.
#[test]
fn an_optional_value_is_multiplied_lazily() {
    for set in [false, true] {
        let n = 50;
        let root = rel(0, "ua", vec![("a", vec![rel(1, "ab", vec![("b", vec![rel(2, "bz", vec![])])])])]);
        let mut counted = Counted::new(&shape("uab", &["ua", "ab", "bz"], root, 2, EdgeKind::Optional, set));
        for i in 0..n {
            counted.work(&[(1, 0, &[i, i]), (1, 1, &[i, 0]), (1, 1, &[1000 + i, 0])], true);
        }
        let same = counted.work(&[(1, 2, &[0, 1])], true);
        assert_eq!((propagation(&same), same.emitted), (0, 0), "one row counts as much as the phantom");
        let grown = counted.work(&[(1, 2, &[0, 2])], true);
        let seen = if set { 0 } else { n };
        assert_eq!((grown.status_changes, grown.annotation_changes, grown.emitted), (0, seen, seen));
        assert_eq!(propagation(&counted.work(&[(1, 2, &[0, 3])], false)), 0);
    }
}

/// An uncorrelated NOT EXISTS: all rows above hang on one entry.
#[test]
fn a_hub_without_a_key_flips_all_rows_above() {
    let n = 100;
    let root = rel(0, "ab", vec![("", vec![rel(1, "z", vec![])])]);
    let mut counted = Counted::new(&shape("ab", &["ab", "z"], root, 1, EdgeKind::Forbids, false));
    for i in 0..n {
        counted.work(&[(1, 0, &[i, i])], true);
    }
    let blocked = counted.work(&[(1, 1, &[1])], true);
    assert_eq!((blocked.status_changes, blocked.emitted), (n + 1, n), "all rows and the top");
    assert_eq!(propagation(&counted.work(&[(1, 1, &[2])], true)), 0);
    let freed = counted.work(&[(-1, 1, &[1]), (-1, 1, &[2])], true);
    assert_eq!((freed.status_changes, freed.emitted), (n + 1, n));
}
