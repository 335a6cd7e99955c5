//! Comparisons of columns.
//!
//! Integers, dates, timestamps, booleans, texts and byte strings go to Arrow's kernels (these two compare bytewise). Doubles do not: Arrow
//! orders them by the IEEE total order, SQL has -0.0 = 0.0, NaN = NaN and NaN above everything. Decimals compare by
//! value, whatever their scales.

use std::cmp::Ordering;

use arrow_array::BooleanArray;
use arrow_array::types::{ArrowPrimitiveType, Decimal128Type, Float32Type, Float64Type};
use arrow_ord::cmp;

use crate::column::{Column, Input, Operand};
use crate::datatype::DataType;
use crate::decimal;
use crate::error::EvalError;
use crate::operation::Operation;

/// `eq`, `ne`, `lt`, `le`, `gt`, `ge`; one value per row, or one if the input is constant.
pub(crate) fn compare(
    operation: Operation,
    input: &Input,
    left: DataType,
    right: DataType,
) -> Result<BooleanArray, EvalError> {
    match left {
        DataType::Float => Ok(floats::<Float32Type>(operation, input)),
        DataType::Double => Ok(floats::<Float64Type>(operation, input)),
        DataType::Decimal { .. } => Ok(decimals(operation, input, left, right)),
        _ => {
            let (a, b) = (input.column(0).datum(), input.column(1).datum());
            let kernel = match operation {
                Operation::Eq => cmp::eq,
                Operation::Ne => cmp::neq,
                Operation::Lt => cmp::lt,
                Operation::Le => cmp::lt_eq,
                Operation::Gt => cmp::gt,
                _ => cmp::gt_eq,
            };
            Ok(kernel(a.as_ref(), b.as_ref())?)
        }
    }
}

/// Comparison outside of NULL-strict calls: NULL where a side is NULL, one value per row.
pub(crate) fn compare_columns(
    operation: Operation,
    columns: (Column, DataType),
    others: (Column, DataType),
    rows: usize,
) -> Result<BooleanArray, EvalError> {
    match Input::new(vec![columns.0, others.0], rows) {
        None => Ok(BooleanArray::new_null(rows)),
        Some(input) => {
            let result = compare(operation, &input, columns.1, others.1)?;
            if result.len() == rows {
                Ok(result)
            } else {
                Column::Constant(std::sync::Arc::new(result)).into_booleans(rows)
            }
        }
    }
}

/// Applies a relation on native values without branches on types inside the loop.
fn relate<T: ArrowPrimitiveType>(input: &Input, holds: impl Fn(T::Native, T::Native) -> bool) -> BooleanArray {
    match (input.operand::<T>(0), input.operand::<T>(1)) {
        (Operand::Slice(a), Operand::Slice(b)) => input.map_booleans(|row| holds(a[row], b[row])),
        (Operand::Slice(a), Operand::Constant(b)) => input.map_booleans(|row| holds(a[row], b)),
        (Operand::Constant(a), Operand::Slice(b)) => input.map_booleans(|row| holds(a, b[row])),
        (Operand::Constant(a), Operand::Constant(b)) => input.map_booleans(|_| holds(a, b)),
    }
}

// `x != x` is the test for NaN on generic floats; operators without branches let the loops vectorise.
#[allow(clippy::eq_op, clippy::needless_bitwise_bool)]
fn floats<T: ArrowPrimitiveType>(operation: Operation, input: &Input) -> BooleanArray {
    let equal = |a: T::Native, b: T::Native| (a == b) | ((a != a) & (b != b));
    let less = |a: T::Native, b: T::Native| (a < b) | ((a == a) & (b != b));
    match operation {
        Operation::Eq => relate::<T>(input, equal),
        Operation::Ne => relate::<T>(input, |a, b| !equal(a, b)),
        Operation::Lt => relate::<T>(input, less),
        Operation::Ge => relate::<T>(input, |a, b| !less(a, b)),
        Operation::Gt => relate::<T>(input, |a, b| less(b, a)),
        _ => relate::<T>(input, |a, b| !less(b, a)),
    }
}

fn decimals(operation: Operation, input: &Input, left: DataType, right: DataType) -> BooleanArray {
    let (p, q) = (i32::from(left.scale()), i32::from(right.scale()));
    let test = move |ordering: Ordering| match operation {
        Operation::Eq => ordering.is_eq(),
        Operation::Ne => ordering.is_ne(),
        Operation::Lt => ordering.is_lt(),
        Operation::Le => ordering.is_le(),
        Operation::Gt => ordering.is_gt(),
        _ => ordering.is_ge(),
    };
    if p == q {
        relate::<Decimal128Type>(input, |a, b| test(a.cmp(&b)))
    } else {
        relate::<Decimal128Type>(input, |a, b| test(decimal::compare(a, p, b, q)))
    }
}
