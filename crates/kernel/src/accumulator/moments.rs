//! Variances, covariances and correlations: from the exact sums of arguments and of products of two, so that they are functions of the rows
//! alone, and what was inserted and deleted leaves nothing.
//!
//! `n * sum(xy) - sum(x) * sum(y)` is computed without rounding; the result is rounded when it is divided. NaN where an argument is not
//! finite, NULL where there are too few rows. Over shards the sums travel as bytes (`States`).

use super::{Accumulator, Aggregated, Refusal, State, Totals};
use crate::big_int::BigInt;
use crate::double_sum::{DoubleSum, LOWEST};
use arrow_array::builder::BinaryBuilder;
use arrow_array::{ArrayRef, Float64Array};
use everview_expr::DataType;
use std::sync::Arc;

/// Products of one argument with itself.
const SQUARE: &[(usize, usize)] = &[(0, 0)];
const PRODUCT: &[(usize, usize)] = &[(0, 1)];
const ALL: &[(usize, usize)] = &[(0, 1), (0, 0), (1, 1)];

#[derive(Debug)]
pub(crate) enum Moments {
    /// Of so many rows fewer than there are, and whether its root is taken.
    Variance {
        fewer: i128,
        root: bool,
    },
    Covariance {
        fewer: i128,
    },
    Correlation,
}

pub(crate) const VAR_POP: Moments = Moments::Variance { fewer: 0, root: false };
pub(crate) const VAR_SAMP: Moments = Moments::Variance { fewer: 1, root: false };
pub(crate) const STDDEV_POP: Moments = Moments::Variance { fewer: 0, root: true };
pub(crate) const STDDEV_SAMP: Moments = Moments::Variance { fewer: 1, root: true };
pub(crate) const COVAR_POP: Moments = Moments::Covariance { fewer: 0 };
pub(crate) const COVAR_SAMP: Moments = Moments::Covariance { fewer: 1 };

impl Moments {
    const fn products(&self) -> &'static [(usize, usize)] {
        match self {
            Self::Variance { .. } => SQUARE,
            Self::Covariance { .. } => PRODUCT,
            Self::Correlation => ALL,
        }
    }

    fn value(&self, number: i128, sums: &[DoubleSum]) -> Option<f64> {
        let least = match self {
            Self::Variance { fewer, .. } | Self::Covariance { fewer } => 1 + fewer,
            Self::Correlation => 2,
        };
        if number < least {
            return None;
        }
        if sums.iter().any(|sum| !sum.is_finite()) {
            return Some(f64::NAN);
        }
        let arguments = sums.len() - self.products().len();
        let mut central = self.products().iter().zip(&sums[arguments..]).map(|(&(one, two), products)| {
            let together = sums[one].exact().times(&sums[two].exact());
            BigInt::from(number).times(&products.exact()).minus(&together).scaled()
        });
        let mut next = || central.next().expect("one per product");
        match self {
            Self::Variance { fewer, root } => {
                let found = divided(next(), number, number - fewer);
                Some(if *root { found.sqrt() } else { found })
            }
            Self::Covariance { fewer } => Some(divided(next(), number, number - fewer)),
            Self::Correlation => {
                let ((both, at), (one, first), (two, second)) = (next(), next(), next());
                if one == 0.0 || two == 0.0 {
                    return None; // nothing to divide by
                }
                // one root, of a number whose exponent is even then
                let odd = (first + second) & 1;
                let root = (one * two * 2f64.powi(odd)).sqrt();
                let found = power(both / root, at - (first + second - odd) / 2);
                Some(found.clamp(-1.0, 1.0))
            }
        }
    }
}

/// A central moment of products divided by two numbers of rows.
fn divided((head, exponent): (f64, i32), number: i128, by: i128) -> f64 {
    power(head / (number as f64 * by as f64), exponent + 2 * LOWEST)
}

/// `value * 2^exponent`.
fn power(mut value: f64, mut exponent: i32) -> f64 {
    while exponent != 0 && value != 0.0 && value.is_finite() {
        let step = exponent.clamp(-900, 900);
        value *= 2f64.powi(step);
        exponent -= step;
    }
    value
}

impl Accumulator for Moments {
    fn state(&self) -> State {
        State::Products(self.products())
    }

    fn shows(&self, _: &Aggregated) -> Option<usize> {
        None
    }

    fn finish(&self, aggregate: &Aggregated, groups: &Totals) -> Result<ArrayRef, Refusal> {
        let value = |group| self.value(groups.number(aggregate, group), groups.doubles_of(aggregate, group));
        Ok(Arc::new((0..groups.count).map(value).collect::<Float64Array>()))
    }
}

/// The sums themselves, as bytes.
#[derive(Debug)]
pub(crate) struct States(&'static [(usize, usize)]);

pub(crate) const VARIANCE_STATE: States = States(SQUARE);
pub(crate) const COVARIANCE_STATE: States = States(PRODUCT);
pub(crate) const CORRELATION_STATE: States = States(ALL);

impl Accumulator for States {
    fn state(&self) -> State {
        State::Products(self.0)
    }

    fn shows(&self, _: &Aggregated) -> Option<usize> {
        None
    }

    fn can_refuse(&self, _: DataType) -> bool {
        false
    }

    fn finish(&self, aggregate: &Aggregated, groups: &Totals) -> Result<ArrayRef, Refusal> {
        let mut bytes = Vec::new();
        let mut states = BinaryBuilder::new();
        for group in 0..groups.count {
            bytes.clear();
            groups.doubles_of(aggregate, group).iter().for_each(|sum| sum.write(&mut bytes));
            states.append_value(&bytes);
        }
        Ok(Arc::new(states.finish()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(moments: &Moments, rows: &[(f64, f64)]) -> (i128, Vec<DoubleSum>) {
        let arguments = if matches!(moments, Moments::Variance { .. }) { 1 } else { 2 };
        let mut sums = vec![DoubleSum::default(); arguments + moments.products().len()];
        for &(one, two) in rows {
            let values = [one, two];
            for (sum, value) in sums.iter_mut().zip(&values[..arguments]) {
                sum.add(*value, 1);
            }
            for (sum, &(a, b)) in sums[arguments..].iter_mut().zip(moments.products()) {
                sum.add_product(values[a], values[b], 1);
            }
        }
        (rows.len() as i128, sums)
    }

    fn value(moments: &Moments, rows: &[(f64, f64)]) -> Option<f64> {
        let (number, sums) = sums(moments, rows);
        moments.value(number, &sums)
    }

    #[test]
    fn variances_do_not_cancel() {
        for shift in [0.0, 1e9, -3e15] {
            let rows: Vec<(f64, f64)> = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].map(|x| (x + shift, 2.0 * x)).to_vec();
            assert_eq!(value(&VAR_POP, &rows), Some(4.0));
            assert_eq!(value(&STDDEV_POP, &rows), Some(2.0));
            assert_eq!(value(&VAR_SAMP, &rows), Some(32.0 / 7.0));
            assert_eq!(value(&COVAR_POP, &rows), Some(8.0));
            assert_eq!(value(&Moments::Correlation, &rows), Some(1.0));
        }
        for x in [1e150, 0.1, 2f64.powi(-530)] {
            assert_eq!(value(&VAR_POP, &[(x, 0.0), (-x, 0.0)]), Some(x * x));
        }
    }

    #[test]
    fn too_few_rows_give_null_and_what_is_not_finite_nan() {
        assert_eq!(value(&VAR_POP, &[]), None);
        assert_eq!(value(&VAR_POP, &[(3.0, 0.0)]), Some(0.0));
        assert_eq!(value(&VAR_SAMP, &[(3.0, 0.0)]), None);
        assert_eq!(value(&COVAR_SAMP, &[(3.0, 0.0)]), None);
        assert_eq!(value(&Moments::Correlation, &[(3.0, 1.0), (3.0, 2.0)]), None);
        assert!(value(&VAR_SAMP, &[(3.0, 0.0), (f64::INFINITY, 0.0)]).unwrap().is_nan());
        assert!(value(&COVAR_POP, &[(3.0, f64::NAN)]).unwrap().is_nan());
    }
}
