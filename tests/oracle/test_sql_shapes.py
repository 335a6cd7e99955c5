"""Random SQL texts against DuckDB: however a query is written, it means the same (see ``everview.testing.sql_shapes``)."""

from datetime import UTC, date, datetime
from decimal import Decimal

import everview as ev
import pytest
from everview.schema.arrow import arrow_schema
from everview.testing.asserts import DeltaSum, assert_view_equals
from everview.testing.oracle import Sql, repeated
from everview.testing.sql_meanings import quoted
from everview.testing.sql_shapes import cases
from everview.testing.sql_soup import TABLES, mutilated, wild_queries
from hypothesis import event, given, settings


def expected(db, case, oracle):
    plain = {f"s{n}": table.plain(n) for n, table in enumerate(case.tables)}
    rows = {
        f"s{n}": repeated(db.table_rows(table.name)).rename_columns(arrow_schema(plain[f"s{n}"]).names)
        for n, table in enumerate(case.tables)
    }
    oracle.load(plain, rows)
    return oracle.run(Sql(case.text, case.duckdb))


def create(db, case):
    db.execute(";\n".join(t.ddl for t in case.tables))
    if case.in_script:
        db.execute(f"CREATE VIEW {quoted('the view')} AS\n{case.text}\n;")
        return db.view("the view")
    return db.create_view("the view", case.text)


@settings(max_examples=60)
@given(case=cases())
def test_a_text_means_what_it_says(case, oracle):
    with ev.connect() as db:
        view = create(db, case)
        total = DeltaSum.of(view)
        for batch in case.batches:
            changes = {}
            for n, coming, leaving in batch:
                names = case.tables[n].columns
                rows = [dict(zip(names, r, strict=True), _multiplicity=1) for r in coming]
                rows += [dict(zip(names, r, strict=True), _multiplicity=-1) for r in leaving]
                if rows:
                    changes[case.tables[n].name] = rows
            deltas = db.apply(changes)
            total.add(deltas["the view"])
            total.check(view)
            assert_view_equals(view, expected(db, case, oracle))
        late = db.create_view("late", case.text)
        assert_view_equals(late, expected(db, case, oracle))
        for form in ("text", "json", "dot"):
            assert view.explain(form)
        event(f"{len(case.duckdb.split(' AS o')) - 1} occurrences")


def refused(db, text):
    """Creates a view and reads it; the code of the error if it is refused, by an error that is ours and no bug."""
    try:
        view = db.create_view("v", text, replace=True)
        view.to_arrow()
        assert view.explain()
        assert view.explain("json")
    except ev.InternalError as error:
        pytest.fail(f"{error}\n{text}")
    except ev.EverviewError as error:
        assert len(str(error)) < 3000
        return error.code
    return ""


@settings(max_examples=100)
@given(damaged=mutilated())
def test_whatever_the_text_errors_are_ours(damaged):
    tables, text = damaged
    with ev.connect() as db:
        db.execute(";\n".join(t.ddl for t in tables))
        event(refused(db, text))


@settings(max_examples=20)
@given(queries=wild_queries())
def test_whatever_the_expression_errors_are_ours(queries):
    with ev.connect() as db:
        db.execute(TABLES)
        row = (1, 2, "a", date(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC), Decimal("1.50"), 0.5, True)
        db.apply({"t": [row, (None,) * 8], "u": [(1, Decimal("1.5"), "a")]})
        for query in queries:
            event(refused(db, query))
