//! FIFO windows: which rows of a table expire with a batch.
//!
//! The copies of a table's rows stand in the order in which they expire: that of arrival, or by time and then arrival. A window keeps the last
//! `n` copies, or those whose time is within a span of the largest time seen. A batch is taken as if its copies arrived one by one, so that
//! what stays does not depend on how a stream is cut into batches: its inserts join the end of the order one after another, its deletes take
//! the oldest copies of their rows, and what is then too much expires from the front. All of it is part of the same batch.
//!
//! Representation: copies of a row that arrived in a row are one *run*, whatever their number. By time all copies of a row are one run: they
//! expire together. Costs O(log n) per run that comes or goes, none per copy.

use std::collections::{BTreeMap, HashMap, VecDeque};

/// The place of a run in the order of expiry: time (0 in windows by rows), then arrival.
pub type Place = (i64, u64);

/// The time of rows that never expire by time.
const NO_TIME: i64 = i64::MAX;

/// What a window keeps.
#[derive(Clone, Copy, Debug)]
pub enum Window {
    /// The last copies, this many.
    Rows(u64),
    /// The copies within this many microseconds of the largest time in this column.
    Time {
        /// The span.
        micros: i64,
        /// The position of the time column.
        column: usize,
        /// How far the largest time may move at once.
        jump: i64,
    },
}

/// What a window has done, in copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowCounts {
    /// Came with a time that the window had left behind already: not kept.
    pub late: u64,
    /// Were pushed out.
    pub expired: u64,
    /// Deletes of rows that were not there because they have, or may have, expired.
    pub missed: u64,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    row: u32,
    copies: i64,
}

/// The copies of a table's rows in the order in which they expire.
#[derive(Debug)]
pub struct Retention {
    window: Window,
    order: BTreeMap<Place, Run>,
    of_row: HashMap<u32, VecDeque<Place>>,
    copies: i64,
    arrivals: u64,
    latest: Option<i64>,
    counts: WindowCounts,
}

/// Copies of a row that come with a batch, in the order of the batch.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The row.
    pub row: u32,
    /// How many.
    pub copies: i64,
    /// Its time, if it has one that counts.
    pub time: Option<i64>,
}

/// A batch would move the largest time further than it may at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    /// The row to blame.
    pub row: u32,
    /// The largest time before it.
    pub before: i64,
    /// Its time.
    pub time: i64,
}

/// How a batch moves copies.
#[derive(Debug, Default)]
pub struct Moves {
    leaving: Vec<(Place, Run)>,
    coming: Vec<Arrival>,
    latest: Option<i64>,
    counts: WindowCounts,
}

/// What a commit changed, so that it can be undone.
#[derive(Debug)]
pub struct RetentionLog {
    removed: Vec<(Place, Run)>,
    added: Vec<(Place, Run)>,
    arrivals: u64,
    latest: Option<i64>,
    counts: WindowCounts,
}

impl Moves {
    /// The change of multiplicity of each row concerned, rows as often as they are concerned.
    pub fn weights(&self) -> impl Iterator<Item = (u32, i64)> + '_ {
        let leaving = self.leaving.iter().map(|(_, run)| (run.row, -run.copies));
        leaving.chain(self.coming.iter().map(|arrival| (arrival.row, arrival.copies)))
    }
}

impl Retention {
    /// An empty window.
    pub fn new(window: Window) -> Self {
        Self {
            window,
            order: BTreeMap::new(),
            of_row: HashMap::new(),
            copies: 0,
            arrivals: 0,
            latest: None,
            counts: WindowCounts::default(),
        }
    }

    /// The window.
    pub fn window(&self) -> Window {
        self.window
    }

    /// The rows in order of expiry with the number of copies that arrived in a row.
    pub fn runs(&self) -> impl Iterator<Item = (u32, i64)> + '_ {
        self.order.values().map(|run| (run.row, run.copies))
    }

    /// Whether a row that is not there may have been: it has this time, or its time is not known.
    pub fn may_have_expired(&self, time: Option<i64>) -> bool {
        match (self.window, time, self.latest) {
            (Window::Time { micros, .. }, Some(time), Some(latest)) => time < latest.saturating_sub(micros),
            (Window::Time { .. }, Some(_), None) => false,
            (_, None, _) | (Window::Rows(_), ..) => self.counts.expired > 0 || self.counts.late > 0,
        }
    }

    /// Refuses arrivals that would move time too far.
    ///
    /// Times are compared in their own order, not in that of the batch: a history that comes at once is a chain of small steps.
    fn check_jumps(&self, arrivals: &[Arrival]) -> Result<(), Jump> {
        let Window::Time { jump, .. } = self.window else { return Ok(()) };
        let mut ahead: Vec<(i64, u32)> = arrivals
            .iter()
            .filter(|arrival| arrival.copies > 0)
            .filter_map(|arrival| Some((arrival.time?, arrival.row)))
            .filter(|&(time, _)| self.latest.is_none_or(|latest| time > latest))
            .collect();
        let (Some(&(least, _)), Some(&(largest, _))) = (ahead.iter().min(), ahead.iter().max()) else { return Ok(()) };
        let mut before = self.latest.unwrap_or(least);
        if largest.saturating_sub(before) <= jump {
            return Ok(());
        }
        ahead.sort_unstable();
        for (time, row) in ahead {
            if time.saturating_sub(before) > jump {
                return Err(Jump { row, before, time });
            }
            before = time;
        }
        Ok(())
    }

    /// How a batch of arrivals and deletes (copies by row, at most as many as there are) moves copies, including those it pushes out.
    pub fn moves(
        &self,
        mut arrivals: Vec<Arrival>,
        mut deletes: HashMap<u32, i64>,
        missed: u64,
    ) -> Result<Moves, Jump> {
        let mut moves = Moves { latest: self.latest, counts: self.counts, ..Moves::default() };
        moves.counts.missed += missed;
        let mut taken: HashMap<Place, i64> = HashMap::new();
        for (&row, left) in &mut deletes {
            for &place in self.of_row.get(&row).into_iter().flatten() {
                let copies = self.order[&place].copies.min(*left);
                if copies == 0 {
                    break;
                }
                *left -= copies;
                taken.insert(place, copies);
                moves.leaving.push((place, Run { row, copies }));
            }
        }
        for arrival in &mut arrivals {
            if let Some(left) = deletes.get_mut(&arrival.row) {
                let copies = arrival.copies.min(*left);
                *left -= copies;
                arrival.copies -= copies;
            }
        }
        self.check_jumps(&arrivals)?;
        match self.window {
            Window::Rows(kept) => self.push_out_by_number(kept, &mut arrivals, &taken, &mut moves),
            Window::Time { micros, .. } => self.push_out_by_time(micros, &mut arrivals, &taken, &mut moves),
        }
        arrivals.retain(|arrival| arrival.copies > 0);
        moves.coming = arrivals;
        Ok(moves)
    }

    fn push_out_by_number(&self, kept: u64, arrivals: &mut [Arrival], taken: &HashMap<Place, i64>, moves: &mut Moves) {
        let left: i64 = self.copies - taken.values().sum::<i64>();
        let after = left + arrivals.iter().map(|arrival| arrival.copies).sum::<i64>();
        let mut excess = (after - i64::try_from(kept).unwrap_or(i64::MAX)).max(0);
        for (&place, run) in &self.order {
            if excess == 0 {
                return;
            }
            let copies = (run.copies - taken.get(&place).unwrap_or(&0)).min(excess);
            excess -= copies;
            moves.push_out(place, run.row, copies);
        }
        for arrival in arrivals {
            let copies = arrival.copies.min(excess);
            excess -= copies;
            arrival.copies -= copies;
            moves.counts.expired += copies as u64;
        }
    }

    fn push_out_by_time(&self, micros: i64, arrivals: &mut [Arrival], taken: &HashMap<Place, i64>, moves: &mut Moves) {
        let mut late = vec![false; arrivals.len()];
        for (arrival, late) in arrivals.iter().zip(&mut late).filter(|(arrival, _)| arrival.copies > 0) {
            let Some(time) = arrival.time else { continue };
            moves.latest = moves.latest.max(Some(time));
            *late = moves.latest.is_some_and(|latest| time < latest.saturating_sub(micros));
        }
        let Some(cutoff) = moves.latest.map(|latest| latest.saturating_sub(micros)) else { return };
        for (&place, run) in self.order.range(..(cutoff, 0)) {
            moves.push_out(place, run.row, run.copies - taken.get(&place).unwrap_or(&0));
        }
        for (arrival, late) in arrivals.iter_mut().zip(late) {
            if arrival.time.is_some_and(|time| time < cutoff) {
                let count = if late { &mut moves.counts.late } else { &mut moves.counts.expired };
                *count += arrival.copies as u64;
                arrival.copies = 0;
            }
        }
    }

    /// The largest time seen.
    pub fn latest(&self) -> Option<i64> {
        self.latest
    }

    /// What the window has done.
    pub fn counts(&self) -> WindowCounts {
        self.counts
    }

    /// Sets what the rows do not tell, when a table is restored.
    pub fn restore(&mut self, latest: Option<i64>, counts: WindowCounts) {
        self.latest = self.latest.max(latest);
        self.counts = counts;
    }

    /// Notes a committed batch.
    pub fn commit(&mut self, moves: &Moves) -> RetentionLog {
        let mut log = RetentionLog {
            removed: moves.leaving.clone(),
            added: Vec::with_capacity(moves.coming.len()),
            arrivals: self.arrivals,
            latest: self.latest,
            counts: self.counts,
        };
        for &(place, run) in &moves.leaving {
            self.remove(place, run, true);
        }
        for &Arrival { row, copies, time } in &moves.coming {
            let place = self.place_for(row, time);
            self.add(place, Run { row, copies }, false);
            log.added.push((place, Run { row, copies }));
        }
        self.latest = moves.latest;
        self.counts = moves.counts;
        log
    }

    /// Undoes a commit.
    pub fn uncommit(&mut self, log: &RetentionLog) {
        for &(place, run) in log.added.iter().rev() {
            self.remove(place, run, false);
        }
        for &(place, run) in log.removed.iter().rev() {
            self.add(place, run, true);
        }
        (self.arrivals, self.latest, self.counts) = (log.arrivals, log.latest, log.counts);
    }

    /// Where copies that arrive now stand: with the run they continue, or at a new place.
    fn place_for(&mut self, row: u32, time: Option<i64>) -> Place {
        let continued = match self.window {
            Window::Rows(_) => self.order.last_key_value().filter(|(_, run)| run.row == row).map(|(&place, _)| place),
            Window::Time { .. } => self.of_row.get(&row).and_then(|places| places.front().copied()),
        };
        let by_rows = matches!(self.window, Window::Rows(_));
        continued.unwrap_or_else(|| {
            self.arrivals += 1;
            (if by_rows { 0 } else { time.unwrap_or(NO_TIME) }, self.arrivals)
        })
    }

    /// Adds copies to the run at a place; a new run is the row's oldest or its newest.
    fn add(&mut self, place: Place, run: Run, oldest: bool) {
        self.copies += run.copies;
        let held = self.order.entry(place).or_insert(Run { row: run.row, copies: 0 });
        if held.copies == 0 {
            let places = self.of_row.entry(run.row).or_default();
            if oldest { places.push_front(place) } else { places.push_back(place) }
        }
        held.copies += run.copies;
    }

    /// Takes copies from the run at a place, which is the row's oldest or its newest.
    fn remove(&mut self, place: Place, run: Run, oldest: bool) {
        self.copies -= run.copies;
        let held = self.order.get_mut(&place).expect("every copy is in the window");
        held.copies -= run.copies;
        if held.copies > 0 {
            return;
        }
        self.order.remove(&place);
        let places = self.of_row.get_mut(&run.row).expect("every copy is in the window");
        let gone = if oldest { places.pop_front() } else { places.pop_back() };
        debug_assert_eq!(gone, Some(place));
        if places.is_empty() {
            self.of_row.remove(&run.row);
        }
    }
}

impl Moves {
    fn push_out(&mut self, place: Place, row: u32, copies: i64) {
        if copies > 0 {
            self.counts.expired += copies as u64;
            self.leaving.push((place, Run { row, copies }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A window as a list of single copies; time by time, row by row.
    struct Model {
        window: Window,
        held: Vec<(Option<i64>, u32)>,
        latest: Option<i64>,
        counts: WindowCounts,
    }

    impl Model {
        fn expire(&mut self) {
            let before = self.held.len();
            match self.window {
                Window::Rows(kept) => drop(self.held.drain(..before.saturating_sub(kept as usize))),
                Window::Time { micros, .. } => {
                    let latest = self.latest;
                    self.held.retain(|(time, _)| time.is_none_or(|t| latest.is_none_or(|l| t >= l - micros)));
                }
            }
            self.counts.expired += (before - self.held.len()) as u64;
        }

        fn insert(&mut self, row: u32, time: Option<i64>) {
            let late = self.latest.zip(time).is_some_and(
                |(latest, time)| matches!(self.window, Window::Time { micros, .. } if time < latest - micros),
            );
            if late {
                self.counts.late += 1;
                return;
            }
            self.latest = self.latest.max(time);
            self.held.push((time, row));
        }

        fn delete(&mut self, row: u32) {
            let at = self.held.iter().position(|&(_, held)| held == row).expect("only what is there is deleted");
            self.held.remove(at);
        }

        /// In order of expiry, copies of a row together where they stand together; by time, rows of one time in the order of their number.
        fn runs(&self) -> Vec<(u32, i64)> {
            let mut copies = self.held.clone();
            if let Window::Time { .. } = self.window {
                copies.sort_by_key(|&(time, row)| (time.unwrap_or(NO_TIME), row));
            }
            let mut runs: Vec<(u32, i64)> = Vec::new();
            for (_, row) in copies {
                match runs.last_mut() {
                    Some((last, copies)) if *last == row => *copies += 1,
                    _ => runs.push((row, 1)),
                }
            }
            runs
        }
    }

    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % bound
        }
    }

    /// The time of a row: rows of one number have one time, as in a table.
    fn time_of(window: Window, row: u32) -> Option<i64> {
        matches!(window, Window::Time { .. } if !row.is_multiple_of(7)).then(|| i64::from(row))
    }

    #[test]
    fn random_streams_match_single_copies_however_they_are_cut() {
        for seed in 0..400 {
            let mut random = Random(seed);
            let window = match seed % 3 {
                0 => Window::Rows(1 + random.below(6)),
                1 => Window::Rows(1 + random.below(30)),
                _ => Window::Time { micros: random.below(12) as i64, column: 0, jump: i64::MAX },
            };
            let mut model = Model { window, held: Vec::new(), latest: None, counts: WindowCounts::default() };
            let mut retention = Retention::new(window);
            let mut base = 0;
            for _ in 0..60 {
                base += random.below(3) as u32;
                let (mut arrivals, mut deletes) = (Vec::new(), HashMap::new());
                // deletes come first and may be of what is held; what they free is free for the batch's inserts
                for _ in 0..random.below(3) {
                    if model.held.is_empty() {
                        break;
                    }
                    let row = model.held[random.below(model.held.len() as u64) as usize].1;
                    model.delete(row);
                    *deletes.entry(row).or_insert(0) += 1;
                }
                for _ in 0..random.below(6) {
                    let row = base.saturating_sub(random.below(14) as u32) + random.below(4) as u32;
                    let (copies, time) = (1 + random.below(3) as i64, time_of(window, row));
                    arrivals.push(Arrival { row, copies, time });
                    (0..copies).for_each(|_| model.insert(row, time));
                }
                model.expire();
                let before = format!("{retention:?}");
                let moves = retention.moves(arrivals, deletes, 0).unwrap();
                let log = retention.commit(&moves);
                if random.below(4) == 0 {
                    retention.uncommit(&log);
                    assert_eq!(sorted(&format!("{retention:?}")), sorted(&before));
                    retention.commit(&moves);
                }
                let mut runs: Vec<(u32, i64)> = retention.runs().collect();
                runs.dedup_by(|next, run| {
                    let same = next.0 == run.0; // what stood between has left
                    run.1 += if same { next.1 } else { 0 };
                    same
                });
                let due = |&(row, _): &(u32, i64)| time_of(window, row).unwrap_or(NO_TIME);
                if let Window::Time { .. } = window {
                    assert!(runs.is_sorted_by_key(due), "seed {seed}");
                    runs.sort_by_key(|run| (due(run), run.0));
                }
                assert_eq!(runs, model.runs(), "seed {seed}");
                assert_eq!(retention.copies, model.held.len() as i64);
                assert_eq!((retention.latest, retention.counts), (model.latest, model.counts), "seed {seed}");
            }
        }
    }

    /// Hash maps print in any order.
    fn sorted(text: &str) -> Vec<char> {
        let mut characters: Vec<char> = text.chars().collect();
        characters.sort_unstable();
        characters
    }

    #[test]
    fn numbers_of_copies_cost_nothing() {
        for window in [Window::Rows(3), Window::Rows(1 << 61), Window::Time { micros: 5, column: 0, jump: 100 }] {
            let mut retention = Retention::new(window);
            for _ in 0..3 {
                let arrivals = vec![Arrival { row: 1, copies: 1 << 60, time: Some(7) }];
                let moves = retention.moves(arrivals, HashMap::new(), 0).unwrap();
                retention.commit(&moves);
            }
            assert_eq!(retention.runs().count(), 1);
        }
    }

    #[test]
    fn time_jumps_are_found_along_the_chain() {
        let arrivals = |times: &[i64]| -> Vec<Arrival> {
            let arrival = |(row, &time): (usize, &i64)| Arrival { row: row as u32, copies: 1, time: Some(time) };
            times.iter().enumerate().map(arrival).collect()
        };
        let mut retention = Retention::new(Window::Time { micros: 5, column: 0, jump: 10 });
        assert_eq!(retention.check_jumps(&arrivals(&[1000])), Ok(()));
        assert_eq!(retention.check_jumps(&arrivals(&[1020, 1000, 1010])), Ok(()));
        assert_eq!(retention.check_jumps(&arrivals(&[1000, 1011])), Err(Jump { row: 1, before: 1000, time: 1011 }));
        retention.restore(Some(50), WindowCounts::default());
        assert_eq!(retention.check_jumps(&arrivals(&[60, -1000])), Ok(()));
        assert_eq!(retention.check_jumps(&arrivals(&[i64::MAX, 55])), Err(Jump { row: 0, before: 55, time: i64::MAX }));
    }
}
