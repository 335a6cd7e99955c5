//! Adding up equal rows: emitted words in place, Arrow rows by way of their words.

use crate::codec::{Place, encode, words_of};
use crate::enumerate::Sink;
use crate::error::KernelError;
use crate::flow::{Chunk, Flow};
use crate::hash::{hash_each, hash_words};
use crate::interner::Interner;
use crate::shape::{HeadColumn, HeadLayout, mask_words, null_place};
use arrow_array::ArrayRef;
use everview_expr::DataType;
use hashbrown::HashTable;

/// Adds up equal emitted rows, their multiplicities and components, and drops rows that cancel out. Returns whether a sum left its range.
///
/// Multiplicities are added up in 128 bits: only what a row comes to must fit, whatever the order.
pub fn consolidate(sink: &mut Sink) -> bool {
    let count = sink.len();
    let mut index: HashTable<u32> = HashTable::with_capacity(count);
    let hash_of = |columns: &[Vec<u64>], row: usize| hash_each(columns.iter().map(|column| column[row]));
    let mut sums: Vec<i128> = Vec::with_capacity(count);
    let mut overflow = false;
    for row in 0..count {
        let columns = &mut sink.columns;
        let hash = hash_of(columns, row);
        let same = |&other: &u32| columns.iter().all(|column| column[other as usize] == column[row]);
        let weight = i128::from(sink.multiplicities[row]);
        if let Some(&other) = index.find(hash, same) {
            sums[other as usize] += weight;
            for component in &mut sink.components {
                let (sum, over) = component[other as usize].overflowing_add(component[row]);
                component[other as usize] = sum;
                overflow |= over;
            }
            continue;
        }
        let kept = sums.len();
        for column in columns.iter_mut() {
            column[kept] = column[row];
        }
        sink.components.iter_mut().for_each(|component| component[kept] = component[row]);
        sums.push(weight);
        index.insert_unique(hash, kept as u32, |&other| hash_of(&sink.columns, other as usize));
    }
    let mut left = 0;
    for (row, &sum) in sums.iter().enumerate() {
        if sum == 0 && sink.components.iter().all(|component| component[row] == 0) {
            continue;
        }
        sink.columns.iter_mut().for_each(|column| column[left] = column[row]);
        sink.components.iter_mut().for_each(|component| component[left] = component[row]);
        overflow |= i64::try_from(sum).is_err();
        sink.multiplicities[left] = sum as i64;
        left += 1;
    }
    sink.truncate(left);
    overflow
}

/// Rows without repetition: which they are, their words and their multiplicities.
#[derive(Debug, Default)]
pub struct Net {
    /// For each row, the chunk and the position in it where it first stands.
    pub firsts: Vec<(usize, u32)>,
    /// The words of the rows, one row after another.
    pub words: Vec<u64>,
    /// The sums of the multiplicities.
    pub weights: Vec<i64>,
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
        Self { types: types.to_vec(), offsets, width: width + mask_words(types.len()) }
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
        let mask = self.width - mask_words(self.types.len());
        Place { stride: self.width, offset: self.offsets[column], null: Some(null_place(mask, column)) }
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

    /// One row of each set of equal rows that does not cancel out, with the sum of the multiplicities.
    pub fn net(&self, flow: &Flow, interner: &mut Interner) -> Result<Net, KernelError> {
        let width = self.width;
        let (mut words, mut firsts, mut sums) = (Vec::new(), Vec::new(), Vec::<i128>::new());
        let mut index: HashTable<u32> = HashTable::with_capacity(flow.len());
        for (at, chunk) in flow.chunks.iter().enumerate() {
            let matrix = self.encode(&chunk.columns, chunk.weights.len(), interner);
            for (i, &weight) in chunk.weights.iter().enumerate() {
                let row = &matrix[i * width..(i + 1) * width];
                let known = |other: u32| &words[other as usize * width..(other as usize + 1) * width];
                let hash = hash_words(row);
                if let Some(&other) = index.find(hash, |&other| known(other) == row) {
                    sums[other as usize] += i128::from(weight);
                } else {
                    index.insert_unique(hash, sums.len() as u32, |&other| hash_words(known(other)));
                    words.extend_from_slice(row);
                    firsts.push((at, i as u32));
                    sums.push(i128::from(weight));
                }
            }
        }
        let mut net = Net::default();
        for (row, sum) in sums.into_iter().enumerate().filter(|&(_, sum)| sum != 0) {
            net.firsts.push(firsts[row]);
            net.words.extend_from_slice(&words[row * width..(row + 1) * width]);
            net.weights.push(i64::try_from(sum).map_err(|_| out_of_range())?);
        }
        Ok(net)
    }

    /// The rows of `net`, as a flow.
    pub fn netted(&self, flow: Flow, interner: &mut Interner) -> Result<Flow, KernelError> {
        let net = self.net(&flow, interner)?;
        let mut picked = vec![(Vec::new(), Vec::new()); flow.chunks.len()];
        for ((chunk, position), weight) in net.firsts.into_iter().zip(net.weights) {
            picked[chunk].0.push(position);
            picked[chunk].1.push(weight);
        }
        let chunks = flow.chunks.into_iter().zip(picked).map(|(chunk, (positions, weights))| {
            if positions.len() == chunk.weights.len() {
                return Ok(Chunk { weights, ..chunk });
            }
            chunk.take(positions, weights)
        });
        Ok(Flow::of(chunks.collect::<Result<_, _>>()?))
    }
}

/// A multiplicity that cannot be told.
pub fn out_of_range() -> KernelError {
    KernelError::new("ARITHMETIC_OVERFLOW", "a multiplicity or sum leaves its range")
}
