//! What the peers share: their command line, the streams of changes they read, and the proof of what they computed.
//!
//! usage of every peer: `PROGRAM QUERY FILE BATCHES`. The file has little-endian 64-bit integers, a fixed number per change, the first
//! of which is 1 for an insertion and -1 for a deletion. A peer prints one line of JSON; see [`Deltas::print`].

mod checksum;
mod input;

pub use checksum::{Deltas, row_checksum};
pub use input::{Arguments, EdgeChange, OrderChange, Table, batches, read_edges, read_orders};
