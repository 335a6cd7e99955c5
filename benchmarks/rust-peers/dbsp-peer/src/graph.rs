//! The queries over the graph's edges.

use dbsp::typed_batch::{IndexedZSetReader, SpineSnapshot};
use dbsp::utils::{Tup2, Tup4};
use dbsp::{DBSPHandle, OrdZSet, OutputHandle, RootCircuit, Runtime, Stream, ZSetHandle};
use stream::{Arguments, Deltas, EdgeChange, read_edges};

use crate::drive::{config, drive};

/// (source, target).
type Edge = Tup2<i64, i64>;
type Edges = Stream<RootCircuit, OrdZSet<Edge>>;

/// (a, b, c, d) of g(a, b), g(b, c), g(c, d) with d % 10 = 0. Plan: the last two edges are joined first, the filter before that; the
/// pairs are stored by b and joined with the first edge.
pub fn three_hop(arguments: &Arguments) {
    let (circuit, (input, output)) = Runtime::init_circuit(config(), |circuit| {
        let (edges, input) = circuit.add_input_zset::<Edge>();
        let by_target = edges.map_index(|Tup2(source, target)| (*target, *source));
        let paths = by_target
            .join_index(&last_edges(&edges).map_index(|Tup2(c, d)| (*c, *d)), |c, b, d| Some((*b, Tup2(*c, *d))))
            .join(&by_target, |b, Tup2(c, d), a| Tup4(*a, *b, *c, *d));
        Ok((input, paths.accumulate_output()))
    })
    .expect("a circuit");
    run(arguments, circuit, input, |deltas| {
        for (Tup4(a, b, c, d), (), multiplicity) in output.concat().iter() {
            deltas.read([a, b, c, d], multiplicity);
        }
    });
}

/// DISTINCT (b, c) of these paths. Plan: that of the paths, whose second join keeps b and c, then `distinct`.
pub fn three_hop_projected(arguments: &Arguments) {
    let (circuit, (input, output)) = Runtime::init_circuit(config(), |circuit| {
        let (edges, input) = circuit.add_input_zset::<Edge>();
        let by_target = edges.map_index(|Tup2(source, target)| (*target, *source));
        let pairs = by_target
            .join_index(&last_edges(&edges).map_index(|Tup2(c, d)| (*c, *d)), |c, b, d| Some((*b, Tup2(*c, *d))))
            .join(&by_target, |b, Tup2(c, _), _| Tup2(*b, *c));
        Ok((input, pairs.distinct().accumulate_output()))
    })
    .expect("a circuit");
    run(arguments, circuit, input, |deltas| read_pairs(&output, deltas));
}

/// The same, by a plan that drops a and d before the joins and leaves the counting to multiplicities.
pub fn three_hop_projected_early(arguments: &Arguments) {
    let (circuit, (input, output)) = Runtime::init_circuit(config(), |circuit| {
        let (edges, input) = circuit.add_input_zset::<Edge>();
        let pairs = edges
            .map_index(|Tup2(b, c)| (*c, *b))
            .join_index(&last_edges(&edges).map_index(|Tup2(c, _)| (*c, ())), |c, b, ()| Some((*b, *c)))
            .join(&edges.map_index(|Tup2(_, b)| (*b, ())), |b, c, ()| Tup2(*b, *c));
        Ok((input, pairs.distinct().accumulate_output()))
    })
    .expect("a circuit");
    run(arguments, circuit, input, |deltas| read_pairs(&output, deltas));
}

/// (source, count) of the 4-way self-join on the source. Plan: three binary joins of the sources, which multiply multiplicities.
pub fn star(arguments: &Arguments) {
    let (circuit, (input, output)) = Runtime::init_circuit(config(), |circuit| {
        let (edges, input) = circuit.add_input_zset::<Edge>();
        let sources = edges.map_index(|Tup2(source, _)| (*source, ()));
        let four = sources
            .join_index(&sources, |source, (), ()| Some((*source, ())))
            .join_index(&sources, |source, (), ()| Some((*source, ())))
            .join_index(&sources, |source, (), ()| Some((*source, ())));
        Ok((input, four.weighted_count().accumulate_output()))
    })
    .expect("a circuit");
    run(arguments, circuit, input, |deltas| {
        for (source, count, multiplicity) in output.concat().iter() {
            deltas.read([source, count], multiplicity);
        }
    });
}

fn last_edges(edges: &Edges) -> Edges {
    edges.filter(|Tup2(_, target)| target % 10 == 0)
}

fn read_pairs(output: &OutputHandle<SpineSnapshot<OrdZSet<Edge>>>, deltas: &mut Deltas) {
    for (Tup2(b, c), (), multiplicity) in output.concat().iter() {
        deltas.read([b, c], multiplicity);
    }
}

fn run(arguments: &Arguments, circuit: DBSPHandle, input: ZSetHandle<Edge>, read: impl Fn(&mut Deltas)) {
    let feed = |batch: &[EdgeChange]| {
        let mut rows = batch.iter().map(|edge| Tup2(Tup2(edge.source, edge.target), edge.multiplicity)).collect();
        input.append(&mut rows);
    };
    drive(arguments, &read_edges(&arguments.file), circuit, feed, read)
}
