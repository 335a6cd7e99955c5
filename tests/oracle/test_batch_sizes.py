"""However a stream is cut into batches: the same final state and the same summed deltas."""

from collections import Counter

import everview as ev
import pytest
from everview.testing.asserts import DeltaSum, assert_view_equals
from everview.testing.oracle import bits, rows_of, table_of
from everview.testing.replay import flattened, hand_over
from everview.testing.strategies import QueryKind, scenarios
from hypothesis import given
from hypothesis import strategies as st

SIZES = (1, 7, 1000, None)


def create(db, scenario):
    """The view, by the same join tree whatever the session has seen so far (without rates, that decides)."""
    rates = scenario.rates or {t.name: 1 for t in scenario.tables}
    return db.create_view("v", scenario.query.spark, update_rates=rates)


def run(scenario, changes, size):
    """The rows of the result, the summed deltas and the size of the state after the whole stream, in batches of ``size`` changes."""
    with ev.connect() as db:
        db.execute(scenario.ddl)
        view = create(db, scenario)
        start = DeltaSum.of(view)
        total = DeltaSum.of(view)
        step = size or max(1, len(changes))
        for first in range(0, len(changes), step):
            part = changes[first : first + step]
            batch = {
                t.name: hand_over(t, rows, "multiplicity")
                for t in scenario.tables
                if (rows := [c for c in part if c.table == t.name])
            }
            total.add(db.apply(batch)["v"])
        total.check(view)
        summed = Counter(total.rows)
        summed.subtract(start.rows)
        listed = Counter(map(bits, rows_of(view.to_arrow())))
        metrics = view.metrics()
        held = (
            metrics.state_rows,
            tuple((n.name, n.rows) for n in metrics.nodes),
            tuple((o.name, o.rows) for o in metrics.operators),
        )
        return listed, {row: n for row, n in summed.items() if n}, view.count(), held


@pytest.mark.parametrize("kind", QueryKind, ids=lambda k: str(k).replace(" ", "_"))
@given(data=st.data())
def test_same_state_and_deltas(kind, oracle, data):
    scenario = data.draw(scenarios(None, kind, max_batches=3))
    changes = flattened(scenario)
    rows = {t.name: Counter() for t in scenario.tables}
    for change in changes:
        rows[change.table][change.row] += change.sign
    oracle.load(
        {t.name: t for t in scenario.tables}, {t.name: table_of(t, rows[t.name].elements()) for t in scenario.tables}
    )
    found = [run(scenario, changes, size) for size in SIZES]
    expected = oracle.run(scenario.query)
    for size, (listed, summed, count, held) in zip(SIZES, found, strict=True):
        assert count == len(expected)
        assert listed == found[0][0], f"other rows with batches of {size}"
        assert summed == found[0][1], f"other deltas with batches of {size}"
        assert held == found[0][3], f"other state with batches of {size}"
    with ev.connect() as db:  # and the view that is built from the loaded tables
        db.execute(scenario.ddl)
        for t in scenario.tables:
            db.insert(t.name, table_of(t, rows[t.name].elements()))
        late = create(db, scenario)
        assert_view_equals(late, expected)
        assert Counter(map(bits, rows_of(late.to_arrow()))) == found[0][0]
        assert late.metrics().state_rows == found[0][3][0]


GRAPH = "CREATE TABLE g (src BIGINT, dst BIGINT); CREATE TABLE w (n BIGINT PRIMARY KEY, x DECIMAL(8,2), f DOUBLE)"
LONG_QUERIES = {
    "two_hop": "SELECT a.src, a.dst, b.dst AS c FROM g a JOIN g b ON a.dst = b.src",
    "two_hop_ends": "SELECT a.src, b.dst FROM g a JOIN g b ON a.dst = b.src",
    "two_hop_ends_distinct": "SELECT DISTINCT a.src, b.dst FROM g a JOIN g b ON a.dst = b.src",
    "comb": "SELECT a.src, a.dst, w.x, v.f FROM g a JOIN w ON a.src = w.n JOIN w v ON a.dst = v.n",
    "sums": "SELECT a.src, COUNT(*) AS n, SUM(w.x) AS x, SUM(w.f) AS f, AVG(b.dst) AS d FROM g a JOIN g b ON a.dst = b.src JOIN w ON b.dst = w.n GROUP BY a.src",
    "global": "SELECT COUNT(*) AS n, SUM(v.x * w.x) AS x FROM g a JOIN w ON a.src = w.n JOIN w v ON a.dst = v.n",
    "star": "SELECT DISTINCT a.src FROM g a, g b, g c, w WHERE a.src = b.src AND b.src = c.dst AND c.dst = w.n",
}


def long_stream(count):
    """Changes of a graph with some 150 edges and of the weights of its nodes; each change is valid after those before it."""
    from decimal import Decimal
    from random import Random

    rng, edges, weights, changes = Random(7), [], {}, []
    for _ in range(count):
        if rng.random() < 0.25:
            node = rng.randrange(30)
            if node in weights:
                changes.append(("w", (node, *weights.pop(node)), -1))
            if rng.random() < 0.8:
                weights[node] = (
                    Decimal(rng.randrange(-500, 500)) / 100,
                    rng.choice([0.1, 1e16, -1e16, 3.5, float("inf")]) * rng.choice([1, 3]),
                )
                changes.append(("w", (node, *weights[node]), 1))
        elif edges and rng.random() < len(edges) / 300:
            changes.append(("g", edges.pop(rng.randrange(len(edges))), -1))
        else:
            edges.append((rng.randrange(30), rng.randrange(30)))
            changes.append(("g", edges[-1], 1))
    return changes


@pytest.fixture(scope="module")
def sized():
    """For every size of batches the sessions' views after a long stream, with their summed deltas."""
    changes = long_stream(2600)
    found = {}
    for size in SIZES:
        db = ev.connect()
        db.execute(GRAPH)
        views = {name: db.create_view(name, sql) for name, sql in LONG_QUERIES.items()}
        totals = {name: DeltaSum.of(view) for name, view in views.items()}
        step = size or len(changes)
        for first in range(0, len(changes), step):
            part = changes[first : first + step]
            batch = {}
            for table in db.tables.values():
                rows = [(row, n) for name, row, n in part if name == table.name]
                signed = [
                    dict(zip((c.name for c in table.columns), row, strict=True)) | {"_multiplicity": n}
                    for row, n in rows
                ]
                if signed:
                    batch[table.name] = signed
            for name, delta in db.apply(batch).items():
                totals[name].add(delta)
        found[size] = (db, views, totals)
    yield found
    for db, _, _ in found.values():
        db.close()


@pytest.mark.parametrize("name", LONG_QUERIES)
@pytest.mark.parametrize("size", SIZES)
def test_long_stream(sized, oracle, name, size):
    db, views, totals = sized[size]
    totals[name].check(views[name])
    assert totals[name].rows == sized[1][2][name].rows
    assert views[name].metrics().state_rows == sized[1][1][name].metrics().state_rows
    if "f)" not in LONG_QUERIES[name] and size == 1:  # sums of doubles of such sizes are rounded otherwise in DuckDB
        assert_view_equals(views[name], oracle.recompute(db, views[name].sql))
