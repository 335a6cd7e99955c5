"""Relational plans, interpreted: what is bound means what DuckDB computes, and no rule changes what a plan means."""

import pyarrow as pa
import pytest
from everview.rules import RULES
from everview.schema.arrow import arrow_schema, arrow_type
from everview.sql import parse_statements
from everview.sql.bind import bind_query
from everview.testing.interpreter import interpret
from everview.testing.oracle import Sql, converted, difference, table_of
from everview.testing.sql_shapes import cases
from everview.testing.strategies import QueryKind, scenarios
from hypothesis import given, settings
from hypothesis import strategies as st


def check(sql, tables, rows, expected):
    """``tables`` and ``rows`` by lower-case name."""
    query = bind_query(sql, tables)
    node = query.node
    schema = pa.schema([(name, arrow_type(c.type)) for name, c in zip(query.names, node.columns, strict=True)])
    expected = converted(expected, schema)
    assert difference(interpret(node, rows), expected) == ([], []), "bound"
    for rule in RULES:
        node = rule(node)
        assert [c.type for c in node.columns] == [c.type for c in query.node.columns], rule.__name__
        assert difference(interpret(node, rows), expected) == ([], []), rule.__name__


def held(rows, batch):
    """Rows after a batch of changes."""
    for row, multiplicity in batch:
        if multiplicity > 0:
            rows += [row] * multiplicity
        for _ in range(-multiplicity):
            rows.remove(row)


@settings(max_examples=40)
@given(case=cases())
def test_texts(case, oracle):
    tables = [s.table for t in case.tables for s in parse_statements(t.ddl)]
    plain = {f"s{n}": table.plain(n) for n, table in enumerate(case.tables)}
    rows = [[] for _ in tables]
    for batch in case.batches:
        for n, coming, leaving in batch:
            held(rows[n], [(r, -1) for r in leaving] + [(r, 1) for r in coming])
    arrow = [table_of(t, r) for t, r in zip(tables, rows, strict=True)]
    oracle.load(
        plain, {name: a.rename_columns(arrow_schema(plain[name]).names) for name, a in zip(plain, arrow, strict=True)}
    )
    named = {t.name.lower(): t for t in tables}
    check(case.text, named, dict(zip(named, arrow, strict=True)), oracle.run(Sql(case.text, case.duckdb)))


@pytest.mark.parametrize("kind", QueryKind, ids=lambda k: str(k).replace(" ", "_"))
@given(data=st.data())
def test_expressions_and_aggregates(kind, oracle, data):
    scenario = data.draw(scenarios(None, kind, max_batches=1, max_atoms=3))
    tables = {t.name.lower(): t for t in scenario.tables}
    rows = {name: [] for name in tables}
    for batch in scenario.batches:
        for change in batch.changes:
            if change.type == "insert":
                rows[change.table.lower()].append(change.row)
    arrow = {name: table_of(table, rows[name][:6]) for name, table in tables.items()}
    oracle.load(tables, arrow)
    check(scenario.query.spark, tables, arrow, oracle.run(scenario.query))
