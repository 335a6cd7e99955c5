//! Functions of numbers: those of doubles, bit operations, and remainders that are not negative.
//!
//! Where libraries differ on special values, Java decides: `pow(1, NaN)` is NaN, `signum(0)` is 0. Logarithms of what has
//! none are NULL, as in Spark.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
};
use arrow_schema::DataType as Arrow;

use super::{BIGINT, BOOLEAN, DOUBLE, Function, INT, Slot, function};
use crate::arithmetic::target;
use crate::column::Input;
use crate::datatype::DataType;
use crate::decimal;
use crate::error::{EvalError, Fault};

const TINYINT: Slot = Slot::Is(DataType::TinyInt);
const SMALLINT: Slot = Slot::Is(DataType::SmallInt);
const FLOAT: Slot = Slot::Is(DataType::Float);

/// A function of one double that is defined everywhere.
macro_rules! double {
    ($name:literal, $compute:expr) => {
        function($name, &[DOUBLE], DOUBLE, |input, _| Ok(Arc::new(input.map1::<Float64Type, Float64Type>($compute))))
    };
}

/// A function of one double that is NULL where it is not defined.
macro_rules! partial {
    ($name:literal, $compute:expr) => {
        function($name, &[DOUBLE], DOUBLE, |input, _| {
            let values = input.operand::<Float64Type>(0);
            let compute: fn(f64) -> Option<f64> = $compute;
            Ok(Arc::new(input.map_optional::<Float64Type>(|row| Ok(compute(values.get(row))))?))
        })
    };
}

/// A function of two doubles.
macro_rules! double2 {
    ($name:literal, $compute:expr) => {
        function($name, &[DOUBLE, DOUBLE], DOUBLE, |input, _| {
            Ok(Arc::new(input.map2::<Float64Type, Float64Type, Float64Type>($compute)))
        })
    };
}

/// A function of two integers of one type that cannot fail.
macro_rules! bits {
    ($name:literal, $slot:expr, $arrow:ty, $compute:expr) => {
        function($name, &[$slot, $slot], $slot, |input, _| Ok(Arc::new(input.map2::<$arrow, $arrow, $arrow>($compute))))
    };
}

/// `bit_and`, `bit_or`, `bit_xor` and `bit_not` of one type.
macro_rules! bit_operations {
    ($($slot:expr, $arrow:ty, $wide:ty;)*) => {
        &[$(
            bits!("bit_and", $slot, $arrow, |a, b| a & b),
            bits!("bit_or", $slot, $arrow, |a, b| a | b),
            bits!("bit_xor", $slot, $arrow, |a, b| a ^ b),
            function("bit_not", &[$slot], $slot, |input, _| Ok(Arc::new(input.map1::<$arrow, $arrow>(|a| !a)))),
            function("pmod", &[$slot, $slot], $slot, |input, _| {
                Ok(Arc::new(input.try_map2::<$arrow, $arrow, $arrow>(|a, n| {
                    if n == 0 {
                        return Err(Fault::remainder_by_zero());
                    }
                    // As Java, which computes with at least 32 bits.
                    let n = <$wide>::from(n);
                    let rest = <$wide>::from(a).wrapping_rem(n);
                    Ok((if rest < 0 { rest.wrapping_add(n).wrapping_rem(n) } else { rest }) as _)
                })?))
            })
            .failing(),
        )*]
    };
}

/// Bit operations, and `pmod` of integers.
pub(super) const OF_INTEGERS: &[Function] = bit_operations! {
    TINYINT, Int8Type, i32;
    SMALLINT, Int16Type, i32;
    INT, Int32Type, i32;
    BIGINT, Int64Type, i64;
};

/// A shift of an int or bigint; the distance is taken modulo the number of bits, as in Java.
macro_rules! shift {
    ($name:literal, $slot:expr, $arrow:ty, $compute:expr) => {
        function($name, &[$slot, INT], $slot, |input, _| {
            Ok(Arc::new(input.map2::<$arrow, Int32Type, $arrow>($compute)))
        })
    };
}

/// The group.
pub(super) const FUNCTIONS: &[Function] = &[
    double!("sqrt", f64::sqrt),
    double!("cbrt", f64::cbrt),
    double!("exp", f64::exp),
    double!("expm1", f64::exp_m1),
    double!("sin", f64::sin),
    double!("cos", f64::cos),
    double!("tan", f64::tan),
    double!("cot", |x| 1.0 / x.tan()),
    double!("asin", f64::asin),
    double!("acos", f64::acos),
    double!("atan", f64::atan),
    double!("sinh", f64::sinh),
    double!("cosh", f64::cosh),
    double!("tanh", f64::tanh),
    double!("degrees", |x| x * (180.0 / std::f64::consts::PI)),
    double!("radians", |x| x / 180.0 * std::f64::consts::PI),
    double!("rint", f64::round_ties_even),
    double!("signum", |x| if x == 0.0 { 0.0 } else { x.signum() }),
    partial!("ln", |x| if x <= 0.0 { None } else { Some(x.ln()) }),
    partial!("log10", |x| if x <= 0.0 { None } else { Some(x.log10()) }),
    partial!("log2", |x| if x <= 0.0 { None } else { Some(x.log2()) }),
    partial!("log1p", |x| if x <= -1.0 { None } else { Some(x.ln_1p()) }),
    double2!("pow", power),
    double2!("atan2", |y, x| (y + 0.0).atan2(x + 0.0)),
    double2!("hypot", f64::hypot),
    function("log", &[DOUBLE, DOUBLE], DOUBLE, |input, _| {
        let (base, x) = (input.operand::<Float64Type>(0), input.operand::<Float64Type>(1));
        Ok(Arc::new(input.map_optional::<Float64Type>(|row| {
            let (base, x) = (base.get(row), x.get(row));
            Ok(if base <= 0.0 || x <= 0.0 { None } else { Some(x.ln() / base.ln()) })
        })?))
    }),
    function("is_nan", &[DOUBLE], BOOLEAN, |input, _| {
        let values = input.operand::<Float64Type>(0);
        Ok(Arc::new(input.map_booleans(|row| values.get(row).is_nan())))
    }),
    function("is_nan", &[FLOAT], BOOLEAN, |input, _| {
        let values = input.operand::<Float32Type>(0);
        Ok(Arc::new(input.map_booleans(|row| values.get(row).is_nan())))
    }),
    function("pmod", &[FLOAT, FLOAT], FLOAT, |input, _| {
        pmod::<Float32Type>(input, |a, n| if a % n < 0.0 { (a % n + n) % n } else { a % n }, 0.0)
    })
    .failing(),
    function("pmod", &[DOUBLE, DOUBLE], DOUBLE, |input, _| {
        pmod::<Float64Type>(input, |a, n| if a % n < 0.0 { (a % n + n) % n } else { a % n }, 0.0)
    })
    .failing(),
    function("pmod", &[Slot::Decimal, Slot::Decimal], Slot::Decimal, |input, result| {
        let [p, q] = [0, 1].map(|position| match input.column(position).array().data_type() {
            Arrow::Decimal128(_, scale) => i32::from(*scale),
            _ => 0,
        });
        let target = target(result);
        let values = input.try_map2::<Decimal128Type, Decimal128Type, Decimal128Type>(|a, n| {
            let rest = decimal::remainder(a, p, n, q, target)?;
            let scale = i32::from(target.scale);
            if rest < 0 && n > 0 { decimal::add(rest, scale, n, q, false, target) } else { Ok(rest) }
        })?;
        Ok(Arc::new(values.with_data_type(result.arrow())))
    })
    .failing(),
    shift!("shift_left", INT, Int32Type, |a, n| a.wrapping_shl(n as u32)),
    shift!("shift_left", BIGINT, Int64Type, |a, n| a.wrapping_shl(n as u32)),
    shift!("shift_right", INT, Int32Type, |a, n| a.wrapping_shr(n as u32)),
    shift!("shift_right", BIGINT, Int64Type, |a, n| a.wrapping_shr(n as u32)),
    shift!("shift_right_unsigned", INT, Int32Type, |a, n| (a as u32).wrapping_shr(n as u32) as i32),
    shift!("shift_right_unsigned", BIGINT, Int64Type, |a, n| (a as u64).wrapping_shr(n as u32) as i64),
    function("bit_count", &[BIGINT], INT, |input, _| {
        Ok(Arc::new(input.map1::<Int64Type, Int32Type>(|a| a.count_ones() as i32)))
    }),
];

fn power(base: f64, exponent: f64) -> f64 {
    if exponent.is_nan() || (base.abs() == 1.0 && exponent.is_infinite()) { f64::NAN } else { base.powf(exponent) }
}

fn pmod<T: ArrowPrimitiveType>(
    input: &Input,
    rest: impl Fn(T::Native, T::Native) -> T::Native,
    zero: T::Native,
) -> Result<ArrayRef, EvalError> {
    let computed =
        input.try_map2::<T, T, T>(|a, n| if n == zero { Err(Fault::remainder_by_zero()) } else { Ok(rest(a, n)) });
    Ok(Arc::new(computed?))
}
