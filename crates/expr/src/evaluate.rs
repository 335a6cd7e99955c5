//! Evaluation: from a batch to one value per row.
//!
//! Every operation works on whole columns. Two rules decide which rows an argument is evaluated on, because only there
//! it can raise an error: `and`, `or`, `case`, `coalesce`, `if` and `in` select the rows that still need a value
//! (`logic.rs`), and the arguments of NULL-strict operations are evaluated one after another, each only where the earlier
//! ones are present, as Spark does. Both cost nothing where the argument cannot fail.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt64Array, new_empty_array, new_null_array};
use arrow_schema::DataType as Arrow;
use arrow_select::filter::prep_null_mask_filter;
use arrow_select::interleave::interleave;
use arrow_select::take::take;

use crate::column::{Column, Input};
use crate::datatype::DataType;
use crate::error::EvalError;
use crate::expr::{Expr, Node};
use crate::operation::Operation;
use crate::{arithmetic, cast, compare, datetime, logic, membership, rounding, strings};

/// The rows on which an expression is evaluated; never none.
pub(crate) struct Rows {
    /// The columns of the batch; those not needed are left out.
    columns: Vec<Option<ArrayRef>>,
    /// Number of rows.
    pub len: usize,
}

impl Rows {
    /// The selected rows, with the columns that `expr` reads.
    fn select(&self, expr: &Expr, positions: &[usize]) -> Result<Self, EvalError> {
        let mut used = vec![false; self.columns.len()];
        expr.mark_columns(&mut used);
        let indices = UInt64Array::from_iter_values(positions.iter().map(|&position| position as u64));
        let columns = self.columns.iter().zip(used).map(|(column, used)| match column {
            Some(column) if used => take(column, &indices, None).map(Some),
            _ => Ok(None),
        });
        Ok(Self { columns: columns.collect::<Result<_, _>>()?, len: positions.len() })
    }
}

impl Expr {
    /// Evaluates the expression on every row of a batch.
    ///
    /// The error is that of the first offending row, whatever the order in which columns were computed.
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef, EvalError> {
        let mut first = match self.evaluate_rows(batch) {
            Err(error) => error,
            result => return result,
        };
        // An operation evaluated later may fail on an earlier row.
        while let Some(row) = first.row.filter(|&row| row > 0 && row < batch.num_rows()) {
            match self.evaluate_rows(&batch.slice(0, row)) {
                Err(earlier) if earlier.row.is_some_and(|earlier| earlier < row) => first = earlier,
                _ => break,
            }
        }
        Err(first)
    }

    /// Evaluates a condition: true where it holds, false where it does not or is NULL.
    pub fn evaluate_predicate(&self, batch: &RecordBatch) -> Result<BooleanArray, EvalError> {
        if self.data_type != DataType::Boolean {
            return Err(EvalError::invalid(format!("a condition must be boolean, not {}", self.data_type)));
        }
        let array = self.evaluate(batch)?;
        let array = arrow_array::cast::AsArray::as_boolean(&array);
        Ok(if array.null_count() > 0 {
            prep_null_mask_filter(array)
        } else {
            BooleanArray::new(array.values().clone(), None)
        })
    }

    fn evaluate_rows(&self, batch: &RecordBatch) -> Result<ArrayRef, EvalError> {
        if batch.num_rows() == 0 {
            return Ok(new_empty_array(&self.data_type.arrow()));
        }
        let columns = batch.columns().iter().cloned().map(Some).collect();
        let rows = Rows { columns, len: batch.num_rows() };
        evaluate(self, &rows)?.into_array(rows.len)
    }
}

/// The values of an expression on some rows.
pub(crate) fn evaluate(expr: &Expr, rows: &Rows) -> Result<Column, EvalError> {
    match &expr.node {
        Node::Column(index) => column(*index, expr.data_type, rows).map(Column::Array),
        Node::Literal { array, .. } => Ok(Column::Constant(Arc::clone(array))),
        Node::Call { operation, args } => call(*operation, args, expr.data_type, rows),
    }
}

/// The values of an expression on selected rows, one per selected row.
pub(crate) fn evaluate_on(expr: &Expr, rows: &Rows, positions: &[usize]) -> Result<Column, EvalError> {
    if positions.len() == rows.len || expr.as_literal().is_some() {
        return evaluate(expr, rows);
    }
    evaluate(expr, &rows.select(expr, positions)?).map_err(|error| error.relocated(positions))
}

/// Puts values of selected rows back to their places, NULL elsewhere.
pub(crate) fn scatter(column: Column, positions: &[usize], rows: usize) -> Result<Column, EvalError> {
    if positions.len() == rows {
        return Ok(column);
    }
    let constant = matches!(column, Column::Constant(_));
    let values = column.array();
    let null = new_null_array(values.data_type(), 1);
    let mut sources = vec![(0, 0); rows];
    for (index, &position) in positions.iter().enumerate() {
        sources[position] = (1, if constant { 0 } else { index });
    }
    Ok(Column::Array(interleave(&[null.as_ref(), values.as_ref()], &sources)?))
}

/// A column of the batch in the representation of its type.
fn column(index: usize, data_type: DataType, rows: &Rows) -> Result<ArrayRef, EvalError> {
    let Some(Some(array)) = rows.columns.get(index) else {
        return Err(EvalError::invalid(format!("column {index} does not exist: the batch has {}", rows.columns.len())));
    };
    let expected = data_type.arrow();
    if *array.data_type() == expected {
        return Ok(Arc::clone(array));
    }
    let convertible = match (array.data_type(), data_type) {
        (Arrow::LargeUtf8 | Arrow::Utf8View, _) => data_type.is_text(),
        (Arrow::Dictionary(_, values), _) => **values == expected,
        (Arrow::Timestamp(arrow_schema::TimeUnit::Microsecond, zone), DataType::Timestamp) => zone.is_some(),
        _ => false,
    };
    if convertible {
        Ok(arrow_cast::cast(array, &expected)?)
    } else {
        Err(EvalError::invalid(format!("column {index} is {}, not {data_type}", array.data_type())))
    }
}

fn call(operation: Operation, args: &[Expr], result: DataType, rows: &Rows) -> Result<Column, EvalError> {
    match operation {
        Operation::And | Operation::Or => logic::connect(operation == Operation::And, args, rows),
        Operation::Case | Operation::If => logic::case(args, result, rows),
        Operation::Coalesce => logic::coalesce(args, result, rows),
        Operation::In => membership::is_in(args, rows),
        Operation::IsNull | Operation::IsNotNull => logic::is_null(operation == Operation::IsNull, &args[0], rows),
        Operation::EqNullSafe => logic::eq_null_safe(args, rows),
        Operation::NullIf => logic::null_if(args, rows),
        Operation::Greatest | Operation::Least => logic::extreme(operation == Operation::Greatest, args, result, rows),
        _ => {
            let Some(input) = strict(operation, args, rows)? else {
                return Ok(Column::null(result));
            };
            let array = compute(operation, args, &input, result)?;
            Ok(if input.is_constant() { Column::Constant(array) } else { Column::Array(array) })
        }
    }
}

/// The arguments of a NULL-strict operation; `None` if the result is NULL on all rows.
fn strict(operation: Operation, args: &[Expr], rows: &Rows) -> Result<Option<Input>, EvalError> {
    // Spark looks at divisors first, and at all arguments of concat.
    let divisor_first = matches!(operation, Operation::Divide | Operation::IntDiv | Operation::Modulo);
    let mut columns: Vec<Column> = Vec::with_capacity(args.len());
    let mut present: Option<arrow_buffer::NullBuffer> = None;
    let order: Box<dyn Iterator<Item = &Expr>> =
        if divisor_first { Box::new(args.iter().rev()) } else { Box::new(args.iter()) };
    let mut null = false;
    for arg in order {
        let column = match &present {
            Some(valid) if arg.fallible && operation != Operation::Concat => {
                let positions: Vec<usize> = valid.valid_indices().collect();
                if positions.is_empty() {
                    return Ok(None);
                }
                scatter(evaluate_on(arg, rows, &positions)?, &positions, rows.len)?
            }
            _ => evaluate(arg, rows)?,
        };
        if column.is_null_constant() {
            null = true;
            if operation != Operation::Concat {
                return Ok(None);
            }
        }
        present = arrow_buffer::NullBuffer::union(present.as_ref(), column.nulls().as_ref());
        columns.push(column);
    }
    if divisor_first {
        columns.reverse();
    }
    Ok(if null { None } else { Input::new(columns, rows.len) })
}

/// Computes a NULL-strict operation.
fn compute(operation: Operation, args: &[Expr], input: &Input, result: DataType) -> Result<ArrayRef, EvalError> {
    let first = args[0].data_type;
    match operation {
        Operation::Add
        | Operation::Subtract
        | Operation::Multiply
        | Operation::Divide
        | Operation::IntDiv
        | Operation::Modulo => arithmetic::binary(operation, input, (first, args[1].data_type), result),
        Operation::Negate | Operation::Abs => arithmetic::unary(operation, input, first),
        Operation::Round => rounding::round(input, first, result),
        Operation::Floor | Operation::Ceil => rounding::floor(operation == Operation::Ceil, input, first, result),
        Operation::Eq | Operation::Ne | Operation::Lt | Operation::Le | Operation::Gt | Operation::Ge => {
            let array = compare::compare(operation, input, first, args[1].data_type)?;
            Ok(Arc::new(array))
        }
        Operation::Not => {
            let array = input.column(0).clone().into_booleans(input.rows)?;
            Ok(Arc::new(arrow_arith::boolean::not(&array)?))
        }
        Operation::Cast => cast::cast(input, first, result),
        Operation::DateAdd
        | Operation::DateSub
        | Operation::DateDiff
        | Operation::AddMonths
        | Operation::TimestampAdd
        | Operation::TimestampAddMonths
        | Operation::TimestampDiff
        | Operation::DateTrunc
        | Operation::Trunc
        | Operation::Year
        | Operation::Month
        | Operation::Day
        | Operation::Quarter
        | Operation::DayOfWeek
        | Operation::DayOfYear
        | Operation::WeekOfYear
        | Operation::Hour
        | Operation::Minute
        | Operation::Second => datetime::compute(operation, input, first),
        _ => strings::compute(operation, input),
    }
}
