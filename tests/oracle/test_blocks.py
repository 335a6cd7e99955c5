"""Views of several blocks against DuckDB and the interpreter: results, deltas, counts, late views, views over views."""

from random import Random

import everview as ev
import pytest
from everview.rules import RULES
from everview.sql import parse_statements
from everview.sql.bind import bind_query
from everview.testing.asserts import DeltaSum, assert_view_equals
from everview.testing.interpreter import interpret
from everview.testing.oracle import difference, repeated, table_of
from everview.testing.sql_blocks import TABLES, VALUES, blocks
from hypothesis import event, given, settings

DDL = ";\n".join(f"CREATE TABLE {name} ({', '.join(f'{c} INT' for c in columns)})" for name, columns in TABLES.items())
SCHEMA = {s.table.name: s.table for s in parse_statements(DDL)}


def changes_of(batch):
    found = {}
    for table, row, multiplicity in batch:
        found.setdefault(table, []).append(dict(zip(TABLES[table], row, strict=True), _multiplicity=multiplicity))
    return found


@settings(max_examples=60)
@given(case=blocks())
def test_views_of_several_blocks(case, oracle):
    with ev.connect() as db:
        db.execute(DDL)
        view = db.create_view("v", case.sql)
        empty = view.metrics().state_rows
        over = db.create_view("over", "SELECT c0, COUNT(*) AS n FROM v GROUP BY c0")
        sums = {name: DeltaSum.of(db.view(name)) for name in ("v", "over")}
        event(f"{len(view.plan.cores)} cores, {len(view.plan.view.stages)} stages")
        for batch in case.batches:
            deltas = db.apply(changes_of(batch))
            for name, total in sums.items():
                total.add(deltas[name])
                total.check(db.view(name))
            expected = oracle.recompute(db, case.sql)
            assert_view_equals(view, expected)
            assert_view_equals(over, oracle.run(f"SELECT c0, COUNT(*) AS n FROM ({case.sql}) AS v GROUP BY c0"))
            assert_view_equals(db.create_view("late", case.sql, replace=True), expected)
        assert view.metrics().state_rows == empty
        for form in ("text", "json", "dot", "svg", "html"):
            assert view.explain(form)


@settings(max_examples=40)
@given(case=blocks())
def test_no_rule_changes_what_a_plan_means(case, oracle):
    rows = {name: [] for name in TABLES}
    for batch in case.batches[:-1]:
        for table, row, multiplicity in batch:
            if multiplicity > 0:
                rows[table].append(row)
            else:
                rows[table].remove(row)
    arrow = {name: table_of(SCHEMA[name], rows[name]) for name in TABLES}
    oracle.load(SCHEMA, arrow)
    expected = oracle.run(case.sql)
    node = bind_query(case.sql, SCHEMA).node
    assert difference(interpret(node, arrow), expected) == ([], [])
    for rule in RULES:
        node = rule(node)
        assert difference(interpret(node, arrow), expected) == ([], []), rule.__name__


@pytest.mark.seeds(20)
def test_ties_are_broken_as_the_plan_says(seed):
    """ORDER BY leaves most rows equal: the interpreter, which sorts, and the kernel take the same ones."""
    rng = Random(seed)
    way = rng.choice(("", " DESC", " NULLS LAST", " DESC NULLS FIRST"))
    columns = rng.choice(("a, b, c", "c, a", "b + c AS d, a"))
    sql = f"SELECT {columns} FROM s ORDER BY {rng.choice('abc')} % 2{way} LIMIT {rng.randint(1, 5)} OFFSET {rng.randint(0, 2)}"
    node = bind_query(sql, SCHEMA).node
    rows = []
    with ev.connect() as db:
        db.execute(DDL)
        view = db.create_view("v", sql)
        for _ in range(12):
            gone = [rows.pop(rng.randrange(len(rows))) for _ in range(min(len(rows), rng.randint(0, 3)))]
            come = [tuple(rng.choice(VALUES) for _ in range(3)) for _ in range(rng.randint(0, 4))]
            rows += come
            db.apply(changes_of([*(("s", r, -1) for r in gone), *(("s", r, 1) for r in come)]))
            expected = interpret(node, {"s": table_of(SCHEMA["s"], rows)})
            assert [tuple(row.values()) for row in view.to_arrow().to_pylist()] == expected


def test_a_refused_batch_changes_no_stage(oracle):
    sql = "SELECT d.a, 10 / d.n AS q FROM (SELECT a, SUM(b) AS n FROM r GROUP BY a) d JOIN u ON d.a = u.a"
    with ev.connect() as db:
        db.execute(DDL)
        view = db.create_view("v", sql)
        total = DeltaSum.of(view)
        total.add(db.apply({"r": [(1, 2), (2, 5)], "u": [(1,), (2,)]})["v"])
        before = view.to_arrow().to_pylist()
        try:
            db.apply({"r": [(1, -2)]})
        except ev.ChangeError as error:
            assert error.code == "DIVIDE_BY_ZERO"
        assert view.to_arrow().to_pylist() == before
        total.add(db.apply({"r": [(1, 3)]})["v"])
        total.check(view)
        assert repeated(db.table_rows("r")).num_rows == 3
