//! Annotations: vectors of ring values, multiplied componentwise along the tree.
//!
//! The ring is the integers modulo 2^128 with a flag that is raised when a result leaves the range of `i128`. Because the
//! arithmetic stays a ring when it wraps, a batch that overflowed is undone exactly by applying its inverse.

/// Multiplies `target` componentwise by `factor`; returns whether a product overflowed.
#[inline]
pub fn multiply(target: &mut [i128], factor: &[i128]) -> bool {
    let mut overflow = false;
    for (value, &by) in target.iter_mut().zip(factor) {
        let (product, over) = multiply_one(*value, by);
        *value = product;
        overflow |= over;
    }
    overflow
}

/// The product of two ring values and whether it overflowed.
#[inline]
pub fn multiply_one(left: i128, right: i128) -> (i128, bool) {
    match (i64::try_from(left), i64::try_from(right)) {
        (Ok(a), Ok(b)) => (i128::from(a) * i128::from(b), false),
        _ => left.overflowing_mul(right),
    }
}

/// Subtracts `other` from `target` componentwise; returns whether a difference overflowed.
#[inline]
pub fn subtract(target: &mut [i128], other: &[i128]) -> bool {
    let mut overflow = false;
    for (value, &by) in target.iter_mut().zip(other) {
        let (difference, over) = value.overflowing_sub(by);
        *value = difference;
        overflow |= over;
    }
    overflow
}

/// Negates every component, modulo 2^128.
#[inline]
pub fn negate(target: &mut [i128]) {
    for value in target {
        *value = value.wrapping_neg();
    }
}
