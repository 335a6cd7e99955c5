"""On tiny streams, everview and all peers of the benchmarks agree; the streams are what their description says."""

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from benchmarks import generate
from benchmarks.checksum import MASK, row_checksum, table_checksum
from benchmarks.contest import Evidence, Mismatch
from benchmarks.generate import GraphSpec, fifo
from benchmarks.peers.floor import build
from benchmarks.run import agree, compete, contestants
from benchmarks.workloads import WORKLOADS

TINY = [GraphSpec(edges=400, vertices=60, skew=0.6, seed=1), GraphSpec(edges=300, vertices=40, skew=0.9, seed=2)]


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    monkeypatch.setattr(generate, "DATA", tmp_path)


@pytest.mark.parametrize("spec", TINY, ids=lambda spec: spec.name)
@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=lambda workload: workload.name)
def test_contestants_agree(workload, spec):
    field = contestants(workload, generate.load(spec), batches=10)
    assert ("C++ floor" in {one.name for one in field}) == (build() is not None)
    compete(field, repeat=1, peer_seconds=10)
    evidence = agree(field)
    assert evidence["everview"].rows > 0
    assert evidence["everview"].net_delta_rows == evidence["DuckDB diff"].net_delta_rows > 0


def test_a_difference_is_a_mismatch():
    class Fixed:
        def __init__(self, name, evidence):
            self.name = name
            self.evidence = lambda: evidence

    proof = Evidence(rows=3, checksum=5, net_delta_rows=7)
    assert agree([Fixed("a", proof), Fixed("b", dataclasses.replace(proof, net_delta_rows=None))])
    for changed in ({"rows": 4}, {"checksum": 6}, {"net_delta_rows": 8}):
        with pytest.raises(Mismatch):
            agree([Fixed("a", proof), Fixed("b", dataclasses.replace(proof, **changed))])


def test_streams_are_fifo_windows_of_distinct_edges():
    spec = TINY[0]
    stream = generate.load(spec)
    window = int(spec.edges * spec.window)
    inserted = list(zip(stream.src[stream.op > 0], stream.dst[stream.op > 0], strict=True))
    deleted = list(zip(stream.src[stream.op < 0], stream.dst[stream.op < 0], strict=True))
    assert len(set(inserted)) == len(inserted) == spec.edges
    assert deleted == inserted[: spec.edges - window]
    assert all(a != b for a, b in inserted)
    assert stream.op.cumsum().max() == window + 1
    assert np.array_equal(generate.load(spec).src, generate.generate(spec).src)


def test_fifo():
    stream = fifo("s", np.array([1, 2, 3]), np.array([4, 5, 6]), window=1)
    assert stream.events() == [(1, 1, 4), (1, 2, 5), (-1, 1, 4), (1, 3, 6), (-1, 2, 5)]


def test_checksums_of_rows_and_tables_agree_and_are_linear():
    rows = [(1, -2), (3, 4), (3, 4)]
    a, b = zip(*rows, strict=True)
    total = sum(map(row_checksum, rows)) & MASK
    assert table_checksum(pa.table({"a": a, "b": b})) == total
    assert table_checksum(pa.table({"a": [3, 1], "b": [4, -2], "_multiplicity": [2, 1]})) == total
    assert table_checksum(pa.table({"a": [3, 3], "b": [4, 4], "_multiplicity": [2, -2]})) == 0
    assert row_checksum((1, 2)) != row_checksum((2, 1))
