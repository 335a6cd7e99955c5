//! The semi-join tree: relations, hubs and projections, and the change of one batch.
//!
//! Nodes and hubs alternate from hub 0 down. The tree adds one node of its own above hub 0: the *top*, a projection with no
//! columns and one row, so that every hub has a parent and "the result is not empty" is "the top row is alive".
//! Any other projection has one row per entry of its guard that is complete: where a side is missing there would be nothing to project.
//!
//! A batch is applied atom by atom. For one atom: rows change, every hub entry touched is settled once, and only entries whose
//! support or value differs afterwards reach the rows above (`edge` says what that means for each kind of edge, `settle` in which
//! order it happens). At the lowest connex node on the way, the rows whose annotation changes are the witnesses of the delta
//! (`enumerate`). Rows of the batch carry the marks NEW and DOOMED from the start to the end of the batch, so that results that
//! would be added by one atom and removed by another are never emitted.
//!
//! Cost: one probe per edge for an inserted or deleted row, then pointer chasing. Support edges: `O(lambda_T)` amortised per
//! change (Change Propagation Without Joins, Theorem 6.6). Value edges: a changed value visits the live parents of its entry if
//! deltas are wanted, none otherwise; below the connex part it visits all of them.

use crate::codec;
use crate::counters::Counters;
use crate::delta::Delta;
use crate::edge::Edge;
use crate::enumerate::{Program, Sink};
use crate::hash::hash_words;
use crate::interner::Interner;
use crate::pending::PendingRows;
use crate::rows::Rows;
use crate::shape::{EdgeKind, HeadLayout, HubShape, KeySpec, NodeShape, RowLayout, TreeShape};
use crate::shape::{head_layout, key_spec, row_layout};
use everview_expr::DataType;
use hashbrown::HashTable;

/// The net changes of one atom: rows as words, row after row, with the change of multiplicity and of each factor.
#[derive(Clone, Debug, Default)]
pub struct AtomChanges {
    /// The words of the rows, one row after another.
    pub words: Vec<u64>,
    /// The change of multiplicity of each row.
    pub weights: Vec<i64>,
    /// The change of each factor of each row, one row after another.
    pub factors: Vec<i128>,
    /// The row of the base table that each stands for, where the atom's rows are found by source.
    pub sources: Vec<u32>,
}

impl AtomChanges {
    /// The changes that undo these.
    #[must_use]
    pub fn inverse(&self) -> Self {
        Self {
            words: self.words.clone(),
            weights: self.weights.iter().map(|w| -w).collect(),
            factors: self.factors.iter().map(|f| f.wrapping_neg()).collect(),
            sources: self.sources.clone(),
        }
    }

    /// The changes with those of equal rows added up, and whether a sum left 128 bits.
    #[must_use]
    pub fn netted(&self) -> (Self, bool) {
        let rows = self.weights.len().max(1);
        let (width, factors) = (self.words.len() / rows, self.factors.len() / rows);
        let (mut net, mut overflow) = (Self::default(), false);
        let mut index: HashTable<u32> = HashTable::with_capacity(rows);
        for (i, &weight) in self.weights.iter().enumerate() {
            let words = &self.words[i * width..(i + 1) * width];
            let of = |row: u32| &net.words[row as usize * width..(row as usize + 1) * width];
            let hash = hash_words(words);
            if let Some(&row) = index.find(hash, |&row| of(row) == words) {
                net.weights[row as usize] += weight;
                for (f, &change) in self.factors[i * factors..(i + 1) * factors].iter().enumerate() {
                    let sum = &mut net.factors[row as usize * factors + f];
                    let over;
                    (*sum, over) = sum.overflowing_add(change);
                    overflow |= over;
                }
                continue;
            }
            index.insert_unique(hash, net.weights.len() as u32, |&row| hash_words(of(row)));
            net.words.extend_from_slice(words);
            net.weights.push(weight);
            net.factors.extend_from_slice(&self.factors[i * factors..(i + 1) * factors]);
            net.sources.extend(self.sources.get(i));
        }
        (net, overflow)
    }

    /// The changes of rows that come, or those of rows that leave.
    #[must_use]
    pub fn of_sign(&self, comes: bool) -> Self {
        let (rows, mut part) = (self.weights.len().max(1), Self::default());
        let (width, factors) = (self.words.len() / rows, self.factors.len() / rows);
        for (i, &weight) in self.weights.iter().enumerate().filter(|&(_, &weight)| (weight > 0) == comes) {
            part.words.extend_from_slice(&self.words[i * width..(i + 1) * width]);
            part.weights.push(weight);
            part.factors.extend_from_slice(&self.factors[i * factors..(i + 1) * factors]);
            part.sources.extend(self.sources.get(i));
        }
        part
    }
}

/// A node with its rows and what it needs to know of its surroundings.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) rows: Rows,
    pub(crate) connex: bool,
    /// The hub above and the side of it this node is; the top has none.
    pub(crate) up: Option<(usize, usize)>,
    pub(crate) downs: Vec<usize>,
    pub(crate) up_key: KeySpec,
    pub(crate) down_keys: Vec<KeySpec>,
    pub(crate) factors: Vec<Option<usize>>,
    pub(crate) power: u32,
    pub(crate) is_relation: bool,
    /// The rows are not stored: see `leaf`.
    pub(crate) is_row_free: bool,
    /// The variables, in the order of the row's words.
    pub(crate) columns: Vec<usize>,
    /// Where the words of the columns stand.
    pub(crate) layout: RowLayout,
    /// Nobody reads the annotations of its rows: the query is DISTINCT, or only existence matters above.
    pub(crate) weightless: bool,
    /// Results may bind it to its phantom: it is connex and below an optional edge.
    pub(crate) has_phantom: bool,
    /// The head variables that results take from it.
    pub(crate) shown: Vec<usize>,
    /// Rows with a multiplicity above one.
    pub(crate) repeated: usize,
    /// The largest multiplicity that a row has ever had.
    pub(crate) peak: i64,
}

impl Node {
    /// The hub of a link and how to cut its key: first the hubs below in their order, then the one above.
    pub(crate) fn link(&self, link: usize) -> (usize, &KeySpec) {
        match (self.downs.get(link), self.up) {
            (Some(&hub), _) => (hub, &self.down_keys[link]),
            (None, Some((hub, _))) => (hub, &self.up_key),
            (None, None) => unreachable!("the top is linked when it is made"),
        }
    }

    /// How many links a row has.
    pub(crate) fn links(&self) -> usize {
        self.downs.len() + usize::from(self.up.is_some())
    }

    /// As `Tree::own`, where the node stands for several equal atoms. Wraps like all ring arithmetic; `own_overflows` tells when.
    #[inline]
    fn own_power(&self, row: u32, into: &mut [i128]) {
        let weight = i128::from(self.rows.weight(row));
        let others = weight.wrapping_pow(self.power - 1);
        into[0] = others.wrapping_mul(weight);
        let stored = self.rows.factors(row);
        for (value, factor) in into[1..].iter_mut().zip(&self.factors) {
            *value = others.wrapping_mul(factor.map_or(weight, |place| stored[place]));
        }
    }
}

/// Whether a batch could be applied within range, and whether its delta may hold a row more than once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// A ring value left the range of 128 bits; the caller must apply the inverse.
    pub overflow: bool,
    /// The emitted rows must be added up by row before they are a net delta: several atoms changed, and each emits a delta of its own, or a
    /// phantom came or left, and it may look like the rows that stand in its place. Otherwise every result is there once.
    pub consolidate: bool,
    /// The delta had more rows than there was room for; the caller must apply the inverse.
    pub full: bool,
    /// A row was deleted that was not there (`Tree::take_missing`); the caller must apply the inverse.
    pub missing: bool,
}

/// A maintained semi-join tree.
#[derive(Debug)]
pub struct Tree {
    pub(crate) nodes: Vec<Node>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) top: usize,
    /// Per atom its node, which is no other atom's.
    pub(crate) atom_nodes: Vec<usize>,
    /// The atoms from the leaves up: inserted rows then find their support in place.
    order: Vec<usize>,
    pub(crate) components: usize,
    pub(crate) set: bool,
    /// All nodes are connex and all edges required: results are combinations of one row of each.
    full: bool,
    /// No hub passes values: a result weighs what its rows do.
    unvalued: bool,
    pub(crate) head: HeadLayout,
    /// The mask columns of results, where phantoms have bits in them that rows which look the same do not have.
    phantom_masks: Vec<(usize, u64)>,
    pub(crate) programs: Vec<Option<Program>>,
    /// Whether live marks are up to date.
    pub(crate) live_is_current: bool,
    /// Whether the batch in progress emitted results through a phantom that may be equal to others it emitted.
    pub(crate) delta_repeats: bool,
    pub(crate) overflow: bool,
    /// A row that the batch in progress deletes though it is not there: its node and words.
    pub(crate) missing: Option<(usize, Vec<u64>)>,
    pub(crate) counters: Counters,
    pub(crate) scratch: crate::settle::Scratch,
    /// Per atom its rows in the batch.
    pub(crate) pending: Vec<PendingRows>,
    /// Buffers for keys, as many as guards stand above each other.
    pub(crate) keys: Vec<Vec<u64>>,
}

impl Tree {
    /// An empty tree.
    pub fn new(shape: &TreeShape) -> Self {
        let components = shape.components + 1;
        let mut node_shapes = shape.nodes.clone();
        let mut hub_shapes = shape.hubs.clone();
        let top = node_shapes.len();
        node_shapes.push(NodeShape {
            atom: None,
            columns: Vec::new(),
            connex: true,
            up: usize::MAX,
            downs: vec![0],
            factors: vec![None; shape.components],
            power: 1,
            stores_rows: true,
        });
        hub_shapes[0].parent = Some(top);
        let weightless = weightless_nodes(shape);
        let edges: Vec<Edge> =
            hub_shapes.iter().enumerate().map(|(h, hub)| Edge::new(h, hub, &node_shapes, shape, &weightless)).collect();
        let mut nodes: Vec<Node> =
            node_shapes.iter().enumerate().map(|(n, node)| build_node(n, node, &hub_shapes, shape)).collect();
        for (node, is_weightless) in nodes.iter_mut().zip(weightless) {
            node.weightless = is_weightless;
        }
        for (node, has_phantom) in nodes.iter_mut().zip(shape.phantom_nodes()) {
            node.has_phantom = has_phantom;
        }
        for (v, node) in shape.shown_by().into_iter().enumerate() {
            if let Some(node) = node.filter(|_| shape.head.contains(&v)) {
                assert!(!nodes[node].has_phantom || shape.variables[v].nullable, "a phantom shows NULL");
                nodes[node].shown.push(v);
            }
        }
        let mut atom_nodes: Vec<(usize, usize)> =
            node_shapes.iter().enumerate().filter_map(|(n, node)| Some((node.atom?, n))).collect();
        atom_nodes.sort_unstable();
        let atom_nodes: Vec<usize> = atom_nodes.into_iter().map(|(_, n)| n).collect();
        let from_top = top_down(&nodes, &edges, top);
        let head = head_layout(shape);
        let depth_first = |n: &usize| from_top.iter().rev().position(|m| m == n);
        let mut order: Vec<usize> = (0..atom_nodes.len()).collect();
        order.sort_by_key(|&atom| depth_first(&atom_nodes[atom]));
        let mut tree = Self {
            full: nodes.iter().all(|n| n.connex) && edges.iter().all(|e| e.kind == EdgeKind::Required),
            unvalued: !edges.iter().any(|e| e.hub.has_values()),
            pending: vec![PendingRows::default(); atom_nodes.len()],
            nodes,
            edges,
            top,
            atom_nodes,
            order,
            components,
            set: shape.set,
            phantom_masks: if shape.phantom_nodes().contains(&true) { head.masks() } else { Vec::new() },
            head,
            programs: Vec::new(),
            live_is_current: true,
            delta_repeats: false,
            overflow: false,
            missing: None,
            counters: Counters::default(),
            scratch: crate::settle::Scratch::default(),
            keys: Vec::new(),
        };
        tree.reserve_phantoms();
        tree.programs = (0..tree.nodes.len()).map(|n| Program::build(&tree, n)).collect();
        let (entry, _) = tree.edges[0].hub.find_or_insert(&[]);
        tree.create_projection_row(0, entry);
        tree
    }

    /// Lets the rows of an atom be found by the rows of the base table that they stand for. Each must stand for one of its own, and all
    /// changes of the atom must name them. To be called before the first row comes.
    pub fn find_by_source(&mut self, atom: usize) {
        let at = self.atom_nodes[atom];
        let node = &mut self.nodes[at];
        let stored = node.factors.iter().flatten().count();
        node.rows = Rows::with_sources(node.rows.width(), stored, node.downs.len());
        if node.has_phantom {
            self.reserve_phantom_row(at);
        }
    }

    /// The work done since the tree was built.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Where the head columns stand among the emitted word columns.
    pub fn head(&self) -> &HeadLayout {
        &self.head
    }

    /// Annotation components beyond the multiplicity.
    pub fn extra_components(&self) -> usize {
        self.components - 1
    }

    /// Words per row of an atom's node.
    pub fn atom_width(&self, atom: usize) -> usize {
        self.nodes[self.atom_nodes[atom]].rows.width()
    }

    /// The rows of an atom, with their multiplicities, if they are stored.
    pub fn atom_rows(&self, atom: usize) -> impl Iterator<Item = (&[u64], i64)> + '_ {
        let rows = &self.nodes[self.atom_nodes[atom]].rows;
        rows.ids().map(|row| (rows.values(row), rows.weight(row)))
    }

    /// Rows and bytes of each node with the hubs below it, top last.
    pub fn node_sizes(&self) -> Vec<(usize, usize)> {
        let below = |node: &Node| node.downs.iter().map(|&h| self.edges[h].hub.bytes()).sum::<usize>();
        self.nodes.iter().map(|node| (node.rows.len(), node.rows.bytes() + below(node))).collect()
    }

    /// Rows held in nodes and entries held in hubs, without the top and its hub: zero after everything was deleted.
    pub fn held(&self) -> usize {
        let rows: usize = self.nodes.iter().map(|n| n.rows.len()).sum();
        let entries: usize = self.edges.iter().map(|e| e.hub.len()).sum();
        rows + entries - 2
    }

    /// Applies a batch: one set of changes per atom. With a sink, emits the delta of the batch into it.
    ///
    /// No row's multiplicity may go below 0. Where it would, `Applied` says so, and the batch is undone by its inverse like any other.
    pub fn apply(&mut self, changes: &[AtomChanges], sink: Option<&mut Sink>) -> Applied {
        self.apply_into(changes, sink.map(|sink| Delta::new(sink, &mut [], None)))
    }

    /// As `apply`, with a delta of which pieces may leave before the end. They do where every row weighs 1: nothing can overflow then, and
    /// no two rows of the delta are equal.
    pub fn apply_into(&mut self, changes: &[AtomChanges], mut delta: Option<Delta>) -> Applied {
        let keep_live = delta.is_some();
        self.run_batch(changes, delta.as_mut(), keep_live)
    }

    /// Takes back the batch that was applied last, whatever came of it. Its atoms are undone in reverse order, so that the tree passes
    /// through the states it came by. Ring arithmetic undoes exactly what it did, overflow or not.
    pub fn undo(&mut self, changes: &[AtomChanges]) {
        let inverse: Vec<AtomChanges> = changes.iter().map(AtomChanges::inverse).collect();
        self.order.reverse();
        self.run_batch(&inverse, None, self.live_is_current);
        self.order.reverse();
    }

    fn run_batch(&mut self, changes: &[AtomChanges], mut delta: Option<&mut Delta>, keep_live: bool) -> Applied {
        self.overflow = false;
        self.delta_repeats = false;
        let threads = if let Some(delta) = &delta
            && changes.iter().map(|c| c.weights.len()).sum::<usize>() > delta.share()
        {
            delta.threads()
        } else {
            1
        };
        let resolved = self.each_atom(threads, |atom, node, pending| pending.resolve(node, &changes[atom]));
        let found_by_words = self.atom_nodes.iter().zip(changes).filter(|&(&node, _)| !self.nodes[node].is_row_free);
        self.counters.probes += found_by_words.map(|(_, c)| c.weights.len() as u64).sum::<u64>();
        self.overflow |= resolved.overflow;
        self.missing = self.missing_row();
        let repeated = resolved.repeated || self.has_repeated_rows();
        let weighs_one = self.weighs_one_unless(repeated);
        // joins of sets that keep all columns: the marks of rows keep the atoms' deltas apart
        let nets_by_marks = self.full && weighs_one;
        let atoms = self.atom_nodes.iter().zip(&self.pending).zip(changes);
        let is_changed = |node: usize, pending: &PendingRows, changes: &AtomChanges| {
            if self.nodes[node].is_row_free { !changes.weights.is_empty() } else { !pending.rows.is_empty() }
        };
        let changed: Vec<bool> = atoms.map(|((&node, pending), changes)| is_changed(node, pending, changes)).collect();
        if let Some(delta) = &mut delta {
            delta.begin(weighs_one, nets_by_marks && !repeated && self.missing.is_none());
        }
        if keep_live {
            self.ensure_live();
        } else {
            self.live_is_current = false;
        }
        for at in 0..self.order.len() {
            let atom = self.order[at];
            let mut pending = std::mem::take(&mut self.pending[atom]);
            if changed[atom] {
                self.find_entries(self.atom_nodes[atom], &changes[atom], &mut pending, threads);
                self.step(self.atom_nodes[atom], &changes[atom], &pending, delta.as_deref_mut(), nets_by_marks);
            }
            self.pending[atom] = pending;
        }
        let mut full = false;
        if let Some(delta) = delta {
            full = delta.is_full();
            delta.gather();
            self.clear_hidden_bits(delta.sink);
        }
        self.each_atom(threads, |_, node, pending| pending.unmark(node));
        let several = changed.into_iter().filter(|&is_changed| is_changed).count() > 1;
        let consolidate = !nets_by_marks && several || self.delta_repeats;
        Applied { overflow: self.overflow, consolidate, full, missing: self.missing.is_some() }
    }

    /// A row of the batch that it deletes more often than it is there.
    fn missing_row(&self) -> Option<(usize, Vec<u64>)> {
        let found = |(pending, &node): (&PendingRows, &usize)| {
            pending.missing.map(|row| (node, self.nodes[node].rows.values(row).to_vec()))
        };
        self.pending.iter().zip(&self.atom_nodes).find_map(found)
    }

    /// The row that the batch before deleted though it was not there: its node and words.
    pub(crate) fn take_missing(&mut self) -> Option<(usize, Vec<u64>)> {
        self.missing.take()
    }

    /// The atom of a node.
    pub(crate) fn atom_of(&self, node: usize) -> Option<usize> {
        self.atom_nodes.iter().position(|&other| other == node)
    }

    /// The words of a row of a node as text; `column` gives the name and type of a variable.
    pub(crate) fn describe<'a>(
        &self,
        node: usize,
        words: &[u64],
        column: impl Fn(usize) -> (&'a str, DataType),
        interner: &Interner,
    ) -> String {
        let Node { columns, layout, .. } = &self.nodes[node];
        let value = |(position, &variable): (usize, &usize)| {
            let (name, data_type) = column(variable);
            let at = layout.offsets[position];
            let is_null = layout.null(position).is_some_and(|(word, bit)| words[word] >> bit & 1 == 1);
            let value = codec::value_text(data_type, &words[at..], is_null, interner);
            format!("{name}={value}")
        };
        format!("({})", columns.iter().enumerate().map(value).collect::<Vec<_>>().join(", "))
    }

    fn has_repeated_rows(&self) -> bool {
        self.nodes.iter().any(|n| n.connex && n.repeated > 0)
    }

    fn weighs_one_unless(&self, repeated: bool) -> bool {
        self.set || self.unvalued && self.components == 1 && !repeated
    }

    /// Whether every result has multiplicity 1 and nothing is summed: enumeration then carries no annotations.
    pub(crate) fn weighs_one(&self) -> bool {
        self.weighs_one_unless(self.has_repeated_rows())
    }

    /// Makes equal results equal to the bit, phantoms among them.
    pub(crate) fn clear_hidden_bits(&self, sink: &mut Sink) {
        for &(column, bits) in &self.phantom_masks {
            sink.columns[column].iter_mut().for_each(|mask| *mask &= bits);
        }
    }

    /// Gives memory back if there is much to give.
    pub fn give_back(&mut self) {
        for node in &mut self.nodes {
            node.rows.give_back();
        }
        for edge in &mut self.edges {
            edge.hub.give_back();
        }
        self.pending.iter_mut().for_each(PendingRows::give_back);
        self.scratch.give_back();
    }

    /// The row's own annotation: its multiplicity and factors.
    #[inline]
    pub(crate) fn own(&self, node: usize, row: u32, into: &mut [i128]) {
        let node = &self.nodes[node];
        let weight = i128::from(node.rows.weight(row));
        into[0] = weight;
        if node.power > 1 {
            node.own_power(row, into);
            return;
        }
        if into.len() > 1 {
            let stored = node.rows.factors(row);
            for (value, factor) in into[1..].iter_mut().zip(&node.factors) {
                *value = factor.map_or(weight, |place| stored[place]);
            }
        }
    }

    /// Whether the row's own annotation leaves 128 bits.
    pub(crate) fn own_overflows(&self, node: usize, row: u32) -> bool {
        let node = &self.nodes[node];
        if node.power == 1 {
            return false;
        }
        let weight = i128::from(node.rows.weight(row));
        if node.rows.factors(row).is_empty() && (128 - weight.leading_zeros()) * node.power < 127 {
            return false;
        }
        let Some(others) = weight.checked_pow(node.power - 1) else { return true };
        others.checked_mul(weight).is_none() || node.rows.factors(row).iter().any(|f| others.checked_mul(*f).is_none())
    }

    /// The row's annotation: its own times the values that its hubs below pass; returns whether a product overflowed.
    #[inline]
    pub(crate) fn annotation(&self, node: usize, row: u32, into: &mut [i128]) -> bool {
        self.own(node, row, into);
        self.times_below(node, row, None, into)
    }

    /// Multiplies `into` by the values a row's hubs below pass to it; returns whether a product overflowed.
    #[inline]
    pub(crate) fn times_below(&self, node: usize, row: u32, skip: Option<usize>, into: &mut [i128]) -> bool {
        let mut overflow = false;
        let node = &self.nodes[node];
        for (down, &hub) in node.downs.iter().enumerate() {
            let edge = &self.edges[hub];
            if edge.hub.has_values() && skip != Some(down) {
                overflow |= edge.times_value(node.rows.down(row, down), into);
            }
        }
        overflow
    }

    /// Whether a result may have a multiplicity beyond 64 bits: the product of what its rows and the sums below them have ever been does.
    /// Costs the same whatever the data. Where it says so, only enumeration can tell.
    pub(crate) fn may_overflow_counts(&self) -> bool {
        if self.set {
            return false;
        }
        let mut bound = 1i128;
        let mut times = |factor: i128| bound = bound.saturating_mul(factor);
        for node in self.nodes.iter().filter(|node| node.connex) {
            (0..node.power).for_each(|_| times(i128::from(node.peak)));
            for &hub in &node.downs {
                let hub = &self.edges[hub].hub;
                (0..hub.sides()).filter(|&side| hub.is_value_side(side)).for_each(|side| times(hub.peak(side)));
            }
        }
        bound > i128::from(i64::MAX)
    }
}

fn build_node(n: usize, node: &NodeShape, hubs: &[HubShape], shape: &TreeShape) -> Node {
    let spec = |hub: usize| key_spec(&hubs[hub].key, &node.columns, &shape.variables);
    let up = (node.up != usize::MAX)
        .then(|| (node.up, hubs[node.up].children.iter().position(|&c| c == n).expect("the hub lists its child")));
    let stored = node.factors.iter().flatten().count();
    let layout = row_layout(&node.columns, &shape.variables);
    Node {
        weightless: shape.set,
        has_phantom: false,
        shown: Vec::new(),
        rows: Rows::new(layout.width, stored, node.downs.len(), node.atom.is_some()),
        connex: node.connex,
        up,
        downs: node.downs.clone(),
        up_key: up.map_or_else(KeySpec::default, |(hub, _)| spec(hub)),
        down_keys: node.downs.iter().map(|&h| spec(h)).collect(),
        factors: node.factors.clone(),
        power: node.power,
        is_relation: node.atom.is_some(),
        is_row_free: node.is_row_free(),
        columns: node.columns.clone(),
        layout,
        repeated: 0,
        peak: 1,
    }
}

/// The nodes whose annotations nobody reads: all of a DISTINCT query, and those below an edge that asks for existence only.
fn weightless_nodes(shape: &TreeShape) -> Vec<bool> {
    let mut found = vec![shape.set; shape.nodes.len()];
    let mut waiting: Vec<(usize, bool)> = vec![(0, shape.set)];
    while let Some((hub, below)) = waiting.pop() {
        let below = below || shape.hubs[hub].kind.is_support_only();
        for &child in &shape.hubs[hub].children {
            found[child] = below;
            waiting.extend(shape.nodes[child].downs.iter().map(|&down| (down, below)));
        }
    }
    found
}

fn top_down(nodes: &[Node], edges: &[Edge], top: usize) -> Vec<usize> {
    let mut order = vec![top];
    let mut at = 0;
    while at < order.len() {
        order.extend(nodes[order[at]].downs.iter().flat_map(|&h| edges[h].children.iter().copied()));
        at += 1;
    }
    order.remove(0);
    order
}
