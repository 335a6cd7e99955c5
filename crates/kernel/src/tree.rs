//! The semi-join tree: relations, hubs and projections, and the change of one batch.
//!
//! Nodes and hubs alternate from hub 0 down. The tree adds one node of its own above hub 0: the *top*, a projection with no
//! columns and one row, so that every hub has a parent and "the result is not empty" is "the top row is alive".
//!
//! A batch is applied atom by atom. For one atom: rows change, every hub entry touched is settled once, and only entries whose
//! support or value differs afterwards reach the rows above (`settle`). At the lowest connex node on the way, the rows whose
//! annotation changes are the witnesses of the delta (`enumerate`). Rows of the batch carry the marks NEW and DOOMED from the
//! start to the end of the batch, so that results that would be added by one atom and removed by another are never emitted.
//!
//! Cost: one probe per edge for an inserted or deleted row, then pointer chasing. Support edges: `O(lambda_T)` amortised per
//! change (Change Propagation Without Joins, Theorem 6.6). Value edges: a changed value visits the live parents of its entry if
//! deltas are wanted, none otherwise; below the connex part it visits all of them.

use crate::annotation;
use crate::counters::Counters;
use crate::delta::Delta;
use crate::enumerate::{Program, Sink};
use crate::hub::Hub;
use crate::pending::PendingRows;
use crate::rows::{ALIVE, LINKED, LIVE, NONE, Rows};
use crate::shape::{HeadLayout, HubShape, KeySpec, NodeShape, TreeShape, head_layout, key_spec, row_layout};

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
    /// The variables, in the order of the row's words.
    pub(crate) columns: Vec<usize>,
    /// Whether the row ends in a mask word.
    pub(crate) masked: bool,
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

/// What a hub knows of its surroundings.
#[derive(Debug)]
pub(crate) struct Edge {
    pub(crate) hub: Hub,
    pub(crate) parent: usize,
    /// The place of this hub among the parent's hubs below.
    pub(crate) place: usize,
    pub(crate) children: Vec<usize>,
    /// The parent is a projection that has one row per entry of this hub.
    pub(crate) is_guard: bool,
    /// Sides in the connex part.
    pub(crate) connex_sides: Vec<usize>,
    /// The key variables.
    pub(crate) key: Vec<usize>,
    /// Whether the key ends in a mask word.
    pub(crate) masked: bool,
}

/// Whether a batch could be applied within range, and whether its delta may hold a row more than once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// A ring value left the range of 128 bits; the caller must apply the inverse.
    pub overflow: bool,
    /// The emitted rows must be added up by row before they are a net delta: several atoms changed, and each emits a delta of its own.
    /// Within one atom's delta every result is there once.
    pub consolidate: bool,
    /// The delta had more rows than there was room for; the caller must apply the inverse.
    pub full: bool,
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
    /// All relations are connex: results are combinations of rows.
    full: bool,
    pub(crate) head: HeadLayout,
    pub(crate) programs: Vec<Option<Program>>,
    /// Whether live marks are up to date.
    marked: bool,
    pub(crate) overflow: bool,
    pub(crate) counters: Counters,
    pub(crate) scratch: crate::settle::Scratch,
    /// Per atom its rows in the batch.
    pub(crate) pending: Vec<PendingRows>,
    /// Buffers for keys, as many as guards stand above each other.
    keys: Vec<Vec<u64>>,
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
        });
        hub_shapes[0].parent = Some(top);
        let edges: Vec<Edge> =
            hub_shapes.iter().enumerate().map(|(h, hub)| edge(h, hub, &node_shapes, shape)).collect();
        let nodes: Vec<Node> =
            node_shapes.iter().enumerate().map(|(n, node)| build_node(n, node, &hub_shapes, shape)).collect();
        let mut atom_nodes: Vec<(usize, usize)> =
            node_shapes.iter().enumerate().filter_map(|(n, node)| Some((node.atom?, n))).collect();
        atom_nodes.sort_unstable();
        let atom_nodes: Vec<usize> = atom_nodes.into_iter().map(|(_, n)| n).collect();
        let from_top = top_down(&nodes, &edges, top);
        let head = head_layout(shape, &from_top);
        let depth_first = |n: &usize| from_top.iter().rev().position(|m| m == n);
        let mut order: Vec<usize> = (0..atom_nodes.len()).collect();
        order.sort_by_key(|&atom| depth_first(&atom_nodes[atom]));
        let mut tree = Self {
            full: nodes.iter().all(|n| n.connex),
            pending: vec![PendingRows::default(); atom_nodes.len()],
            nodes,
            edges,
            top,
            atom_nodes,
            order,
            components,
            set: shape.set,
            head,
            programs: Vec::new(),
            marked: true,
            overflow: false,
            counters: Counters::default(),
            scratch: crate::settle::Scratch::default(),
            keys: Vec::new(),
        };
        tree.programs = (0..tree.nodes.len()).map(|n| Program::build(&tree, n)).collect();
        let (entry, _) = tree.edges[0].hub.find_or_insert(&[]);
        tree.create_projection_row(0, entry);
        tree
    }

    /// Lets the rows of an atom be found by the rows of the base table that they stand for. Each must stand for one of its own, and all
    /// changes of the atom must name them. To be called before the first row comes.
    pub fn find_by_source(&mut self, atom: usize) {
        let node = &mut self.nodes[self.atom_nodes[atom]];
        let stored = node.factors.iter().flatten().count();
        node.rows = Rows::with_sources(node.rows.width(), stored, node.downs.len());
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

    /// The rows of an atom, with their multiplicities.
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
    /// Every row's multiplicity must stay at least 0; the caller has checked this on the base tables.
    pub fn apply(&mut self, changes: &[AtomChanges], sink: Option<&mut Sink>) -> Applied {
        self.apply_into(changes, sink.map(|sink| Delta::new(sink, &mut [], None)))
    }

    /// As `apply`, with a delta of which pieces may leave before the end. They do where every row weighs 1: nothing can overflow then, and
    /// no two rows of the delta are equal.
    pub fn apply_into(&mut self, changes: &[AtomChanges], mut delta: Option<Delta>) -> Applied {
        let keep_marks = delta.is_some();
        self.run_batch(changes, delta.as_mut(), keep_marks)
    }

    /// Takes back the batch that was applied last, whatever came of it. Its atoms are undone in reverse order, so that the tree passes
    /// through the states it came by. Ring arithmetic undoes exactly what it did, overflow or not.
    pub fn undo(&mut self, changes: &[AtomChanges]) {
        let inverse: Vec<AtomChanges> = changes.iter().map(AtomChanges::inverse).collect();
        self.order.reverse();
        self.run_batch(&inverse, None, self.marked);
        self.order.reverse();
    }

    fn run_batch(&mut self, changes: &[AtomChanges], mut delta: Option<&mut Delta>, keep_marks: bool) -> Applied {
        self.overflow = false;
        let threads = if let Some(delta) = &delta
            && changes.iter().map(|c| c.weights.len()).sum::<usize>() > delta.share()
        {
            delta.threads()
        } else {
            1
        };
        let resolved = self.each_atom(threads, |atom, node, pending| pending.resolve(node, &changes[atom]));
        self.counters.probes += changes.iter().map(|c| c.weights.len() as u64).sum::<u64>();
        self.overflow |= resolved.overflow;
        let repeated = resolved.repeated || self.nodes.iter().any(|n| n.repeated > 0);
        // joins of sets that keep all columns: every row weighs 1, and marks keep the atoms' deltas apart
        let marked = self.full && (self.set || self.components == 1 && !repeated);
        let changed = self.pending.iter().filter(|p| !p.rows.is_empty()).count();
        if let Some(delta) = &mut delta {
            delta.begin(self.set || marked, marked && !repeated);
        }
        if keep_marks {
            self.ensure_marked();
        } else {
            self.marked = false;
        }
        for at in 0..self.order.len() {
            let atom = self.order[at];
            let mut pending = std::mem::take(&mut self.pending[atom]);
            if !pending.rows.is_empty() {
                self.find_entries(self.atom_nodes[atom], &mut pending, threads);
                self.step(self.atom_nodes[atom], &pending, delta.as_deref_mut(), marked);
            }
            self.pending[atom] = pending;
        }
        let mut full = false;
        if let Some(delta) = delta {
            full = delta.is_full();
            delta.gather();
        }
        self.each_atom(threads, |_, node, pending| pending.unmark(node));
        Applied { overflow: self.overflow, consolidate: !marked && changed > 1, full }
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

    /// Links a new row to its entries below and above. `known`: those of them that were looked up before, in this order, `NONE` for others.
    pub(crate) fn link_row(&mut self, node: usize, row: u32, known: &[u32]) {
        let mut key = self.keys.pop().unwrap_or_default();
        for place in 0..self.nodes[node].downs.len() {
            let entry = self.entry_of(node, row, place, known, &mut key);
            self.attach_below(node, row, place, entry);
        }
        let from = &self.nodes[node];
        if let Some((hub, _)) = from.up {
            let entry = self.entry_of(node, row, from.downs.len(), known, &mut key);
            self.nodes[node].rows.set_up(row, entry);
            self.edges[hub].hub.add_child(entry);
        }
        self.nodes[node].rows.set(row, LINKED);
        self.keys.push(key);
    }

    /// The entry of a row at one of its links; see `Node::link`.
    fn entry_of(&mut self, node: usize, row: u32, link: usize, known: &[u32], key: &mut Vec<u64>) -> u32 {
        if let Some(&entry) = known.get(link)
            && entry != NONE
        {
            self.counters.probes += 1;
            return entry;
        }
        let from = &self.nodes[node];
        let (hub, spec) = from.link(link);
        let words = from.rows.values(row);
        spec.cut(|at| words[at], key);
        self.entry(hub, key)
    }

    fn attach_below(&mut self, node: usize, row: u32, place: usize, entry: u32) {
        let edge = &mut self.edges[self.nodes[node].downs[place]];
        let rows = &mut self.nodes[node].rows;
        rows.set_down(row, place, entry);
        let list = rows.link_parent(row, place, edge.hub.parent_list(entry), false);
        edge.hub.set_parent_list(entry, list);
        edge.hub.count_parent(entry, 1);
        if !edge.hub.complete(entry) {
            rows.lose_support(row);
        }
    }

    /// The entry of a key, made if need be; a guard hub's new entry gets its projection row.
    fn entry(&mut self, hub: usize, key: &[u64]) -> u32 {
        self.counters.probes += 1;
        let (entry, is_new) = self.edges[hub].hub.find_or_insert(key);
        if is_new && self.edges[hub].is_guard {
            self.create_projection_row(hub, entry);
        }
        entry
    }

    /// Makes the row of a guard's new entry, and what it refers to. Recursive where guards stand above guards; buffers are recycled.
    fn create_projection_row(&mut self, hub: usize, entry: u32) {
        let node = self.edges[hub].parent;
        let row = self.nodes[node].rows.insert_unindexed(self.edges[hub].hub.key(entry));
        self.nodes[node].rows.set_weight(row, 1);
        let mut key = self.keys.pop().unwrap_or_default();
        self.attach_below(node, row, 0, entry);
        for place in 1..self.nodes[node].downs.len() {
            let from = &self.nodes[node];
            let words = from.rows.values(row);
            from.down_keys[place].cut(|at| words[at], &mut key);
            let below = self.entry(from.downs[place], &key);
            self.attach_below(node, row, place, below);
        }
        let from = &self.nodes[node];
        if let Some((above, _)) = from.up {
            let words = from.rows.values(row);
            from.up_key.cut(|at| words[at], &mut key);
            let up = self.entry(above, &key);
            self.nodes[node].rows.set_up(row, up);
            self.edges[above].hub.add_child(up);
        }
        self.nodes[node].rows.set(row, LINKED);
        self.keys.push(key);
    }

    /// Takes a dead row out of the tree and frees what nothing refers to any more.
    pub(crate) fn free_row(&mut self, node: usize, row: u32) {
        debug_assert!(!self.nodes[node].rows.has_any(row, ALIVE | LIVE));
        for place in 0..self.nodes[node].downs.len() {
            let hub = self.nodes[node].downs[place];
            let entry = self.nodes[node].rows.down(row, place);
            let edge = &mut self.edges[hub];
            let list = self.nodes[node].rows.unlink_parent(row, place, edge.hub.parent_list(entry));
            edge.hub.set_parent_list(entry, list);
            edge.hub.count_parent(entry, -1);
            if edge.hub.parents(entry) == 0 && edge.hub.children(entry) == 0 {
                edge.hub.remove(entry);
            }
        }
        let up = self.nodes[node].up.map(|(hub, _)| (hub, self.nodes[node].rows.up(row)));
        self.nodes[node].rows.remove(row);
        let Some((hub, entry)) = up else { return };
        let edge = &mut self.edges[hub];
        if edge.hub.drop_child(entry) > 0 || edge.parent == self.top {
            return;
        }
        if edge.is_guard {
            let (projection, parent) = (edge.hub.parent_list(entry).0, edge.parent);
            self.free_row(parent, projection);
        } else if edge.hub.parents(entry) == 0 {
            edge.hub.remove(entry);
        }
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

    /// Multiplies `into` by the values a row's hubs below pass to it; returns whether a product overflowed.
    #[inline]
    pub(crate) fn times_below(&self, node: usize, row: u32, skip: Option<usize>, into: &mut [i128]) -> bool {
        let mut overflow = false;
        let node = &self.nodes[node];
        for (place, &hub) in node.downs.iter().enumerate() {
            let hub = &self.edges[hub].hub;
            if hub.has_values() && skip != Some(place) {
                for sums in hub.all_sums(node.rows.down(row, place)).chunks_exact(into.len()) {
                    overflow |= annotation::multiply(into, sums);
                }
            }
        }
        overflow
    }

    /// Recomputes all live marks after a time without deltas: one pass over the connex part.
    fn mark_all(&mut self) {
        for node in 0..self.nodes.len() {
            if self.nodes[node].connex && node != self.top {
                for row in self.nodes[node].rows.ids().collect::<Vec<_>>() {
                    self.nodes[node].rows.clear(row, LIVE);
                }
            }
        }
        self.nodes[self.top].rows.clear(0, LIVE);
        for edge in &mut self.edges {
            edge.hub.forget_live_parents();
        }
        self.marked = true;
        self.enliven(self.top, 0);
    }

    /// Brings live marks up to date.
    pub(crate) fn ensure_marked(&mut self) {
        if !self.marked {
            self.mark_all();
        }
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

    /// Whether live marks are kept at present.
    pub(crate) fn marks_live(&self) -> bool {
        self.marked
    }
}

fn edge(h: usize, hub: &HubShape, nodes: &[NodeShape], shape: &TreeShape) -> Edge {
    let parent = hub.parent.expect("every hub has a parent once the top is there");
    let place = nodes[parent].downs.iter().position(|&d| d == h).expect("the parent lists the hub");
    let values: Vec<bool> = hub.children.iter().map(|&c| !shape.set && !nodes[c].connex).collect();
    let layout = row_layout(&hub.key, &shape.variables);
    Edge {
        masked: layout.mask.is_some(),
        hub: Hub::new(layout.width, &values, shape.components + 1),
        parent,
        place,
        children: hub.children.clone(),
        is_guard: nodes[parent].atom.is_none() && place == 0,
        key: hub.key.clone(),
        connex_sides: (0..hub.children.len()).filter(|&s| nodes[hub.children[s]].connex).collect(),
    }
}

fn build_node(n: usize, node: &NodeShape, hubs: &[HubShape], shape: &TreeShape) -> Node {
    let spec = |hub: usize| key_spec(&hubs[hub].key, &node.columns, &shape.variables);
    let up = (node.up != usize::MAX)
        .then(|| (node.up, hubs[node.up].children.iter().position(|&c| c == n).expect("the hub lists its child")));
    let stored = node.factors.iter().flatten().count();
    let layout = row_layout(&node.columns, &shape.variables);
    Node {
        masked: layout.mask.is_some(),
        rows: Rows::new(layout.width, stored, node.downs.len(), node.atom.is_some()),
        connex: node.connex,
        up,
        downs: node.downs.clone(),
        up_key: up.map_or_else(KeySpec::default, |(hub, _)| spec(hub)),
        down_keys: node.downs.iter().map(|&h| spec(h)).collect(),
        factors: node.factors.clone(),
        power: node.power,
        is_relation: node.atom.is_some(),
        columns: node.columns.clone(),
        repeated: 0,
        peak: 1,
    }
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
