//! Decimal arithmetic on single values: 128-bit integers with a scale, 256 bits where a step needs them.
//!
//! Every operation computes exactly and rounds `HALF_UP` once, to the result type. Spark cuts products to 39 digits and
//! quotients to 39 places on the way; since it cuts and does not round there, the results are the same.

use arrow_buffer::i256;

use crate::error::Fault;

/// Powers of ten that fit 128 bits.
pub(crate) const POWERS: [i128; 39] = {
    let mut powers = [1_i128; 39];
    let mut exponent = 1;
    while exponent < 39 {
        powers[exponent] = powers[exponent - 1] * 10;
        exponent += 1;
    }
    powers
};

/// Precision and scale of a result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    /// Number of digits.
    pub precision: u8,
    /// Digits after the point.
    pub scale: i8,
}

impl Target {
    fn fault(self, value: &str) -> Fault {
        Fault::out_of_range(value, self.precision, self.scale)
    }
}

/// Whether a value has at most `precision` digits.
pub(crate) fn fits(value: i128, precision: u8) -> bool {
    value.unsigned_abs() < POWERS[usize::from(precision.min(38))].unsigned_abs()
}

/// Quotient by a positive divisor, rounded half away from zero.
pub(crate) fn divide_half_up(value: i128, divisor: i128) -> i128 {
    if let (Ok(value), Ok(divisor)) = (i64::try_from(value), i64::try_from(divisor)) {
        // Most values are this small, and 64-bit division is several times faster.
        let (quotient, rest) = (value / divisor, (value % divisor).unsigned_abs());
        let up = rest >= divisor.unsigned_abs() - rest;
        return i128::from(quotient) + if up { i128::from(value.signum()) } else { 0 };
    }
    let (quotient, rest) = (value / divisor, value % divisor);
    let (rest, divisor) = (rest.unsigned_abs(), divisor.unsigned_abs());
    if rest >= divisor - rest { quotient + value.signum() } else { quotient }
}

/// The value at another scale, rounded `HALF_UP`; `None` if it leaves 128 bits.
pub(crate) fn rescale(value: i128, from: i32, to: i32) -> Option<i128> {
    let steps = to - from;
    if steps == 0 {
        return Some(value);
    }
    match POWERS.get(steps.unsigned_abs() as usize) {
        Some(power) if steps > 0 => product(value, *power),
        Some(power) => Some(divide_half_up(value, *power)),
        None if steps < 0 || value == 0 => Some(0),
        None => None,
    }
}

/// The product, if it fits 128 bits.
fn product(a: i128, b: i128) -> Option<i128> {
    match (i64::try_from(a), i64::try_from(b)) {
        (Ok(a), Ok(b)) => Some(i128::from(a) * i128::from(b)),
        _ => a.checked_mul(b),
    }
}

/// The value brought to the target type.
pub(crate) fn settle(value: i128, scale: i32, target: Target) -> Result<i128, Fault> {
    match rescale(value, scale, i32::from(target.scale)) {
        Some(settled) if fits(settled, target.precision) => Ok(settled),
        _ => Err(target.fault(&plain(&value.to_string(), scale))),
    }
}

fn settle_wide(value: i256, scale: i32, target: Target) -> Result<i128, Fault> {
    let steps = i32::from(target.scale) - scale;
    let settled = if steps >= 0 {
        power(steps.unsigned_abs()).and_then(|power| value.checked_mul(power))
    } else {
        power(steps.unsigned_abs()).map(|power| divide_half_up_wide(value, power))
    };
    match settled.and_then(i256::to_i128) {
        Some(settled) if fits(settled, target.precision) => Ok(settled),
        _ => Err(target.fault(&plain(&value.to_string(), scale))),
    }
}

fn wide(value: i128) -> i256 {
    i256::from_i128(value)
}

/// A power of ten that fits 256 bits.
fn power(exponent: u32) -> Option<i256> {
    match exponent {
        0..=38 => Some(wide(POWERS[exponent as usize])),
        39..=76 => wide(POWERS[38]).checked_mul(wide(POWERS[exponent as usize - 38])),
        _ => None,
    }
}

fn divide_half_up_wide(value: i256, divisor: i256) -> i256 {
    let (Some(quotient), Some(rest)) = (value.checked_div(divisor), value.checked_rem(divisor)) else {
        return i256::ZERO;
    };
    let rest = rest.wrapping_abs();
    if rest >= divisor.wrapping_sub(rest) {
        let step = if value < i256::ZERO { i256::MINUS_ONE } else { i256::ONE };
        quotient.wrapping_add(step)
    } else {
        quotient
    }
}

/// Both values at the larger of their scales.
fn align(a: i128, a_scale: i32, b: i128, b_scale: i32) -> Option<(i128, i128)> {
    let scale = a_scale.max(b_scale);
    Some((rescale(a, a_scale, scale)?, rescale(b, b_scale, scale)?))
}

fn align_wide(a: i128, a_scale: i32, b: i128, b_scale: i32) -> (i256, i256) {
    let scale = a_scale.max(b_scale);
    let shift = |value, from: i32| {
        // 38 digits shifted by at most 38 places always fit.
        power((scale - from).unsigned_abs()).map_or(i256::ZERO, |power| wide(value).wrapping_mul(power))
    };
    (shift(a, a_scale), shift(b, b_scale))
}

/// `a + b`, or `a - b`.
pub(crate) fn add(a: i128, a_scale: i32, b: i128, b_scale: i32, subtract: bool, target: Target) -> Result<i128, Fault> {
    let scale = a_scale.max(b_scale);
    let sum =
        align(a, a_scale, b, b_scale).and_then(|(a, b)| if subtract { a.checked_sub(b) } else { a.checked_add(b) });
    if let Some(sum) = sum {
        return settle(sum, scale, target);
    }
    let (a, b) = align_wide(a, a_scale, b, b_scale);
    settle_wide(if subtract { a.wrapping_sub(b) } else { a.wrapping_add(b) }, scale, target)
}

/// `a * b`.
pub(crate) fn multiply(a: i128, a_scale: i32, b: i128, b_scale: i32, target: Target) -> Result<i128, Fault> {
    let scale = a_scale + b_scale;
    match product(a, b) {
        Some(product) => settle(product, scale, target),
        None => settle_wide(wide(a).wrapping_mul(wide(b)), scale, target),
    }
}

/// `a / b`.
pub(crate) fn divide(a: i128, a_scale: i32, b: i128, b_scale: i32, target: Target) -> Result<i128, Fault> {
    if b == 0 {
        return Err(Fault::divide_by_zero());
    }
    let scale = i32::from(target.scale);
    let mut steps = scale - a_scale + b_scale;
    let short = if steps >= 0 { rescale(a, 0, steps) } else { None };
    let short = short.and_then(|dividend| if b < 0 { dividend.checked_neg() } else { Some(dividend) });
    if let (Some(dividend), Some(divisor)) = (short, b.checked_abs()) {
        return settle(divide_half_up(dividend, divisor), scale, target);
    }
    let out_of_range = || target.fault(&format!("{} / {}", format(a, a_scale), format(b, b_scale)));
    // Long division, 38 digits at a time: a remainder below 10^38 shifted by 38 digits fits 256 bits.
    let mut divisor = wide(b).wrapping_abs();
    if steps < 0 {
        let power = power(steps.unsigned_abs()).ok_or_else(out_of_range)?;
        divisor = divisor.wrapping_mul(power);
    }
    let dividend = wide(a).wrapping_abs();
    let mut quotient = dividend.wrapping_div(divisor);
    let mut rest = dividend.wrapping_rem(divisor);
    while steps > 0 {
        let digits = steps.min(38).unsigned_abs();
        let power = wide(POWERS[digits as usize]);
        let shifted = rest.wrapping_mul(power);
        quotient = quotient
            .checked_mul(power)
            .and_then(|quotient| quotient.checked_add(shifted.wrapping_div(divisor)))
            .ok_or_else(out_of_range)?;
        rest = shifted.wrapping_rem(divisor);
        steps -= digits as i32;
    }
    if rest >= divisor.wrapping_sub(rest) {
        quotient = quotient.wrapping_add(i256::ONE);
    }
    if (a < 0) != (b < 0) {
        quotient = quotient.wrapping_neg();
    }
    settle_wide(quotient, scale, target).map_err(|_| out_of_range())
}

/// `a div b`: the quotient cut to an integer.
pub(crate) fn integer_divide(a: i128, a_scale: i32, b: i128, b_scale: i32) -> Result<i64, Fault> {
    if b == 0 {
        return Err(Fault::divide_by_zero());
    }
    let quotient = if let Some((a, b)) = align(a, a_scale, b, b_scale) {
        a.checked_div(b)
    } else {
        let (a, b) = align_wide(a, a_scale, b, b_scale);
        a.checked_div(b).and_then(i256::to_i128)
    };
    let quotient = quotient.and_then(|quotient| i64::try_from(quotient).ok());
    quotient.ok_or_else(|| Fault::overflow("the integral quotient"))
}

/// `a % b`, with the sign of `a`.
pub(crate) fn remainder(a: i128, a_scale: i32, b: i128, b_scale: i32, target: Target) -> Result<i128, Fault> {
    if b == 0 {
        return Err(Fault::remainder_by_zero());
    }
    let scale = a_scale.max(b_scale);
    if let Some((a, b)) = align(a, a_scale, b, b_scale) {
        return settle(a.wrapping_rem(b), scale, target);
    }
    let (a, b) = align_wide(a, a_scale, b, b_scale);
    settle_wide(a.wrapping_rem(b), scale, target)
}

/// Orders two decimals by value.
pub(crate) fn compare(a: i128, a_scale: i32, b: i128, b_scale: i32) -> std::cmp::Ordering {
    if let Some((a, b)) = align(a, a_scale, b, b_scale) {
        a.cmp(&b)
    } else {
        let (a, b) = align_wide(a, a_scale, b, b_scale);
        a.cmp(&b)
    }
}

/// The decimal in plain notation, `-0.05`.
pub(crate) fn format(value: i128, scale: i32) -> String {
    plain(&value.to_string(), scale)
}

fn plain(integer: &str, scale: i32) -> String {
    let (sign, digits) = integer.strip_prefix('-').map_or(("", integer), |digits| ("-", digits));
    let scale = scale.max(0) as usize;
    if scale == 0 {
        return integer.to_owned();
    }
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    format!("{sign}{whole}.{fraction}")
}

/// A decimal number of any length: its digits without leading zeros, times a power of ten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parsed {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

impl Parsed {
    /// Number of digits before the point.
    pub fn whole_digits(&self) -> i64 {
        if self.digits.is_empty() { 0 } else { (self.digits.len() as i64 + self.exponent).max(0) }
    }

    /// The integer at a scale, rounded `HALF_UP`; `None` if it leaves 128 bits.
    pub fn to_scale(&self, scale: i32) -> Option<i128> {
        let kept = self.digits.len() as i64 + self.exponent + i64::from(scale);
        if self.digits.is_empty() || kept < 0 {
            return Some(0);
        }
        if kept > 39 {
            return None;
        }
        let mut value: i128 = 0;
        for position in 0..kept as usize {
            let digit = self.digits.get(position).copied().unwrap_or(0);
            value = value.checked_mul(10)?.checked_add(i128::from(digit))?;
        }
        if self.digits.get(kept as usize).is_some_and(|&digit| digit >= 5) {
            value = value.checked_add(1)?;
        }
        Some(if self.negative { -value } else { value })
    }

    /// The integer at a scale, if nothing is lost.
    pub fn to_scale_exactly(&self, scale: i8) -> Option<i128> {
        let kept = self.digits.len() as i64 + self.exponent + i64::from(scale);
        let lost = self.digits.iter().skip(kept.max(0) as usize).any(|&digit| digit != 0);
        if lost { None } else { self.to_scale(i32::from(scale)) }
    }
}

/// Reads `[sign] digits [. digits] [e [sign] digits]`.
pub(crate) fn parse(text: &str) -> Option<Parsed> {
    let negative = text.starts_with('-');
    let rest = text.strip_prefix(['+', '-']).unwrap_or(text).as_bytes();
    let (mantissa, exponent) = match rest.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(position) => {
            let exponent = std::str::from_utf8(&rest[position + 1..]).ok()?;
            (&rest[..position], i64::from(exponent.parse::<i32>().ok()?))
        }
        None => (rest, 0),
    };
    let mut digits = Vec::with_capacity(mantissa.len());
    let mut fraction: Option<i64> = None;
    let mut any = false;
    for &byte in mantissa {
        match byte {
            b'0'..=b'9' => {
                any = true;
                if byte != b'0' || !digits.is_empty() {
                    digits.push(byte - b'0');
                }
                fraction = fraction.map(|count| count + 1);
            }
            b'.' if fraction.is_none() => fraction = Some(0),
            _ => return None,
        }
    }
    any.then_some(Parsed { negative, digits, exponent: exponent - fraction.unwrap_or(0) })
}

/// The shortest decimal that reads back as this finite double.
pub(crate) fn shortest(value: f64) -> Option<Parsed> {
    if value.is_finite() { parse(&format!("{value:e}")) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(precision: u8, scale: i8) -> Target {
        Target { precision, scale }
    }

    #[test]
    fn rounding_is_half_up_on_both_sides_of_zero() {
        assert_eq!(rescale(25, 1, 0), Some(3));
        assert_eq!(rescale(-25, 1, 0), Some(-3));
        assert_eq!(rescale(24, 1, 0), Some(2));
        assert_eq!(rescale(POWERS[38] - 1, 0, 1), None);
        assert_eq!(rescale(POWERS[38] - 1, 60, 0), Some(0));
        assert_eq!(divide_half_up(POWERS[38] - 1, POWERS[38]), 1);
    }

    #[test]
    fn products_beyond_128_bits_settle() {
        let nines = POWERS[38] - 1;
        assert_eq!(multiply(nines, 38, nines, 38, target(38, 37)).unwrap(), POWERS[37]);
        assert!(multiply(nines, 0, nines, 0, target(38, 0)).is_err());
    }

    #[test]
    fn quotients_of_every_size() {
        assert_eq!(divide(1, 0, 3, 0, target(38, 6)).unwrap(), 333_333);
        assert_eq!(divide(-2, 0, 3, 0, target(38, 6)).unwrap(), -666_667);
        assert_eq!(divide(POWERS[18], 18, 3 * POWERS[18], 18, target(38, 6)).unwrap(), 333_333);
        assert_eq!(divide(1, 38, 3, 0, target(38, 38)).unwrap(), 0);
        assert_eq!(divide(1, 0, 1, 38, target(38, 6)).unwrap_err().code, "NUMERIC_VALUE_OUT_OF_RANGE");
        assert_eq!(divide(1, 0, 0, 0, target(38, 6)).unwrap_err().code, "DIVIDE_BY_ZERO");
    }

    #[test]
    fn texts_of_every_shape() {
        assert_eq!(parse("1.50").unwrap().to_scale(1), Some(15));
        assert_eq!(parse("-.5").unwrap().to_scale(0), Some(-1));
        assert_eq!(parse("1e3").unwrap().to_scale(0), Some(1000));
        assert_eq!(parse("1e-2000000000").unwrap().to_scale(5), Some(0));
        assert_eq!(parse("1e2000000000").unwrap().to_scale(5), None);
        assert_eq!(parse("0.05").unwrap().to_scale(1), Some(1));
        assert_eq!(parse("0.04").unwrap().to_scale(0), Some(0));
        for text in ["", "-", ".", "1.2.3", "1e", "e5", "1e99999999999", "0x1"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn plain_notation() {
        assert_eq!(format(-5, 2), "-0.05");
        assert_eq!(format(12345, 2), "123.45");
        assert_eq!(format(0, 3), "0.000");
        assert_eq!(format(-7, 0), "-7");
    }
}
