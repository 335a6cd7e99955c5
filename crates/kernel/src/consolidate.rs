//! Adding up equal rows: emitted words in place, Arrow rows by way of their words.

use crate::codec::{Place, encode, words_of};
use crate::enumerate::Sink;
use crate::hash::{fold, hash_words};
use crate::interner::Interner;
use crate::shape::{HeadColumn, HeadLayout};
use arrow_array::ArrayRef;
use everview_expr::DataType;
use hashbrown::HashTable;

/// Adds up the multiplicities of equal emitted rows and drops rows that cancel out. The sink has no further components.
pub fn consolidate(sink: &mut Sink) {
    let count = sink.len();
    let mut index: HashTable<u32> = HashTable::with_capacity(count);
    let hash_of = |columns: &[Vec<u64>], row: usize| columns.iter().fold(1, |hash, column| fold(hash, column[row]));
    let mut kept = 0;
    for row in 0..count {
        let columns = &mut sink.columns;
        let hash = hash_of(columns, row);
        let same = |&other: &u32| columns.iter().all(|column| column[other as usize] == column[row]);
        if let Some(&other) = index.find(hash, same) {
            sink.multiplicities[other as usize] += sink.multiplicities[row];
            continue;
        }
        for column in columns.iter_mut() {
            column[kept] = column[row];
        }
        sink.multiplicities[kept] = sink.multiplicities[row];
        index.insert_unique(hash, kept as u32, |&other| hash_of(&sink.columns, other as usize));
        kept += 1;
    }
    let mut left = 0;
    for row in 0..kept {
        if sink.multiplicities[row] != 0 {
            for column in &mut sink.columns {
                column[left] = column[row];
            }
            sink.multiplicities[left] = sink.multiplicities[row];
            left += 1;
        }
    }
    sink.columns.iter_mut().for_each(|column| column.truncate(left));
    sink.multiplicities.truncate(left);
}

/// Rows of Arrow columns as words, with a mask word at the end.
#[derive(Debug)]
pub struct RowCodec {
    types: Vec<DataType>,
    offsets: Vec<usize>,
    width: usize,
}

impl RowCodec {
    /// For rows of columns of these types.
    pub fn new(types: &[DataType]) -> Self {
        let mut width = 0;
        let offsets = types.iter().map(|&t| (width, width += words_of(t)).0).collect();
        Self { types: types.to_vec(), offsets, width: width + types.len().div_ceil(64) }
    }

    /// Words per row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The types of the columns.
    pub fn types(&self) -> &[DataType] {
        &self.types
    }

    /// The first word of a column, and the word and bit that say it is NULL.
    pub fn place(&self, column: usize) -> Place {
        let masks = self.width - self.types.len().div_ceil(64);
        Place {
            stride: self.width,
            offset: self.offsets[column],
            null: Some((masks + column / 64, (column % 64) as u32)),
        }
    }

    /// The layout of the rows as emitted words: each column's words, then one column per mask word.
    pub fn head(&self) -> HeadLayout {
        let column = |c: usize| {
            let Place { offset, null, .. } = self.place(c);
            HeadColumn { first: offset, words: words_of(self.types[c]), null }
        };
        HeadLayout { columns: (0..self.types.len()).map(column).collect(), words: Vec::new() }
    }

    /// The rows in the layout of `head`.
    pub fn emit(&self, columns: &[ArrayRef], weights: &[i64], interner: &mut Interner) -> Sink {
        let matrix = self.encode(columns, weights.len(), interner);
        let column = |w: usize| (0..weights.len()).map(|i| matrix[i * self.width + w]).collect();
        Sink::of((0..self.width).map(column).collect(), weights.to_vec())
    }

    /// The rows as words, one after another.
    pub fn encode(&self, columns: &[ArrayRef], count: usize, interner: &mut Interner) -> Vec<u64> {
        let mut matrix = vec![0; self.width * count];
        for (column, array) in columns.iter().enumerate() {
            encode(array, self.types[column], &mut matrix, self.place(column), interner);
        }
        matrix
    }

    /// The positions of one row of each set of equal rows that does not cancel out, with the sum of the multiplicities.
    pub fn net(&self, columns: &[ArrayRef], weights: &[i64], interner: &mut Interner) -> (Vec<u32>, Vec<i64>) {
        let matrix = self.encode(columns, weights.len(), interner);
        let row = |i: u32| &matrix[i as usize * self.width..(i as usize + 1) * self.width];
        let mut index: HashTable<(u32, usize)> = HashTable::with_capacity(weights.len());
        let (mut firsts, mut sums) = (Vec::new(), Vec::new());
        for (i, &weight) in weights.iter().enumerate() {
            let words = row(i as u32);
            let hash = hash_words(words);
            if let Some(&(_, at)) = index.find(hash, |&(other, _)| row(other) == words) {
                sums[at] += weight;
            } else {
                index.insert_unique(hash, (i as u32, firsts.len()), |&(other, _)| hash_words(row(other)));
                firsts.push(i as u32);
                sums.push(weight);
            }
        }
        let mut at = 0;
        firsts.retain(|_| (sums[at] != 0, at += 1).0);
        sums.retain(|&sum| sum != 0);
        (firsts, sums)
    }
}
