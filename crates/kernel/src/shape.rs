//! The shape of a semi-join tree, resolved to word positions.
//!
//! A `TreeShape` is what the plan says: variables, nodes, hubs. `Layout` is what the tree runs on: for every node where each
//! column's words stand, for every hub how to cut its key out of a child's or a parent's words, for every head column where
//! enumeration finds it. NULL is represented apart: a node with nullable columns has one more word for every 64 columns or part of
//! them, a bit mask of its NULL columns, which is part of the row's identity (and the words of a NULL column are zero).

use serde::Deserialize;

/// A variable: how many words it takes and whether it can be NULL inside the tree.
#[derive(Clone, Copy, Debug)]
pub struct VariableShape {
    /// One word, or two for decimals of more than 18 digits.
    pub words: usize,
    /// Whether rows have a NULL bit for it. A key that is NULL is a key like any other (NULL = NULL matches), so rows that must not match
    /// are dropped before they reach the tree.
    pub nullable: bool,
    /// Whether a row of an atom may be NULL there, not only a phantom.
    pub null_in_rows: bool,
}

/// What a hub asks of a parent row, and what it adds to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EdgeKind {
    /// The row needs an alive row on every side; these are part of the result.
    #[default]
    Required,
    /// The row needs an alive row below, which counts once whatever their number; never connex.
    Exists,
    /// The row needs that there is no alive row below; never connex.
    Forbids,
    /// The row needs nothing; while there is no alive row below, the child's subtree contributes one phantom.
    Optional,
}

impl EdgeKind {
    /// Whether only existence below matters: neither values nor results pass.
    pub fn is_support_only(self) -> bool {
        matches!(self, Self::Exists | Self::Forbids)
    }
}

/// A node: the rows of an atom, or the counted distinct projection of what is below its guard hub.
#[derive(Clone, Debug)]
pub struct NodeShape {
    /// The atom of a relation; `None` for a projection.
    pub atom: Option<usize>,
    /// The variables, in the order of the row's words.
    pub columns: Vec<usize>,
    /// Whether results bind this node.
    pub connex: bool,
    /// The hub above.
    pub up: usize,
    /// The hubs below.
    pub downs: Vec<usize>,
    /// Per component the place among the row's own factors, or `None` where the multiplicity counts.
    pub factors: Vec<Option<usize>>,
    /// The number of equal atoms the node stands for: their multiplicities multiply.
    pub power: u32,
    /// The rows are to be stored even where nothing in the tree reads them.
    pub stores_rows: bool,
}

/// A hub: the key shared by a parent node and its children.
#[derive(Clone, Debug)]
pub struct HubShape {
    /// The key variables.
    pub key: Vec<usize>,
    /// The node above; only hub 0 has none.
    pub parent: Option<usize>,
    /// The nodes below, one side each; exactly one unless the kind is `Required`.
    pub children: Vec<usize>,
    /// What it asks of a parent row; hub 0 and guards of projections do not forbid and are not optional.
    pub kind: EdgeKind,
    /// The annotation of an optional hub's phantom, per component beyond the multiplicity, which is 1.
    pub phantom: Vec<i128>,
}

/// A semi-join tree as planned.
#[derive(Clone, Debug)]
pub struct TreeShape {
    /// The variables of the query.
    pub variables: Vec<VariableShape>,
    /// The nodes.
    pub nodes: Vec<NodeShape>,
    /// The hubs; hub 0 is the root hub with the empty key.
    pub hubs: Vec<HubShape>,
    /// The output variables, in order.
    pub head: Vec<usize>,
    /// Support edges only: results have multiplicity 1.
    pub set: bool,
    /// Annotation components beyond the multiplicity.
    pub components: usize,
}

impl NodeShape {
    /// Whether the entries above say all that is asked of the rows, which are not stored then: a leaf outside the connex part, of one atom.
    pub fn is_row_free(&self) -> bool {
        self.atom.is_some() && !self.connex && self.downs.is_empty() && self.power == 1 && !self.stores_rows
    }
}

impl TreeShape {
    /// Per node whether it is connex and below an optional edge: results may bind it to a phantom.
    pub fn phantom_nodes(&self) -> Vec<bool> {
        let mut found = vec![false; self.nodes.len()];
        let mut waiting = vec![(0, false)];
        while let Some((hub, below_optional)) = waiting.pop() {
            let hub = &self.hubs[hub];
            let below_optional = below_optional || hub.kind == EdgeKind::Optional;
            for &child in hub.children.iter().filter(|&&child| self.nodes[child].connex) {
                found[child] = below_optional;
                waiting.extend(self.nodes[child].downs.iter().map(|&down| (down, below_optional)));
            }
        }
        found
    }

    /// The connex nodes from the root down, level by level.
    pub fn connex_top_down(&self) -> Vec<usize> {
        let connex = |&n: &usize| self.nodes[n].connex;
        let mut order: Vec<usize> = self.hubs[0].children.iter().copied().filter(connex).collect();
        let mut at = 0;
        while at < order.len() {
            let downs = self.nodes[order[at]].downs.iter();
            order.extend(downs.flat_map(|&hub| self.hubs[hub].children.iter().copied()).filter(connex));
            at += 1;
        }
        order
    }

    /// Per variable the connex node that results take it from: the one nearest to the root that holds it.
    pub fn shown_by(&self) -> Vec<Option<usize>> {
        let mut found = vec![None; self.variables.len()];
        for node in self.connex_top_down() {
            for &v in &self.nodes[node].columns {
                found[v].get_or_insert(node);
            }
        }
        found
    }

    /// Whether a phantom of a hub may look like results through rows: none of the variables that results take from rows there whenever it
    /// is not a phantom is free of NULL.
    pub fn phantom_may_look_real(&self, hub: usize) -> bool {
        let shown_by = self.shown_by();
        let mut waiting = vec![hub];
        while let Some(at) = waiting.pop() {
            if at != hub && self.hubs[at].kind != EdgeKind::Required {
                continue;
            }
            for &child in self.hubs[at].children.iter().filter(|&&child| self.nodes[child].connex) {
                let tells = |&v: &usize| shown_by[v] == Some(child) && !self.variables[v].null_in_rows;
                if self.nodes[child].columns.iter().any(tells) {
                    return false;
                }
                waiting.extend(&self.nodes[child].downs);
            }
        }
        true
    }

    /// Makes the variables nullable that a phantom shows as NULL.
    pub fn allow_phantoms(&mut self) {
        let phantom_nodes = self.phantom_nodes();
        for (v, node) in self.shown_by().into_iter().enumerate() {
            self.variables[v].nullable |= node.is_some_and(|node| phantom_nodes[node]);
        }
    }
}

/// Columns per mask word.
const MASK_BITS: usize = 64;

/// The place of a column's NULL bit: a word, and the bit in it.
pub type NullPlace = (usize, u32);

/// The NULL bit of the column at `position`, where the mask words start at `mask`.
pub fn null_place(mask: usize, position: usize) -> NullPlace {
    (mask + position / MASK_BITS, (position % MASK_BITS) as u32)
}

/// How many mask words rows of so many columns have, if they have a mask.
pub fn mask_words(columns: usize) -> usize {
    columns.div_ceil(MASK_BITS)
}

/// How to cut a key out of the words of a row.
#[derive(Clone, Debug, Default)]
pub struct KeySpec {
    words: Vec<usize>,
    /// Per column of the key its NULL bit in the row, if it can be NULL; nothing if no column can, and the key has no mask then.
    nulls: Vec<Option<NullPlace>>,
}

impl KeySpec {
    /// A key of these words, with columns of which these can be NULL.
    pub fn new(words: Vec<usize>, nulls: Vec<Option<NullPlace>>) -> Self {
        let masked = nulls.iter().any(Option::is_some);
        Self { words, nulls: if masked { nulls } else { Vec::new() } }
    }

    /// The row's word that is a word of the key, which must not be its mask.
    pub fn word(&self, word: usize) -> usize {
        self.words[word]
    }

    /// Words of the key, masks included.
    pub fn width(&self) -> usize {
        self.words.len() + mask_words(self.nulls.len())
    }

    /// The first mask word of the key, if it has a mask.
    pub fn mask(&self) -> Option<usize> {
        (!self.nulls.is_empty()).then_some(self.words.len())
    }

    /// Writes the key of the row with these words into `key`.
    #[inline]
    pub fn cut(&self, row: impl Fn(usize) -> u64, key: &mut Vec<u64>) {
        key.clear();
        key.extend(self.words.iter().map(|&word| row(word)));
        for columns in self.nulls.chunks(MASK_BITS) {
            let bit = |(to, from): (usize, &Option<NullPlace>)| from.map_or(0, |(at, bit)| (row(at) >> bit & 1) << to);
            key.push(columns.iter().enumerate().map(bit).sum());
        }
    }
}

/// A key with these values (words, and whether it is NULL), in its layout; `None` if one is NULL and the key has no mask.
pub fn pack_key<'a>(values: impl Iterator<Item = &'a (Vec<u64>, bool)>, masked: bool) -> Option<Vec<u64>> {
    let (mut words, mut masks) = (Vec::new(), Vec::new());
    for (position, (value, is_null)) in values.enumerate() {
        let (at, bit) = null_place(0, position);
        masks.resize(at + 1, 0);
        masks[at] |= u64::from(*is_null) << bit;
        words.extend_from_slice(value);
    }
    if masked {
        words.extend(masks);
        return Some(words);
    }
    masks.iter().all(|&mask| mask == 0).then_some(words)
}

/// Where the words of a node's columns stand.
#[derive(Clone, Debug)]
pub struct RowLayout {
    /// Per column its first word.
    pub offsets: Vec<usize>,
    /// The first mask word, if a column can be NULL.
    pub mask: Option<usize>,
    /// Words per row.
    pub width: usize,
}

impl RowLayout {
    /// The NULL bit of the column at a position, if the rows have a mask.
    pub fn null(&self, position: usize) -> Option<NullPlace> {
        self.mask.map(|mask| null_place(mask, position))
    }
}

/// The layout of rows with these columns.
pub fn row_layout(columns: &[usize], variables: &[VariableShape]) -> RowLayout {
    let mut width = 0;
    let offsets = columns.iter().map(|&v| (width, width += variables[v].words).0).collect();
    let mask = columns.iter().any(|&v| variables[v].nullable).then_some(width);
    RowLayout { offsets, mask, width: width + mask.map_or(0, |_| mask_words(columns.len())) }
}

/// The way to cut the key `key` out of rows with the columns `columns`.
pub fn key_spec(key: &[usize], columns: &[usize], variables: &[VariableShape]) -> KeySpec {
    let layout = row_layout(columns, variables);
    let place = |v: usize| columns.iter().position(|&c| c == v).expect("a key variable is a column");
    let words = key.iter().flat_map(|&v| {
        let first = layout.offsets[place(v)];
        first..first + variables[v].words
    });
    let null = |&v: &usize| layout.null(place(v)).filter(|_| variables[v].nullable);
    KeySpec::new(words.collect(), key.iter().map(null).collect())
}

/// Where a head column stands among the columns a tree emits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadColumn {
    /// The first of its emitted word columns.
    pub first: usize,
    /// How many there are.
    pub words: usize,
    /// The emitted mask column and the bit in it that says NULL.
    pub null: Option<NullPlace>,
}

/// One emitted word column: which node's word it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmittedWord {
    /// The node that provides it.
    pub node: usize,
    /// The word within the node's rows.
    pub word: usize,
}

/// What a tree emits for its head.
#[derive(Clone, Debug, Default)]
pub struct HeadLayout {
    /// Per head column its place.
    pub columns: Vec<HeadColumn>,
    /// The emitted word columns, masks last.
    pub words: Vec<EmittedWord>,
}

impl HeadLayout {
    /// The emitted mask columns, and the bits of each that say something of a head column. Other bits are those of columns of the same rows
    /// that results take from elsewhere.
    pub fn masks(&self) -> Vec<(usize, u64)> {
        let mut masks: Vec<(usize, u64)> = Vec::new();
        for (word, bit) in self.columns.iter().filter_map(|column| column.null) {
            match masks.iter_mut().find(|(of, _)| *of == word) {
                Some((_, bits)) => *bits |= 1 << bit,
                None => masks.push((word, 1 << bit)),
            }
        }
        masks
    }
}

/// The layout of the results of a tree: every head variable comes from the connex node nearest to the root that holds it.
pub fn head_layout(shape: &TreeShape) -> HeadLayout {
    let mut layout = HeadLayout::default();
    let mut masked = Vec::new();
    let shown_by = shape.shown_by();
    for &v in &shape.head {
        let node = shown_by[v].expect("every head variable occurs in a connex node");
        let rows = row_layout(&shape.nodes[node].columns, &shape.variables);
        let place = shape.nodes[node].columns.iter().position(|&c| c == v).expect("found above");
        let (first, words) = (layout.words.len(), shape.variables[v].words);
        layout.words.extend((0..words).map(|w| EmittedWord { node, word: rows.offsets[place] + w }));
        masked.push(rows.null(place).filter(|_| shape.variables[v].nullable).map(|(word, bit)| (node, word, bit)));
        layout.columns.push(HeadColumn { first, words, null: None });
    }
    for (column, null) in layout.columns.iter_mut().zip(masked) {
        if let Some((node, word, bit)) = null {
            let mask = EmittedWord { node, word };
            let at = layout.words.iter().position(|&w| w == mask).unwrap_or_else(|| {
                layout.words.push(mask);
                layout.words.len() - 1
            });
            column.null = Some((at, bit));
        }
    }
    layout
}
