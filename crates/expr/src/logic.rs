//! Truth values and choices: `and`, `or`, `case`, `if`, `coalesce`, `nullif`, `greatest`, `least`, NULL tests.
//!
//! An argument that can fail is evaluated only on the rows that need it: those rows are selected, evaluated as a smaller
//! batch, and the results put back. Choices assemble their result from the branches with one interleave.

use std::sync::Arc;

use arrow_arith::boolean::{and_kleene, is_not_null, is_null as arrow_is_null, or_kleene};
use arrow_array::{Array, ArrayRef, BooleanArray, Scalar, new_null_array};
use arrow_buffer::BooleanBuffer;
use arrow_select::interleave::interleave;
use arrow_select::nullif::nullif;
use arrow_select::zip::zip;

use crate::column::Column;
use crate::compare::compare_columns;
use crate::datatype::DataType;
use crate::error::EvalError;
use crate::evaluate::{evaluate, evaluate_on, scatter};
use crate::expr::Expr;
use crate::operation::Operation;
use crate::rows::Rows;

/// `and` (conjunction) and `or`, three-valued, from left to right.
pub(crate) fn connect(conjunction: bool, args: &[Expr], rows: &Rows) -> Result<Column, EvalError> {
    let mut result = evaluate(&args[0], rows)?.into_booleans(rows.len)?;
    for arg in &args[1..] {
        result = connect_next(conjunction, &result, arg.fallible, rows, |positions| match positions {
            Some(positions) => evaluate_on(arg, rows, positions),
            None => evaluate(arg, rows),
        })?;
    }
    Ok(Column::Array(Arc::new(result)))
}

/// Connects truth values with those of a further argument. A fallible argument is asked for the undecided rows only.
pub(crate) fn connect_next(
    conjunction: bool,
    result: &BooleanArray,
    fallible: bool,
    rows: &Rows,
    evaluate_arg: impl Fn(Option<&[usize]>) -> Result<Column, EvalError>,
) -> Result<BooleanArray, EvalError> {
    let next = if fallible {
        let undecided: Vec<usize> =
            (0..rows.len).filter(|&row| result.is_null(row) || result.value(row) == conjunction).collect();
        if undecided.is_empty() {
            return Ok(result.clone());
        }
        scatter(evaluate_arg(Some(&undecided))?, &undecided, rows.len)?
    } else {
        evaluate_arg(None)?
    };
    let next = next.into_booleans(rows.len)?;
    Ok(if conjunction { and_kleene(result, &next)? } else { or_kleene(result, &next)? })
}

/// Collects the values of branches and where each row takes its value from.
struct Choice {
    /// Candidates; the first is a single NULL, from which rows take their value unless told otherwise.
    arrays: Vec<ArrayRef>,
    sources: Vec<(usize, usize)>,
}

impl Choice {
    fn new(result: DataType, rows: usize) -> Self {
        Self { arrays: vec![new_null_array(&result.arrow(), 1)], sources: vec![(0, 0); rows] }
    }

    /// Takes the values of some rows from a column that has one value per row (`whole`) or per position.
    fn assign(&mut self, column: &Column, positions: &[usize], whole: bool) {
        let source = self.arrays.len();
        let constant = matches!(column, Column::Constant(_));
        for (index, &position) in positions.iter().enumerate() {
            self.sources[position] = (
                source,
                if constant {
                    0
                } else if whole {
                    position
                } else {
                    index
                },
            );
        }
        self.arrays.push(Arc::clone(column.array()));
    }

    /// Takes the values of some rows from an expression, evaluated there only if it can fail.
    fn assign_expr(&mut self, expr: &Expr, rows: &Rows, positions: &[usize]) -> Result<(), EvalError> {
        if positions.is_empty() || expr.data_type == DataType::Null || expr.is_null_literal() {
            return Ok(());
        }
        let whole = !expr.fallible || positions.len() == rows.len;
        let column = if whole { evaluate(expr, rows)? } else { evaluate_on(expr, rows, positions)? };
        self.assign(&column, positions, whole);
        Ok(())
    }

    fn finish(self) -> Result<Column, EvalError> {
        let arrays: Vec<&dyn Array> = self.arrays.iter().map(AsRef::as_ref).collect();
        Ok(Column::Array(interleave(&arrays, &self.sources)?))
    }
}

/// `case` and `if`: conditions and values in turn, then the else value.
pub(crate) fn case(args: &[Expr], result: DataType, rows: &Rows) -> Result<Column, EvalError> {
    let mut choice = Choice::new(result, rows.len);
    let mut open: Vec<usize> = (0..rows.len).collect();
    let pairs = args.chunks_exact(2);
    let otherwise = pairs.remainder();
    for pair in pairs {
        if open.is_empty() {
            break;
        }
        let whole = !pair[0].fallible || open.len() == rows.len;
        let condition = if whole { evaluate(&pair[0], rows)? } else { evaluate_on(&pair[0], rows, &open)? };
        let condition = condition.into_booleans(if whole { rows.len } else { open.len() })?;
        let mut chosen = Vec::new();
        let mut rest = Vec::new();
        for (index, &position) in open.iter().enumerate() {
            let slot = if whole { position } else { index };
            let holds = condition.is_valid(slot) && condition.value(slot);
            if holds {
                chosen.push(position);
            } else {
                rest.push(position);
            }
        }
        choice.assign_expr(&pair[1], rows, &chosen)?;
        open = rest;
    }
    for expr in otherwise {
        choice.assign_expr(expr, rows, &open)?;
    }
    choice.finish()
}

/// `coalesce`: the first value that is not NULL.
pub(crate) fn coalesce(args: &[Expr], result: DataType, rows: &Rows) -> Result<Column, EvalError> {
    let mut choice = Choice::new(result, rows.len);
    let mut open: Vec<usize> = (0..rows.len).collect();
    for (number, expr) in args.iter().enumerate() {
        if open.is_empty() {
            break;
        }
        if expr.data_type == DataType::Null || expr.is_null_literal() {
            continue;
        }
        let whole = !expr.fallible || open.len() == rows.len;
        let column = if whole { evaluate(expr, rows)? } else { evaluate_on(expr, rows, &open)? };
        if number == 0 && matches!(column, Column::Array(_)) && column.nulls().is_none() {
            return Ok(column);
        }
        choice.assign(&column, &open, whole);
        let mut rest = Vec::new();
        for (index, &position) in open.iter().enumerate() {
            if !column.is_valid(if whole { position } else { index }) {
                rest.push(position);
            }
        }
        open = rest;
    }
    choice.finish()
}

/// `is_null` and `is_not_null`.
pub(crate) fn is_null(positive: bool, arg: &Expr, rows: &Rows) -> Result<Column, EvalError> {
    let column = evaluate(arg, rows)?;
    let test = |array: &ArrayRef| {
        if positive { arrow_is_null(array) } else { is_not_null(array) }
    };
    Ok(match column {
        Column::Array(array) => Column::Array(Arc::new(test(&array)?)),
        Column::Constant(array) => Column::Constant(Arc::new(test(&array)?)),
    })
}

/// `eq_null_safe`: NULL equals NULL and nothing else.
pub(crate) fn eq_null_safe(args: &[Expr], rows: &Rows) -> Result<Column, EvalError> {
    let (left, right) = (evaluate(&args[0], rows)?, evaluate(&args[1], rows)?);
    let sides = (left.clone(), args[0].data_type);
    let equal = compare_columns(Operation::Eq, sides, (right.clone(), args[1].data_type), rows.len)?;
    let values = BooleanBuffer::collect_bool(rows.len, |row| {
        if equal.is_valid(row) { equal.value(row) } else { !left.is_valid(row) && !right.is_valid(row) }
    });
    Ok(Column::Array(Arc::new(BooleanArray::new(values, None))))
}

/// `nullif(a, b)`: NULL where both are equal, else `a`.
pub(crate) fn null_if(args: &[Expr], rows: &Rows) -> Result<Column, EvalError> {
    let left = evaluate(&args[0], rows)?;
    let positions: Vec<usize> = (0..rows.len).filter(|&row| left.is_valid(row)).collect();
    if positions.is_empty() {
        return Ok(left);
    }
    let right = if args[1].fallible {
        scatter(evaluate_on(&args[1], rows, &positions)?, &positions, rows.len)?
    } else {
        evaluate(&args[1], rows)?
    };
    let sides = (left.clone(), args[0].data_type);
    let equal = compare_columns(Operation::Eq, sides, (right, args[1].data_type), rows.len)?;
    Ok(Column::Array(nullif(&left.into_array(rows.len)?, &equal)?))
}

/// `greatest` and `least`: NULLs do not count; the first of equal values stays.
pub(crate) fn extreme(greatest: bool, args: &[Expr], result: DataType, rows: &Rows) -> Result<Column, EvalError> {
    let operation = if greatest { Operation::Gt } else { Operation::Lt };
    let mut best: Option<Column> = None;
    for arg in args {
        if arg.data_type == DataType::Null {
            continue;
        }
        let next = evaluate(arg, rows)?;
        let Some(current) = best else {
            best = Some(next);
            continue;
        };
        let better = compare_columns(operation, (next.clone(), result), (current.clone(), result), rows.len)?;
        let replace = BooleanBuffer::collect_bool(rows.len, |row| {
            if better.is_valid(row) { better.value(row) } else { !current.is_valid(row) }
        });
        let replace = BooleanArray::new(replace, None);
        let chosen = match (&next, &current) {
            (Column::Array(next), Column::Array(current)) => zip(&replace, next, current),
            (Column::Array(next), Column::Constant(current)) => zip(&replace, next, &Scalar::new(current)),
            (Column::Constant(next), Column::Array(current)) => zip(&replace, &Scalar::new(next), current),
            (Column::Constant(next), Column::Constant(current)) => {
                zip(&replace, &Scalar::new(next), &Scalar::new(current))
            }
        }?;
        best = Some(Column::Array(chosen));
    }
    Ok(best.unwrap_or_else(|| Column::null(result)))
}
