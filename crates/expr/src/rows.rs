//! The rows on which an expression is evaluated, and what is known of its shared parts.
//!
//! [`Rows`] is a view of the batch: all its rows, or some of them in order. Columns are selected when they are first
//! read. All views of one evaluation share a memory of the parts that occur several times in the expression: a part is
//! evaluated at most once per row of the batch, whichever views ask for it in whatever order, and only on rows that some
//! view asked for. Evaluation is therefore linear in the number of different parts and of rows.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, UInt64Array};
use arrow_select::interleave::interleave;
use arrow_select::take::take;

use crate::column::Column;
use crate::error::EvalError;
use crate::expr::Expr;

/// Some rows of a batch; never none.
#[derive(Clone)]
pub(crate) struct Rows {
    batch: Rc<Batch>,
    selection: Option<Rc<Selection>>,
    /// Number of rows.
    pub len: usize,
}

struct Batch {
    columns: Vec<ArrayRef>,
    len: usize,
    known: RefCell<HashMap<usize, Known>>,
}

struct Selection {
    /// Positions in the batch.
    positions: Vec<usize>,
    /// The columns read so far, on these rows.
    columns: RefCell<HashMap<usize, ArrayRef>>,
}

/// The values of a shared part.
enum Known {
    /// On all rows.
    Whole(Column),
    /// On some rows: where each value is; `None` if it has not been asked for.
    Part { arrays: Vec<ArrayRef>, places: Vec<Option<(usize, usize)>> },
}

/// The most arrays that hold the values of a part before they are put together.
const MOST_ARRAYS: usize = 16;

/// What is known of a shared part on some rows.
pub(crate) enum Answer {
    /// Its values.
    Known(Column),
    /// Nothing.
    Nothing,
    /// The values on other rows than these.
    Without(Vec<usize>),
}

impl Rows {
    /// All rows of a batch that has some.
    pub fn all(columns: &[ArrayRef], len: usize) -> Self {
        let batch = Batch { columns: columns.to_vec(), len, known: RefCell::default() };
        Self { batch: Rc::new(batch), selection: None, len }
    }

    /// The rows at some positions of these.
    pub fn select(&self, positions: &[usize]) -> Self {
        let positions: Vec<usize> = positions.iter().map(|&position| self.position(position)).collect();
        let len = positions.len();
        let selection = Some(Rc::new(Selection { positions, columns: RefCell::default() }));
        Self { batch: Rc::clone(&self.batch), selection, len }
    }

    /// The number of columns of the batch.
    pub fn width(&self) -> usize {
        self.batch.columns.len()
    }

    /// A column of the batch on these rows; `None` if there is no such column.
    pub fn column(&self, index: usize) -> Result<Option<ArrayRef>, EvalError> {
        let Some(column) = self.batch.columns.get(index) else {
            return Ok(None);
        };
        let Some(selection) = &self.selection else {
            return Ok(Some(Arc::clone(column)));
        };
        if let Some(selected) = selection.columns.borrow().get(&index) {
            return Ok(Some(Arc::clone(selected)));
        }
        let selected = select(column, &selection.positions)?;
        selection.columns.borrow_mut().insert(index, Arc::clone(&selected));
        Ok(Some(selected))
    }

    /// What is known of a shared part on these rows.
    pub fn recall(&self, expr: &Expr) -> Result<Answer, EvalError> {
        match self.batch.known.borrow().get(&expr.identity()) {
            None => Ok(Answer::Nothing),
            Some(Known::Whole(Column::Array(array))) => Ok(Answer::Known(Column::Array(match &self.selection {
                None => Arc::clone(array),
                Some(selection) => select(array, &selection.positions)?,
            }))),
            Some(Known::Whole(constant)) => Ok(Answer::Known(constant.clone())),
            Some(Known::Part { arrays, places }) => {
                let place = |row: usize| places[self.position(row)];
                let missing: Vec<usize> = (0..self.len).filter(|&row| place(row).is_none()).collect();
                if missing.len() == self.len {
                    Ok(Answer::Nothing)
                } else if missing.is_empty() {
                    let places: Vec<(usize, usize)> = (0..self.len).filter_map(place).collect();
                    Ok(Answer::Known(Column::Array(gather(arrays, &places)?)))
                } else {
                    Ok(Answer::Without(missing))
                }
            }
        }
    }

    /// Remembers the values of a shared part on these rows, of which none were known.
    pub fn remember(&self, expr: &Expr, column: &Column) -> Result<(), EvalError> {
        let mut all = self.batch.known.borrow_mut();
        if self.selection.is_none() {
            all.insert(expr.identity(), Known::Whole(column.clone()));
            return Ok(());
        }
        let part = || Known::Part { arrays: Vec::new(), places: vec![None; self.batch.len] };
        if let Known::Part { arrays, places } = all.entry(expr.identity()).or_insert_with(part) {
            let array = column.clone().into_array(self.len)?;
            for row in 0..self.len {
                places[self.position(row)] = Some((arrays.len(), row));
            }
            arrays.push(array);
            if arrays.len() > MOST_ARRAYS {
                let held: Vec<(usize, usize)> = places.iter().filter_map(|&place| place).collect();
                *arrays = vec![gather(arrays, &held)?];
                places.iter_mut().flatten().enumerate().for_each(|(row, place)| *place = (0, row));
            }
        }
        Ok(())
    }

    fn position(&self, row: usize) -> usize {
        self.selection.as_ref().map_or(row, |selection| selection.positions[row])
    }
}

fn select(array: &ArrayRef, positions: &[usize]) -> Result<ArrayRef, EvalError> {
    let indices = UInt64Array::from_iter_values(positions.iter().map(|&position| position as u64));
    Ok(take(array, &indices, None)?)
}

fn gather(arrays: &[ArrayRef], places: &[(usize, usize)]) -> Result<ArrayRef, EvalError> {
    let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
    Ok(interleave(&arrays, places)?)
}
