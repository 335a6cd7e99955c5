//! `in`: membership with SQL's NULLs (no match and a NULL among the candidates is NULL).
//!
//! Lists of literals, the usual case, become a sorted array that is searched per row; other lists are a chain of `or`.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};

use crate::column::{Column, Input};
use crate::compare::compare_columns;
use crate::datatype::DataType;
use crate::decimal;
use crate::error::EvalError;
use crate::evaluate::{evaluate, evaluate_on, scatter};
use crate::expr::Expr;
use crate::logic::connect_next;
use crate::operation::Operation;
use crate::rows::Rows;

/// `in(x, v1, ..., vn)`.
pub(crate) fn is_in(args: &[Expr], rows: &Rows) -> Result<Column, EvalError> {
    let (needle, candidates) = (&args[0], &args[1..]);
    let column = evaluate(needle, rows)?;
    if column.is_null_constant() {
        return Ok(Column::null(DataType::Boolean));
    }
    if candidates.iter().all(|candidate| candidate.as_literal().is_some()) {
        return in_literals(column, needle.data_type, candidates, rows.len);
    }
    // A fallible candidate is evaluated where x is present and nothing before it matched.
    let present: Vec<usize> = (0..rows.len).filter(|&row| column.is_valid(row)).collect();
    let mut result = BooleanArray::new(BooleanBuffer::new_unset(rows.len), None);
    for candidate in candidates {
        let types = (needle.data_type, candidate.data_type);
        let equal = |other: Column| {
            let equal = compare_columns(Operation::Eq, (column.clone(), types.0), (other, types.1), rows.len);
            Ok(Column::Array(Arc::new(equal?)))
        };
        result = connect_next(false, &result, candidate.fallible, rows, |positions| match positions {
            None => equal(evaluate(candidate, rows)?),
            Some(undecided) => {
                let wanted: Vec<usize> = undecided.iter().copied().filter(|&row| column.is_valid(row)).collect();
                if wanted.is_empty() {
                    return Ok(Column::null(DataType::Boolean));
                }
                let other = scatter(evaluate_on(candidate, rows, &wanted)?, &wanted, rows.len)?;
                // One value per undecided row is asked for.
                let equal = equal(other)?.into_array(rows.len)?;
                let indices = arrow_array::UInt64Array::from_iter_values(undecided.iter().map(|&row| row as u64));
                Ok(Column::Array(arrow_select::take::take(&equal, &indices, None)?))
            }
        })?;
    }
    if present.len() < rows.len {
        let nulls = NullBuffer::new(BooleanBuffer::collect_bool(rows.len, |row| column.is_valid(row)));
        let nulls = NullBuffer::union(Some(&nulls), result.nulls());
        result = BooleanArray::new(result.values().clone(), nulls);
    }
    Ok(Column::Array(Arc::new(result)))
}

fn in_literals(column: Column, data_type: DataType, candidates: &[Expr], rows: usize) -> Result<Column, EvalError> {
    let constant = matches!(column, Column::Constant(_));
    let Some(input) = Input::new(vec![column], rows) else {
        return Ok(Column::null(DataType::Boolean));
    };
    let literals: Vec<(&ArrayRef, DataType)> = candidates
        .iter()
        .filter_map(|candidate| candidate.as_literal().map(|array| (array, candidate.data_type)))
        .filter(|(array, _)| array.is_valid(0))
        .collect();
    let found = find(&input, data_type, &literals)?;
    let any_null = literals.len() < candidates.len();
    let nulls = if any_null {
        // Without a match, a NULL candidate leaves the answer open.
        NullBuffer::union(input.nulls.as_ref(), Some(&NullBuffer::new(found.clone())))
    } else {
        input.nulls.clone()
    };
    let array = Arc::new(BooleanArray::new(found, nulls));
    Ok(if constant { Column::Constant(array) } else { Column::Array(array) })
}

/// Which rows match one of the literals; slots under NULLs hold anything.
fn find(input: &Input, data_type: DataType, literals: &[(&ArrayRef, DataType)]) -> Result<BooleanBuffer, EvalError> {
    Ok(match data_type {
        DataType::Boolean => {
            let column = input.column(0).clone().into_booleans(input.rows)?;
            let holds = |wanted| literals.iter().any(|(array, _)| array.as_boolean().value(0) == wanted);
            let (on_false, on_true) = (holds(false), holds(true));
            BooleanBuffer::collect_bool(input.rows, |row| if column.value(row) { on_true } else { on_false })
        }
        DataType::TinyInt => search::<Int8Type, _>(input, literals, |value| value),
        DataType::SmallInt => search::<Int16Type, _>(input, literals, |value| value),
        DataType::Int => search::<Int32Type, _>(input, literals, |value| value),
        DataType::BigInt => search::<Int64Type, _>(input, literals, |value| value),
        DataType::Date => search::<Date32Type, _>(input, literals, |value| value),
        DataType::Timestamp | DataType::TimestampNtz => {
            search::<TimestampMicrosecondType, _>(input, literals, |value| value)
        }
        DataType::Float => search::<Float32Type, _>(input, literals, |value| key(f64::from(value))),
        DataType::Double => search::<Float64Type, _>(input, literals, key),
        DataType::Decimal { scale, .. } => {
            // A candidate that the column's scale cannot express matches nothing.
            let mut keys: Vec<i128> = literals
                .iter()
                .filter_map(|(array, literal)| {
                    let value = array.as_primitive::<Decimal128Type>().value(0);
                    let (from, to) = (i32::from(literal.scale()), i32::from(scale));
                    let moved = decimal::rescale(value, from, to)?;
                    decimal::compare(moved, to, value, from).is_eq().then_some(moved)
                })
                .collect();
            keys.sort_unstable();
            let values = input.operand::<Decimal128Type>(0);
            BooleanBuffer::collect_bool(input.rows, |row| keys.binary_search(&values.get(row)).is_ok())
        }
        DataType::Binary => {
            let mut keys: Vec<&[u8]> = literals.iter().map(|(array, _)| array.as_binary::<i32>().value(0)).collect();
            keys.sort_unstable();
            let values = input.bytes(0);
            BooleanBuffer::collect_bool(input.rows, |row| keys.binary_search(&values.get(row)).is_ok())
        }
        _ => {
            let mut keys: Vec<&str> = literals.iter().map(|(array, _)| array.as_string::<i32>().value(0)).collect();
            keys.sort_unstable();
            let values = input.text(0);
            BooleanBuffer::collect_bool(input.rows, |row| keys.binary_search(&values.get(row)).is_ok())
        }
    })
}

fn search<T: ArrowPrimitiveType, K: Ord>(
    input: &Input,
    literals: &[(&ArrayRef, DataType)],
    key: impl Fn(T::Native) -> K,
) -> BooleanBuffer {
    let mut keys: Vec<K> = literals.iter().map(|(array, _)| key(array.as_primitive::<T>().value(0))).collect();
    keys.sort_unstable();
    let values = input.operand::<T>(0);
    BooleanBuffer::collect_bool(input.rows, |row| keys.binary_search(&key(values.get(row))).is_ok())
}

/// One key per value as SQL compares: NaNs are one, and so are the zeros.
fn key(value: f64) -> u64 {
    if value.is_nan() { f64::NAN.to_bits() } else { (value + 0.0).to_bits() }
}
