//! Which columns a condition compares with constants.

use arrow_array::ArrayRef;

use crate::datatype::DataType;
use crate::expr::{Expr, Node};
use crate::operation::Operation;

impl Expr {
    /// The columns that equal a constant on every row for which the condition is true: index, the constant as an array of one value, which
    /// is not NULL, and its type.
    pub fn equalities(&self) -> Vec<(usize, ArrayRef, DataType)> {
        let mut found = Vec::new();
        let mut open = vec![self];
        while let Some(expr) = open.pop() {
            match &*expr.node {
                Node::Call { operation: Operation::And, args } => open.extend(args),
                Node::Call { operation: Operation::Eq | Operation::EqNullSafe, args } => {
                    let sides = [(&args[0], &args[1]), (&args[1], &args[0])];
                    found.extend(sides.into_iter().filter_map(|(one, two)| one.equals_constant(two)));
                }
                _ => {}
            }
        }
        found
    }

    fn equals_constant(&self, other: &Self) -> Option<(usize, ArrayRef, DataType)> {
        let (column, constant) = (self.as_column()?, other.as_literal()?);
        (!other.is_null_literal()).then(|| (column, constant.clone(), other.data_type))
    }
}
