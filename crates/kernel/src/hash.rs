//! Hashing of rows of 64-bit words.
//!
//! Keys are short (one to a few words), so the hash is a folded 64x64 -> 128 bit multiplication per word: two to three
//! instructions each, with good low and high bits (hashbrown takes its control byte from the high ones).
//! Seed and multiplier are drawn anew in every process, so that nobody can choose keys that collide. Nothing that leaves the kernel
//! depends on them: rows come out in the order in which they lie, and hashes that engines share are those of `exchange`.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

struct Secret {
    seed: u64,
    multiplier: u64,
}

static SECRET: LazyLock<Secret> = LazyLock::new(|| {
    let random = RandomState::new();
    let mut draws = (0u64..).map(|draw| random.hash_one(draw));
    let seed = draws.next().expect("draws do not end");
    // odd, with bits all over: products then spread
    let mixes = |m: &u64| (24..=40).contains(&m.count_ones()) && (8..=24).contains(&(m >> 32).count_ones());
    let multiplier = draws.map(|draw| draw | 1).find(mixes).expect("draws do not end");
    Secret { seed, multiplier }
});

/// The hash of a row of words.
#[inline]
pub fn hash_words(words: &[u64]) -> u64 {
    let Secret { seed, multiplier } = *SECRET;
    words.iter().fold(seed, |hash, &word| fold_by(hash, word, multiplier))
}

/// The hash of words that are told one by one.
#[inline]
pub fn hash_each(words: impl Iterator<Item = u64>) -> u64 {
    let Secret { seed, multiplier } = *SECRET;
    words.fold(seed, |hash, word| fold_by(hash, word, multiplier))
}

/// A seed for hashes of texts.
pub fn text_seed() -> u64 {
    SECRET.seed
}

/// One step of a hash.
#[inline]
pub const fn fold_by(hash: u64, word: u64, multiplier: u64) -> u64 {
    let product = ((hash ^ word) as u128).wrapping_mul(multiplier as u128);
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
