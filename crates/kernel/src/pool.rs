//! Recycled column buffers.
//!
//! A delta is handed out as Arrow columns without copying. When the last reference to such a column is dropped, its memory comes back
//! here and serves the next delta: a stream of similar batches then neither grows vectors nor faults fresh pages in, which would
//! otherwise cost as much as the enumeration itself.

use arrow_buffer::Buffer;
use std::sync::{Arc, Mutex, PoisonError};

/// At most this many buffers are kept.
const KEPT: usize = 64;
/// The words that all of them may hold (512 MiB).
const WORDS: usize = 1 << 26;

/// A pool of word vectors.
#[derive(Clone, Debug, Default)]
pub struct WordPool {
    free: Arc<Mutex<Free>>,
}

#[derive(Debug, Default)]
struct Free {
    buffers: Vec<Vec<u64>>,
    /// The words they have room for.
    words: usize,
}

impl WordPool {
    /// An empty vector, with the memory of an earlier one where there is one.
    pub fn take(&self) -> Vec<u64> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let buffer = free.buffers.pop().unwrap_or_default();
        free.words -= buffer.capacity();
        buffer
    }

    /// Gives a vector's memory back.
    pub fn put(&self, mut words: Vec<u64>) {
        words.clear();
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if words.capacity() > 0 && free.buffers.len() < KEPT && free.words + words.capacity() <= WORDS {
            free.words += words.capacity();
            free.buffers.push(words);
        }
    }

    /// An Arrow buffer over the words; their memory comes back when the last reference to it is dropped.
    pub fn lend(&self, words: Vec<u64>) -> Buffer {
        let lent = Lent { words, pool: self.clone() };
        Buffer::from(bytes::Bytes::from_owner(lent))
    }
}

struct Lent {
    words: Vec<u64>,
    pool: WordPool,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.words)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.pool.put(std::mem::take(&mut self.words));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded() {
        let pool = WordPool::default();
        for _ in 0..10 {
            pool.put(Vec::with_capacity(WORDS / 4)); // reserved, never touched
        }
        let kept =
            std::iter::repeat_with(|| pool.take().capacity()).take_while(|&capacity| capacity > 0).sum::<usize>();
        assert!(kept <= WORDS && kept > 0, "{kept}");
        pool.put(Vec::with_capacity(10));
        assert!(pool.take().capacity() >= 10, "there is room again");
    }

    #[test]
    fn lent_memory_comes_back() {
        let pool = WordPool::default();
        let mut words = pool.take();
        words.extend(0..1000);
        let at = words.as_ptr();
        let buffer = pool.lend(words);
        let copy = buffer.clone();
        drop(buffer);
        assert_eq!(pool.take().capacity(), 0, "still referred to");
        assert_eq!(copy.len(), 8000);
        drop(copy);
        let again = pool.take();
        assert_eq!((again.as_ptr(), again.len()), (at, 0));
    }
}
