//! FIFO windows: which rows of a table expire with a batch.
//!
//! Every copy of a row has an order: its arrival, or its time and then its arrival. A window keeps the last `n` copies, or those whose time
//! is within a span of the largest time seen. What a batch pushes out is deleted by the same batch. Explicit deletes take a row's oldest
//! copies. Costs O(log n) per copy that comes or goes.

use crate::table::Staged;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// The place of a copy in the order of expiry: time (0 without one), then arrival.
pub type Place = (i64, u64);

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
    },
}

/// The copies of a table's rows in the order in which they expire.
#[derive(Debug)]
pub struct Retention {
    window: Window,
    order: BTreeMap<Place, u32>,
    of_row: HashMap<u32, VecDeque<Place>>,
    arrivals: u64,
    latest: Option<i64>,
}

/// How the copies of a row change: the oldest leave, new ones come. A row that comes again as it expires does both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The row.
    pub row: u32,
    /// Copies that leave, oldest first.
    pub leave: i64,
    /// Copies that come.
    pub come: i64,
}

/// What a commit changed, so that it can be undone.
#[derive(Debug, Default)]
pub struct RetentionLog {
    removed: Vec<(u32, Place)>,
    added: Vec<(u32, Place)>,
    latest_before: Option<i64>,
}

impl Retention {
    /// An empty window.
    pub fn new(window: Window) -> Self {
        Self { window, order: BTreeMap::new(), of_row: HashMap::new(), arrivals: 0, latest: None }
    }

    /// The window.
    pub fn window(&self) -> Window {
        self.window
    }

    /// The rows in order of expiry, one per copy.
    pub fn rows(&self) -> impl Iterator<Item = u32> + '_ {
        self.order.values().copied()
    }

    /// How a staged batch moves copies, including those it pushes out. `time` gives a row's time.
    pub fn moves(&self, staged: &Staged, time: impl Fn(u32) -> Option<i64>) -> Vec<Move> {
        let mut moves: Vec<Move> = Vec::with_capacity(staged.rows.len());
        let mut position: HashMap<u32, usize> = HashMap::with_capacity(staged.rows.len());
        for (&row, &weight) in staged.rows.iter().zip(&staged.weights) {
            position.insert(row, moves.len());
            moves.push(Move { row, leave: (-weight).max(0), come: weight.max(0) });
        }
        let coming = moves.len();
        let mut deleted: Vec<i64> = moves.iter().map(|m| m.leave).collect();
        let mut push_out = |row: u32, moves: &mut Vec<Move>| {
            let at = *position.entry(row).or_insert_with(|| {
                moves.push(Move { row, leave: 0, come: 0 });
                moves.len() - 1
            });
            // the oldest copies are those that explicit deletes take
            match deleted.get_mut(at) {
                Some(left) if *left > 0 => {
                    *left -= 1;
                    false
                }
                _ => {
                    moves[at].leave += 1;
                    true
                }
            }
        };
        match self.window {
            Window::Rows(kept) => {
                let after = self.order.len() as i64 + staged.weights.iter().sum::<i64>();
                let mut excess = after - kept as i64;
                for &row in self.order.values() {
                    if excess <= 0 {
                        break;
                    }
                    excess -= i64::from(push_out(row, &mut moves));
                }
                for arrived in &mut moves[..coming] {
                    let late = excess.min(arrived.come).max(0);
                    arrived.come -= late;
                    excess -= late;
                }
            }
            Window::Time { micros, .. } => {
                let times = moves.iter().filter(|m| m.come > 0).filter_map(|m| time(m.row));
                let Some(latest) = times.chain(self.latest).max() else { return moves };
                let cutoff = latest.saturating_sub(micros);
                for (_, &row) in self.order.range(..(cutoff, 0)) {
                    push_out(row, &mut moves);
                }
                for arrived in moves[..coming].iter_mut().filter(|m| time(m.row).is_some_and(|t| t < cutoff)) {
                    arrived.come = 0;
                }
            }
        }
        moves
    }

    /// The largest time seen.
    pub fn latest(&self) -> Option<i64> {
        self.latest
    }

    /// Sets the largest time seen, when a table is restored.
    pub fn set_latest(&mut self, latest: Option<i64>) {
        self.latest = self.latest.max(latest);
    }

    /// Notes a committed batch. `time` gives a row's time; rows without one never expire by time.
    pub fn commit(&mut self, moves: &[Move], latest: Option<i64>, time: impl Fn(u32) -> Option<i64>) -> RetentionLog {
        let mut log = RetentionLog { latest_before: self.latest, ..RetentionLog::default() };
        for &Move { row, leave, .. } in moves {
            for _ in 0..leave {
                let copies = self.of_row.get_mut(&row).expect("every copy is in the window");
                let place = copies.pop_front().expect("every copy is in the window");
                if copies.is_empty() {
                    self.of_row.remove(&row);
                }
                self.order.remove(&place);
                log.removed.push((row, place));
            }
        }
        let without_time = if matches!(self.window, Window::Rows(_)) { 0 } else { i64::MAX };
        for &Move { row, come, .. } in moves {
            for _ in 0..come {
                let place = (time(row).unwrap_or(without_time), self.arrivals);
                self.arrivals += 1;
                self.order.insert(place, row);
                self.of_row.entry(row).or_default().push_back(place);
                log.added.push((row, place));
            }
        }
        self.set_latest(latest);
        log
    }

    /// Undoes a commit.
    pub fn uncommit(&mut self, log: RetentionLog) {
        for (row, place) in log.added.into_iter().rev() {
            self.order.remove(&place);
            if let Some(copies) = self.of_row.get_mut(&row) {
                copies.pop_back();
                if copies.is_empty() {
                    self.of_row.remove(&row);
                }
            }
        }
        for (row, place) in log.removed.into_iter().rev() {
            self.order.insert(place, row);
            self.of_row.entry(row).or_default().push_front(place);
        }
        self.latest = log.latest_before;
    }
}
