//! The everview kernel: semi-join trees, base tables, finishing operators and the commit of a batch.
//!
//! From the bottom up: `rows` and `hub` are the slabs, `edge` is a hub between the nodes above and below it; `tree`, `link`, `pending`,
//! `settle`, `leaf`, `live`, `build`, `enumerate`, `sink`, `witness` and `delta` are the semi-join tree, `totals` and `lookup` its answers without
//! enumerating everything; `plan` says what it looks like and `plan_check` whether it is one; `codec` and `interner` turn Arrow columns into
//! words and back; `table` is a base table, `table_pass` one that keeps no rows, `scan` the way from its changes to an atom's; `flow` is rows on
//! their way through operators, `operator` what these are, `aggregate` (with `accumulator`, `groups` `bag`, `double_sum` and `big_int`), `distinct`, `top_k` (with `partitions`, `ranked` and `sort_key`) and `values` those that hold rows, `repeat` one that does not; `core_stage` is a tree with the scans of its
//! atoms, `graph` a view: cores and operators, `graph_read` its full result; `database` commits batches; `exchange` is for rows that travel
//! between engines.

#![forbid(unsafe_code)]

mod accumulator;
pub mod aggregate;
pub mod annotation;
mod bag;
pub mod big_int;
mod build;
pub mod codec;
pub mod consolidate;
pub mod core_stage;
pub mod counters;
pub mod database;
pub mod delta;
mod display;
pub mod distinct;
pub mod double_sum;
mod edge;
pub mod enumerate;
pub mod error;
pub mod exchange;
pub mod flow;
pub mod graph;
pub mod graph_read;
mod groups;
pub mod hash;
pub mod hub;
pub mod interner;
mod key_lookup;
mod leaf;
mod link;
mod live;
mod lookup;
pub mod operator;
pub mod partitions;
mod pending;
pub mod plan;
mod plan_check;
pub mod pool;
pub mod ranked;
pub mod repeat;
pub mod retention;
mod row_store;
pub mod rows;
pub mod scan;
mod settle;
pub mod shape;
mod sink;
pub mod sort_key;
pub mod table;
mod table_fit;
mod table_pass;
mod table_read;
mod table_window;
mod threads;
pub mod top_k;
pub mod totals;
pub mod tree;
mod trim;
pub mod values;
mod witness;
