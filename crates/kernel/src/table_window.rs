//! Tables that are windows: what a staged batch pushes out, and what it may refer to though it is gone.

use crate::display;
use crate::error::KernelError;
use crate::retention::{Arrival, Jump, Retention, Window, WindowCounts};
use crate::table::{BaseTable, Staged};
use everview_expr::DataType;
use std::collections::HashMap;

impl BaseTable {
    /// The largest time seen and what the window has done; `None` for a table that keeps everything.
    pub fn window_state(&self) -> Option<(Option<i64>, WindowCounts)> {
        self.retention.as_ref().map(|retention| (retention.latest(), retention.counts()))
    }

    /// Sets what the rows do not tell, when a table is restored.
    pub fn restore_window(&mut self, latest: Option<i64>, counts: WindowCounts) {
        if let Some(retention) = &mut self.retention {
            retention.restore(latest, counts);
        }
    }

    /// Makes the net changes of a staged batch those after expiry; they may be 0. Refuses a batch that would move time too far.
    pub(crate) fn expire(&self, staged: &mut Staged) -> Result<(), KernelError> {
        let Some(retention) = &self.retention else { return Ok(()) };
        let arrivals: Vec<Arrival> = staged
            .arrivals
            .iter()
            .map(|&(row, copies)| Arrival { row, copies, time: self.time(retention, row) })
            .collect();
        let mut deletes: HashMap<u32, i64> =
            staged.rows.iter().zip(&staged.weights).map(|(&row, &weight)| (row, -weight)).collect();
        for arrival in &arrivals {
            *deletes.entry(arrival.row).or_default() += arrival.copies;
        }
        deletes.retain(|_, copies| *copies > 0);
        let moves =
            retention.moves(arrivals, deletes, staged.missed).map_err(|jump| self.jumps(retention, &jump, staged))?;
        let mut position: HashMap<u32, usize> = staged.rows.iter().enumerate().map(|(at, &row)| (row, at)).collect();
        staged.weights.fill(0);
        for (row, weight) in moves.weights() {
            let at = *position.entry(row).or_insert_with(|| {
                staged.rows.push(row);
                staged.weights.push(0);
                staged.sources.push(0);
                staged.rows.len() - 1
            });
            staged.weights[at] += weight;
        }
        staged.moves = moves;
        Ok(())
    }

    /// Whether a row that is not there may have expired.
    pub(crate) fn may_have_expired(&self, row: u32) -> bool {
        let expired = |retention: &Retention| match retention.window() {
            // rows without a time never expire
            Window::Time { .. } => self.time(retention, row).is_some_and(|t| retention.may_have_expired(Some(t))),
            Window::Rows(_) => retention.may_have_expired(None),
        };
        self.retention.as_ref().is_some_and(expired)
    }

    /// Whether a row of which only the key is known, and which is not there, may have expired.
    pub(crate) fn key_may_have_expired(&self) -> bool {
        self.retention.as_ref().is_some_and(|retention| retention.may_have_expired(None))
    }

    /// The time of a row in microseconds, for windows by time.
    fn time(&self, retention: &Retention, row: u32) -> Option<i64> {
        let Window::Time { column, .. } = retention.window() else { return None };
        if self.is_null(self.row(row), column) {
            return None;
        }
        let spec = &self.columns()[column];
        let value = self.row(row)[spec.offset] as i64;
        Some(if spec.data_type == DataType::Date { value.saturating_mul(86_400_000_000) } else { value })
    }

    fn jumps(&self, retention: &Retention, jump: &Jump, staged: &Staged) -> KernelError {
        let source = staged.rows.iter().position(|&row| row == jump.row).map_or(0, |at| staged.sources[at]);
        let Window::Time { column, jump: most, .. } = retention.window() else { unreachable!("only time jumps") };
        let message = format!(
            "column `{}` jumps from {} to {}: time moves by at most {} at once, because rows that are too old for the window leave it",
            self.columns()[column].name,
            display::timestamp(jump.before),
            display::timestamp(jump.time),
            display::duration(most),
        );
        KernelError::in_row("TIME_JUMP", self.name(), source as usize, message).with_hint(
            "correct the time, or declare the table with a larger max_jump, such as max_jump = INTERVAL 400 DAYS",
        )
    }
}
