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

    /// The copies that a staged batch pushes out: (row, number). `time` gives a row's time.
    pub fn expired(&self, staged: &Staged, time: impl Fn(u32) -> Option<i64>) -> Vec<(u32, i64)> {
        let mut leaving: HashMap<u32, i64> = HashMap::new();
        for (&row, &weight) in staged.rows.iter().zip(&staged.weights) {
            if weight < 0 {
                leaving.insert(row, -weight);
            }
        }
        let mut stays = |row: u32| match leaving.get_mut(&row) {
            Some(left) if *left > 0 => {
                *left -= 1;
                false
            }
            _ => true,
        };
        let coming = staged.rows.iter().zip(&staged.weights).filter(|&(_, &weight)| weight > 0);
        let mut expired: HashMap<u32, i64> = HashMap::new();
        let mut in_order = Vec::new();
        let mut expire = |row: u32, count: i64| {
            let sum = expired.entry(row).or_insert_with(|| (in_order.push(row), 0).1);
            *sum += count;
        };
        match self.window {
            Window::Rows(kept) => {
                let after = self.order.len() as i64 + staged.weights.iter().sum::<i64>();
                let mut excess = after - kept as i64;
                for &row in self.order.values() {
                    if excess <= 0 {
                        break;
                    }
                    if stays(row) {
                        expire(row, 1);
                        excess -= 1;
                    }
                }
                for (&row, &weight) in coming {
                    if excess > 0 {
                        expire(row, excess.min(weight));
                        excess -= weight;
                    }
                }
            }
            Window::Time { micros, .. } => {
                let latest = coming.clone().filter_map(|(&row, _)| time(row)).chain(self.latest).max();
                let Some(cutoff) = latest.map(|latest| latest.saturating_sub(micros)) else { return Vec::new() };
                for (_, &row) in self.order.range(..(cutoff, 0)) {
                    if stays(row) {
                        expire(row, 1);
                    }
                }
                for (&row, &weight) in coming {
                    if time(row).is_some_and(|t| t < cutoff) {
                        expire(row, weight);
                    }
                }
            }
        }
        in_order.into_iter().map(|row| (row, expired[&row])).collect()
    }

    /// Notes a committed batch. `time` gives a row's time; rows without one never expire by time.
    pub fn commit(&mut self, staged: &Staged, time: impl Fn(u32) -> Option<i64>) -> RetentionLog {
        let mut log = RetentionLog { latest_before: self.latest, ..RetentionLog::default() };
        for (&row, &weight) in staged.rows.iter().zip(&staged.weights) {
            let at = time(row);
            for _ in weight..0 {
                let copies = self.of_row.get_mut(&row).expect("every copy is in the window");
                let place = copies.pop_front().expect("every copy is in the window");
                if copies.is_empty() {
                    self.of_row.remove(&row);
                }
                self.order.remove(&place);
                log.removed.push((row, place));
            }
            for _ in 0..weight {
                let place =
                    (at.unwrap_or(if matches!(self.window, Window::Rows(_)) { 0 } else { i64::MAX }), self.arrivals);
                self.arrivals += 1;
                self.order.insert(place, row);
                self.of_row.entry(row).or_default().push_back(place);
                log.added.push((row, place));
            }
            if weight > 0 {
                self.latest = self.latest.max(at);
            }
        }
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
