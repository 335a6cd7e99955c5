"""Reading a view: whole, in batches, row by row, counted."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import everview as ev


@pytest.fixture
def hop(db):
    db.execute("CREATE TABLE g (src BIGINT, dst BIGINT)")
    return db.create_view("hop", "SELECT a.src, b.dst FROM g a JOIN g b ON a.dst = b.src")


def test_to_arrow_pandas_polars_agree(db, hop):
    db.insert("g", [(1, 2), (2, 3), (2, 4)])
    rows = [(1, 3), (1, 4)]
    assert sorted(map(tuple, hop.to_pandas().itertuples(index=False))) == rows
    assert sorted(hop.to_polars().rows()) == rows
    assert isinstance(hop.to_pandas(), pd.DataFrame)
    assert isinstance(hop.to_polars(), pl.DataFrame)
    assert hop.to_arrow().schema == hop.schema
    assert pa.table(hop).num_rows == 2
    assert pl.DataFrame(hop).height == 2


def test_an_empty_result_has_its_schema(hop):
    assert hop.to_arrow().schema == hop.schema
    assert hop.to_arrow(multiplicity=True).schema.names == ["src", "dst", "_multiplicity"]
    assert list(hop.batches()) == []
    assert list(hop) == []
    assert hop.count() == 0


def test_multiplicity_gives_each_row_once(db, hop, bag):
    db.insert("g", [(1, 2), (1, 3), (2, 5), (3, 5), (3, 5)])
    assert bag(hop.to_arrow(multiplicity=True)) == [(1, 5, 3)]
    assert bag(hop.to_arrow()) == [(1, 5)] * 3


@pytest.mark.parametrize("rows", [1, 2, 7, 1000])
def test_batches_hold_at_most_so_many_rows(db, hop, bag, rows):
    db.insert("g", [(i % 5, i % 7) for i in range(60)])
    batches = list(hop.batches(rows=rows))
    assert all(0 < batch.num_rows <= rows for batch in batches)
    assert bag(pa.Table.from_batches(batches)) == bag(hop.to_arrow())
    assert sum(batch.num_rows for batch in batches) == hop.count()


@pytest.mark.parametrize("rows", [0, -1])
def test_batches_of_no_rows_are_refused_at_once(hop, rows):
    with pytest.raises(ev.AccessPatternError, match="at least one row"):
        hop.batches(rows=rows)


def test_rows_are_named_tuples(db, hop):
    db.insert("g", [(1, 2), (2, 3)])
    (row,) = hop
    assert (row.src, row.dst) == (1, 3) == tuple(row)
    assert row._fields == ("src", "dst")


def test_names_that_are_no_identifiers_are_numbered(db):
    db.execute("CREATE TABLE t (a INT)")
    v = db.create_view("v", "SELECT a AS `class`, a + 1 AS `a b` FROM t")
    db.insert("t", [(1,)])
    assert [tuple(row) for row in v] == [(1, 2)]
    assert v.schema.names == ["class", "a b"]


def test_count_of_many_duplicates_is_not_enumerated(db):
    db.execute("CREATE TABLE r (a INT); CREATE TABLE s (a INT)")
    v = db.create_view("v", "SELECT r.a FROM r JOIN s ON r.a = s.a")
    many = 3_000_000_000
    db.apply({"r": [{"a": 1, "_multiplicity": many}], "s": [{"a": 1, "_multiplicity": 2}]})
    emitted = v.metrics().rows_emitted
    assert v.count() == 2 * many
    assert v.metrics().rows_emitted == emitted
    assert next(v.batches(rows=10)).num_rows == 10
    assert v.to_arrow(multiplicity=True).to_pylist() == [{"a": 1, "_multiplicity": 2 * many}]


def test_count_with_having(db):
    db.execute("CREATE TABLE t (g INT, x INT)")
    v = db.create_view("v", "SELECT g, COUNT(*) AS n FROM t GROUP BY g HAVING COUNT(*) > 1")
    db.insert("t", [(1, 1), (1, 2), (2, 1)])
    assert v.count() == 1


def test_there_is_no_len_and_no_truth(hop):
    with pytest.raises(TypeError, match="count"):
        len(hop)
    with pytest.raises(TypeError, match="count"):
        bool(hop)


def test_html_shows_the_first_rows_escaped(db):
    db.execute("CREATE TABLE t (a INT, s STRING)")
    v = db.create_view("v", "SELECT a, s FROM t")
    db.insert("t", [(i, "<b>") for i in range(12)])
    html = v._repr_html_()
    assert html.count("<tr>") == 11
    assert "&lt;b&gt;" in html and "<b>" not in html
    assert "first 10 of 12 rows" in html
    db.delete("t", [(i, "<b>") for i in range(11)])
    assert "first" not in v._repr_html_()


EMPTY = {
    "nothing": lambda db: db.apply({}),
    "no rows": lambda db: db.insert("g", []),
    "rows that net to nothing": lambda db: db.apply({"g": [{"src": 9, "dst": 9, "_multiplicity": n} for n in (1, -1)]}),
    "deletes of absent rows": lambda db: db.delete("g", [(9, 9)], on_missing="ignore"),
    "a refusal": lambda db: pytest.raises(ev.ChangeError, db.delete, "g", [(9, 9)]),
}


@pytest.mark.parametrize("commit", EMPTY)
@pytest.mark.parametrize("reading", ["batches", "rows"])
def test_a_commit_without_changes_ends_no_iterator(db, hop, reading, commit):
    db.insert("g", [(1, 2), (2, 3), (2, 4), (2, 5)])
    iterator = readings()[reading](hop)
    next(iterator)
    EMPTY[commit](db)
    assert len(list(iterator)) == 2
    iterator = readings()[reading](hop)
    EMPTY[commit](db)
    assert len(list(iterator)) == 3


# ---- a commit invalidates open iterators -----------------------------------------------------------------------------


def readings():
    return {
        "batches": lambda v: v.batches(rows=1),
        "rows": iter,
        "stream": lambda v: pa.RecordBatchReader.from_stream(v),
    }


@pytest.mark.parametrize("reading", ["batches", "rows"])
@pytest.mark.parametrize("started", [False, True])
def test_a_commit_ends_open_iterators(db, hop, reading, started):
    db.insert("g", [(1, 2), (2, 3), (2, 4), (2, 5)])
    iterator = readings()[reading](hop)
    if started:
        next(iterator)
    db.insert("g", [(7, 8)])
    with pytest.raises(ev.StaleIteratorError, match="committed") as refusal:
        next(iterator)
    assert refusal.value.code == "STALE_ITERATOR"
    assert len(list(readings()[reading](hop))) == 3


def test_a_refused_batch_leaves_open_iterators_alone(db, hop):
    db.insert("g", [(1, 2), (2, 3), (2, 4)])
    iterator = hop.batches(rows=1)
    next(iterator)
    with pytest.raises(ev.ChangeError):
        db.delete("g", [(9, 9)])
    assert len(list(iterator)) == 1


def test_a_dropped_view_and_a_closed_session_end_iterators(db, hop):
    db.insert("g", [(1, 2), (2, 3), (2, 4)])
    iterator = iter(hop)
    next(iterator)
    hop.drop()
    with pytest.raises(ev.SessionError, match="dropped"):
        next(iterator)
    again = db.create_view("hop", hop.sql)
    iterator = iter(again)
    next(iterator)
    db.close()
    with pytest.raises(ev.SessionError, match="closed"):
        next(iterator)


# ---- metrics ---------------------------------------------------------------------------------------------------------


def test_metrics_tell_what_is_held_and_done(db, hop):
    empty = hop.metrics()
    assert (empty.state_rows, empty.updates, empty.rows_emitted) == (0, 0, 0)
    db.insert("g", [(1, 2), (2, 3)])
    full = hop.metrics()
    assert full.updates == 4  # two rows, two atoms
    assert full.probes > 0 and full.status_changes > 0
    assert full.rows_emitted == 1
    assert {"a", "b"} <= {node.name for node in full.nodes}
    assert all(node.bytes > 0 for node in full.nodes if node.rows)
    assert full.state_bytes >= sum(node.bytes for node in full.nodes)
    db.delete("g", [(1, 2), (2, 3)])
    assert hop.metrics().state_rows == 0
    assert db.table_metrics("g").bytes > 0


def test_multiplicities_beyond_64_bits_are_told_and_not_wrapped():
    with ev.connect() as db:
        db.execute("CREATE TABLE r (a INT, b INT); CREATE TABLE s (b INT, c INT)")
        view = db.create_view("v", "SELECT r.a, s.c FROM r JOIN s ON r.b = s.b")

        def load(b, r, s):
            rows = {"r": [{"a": 1, "b": b, "_multiplicity": r}], "s": [{"b": b, "c": 1, "_multiplicity": s}]}
            db.apply(rows, deltas=False)

        load(1, 2**31, 2**30)
        load(2, 2**31, 2**30)
        assert view.to_arrow(multiplicity=True).to_pylist() == [{"a": 1, "c": 1, "_multiplicity": 2**62}]
        load(3, 2**31, 2**31)
        assert view.count() == 2**63
        with pytest.raises(ev.ChangeError, match="2\\^63 times"):
            view.to_arrow(multiplicity=True)
