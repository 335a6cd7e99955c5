//! Tree shapes written by hand, and the naive model they are checked against.
#![allow(dead_code, missing_docs)]

pub mod random_tree;

use everview_kernel::enumerate::Sink;
use everview_kernel::shape::{EdgeKind, HeadLayout, HubShape, NodeShape, TreeShape, VariableShape};
use everview_kernel::tree::{AtomChanges, Tree};
use std::collections::BTreeMap;

/// A node of a hand-written tree: a relation or a projection, with its hubs below as (key, children).
pub struct N {
    pub atom: Option<usize>,
    pub columns: &'static str,
    pub hubs: Vec<(&'static str, Vec<N>)>,
}

pub fn rel(atom: usize, columns: &'static str, hubs: Vec<(&'static str, Vec<N>)>) -> N {
    N { atom: Some(atom), columns, hubs }
}

pub fn proj(columns: &'static str, guard: Vec<N>, mut more: Vec<(&'static str, Vec<N>)>) -> N {
    more.insert(0, (columns, guard));
    N { atom: None, columns, hubs: more }
}

/// A query: variables are single letters; `factors[c]` lists the atoms that have a factor of their own in component c.
pub struct Query {
    pub name: &'static str,
    pub head: &'static str,
    pub atoms: Vec<&'static str>,
    pub root: Vec<N>,
    pub set: bool,
    pub factors: Vec<Vec<usize>>,
}

fn vars(text: &str) -> Vec<usize> {
    text.bytes().map(|b| usize::from(b - b'a')).collect()
}

/// A required hub without children yet.
pub fn required(key: Vec<usize>, parent: Option<usize>) -> HubShape {
    HubShape { key, parent, children: Vec::new(), kind: EdgeKind::Required, phantom: Vec::new() }
}

impl Query {
    pub fn shape(&self) -> TreeShape {
        let mut shape = TreeShape {
            variables: vec![VariableShape { words: 1, nullable: false, null_in_rows: false }; 26],
            nodes: Vec::new(),
            hubs: vec![required(Vec::new(), None)],
            head: vars(self.head),
            set: self.set,
            components: self.factors.len(),
        };
        for n in &self.root {
            let child = self.add(&mut shape, n, 0, true);
            shape.hubs[0].children.push(child);
        }
        shape
    }

    fn add(&self, shape: &mut TreeShape, n: &N, up: usize, connex_above: bool) -> usize {
        let id = shape.nodes.len();
        let columns = vars(n.columns);
        let connex = connex_above && columns.iter().all(|v| shape.head.contains(v));
        let mut next = 0;
        let factors = self
            .factors
            .iter()
            .map(|atoms| n.atom.filter(|a| atoms.contains(a)).map(|_| (next, next += 1).0))
            .collect();
        shape.nodes.push(NodeShape {
            atom: n.atom,
            columns,
            connex,
            up,
            downs: Vec::new(),
            factors,
            power: 1,
            stores_rows: false,
        });
        for (key, children) in &n.hubs {
            let hub = shape.hubs.len();
            shape.hubs.push(required(vars(key), Some(id)));
            shape.nodes[id].downs.push(hub);
            for c in children {
                let child = self.add(shape, c, hub, connex);
                shape.hubs[hub].children.push(child);
            }
        }
        id
    }

    pub fn factor_count(&self, atom: usize) -> usize {
        self.factors.iter().filter(|atoms| atoms.contains(&atom)).count()
    }
}

pub type Bag = BTreeMap<Vec<u64>, (i64, Vec<i128>)>;

/// The result of a query by nested loops: head tuple to multiplicity and components.
pub fn brute(query: &Query, data: &[Bag]) -> BTreeMap<Vec<u64>, Vec<i128>> {
    let mut results = vec![(BTreeMap::<u8, u64>::new(), vec![1i128; 1 + query.factors.len()])];
    for (atom, columns) in query.atoms.iter().enumerate() {
        let mut joined = Vec::new();
        for (binding, weight) in &results {
            for (row, (w, factors)) in &data[atom] {
                let mut binding = binding.clone();
                if columns.bytes().zip(row).all(|(c, &v)| *binding.entry(c).or_insert(v) == v) {
                    let mut weight = weight.clone();
                    weight[0] *= i128::from(*w);
                    let mut next = 0;
                    for (c, atoms) in query.factors.iter().enumerate() {
                        if atoms.contains(&atom) {
                            weight[1 + c] *= factors[next];
                            next += 1;
                        } else {
                            weight[1 + c] *= i128::from(*w);
                        }
                    }
                    joined.push((binding, weight));
                }
            }
        }
        results = joined;
    }
    let mut sums: BTreeMap<Vec<u64>, Vec<i128>> = BTreeMap::new();
    for (binding, weight) in results {
        let head = query.head.bytes().map(|c| binding[&c]).collect();
        let sum = sums.entry(head).or_insert_with(|| vec![0; weight.len()]);
        for (s, w) in sum.iter_mut().zip(weight) {
            *s += w;
        }
    }
    if query.set {
        for sum in sums.values_mut() {
            sum[0] = 1;
        }
    }
    sums
}

/// Emitted rows as (tuple, annotation).
pub fn rows_of(head: &HeadLayout, sink: &Sink) -> Vec<(Vec<u64>, Vec<i128>)> {
    (0..sink.len())
        .map(|i| {
            let tuple = head.columns.iter().map(|c| sink.columns[c.first][i]).collect();
            let mut annotation = vec![i128::from(sink.multiplicities[i])];
            annotation.extend(sink.components.iter().map(|c| c[i]));
            (tuple, annotation)
        })
        .collect()
}

pub fn enumerate(tree: &mut Tree, chunk: usize) -> Vec<(Vec<u64>, Vec<i128>)> {
    let (mut walk, mut sink) = tree.results();
    let mut rows = Vec::new();
    loop {
        assert!(!tree.next_results(&mut walk, &mut sink, chunk), "a value left its range");
        if sink.is_empty() {
            break;
        }
        assert!(sink.len() <= chunk);
        rows.extend(rows_of(tree.head(), &sink));
    }
    rows
}

/// A small deterministic generator.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ (self.0 >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
        (mixed >> 33) % n
    }
}

/// One row change in the form the tree takes.
pub fn push(changes: &mut AtomChanges, row: &[u64], weight: i64, factors: &[i128]) {
    changes.words.extend_from_slice(row);
    changes.weights.push(weight);
    changes.factors.extend_from_slice(factors);
}

/// The shapes every test runs over.
pub fn queries() -> Vec<Query> {
    let q = |name, head, atoms: &[&'static str], root| Query {
        name,
        head,
        atoms: atoms.to_vec(),
        root,
        set: false,
        factors: Vec::new(),
    };
    let hop3 = || vec![rel(1, "bc", vec![("b", vec![rel(0, "ab", vec![])]), ("c", vec![rel(2, "cd", vec![])])])];
    let chain = || {
        let u = rel(3, "de", vec![]);
        let t = rel(2, "cd", vec![("d", vec![u])]);
        let s = rel(1, "bc", vec![("c", vec![t])]);
        vec![rel(0, "ab", vec![("b", vec![s])])]
    };
    let mut all = vec![
        q("3-hop full", "abcd", &["ab", "bc", "cd"], hop3()),
        q("3-hop count", "bc", &["ab", "bc", "cd"], hop3()),
        q("3-hop half", "abc", &["ab", "bc", "cd"], hop3()),
        q("3-hop global", "", &["ab", "bc", "cd"], hop3()),
        q(
            "star",
            "abcd",
            &["ab", "ac", "ad"],
            vec![proj("a", vec![rel(0, "ab", vec![]), rel(1, "ac", vec![]), rel(2, "ad", vec![])], vec![])],
        ),
        q(
            "star count",
            "a",
            &["ab", "ac", "ad"],
            vec![proj("a", vec![rel(0, "ab", vec![]), rel(1, "ac", vec![]), rel(2, "ad", vec![])], vec![])],
        ),
        q(
            "star half",
            "ab",
            &["ab", "ac", "ad"],
            vec![proj("a", vec![rel(0, "ab", vec![]), rel(1, "ac", vec![]), rel(2, "ad", vec![])], vec![])],
        ),
        q(
            "projection with other children",
            "abcd",
            &["abz", "bc", "ad"],
            vec![proj(
                "ab",
                vec![rel(0, "abz", vec![])],
                vec![("b", vec![rel(1, "bc", vec![])]), ("a", vec![rel(2, "ad", vec![])])],
            )],
        ),
        q(
            "4-hop of the paper",
            "abcd",
            &["ab", "bc", "cd", "de"],
            vec![proj(
                "c",
                vec![
                    rel(1, "bc", vec![("b", vec![rel(0, "ab", vec![])])]),
                    rel(2, "cd", vec![("d", vec![rel(3, "de", vec![])])]),
                ],
                vec![],
            )],
        ),
        q("cross", "abcd", &["ab", "cd"], vec![rel(0, "ab", vec![]), rel(1, "cd", vec![])]),
        q("cross half", "ab", &["ab", "cd"], vec![rel(0, "ab", vec![]), rel(1, "cd", vec![])]),
        q(
            "nested projections",
            "abcd",
            &["abc", "abd", "ae"],
            vec![proj(
                "a",
                vec![proj("ab", vec![rel(0, "abc", vec![]), rel(1, "abd", vec![])], vec![]), rel(2, "ae", vec![])],
                vec![],
            )],
        ),
        q("two hubs of one child each below a non-connex", "a", &["abc", "bd", "ce"], {
            let r = rel(0, "abc", vec![("b", vec![rel(1, "bd", vec![])]), ("c", vec![rel(2, "ce", vec![])])]);
            vec![proj("a", vec![r], vec![])]
        }),
    ];
    for head in ["abcde", "abcd", "abc", "ab", ""] {
        all.push(q("chain", head, &["ab", "bc", "cd", "de"], chain()));
    }
    let mut more = Vec::new();
    for (i, base) in all.iter().enumerate() {
        more.push((i, true, Vec::new()));
        let atoms = base.atoms.len();
        more.push((i, false, vec![vec![0]]));
        more.push((i, false, vec![vec![atoms - 1], vec![0, atoms - 1]]));
    }
    let rebuilt: Vec<Query> = more
        .into_iter()
        .map(|(i, set, factors)| {
            let fresh = rebuild(&all[i]);
            Query { set, factors, ..fresh }
        })
        .collect();
    all.extend(rebuilt);
    all
}

fn rebuild(query: &Query) -> Query {
    fn copy(n: &N) -> N {
        N {
            atom: n.atom,
            columns: n.columns,
            hubs: n.hubs.iter().map(|(k, c)| (*k, c.iter().map(copy).collect())).collect(),
        }
    }
    Query {
        name: query.name,
        head: query.head,
        atoms: query.atoms.clone(),
        root: query.root.iter().map(copy).collect(),
        set: query.set,
        factors: query.factors.clone(),
    }
}
