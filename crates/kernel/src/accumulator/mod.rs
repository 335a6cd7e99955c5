//! From a group's sums to the values of its aggregates: one file per function.
//!
//! What is kept of a group for a function is its `State`: the number of its argument's values, their sum (128-bit integers, or doubles added up
//! exactly), or the values themselves in order. To add one: a file with an `Accumulator`, and a line in `accumulator`.

mod average;
mod by;
mod count;
mod extremum;
mod moments;
mod single;
mod sum;
mod value;

use crate::bag::End;
use crate::double_sum::DoubleSum;
use crate::error::KernelError;
use crate::plan::{Function, SortColumn};
use arrow_array::ArrayRef;
use everview_expr::DataType;
use std::fmt::Debug;

/// An error, and the group it is of.
pub(crate) type Refusal = (usize, KernelError);

/// What is kept of a group for an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The number of the argument's values.
    Number,
    /// Their number and their sum.
    Sum,
    /// The number of rows in which all arguments have values, and exact sums of doubles: of each argument, then of products of two arguments.
    Products(&'static [(usize, usize)]),
    /// Rows of arguments in order, of which one end is the result.
    Ordered(Order),
}

/// How rows of arguments are ordered, and which of them is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    /// The arguments by which rows are ordered; those that are equal there, by the others.
    pub(crate) by: &'static [SortColumn],
    /// The argument that is not NULL in any row that counts.
    pub(crate) present: usize,
    /// Which row is asked for; the result is its first argument.
    pub(crate) end: End,
}

/// An aggregate function.
pub(crate) trait Accumulator: Debug + Send + Sync {
    /// What is kept for it.
    fn state(&self) -> State {
        State::Sum
    }

    /// Whether results depend on the number of values.
    fn reads_number(&self) -> bool {
        !matches!(self.state(), State::Ordered(_))
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
        Function::Min => &extremum::MIN,
        Function::Max => &extremum::MAX,
        Function::Single => &single::Single,
        Function::MinBy => &by::MIN_BY,
        Function::MaxBy => &by::MAX_BY,
        Function::VarPop => &moments::VAR_POP,
        Function::VarSamp => &moments::VAR_SAMP,
        Function::StddevPop => &moments::STDDEV_POP,
        Function::StddevSamp => &moments::STDDEV_SAMP,
        Function::CovarPop => &moments::COVAR_POP,
        Function::CovarSamp => &moments::COVAR_SAMP,
        Function::Corr => &moments::Moments::Correlation,
        Function::VarianceState => &moments::VARIANCE_STATE,
        Function::CovarianceState => &moments::COVARIANCE_STATE,
        Function::CorrelationState => &moments::CORRELATION_STATE,
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
    /// Which of the group's double sums is theirs, the first of them where there are several.
    pub(crate) double_at: Option<usize>,
    /// How many there are.
    pub(crate) doubles: usize,
    /// Which of the values picked from the group's bags is its own.
    pub(crate) pick_at: Option<usize>,
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

    /// The places of a group's vector that its result is computed from.
    pub(crate) fn reads(&self) -> impl Iterator<Item = usize> {
        self.sum_at.into_iter().chain(self.function.reads_number().then_some(self.count_at))
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
    /// The values picked from bags: per pick one for each group.
    pub(crate) picks: &'a [ArrayRef],
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

    /// The double sums of an aggregate.
    fn doubles_of(&self, aggregate: &Aggregated, group: usize) -> &[DoubleSum] {
        let first = group * self.double_width + aggregate.double_at.expect("sums of doubles");
        &self.doubles[first..first + aggregate.doubles]
    }

    /// The values picked for an aggregate.
    fn picked(&self, aggregate: &Aggregated) -> ArrayRef {
        self.picks[aggregate.pick_at.expect("a value of a bag")].clone()
    }

    /// Their sum as a double.
    fn double(&self, aggregate: &Aggregated, group: usize) -> f64 {
        match aggregate.double_at {
            Some(at) => self.doubles[group * self.double_width + at].value(),
            None => self.exact(aggregate, group) as f64 / 10f64.powi(i32::from(aggregate.argument_scale())),
        }
    }
}
