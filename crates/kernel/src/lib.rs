//! The everview kernel: semi-join trees, base tables, finishing operators and the commit of a batch.
//!
//! From the bottom up: `rows` and `hub` are the slabs; `tree`, `pending`, `settle`, `enumerate`, `witness` and `delta` are the semi-join tree, `totals` its answers without
//! enumeration; `codec` and `interner` turn Arrow columns into words and back; `table` is a base table, `scan` the way from its changes
//! to an atom's; `flow` is rows on their way through operators, `operator` what these are, `aggregate` and `distinct` those that hold rows;
//! `view` is a tree and the operators above it, `read` its full result; `database` commits batches; `exchange` is for rows that travel
//! between engines.

#![forbid(unsafe_code)]

pub mod aggregate;
mod aggregate_value;
pub mod annotation;
pub mod codec;
pub mod consolidate;
pub mod counters;
pub mod database;
pub mod delta;
mod display;
pub mod distinct;
pub mod double_sum;
pub mod enumerate;
pub mod error;
pub mod exchange;
pub mod flow;
mod groups;
pub mod hash;
pub mod hub;
pub mod interner;
mod key_index;
pub mod operator;
mod pending;
pub mod plan;
pub mod pool;
pub mod read;
pub mod retention;
pub mod rows;
pub mod scan;
mod settle;
pub mod shape;
pub mod table;
mod table_fit;
mod table_read;
mod table_window;
mod threads;
pub mod totals;
pub mod tree;
mod trim;
pub mod view;
mod witness;
