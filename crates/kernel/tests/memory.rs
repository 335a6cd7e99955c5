//! Memory: rows of leaves outside the connex part take none in the tree, and what is given back leaves phantoms where they are.
#![allow(missing_docs)]

mod common;
use common::random_tree::emitted;
use common::{Query, push, rel};
use everview_kernel::shape::{EdgeKind, TreeShape};
use everview_kernel::tree::{AtomChanges, Tree};

/// R(a, b) above S(b, z), of which results show a and b only.
fn shape(set: bool, kind: EdgeKind, change: impl FnOnce(&mut TreeShape)) -> TreeShape {
    let root = vec![rel(0, "ab", vec![("b", vec![rel(1, "bz", vec![])])])];
    let mut shape = Query { name: "", head: "ab", atoms: vec!["ab", "bz"], root, set, factors: Vec::new() }.shape();
    shape.hubs[1].kind = kind;
    change(&mut shape);
    shape
}

/// Adds or removes rows of S with ten keys, in one batch; returns the bytes of the whole tree.
fn change(tree: &mut Tree, rows: std::ops::Range<u64>, weight: i64) -> usize {
    let mut changes = vec![AtomChanges::default(); 2];
    rows.for_each(|i| push(&mut changes[1], &[i % 10, i], weight, &[]));
    tree.apply(&changes, None);
    tree.node_sizes().into_iter().map(|(_, bytes)| bytes).sum()
}

#[test]
fn rows_of_a_leaf_take_no_memory() {
    for set in [false, true] {
        for kind in [EdgeKind::Required, EdgeKind::Exists, EdgeKind::Forbids, EdgeKind::Optional] {
            let mut tree = Tree::new(&shape(set, kind, |_| ()));
            let few = change(&mut tree, 0..10, 1);
            let before = *tree.counters();
            let many = change(&mut tree, 10..10_010, 1);
            assert_eq!(few, many, "{kind:?}, set={set}: bytes of ten rows and of ten thousand");
            assert_eq!(tree.node_sizes()[1].0, 0);
            assert_eq!(tree.held(), 10, "the ten keys");
            assert_eq!(tree.counters().probes - before.probes, 10_000, "one for each");
            assert_eq!(tree.counters().maintenance() - before.maintenance(), 2 * 10_000, "nothing else");
            change(&mut tree, 0..10_010, -1);
            assert_eq!(tree.held(), 0);
        }
    }
}

/// Where something asks for the rows they are there: multiplicities are raised to a power, or a text of their own is to be given up.
#[test]
fn rows_are_stored_where_something_asks_for_them() {
    for change_shape in
        [(|shape| shape.nodes[1].power = 2) as fn(&mut TreeShape), |shape| shape.nodes[1].stores_rows = true]
    {
        let mut tree = Tree::new(&shape(false, EdgeKind::Required, change_shape));
        let few = change(&mut tree, 0..10, 1);
        let many = change(&mut tree, 10..10_010, 1);
        assert!(many > few + 10_000 * 40);
        assert_eq!(tree.atom_rows(1).count(), 10_010);
        change(&mut tree, 0..10_010, -1);
        assert_eq!(tree.held(), 0);
    }
}

/// Phantoms and the entries that lead from one to the next stay when the memory of many rows around them is given back.
#[test]
fn phantoms_stay_when_memory_is_given_back() {
    let s = rel(2, "bc", vec![("c", vec![rel(3, "cz", vec![])])]);
    let root = vec![rel(0, "ua", vec![("a", vec![rel(1, "ab", vec![("b", vec![s])])])])];
    let atoms = vec!["ua", "ab", "bc", "cz"];
    let mut shape = Query { name: "", head: "uabc", atoms, root, set: false, factors: Vec::new() }.shape();
    for hub in [1, 2, 3] {
        shape.hubs[hub].kind = EdgeKind::Optional;
    }
    shape.allow_phantoms();
    let mut tree = Tree::new(&shape);
    let batch = |tree: &Tree, rows: std::ops::Range<u64>, weight: i64| {
        let mut changes = vec![AtomChanges::default(); 4];
        for (atom, changes) in changes.iter_mut().enumerate() {
            for i in rows.clone() {
                let mut words = vec![i; 2];
                words.resize(tree.atom_width(atom), 0);
                push(changes, &words, weight, &[]);
            }
        }
        changes
    };
    let bytes = |tree: &Tree| tree.node_sizes().into_iter().map(|(_, bytes)| bytes).sum::<usize>();
    for _ in 0..3 {
        let rows = batch(&tree, 0..50_000, 1);
        tree.apply(&rows, None);
        let full = bytes(&tree);
        let gone = batch(&tree, 0..50_000, -1);
        tree.apply(&gone, None);
        tree.give_back();
        assert!(bytes(&tree) < full / 20, "{} of {full}", bytes(&tree));
        assert_eq!(tree.held(), 0);
        // one row of the first atom, of the first two, of the first three
        let some = |mut changes: Vec<AtomChanges>, atoms: std::ops::Range<usize>| {
            for (atom, changes) in changes.iter_mut().enumerate() {
                if !atoms.contains(&atom) {
                    *changes = AtomChanges::default();
                }
            }
            changes
        };
        let parts =
            [some(batch(&tree, 1..2, 1), 0..1), some(batch(&tree, 2..3, 1), 0..2), some(batch(&tree, 3..4, 1), 0..3)];
        for part in &parts {
            tree.apply(part, None);
        }
        let (mut walk, mut sink) = tree.results();
        tree.next_results(&mut walk, &mut sink, 10);
        let mut results = emitted(tree.head(), &sink);
        results.sort();
        let tuple = |u: u64, b: Option<u64>, c: Option<u64>| (vec![Some(u), Some(u), b, c], vec![1]);
        assert_eq!(results, [tuple(1, None, None), tuple(2, Some(2), None), tuple(3, Some(3), Some(3))]);
        for part in parts.iter().rev() {
            tree.undo(part);
        }
        assert_eq!(tree.held(), 0);
    }
}
