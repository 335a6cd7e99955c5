//! Vectorised scalar expressions on Arrow columns with the semantics of Spark SQL in ANSI mode, in UTC.
//!
//! An [`Expr`] is read from JSON, checked once, and evaluated on record batches. Every operation works on whole columns;
//! constants stay single values until a result needs them spread out. Errors name the first offending row. The
//! operations are listed in `docs/reference/expressions.md`.
//!
//! | module | what it holds |
//! |---|---|
//! | `datatype`, `operation`, `expr`, `literal`, `check` | types, the JSON form, type rules |
//! | `column`, `rows`, `evaluate` | columns and their loops, rows and what is known of them, evaluation |
//! | `logic`, `membership`, `compare` | truth values, choices, `in`, comparisons |
//! | `arithmetic`, `decimal`, `rounding` | numbers |
//! | `functions` | the register of functions, a file per group |
//! | `calendar` | the calendar, texts of dates and timestamps |
//! | `cast`, `cast_text`, `number_text` | casts |

#![forbid(unsafe_code)]

mod arithmetic;
mod calendar;
mod cast;
mod cast_text;
mod check;
mod column;
mod compare;
mod datatype;
mod decimal;
mod equalities;
mod error;
mod evaluate;
mod expr;
mod functions;
mod literal;
mod logic;
mod membership;
mod number_text;
mod operation;
mod rounding;
mod rows;

pub use datatype::{DataType, ParseDataTypeError};
pub use error::{EvalError, shown};
pub use expr::Expr;
