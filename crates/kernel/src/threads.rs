//! Work shared out to threads that live as long as it takes.

/// Does the parts of a work, the first here and each of the others in a thread of its own; returns what they come to, in order.
pub(crate) fn side_by_side<P: Send, R: Send>(
    parts: impl IntoIterator<Item = P>,
    work: impl Fn(P) -> R + Sync,
) -> Vec<R> {
    let mut parts = parts.into_iter();
    let Some(first) = parts.next() else { return Vec::new() };
    std::thread::scope(|scope| {
        let work = &work;
        let started: Vec<_> = parts.map(|part| scope.spawn(move || work(part))).collect();
        let mut done = vec![work(first)];
        done.extend(started.into_iter().map(|t| t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))));
        done
    })
}

#[cfg(test)]
mod tests {
    use super::side_by_side;

    #[test]
    fn parts_come_back_in_order() {
        assert_eq!(side_by_side(0..5, |part| part * part), [0, 1, 4, 9, 16]);
        assert!(side_by_side(0..0, |part: i32| part).is_empty());
    }

    #[test]
    #[should_panic(expected = "the third fails")]
    fn a_panic_is_passed_on() {
        side_by_side(0..4, |part| assert!(part != 2, "the third fails"));
    }
}
