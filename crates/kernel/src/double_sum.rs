//! Exact sums of doubles, and of products of two.
//!
//! Sums must not depend on the order of changes, and inserting then deleting a value must leave no residue. So a sum is kept exactly: every
//! finite double is an integer times a power of two; the integers are added up in 128-bit buckets of 32 binary places each. Only the
//! buckets in use are held (data of similar magnitude use two or three). NaN and infinities are counted. The value is the exact sum
//! rounded once, so it is a function of the multiset of inputs alone.
//!
//! A product of two doubles has 106 bits: it is added up as four products of halves, in a sum of its own whose buckets begin at the square of
//! the smallest subnormal.

use crate::big_int::BigInt;

const MANTISSA_BITS: u32 = 52;
/// Bits of the lower half of a mantissa.
const HALF: u32 = 27;
/// Binary places per bucket.
const PLACES: i32 = 32;
/// The exponent of the smallest subnormal.
pub const LOWEST: i32 = -1074;

/// The exact sum of a multiset of doubles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DoubleSum {
    /// Bucket number and sum, by ascending number, no zeros.
    buckets: Vec<(u8, i128)>,
    nan: i128,
    positive: i128,
    negative: i128,
}

impl DoubleSum {
    /// Adds `times` times the value (removes it, if negative); returns whether a bucket overflowed.
    pub fn add(&mut self, value: f64, times: i64) -> bool {
        if value.is_nan() {
            self.nan += i128::from(times);
            return false;
        }
        if value.is_infinite() {
            *(if value > 0.0 { &mut self.positive } else { &mut self.negative }) += i128::from(times);
            return false;
        }
        let (mantissa, exponent) = parts_of(value);
        self.add_term(mantissa, exponent, times)
    }

    /// Adds `times` times a product; returns whether a bucket overflowed. A sum of products holds nothing else.
    pub fn add_product(&mut self, one: f64, two: f64, times: i64) -> bool {
        if !one.is_finite() || !two.is_finite() {
            self.nan += i128::from(times);
            return false;
        }
        let ((one, first), (two, second)) = (parts_of(one), parts_of(two));
        let halves = |mantissa: i128| [(mantissa % (1 << HALF), 0), (mantissa >> HALF, HALF as i32)];
        // of the magnitude, so that both halves have its sign
        let sign = if (one < 0) == (two < 0) { 1 } else { -1 };
        let mut overflow = false;
        for (low, by) in halves(one.abs()) {
            for (high, by_too) in halves(two.abs()) {
                overflow |= self.add_term(sign * low * high, first + second + by + by_too, times);
            }
        }
        overflow
    }

    /// Adds `times` times `mantissa * 2^exponent`, counted from the lowest place.
    fn add_term(&mut self, mantissa: i128, exponent: i32, times: i64) -> bool {
        let (term, over) = (mantissa << (exponent % PLACES)).overflowing_mul(i128::from(times));
        self.add_bucket((exponent / PLACES) as u8, term) | over
    }

    /// Adds another sum; returns whether a bucket overflowed.
    pub fn merge(&mut self, other: &Self) -> bool {
        self.merge_times(other, 1)
    }

    /// Adds another sum so many times; returns whether a bucket overflowed.
    pub fn merge_times(&mut self, other: &Self, times: i64) -> bool {
        self.nan += other.nan * i128::from(times);
        self.positive += other.positive * i128::from(times);
        self.negative += other.negative * i128::from(times);
        let mut overflow = false;
        for &(bucket, sum) in &other.buckets {
            let (term, over) = sum.overflowing_mul(i128::from(times));
            overflow |= self.add_bucket(bucket, term) | over;
        }
        overflow
    }

    /// Whether all that was added is finite.
    pub fn is_finite(&self) -> bool {
        self.nan == 0 && self.positive == 0 && self.negative == 0
    }

    /// The sum of what is finite, in units of the lowest place.
    pub fn exact(&self) -> BigInt {
        let mut digits = vec![0i128; self.buckets.last().map_or(0, |&(last, _)| usize::from(last) + 6)];
        for &(bucket, sum) in &self.buckets {
            digits[usize::from(bucket)] += sum;
        }
        BigInt::of_digits(&mut digits)
    }

    /// Appends the sum as bytes: the same for the same multiset of what was added.
    pub fn write(&self, into: &mut Vec<u8>) {
        into.push(self.buckets.len() as u8);
        for count in [self.nan, self.positive, self.negative] {
            into.extend_from_slice(&count.to_le_bytes());
        }
        for (bucket, sum) in &self.buckets {
            into.push(*bucket);
            into.extend_from_slice(&sum.to_le_bytes());
        }
    }

    /// Reads what `write` wrote, and gives what is behind it; `None` if it is nothing of that kind.
    pub fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (&length, mut rest) = bytes.split_first()?;
        let number = |rest: &mut &[u8]| -> Option<i128> {
            let (found, after) = rest.split_first_chunk::<16>()?;
            *rest = after;
            Some(i128::from_le_bytes(*found))
        };
        let (nan, positive, negative) = (number(&mut rest)?, number(&mut rest)?, number(&mut rest)?);
        let mut buckets = Vec::with_capacity(usize::from(length));
        for _ in 0..length {
            let (&bucket, after) = rest.split_first()?;
            rest = after;
            buckets.push((bucket, number(&mut rest)?));
        }
        Some((Self { buckets, nan, positive, negative }, rest))
    }

    fn add_bucket(&mut self, bucket: u8, term: i128) -> bool {
        match self.buckets.binary_search_by_key(&bucket, |&(b, _)| b) {
            Ok(at) => {
                let (sum, over) = self.buckets[at].1.overflowing_add(term);
                if sum == 0 {
                    self.buckets.remove(at);
                } else {
                    self.buckets[at].1 = sum;
                }
                over
            }
            Err(at) => {
                if term != 0 {
                    self.buckets.insert(at, (bucket, term));
                }
                false
            }
        }
    }

    /// The sum as a double.
    pub fn value(&self) -> f64 {
        if self.nan > 0 || self.positive > 0 && self.negative > 0 {
            return f64::NAN;
        }
        if self.positive > 0 {
            return f64::INFINITY;
        }
        if self.negative > 0 {
            return f64::NEG_INFINITY;
        }
        let (Some(&(first, _)), Some(&(last, _))) = (self.buckets.first(), self.buckets.last()) else { return 0.0 };
        // digits of 32 bits in two's complement, from the first bucket up; five more hold the last bucket's 128 bits and the sign
        let mut digits = vec![0i128; usize::from(last - first) + 6];
        for &(bucket, sum) in &self.buckets {
            digits[usize::from(bucket - first)] += sum;
        }
        let mut carry = 0i128;
        for digit in &mut digits {
            let total = *digit + carry;
            *digit = total & 0xFFFF_FFFF;
            carry = total >> PLACES;
        }
        let negative = carry < 0;
        if negative {
            let mut borrow = 1;
            for digit in &mut digits {
                let flipped = (!*digit & 0xFFFF_FFFF) + borrow;
                *digit = flipped & 0xFFFF_FFFF;
                borrow = flipped >> PLACES;
            }
        }
        let Some(top) = digits.iter().rposition(|&d| d != 0) else { return 0.0 };
        let low = top.saturating_sub(2);
        let mut head = digits[low..=top].iter().rev().fold(0i128, |sum, &digit| sum << PLACES | digit);
        if digits[..low].iter().any(|&d| d != 0) {
            head |= 1; // a sticky bit far below the rounding place
        }
        let exponent = LOWEST + PLACES * (i32::from(first) + low as i32);
        let magnitude = scale(head, exponent);
        if negative { -magnitude } else { magnitude }
    }

    /// Whether the sum holds nothing.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty() && self.nan == 0 && self.positive == 0 && self.negative == 0
    }
}

/// A finite double as an integer times a power of two, counted from the lowest place.
fn parts_of(value: f64) -> (i128, i32) {
    let bits = value.to_bits();
    let raw = ((bits >> MANTISSA_BITS) & 0x7FF) as i32;
    let fraction = i128::from(bits & ((1 << MANTISSA_BITS) - 1));
    let (mantissa, exponent) = if raw == 0 { (fraction, 0) } else { (fraction | 1 << MANTISSA_BITS, raw - 1) };
    (if value < 0.0 { -mantissa } else { mantissa }, exponent)
}

/// `head * 2^exponent`, rounded once.
fn scale(head: i128, exponent: i32) -> f64 {
    let length = 128 - head.leading_zeros() as i32;
    // keep 53 bits, fewer where the result is subnormal
    let dropped = (length - 53).max(LOWEST - exponent).max(0);
    if dropped > 127 {
        return 0.0;
    }
    let kept = head >> dropped;
    let rest = head & ((1i128 << dropped) - 1);
    let half = if dropped == 0 { 1 } else { 1i128 << (dropped - 1) };
    let rounded = kept + i128::from(dropped > 0 && (rest > half || rest == half && kept & 1 == 1));
    let (mut value, mut power) = (rounded as f64, exponent + dropped);
    while power > 0 {
        let step = power.min(900);
        value *= 2f64.powi(step);
        power -= step;
    }
    while power < 0 {
        let step = power.max(-900);
        value *= 2f64.powi(step);
        power -= step;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(values: &[f64]) -> f64 {
        let mut total = DoubleSum::default();
        for &value in values {
            assert!(!total.add(value, 1));
        }
        total.value()
    }

    #[test]
    fn single_values_come_back_bit_by_bit() {
        for value in [1.0, -1.0, 0.1, 1e308, -1e308, 5e-324, 2.5e-310, f64::MAX, f64::MIN_POSITIVE, 123_456_789.123] {
            assert_eq!(sum(&[value]).to_bits(), value.to_bits(), "{value}");
        }
    }

    #[test]
    fn cancellation_is_exact() {
        assert_eq!(sum(&[1e100, 1.0, -1e100]), 1.0);
        assert_eq!(sum(&[1e308, 1e308, -1e308]), 1e308);
        assert_eq!(sum(&[0.1; 10]), 1.0);
        assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
        assert_eq!(sum(&[3.0, -2.0, -1.0]), 0.0);
        assert_eq!(sum(&[-5e-324, -5e-324]), -1e-323);
    }

    #[test]
    fn insert_then_delete_leaves_nothing() {
        let values = [1.5, f64::NAN, f64::INFINITY, -1e-300, f64::NEG_INFINITY, 7e200, 0.0];
        let mut total = DoubleSum::default();
        for value in values {
            total.add(value, 3);
        }
        assert!(total.value().is_nan());
        for value in values {
            total.add(value, -3);
        }
        assert!(total.is_empty());
        assert_eq!(total.value(), 0.0);
    }

    #[test]
    fn products_are_exact_and_leave_nothing() {
        let values = [1.0, -0.1, 1e300, 5e-324, -7.25e-160, 3.3e155, 0.0, f64::MAX];
        let mut total = DoubleSum::default();
        for one in values {
            for two in values {
                let mut sum = DoubleSum::default();
                assert!(!sum.add_product(one, two, 3));
                let (mut a, mut b) = (DoubleSum::default(), DoubleSum::default());
                a.add(one, 1);
                b.add(two, 3);
                assert_eq!(sum.exact(), a.exact().times(&b.exact()), "{one} {two}");
                total.add_product(one, two, 2);
            }
        }
        let mut bytes = Vec::new();
        total.write(&mut bytes);
        let (read, rest) = DoubleSum::read(&bytes).unwrap();
        assert_eq!((&read, rest.len()), (&total, 0));
        assert!(DoubleSum::read(&bytes[..bytes.len() - 1]).is_none());
        total.merge_times(&read, -1);
        assert!(total.is_empty());
    }
}
