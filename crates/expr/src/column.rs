//! Columns during evaluation, and the loops over them.
//!
//! A [`Column`] is an array with one value per row or a constant: an array of one value that stands for all rows and is
//! spread out only where an array must be handed over. [`Input`] gathers the arguments of an operation that is NULL
//! wherever an argument is. Its loops come in two kinds: `map*` compute every slot, also those under NULLs (no branches,
//! so they vectorise), `try_map*` skip NULL rows and stop at the first row that fails.

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, PrimitiveArray, Scalar, StringArray, UInt32Array,
    new_null_array,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_select::take::take;

use crate::datatype::DataType;
use crate::error::{EvalError, Fault};

/// The values of an expression on some rows.
#[derive(Debug, Clone)]
pub(crate) enum Column {
    /// One value per row.
    Array(ArrayRef),
    /// One value for all rows.
    Constant(ArrayRef),
}

impl Column {
    /// NULL on all rows.
    pub fn null(data_type: DataType) -> Self {
        Self::Constant(new_null_array(&data_type.arrow(), 1))
    }

    /// The array behind the column; of length one if constant.
    pub fn array(&self) -> &ArrayRef {
        match self {
            Self::Array(array) | Self::Constant(array) => array,
        }
    }

    /// Whether the column is NULL on all rows, known without looking at rows.
    pub fn is_null_constant(&self) -> bool {
        matches!(self, Self::Constant(array) if array.logical_null_count() == 1)
    }

    /// Which rows are not NULL; `None` if all are. Constants are asked for by [`Self::is_null_constant`].
    pub fn nulls(&self) -> Option<NullBuffer> {
        match self {
            Self::Array(array) => array.logical_nulls().filter(|nulls| nulls.null_count() > 0),
            Self::Constant(_) => None,
        }
    }

    /// Whether a row is not NULL.
    pub fn is_valid(&self, row: usize) -> bool {
        match self {
            Self::Array(array) => array.is_valid(row),
            Self::Constant(array) => array.logical_null_count() == 0,
        }
    }

    /// One value per row.
    pub fn into_array(self, rows: usize) -> Result<ArrayRef, EvalError> {
        match self {
            Self::Array(array) => Ok(array),
            Self::Constant(array) if rows == 1 => Ok(array),
            Self::Constant(array) if array.logical_null_count() == 1 => Ok(new_null_array(array.data_type(), rows)),
            Self::Constant(array) => Ok(take(&array, &UInt32Array::from_value(0, rows), None)?),
        }
    }

    /// One truth value per row.
    pub fn into_booleans(self, rows: usize) -> Result<BooleanArray, EvalError> {
        Ok(self.into_array(rows)?.as_boolean().clone())
    }

    /// Arrays as they are, constants as Arrow scalars.
    pub fn datum(&self) -> Box<dyn arrow_array::Datum + '_> {
        match self {
            Self::Array(array) => Box::new(array),
            Self::Constant(array) => Box::new(Scalar::new(array)),
        }
    }
}

/// The native values of an argument.
#[derive(Clone, Copy)]
pub(crate) enum Operand<'a, T> {
    /// One per row.
    Slice(&'a [T]),
    /// One for all.
    Constant(T),
}

impl<T: Copy> Operand<'_, T> {
    /// The value at a row.
    pub fn get(&self, row: usize) -> T {
        match self {
            Self::Slice(values) => values[row],
            Self::Constant(value) => *value,
        }
    }
}

/// The texts of an argument.
#[derive(Clone, Copy)]
pub(crate) enum Text<'a> {
    /// One per row.
    Array(&'a StringArray),
    /// One for all.
    Constant(&'a str),
}

impl<'a> Text<'a> {
    /// The text at a row.
    pub fn get(&self, row: usize) -> &'a str {
        match self {
            Self::Array(values) => values.value(row),
            Self::Constant(value) => value,
        }
    }
}

/// The byte strings of an argument.
#[derive(Clone, Copy)]
pub(crate) enum Bytes<'a> {
    /// One per row.
    Array(&'a BinaryArray),
    /// One for all.
    Constant(&'a [u8]),
}

impl<'a> Bytes<'a> {
    /// The bytes at a row.
    pub fn get(&self, row: usize) -> &'a [u8] {
        match self {
            Self::Array(values) => values.value(row),
            Self::Constant(value) => value,
        }
    }
}

/// Arguments of an operation that is NULL wherever one of them is; no argument is a constant NULL. (Or of one that looks
/// at NULLs itself: [`Input::with_nulls_seen`].)
#[derive(Debug)]
pub(crate) struct Input {
    columns: Vec<Column>,
    /// Number of rows to compute; 1 if all arguments are constant.
    pub rows: usize,
    /// Rows where all arguments are present; `None` if that is everywhere.
    pub nulls: Option<NullBuffer>,
}

impl Input {
    /// Gathers arguments; `None` if one of them is NULL on all rows.
    pub fn new(columns: Vec<Column>, rows: usize) -> Option<Self> {
        if columns.iter().any(Column::is_null_constant) {
            return None;
        }
        let constant = columns.iter().all(|column| matches!(column, Column::Constant(_)));
        let nulls = columns
            .iter()
            .fold(None, |nulls: Option<NullBuffer>, column| NullBuffer::union(nulls.as_ref(), column.nulls().as_ref()));
        Some(Self { columns, rows: if constant { 1 } else { rows }, nulls })
    }

    /// Gathers arguments of an operation that looks at NULLs itself: they may be NULL, also on all rows.
    pub fn with_nulls_seen(columns: Vec<Column>, rows: usize) -> Self {
        let constant = columns.iter().all(|column| matches!(column, Column::Constant(_)));
        Self { columns, rows: if constant { 1 } else { rows }, nulls: None }
    }

    /// Whether all arguments are constant.
    pub fn is_constant(&self) -> bool {
        self.columns.iter().all(|column| matches!(column, Column::Constant(_)))
    }

    /// Number of arguments.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// An argument.
    pub fn column(&self, position: usize) -> &Column {
        &self.columns[position]
    }

    /// The native values of an argument, whose type the caller knows.
    pub fn operand<T: ArrowPrimitiveType>(&self, position: usize) -> Operand<'_, T::Native> {
        match &self.columns[position] {
            Column::Array(array) => Operand::Slice(array.as_primitive::<T>().values()),
            Column::Constant(array) => Operand::Constant(array.as_primitive::<T>().value(0)),
        }
    }

    /// The texts of an argument, whose type the caller knows.
    pub fn text(&self, position: usize) -> Text<'_> {
        match &self.columns[position] {
            Column::Array(array) => Text::Array(array.as_string()),
            Column::Constant(array) => Text::Constant(array.as_string::<i32>().value(0)),
        }
    }

    /// The byte strings of an argument, whose type the caller knows.
    pub fn bytes(&self, position: usize) -> Bytes<'_> {
        match &self.columns[position] {
            Column::Array(array) => Bytes::Array(array.as_binary()),
            Column::Constant(array) => Bytes::Constant(array.as_binary::<i32>().value(0)),
        }
    }

    /// Whether the result at a row is to be computed.
    pub fn is_valid(&self, row: usize) -> bool {
        self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row))
    }

    /// Computes every slot of a primitive column from a position.
    pub fn map<O: ArrowPrimitiveType>(&self, op: impl Fn(usize) -> O::Native) -> PrimitiveArray<O> {
        let values: Vec<O::Native> = (0..self.rows).map(op).collect();
        PrimitiveArray::new(values.into(), self.nulls.clone())
    }

    /// Computes every slot from one argument.
    pub fn map1<A: ArrowPrimitiveType, O: ArrowPrimitiveType>(
        &self,
        op: impl Fn(A::Native) -> O::Native,
    ) -> PrimitiveArray<O> {
        match self.operand::<A>(0) {
            Operand::Slice(values) => {
                let values: Vec<O::Native> = values.iter().map(|&value| op(value)).collect();
                PrimitiveArray::new(values.into(), self.nulls.clone())
            }
            Operand::Constant(value) => self.map(|_| op(value)),
        }
    }

    /// Computes every slot from two arguments.
    pub fn map2<A: ArrowPrimitiveType, B: ArrowPrimitiveType, O: ArrowPrimitiveType>(
        &self,
        op: impl Fn(A::Native, B::Native) -> O::Native,
    ) -> PrimitiveArray<O> {
        let values: Vec<O::Native> = match (self.operand::<A>(0), self.operand::<B>(1)) {
            (Operand::Slice(a), Operand::Slice(b)) => a.iter().zip(b).map(|(&a, &b)| op(a, b)).collect(),
            (Operand::Slice(a), Operand::Constant(b)) => a.iter().map(|&a| op(a, b)).collect(),
            (Operand::Constant(a), Operand::Slice(b)) => b.iter().map(|&b| op(a, b)).collect(),
            (Operand::Constant(a), Operand::Constant(b)) => vec![op(a, b)],
        };
        PrimitiveArray::new(values.into(), self.nulls.clone())
    }

    /// Computes the rows that are not NULL, in order, up to the first that fails.
    pub fn try_map<O: ArrowPrimitiveType>(
        &self,
        mut op: impl FnMut(usize) -> Result<O::Native, Fault>,
    ) -> Result<PrimitiveArray<O>, EvalError> {
        let mut values: Vec<O::Native> = Vec::with_capacity(self.rows);
        match &self.nulls {
            None => {
                for row in 0..self.rows {
                    values.push(op(row).map_err(|fault| fault.at(row))?);
                }
            }
            Some(nulls) => {
                for row in 0..self.rows {
                    let value = if nulls.is_valid(row) {
                        op(row).map_err(|fault| fault.at(row))?
                    } else {
                        O::Native::default()
                    };
                    values.push(value);
                }
            }
        }
        Ok(PrimitiveArray::new(values.into(), self.nulls.clone()))
    }

    /// Like [`Self::try_map`], of a result that may be NULL also where no argument is.
    pub fn map_optional<O: ArrowPrimitiveType>(
        &self,
        mut op: impl FnMut(usize) -> Result<Option<O::Native>, Fault>,
    ) -> Result<PrimitiveArray<O>, EvalError> {
        let mut values: Vec<Option<O::Native>> = Vec::with_capacity(self.rows);
        for row in 0..self.rows {
            values.push(if self.is_valid(row) { op(row).map_err(|fault| fault.at(row))? } else { None });
        }
        Ok(values.into_iter().collect())
    }

    /// Like [`Self::try_map`], from one argument.
    pub fn try_map1<A: ArrowPrimitiveType, O: ArrowPrimitiveType>(
        &self,
        op: impl Fn(A::Native) -> Result<O::Native, Fault>,
    ) -> Result<PrimitiveArray<O>, EvalError> {
        match self.operand::<A>(0) {
            Operand::Slice(values) => self.try_map(|row| op(values[row])),
            Operand::Constant(value) => self.try_map(|_| op(value)),
        }
    }

    /// Like [`Self::try_map`], from two arguments.
    pub fn try_map2<A: ArrowPrimitiveType, B: ArrowPrimitiveType, O: ArrowPrimitiveType>(
        &self,
        op: impl Fn(A::Native, B::Native) -> Result<O::Native, Fault>,
    ) -> Result<PrimitiveArray<O>, EvalError> {
        match (self.operand::<A>(0), self.operand::<B>(1)) {
            (Operand::Slice(a), Operand::Slice(b)) => self.try_map(|row| op(a[row], b[row])),
            (Operand::Slice(a), Operand::Constant(b)) => self.try_map(|row| op(a[row], b)),
            (Operand::Constant(a), Operand::Slice(b)) => self.try_map(|row| op(a, b[row])),
            (Operand::Constant(a), Operand::Constant(b)) => self.try_map(|_| op(a, b)),
        }
    }

    /// Computes every truth value, also those under NULLs.
    pub fn map_booleans(&self, op: impl FnMut(usize) -> bool) -> BooleanArray {
        BooleanArray::new(BooleanBuffer::collect_bool(self.rows, op), self.nulls.clone())
    }

    /// Computes truth values of the rows that are not NULL, up to the first that fails.
    pub fn try_map_booleans(
        &self,
        mut op: impl FnMut(usize) -> Result<bool, Fault>,
    ) -> Result<BooleanArray, EvalError> {
        let mut error = None;
        let values = BooleanBuffer::collect_bool(self.rows, |row| {
            if error.is_some() || !self.is_valid(row) {
                return false;
            }
            op(row).unwrap_or_else(|fault| {
                error = Some(fault.at(row));
                false
            })
        });
        match error {
            Some(error) => Err(error),
            None => Ok(BooleanArray::new(values, self.nulls.clone())),
        }
    }
}
