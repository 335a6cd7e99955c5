"""What a logical view means, by brute force, against DuckDB.

The evaluator below follows the definitions in ``query/conjunctive.py`` and ``query/logical_view.py`` literally: it
nests loops over the atoms, multiplies factors and sums components. It knows few operations and no overflow; it checks
that lowering puts filters, variables, components and stages where they belong, and that nullability is not too narrow.
"""

import operator
import random
from collections import Counter, defaultdict
from decimal import Decimal

import pytest

from everview.query.expression import ColumnRef, Expression, Literal
from everview.query.logical_view import Core, Distinct, Filter, GroupAggregate, LogicalView, Map
from everview.schema.datatype import DataType, Kind
from everview.lower import lower_query
from everview.sql import CreateTable, parse_statements

duckdb = pytest.importorskip("duckdb")

DDL = """CREATE TABLE r (a INT, b INT, c INT NOT NULL, p DECIMAL(6,2), f DOUBLE);
         CREATE TABLE s (b BIGINT, c INT, d INT NOT NULL, q DECIMAL(5,2), g DOUBLE);
         CREATE TABLE w (d INT, e INT, a BIGINT)"""
TABLES = {s.table.name: s.table for s in parse_statements(DDL) if isinstance(s, CreateTable)}

BINARY = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "modulo": operator.mod,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def convert(value, data_type: DataType):
    if value is None:
        return None
    if data_type.kind is Kind.DECIMAL:
        return Decimal(str(value))
    if data_type.is_floating:
        return float(value)
    return int(value) if data_type.is_integer else value


def evaluate(expression: Expression, row: dict):
    if isinstance(expression, ColumnRef):
        return row[expression.name]
    if isinstance(expression, Literal):
        return expression.value
    args = [evaluate(a, row) for a in expression.args]
    match expression.op:
        case "case":
            chosen = [v for c, v in zip(args[:-1:2], args[1::2], strict=True) if c is True]
            return (chosen or args[-1:])[0]
        case "coalesce":
            return next((a for a in args if a is not None), None)
        case "is_null":
            return args[0] is None
        case "is_not_null":
            return args[0] is not None
        case "and":
            return False if False in args else None if None in args else True
        case "or":
            return True if True in args else None if None in args else False
        case "in":
            if args[0] is None:
                return None
            return True if args[0] in args[1:] else None if None in args[1:] else False
    if None in args:
        return None
    match expression.op:
        case "cast":
            return convert(args[0], expression.type)
        case "not":
            return not args[0]
        case "negate":
            return -args[0]
    return BINARY[expression.op](*args)


def run_core(stage: Core, data: dict) -> list:
    query = stage.query
    partial = [({}, [1] * len(query.components))]
    for atom in query.atoms:
        names = [c.name for c in TABLES[atom.table].columns]
        rows = []
        for values in data[atom.table]:
            row = dict(zip(names, values, strict=True))
            if atom.filter is not None and evaluate(atom.filter, row) is not True:
                continue
            bound = {v: evaluate(e, row) for v, e in atom.bindings}
            if any(bound[v] is None for v in bound if v in query.join_variables):
                continue
            rows.append((bound, [1 if f is None else evaluate(f, row) or 0 for f in atom.factors]))
        partial = [
            ({**found, **bound}, [one * two for one, two in zip(products, factors, strict=True)])
            for found, products in partial
            for bound, factors in rows
            if all(found.get(v, x) == x for v, x in bound.items())
        ]
    totals: dict = {}
    for found, products in partial:
        total = totals.setdefault(tuple(found[v] for v in query.head), [0, [0] * len(products)])
        total[0] += 1
        total[1] = [one + two for one, two in zip(total[1], products, strict=True)]
    return [
        (
            dict(zip(query.head, key, strict=True)),
            1 if query.distinct else count,
            dict(zip(query.components, sums, strict=True)),
        )
        for key, (count, sums) in totals.items()
    ]


def run_group(stage: GroupAggregate, rows: list) -> list:
    groups: dict = defaultdict(list)
    if not stage.keys:
        groups[()] = []
    for row in rows:
        groups[tuple(row[0][k.name] for k in stage.keys)].append(row)
    found = []
    for key, members in groups.items():
        result = dict(zip([k.name for k in stage.keys], key, strict=True))
        for a in stage.aggregates:
            if a.argument is not None:
                values = [(evaluate(a.argument, row), m) for row, m, _ in members]
                count = sum(m for v, m in values if v is not None)
                total = sum(v * m for v, m in values if v is not None)
            else:
                count = sum(c[a.count] if a.count else m for _, m, c in members)
                total = sum(c[a.sum] for _, _, c in members) if a.sum else 0
            value = {
                "count": count,
                "sum": total if count else None,
                "avg": Decimal(str(total)) / count if count else None,
            }
            result[a.name] = convert(value[a.function], a.type)
        found.append((result, 1, {}))
    return found


def run(view: LogicalView, data: dict) -> Counter:
    outputs: list[list] = []
    for stage in view.stages:
        match stage:
            case Core():
                rows = run_core(stage, data)
            case Map():
                rows = [
                    ({n: evaluate(e, row) for n, e in stage.expressions}, m, {}) for row, m, _ in outputs[stage.input]
                ]
            case Filter():
                rows = [row for row in outputs[stage.input] if evaluate(stage.predicate, row[0]) is True]
            case Distinct():
                rows = [
                    (dict(key), 1, {})
                    for key in dict.fromkeys(tuple(row.items()) for row, _, _ in outputs[stage.input])
                ]
            case GroupAggregate():
                rows = run_group(stage, outputs[stage.input])
        outputs.append(rows)
        for row, _, _ in rows:
            assert list(row) == [c.name for c in stage.columns]
            assert all(c.nullable or row[c.name] is not None for c in stage.columns)
    result: Counter = Counter()
    for row, multiplicity, _ in outputs[-1]:
        result[comparable(row.values())] += multiplicity
    return result


def comparable(values) -> tuple:
    return tuple(round(float(v), 6) if isinstance(v, int | float | Decimal) else v for v in values)


QUERIES = """
SELECT r.a, s.d FROM r, s WHERE r.b = s.b
SELECT r.a, r.b, s.b AS b2, s.c FROM r JOIN s ON r.b = s.b AND r.c = s.c WHERE r.a > 0 OR r.b IS NULL
SELECT r.a, s.d, w.e FROM r JOIN s ON r.b = s.b JOIN w ON s.d = w.d
SELECT DISTINCT r.a, w.e FROM r JOIN s ON r.b = s.b JOIN w ON s.d = w.d
SELECT DISTINCT r.a + 1 AS z, s.d FROM r, s WHERE r.b = s.b
SELECT DISTINCT r.a + s.d AS z FROM r, s WHERE r.b = s.b
SELECT r.a + s.d AS z, r.a FROM r, s WHERE r.b = s.b
SELECT r.a, COUNT(*) n, SUM(s.d) o, AVG(s.c) p, COUNT(s.c) q, SUM(r.p * s.q) t, SUM(r.f) u, SUM(r.a * s.d) v FROM r JOIN s ON r.b = s.b GROUP BY r.a
SELECT COUNT(*) n, SUM(s.d) o, AVG(s.c) p, SUM(r.p * s.q) t, AVG(r.p * s.q) u, SUM(CAST(r.a AS BIGINT) * s.d) v, SUM(r.f * s.g) w, SUM(2) x, COUNT(r.a + s.c) y, SUM(r.p * s.q * 2) z FROM r JOIN s ON r.b = s.b
SELECT r.a + s.d k, SUM(r.c) x, COUNT(r.a) y, AVG(r.f) z FROM r JOIN s ON r.b = s.b GROUP BY r.a + s.d
SELECT r.a + s.d k, r.c, SUM(r.c) x FROM r JOIN s ON r.b = s.b GROUP BY r.a + s.d, r.c HAVING COUNT(*) > 1
SELECT r.a, r.b FROM r GROUP BY r.a, r.b
SELECT r.a FROM r GROUP BY r.a, r.b
SELECT r.a + s.c AS z FROM r, s GROUP BY r.a + s.c
SELECT 'k' AS k, COUNT(*) AS n FROM r WHERE a > 2 GROUP BY 'k'
SELECT COUNT(*) AS n, SUM(a) AS s FROM r WHERE a > 2
SELECT r.a, x.a AS a2 FROM r, r x WHERE r.b = x.b AND r.c = x.c
SELECT r.a, s.d FROM r CROSS JOIN s
SELECT z, d FROM (SELECT a + 1 AS z, b FROM r WHERE c > 0) k JOIN (SELECT b, d FROM s WHERE d < 3) l ON k.b = l.b
WITH k AS (SELECT a, b FROM r), l AS (SELECT k.a, s.d FROM k JOIN s ON k.b = s.b) SELECT l.a, l2.d FROM l JOIN l l2 ON l.d = l2.d
SELECT a, b, SUM(c) + COUNT(*) * 2 AS z FROM r GROUP BY a, b HAVING SUM(c) > 1 AND b IS NOT NULL
SELECT DISTINCT COUNT(*) AS n FROM r GROUP BY a
SELECT r.a, s.b FROM r, s WHERE r.b + 1 = s.b * 1 AND r.a = s.d
SELECT r.a, r.b FROM r JOIN s USING (b) JOIN w ON w.d = s.d AND w.a = r.a
SELECT r.a, s.c AS sc FROM r JOIN s ON r.a = s.b AND r.b = s.b
SELECT b, COUNT(*) AS n FROM r JOIN s USING (b) GROUP BY b
SELECT CASE WHEN a > 1 THEN 'x' WHEN a IS NULL THEN 'n' ELSE 'y' END AS k, SUM(CASE WHEN b IN (1, 2) THEN c ELSE 0 END) AS z FROM r GROUP BY 1
SELECT r.a, s.b AS sb, w.a AS wa FROM r, s, w WHERE r.a = s.b AND s.b = w.a AND r.a = w.d
SELECT 1 AS one FROM r, s WHERE r.b = s.b AND r.a = 1 AND s.d BETWEEN 0 AND 2
SELECT r.a AS x, r.a AS y, r.a + 0 AS z FROM r WHERE NOT (r.b = 1 OR r.c = 2)
SELECT SUM(r.a) AS s1, SUM(r.a) + 1 AS s2 FROM r HAVING COUNT(*) > 0
SELECT r.p, s.q FROM r JOIN s ON r.p = s.q
SELECT r.a, s.q FROM r JOIN s ON r.a = s.q
""".strip().splitlines()


def random_data(rng: random.Random) -> dict[str, list[tuple]]:
    def maybe(value):
        return None if rng.random() < 0.15 else value

    def small():
        return maybe(rng.randint(0, 3))

    def fact():
        money = maybe(Decimal(rng.choice([0, 100, 150, 200, 300])) / 100)
        return (small(), small(), rng.randint(0, 3), money, maybe(float(rng.randint(0, 3))))

    return {
        "r": [fact() for _ in range(rng.randint(0, 7))],
        "s": [fact() for _ in range(rng.randint(0, 7))],
        "w": [(small(), small(), small()) for _ in range(rng.randint(0, 6))],
    }


@pytest.mark.seeds(2)
@pytest.mark.parametrize("sql", QUERIES)
def test_agrees_with_duckdb(sql: str, seed: int) -> None:
    view = lower_query("v", sql, TABLES)
    rng = random.Random(seed)
    for _ in range(4):
        data = random_data(rng)
        with duckdb.connect() as connection:
            connection.execute(DDL)
            for name, rows in data.items():
                for row in rows:
                    connection.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)
            expected = Counter(comparable(row) for row in connection.execute(sql).fetchall())
        assert run(view, data) == expected
