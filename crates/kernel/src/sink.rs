//! Where emitted rows go, column by column.

use crate::enumerate::Walk;
use crate::hash::hash_words;
use crate::tree::Tree;
use hashbrown::HashTable;

/// Rows of a sink that one witness led to, and the rows visited for them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) first: usize,
    pub(crate) end: usize,
    pub(crate) steps: u64,
}

/// Blocks by the entry above their witness.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    index: HashTable<(u32, Block)>,
}

impl Blocks {
    pub(crate) fn find(&self, entry: u32) -> Option<Block> {
        self.index.find(hash_words(&[u64::from(entry)]), |(of, _)| *of == entry).map(|(_, block)| *block)
    }

    pub(crate) fn insert(&mut self, entry: u32, block: Block) {
        self.index
            .insert_unique(hash_words(&[u64::from(entry)]), (entry, block), |(of, _)| hash_words(&[u64::from(*of)]));
    }

    pub(crate) fn forget(&mut self) {
        self.index.clear();
    }
}

/// Emitted rows, column by column.
#[derive(Debug, Default)]
pub struct Sink {
    /// The emitted words, one vector per emitted word column of the tree's head layout.
    pub columns: Vec<Vec<u64>>,
    /// The multiplicity (or its change) of each row.
    pub multiplicities: Vec<i64>,
    /// The further components (or their change) of each row, one vector per component.
    pub components: Vec<Vec<i128>>,
    /// What the next rows are weighted with.
    pub(crate) start: Vec<i128>,
    /// How many rows it may hold.
    pub(crate) room: Option<usize>,
    /// There were more rows than that.
    full: bool,
    /// All annotations are 1: results carry the weight of their witness.
    pub(crate) unit: bool,
    /// Where the enumeration into it stands.
    pub(crate) walk: Walk,
    /// By entry above a witness, the rows that the first witness with this entry led to.
    pub(crate) blocks: Blocks,
}

impl Sink {
    /// An empty sink for a tree's results.
    pub fn new(tree: &Tree) -> Self {
        Self {
            columns: vec![Vec::new(); tree.head.words.len()],
            components: vec![Vec::new(); tree.components - 1],
            ..Self::default()
        }
    }

    /// Rows that did not come from a tree.
    pub fn of(columns: Vec<Vec<u64>>, multiplicities: Vec<i64>) -> Self {
        Self { columns, multiplicities, ..Self::default() }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.multiplicities.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.multiplicities.is_empty()
    }

    /// Lets it hold so many rows at most; what comes beyond is lost, and `is_full` tells.
    pub fn set_room(&mut self, rows: Option<usize>) {
        self.room = rows;
    }

    /// Whether rows were lost for want of room.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Whether so many more rows have room; if not, they are lost.
    pub(crate) fn has_room_for(&mut self, rows: usize) -> bool {
        self.full |= self.room.is_some_and(|room| self.len() + rows > room);
        !self.full
    }

    /// Keeps the first rows only.
    pub(crate) fn truncate(&mut self, rows: usize) {
        self.columns.iter_mut().for_each(|column| column.truncate(rows));
        self.components.iter_mut().for_each(|component| component.truncate(rows));
        self.multiplicities.truncate(rows);
    }

    /// Drops the rows.
    pub fn clear(&mut self) {
        self.columns.iter_mut().for_each(Vec::clear);
        self.components.iter_mut().for_each(Vec::clear);
        self.multiplicities.clear();
    }

    /// The next rows are weighted with `weight`.
    pub(crate) fn start(&mut self, weight: &[i128]) {
        self.start.clear();
        self.start.extend_from_slice(weight);
    }

    /// Moves the rows of another sink here.
    pub(crate) fn append(&mut self, other: &mut Self) {
        self.columns.iter_mut().zip(&mut other.columns).for_each(|(to, from)| to.append(from));
        self.components.iter_mut().zip(&mut other.components).for_each(|(to, from)| to.append(from));
        self.multiplicities.append(&mut other.multiplicities);
        other.blocks.forget();
    }

    /// Whether the results of a witness are not complete yet.
    pub(crate) fn is_midway(&self) -> bool {
        self.walk.at != 0
    }

    /// Rows that follow have annotation 1 in every node but the witness.
    pub(crate) fn set_unit(&mut self, unit: bool) {
        self.unit = unit;
    }

    /// Adds the annotation of a row; returns whether its multiplicity left its range.
    #[inline]
    pub(crate) fn push_weight(&mut self, weight: &[i128]) -> bool {
        let multiplicity = i64::try_from(weight[0]);
        self.multiplicities.push(multiplicity.unwrap_or(i64::MAX));
        for (column, &value) in self.components.iter_mut().zip(&weight[1..]) {
            column.push(value);
        }
        multiplicity.is_err()
    }
}
