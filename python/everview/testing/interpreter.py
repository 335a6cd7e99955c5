"""A slow, obvious interpreter of relational plans: what a plan means, node by node.

It checks every rule (the plan before and the plan after give the same rows) and stands beside DuckDB and Spark as an
oracle of its own: it follows our plan, and no other code of ours but the evaluation of scalar expressions.
Rows are Arrow batches, one column per column of the node; joins are loops over all pairs.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa

from everview.engine import compute
from everview.errors import ChangeError
from everview.query.expression import ColumnRef, Expression, Literal, PlanColumn, rewrite, to_json
from everview.query.logical_view import SortKey
from everview.relational.plan import (
    Aggregate,
    AggregateCall,
    Apply,
    Condition,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Lateral,
    Node,
    Project,
    Repeat,
    Scan,
    TopK,
    UnionAll,
    Values,
    with_columns,
)
from everview.schema.arrow import arrow_type
from everview.schema.datatype import DataType, Kind
from everview.testing.oracle import Row, meaning

Tables = Mapping[str, pa.Table]
_EXACT = Context(prec=80)


def interpret(node: Node, tables: Tables) -> list[Row]:
    """The rows of a plan over tables (by lower-case name), duplicates repeated, in no particular order."""
    return _tuples(_rows(node, tables))


def _rows(node: Node, tables: Tables) -> pa.RecordBatch:
    match node:
        case Scan():
            table = tables[node.table.name.lower()].combine_chunks()
            columns = [c.chunk(0) if c.num_chunks else pa.array([], c.type) for c in table.columns]
            return _batch(node.columns, columns, table.num_rows)
        case Filter():
            return _filtered(_rows(node.input, tables), node.input.columns, node.conditions)
        case Project():
            below, known = _rows(node.input, tables), node.input.columns
            return _batch(node.columns, [_evaluated(e, known, below) for _, e in node.items], below.num_rows)
        case Join():
            return _joined(node, _rows(node.left, tables), _rows(node.right, tables))
        case Lateral():
            return _lateral(node, _rows(node.left, tables), tables)
        case Apply():
            return _applied(node, _rows(node.input, tables), tables)
        case Aggregate():
            return _aggregated(node, _rows(node.input, tables))
        case Distinct():
            return _distinct(_rows(node.input, tables))
        case TopK():
            return _top(node, _rows(node.input, tables))
        case Values():
            one = _batch((), (), 1)
            cells = [[_evaluated(row[i], (), one) for row in node.rows] for i in range(len(node.columns))]
            arrays = [
                pa.concat_arrays([pa.array([], arrow_type(c.type)), *a])
                for c, a in zip(node.columns, cells, strict=True)
            ]
            return _batch(node.columns, arrays, len(node.rows))
        case Repeat():
            below = _rows(node.input, tables)
            counts = _evaluated(node.count, node.columns, below).to_pylist()
            return below.take(pa.array([i for i, count in enumerate(counts) for _ in range(count or 0)], pa.int64()))
        case UnionAll():
            parts = [_rows(below, tables) for below in node.inputs]
            whole = [pa.concat_arrays(arrays) for arrays in zip(*(p.columns[:-1] for p in parts), strict=True)]
            return _batch(node.columns, whole, sum(part.num_rows for part in parts))


def _batch(columns: Sequence[PlanColumn], arrays: Iterable[pa.Array], count: int) -> pa.RecordBatch:
    fields = [pa.field(f"c{column.id}", arrow_type(column.type)) for column in columns]
    schema = pa.schema([*fields, pa.field("rows", pa.bool_())])  # so that batches without columns have rows
    return pa.record_batch([*arrays, pa.nulls(count, pa.bool_())], schema=schema)


def _tuples(rows: pa.RecordBatch) -> list[Row]:
    return [row[:-1] for row in zip(*(column.to_pylist() for column in rows.columns), strict=True)]


def _evaluated(expression: Expression, columns: Sequence[PlanColumn], rows: pa.RecordBatch) -> pa.Array:
    """An expression on every row, by the kernel's evaluator."""

    def named(part: Expression) -> Expression | None:
        return ColumnRef(str(part.id), part.type, part.nullable) if isinstance(part, PlanColumn) else None

    index = {str(column.id): at for at, column in enumerate(columns)}
    return compute(json.dumps(to_json(rewrite(expression, named), index)), rows)


def _filtered(rows: pa.RecordBatch, columns: Sequence[PlanColumn], conditions: Sequence[Condition]) -> pa.RecordBatch:
    """Conditions are tried one after another, on the rows that are left, so that one may guard the next."""
    for condition in conditions:
        kept = _evaluated(condition.expression, columns, rows).to_pylist()
        rows = rows.take(pa.array([i for i, passes in enumerate(kept) if passes], pa.int64()))
    return rows


def _joined(node: Join, left: pa.RecordBatch, right: pa.RecordBatch) -> pa.RecordBatch:
    pairs = [(i, j) for i in range(left.num_rows) for j in range(right.num_rows)]
    sides = [batch.take(pa.array([p[s] for p in pairs], pa.int64())) for s, batch in enumerate((left, right))]
    columns = (*node.left.columns, *node.right.columns)
    numbers = pa.array(range(len(pairs)), pa.int64())
    rows = _batch(columns, [c for side in sides for c in side.columns[:-1]], len(pairs)).append_column("pair", numbers)
    rows = _filtered(rows, columns, node.conditions)
    found = [pairs[number] for number in rows.column("pair").to_pylist()]
    partners = {i for i, _ in found}
    alone = pa.array([i for i in range(left.num_rows) if i not in partners], pa.int64())
    match node.kind:
        case JoinKind.SEMI:
            return left.take(pa.array(sorted(partners), pa.int64()))
        case JoinKind.ANTI:
            return left.take(alone)
        case JoinKind.INNER:
            return _batch(node.columns, rows.columns[: len(columns)], rows.num_rows)
        case JoinKind.LEFT | JoinKind.FULL:
            parts = [
                rows.columns[: len(columns)],
                [*left.take(alone).columns[:-1], *_nulls(node.right.columns, len(alone))],
            ]
            found_right = {j for _, j in found}
            others = pa.array([j for j in range(right.num_rows) if j not in found_right], pa.int64())
            if node.kind is JoinKind.FULL:
                parts.append([*_nulls(node.left.columns, len(others)), *right.take(others).columns[:-1]])
            whole = [pa.concat_arrays(list(arrays)) for arrays in zip(*parts, strict=True)]
            count = rows.num_rows + len(alone) + (len(others) if node.kind is JoinKind.FULL else 0)
            return _batch(node.columns, whole, count)


def _nulls(columns: Sequence[PlanColumn], count: int) -> list[pa.Array]:
    return [pa.nulls(count, arrow_type(c.type)) for c in columns]


def _lateral(node: Lateral, left: pa.RecordBatch, tables: Tables) -> pa.RecordBatch:
    """The right side is evaluated for every row of the left, whose columns are put in as constants."""
    found = []
    for i, row in enumerate(_tuples(left)):
        named = zip(node.left.columns, row, strict=True)
        constants: dict[PlanColumn, Expression] = {c: Literal(v, c.type) for c, v in named}
        right = with_columns(node.right, constants)
        found.append(
            _joined(Join(node.kind, node.left, right, node.conditions), left.slice(i, 1), _rows(right, tables))
        )
    whole = [pa.concat_arrays(list(arrays)) for arrays in zip(*(f.columns[:-1] for f in found), strict=True)]
    whole = whole or _nulls(node.columns, 0)
    return _batch(node.columns, whole, sum(f.num_rows for f in found))


def _applied(node: Apply, rows: pa.RecordBatch, tables: Tables) -> pa.RecordBatch:
    """The subquery is evaluated for every row, the columns of the row put in as constants."""
    known = node.input.columns
    operands = [_evaluated(e, known, rows).to_pylist() for e in node.operands]
    values = []
    for i, row in enumerate(_tuples(rows)):
        constants: dict[PlanColumn, Expression] = {c: Literal(v, c.type) for c, v in zip(known, row, strict=True)}
        found = _tuples(_rows(with_columns(node.subquery, constants), tables))
        if node.scalar:
            if len(found) > 1:
                raise SubqueryRowsError
            values.append(found[0][0] if found else None)
        else:
            values.append(_is_any([o[i] for o in operands], node.comparison, found) if node.operands else bool(found))
    whole = [*rows.columns[:-1], pa.array(values, arrow_type(node.column.type))]
    return _batch(node.columns, whole, rows.num_rows)


class SubqueryRowsError(Exception):
    """A scalar subquery gives more than one row."""


_COMPARED = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def _is_any(operands: list[Any], comparison: str, rows: list[Row]) -> bool | None:
    answers = []
    for row in rows:
        pairs = list(zip(operands, row, strict=True))
        fails = any(a is not None and b is not None and not _COMPARED[comparison](a, b) for a, b in pairs)
        answers.append(False if fails else None if any(a is None or b is None for a, b in pairs) else True)
    return True if True in answers else None if None in answers else False


def _aggregated(node: Aggregate, rows: pa.RecordBatch) -> pa.RecordBatch:
    below = node.input.columns

    def values(expressions: Iterable[Expression | None]) -> list[list[Any]]:
        return [_evaluated(e, below, rows).to_pylist() for e in expressions if e is not None]

    keys = values(e for _, e in node.keys)
    arguments = [values((call.argument, call.second)) for _, call in node.calls]
    distinct = [values(call.distinct) for _, call in node.calls]
    groups: dict[Row, tuple[Row, list[int]]] = {} if node.keys else {(): ((), [])}
    for i in range(rows.num_rows):
        key = tuple(k[i] for k in keys)
        groups.setdefault(meaning(key), (key, []))[1].append(i)
    found = []
    for key, members in groups.values():
        results = []
        for (_, call), given, kept in zip(node.calls, arguments, distinct, strict=True):
            first = {meaning(tuple(column[i] for column in kept)): i for i in reversed(members)}
            counted = sorted(first.values()) if kept else members
            columns = [[column[i] for i in counted] for column in given]
            pairs = list(zip(*columns, strict=True)) if len(columns) > 1 else columns[0] if columns else []
            results.append(_AGGREGATES[call.function](call, len(counted), pairs))
        found.append((*key, *results))
    arrays = [pa.array([row[i] for row in found], arrow_type(c.type)) for i, c in enumerate(node.columns)]
    return _batch(node.columns, arrays, len(found))


def _count(call: AggregateCall, count: int, values: list[Any]) -> int:
    return count if call.argument is None else sum(v is not None for v in values)


def _sum(call: AggregateCall, _: int, values: list[Any]) -> Any:
    known = [v for v in values if v is not None]
    return _total(known, call.type) if known else None


def _average(call: AggregateCall, _: int, values: list[Any]) -> Any:
    known = [v for v in values if v is not None]
    if not known:
        return None
    assert call.argument is not None
    if call.type.kind is Kind.DECIMAL:
        exact = _EXACT.divide(_total(known, call.argument.type), Decimal(len(known)))
        return exact.quantize(Decimal(1).scaleb(-call.type.scale), ROUND_HALF_UP, _EXACT)
    return _total([float(v) for v in known], call.type) / len(known)


def _total(values: list[Any], data_type: DataType) -> Any:
    if data_type.is_floating:
        finite = [float(v) for v in values]
        return math.fsum(finite) if all(map(math.isfinite, finite)) else sum(finite)
    if data_type.kind is Kind.DECIMAL:
        total = Decimal(0)
        for value in values:
            total = _EXACT.add(total, value)
        return total
    return sum(values)


def _minimum(_: AggregateCall, __: int, values: list[Any]) -> Any:
    return min((v for v in values if v is not None), key=lambda v: _rank(v, 0), default=None)


def _maximum(_: AggregateCall, __: int, values: list[Any]) -> Any:
    return max((v for v in values if v is not None), key=lambda v: _rank(v, 0), default=None)


def _minimum_by(_: AggregateCall, __: int, values: list[Any]) -> Any:
    pairs = [(_rank(y, 0), _rank(x, 2), x) for x, y in values if y is not None]
    return min(pairs, key=lambda pair: pair[:2], default=(0, 0, None))[2]


def _maximum_by(_: AggregateCall, __: int, values: list[Any]) -> Any:
    pairs = [(_rank(y, 0), _rank(x, 2), x) for x, y in values if y is not None]
    greatest = max((pair[0] for pair in pairs), default=None)
    return min((p for p in pairs if p[0] == greatest), key=lambda pair: pair[1], default=(0, 0, None))[2]


def _moments(call: AggregateCall, _: int, values: list[Any]) -> float | None:
    """By exact fractions."""
    rows = [row if isinstance(row, tuple) else (row, row) for row in values]
    known = [(float(x), float(y)) for x, y in rows if x is not None and y is not None]
    n = len(known)
    if n < (2 if call.function.endswith("samp") or call.function == "corr" else 1):
        return None
    if not all(math.isfinite(v) for row in known for v in row):
        return math.nan
    xs, ys = [Fraction(x) for x, _ in known], [Fraction(y) for _, y in known]

    def central(one: list[Fraction], two: list[Fraction]) -> Fraction:
        products = (a * b for a, b in zip(one, two, strict=True))
        return n * sum(products, Fraction(0)) - sum(one, Fraction(0)) * sum(two, Fraction(0))

    if call.function == "corr":
        spread = central(xs, xs) * central(ys, ys)
        return float(central(xs, ys)) / math.sqrt(spread) if spread else None
    found = float(central(xs, ys) / (n * (n - call.function.endswith("samp"))))
    return math.sqrt(found) if call.function.startswith("stddev") else found


def _single(_: AggregateCall, count: int, values: list[Any]) -> Any:
    if count > 1:
        raise ChangeError("SCALAR_SUBQUERY_TOO_MANY_ROWS", f"a scalar subquery gives {count} rows")
    return values[0] if values else None


_AGGREGATES: Mapping[str, Callable[[AggregateCall, int, list[Any]], Any]] = {
    "count": _count,
    "sum": _sum,
    "avg": _average,
    "min": _minimum,
    "max": _maximum,
    "single": _single,
    "min_by": _minimum_by,
    "max_by": _maximum_by,
    **dict.fromkeys(("var_pop", "var_samp", "stddev_pop", "stddev_samp", "covar_pop", "covar_samp", "corr"), _moments),
}


def _top(node: TopK, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Sorted by one column after another, the least significant first: Python's sort is stable."""
    values = _tuples(rows)
    numbers = list(range(rows.num_rows))
    content = [SortKey(i, descending=False, nulls_first=True) for i in range(len(node.input.columns))]
    for key in reversed([*node.order, *content]):
        null = 2 if key.nulls_first is key.descending else 0
        ranks = [_rank(row[key.position], null) for row in values]
        numbers.sort(key=ranks.__getitem__, reverse=key.descending)
    partitions: dict[Row, list[int]] = {}
    for number in numbers:
        partitions.setdefault(meaning(tuple(values[number][i] for i in node.partition)), []).append(number)
    end = None if node.limit is None else node.offset + node.limit
    kept = [(n, at) for part in partitions.values() for at, n in list(enumerate(part, 1))[node.offset : end]]
    found = rows.take(pa.array([n for n, _ in kept], pa.int64()))
    if node.rank is None:
        return found
    ranks = pa.array([at for _, at in kept], pa.int32())
    return _batch(node.columns, [*found.columns[:-1], ranks], len(kept))


def _rank(value: Any, null: int) -> tuple[Any, ...]:
    if value is None:
        return (null,)
    if isinstance(value, float):
        return (1, math.isnan(value), 0.0 if math.isnan(value) else value)
    return (1, value)


def _distinct(rows: pa.RecordBatch) -> pa.RecordBatch:
    first: dict[Row, int] = {}
    for i, row in enumerate(_tuples(rows)):
        first.setdefault(meaning(row), i)
    return rows.take(pa.array(list(first.values()), pa.int64()))
