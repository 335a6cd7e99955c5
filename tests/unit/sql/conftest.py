"""Tables and small printers for the SQL tests."""

from collections.abc import Callable, Mapping

import pytest

from everview.query.expression import Call, ColumnRef, Expression, Literal
from everview.query.logical_view import Core, Distinct, Filter, GroupAggregate, LogicalView, Map
from everview.schema.table import Table
from everview.lower import lower_query
from everview.sql import CreateTable, parse_statements

DDL = """
CREATE TABLE g (src BIGINT, dst BIGINT);
CREATE TABLE t (id BIGINT PRIMARY KEY, x INT, y INT, s STRING, c CHAR(3), d DATE, ts TIMESTAMP,
                p DECIMAL(12,2), q DECIMAL(5,2), f DOUBLE);
CREATE TABLE u (id BIGINT PRIMARY KEY, tid INT, x BIGINT NOT NULL, s STRING, c5 CHAR(5), p DECIMAL(12,2),
                n INT NOT NULL, f DOUBLE);
CREATE TABLE customer (c_custkey BIGINT PRIMARY KEY, c_name VARCHAR(25), c_address VARCHAR(40), c_nationkey INT,
                       c_phone CHAR(15), c_acctbal DECIMAL(12,2), c_mktsegment CHAR(10), c_comment STRING);
CREATE TABLE orders (o_orderkey BIGINT PRIMARY KEY, o_custkey BIGINT, o_orderdate DATE, o_shippriority INT);
CREATE TABLE lineitem (l_orderkey BIGINT, l_suppkey BIGINT, l_linenumber INT, l_extendedprice DECIMAL(12,2) NOT NULL,
                       l_discount DECIMAL(12,2) NOT NULL, l_returnflag CHAR(1), l_shipdate DATE,
                       PRIMARY KEY (l_orderkey, l_linenumber));
CREATE TABLE supplier (s_suppkey BIGINT PRIMARY KEY, s_nationkey INT);
CREATE TABLE nation (n_nationkey INT PRIMARY KEY, n_name CHAR(25), n_regionkey INT);
CREATE TABLE region (r_regionkey INT PRIMARY KEY, r_name CHAR(25));
"""


def render(expression: Expression | None) -> str:
    """Compact text of an expression: ``cast(x):bigint``, ``eq(x, 1)``; types are shown for casts only."""
    if expression is None:
        return "-"
    if isinstance(expression, ColumnRef):
        return expression.name
    if isinstance(expression, Literal):
        return (
            "null"
            if expression.value is None
            else repr(expression.value)
            if isinstance(expression.value, str)
            else str(expression.value)
        )
    text = f"{expression.op}({', '.join(render(a) for a in expression.args)})"
    return f"{text}:{expression.type}" if expression.op == "cast" else text


def describe(view: LogicalView) -> list[str]:
    """One line per stage."""
    lines = []
    for stage in view.stages:
        if isinstance(stage, Core):
            lines.append(f"{'distinct ' if stage.query.distinct else ''}{stage.query}")
        elif isinstance(stage, Map):
            lines.append("map " + ", ".join(f"{n}={render(e)}" for n, e in stage.expressions))
        elif isinstance(stage, GroupAggregate):
            aggregates = [
                f"{a.name}={a.function}({render(a.argument) if a.argument else f'{a.sum or 1}/{a.count or 1}'})"
                for a in stage.aggregates
            ]
            lines.append(f"group [{', '.join(k.name for k in stage.keys)}] " + ", ".join(aggregates))
        elif isinstance(stage, Filter):
            lines.append(f"filter {render(stage.predicate)}")
        else:
            assert isinstance(stage, Distinct)
            lines.append("distinct")
    return lines


@pytest.fixture(scope="session")
def tables() -> Mapping[str, Table]:
    found = {}
    for statement in parse_statements(DDL):
        assert isinstance(statement, CreateTable)
        found[statement.table.name.lower()] = statement.table
    return found


@pytest.fixture(scope="session")
def lower(tables: Mapping[str, Table]) -> Callable[[str], LogicalView]:
    return lambda sql: lower_query("v", sql, tables)


@pytest.fixture(scope="session")
def stages(lower: Callable[[str], LogicalView]) -> Callable[[str], list[str]]:
    return lambda sql: describe(lower(sql))


@pytest.fixture(scope="session")
def show() -> Callable[[Expression | None], str]:
    return render


@pytest.fixture(scope="session")
def filters(lower: Callable[[str], LogicalView]) -> Callable[[str], dict[str, str]]:
    """The filters of a query by atom."""

    def found(sql: str) -> dict[str, str]:
        core = lower(sql).stages[0]
        assert isinstance(core, Core)
        return {a.name: render(a.filter) for a in core.query.atoms if a.filter is not None}

    return found


@pytest.fixture(scope="session")
def item(lower: Callable[[str], LogicalView]) -> Callable[[str], str]:
    """The text of one expression over table t, as the last stage computes it."""

    def found(expression: str) -> str:
        stage = lower(f"SELECT {expression} AS z, 1 AS forces_a_map FROM t").stages[-1]
        assert isinstance(stage, Map)
        return render(stage.expressions[0][1])

    return found
