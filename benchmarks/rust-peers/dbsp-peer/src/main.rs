//! The benchmark's queries on dbsp, with one worker, as everview too computes in one thread; dbsp merges its stored batches in threads beside it.

mod drive;
mod graph;
mod orders;

use stream::Arguments;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let arguments = Arguments::parse();
    match arguments.query.as_str() {
        "three_hop" => graph::three_hop(&arguments),
        "three_hop_projected" => graph::three_hop_projected(&arguments),
        "three_hop_projected_early" => graph::three_hop_projected_early(&arguments),
        "star" => graph::star(&arguments),
        "revenue" => orders::revenue(&arguments),
        other => panic!("there is no query {other}"),
    }
}
