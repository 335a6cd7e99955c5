//! Runs a dataflow over a stream: a batch is a time, and its output is read before the next batch goes in.

use std::cell::Cell;
use std::process;
use std::rc::Rc;
use std::time::Instant;

use differential_dataflow::VecCollection;
use stream::{Arguments, Deltas, batches};
use timely::dataflow::operators::probe::Handle;
use timely::worker::Worker;

/// The number of a batch.
pub type Time = u64;
/// Rows with multiplicities that change over time.
pub type Rows<'scope, Row> = VecCollection<'scope, Time, Row, isize>;

/// Where the output of a dataflow goes: its rows are summed up, its progress is watched.
#[derive(Clone, Default)]
pub struct Output {
    deltas: Rc<Cell<Deltas>>,
    progress: Handle<Time>,
}

impl Output {
    /// Reads all changes of `rows`, which come net per batch.
    pub fn read<Row: Clone + 'static, const COLUMNS: usize>(
        &self,
        rows: Rows<'_, Row>,
        columns: impl Fn(&Row) -> [i64; COLUMNS] + 'static,
    ) {
        let total = Rc::clone(&self.deltas);
        rows.inspect_container(move |event| {
            if let Ok((_, changes)) = event {
                let mut deltas = total.get();
                for (row, _, multiplicity) in changes.iter() {
                    deltas.read(columns(row), *multiplicity as i64);
                }
                total.set(deltas);
            }
        })
        .probe_with(&self.progress);
    }
}

/// Feeds all batches and prints what came out; `feed` hands a batch to the inputs and closes its time.
pub fn drive<Change>(
    worker: &mut Worker,
    arguments: &Arguments,
    changes: &[Change],
    output: &Output,
    mut feed: impl FnMut(&[Change], Time),
) -> ! {
    let start = Instant::now();
    for (batch, next) in batches(changes, arguments.batches).zip(1..) {
        feed(batch, next);
        worker.step_while(|| output.progress.less_than(&next));
    }
    output.deltas.get().print(start.elapsed().as_secs_f64());
    process::exit(0) // without taking the dataflow apart
}
