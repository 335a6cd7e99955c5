//! Integers of any size, as far as variances need them: sums, products, and quotients as doubles.
//!
//! Representation: sign and magnitude, in digits of 32 bits, the lowest first, no zeros at the high end.
//! Cost: linear in the digits; products quadratic. A double is at most 66 digits long.
//! Source: own.

use std::cmp::Ordering;

const BITS: i32 = 32;

/// An integer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BigInt {
    negative: bool,
    digits: Vec<u32>,
}

impl BigInt {
    /// From digits that may be of any size; the highest five must be zero, for what is carried.
    pub fn of_digits(digits: &mut [i128]) -> Self {
        let mut carry = 0i128;
        for digit in digits.iter_mut() {
            let total = *digit + carry;
            *digit = total & 0xFFFF_FFFF;
            carry = total >> BITS;
        }
        let negative = carry < 0;
        let mut borrow = i128::from(negative);
        let flip = if negative { 0xFFFF_FFFF } else { 0 };
        let digit = |digit: &i128| {
            let total = (*digit ^ flip) + borrow;
            borrow = total >> BITS;
            total as u32
        };
        Self::trimmed(negative, digits.iter().map(digit).collect())
    }

    fn trimmed(negative: bool, mut digits: Vec<u32>) -> Self {
        while digits.last() == Some(&0) {
            digits.pop();
        }
        Self { negative: negative && !digits.is_empty(), digits }
    }

    /// The product of two.
    #[must_use]
    pub fn times(&self, other: &Self) -> Self {
        let mut digits = vec![0u32; self.digits.len() + other.digits.len()];
        for (i, &one) in self.digits.iter().enumerate() {
            let mut carry = 0u64;
            for (j, &two) in other.digits.iter().enumerate() {
                let total = u64::from(one) * u64::from(two) + u64::from(digits[i + j]) + carry;
                digits[i + j] = total as u32;
                carry = total >> BITS;
            }
            digits[i + other.digits.len()] = carry as u32;
        }
        Self::trimmed(self.negative != other.negative, digits)
    }

    /// The difference of two.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        if self.negative != other.negative {
            return Self::trimmed(self.negative, added(&self.digits, &other.digits));
        }
        match compared(&self.digits, &other.digits) {
            Ordering::Less => Self::trimmed(!self.negative, subtracted(&other.digits, &self.digits)),
            _ => Self::trimmed(self.negative, subtracted(&self.digits, &other.digits)),
        }
    }

    /// A double and a power of two that it is to be multiplied by: as near as 53 bits allow.
    pub fn scaled(&self) -> (f64, i32) {
        let Some(&top) = self.digits.last() else { return (0.0, 0) };
        // the highest 64 bits, the last of which is set if any below is
        let at = |back: usize| self.digits.len().checked_sub(back).map_or(0, |i| self.digits[i]);
        let shift = top.leading_zeros();
        let high = u128::from(top) << 64 | u128::from(at(2)) << 32 | u128::from(at(3));
        let mut head = (high << shift >> 32) as u64;
        let rest = (high << shift) as u32;
        let below = self.digits.len().saturating_sub(3);
        head |= u64::from(rest != 0 || self.digits[..below].iter().any(|&digit| digit != 0));
        let exponent = BITS * (self.digits.len() as i32 - 2) - shift as i32;
        (if self.negative { -(head as f64) } else { head as f64 }, exponent)
    }
}

impl From<i128> for BigInt {
    fn from(value: i128) -> Self {
        let magnitude = value.unsigned_abs();
        Self::trimmed(value < 0, (0..4).map(|i| (magnitude >> (BITS * i)) as u32).collect())
    }
}

fn compared(one: &[u32], two: &[u32]) -> Ordering {
    one.len().cmp(&two.len()).then_with(|| one.iter().rev().cmp(two.iter().rev()))
}

fn added(one: &[u32], two: &[u32]) -> Vec<u32> {
    let mut carry = 0u64;
    let digit = |digits: &[u32], i: usize| u64::from(digits.get(i).copied().unwrap_or(0));
    let sum = |i| {
        let total = digit(one, i) + digit(two, i) + carry;
        carry = total >> BITS;
        total as u32
    };
    (0..=one.len().max(two.len())).map(sum).collect()
}

/// `one` is not less than `two`.
fn subtracted(one: &[u32], two: &[u32]) -> Vec<u32> {
    let mut borrow = 0i64;
    let difference = |(i, &digit): (usize, &u32)| {
        let total = i64::from(digit) - i64::from(two.get(i).copied().unwrap_or(0)) - borrow;
        borrow = i64::from(total < 0);
        total as u32
    };
    one.iter().enumerate().map(difference).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_computes_as_128_bits_do() {
        let values = [0, 1, -1, 7, -(1 << 31), (1 << 32) - 1, 1 << 32, -(1 << 40) + 5, (1 << 60) + 3, -(1i128 << 61)];
        for one in values {
            for two in values {
                let (a, b) = (BigInt::from(one), BigInt::from(two));
                assert_eq!(a.times(&b), BigInt::from(one * two), "{one} * {two}");
                assert_eq!(a.minus(&b), BigInt::from(one - two), "{one} - {two}");
            }
            let mut digits = [one & 0xFFFF_FFFF, one >> 32, 0, 0, 0, 0, 0];
            assert_eq!(BigInt::of_digits(&mut digits), BigInt::from(one));
        }
    }

    #[test]
    fn doubles_of_it_are_rounded_once() {
        for value in [1i128, -3, (1 << 53) + 1, (1 << 100) + 1, -(1 << 90) - (1 << 37) - 1, i128::MAX, 12_345_678_901] {
            let (head, exponent) = BigInt::from(value).scaled();
            assert_eq!(head * 2f64.powi(exponent), value as f64, "{value}");
        }
        assert_eq!(BigInt::default().scaled(), (0.0, 0));
    }
}
