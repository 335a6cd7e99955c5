//! The Python face of the kernel: conversion only, no algorithm.

// Arguments from Python are handed over as owned values.
#![allow(clippy::needless_pass_by_value)]

mod database;
mod errors;
mod evaluate;
mod exchange;
mod uninterrupted;

use pyo3::prelude::*;

/// The native part of everview.
#[pymodule]
fn _kernel(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<database::Database>()?;
    module.add_class::<database::Cursor>()?;
    module.add("KernelError", module.py().get_type::<errors::KernelError>())?;
    module.add("PLAN_VERSION", everview_kernel::plan::VERSION)?;
    module.add_function(wrap_pyfunction!(evaluate::evaluate, module)?)?;
    module.add_function(wrap_pyfunction!(exchange::hash_rows, module)?)?;
    module.add_function(wrap_pyfunction!(exchange::group_rows, module)?)?;
    module.add_function(wrap_pyfunction!(exchange::net_rows, module)?)?;
    module.add_function(wrap_pyfunction!(uninterrupted::change_and_note, module)?)?;
    module.add_function(wrap_pyfunction!(uninterrupted::commit_and_notify, module)?)?;
    Ok(())
}
