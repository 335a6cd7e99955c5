//! Runs a circuit over a stream: a transaction per batch, after which its output, net, is read.

use std::process;
use std::time::Instant;

use dbsp::DBSPHandle;
use dbsp::circuit::CircuitConfig;
use stream::{Arguments, Deltas, batches};

/// One worker; a transaction is a single step, since the default of many small steps is slower.
pub fn config() -> CircuitConfig {
    CircuitConfig::with_workers(1).with_splitter_chunk_size_records(1_000_000)
}

/// Feeds all batches and prints what came out; `feed` hands a batch to the inputs, `read` reads the output of a transaction.
pub fn drive<Change>(
    arguments: &Arguments,
    changes: &[Change],
    mut circuit: DBSPHandle,
    feed: impl Fn(&[Change]),
    read: impl Fn(&mut Deltas),
) -> ! {
    let mut deltas = Deltas::default();
    let start = Instant::now();
    for batch in batches(changes, arguments.batches) {
        feed(batch);
        circuit.transaction().expect("a transaction");
        read(&mut deltas);
    }
    deltas.print(start.elapsed().as_secs_f64());
    process::exit(0) // without taking the circuit apart
}
