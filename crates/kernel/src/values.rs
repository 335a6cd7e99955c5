//! Rows that the plan itself has: VALUES, and the one row that a SELECT without FROM is over.
//!
//! They are there when the view is built and never change, so there is no delta of them.

use crate::codec::normalised;
use crate::error::KernelError;
use crate::flow::{Chunk, Flow, record_batch, schema_of};
use crate::operator::{Context, Held, Operator, Position};
use crate::plan;
use crate::scan::internal;
use arrow_array::{Array, ArrayRef, new_empty_array};

/// Constant rows.
#[derive(Debug)]
pub struct Values {
    rows: Chunk,
}

impl Values {
    /// Evaluates the rows of a plan; fails where one of its expressions does.
    pub fn new(plan: &plan::Values) -> Result<Self, KernelError> {
        let invalid = |message: &str| KernelError::new("INVALID_PLAN", message.to_owned());
        let fits = |row: &Vec<_>| row.len() == plan.columns.len();
        if !plan.rows.iter().all(fits) {
            return Err(invalid("the rows of values have one expression per column"));
        }
        let nothing = record_batch(&schema_of([]), Vec::new(), 1)?;
        let column = |(at, column): (usize, &plan::Column)| -> Result<ArrayRef, KernelError> {
            let mut cells = vec![new_empty_array(&column.data_type.arrow())];
            for row in &plan.rows {
                if row[at].data_type() != column.data_type || !row[at].columns().is_empty() {
                    return Err(invalid("the cells of values are constants of the type of their column"));
                }
                let cell = row[at].evaluate(&nothing).map_err(|e| KernelError::new(e.code, e.message))?;
                cells.push(normalised(cell));
            }
            let cells: Vec<&dyn Array> = cells.iter().map(AsRef::as_ref).collect();
            arrow_select::concat::concat(&cells).map_err(|e| internal(&e))
        };
        let columns = plan.columns.iter().enumerate().map(column).collect::<Result<_, _>>()?;
        Ok(Self { rows: Chunk { columns, weights: vec![1; plan.rows.len()] } })
    }
}

impl Operator for Values {
    fn kind(&self) -> &'static str {
        "values"
    }

    fn prepare(&mut self, _: Flow, _: &mut Context) -> Result<Flow, KernelError> {
        Ok(Flow::default())
    }

    fn held(&mut self) -> Option<&mut dyn Held> {
        Some(self)
    }

    fn is_stateful(&self) -> bool {
        true
    }

    fn size(&self) -> (usize, usize) {
        (self.rows.weights.len(), self.rows.columns.iter().map(Array::get_array_memory_size).sum())
    }

    fn can_refuse(&self) -> bool {
        false
    }

    fn merges_rows(&self) -> bool {
        true
    }

    fn count(&self, _: Option<Option<i128>>) -> Option<Option<i128>> {
        Some(Some(self.rows.weights.len() as i128))
    }
}

impl Held for Values {
    fn read(&self, from: &Position, limit: usize, _: &Context) -> Result<(Flow, Option<Position>), KernelError> {
        let (start, count) = (from.row() as usize, self.rows.weights.len());
        let length = limit.min(count - start);
        let columns = self.rows.columns.iter().map(|column| column.slice(start, length)).collect();
        let chunk = Chunk { columns, weights: vec![1; length] };
        let end = start + length;
        Ok((Flow { chunks: vec![chunk], may_repeat: true }, (end < count).then_some(Position::Row(end as u32))))
    }

    fn absorb(&mut self, _: Flow, _: &mut Context) -> Result<(), KernelError> {
        unreachable!("values read no stage")
    }
}
