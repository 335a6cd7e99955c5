"""Whatever refuses a batch, the state is as before and the error says which table, which row and why."""

import datetime as dt
import random

import pyarrow as pa
import pytest

import everview as ev

SCHEMA = """
CREATE TABLE k (id BIGINT PRIMARY KEY, g INT NOT NULL, x BIGINT, s STRING);
CREATE TABLE b (id BIGINT, y INT NOT NULL, v VARCHAR(4))
"""


@pytest.fixture
def loaded(db):
    db.execute(SCHEMA)
    db.create_view("joined", "SELECT k.id, k.s, b.y FROM k JOIN b ON k.id = b.id")
    db.create_view("sums", "SELECT g, COUNT(*) AS n, SUM(x) AS total FROM k GROUP BY g")
    db.create_view("ratio", "SELECT id FROM k WHERE 100 / x > 1")
    db.create_view("upper", "SELECT DISTINCT UPPER(s) AS u FROM k")
    db.insert("k", [(1, 1, 10, "a"), (2, 1, 20, "b"), (3, 2, 30, "c")])
    db.insert("b", [(1, 1, "p"), (1, 1, "p"), (2, 5, "q"), (4, 5, None)])
    return db


GOOD = {"b": [(3, 9, "new"), (3, 9, "new")]}
# name: (the second table's batch, code, row)
REFUSED = {
    "absent row": ("k", [{"id": 9, "g": 1, "x": 1, "s": "z", "_multiplicity": -1}], "ROW_NOT_FOUND", 0),
    "row that differs": ("k", [{"id": 1, "g": 1, "x": 10, "s": "z", "_multiplicity": -1}], "ROW_NOT_FOUND", 0),
    "key that is there": ("k", [(7, 1, 1, "z"), (1, 1, 1, "z")], "DUPLICATE_KEY", 1),
    "key twice in the batch": ("k", [(7, 1, 1, "z"), (7, 1, 2, "z")], "DUPLICATE_KEY", 1),
    "row twice in a keyed table": ("k", [(7, 1, 1, "z"), (8, 1, 1, "z"), (8, 1, 1, "z")], "DUPLICATE_KEY", 1),
    "row that is there in a keyed table": ("k", [(1, 1, 10, "a")], "DUPLICATE_KEY", 0),
    "key still taken after a delete of another": (
        "k",
        [
            {"id": 2, "g": 1, "x": 20, "s": "b", "_multiplicity": -1},
            {"id": 1, "g": 1, "x": 1, "s": "z", "_multiplicity": 1},
        ],
        "DUPLICATE_KEY",
        1,
    ),
    "NULL in a NOT NULL column": ("k", [(7, 1, 1, "z"), (8, None, 1, "z")], "NULL_NOT_ALLOWED", 1),
    "NULL in the key": ("k", [(None, 1, 1, "z")], "NULL_NOT_ALLOWED", 0),
    "wrong type": ("k", [(7, 1, 1, "z"), (8, "x", 1, "z")], "WRONG_TYPE", 1),
    "unknown column": ("k", [{"id": 7, "g": 1, "q": 1}], "UNKNOWN_COLUMN", 0),
    "missing column": ("k", [{"id": 7}], "MISSING_COLUMN", None),
    "too few values": ("k", [(7, 1, 1, "z"), (8, 1)], "COLUMN_COUNT", 1),
    "division by zero in a WHERE": ("k", [(7, 1, 1, "z"), (8, 1, 0, "z")], "DIVIDE_BY_ZERO", 1),
    "change type of no meaning": ("k", [{"id": 7, "g": 1, "_change_type": "merge"}], "INVALID_CHANGE", 0),
    "change type NULL": ("k", [{"id": 7, "g": 1, "_change_type": None}], "INVALID_CHANGE", 0),
    "multiplicity NULL": ("k", [{"id": 7, "g": 1, "_multiplicity": None}], "INVALID_CHANGE", 0),
    "multiplicity and change type": (
        "k",
        [{"id": 7, "g": 1, "_multiplicity": 1, "_change_type": "insert"}],
        "AMBIGUOUS_CHANGE",
        None,
    ),
    "sum that overflows": ("k", [(7, 1, 2**63 - 1, "z")], "ARITHMETIC_OVERFLOW", None),
    "column twice": (
        "k",
        pa.table([[7], [1], [1], [1], ["z"]], names=["id", "g", "x", "X", "s"]),
        "DUPLICATE_COLUMN",
        None,
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_batch_changes_nothing(loaded, state, case):
    table, rows, code, row = REFUSED[case]
    before = state(loaded)
    with pytest.raises(ev.ChangeError) as refusal:
        loaded.apply(GOOD | {table: rows})
    error = refusal.value
    assert error.code == code
    assert isinstance(error, ev.EverviewError)
    assert f"[{code}]" in str(error)
    assert error.hint
    if code != "ARITHMETIC_OVERFLOW":  # met while propagating: no single row is to blame
        assert "`k`" in str(error)
        assert error.parameters["table"] == "k"
    if row is not None:
        assert error.parameters["row"] == row
        assert f"row {row}" in str(error)
    assert state(loaded) == before
    _key_index_still_works(loaded)


def _key_index_still_works(db):
    """Every key is found, every other is free; then all is put back."""
    rows = db.table_rows("k").drop_columns("_multiplicity")
    assert db.delete("k", rows.select(["id"]))["ratio"].num_rows <= rows.num_rows
    db.insert("k", [(key, 5, 5, "free") for key in (7, 8, 9)])
    db.delete("k", [(7,), (8,), (9,)])
    db.insert("k", rows)
    with pytest.raises(ev.ChangeError):
        db.insert("k", rows)


def test_unknown_tables(loaded, state):
    before = state(loaded)
    with pytest.raises(ev.SchemaError, match="no table `nope`") as refusal:
        loaded.apply(GOOD | {"nope": []})
    assert refusal.value.code == "UNKNOWN_TABLE"
    assert "k, b" in refusal.value.hint
    with pytest.raises(ev.SchemaError):
        loaded.apply({5: []})
    assert state(loaded) == before


def test_a_table_named_twice(loaded):
    with pytest.raises(ev.ChangeError, match="twice"):
        loaded.apply({"k": [], "K": []})


def test_the_result_goes_on_after_many_refusals(loaded, bag):
    random.seed(1)
    names = list(REFUSED)
    for _ in range(200):
        table, rows, _, _ = REFUSED[random.choice(names)]
        with pytest.raises(ev.ChangeError):
            loaded.apply(GOOD | {table: rows})
    assert bag(loaded.apply(GOOD)["joined"]) == [(3, "c", 9, 2)]
    loaded.delete("k", [(1,), (2,), (3,)])
    loaded.delete("b", loaded.table_rows("b").drop_columns("_multiplicity").take([0, 1, 2, 3]), on_missing="ignore")
    rest = loaded.table_rows("b").rename_columns(["id", "y", "v", "n"])
    loaded.apply({"b": [{"id": r["id"], "y": r["y"], "v": r["v"], "_multiplicity": -r["n"]} for r in rest.to_pylist()]})
    assert all(view.metrics().state_rows == 0 for view in loaded.views.values())


# ---- messages --------------------------------------------------------------------------------------------------------


def message_of(call, *arguments):
    with pytest.raises(ev.ChangeError) as refusal:
        call(*arguments)
    return refusal.value


def test_timestamps_are_shown(db):
    db.execute("CREATE TABLE t (ts TIMESTAMP, d DATE); CREATE TABLE k (ts TIMESTAMP PRIMARY KEY)")
    at = dt.datetime(2024, 1, 2, 3, 4, 5, 600000, tzinfo=dt.UTC)
    assert "(ts=2024-01-02 03:04:05.600, d=2024-01-02)" in str(message_of(db.delete, "t", [(at, at.date())]))
    assert "(ts=NULL, d=NULL)" in str(message_of(db.delete, "t", [(None, None)]))
    assert "(ts=2024-01-02 03:04:05.600)" in str(message_of(db.insert, "k", [(at,), (at,)]))


@pytest.mark.parametrize("text", ["x" * 100_000, "žluťoučký kůň\n" * 5000])
def test_long_values_are_cut(db, text):
    db.execute("CREATE TABLE t (s STRING, i INT, v VARCHAR(3)); CREATE TABLE k (s STRING PRIMARY KEY)")
    batch = pa.table({"s": [text], "i": [text], "v": [text]})
    for error in (
        message_of(db.delete, "t", [(text, None, None)]),
        message_of(db.insert, "k", [(text,), (text,)]),
        message_of(db.insert, "t", [("a", text, "b")]),
        message_of(db.insert, "t", [("a", 1, text)]),
        message_of(db.insert, "t", [(b"x" * 100_000, 1, "b")]),
        message_of(db.insert, "t", [{text: 1}]),
        message_of(db.insert, "t", pa.table({text: [1]})),
        message_of(db.apply, {"t": [{"s": "a", "_change_type": text}]}),
        message_of(db.apply, {"t": batch}),
    ):
        assert len(str(error)) < 1000, error.code


TWICE = {
    "rows": [(1, 1), (1, 2)],
    "one row": [(1, 1), (1, 1)],
    "one row with its number": [{"id": 1, "x": 1, "_multiplicity": 2}],
    "in the place of one that leaves": [
        {"id": 5, "x": 5, "_multiplicity": -1},
        {"id": 5, "x": 6, "_multiplicity": 1},
        {"id": 5, "x": 7, "_multiplicity": 1},
    ],
}


@pytest.mark.parametrize("case", TWICE)
def test_a_key_twice_in_one_batch_says_so(db, case):
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, x INT)")
    db.insert("t", [(5, 5)])
    error = message_of(db.apply, {"t": TWICE[case]})
    assert error.code == "DUPLICATE_KEY" and "the batch has the primary key" in str(error) and "upsert" in error.hint
    for rows in ([(5, 5)], [(5, 6)], [(1, 1), (5, 9)]):
        assert "(id=5) is there already" in str(message_of(db.insert, "t", rows))


# ---- overflow met while propagating ----------------------------------------------------------------------------------


@pytest.mark.parametrize("deltas", [True, False])
@pytest.mark.parametrize("order", [("first", "sums"), ("sums", "first")])
def test_an_overflow_in_any_view_is_undone_in_all(db, state, order, deltas):
    db.execute("CREATE TABLE t (g INT, x BIGINT, s STRING); CREATE TABLE u (g INT)")
    queries = {
        "first": "SELECT g, COUNT(*) AS n, SUM(CAST(x AS DOUBLE)) AS d FROM t GROUP BY g",
        "sums": "SELECT t.g, SUM(t.x) AS total FROM t JOIN u ON t.g = u.g GROUP BY t.g",
    }
    for name in order:
        db.create_view(name, queries[name])
    db.create_view("rows", "SELECT t.s, u.g FROM t JOIN u ON t.g = u.g")
    db.apply({"t": [(1, 2**62, "a"), (2, 5, "b")], "u": [(1,), (2,)]})
    before = state(db)
    for batch in ({"t": [(1, 2**62, "c")]}, {"u": [(1,)]}, {"t": [(3, 1, "d")], "u": [(1,), (3,)]}):
        with pytest.raises(ev.ChangeError, match="`sums`") as refusal:
            db.apply(batch, deltas=deltas)
        assert refusal.value.code == "ARITHMETIC_OVERFLOW"
        assert state(db) == before
    delta = db.apply({"t": [(1, 2**62 - 1, "c")]})["sums"].to_pylist()
    assert sorted((d["total"], d["_multiplicity"]) for d in delta) == [(2**62, -1), (2**63 - 1, 1)]


def test_decimal_sums_overflow_as_others(db, state):
    db.execute("CREATE TABLE t (g INT, x DECIMAL(38, 0))")
    db.create_view("plain", "SELECT g, x FROM t")
    db.create_view("sums", "SELECT g, SUM(x) AS total FROM t GROUP BY g")
    db.insert("t", [(1, 10**38 - 1), (2, 5)])
    before = state(db)
    with pytest.raises(ev.ChangeError) as refusal:
        db.insert("t", [(1, 1), (2, 1)])
    assert refusal.value.code in ("ARITHMETIC_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE")
    assert state(db) == before
    assert (
        db.apply({"t": [{"g": 1, "x": 1, "_multiplicity": 1}, {"g": 1, "x": 10**38 - 1, "_multiplicity": -1}]})[
            "sums"
        ].num_rows
        == 2
    )


@pytest.mark.parametrize("query", ["SELECT SUM(x) AS total FROM t", "SELECT x + x AS y FROM t"])
def test_a_view_that_could_not_be_read_is_not_created(db, query):
    db.execute("CREATE TABLE t (x BIGINT)")
    db.insert("t", [(2**63 - 1,), (1,)])
    with pytest.raises(ev.ChangeError) as refusal:
        db.create_view("v", query)
    assert refusal.value.code == "ARITHMETIC_OVERFLOW"
    assert db.views == {}
    db.create_view("v", "SELECT COUNT(*) AS n FROM t")


def test_an_error_in_the_select_list_refuses_the_batch(db, state):
    db.execute("CREATE TABLE r (a INT, x INT); CREATE TABLE s (a INT, y INT)")
    v = db.create_view("v", "SELECT r.x / s.y AS q FROM r JOIN s ON r.a = s.a")
    db.apply({"r": [(1, 10)], "s": [(1, 5), (2, 0)]})
    before = state(db)
    with pytest.raises(ev.ChangeError) as refusal:
        db.insert("r", [(2, 1)])
    assert refusal.value.code == "DIVIDE_BY_ZERO"
    assert refusal.value.hint
    assert state(db) == before
    assert [row.q for row in v] == [2.0]


def test_an_error_in_the_select_list_refuses_the_batch_also_without_deltas(db):
    db.execute("CREATE TABLE r (a INT, x INT); CREATE TABLE s (a INT, y INT)")
    v = db.create_view("v", "SELECT r.x / s.y AS q FROM r JOIN s ON r.a = s.a")
    db.apply({"s": [(2, 0)]})
    with pytest.raises(ev.ChangeError):
        db.insert("r", [(2, 1)], deltas=False)
    assert v.count() == 0


@pytest.mark.parametrize("counts", [[2**63 - 1], [2**61, 2**62], [-(2**63)], [2**62, 2**62, -(2**62)]])
def test_multiplicities_that_could_leave_their_range_are_refused(db, state, counts):
    db.execute("CREATE TABLE t (a INT)")
    v = db.create_view("v", "SELECT a FROM t")
    db.apply({"t": [{"a": 1, "_multiplicity": 2**61}]})
    before = state(db)
    with pytest.raises(ev.ChangeError, match="`t`") as refusal:
        db.apply({"t": [{"a": 1, "_multiplicity": n} for n in counts]})
    assert refusal.value.code == "TOO_MANY_ROWS"
    assert refusal.value.hint
    assert state(db) == before
    db.apply({"t": [{"a": 1, "_multiplicity": 2**61}]})
    assert v.count() == 2**62


def test_a_bug_in_the_kernel_ends_the_session(db):
    """A commit that failed half way must not be answered from."""
    db.execute("CREATE TABLE t (a INT)")
    v = db.create_view("v", "SELECT a FROM t")

    class Broken:
        def commit(self, *_):
            class PanicException(BaseException):
                pass

            raise PanicException("index out of bounds")

    db._state.kernel = Broken()
    with pytest.raises(ev.InternalError, match="index out of bounds"):
        db.insert("t", [(1,)])
    for call in (v.to_arrow, v.count, lambda: db.insert("t", [(1,)]), lambda: db.views):
        with pytest.raises(ev.SessionError) as refusal:
            call()
        assert refusal.value.code == "SESSION_FAILED"
