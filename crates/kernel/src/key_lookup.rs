//! The rows of a table that a condition picks by primary key.
//!
//! A query that is read once need not look at all rows of a table whose condition has `key = constant` for every column of the key: the
//! rest of the condition is evaluated on the one row there may be. Cost: a probe, whatever the size of the table.

use crate::core_stage::{AtomSource, CoreStage};
use crate::graph::View;
use crate::interner::Interner;
use crate::scan::AtomScan;
use crate::table::{BaseTable, Staged};
use arrow_array::ArrayRef;

impl View {
    /// The rows of a table that can pass the condition of the only atom that reads it, if that picks them by key.
    pub(crate) fn picked_rows(&self, table: usize, base: &BaseTable, interner: &mut Interner) -> Option<Staged> {
        let mut scans = self.cores().flat_map(CoreStage::sources).filter_map(|source| match source {
            AtomSource::Table(scan) if scan.table == table => Some(scan),
            _ => None,
        });
        let (Some(scan), None) = (scans.next(), scans.next()) else { return None };
        let (_, rows) = base.rows_with_keys(&key_of(scan, base)?, interner).ok()?;
        Some(base.some(rows))
    }
}

/// The key that a condition asks for, in the order of the key's columns.
fn key_of(scan: &AtomScan, base: &BaseTable) -> Option<Vec<ArrayRef>> {
    let found = scan.filter()?.equalities();
    let constant = |&column: &usize| {
        let wanted = base.columns()[column].data_type;
        found
            .iter()
            .find(|(at, _, given)| *at == column && given.is_same_storage(wanted))
            .map(|(_, value, _)| value.clone())
    };
    let key: Vec<ArrayRef> = base.key().iter().map(constant).collect::<Option<_>>()?;
    (!key.is_empty()).then_some(key)
}
