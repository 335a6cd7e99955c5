//! The queries over the graph's edges.

use differential_dataflow::input::Input;
use differential_dataflow::operators::{CountTotal, ThresholdTotal};
use stream::{Arguments, EdgeChange, read_edges};

use crate::drive::{Output, Rows, Time, drive};

/// (source, target).
type Edge = (i64, i64);

/// (a, b, c, d) of g(a, b), g(b, c), g(c, d) with d % 10 = 0. Plan: see [`paths`]; what comes and goes within a batch is consolidated.
pub fn three_hop(arguments: Arguments) {
    run(arguments, |edges, output| output.read(paths(edges).consolidate(), |&(a, b, c, d)| [a, b, c, d]));
}

/// DISTINCT (b, c) of these paths. Plan: that of the paths, then a threshold on the count of (b, c).
pub fn three_hop_projected(arguments: Arguments) {
    run(arguments, |edges, output| {
        let pairs = paths(edges).map(|(_, b, c, _)| (b, c));
        output.read(distinct(pairs), |&(b, c)| [b, c]);
    });
}

/// The same, by a plan that drops a and d before the joins and leaves the counting to multiplicities.
pub fn three_hop_projected_early(arguments: Arguments) {
    run(arguments, |edges, output| {
        let first = edges.clone().map(|(_, b)| b).arrange_by_self();
        let last = last_edges(edges.clone()).map(|(c, _)| c).arrange_by_self();
        let middle = edges.map(|(b, c)| (c, b)).arrange_by_key();
        let onward = middle.join_core(last, |&c, &b, ()| Some((b, c))).arrange_by_key();
        output.read(distinct(onward.join_core(first, |&b, &c, ()| Some((b, c)))), |&(b, c)| [b, c]);
    });
}

/// (source, count) of the 4-way self-join on the source. Plan: three binary joins of the sources, which multiply multiplicities.
pub fn star(arguments: Arguments) {
    run(arguments, |edges, output| {
        let sources = edges.map(|(source, _)| source).arrange_by_self();
        let two = sources.clone().join_core(sources.clone(), |&source, (), ()| Some(source)).arrange_by_self();
        let three = two.join_core(sources.clone(), |&source, (), ()| Some(source)).arrange_by_self();
        let four = three.join_core(sources, |&source, (), ()| Some(source));
        output.read(four.count_total(), |&(source, count)| [source, count as i64]);
    });
}

/// Plan: the last two edges are joined first, the filter before that; the pairs are stored by b and joined with the first edge. The edges
/// by target serve both joins.
fn paths<'scope>(edges: Rows<'scope, Edge>) -> Rows<'scope, (i64, i64, i64, i64)> {
    let last = last_edges(edges.clone()).arrange_by_key();
    let by_target = edges.map(|(source, target)| (target, source)).arrange_by_key();
    let onward = by_target.clone().join_core(last, |&c, &b, &d| Some((b, (c, d)))).arrange_by_key();
    onward.join_core(by_target, |&b, &(c, d), &a| Some((a, b, c, d)))
}

fn last_edges<'scope>(edges: Rows<'scope, Edge>) -> Rows<'scope, Edge> {
    edges.filter(|(_, target)| target % 10 == 0)
}

fn distinct<'scope>(pairs: Rows<'scope, Edge>) -> Rows<'scope, Edge> {
    pairs.threshold_total(|_, count| isize::from(*count > 0))
}

fn run(arguments: Arguments, query: impl Fn(Rows<'_, Edge>, &Output) + Send + Sync + 'static) {
    timely::execute(timely::Config::thread(), move |worker| {
        let output = Output::default();
        let mut input = worker.dataflow::<Time, _, _>(|scope| {
            let (input, edges) = scope.new_collection::<Edge, isize>();
            query(edges, &output);
            input
        });
        let feed = |batch: &[EdgeChange], next| {
            for edge in batch {
                input.update((edge.source, edge.target), edge.multiplicity as isize);
            }
            input.advance_to(next);
            input.flush();
        };
        drive(worker, &arguments, &read_edges(&arguments.file), &output, feed);
    })
    .expect("a worker");
}
