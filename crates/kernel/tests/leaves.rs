//! Leaves outside the connex part: their rows take no memory in the tree, and changes of them one look-up.
#![allow(missing_docs)]

mod common;
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
