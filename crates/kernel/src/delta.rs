//! Where the delta of a batch goes while it is enumerated.
//!
//! A sink per thread collects it. Where nothing can refuse the batch any more, an outlet may take it piece by piece while the batch is still
//! being applied: the reader then works beside the kernel, and no more than a few pieces need be in memory.

use crate::enumerate::Sink;

/// The sinks of a batch's delta, and its outlet if there is one.
pub struct Delta<'a> {
    pub(crate) sink: &'a mut Sink,
    others: &'a mut [Sink],
    outlet: Option<Outlet<'a>>,
    /// Rows that have left.
    left: u64,
    share: usize,
}

/// Witnesses of a thread at a time; between, pieces can leave. To start a thread takes some hundredths of the time for so many.
const SHARE: usize = 2048;

/// Takes pieces of a delta.
pub struct Outlet<'a> {
    /// Rows that are worth a piece; what belongs together can make it larger.
    pub rows: usize,
    /// Takes all rows out of a sink.
    pub take: &'a mut dyn FnMut(&mut Sink),
}

impl<'a> Delta<'a> {
    /// A delta that is in the sink when the batch has been applied, but for the pieces that leave before by the outlet. `others` are for more
    /// threads, and are empty then.
    pub fn new(sink: &'a mut Sink, others: &'a mut [Sink], outlet: Option<Outlet<'a>>) -> Self {
        Self { sink, others, outlet, left: 0, share: SHARE }
    }

    /// Deals witnesses out in smaller or larger shares.
    #[must_use]
    pub fn in_shares_of(self, share: usize) -> Self {
        Self { share, ..self }
    }

    /// Whether annotations are 1 everywhere but in the witness; without `early`, everything is kept to the end.
    pub(crate) fn begin(&mut self, unit: bool, early: bool) {
        self.sink.set_unit(unit);
        self.others.iter_mut().for_each(|sink| sink.set_unit(unit));
        if !early {
            self.outlet = None;
        } else if self.outlet.is_some() {
            // what leaves needs no room
            self.sink.set_room(None);
            self.others.iter_mut().for_each(|sink| sink.set_room(None));
        }
    }

    /// How many witnesses a thread gets at a time.
    pub(crate) fn share(&self) -> usize {
        self.share
    }

    /// Rows that are worth a piece; no number is if none may leave.
    pub(crate) fn piece(&self) -> usize {
        self.outlet.as_ref().map_or(usize::MAX, |outlet| outlet.rows)
    }

    /// Whether rows were lost because there was no room for them.
    pub(crate) fn is_full(&self) -> bool {
        self.sink.is_full() || self.others.iter().any(Sink::is_full)
    }

    /// Whether the results of a witness are not complete yet.
    pub(crate) fn is_midway(&self) -> bool {
        self.sink.is_midway() || self.others.iter().any(Sink::is_midway)
    }

    /// How many threads there are sinks for.
    pub(crate) fn threads(&self) -> usize {
        1 + self.others.len()
    }

    /// The sinks: that of the calling thread, and those of others.
    pub(crate) fn sinks(&mut self) -> (&mut Sink, &mut [Sink]) {
        (self.sink, self.others)
    }

    /// Rows emitted so far.
    pub(crate) fn rows(&self) -> u64 {
        self.left + self.sink.len() as u64 + self.others.iter().map(|sink| sink.len() as u64).sum::<u64>()
    }

    /// Lets go what is worth a piece.
    pub(crate) fn release(&mut self) {
        let Some(outlet) = &mut self.outlet else { return };
        for sink in std::iter::once(&mut *self.sink).chain(self.others.iter_mut()) {
            if sink.len() >= outlet.rows {
                self.left += sink.len() as u64;
                (outlet.take)(sink);
                sink.blocks.forget();
            }
        }
    }

    /// The tree is about to change: nothing more may be copied from what has been emitted.
    pub(crate) fn forget_blocks(&mut self) {
        self.sink.blocks.forget();
        self.others.iter_mut().for_each(|sink| sink.blocks.forget());
    }

    /// Brings all that is left together.
    pub(crate) fn gather(&mut self) {
        self.others.iter_mut().for_each(|other| self.sink.append(other));
    }
}
