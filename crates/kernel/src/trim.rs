//! Giving memory back: slabs whose last places are free are cut, buffers that have become too large are made smaller.
//!
//! Rows keep their places, so only what is free at the end of a slab can be given back; all of it, when everything was deleted.

/// Slabs and buffers with fewer places are left as they are.
const SMALL: usize = 1024;

/// Remembers when a slab was last trimmed, so that attempts cost no more than the deletions between them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trim {
    /// The number of taken places then.
    tried: Option<usize>,
}

impl Trim {
    /// Whether a slab with so many places, so many of them taken, is worth trimming: less than a quarter is taken, and since the last
    /// attempt half of what was taken has gone. The caller trims it then.
    pub(crate) fn is_due(&mut self, taken: usize, places: usize) -> bool {
        if taken * 4 > places || places < SMALL {
            if taken * 2 > places {
                self.tried = None;
            }
            return false;
        }
        if self.tried.is_some_and(|tried| taken * 2 > tried) {
            return false;
        }
        self.tried = Some(taken);
        true
    }
}

/// Makes a buffer smaller that is much larger than what it holds.
pub(crate) fn trim_buffer<T>(buffer: &mut Vec<T>) {
    trim_scratch(buffer, buffer.len());
}

/// Makes an emptied buffer smaller that is much larger than what it last held: batches of one size find their buffers as they left them.
pub(crate) fn trim_scratch<T>(buffer: &mut Vec<T>, used: usize) {
    if buffer.capacity() > SMALL && used.saturating_mul(4) < buffer.capacity() {
        buffer.shrink_to(used * 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_paid_for_by_deletions() {
        let mut trim = Trim::default();
        let due = (0..100_000).rev().filter(|&taken| trim.is_due(taken, 100_000)).count();
        assert!((10..20).contains(&due), "{due}");
        assert!(!trim.is_due(100, SMALL - 1), "small slabs stay");
    }

    #[test]
    fn buffers_in_use_stay() {
        let mut buffer: Vec<u64> = Vec::with_capacity(10_000);
        buffer.resize(5_000, 0);
        trim_buffer(&mut buffer);
        assert_eq!(buffer.capacity(), 10_000);
        buffer.truncate(10);
        trim_buffer(&mut buffer);
        assert!(buffer.capacity() < 100);
    }
}
