//! Work counters. Complexity claims are tested on these, not on clocks.

/// What a tree, or an operator that counts its work, has done since it was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Rows inserted into, deleted from or changed in relation nodes.
    pub updates: u64,
    /// Look-ups in hash indexes and ordered maps.
    pub probes: u64,
    /// Parent rows visited because the status of a hub entry below them flipped.
    pub status_changes: u64,
    /// Parent rows visited because a value below them changed.
    pub annotation_changes: u64,
    /// Rows marked or unmarked as live.
    pub live_changes: u64,
    /// Rows visited while enumerating results and deltas, or to find where a LIMIT cuts.
    pub steps: u64,
    /// Result and delta rows emitted by the tree.
    pub emitted: u64,
}

impl Counters {
    /// The work of maintenance: everything but enumeration.
    pub fn maintenance(&self) -> u64 {
        self.updates + self.probes + self.status_changes + self.annotation_changes
    }
}

impl std::ops::Add for Counters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            updates: self.updates + other.updates,
            probes: self.probes + other.probes,
            status_changes: self.status_changes + other.status_changes,
            annotation_changes: self.annotation_changes + other.annotation_changes,
            live_changes: self.live_changes + other.live_changes,
            steps: self.steps + other.steps,
            emitted: self.emitted + other.emitted,
        }
    }
}
