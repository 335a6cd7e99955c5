"""Tables that keep nothing but what views read, against tables that keep all rows (see ``everview.testing.keeping``)."""

from collections import Counter

import pytest
from everview.errors import ChangeError
from everview.testing.fallible import Way, trials
from everview.testing.keeping import KeptTwice, without_keys
from everview.testing.oracle import MULTIPLICITY
from everview.testing.replay import hand_over
from everview.testing.sql_blocks import TABLES, blocks
from everview.testing.sql_shapes import cases
from everview.testing.strategies import QueryKind, create_table, scenarios
from everview.testing.streams import Change
from hypothesis import event, given, reject, settings
from hypothesis import strategies as st


def kinds(argument):
    return pytest.mark.parametrize("kind", argument, ids=lambda k: str(k).replace(" ", "_"))


def numbered(queries):
    return {f"v{n}": sql for n, sql in enumerate(queries)}


@kinds(QueryKind)
@settings(max_examples=30)
@given(data=st.data())
def test_valid_streams(kind, data):
    scenario = data.draw(scenarios(None, kind))
    tables = {t.name: t for t in without_keys(scenario.tables)}
    query = scenario.query.spark
    ddl = [create_table(t) for t in tables.values()]
    both = KeptTwice(ddl, {"v": query, "again": query}, text_bytes=8 if len(query) % 2 else None)
    held = Counter()
    try:
        for batch in scenario.batches:
            touched = [name for name in tables if batch.rows(name)]
            changes = {name: hand_over(tables[name], batch.rows(name), batch.form) for name in touched}
            both.apply(changes, Way.DELTAS if batch.deltas else Way.SILENT)
            for change in batch.changes:
                held[change.table, change.row] += change.sign
        rest = [Change(table, row, "delete") for (table, row), n in held.items() for _ in range(n)]
        for name, table in tables.items():
            both.apply({name: hand_over(table, [c for c in rest if c.table == name], "multiplicity")}, Way.STREAM)
        for view in both.views.views.values():
            groups = sum(hasattr(s, "aggregates") for s in view.plan.view.stages)
            most = 1 if groups == 1 else 2 * groups  # MINs of several tables are groups apart, and their join
            assert view.metrics().state_rows <= (most if kind is QueryKind.GLOBAL else 0)
        assert both.views._state.kernel.texts_size()[0] == 0 or kind is QueryKind.GLOBAL
    finally:
        both.close()


def play(trial):
    """The batches of a trial, whether they are valid or not."""
    tables = {t.name: t for t in without_keys(trial.tables)}
    try:
        both = KeptTwice([create_table(t) for t in tables.values()], numbered(trial.views))
    except ChangeError:
        reject()  # a view that fails on empty tables
    try:
        for attempt in trial.attempts:
            rows = {name: Counter() for name in tables}
            for name in tables:
                for row in both.rows.table_rows(name).to_pylist():
                    count = row.pop(MULTIPLICITY)
                    rows[name][tuple(row.values())] += count
            changes = {}
            for name, cards in attempt.changes(tables, rows).items():
                columns = [c.name for c in tables[name].columns]
                changes[name] = [dict(zip(columns, row, strict=True)) | {MULTIPLICITY: n} for row, n in cards]
            both.apply(changes, Way.DELTAS if attempt.way is Way.LENIENT else attempt.way)
        event(f"{min(both.refused, 3)} refused, {min(both.unnoticed, 3)} unnoticed")
    finally:
        both.close()


@kinds(QueryKind)
@settings(max_examples=30)
@given(data=st.data())
def test_streams_with_batches_to_be_refused(kind, data):
    play(data.draw(trials(kind)))


@kinds([QueryKind.BAG, QueryKind.GROUP, QueryKind.HAVING])
@settings(max_examples=20)
@given(data=st.data())
def test_several_views(kind, data):
    play(data.draw(trials(kind, max_views=4, max_atoms=2)))


@kinds(QueryKind)
@settings(max_examples=15)
@given(data=st.data())
def test_rows_that_come_very_often(kind, data):
    play(data.draw(trials(kind, largest=2**40)))


@settings(max_examples=60)
@given(case=blocks())
def test_views_of_several_blocks_and_views_over_views(case):
    ddl = [f"CREATE TABLE {name} ({', '.join(f'{c} INT' for c in columns)})" for name, columns in TABLES.items()]
    both = KeptTwice(ddl, {"v": case.sql, "over": "SELECT c0, COUNT(*) AS n FROM v GROUP BY c0"})
    try:
        for batch in case.batches:
            changes = {}
            for table, row, n in batch:
                changes.setdefault(table, []).append(dict(zip(TABLES[table], row, strict=True), _multiplicity=n))
            both.apply(changes)
        late = both.views.create_view("late", "SELECT n FROM over")  # reads views only, which are there
        assert late.count() == both.views.view("over").count()
    finally:
        both.close()


@settings(max_examples=40)
@given(case=cases())
def test_however_a_query_is_written(case):
    both = KeptTwice([t.ddl for t in case.tables], {"the view": case.text})
    try:
        for batch in case.batches:
            changes = {}
            for n, coming, leaving in batch:
                names = case.tables[n].columns
                rows = [dict(zip(names, r, strict=True), _multiplicity=1) for r in coming]
                rows += [dict(zip(names, r, strict=True), _multiplicity=-1) for r in leaving]
                if rows:
                    changes[case.tables[n].name] = rows
            both.apply(changes)
    finally:
        both.close()
