"""Joins of exact numbers whose types have no common type of 38 digits: equal is what is equal, nothing is rounded.

DuckDB has no such comparison either; the expected rows come from Python's integers.
"""

from decimal import Decimal
from itertools import product

import everview as ev
from everview.schema.datatype import BIGINT, INT, decimal
from everview.testing.asserts import assert_view_equals
from hypothesis import given
from hypothesis import strategies as st

TYPES = [INT, BIGINT, decimal(5, 2), decimal(20, 0), decimal(38, 0), decimal(38, 18), decimal(38, 38), decimal(18, 18)]


@st.composite
def columns(draw):
    data_type = draw(st.sampled_from(TYPES))
    scale = data_type.scale
    digits = {INT: 9, BIGINT: 18}.get(data_type, data_type.precision)
    near = [n * 10**s + d for n in (0, 1, -1, 7) for s in (0, scale) for d in (0, 1)]
    units = st.sampled_from(near) | st.integers(-(10**digits) + 1, 10**digits - 1) | st.just(10**digits - 1)
    values = draw(st.lists(units.filter(lambda v: abs(v) < 10**digits), min_size=1, max_size=5))
    return data_type, [Decimal(f"{v}E-{scale}") for v in values]


@given(st.lists(columns(), min_size=2, max_size=4), st.booleans())
def test_equal_is_equal(tables, grouped):
    with ev.connect() as db:
        for i, (data_type, _) in enumerate(tables):
            db.execute(f"CREATE TABLE t{i} (x {str(data_type).upper()})")
        joins = " ".join(f"JOIN t{i} ON t{i - 1}.x = t{i}.x" for i in range(1, len(tables)))
        names = ", ".join(f"t{i}.x AS x{i}" for i in range(len(tables)))
        query = f"SELECT {names} FROM t0 {joins}"
        if grouped:
            query = f"SELECT t0.x AS x0, COUNT(*) AS n FROM t0 {joins} GROUP BY t0.x"
        view = db.create_view("v", query)
        for i, (data_type, values) in enumerate(tables):
            exact = data_type.kind.value == "decimal"
            db.insert(f"t{i}", [(v if exact else int(v),) for v in values])
        rows = [row for row in product(*(values for _, values in tables)) if len(set(row)) == 1]
        if grouped:
            rows = [(v, rows_of) for v in {r[0] for r in rows} if (rows_of := sum(r[0] == v for r in rows))]
        assert_view_equals(view, rows)
