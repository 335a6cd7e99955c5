"""Views created on tables of many rows: built in another order than the rows came in, they are what views are that saw every change."""

import everview as ev
import pyarrow as pa
import pytest

ROWS = 40_000
QUERIES = {
    "join": "SELECT r.a, r.b, s.t FROM r JOIN s ON r.b = s.b",
    "chain": "SELECT x.a, y.a AS z, s.t FROM r x JOIN r y ON x.b = y.a JOIN s ON y.b = s.b",
    "grouped": "SELECT s.t, SUM(r.a) AS a, COUNT(*) AS n FROM r JOIN s ON r.b = s.b GROUP BY s.t",
    "distinct": "SELECT DISTINCT s.t FROM r JOIN s ON r.b = s.b WHERE r.a > 100",
    "exists": "SELECT r.a FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.b = r.b)",
    "forbids": "SELECT r.a FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.b = r.b)",
    "optional": "SELECT r.a, s.t FROM r LEFT JOIN s ON r.b = s.b",
    "alone": "SELECT b, COUNT(*) AS n FROM r GROUP BY b",
}


def batches(sign=1):
    numbers = range(ROWS)
    r = pa.table({"a": list(numbers), "b": [n * 7919 % 9973 for n in numbers], "_multiplicity": [sign] * ROWS})
    texts = [None if n % 11 == 0 else f"text {n % 500}" for n in numbers]
    s = pa.table(
        {
            "b": [2 * (n * 31 % 39989) for n in numbers],
            "t": texts,
            "_multiplicity": [sign * (1 + n % 2) for n in numbers],
        }
    )
    return {"r": r, "s": s}


def rows(table):
    order = [(name, "ascending") for name in table.column_names]
    return table.combine_chunks().sort_by(order)


@pytest.mark.parametrize("name", QUERIES)
def test_a_view_on_many_rows(name):
    with ev.connect() as db:
        db.execute("CREATE TABLE r (a BIGINT, b BIGINT); CREATE TABLE s (b BIGINT, t STRING)")
        early = db.create_view("early", QUERIES[name])
        empty = early.metrics().state_rows
        db.apply(batches(), deltas=False)
        late = db.create_view("late", QUERIES[name], update_rates={"r": 1, "s": 1})
        assert late.count() == early.count() > 0
        assert rows(late.to_arrow()).equals(rows(early.to_arrow()))
        assert late.metrics().state_rows == early.metrics().state_rows
        change = {"s": [{"b": 5, "t": "new", "_multiplicity": 1}], "r": [{"a": 0, "b": 0, "_multiplicity": -1}]}
        deltas = db.apply(change)
        assert rows(deltas["late"]).equals(rows(deltas["early"]))
        db.apply({"s": [{"b": 5, "t": "new", "_multiplicity": -1}], "r": [{"a": 0, "b": 0, "_multiplicity": 1}]})
        db.apply(batches(-1), deltas=False)
        assert late.count() == 0
        assert late.metrics().state_rows == early.metrics().state_rows == empty
