//! The command line and the streams of changes.

use std::env;
use std::fs;
use std::iter;

/// What to run: a query over the stream in a file, cut into batches.
pub struct Arguments {
    pub query: String,
    pub file: String,
    pub batches: usize,
}

impl Arguments {
    /// Those of this process.
    pub fn parse() -> Self {
        let mut words = env::args().skip(1);
        let mut next = || words.next().expect("usage: PROGRAM QUERY FILE BATCHES");
        Self { query: next(), file: next(), batches: next().parse().expect("BATCHES is a number") }
    }
}

/// A change of an edge of the graph.
#[derive(Clone, Copy)]
pub struct EdgeChange {
    pub multiplicity: i64,
    pub source: i64,
    pub target: i64,
}

/// A table of the orders stream.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// Columns ck, seg.
    Customer,
    /// Columns ok, ck, od, sp.
    Orders,
    /// Columns ok, ln, rv, sd.
    Lineitem,
}

/// A change of a row of one of the three tables; a table with fewer columns leaves the last ones zero.
#[derive(Clone, Copy)]
pub struct OrderChange {
    pub multiplicity: i64,
    pub table: Table,
    pub columns: [i64; 4],
}

/// A graph stream: per change multiplicity, source and target.
pub fn read_edges(file: &str) -> Vec<EdgeChange> {
    let change = |[multiplicity, source, target]: [i64; 3]| EdgeChange { multiplicity, source, target };
    read_words(file).into_iter().map(change).collect()
}

/// An orders stream: per change multiplicity, table and four columns.
pub fn read_orders(file: &str) -> Vec<OrderChange> {
    let change = |[multiplicity, table, columns @ ..]: [i64; 6]| {
        let table = match table {
            0 => Table::Customer,
            1 => Table::Orders,
            2 => Table::Lineitem,
            other => panic!("{file}: there is no table {other}"),
        };
        OrderChange { multiplicity, table, columns }
    };
    read_words(file).into_iter().map(change).collect()
}

/// The changes in `count` batches of equal size, cut where the other contestants cut.
pub fn batches<Change>(changes: &[Change], count: usize) -> impl Iterator<Item = &[Change]> {
    let mut numbers = 0..count;
    iter::from_fn(move || {
        let number = numbers.next()?;
        Some(&changes[number * changes.len() / count..(number + 1) * changes.len() / count])
    })
}

fn read_words<const WIDTH: usize>(file: &str) -> Vec<[i64; WIDTH]> {
    let bytes = fs::read(file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let words: Vec<i64> =
        bytes.chunks_exact(8).map(|word| i64::from_le_bytes(word.try_into().expect("eight bytes"))).collect();
    words.chunks_exact(WIDTH).map(|change| change.try_into().expect("a whole change")).collect()
}
