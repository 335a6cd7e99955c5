//! The checksum of `checksum.py`: the sum, mod 2^64, of a mixing hash of each row times its multiplicity.

/// The hash of one row.
pub fn row_checksum<const COLUMNS: usize>(row: [i64; COLUMNS]) -> u64 {
    let mut hash = 0x243F_6A88_85A3_08D3_u64;
    for value in row {
        hash = (hash ^ value as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        hash ^= hash >> 32;
    }
    hash
}

/// All delta rows read so far, summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deltas {
    /// Delta rows, those of a multiplicity of two counted twice.
    pub net: u64,
    /// Rows of the result: the sum of the multiplicities.
    pub rows: i64,
    /// The checksum of the result.
    pub checksum: u64,
}

impl Deltas {
    /// Reads one delta row.
    #[inline]
    pub fn read<const COLUMNS: usize>(&mut self, row: [i64; COLUMNS], multiplicity: i64) {
        self.net += multiplicity.unsigned_abs();
        self.rows += multiplicity;
        self.checksum = self.checksum.wrapping_add(row_checksum(row).wrapping_mul(multiplicity as u64));
    }

    /// Prints what a contestant reads: the seconds of the whole stream, net delta rows, rows and checksum of the final result.
    pub fn print(&self, seconds: f64) {
        let Deltas { net, rows, checksum } = self;
        println!(r#"{{"seconds": {seconds:.6}, "deltas": {net}, "rows": {rows}, "checksum": {checksum}}}"#);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deltas_that_cancel_leave_nothing_but_their_number() {
        let mut deltas = Deltas::default();
        deltas.read([1, 2], 1);
        deltas.read([1, 2], 2);
        deltas.read([1, 2], -3);
        assert_eq!(deltas, Deltas { net: 6, rows: 0, checksum: 0 });
        assert_ne!(row_checksum([1, 2]), row_checksum([2, 1]));
    }
}
