"""Deltas that leave in pieces while the kernel goes on."""

import threading
from collections import Counter

import pyarrow as pa
import pytest
from local_pipeline import LocalPipeline, add_up, batch_for

from everview.errors import ChangeError
from everview.schema.datatype import BIGINT
from everview.schema.table import Column, Table
from everview.shards.beside import beside
from everview.shards.returning import Returning
from everview.shards.view_engine import ViewEngine

EDGE = Table("g", (Column("src", BIGINT, nullable=False), Column("dst", BIGINT, nullable=False)))
TWO_HOPS = "SELECT x.src AS a, x.dst AS b, y.dst AS c FROM g x JOIN g y ON x.dst = y.src"


def engine(sql, threads=1):
    return ViewEngine(LocalPipeline(sql, [EDGE], 1).pipeline.hops[0].spec, threads)


def batches(sections):
    """The batches of the one export."""
    for number, found in sections:
        assert number == 0
        yield from found


def rows(edges, weight=1):
    return {0: batch_for(EDGE, [(a, b, weight) for a, b in edges])}


def test_pieces_come_in_order_and_while_the_work_goes_on():
    seen, may_go_on = [], threading.Event()

    def work(hand_over):
        hand_over(1)
        assert may_go_on.wait(30)
        hand_over(2)

    for piece in beside(work):
        seen.append(piece)
        may_go_on.set()
    assert seen == [1, 2]


def test_what_the_work_raises_comes_after_its_pieces():
    def work(hand_over):
        hand_over("kept")
        raise ValueError("then it failed")

    pieces = beside(work)
    assert next(pieces) == "kept"
    with pytest.raises(ValueError, match="then it failed"):
        next(pieces)


def test_a_reader_that_goes_away_waits_for_the_end_of_the_work():
    done = []

    def work(hand_over):
        for i in range(100):
            hand_over(i)
        done.append(True)

    pieces = beside(work)
    assert next(pieces) == 0
    pieces.close()
    assert done == [True]


def hub(fan_in, fan_out):
    return [(2 * i, -1) for i in range(fan_in)] + [(-1, 2 * i + 1) for i in range(fan_out)]


@pytest.mark.parametrize("threads", [1, 3])
def test_a_large_delta_comes_in_pieces_that_sum_to_it(threads):
    made = engine(TWO_HOPS, threads)
    for weight in (1, -1, 1):
        pieces = list(batches(made.apply(rows(hub(900, 400), weight))))
        assert len(pieces) > 1
        assert sum(p.num_rows for p in pieces) == 360_000
        assert {m for p in pieces for m in p.column(3).unique().to_pylist()} == {weight}
        got = pa.Table.from_batches(pieces).sort_by([("a", "ascending"), ("c", "ascending")])
        assert got.column("a").to_pylist() == [2 * (i // 400) for i in range(360_000)]
        assert got.column("c").to_pylist() == [2 * (i % 400) + 1 for i in range(360_000)]
    assert sum(b.num_rows for b in made.result(0)) == 360_000


def test_the_seconds_of_a_commit_are_told():
    applied = Returning(engine(TWO_HOPS).apply(rows(hub(300, 300))))
    assert sum(b.num_rows for b in batches(applied)) == 90_000
    assert applied.returned > 0


def test_nothing_leaves_of_a_batch_that_is_refused():
    made = engine(TWO_HOPS)
    list(made.apply(rows(hub(900, 400))))
    bad = batch_for(EDGE, [(a, b, -1) for a, b in hub(900, 400)] + [(5, 5, -1)])
    pieces = made.apply({0: bad})
    with pytest.raises(ChangeError, match="5"):
        next(pieces)
    assert sum(b.num_rows for b in made.result(0)) == 360_000


def test_duplicates_and_computed_columns_that_can_fail_wait_for_the_end():
    doubled = engine(TWO_HOPS)
    assert len(list(doubled.apply(rows(hub(900, 400) * 2)))) == 1
    fallible = engine("SELECT x.src + y.dst AS s, x.dst AS b FROM g x JOIN g y ON x.dst = y.src")
    assert len(list(fallible.apply(rows(hub(900, 400))))) == 1


def test_rows_with_computed_columns_leave_early_too():
    made = engine("SELECT x.src AS a, x.dst AS b, y.dst AS c, x.src < y.dst AS less FROM g x JOIN g y ON x.dst = y.src")
    pieces = list(batches(made.apply(rows(hub(900, 400)))))
    assert len(pieces) > 1
    expected = sum(2 * a < 2 * c + 1 for a in range(900) for c in range(400))
    assert sum(p.column("less").true_count for p in pieces) == expected


@pytest.mark.parametrize(
    "sql",
    [TWO_HOPS, "SELECT x.src AS a, y.dst AS c, COUNT(*) AS n FROM g x JOIN g y ON x.dst = y.src GROUP BY x.src, y.dst"],
)
def test_threads_change_no_delta_and_no_counter(sql):
    """More witnesses than a thread gets at a time, in batches that insert, delete and do both."""
    path = [(i, i + 1) for i in range(12_000)]
    shift = [(i, i + 2) for i in range(12_000)]
    given = [
        [(a, b, 1) for a, b in path],
        [(a, b, 1) for a, b in shift] + [(a, b, -1) for a, b in path[::3]],
        [(a, b, -1) for a, b in shift],
    ]
    engines = [engine(sql, threads) for threads in (1, 2, 5)]
    totals = [Counter() for _ in engines]
    for batch in given:
        deltas = [add_up(Counter(), batches(made.apply({0: batch_for(EDGE, batch)}))) for made in engines]
        assert deltas[0]
        assert deltas[1] == deltas[0]
        assert deltas[2] == deltas[0]
        for total, delta in zip(totals, deltas, strict=True):
            for row, weight in delta.items():
                total[row] += weight
    results = [add_up(Counter(), made.result(0)) for made in engines]
    assert all(+total == result for total, result in zip(totals, results, strict=True))
    counted = [made._kernel.metrics(*made._views()) for made in engines]
    assert counted[1] == counted[0]
    assert counted[2] == counted[0]


def test_what_a_receiver_of_pieces_raises_is_raised_and_the_batch_is_applied():
    made = engine(TWO_HOPS)

    def fail(piece):
        raise RuntimeError(f"{piece[1][0].num_rows > 0}: no room")

    made._views()
    with pytest.raises(RuntimeError, match="True: no room"):
        made._commit(rows(hub(900, 400)), fail)
    assert sum(b.num_rows for b in made.result(0)) == 360_000
