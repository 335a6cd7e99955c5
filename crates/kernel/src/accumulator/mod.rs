//! From a group's sums to the values of its aggregates: one file per function.
//!
//! Every function is computed from the number of its argument's values and, where it `sums`, from their sum: 128-bit integers, or doubles added up
//! exactly. To add one: a file with an `Accumulator`, and a line in `accumulator`.

mod average;
mod count;
mod sum;
mod value;

use crate::double_sum::DoubleSum;
use crate::error::KernelError;
use crate::plan::Function;
use arrow_array::ArrayRef;
use everview_expr::DataType;
use std::fmt::Debug;

/// An error, and the group it is of.
pub(crate) type Refusal = (usize, KernelError);

/// An aggregate function.
pub(crate) trait Accumulator: Debug + Send + Sync {
    /// Whether it needs the sum of its argument.
    fn sums(&self) -> bool {
        true
    }

    /// The place of a group's vector whose change shows in the output for sure, if there is one.
    fn shows(&self, aggregate: &Aggregated) -> Option<usize>;

    /// Whether a result may not fit its type.
    fn can_refuse(&self, data_type: DataType) -> bool {
        data_type != DataType::Double
    }

    /// The results of some groups.
    fn finish(&self, aggregate: &Aggregated, groups: &Totals) -> Result<ArrayRef, Refusal>;
}

/// The function of a name.
pub(crate) fn accumulator(function: Function) -> &'static dyn Accumulator {
    match function {
        Function::Count => &count::Count,
        Function::Sum => &sum::Sum,
        Function::Avg => &average::Average,
    }
}

/// An aggregate: its function, its types, and where it finds its sums in a group's vector.
#[derive(Debug)]
pub(crate) struct Aggregated {
    pub(crate) function: &'static dyn Accumulator,
    pub(crate) data_type: DataType,
    pub(crate) argument_type: Option<DataType>,
    /// Where the number of values stands in a group's vector.
    pub(crate) count_at: usize,
    /// Where their sum stands, if it is exact.
    pub(crate) sum_at: Option<usize>,
    /// Which of the group's double sums is theirs.
    pub(crate) double_at: Option<usize>,
}

impl Aggregated {
    /// Whether a result may not fit its type.
    pub(crate) fn can_refuse(&self) -> bool {
        self.function.can_refuse(self.data_type)
    }

    /// The place of a group's vector whose change shows in the output for sure, if there is one.
    pub(crate) fn shows(&self) -> Option<usize> {
        self.function.shows(self)
    }

    /// The results of some groups.
    pub(crate) fn finish(&self, groups: &Totals) -> Result<ArrayRef, Refusal> {
        self.function.finish(self, groups)
    }

    /// The digits after the point of the argument.
    fn argument_scale(&self) -> i8 {
        if let Some(DataType::Decimal { scale, .. }) = self.argument_type { scale } else { 0 }
    }
}

/// The vectors of so many groups, one after another.
pub(crate) struct Totals<'a> {
    pub(crate) count: usize,
    pub(crate) sums: &'a [i128],
    pub(crate) width: usize,
    pub(crate) doubles: &'a [DoubleSum],
    pub(crate) double_width: usize,
}

impl Totals<'_> {
    /// How many values of its argument an aggregate has in a group.
    fn number(&self, aggregate: &Aggregated, group: usize) -> i128 {
        self.sums[group * self.width + aggregate.count_at]
    }

    /// Their exact sum.
    fn exact(&self, aggregate: &Aggregated, group: usize) -> i128 {
        self.sums[group * self.width + aggregate.sum_at.expect("an exact sum")]
    }

    /// Their sum as a double.
    fn double(&self, aggregate: &Aggregated, group: usize) -> f64 {
        match aggregate.double_at {
            Some(at) => self.doubles[group * self.double_width + at].value(),
            None => self.exact(aggregate, group) as f64 / 10f64.powi(i32::from(aggregate.argument_scale())),
        }
    }
}
