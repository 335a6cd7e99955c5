//! Hashing of rows of 64-bit words.
//!
//! Keys are short (one to a few words), so the hash is a folded 64x64 -> 128 bit multiplication per word: two to three
//! instructions each, with good low and high bits (hashbrown takes its control byte from the high ones).
//! The hash is the same in every process: plans, deltas and snapshots come out in a reproducible order.

const SEED: u64 = 0x243F_6A88_85A3_08D3;
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// The hash of a row of words.
#[inline]
pub fn hash_words(words: &[u64]) -> u64 {
    words.iter().fold(SEED, |hash, &word| fold(hash, word))
}

/// One step of the hash.
#[inline]
pub fn fold(hash: u64, word: u64) -> u64 {
    let product = u128::from(hash ^ word).wrapping_mul(u128::from(MULTIPLIER));
    (product as u64) ^ ((product >> 64) as u64)
}

/// Whether two rows of equal length are equal. Rows are a word or a few: a plain loop beats a call to memcmp.
#[inline]
pub fn same_words(left: &[u64], right: &[u64]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(a, b)| a == b)
}

/// Copies a row of words. Rows are short: one or two moves beat a call to memcpy.
#[inline]
pub fn copy_words(to: &mut [u64], from: &[u64]) {
    match (to, from) {
        ([a], [x]) => *a = *x,
        ([a, b], [x, y]) => (*a, *b) = (*x, *y),
        (to, from) => to.copy_from_slice(from),
    }
}

/// Appends a row of words, as `copy_words`.
#[inline]
pub fn push_words(to: &mut Vec<u64>, from: &[u64]) {
    match from {
        [x] => to.push(*x),
        [x, y] => to.extend([*x, *y]),
        from => to.extend_from_slice(from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_keys_spread_over_low_and_high_bits() {
        let (mut low, mut high) = (std::collections::HashSet::new(), std::collections::HashSet::new());
        for key in 0..4096u64 {
            let hash = hash_words(&[key]);
            low.insert(hash & 0xFFFF);
            high.insert(hash >> 57);
        }
        assert!(low.len() > 3500, "{}", low.len());
        assert_eq!(high.len(), 128);
    }

    #[test]
    fn order_of_words_matters() {
        assert_ne!(hash_words(&[1, 2]), hash_words(&[2, 1]));
    }
}
