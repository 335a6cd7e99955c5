"""FIFO streams cost O(1) amortised on trees of height 2 (CROWN, Lemma 6.9), whatever the rows and the window.

On such a tree no lifespan of a row below a row r lies within that of r, so each side below r is lost at most once and
gained at most once while r is there: at most two visits of r per side, and one row per projection above.
"""

import pytest
from meter import Meter, fifo, ragged_fifo, random_arrivals

GRAPH = {"g": "src dst"}
PATH = {"r1": "x1 x2", "r2": "x2 x3", "r3": "x3 x4", "r4": "x4 x5"}
HOP_3 = "FROM g g1, g g2, g g3 WHERE g1.dst = g2.src AND g2.dst = g3.src"
HOP_4 = "FROM g g1, g g2, g g3, g g4 WHERE g1.dst = g2.src AND g2.dst = g3.src AND g3.dst = g4.src"
QUERIES = {
    "3-hop": (GRAPH, f"SELECT g1.src AS a, g2.src AS b, g3.src AS c, g3.dst AS d {HOP_3}"),
    "3-hop distinct": (GRAPH, f"SELECT DISTINCT g2.src AS b, g3.src AS c {HOP_3}"),
    "4-hop projected": (GRAPH, f"SELECT g2.src AS b, g3.src AS c, g3.dst AS d {HOP_4}"),
    "4-hop projected distinct": (GRAPH, f"SELECT DISTINCT g2.src AS b, g3.src AS c, g3.dst AS d {HOP_4}"),
    "4-hop full": (GRAPH, f"SELECT g1.src AS a, g2.src AS b, g3.src AS c, g3.dst AS d, g4.dst AS e {HOP_4}"),
    "figure 1": (
        PATH,
        "SELECT DISTINCT r1.x1, r1.x2, r2.x3, r3.x4 FROM r1, r2, r3, r4"
        " WHERE r1.x2 = r2.x2 AND r2.x3 = r3.x3 AND r3.x4 = r4.x4",
    ),
    "not connex, distinct": ({"r": "a b", "s": "b"}, "SELECT DISTINCT r.a FROM r, s WHERE r.b = s.b"),
    "projections": (
        {"r": "a b z", "s": "b c", "t": "a d"},
        "SELECT DISTINCT r.a, r.b, s.c, t.d FROM r, s, t WHERE r.b = s.b AND r.a = t.a",
    ),
    "projection below a relation": (
        {"r": "x a", "u": "x", "s": "a b z"},
        "SELECT DISTINCT r.x, r.a, s.b FROM r, u, s WHERE r.x = u.x AND r.a = s.a",
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_sliding_windows(name):
    tables, sql = QUERIES[name]
    widths = {t: len(c.split()) for t, c in tables.items()}
    measured = []
    for window in (64, 256, 1024):
        for domain in (2, round(window**0.5)):
            meter = Meter(tables, sql)
            assert meter.height == 2
            stream = list(fifo(random_arrivals(widths, 2 * window, domain, window), window))
            work = meter.run(stream, batch=1 if window < 1024 else 5, deltas=False)
            assert work.annotation_changes == 0
            measured.append(work.status_changes / work.changes)
            assert meter.view.metrics().state_rows == 0
    assert max(measured) <= 4
    assert meter.guarantee("update, FIFO stream")[0] == "O(1) amortised"


@pytest.mark.seeds(8)
@pytest.mark.parametrize("name", QUERIES)
def test_adversarial_windows(name, seed):
    """Lifespans of all lengths, few keys, long runs of one table: the bound is that of the proof."""
    tables, sql = QUERIES[name]
    widths = {t: len(c.split()) for t, c in tables.items()}
    arrivals = random_arrivals(widths, 400, (1, 2, 3, 8)[seed % 4], seed, sticky=(0, 90)[seed % 2])
    meter = Meter(tables, sql)
    work = meter.run(ragged_fifo(arrivals, seed), deltas=False)
    assert work.status_changes <= 2 * meter.nodes * work.updates
    assert meter.view.metrics().state_rows == 0


@pytest.mark.parametrize("name", ["3-hop distinct", "4-hop projected distinct", "not connex, distinct", "projections"])
def test_with_deltas_live_marks_follow_the_delta(name):
    """Also with deltas on: marking is paid by the rows of the delta, of which it changes at most one per connex node."""
    tables, sql = QUERIES[name]
    widths = {t: len(c.split()) for t, c in tables.items()}
    for window in (32, 128):
        meter = Meter(tables, sql)
        stream = list(fifo(random_arrivals(widths, 3 * window, round(window**0.5), window), window))
        work = meter.run(stream)
        assert work.status_changes <= 4 * work.changes
        assert work.live_changes <= meter.nodes * work.rows_emitted + 2 * work.changes


def theorem_6_2(n):
    """The FIFO stream in the proof of Theorem 6.2 with a matrix and vectors of ones: all lifespans overlap in order."""
    tables = {"r1": "x1", "r2": "x1 x2", "r3": "x2 x3", "r4": "x3 x4", "r5": "x4"}
    ids = range(n)
    stream = [(1, t, (i,)) for i in ids for t in ("r1", "r5")]
    stream += [(1, "r3", (i, j)) for i in ids for j in ids]
    for i in ids:
        stream += [(1, "r2", (i, j)) for j in ids] + [(1, "r4", (j, i)) for j in ids]
        stream += [(-1, "r1", (i,)), (-1, "r5", (i,))]
    stream += [(-1, "r3", (i, j)) for i in ids for j in ids]
    for i in ids:
        stream += [(-1, "r2", (i, j)) for j in ids] + [(-1, "r4", (j, i)) for j in ids]
    arrivals = [c[1:] for c in stream if c[0] > 0]
    assert [c[1:] for c in stream if c[0] < 0] == arrivals  # first in, first out
    return tables, stream


def test_height_3_is_not_constant():
    """The query of Theorem 6.2 on the stream of its proof: work per update grows linearly, and explain does not promise O(1)."""
    sql = (
        "SELECT r1.x1, r2.x2, r3.x3, r4.x4 FROM r1, r2, r3, r4, r5"
        " WHERE r1.x1 = r2.x1 AND r2.x2 = r3.x2 AND r3.x3 = r4.x3 AND r4.x4 = r5.x4"
    )
    measured = []
    for n in (4, 8, 16):
        tables, stream = theorem_6_2(n)
        meter = Meter(tables, sql)
        assert meter.height == 3
        work = meter.run(stream, deltas=False)
        measured.append(work.status_changes / work.changes / n)
    assert 0.2 <= min(measured) and max(measured) <= 1
    assert meter.guarantee("update, FIFO stream")[0] == "O(lambda_T) amortised"
