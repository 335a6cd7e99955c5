//! Evaluation: from a batch to one value per row.
//!
//! Every operation works on whole columns. Two rules decide which rows an argument is evaluated on, because only there
//! it can raise an error: `and`, `or`, `case`, `coalesce`, `if` and `in` select the rows that still need a value
//! (`logic.rs`), and the arguments of NULL-strict operations are evaluated one after another, each only where the earlier
//! ones are present, as Spark does. Both cost nothing where the argument cannot fail. Parts that occur several times are
//! evaluated once per row (`rows.rs`). NULL-strict operations are evaluated without recursion, however deep they nest;
//! the other operations recurse, and expressions have a bounded number of levels of them (`expr.rs`).

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, new_empty_array, new_null_array};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType as Arrow;
use arrow_select::filter::prep_null_mask_filter;
use arrow_select::interleave::interleave;

use crate::column::{Column, Input};
use crate::datatype::DataType;
use crate::error::EvalError;
use crate::expr::{Expr, Node};
use crate::functions::Nulls;
use crate::operation::Operation;
use crate::rows::{Answer, Rows};
use crate::{arithmetic, cast, compare, logic, membership, rounding};

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
        let rows = Rows::all(batch.columns(), batch.num_rows());
        evaluate(self, &rows)?.into_array(rows.len)
    }
}

/// The values of an expression on some rows.
pub(crate) fn evaluate(expr: &Expr, rows: &Rows) -> Result<Column, EvalError> {
    if !expr.shared || expr.is_strict() {
        return evaluate_anew(expr, rows);
    }
    match rows.recall(expr)? {
        Answer::Known(column) => Ok(column),
        Answer::Nothing => {
            let column = evaluate_anew(expr, rows)?;
            rows.remember(expr, &column)?;
            Ok(column)
        }
        Answer::Without(missing) => {
            let part = rows.select(&missing);
            let column = evaluate_anew(expr, &part).map_err(|error| error.relocated(&missing))?;
            part.remember(expr, &column)?;
            recalled(expr, rows)
        }
    }
}

fn recalled(expr: &Expr, rows: &Rows) -> Result<Column, EvalError> {
    match rows.recall(expr)? {
        Answer::Known(column) => Ok(column),
        _ => Err(EvalError::invalid("a shared part was forgotten")),
    }
}

fn evaluate_anew(expr: &Expr, rows: &Rows) -> Result<Column, EvalError> {
    match &*expr.node {
        Node::Column(index) => column(*index, expr.data_type, rows).map(Column::Array),
        Node::Literal(array) => Ok(Column::Constant(Arc::clone(array))),
        Node::Call { operation, .. } if operation.is_strict() => strict(expr, rows),
        Node::Call { operation, args } => choice(*operation, args, expr.data_type, rows),
    }
}

/// The values of an expression on selected rows, one per selected row.
pub(crate) fn evaluate_on(expr: &Expr, rows: &Rows, positions: &[usize]) -> Result<Column, EvalError> {
    if positions.len() == rows.len || expr.as_literal().is_some() {
        return evaluate(expr, rows);
    }
    evaluate(expr, &rows.select(positions)).map_err(|error| error.relocated(positions))
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
    let Some(array) = rows.column(index)? else {
        return Err(EvalError::invalid(format!("column {index} does not exist: the batch has {}", rows.width())));
    };
    let expected = data_type.arrow();
    if *array.data_type() == expected {
        return Ok(array);
    }
    let convertible = match (array.data_type(), data_type) {
        (Arrow::Dictionary(_, values), _) if data_type.is_text() => values.is_string(),
        (Arrow::Dictionary(_, values), DataType::Binary) => values.is_binary(),
        (Arrow::Dictionary(_, values), _) => **values == expected,
        (given, _) if data_type.is_text() => given.is_string(),
        (given, DataType::Binary) => given.is_binary(),
        (Arrow::Timestamp(arrow_schema::TimeUnit::Microsecond, zone), DataType::Timestamp) => zone.is_some(),
        _ => false,
    };
    if convertible {
        Ok(arrow_cast::cast(&array, &expected)?)
    } else {
        Err(EvalError::invalid(format!("column {index} is {}, not {data_type}", array.data_type())))
    }
}

/// An operation that is not NULL-strict.
fn choice(operation: Operation, args: &[Expr], result: DataType, rows: &Rows) -> Result<Column, EvalError> {
    match operation {
        Operation::And | Operation::Or => logic::connect(operation == Operation::And, args, rows),
        Operation::Coalesce => logic::coalesce(args, result, rows),
        Operation::In => membership::is_in(args, rows),
        Operation::IsNull | Operation::IsNotNull => logic::is_null(operation == Operation::IsNull, &args[0], rows),
        Operation::EqNullSafe => logic::eq_null_safe(args, rows),
        Operation::NullIf => logic::null_if(args, rows),
        Operation::Greatest | Operation::Least => logic::extreme(operation == Operation::Greatest, args, result, rows),
        // Case, If
        _ => logic::case(args, result, rows),
    }
}

/// A NULL-strict operation whose arguments are being evaluated.
struct Pending<'a> {
    operation: Operation,
    expr: &'a Expr,
    args: &'a [Expr],
    /// The rows on which the values are wanted, and their positions in those of the operation that wants them.
    wanted: Rows,
    wanted_at: Option<Vec<usize>>,
    /// The rows on which they are computed, and their positions in `wanted`: where a shared part is not known yet.
    rows: Rows,
    rows_at: Option<Vec<usize>>,
    /// The arguments so far, in the order of evaluation.
    columns: Vec<Column>,
    /// Where all of these are present; `None` if that is everywhere.
    present: Option<NullBuffer>,
    /// Whether one of them is NULL on all rows.
    null: bool,
}

/// What is to be done next for a pending operation.
enum Next<'a> {
    /// Its value is known.
    Done(Column),
    /// An argument is to be evaluated, where `Some` on these rows only.
    Argument(&'a Expr, Option<Vec<usize>>),
}

/// An operation that was asked for.
enum Started<'a> {
    /// Its arguments are to be evaluated.
    Pending(Pending<'a>),
    /// Its values on the wanted rows are known.
    Known(Column, Option<Vec<usize>>),
}

impl<'a> Pending<'a> {
    fn start(expr: &'a Expr, wanted: Rows, wanted_at: Option<Vec<usize>>) -> Result<Started<'a>, EvalError> {
        let Node::Call { operation, args } = &*expr.node else {
            return Err(EvalError::invalid("a call is expected"));
        };
        let mut rows_at = None;
        if expr.shared {
            match wanted.recall(expr)? {
                Answer::Known(column) => return Ok(Started::Known(column, wanted_at)),
                Answer::Nothing => {}
                Answer::Without(missing) => rows_at = Some(missing),
            }
        }
        let rows = rows_at.as_ref().map_or_else(|| wanted.clone(), |missing| wanted.select(missing));
        let columns = Vec::with_capacity(args.len());
        Ok(Started::Pending(Self {
            operation: *operation,
            expr,
            args,
            wanted,
            wanted_at,
            rows,
            rows_at,
            columns,
            present: None,
            null: false,
        }))
    }

    fn next(&mut self) -> Result<Next<'a>, EvalError> {
        // Spark looks at divisors first.
        let divisor_first = matches!(self.operation, Operation::Divide | Operation::IntDiv | Operation::Modulo);
        let nulls = self.operation.nulls();
        let done = self.columns.len();
        if (self.null && nulls == Nulls::Strict) || done == self.args.len() {
            let mut columns = std::mem::take(&mut self.columns);
            if divisor_first {
                columns.reverse();
            }
            let input = match nulls {
                Nulls::Seen => Some(Input::with_nulls_seen(columns, self.rows.len)),
                _ if self.null => None,
                _ => Input::new(columns, self.rows.len),
            };
            let result = self.expr.data_type;
            let Some(input) = input else {
                return Ok(Next::Done(Column::null(result)));
            };
            let array = compute(self.operation, self.args, &input, result)?;
            return Ok(Next::Done(if input.is_constant() { Column::Constant(array) } else { Column::Array(array) }));
        }
        let arg = &self.args[if divisor_first { self.args.len() - 1 - done } else { done }];
        let positions = match &self.present {
            Some(valid) if arg.fallible && nulls == Nulls::Strict => {
                let positions: Vec<usize> = valid.valid_indices().collect();
                if positions.is_empty() {
                    return Ok(Next::Done(Column::null(self.expr.data_type)));
                }
                (positions.len() < self.rows.len).then_some(positions)
            }
            _ => None,
        };
        Ok(Next::Argument(arg, positions))
    }

    /// Takes the next argument, evaluated on all rows or on some.
    fn accept_at(&mut self, column: Column, positions: Option<&[usize]>) -> Result<(), EvalError> {
        let column = match positions {
            Some(positions) => scatter(column, positions, self.rows.len)?,
            None => column,
        };
        self.null |= column.is_null_constant();
        self.present = NullBuffer::union(self.present.as_ref(), column.nulls().as_ref());
        self.columns.push(column);
        Ok(())
    }

    /// The value on the wanted rows from that on the rows where it was computed.
    fn finish(&self, column: Column) -> Result<Column, EvalError> {
        if !self.expr.shared {
            return Ok(column);
        }
        self.rows.remember(self.expr, &column)?;
        if self.rows_at.is_some() { recalled(self.expr, &self.wanted) } else { Ok(column) }
    }
}

/// A NULL-strict operation. Arguments that are such operations too are put on a stack, so nothing recurses.
fn strict(expr: &Expr, rows: &Rows) -> Result<Column, EvalError> {
    let mut stack = match Pending::start(expr, rows.clone(), None)? {
        Started::Pending(pending) => vec![pending],
        Started::Known(column, _) => return Ok(column),
    };
    run(&mut stack).map_err(|error| {
        stack.iter().rev().fold(error, |mut error, pending| {
            for positions in [&pending.rows_at, &pending.wanted_at].into_iter().flatten() {
                error = error.relocated(positions);
            }
            error
        })
    })
}

/// Runs the stack until its first operation is done. An error is about rows of its last one.
fn run(stack: &mut Vec<Pending>) -> Result<Column, EvalError> {
    loop {
        let Some(pending) = stack.last_mut() else {
            return Err(EvalError::invalid("nothing to evaluate"));
        };
        match pending.next()? {
            Next::Argument(arg, positions) if arg.is_strict() => {
                let wanted = positions.as_ref().map_or_else(|| pending.rows.clone(), |at| pending.rows.select(at));
                match Pending::start(arg, wanted, positions)? {
                    Started::Pending(argument) => stack.push(argument),
                    Started::Known(column, positions) => pending.accept_at(column, positions.as_deref())?,
                }
            }
            Next::Argument(arg, None) => {
                let column = evaluate(arg, &pending.rows)?;
                pending.accept_at(column, None)?;
            }
            Next::Argument(arg, Some(positions)) => {
                let column = evaluate_on(arg, &pending.rows, &positions)?;
                pending.accept_at(column, Some(&positions))?;
            }
            Next::Done(column) => {
                let column = pending.finish(column)?;
                let Some(pending) = stack.pop() else { continue };
                match stack.last_mut() {
                    None => return Ok(column),
                    Some(above) => above.accept_at(column, pending.wanted_at.as_deref())?,
                }
            }
        }
    }
}

/// Computes a NULL-strict operation.
fn compute(operation: Operation, args: &[Expr], input: &Input, result: DataType) -> Result<ArrayRef, EvalError> {
    let first = args.first().map_or(DataType::Null, |arg| arg.data_type);
    match operation {
        Operation::Add
        | Operation::Subtract
        | Operation::Multiply
        | Operation::Divide
        | Operation::IntDiv
        | Operation::Modulo => arithmetic::binary(operation, input, (first, args[1].data_type), result),
        Operation::Negate | Operation::Abs => arithmetic::unary(operation, input, first),
        Operation::Round | Operation::RoundEven => {
            rounding::round(operation == Operation::RoundEven, input, first, result)
        }
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
        Operation::Function(function) => (function.compute)(input, result),
        _ => Err(EvalError::invalid(format!("`{}` is evaluated row by row", operation.name()))),
    }
}
