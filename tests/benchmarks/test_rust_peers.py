"""On tiny streams, everview, the floor and the peers in Rust agree."""

import pytest
from benchmarks import generate, orders
from benchmarks.bench_peers import (
    KEEP_VIEWS,
    KEYED,
    Target,
    graph_contestants,
    revenue_contestants,
    table,
)
from benchmarks.contest import Evidence, Mismatch, Run
from benchmarks.generate import GraphSpec
from benchmarks.orders import OrdersSpec
from benchmarks.peers.rust_peers import DBSP, DIFFERENTIAL, RustPeer, missing
from benchmarks.run import agree, compete
from benchmarks.workloads import WORKLOADS

TINY = GraphSpec(edges=400, vertices=60, skew=0.6, seed=1)
TINY_ORDERS = OrdersSpec(orders=2_000, seed=1)
BATCHES = 10

built = pytest.mark.skipif(bool(missing()), reason=f"not built (make bench-peers): {', '.join(missing())}")


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    monkeypatch.setattr(generate, "DATA", tmp_path)


def checked(field):
    compete(field, repeat=1, peer_seconds=10)
    evidence = agree(field)
    assert evidence["everview"].rows > 0
    return evidence


@built
@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=lambda workload: workload.name)
def test_the_peers_agree_on_graph_queries(workload):
    evidence = checked(graph_contestants(workload.query, workload.sql, TINY, BATCHES))
    assert evidence[DIFFERENTIAL] == evidence[DBSP] == evidence["everview"]


@built
def test_the_peers_agree_on_revenue():
    evidence = checked(revenue_contestants(TINY_ORDERS, BATCHES))
    assert evidence[DIFFERENTIAL] == evidence[DBSP] == evidence["everview"]


def test_everview_and_the_floor_agree_on_revenue():
    field = [one for one in revenue_contestants(TINY_ORDERS, BATCHES) if not isinstance(one, RustPeer)]
    evidence = checked(field)
    assert evidence["everview"] == evidence[KEYED] == evidence[KEEP_VIEWS]


def test_runs_of_a_peer_that_differ_are_a_mismatch():
    peer = RustPeer(DBSP, "revenue", orders.load(TINY_ORDERS), BATCHES)
    with pytest.raises(Mismatch):
        peer.evidence()
    peer._runs = {Evidence(1, 2, 3), Evidence(1, 2, 4)}
    with pytest.raises(Mismatch):
        peer.evidence()


def test_targets_compare_the_best_runs():
    runs = {"everview": [Run(2, 1), Run(1, 1)], DBSP: [Run(3, 1), Run(6, 1)]}
    assert Target(DBSP, 3).ratio(runs) == 3
    shown = table("title", runs, dict.fromkeys(runs, Evidence(1, 2, 3)))
    assert list(shown.columns[3].cells) == ["1.00", "3.00"]
