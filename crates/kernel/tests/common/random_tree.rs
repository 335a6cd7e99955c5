//! Random trees over all kinds of edges, and their results by definition.

use super::Random;
use everview_kernel::enumerate::Sink;
use everview_kernel::shape::{EdgeKind, HeadLayout, HubShape, NodeShape, TreeShape, VariableShape, row_layout};
use everview_kernel::tree::AtomChanges;
use std::collections::{BTreeMap, BTreeSet};

/// A value, or NULL.
pub type Value = Option<u64>;
/// The rows of a table and how often each is there.
pub type Table = BTreeMap<Vec<Value>, i64>;
/// Head tuples and their annotations.
pub type Results = BTreeMap<Vec<Value>, Vec<i128>>;

/// An atom: the table it reads, and its node.
#[derive(Clone, Debug)]
pub struct AtomOf {
    pub table: usize,
    pub node: usize,
    /// Per column whether rows with NULL there are dropped.
    pub drops_null: Vec<bool>,
}

/// A random tree.
#[derive(Clone, Debug)]
pub struct RandomTree {
    pub shape: TreeShape,
    pub atoms: Vec<AtomOf>,
    /// Columns per table.
    pub tables: Vec<usize>,
    /// Per variable whether tables may hold NULL there.
    pub has_nulls: Vec<bool>,
    /// Per variable whether NULL matches NULL.
    pub null_safe: Vec<bool>,
}

/// A result of a subtree: what its connex nodes show, and its annotation.
type Part = (BTreeMap<usize, Value>, Vec<i128>);
/// The results of a node's subtree, with the node's row.
type Side = Vec<(Vec<Value>, Part)>;

impl RandomTree {
    pub fn new(random: &mut Random) -> Self {
        let set = random.below(4) == 0;
        let components = if set { 0 } else { [0, 0, 1, 2][random.below(4) as usize] };
        let root = HubShape { key: vec![], parent: None, children: vec![], kind: EdgeKind::Required, phantom: vec![] };
        let shape =
            TreeShape { variables: Vec::new(), nodes: Vec::new(), hubs: vec![root], head: Vec::new(), set, components };
        let (atoms, tables, has_nulls, null_safe) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut tree = Self { shape, atoms, tables, has_nulls, null_safe };
        let sides = 1 + usize::from(random.below(8) == 0);
        let budget = 2 + random.below(5) as usize;
        for _ in 0..sides {
            tree.add_node(0, &[], true, budget, random);
        }
        tree.finish(random)
    }

    fn fresh(&mut self, random: &mut Random) -> usize {
        let words = 1 + usize::from(random.below(12) == 0);
        self.shape.variables.push(VariableShape { words, nullable: false, null_in_rows: false });
        self.has_nulls.push(random.below(3) == 0);
        self.null_safe.push(random.below(4) == 0);
        self.shape.variables.len() - 1
    }

    fn add_node(&mut self, up: usize, key: &[usize], may_be_connex: bool, budget: usize, random: &mut Random) {
        let id = self.shape.nodes.len();
        let mut columns = key.to_vec();
        let is_projection = self.shape.nodes.len() < budget && random.below(4) == 0;
        let most = if is_projection { 2 } else { 3 };
        for _ in 0..random.below(most) {
            let v = self.fresh(random);
            columns.insert(random.below(columns.len() as u64 + 1) as usize, v);
        }
        let connex = may_be_connex && random.below(5) != 0;
        let mut stored = 0;
        let mut factors = Vec::new();
        for _ in 0..self.shape.components {
            let has_own = !is_projection && random.below(2) == 0;
            factors.push(has_own.then_some(stored));
            stored += usize::from(has_own);
        }
        let power = if !is_projection && random.below(12) == 0 { 2 } else { 1 };
        let atom = (!is_projection).then_some(self.atoms.len());
        if !is_projection {
            self.atoms.push(AtomOf { table: usize::MAX, node: id, drops_null: Vec::new() });
        }
        let stores_rows = random.below(4) == 0;
        self.shape.nodes.push(NodeShape { atom, columns, connex, up, downs: Vec::new(), factors, power, stores_rows });
        self.shape.hubs[up].children.push(id);
        if is_projection {
            let kind = if random.below(4) == 0 { EdgeKind::Exists } else { EdgeKind::Required };
            let columns = self.shape.nodes[id].columns.clone();
            self.add_hub(id, &columns, kind, budget, random);
        }
        while self.shape.nodes.len() < budget && random.below(5) < 3 {
            let columns = &self.shape.nodes[id].columns;
            let mut key: Vec<usize> = columns.iter().copied().filter(|_| random.below(5) < 3).collect();
            if key.is_empty() && random.below(4) != 0 {
                key.extend(columns.first());
            }
            let kinds =
                [EdgeKind::Required, EdgeKind::Exists, EdgeKind::Forbids, EdgeKind::Optional, EdgeKind::Optional];
            self.add_hub(id, &key, kinds[random.below(5) as usize], budget, random);
        }
    }

    fn add_hub(&mut self, parent: usize, key: &[usize], kind: EdgeKind, budget: usize, random: &mut Random) {
        let hub = self.shape.hubs.len();
        let phantom = match kind {
            EdgeKind::Optional => (0..self.shape.components).map(|_| i128::from(random.below(3))).collect(),
            _ => Vec::new(),
        };
        self.shape.hubs.push(HubShape { key: key.to_vec(), parent: Some(parent), children: vec![], kind, phantom });
        self.shape.nodes[parent].downs.push(hub);
        let may_be_connex = self.shape.nodes[parent].connex && !kind.is_support_only();
        let sides = if kind == EdgeKind::Required && random.below(4) == 0 { 2 } else { 1 };
        for _ in 0..sides {
            self.add_node(hub, key, may_be_connex, budget, random);
        }
    }

    /// Chooses the head, the tables, and where NULLs are kept.
    fn finish(mut self, random: &mut Random) -> Self {
        let shape = &mut self.shape;
        let mut head: BTreeSet<usize> = BTreeSet::new();
        for node in shape.nodes.iter().filter(|node| node.connex) {
            head.extend(&node.columns);
        }
        shape.head = head.into_iter().collect();
        for atom in &mut self.atoms {
            let node = &shape.nodes[atom.node];
            let needs = |v: &usize| {
                let below = node.downs.iter().map(|&h| &shape.hubs[h]).filter(|h| h.kind == EdgeKind::Required);
                shape.hubs[node.up].key.contains(v) || below.into_iter().any(|h| h.key.contains(v))
            };
            atom.drops_null = node.columns.iter().map(|v| needs(v) && !self.null_safe[*v]).collect();
        }
        for v in 0..shape.variables.len() {
            shape.variables[v].nullable = self.has_nulls[v];
            shape.variables[v].null_in_rows = self.has_nulls[v];
        }
        shape.allow_phantoms();
        for atom in 0..self.atoms.len() {
            let node = &self.shape.nodes[self.atoms[atom].node];
            let words = |n: usize| -> Vec<usize> {
                self.shape.nodes[n].columns.iter().map(|&v| self.shape.variables[v].words).collect()
            };
            let nulls =
                |n: usize| -> Vec<bool> { self.shape.nodes[n].columns.iter().map(|&v| self.has_nulls[v]).collect() };
            // several atoms of one table
            let same = self.atoms[..atom].iter().find(|other| {
                words(other.node) == words(self.atoms[atom].node) && nulls(other.node) == nulls(self.atoms[atom].node)
            });
            let table = match same {
                Some(same) if random.below(2) == 0 => same.table,
                _ => {
                    self.tables.push(node.columns.len());
                    self.tables.len() - 1
                }
            };
            self.atoms[atom].table = table;
        }
        self
    }

    pub fn has_kind(&self, kind: EdgeKind) -> bool {
        self.shape.hubs.iter().any(|hub| hub.kind == kind)
    }

    /// Whether results bind phantoms below an optional edge that is below another one.
    pub fn nests_phantoms(&self) -> bool {
        let phantoms = self.shape.phantom_nodes();
        let is_nested = |hub: &HubShape| {
            let child = hub.children[0];
            hub.kind == EdgeKind::Optional && phantoms[child] && hub.parent.is_some_and(|parent| phantoms[parent])
        };
        self.shape.hubs.iter().any(is_nested)
    }

    /// The columns of a table, as variables of the first atom that reads it.
    pub fn columns_of(&self, table: usize) -> &[usize] {
        let atom = self.atoms.iter().find(|atom| atom.table == table).expect("every table is read");
        &self.shape.nodes[atom.node].columns
    }

    fn factor(place: usize, row: &[Value]) -> i128 {
        let mixed = row.iter().fold(place as u64 + 1, |sum, value| sum * 5 + value.map_or(3, |v| v + 7));
        i128::from(mixed % 7) - 2
    }

    /// The change of an atom for a change of a row of its table.
    pub fn push(&self, atom: usize, row: &[Value], weight: i64, changes: &mut AtomChanges) {
        let node = &self.shape.nodes[self.atoms[atom].node];
        if row.iter().zip(&self.atoms[atom].drops_null).any(|(value, drops)| *drops && value.is_none()) {
            return;
        }
        changes.words.extend(self.encode(&node.columns, row));
        changes.weights.push(weight);
        for place in 0..node.factors.iter().flatten().count() {
            changes.factors.push(Self::factor(place, row) * i128::from(weight));
        }
    }

    pub fn encode(&self, columns: &[usize], row: &[Value]) -> Vec<u64> {
        let layout = row_layout(columns, &self.shape.variables);
        let mut words = vec![0; layout.width];
        for (position, value) in row.iter().enumerate() {
            if let Some(value) = value {
                words[layout.offsets[position]] = *value;
            } else {
                let (word, bit) = layout.null(position).expect("room for NULL");
                words[word] |= 1 << bit;
            }
        }
        words
    }

    /// The results, by the definition of each kind of edge.
    pub fn results(&self, data: &[Table]) -> Results {
        let ones = vec![1; 1 + self.shape.components];
        let mut parts: Vec<Part> = vec![(BTreeMap::new(), ones)];
        for &child in &self.shape.hubs[0].children {
            parts = product(&parts, &self.subtree(child, data).into_iter().map(|(_, part)| part).collect::<Vec<_>>());
        }
        let mut sums = Results::new();
        for (shown, annotation) in parts {
            let tuple = self.shape.head.iter().map(|v| shown[v]).collect();
            let sum = sums.entry(tuple).or_insert_with(|| vec![0; annotation.len()]);
            sum.iter_mut().zip(&annotation).for_each(|(s, a)| *s += a);
        }
        if self.shape.set {
            for sum in sums.values_mut() {
                sum[0] = 1;
            }
        }
        sums
    }

    /// The results of a node's subtree, with the node's row.
    fn subtree(&self, node: usize, data: &[Table]) -> Side {
        let shape = &self.shape.nodes[node];
        let mut rows: Vec<(Vec<Value>, Vec<i128>)> = Vec::new();
        let below: Vec<Vec<Side>> = shape
            .downs
            .iter()
            .map(|&h| self.shape.hubs[h].children.iter().map(|&child| self.subtree(child, data)).collect())
            .collect();
        if let Some(atom) = shape.atom {
            for (row, &weight) in &data[self.atoms[atom].table] {
                let weight = i128::from(weight);
                let others = weight.pow(shape.power - 1);
                let mut annotation = vec![others * weight];
                annotation.extend(
                    shape.factors.iter().map(|f| others * weight * f.map_or(1, |place| Self::factor(place, row))),
                );
                rows.push((row.clone(), annotation));
            }
        } else {
            let guard = &self.shape.hubs[shape.downs[0]];
            let columns = &self.shape.nodes[guard.children[0]].columns;
            let keys: BTreeSet<Vec<Value>> =
                below[0][0].iter().map(|(row, _)| pick(columns, row, &shape.columns)).collect();
            let ones = vec![1; 1 + self.shape.components];
            rows.extend(keys.into_iter().map(|key| (key, ones.clone())));
        }
        let mut found = Vec::new();
        for (row, annotation) in rows {
            let shown: BTreeMap<usize, Value> =
                shape.columns.iter().copied().zip(row.iter().copied()).filter(|_| shape.connex).collect();
            let mut parts = vec![(shown, annotation)];
            for (&h, sides) in shape.downs.iter().zip(&below) {
                let hub = &self.shape.hubs[h];
                let key = pick(&shape.columns, &row, &hub.key);
                let can_match = hub.key.iter().zip(&key).all(|(&v, value)| value.is_some() || self.null_safe[v]);
                let ones = vec![1; 1 + self.shape.components];
                let mut combined = vec![(BTreeMap::new(), ones.clone())];
                for (&child, side) in hub.children.iter().zip(sides) {
                    let columns = &self.shape.nodes[child].columns;
                    let fitting: Vec<Part> = side
                        .iter()
                        .filter(|(other, _)| can_match && pick(columns, other, &hub.key) == key)
                        .map(|(_, part)| part.clone())
                        .collect();
                    combined = product(&combined, &fitting);
                }
                let nothing = vec![(BTreeMap::new(), ones)];
                combined = match (hub.kind, combined.is_empty()) {
                    (EdgeKind::Required, _) | (EdgeKind::Optional, false) => combined,
                    (EdgeKind::Exists, true) | (EdgeKind::Forbids, false) => Vec::new(),
                    (EdgeKind::Exists, false) | (EdgeKind::Forbids, true) => nothing,
                    (EdgeKind::Optional, true) => {
                        let mut nulls = BTreeMap::new();
                        self.show_nulls(hub.children[0], &mut nulls);
                        vec![(nulls, std::iter::once(1).chain(hub.phantom.iter().copied()).collect())]
                    }
                };
                parts = product(&parts, &combined);
            }
            found.extend(parts.into_iter().map(|part| (row.clone(), part)));
        }
        found
    }

    fn show_nulls(&self, node: usize, shown: &mut BTreeMap<usize, Value>) {
        let node = &self.shape.nodes[node];
        if node.connex {
            shown.extend(node.columns.iter().map(|&v| (v, None)));
            for &hub in &node.downs {
                self.shape.hubs[hub].children.iter().for_each(|&child| self.show_nulls(child, shown));
            }
        }
    }
}

/// The values of some columns of a row.
fn pick(columns: &[usize], row: &[Value], wanted: &[usize]) -> Vec<Value> {
    wanted.iter().map(|v| row[columns.iter().position(|c| c == v).expect("a column")]).collect()
}

/// All pairs; what the left shows wins.
fn product(left: &[Part], right: &[Part]) -> Vec<Part> {
    let mut pairs = Vec::new();
    for (shown, annotation) in left {
        for (more, factor) in right {
            let mut both = more.clone();
            both.extend(shown.iter().map(|(&v, &value)| (v, value)));
            pairs.push((both, annotation.iter().zip(factor).map(|(a, f)| a * f).collect()));
        }
    }
    pairs
}

/// Emitted rows as (tuple, annotation).
pub fn emitted(head: &HeadLayout, sink: &Sink) -> Vec<(Vec<Value>, Vec<i128>)> {
    let row = |i: usize| {
        let value = |c: &everview_kernel::shape::HeadColumn| {
            let is_null = c.null.is_some_and(|(word, bit)| sink.columns[word][i] >> bit & 1 == 1);
            (!is_null).then(|| sink.columns[c.first][i])
        };
        let annotation = std::iter::once(i128::from(sink.multiplicities[i]));
        let annotation = annotation.chain(sink.components.iter().map(|c| c[i])).collect();
        (head.columns.iter().map(value).collect(), annotation)
    };
    (0..sink.len()).map(row).collect()
}
