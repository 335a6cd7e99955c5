"""insert, delete, update, upsert; batches are sets of changes, judged by the state after them."""

import polars as pl
import pyarrow as pa
import pytest

import everview as ev


@pytest.fixture
def keyed(db):
    db.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, x STRING)")
    v = db.create_view("v", "SELECT id, x FROM t")
    db.insert("t", [(1, "a"), (2, "b"), (3, "c")])
    return v


@pytest.fixture
def plain(db):
    db.execute("CREATE TABLE t (a INT, b INT)")
    return db.create_view("v", "SELECT a, b FROM t")


@pytest.mark.parametrize(
    "keys",
    [
        [(1,), (3,)],
        [{"id": 1}, {"ID": 3}][:1] + [{"id": 3}],
        pa.table({"id": [1, 3]}),
        pl.DataFrame({"id": [1, 3]}),
        pa.table({"id": [1, 3]}).to_reader(),
    ],
    ids=["tuples", "dicts", "arrow", "polars", "reader"],
)
def test_delete_by_key(db, keyed, bag, keys):
    assert bag(db.delete("t", keys)["v"]) == [(1, "a", -1), (3, "c", -1)]
    assert bag(keyed.to_arrow()) == [(2, "b")]


def test_delete_by_key_of_any_capsule(db, keyed, bag):
    class Keys:
        def __arrow_c_stream__(self, requested_schema=None):
            return pa.table({"id": [2]}).__arrow_c_stream__(requested_schema)

    assert bag(db.delete("t", Keys())["v"]) == [(2, "b", -1)]


def test_delete_by_whole_row_needs_the_whole_row(db, keyed, bag):
    with pytest.raises(ev.ChangeError, match="row 0.*id=1, x=z") as refusal:
        db.delete("t", [(1, "z")])
    assert refusal.value.code == "ROW_NOT_FOUND"
    assert bag(db.delete("t", [(1, "a")])["v"]) == [(1, "a", -1)]


def test_delete_by_a_key_of_several_columns_in_any_order(db, bag):
    db.execute("CREATE TABLE t (x STRING, a INT, b INT, PRIMARY KEY (b, a))")
    v = db.create_view("v", "SELECT x FROM t")
    db.insert("t", [("p", 1, 2), ("q", 2, 1)])
    assert bag(db.delete("t", [(2, 1)])["v"]) == [("p", -1)]
    assert bag(db.delete("t", [{"a": 2, "b": 1}])["v"]) == [("q", -1)]
    assert v.count() == 0


def test_a_table_that_is_all_key_is_deleted_from_by_row(db, bag):
    db.execute("CREATE TABLE t (b INT, a INT, PRIMARY KEY (a, b))")
    db.create_view("v", "SELECT b, a FROM t")
    db.insert("t", [(1, 2)])
    assert bag(db.delete("t", [(1, 2)])["v"]) == [(1, 2, -1)]


def test_a_key_named_twice_is_deleted_once(db, keyed, bag):
    assert bag(db.delete("t", [(1,), (1,)])["v"]) == [(1, "a", -1)]


def test_update_replaces_by_key(db, keyed, bag):
    assert bag(db.update("t", [(1, "z"), (2, "b")])["v"]) == [(1, "a", -1), (1, "z", 1)]
    with pytest.raises(ev.ChangeError, match="row 1.*id=9") as refusal:
        db.update("t", [(2, "y"), (9, "y")])
    assert refusal.value.code == "ROW_NOT_FOUND"
    assert "upsert" in refusal.value.hint
    assert bag(keyed.to_arrow()) == [(1, "z"), (2, "b"), (3, "c")]


def test_upsert_inserts_and_replaces_and_the_last_wins(db, keyed, bag):
    assert bag(db.upsert("t", [(1, "p"), (9, "n"), (1, "q")])["v"]) == [(1, "a", -1), (1, "q", 1), (9, "n", 1)]


def test_upsert_of_equal_rows_is_no_change(db, keyed):
    assert db.upsert("t", [(1, "a")])["v"].num_rows == 0


@pytest.mark.parametrize("method", ["update", "upsert"])
def test_partial_rows_are_refused_instead_of_filled_with_null(db, keyed, bag, method):
    with pytest.raises(ev.ChangeError, match="lacks the column `x`") as refusal:
        getattr(db, method)("t", [{"id": 1}])
    assert refusal.value.code == "MISSING_COLUMN"
    with pytest.raises(ev.ChangeError, match="row 1.*lacks the column `x`"):
        getattr(db, method)("t", [{"id": 1, "x": "y"}, {"id": 2}])


@pytest.mark.parametrize("call", [lambda db: db.upsert("t", [(1, 1)]), lambda db: db.update("t", [(1, 1)])])
def test_updates_need_a_primary_key(db, plain, call):
    with pytest.raises(ev.ChangeError, match="`t`") as refusal:
        call(db)
    assert refusal.value.code == "NO_PRIMARY_KEY"
    assert "PRIMARY KEY" in refusal.value.hint


@pytest.mark.parametrize("method", ["insert", "delete", "update", "upsert"])
@pytest.mark.parametrize("form", [list, pa.Table.from_pylist, pl.DataFrame], ids=["dicts", "arrow", "polars"])
def test_change_columns_belong_to_apply(db, keyed, method, form):
    with pytest.raises(ev.ChangeError, match="_multiplicity") as refusal:
        getattr(db, method)("t", form([{"id": 1, "x": "a", "_multiplicity": -1}]))
    assert refusal.value.code == "UNEXPECTED_COLUMN"
    assert "apply" in refusal.value.hint
    assert keyed.count() == 3


# ---- a batch is a set of changes -------------------------------------------------------------------------------------


def changes(*rows):
    return [{"id": key, "x": x, "_multiplicity": sign} for sign, key, x in rows]


def test_delete_and_insert_of_one_row_is_nothing(db, keyed, state):
    before = state(db)
    assert db.apply({"t": changes((-1, 1, "a"), (1, 1, "a"))})["v"].num_rows == 0
    assert state(db) == before | {"version": before["version"] + 1}


def test_insert_and_delete_of_an_absent_row_is_nothing(db, keyed, state):
    before = state(db)
    assert db.apply({"t": changes((1, 7, "z"), (-1, 7, "z"))})["v"].num_rows == 0
    assert db.apply({"t": changes((-1, 7, "z"), (1, 7, "z"))})["v"].num_rows == 0
    assert state(db) == before | {"version": before["version"] + 2}


def test_the_order_within_a_batch_does_not_matter(db, keyed, bag):
    assert bag(db.apply({"t": changes((1, 1, "z"), (-1, 1, "a"))})["v"]) == [(1, "a", -1), (1, "z", 1)]


def test_keys_swap_between_rows(db, keyed, bag):
    delta = db.apply({"t": changes((-1, 1, "a"), (-1, 2, "b"), (1, 1, "b"), (1, 2, "a"))})["v"]
    assert bag(delta) == [(1, "a", -1), (1, "b", 1), (2, "a", 1), (2, "b", -1)]
    assert bag(db.upsert("t", [(1, "a"), (2, "b")])["v"]) == [(1, "a", 1), (1, "b", -1), (2, "a", -1), (2, "b", 1)]
    assert bag(db.delete("t", [(1,), (2,)])["v"]) == [(1, "a", -1), (2, "b", -1)]


def test_a_key_freed_by_the_batch_can_be_taken_by_it(db, keyed, bag):
    db.apply({"t": changes((1, 2, "new"), (-1, 2, "b"))})
    assert bag(keyed.to_arrow()) == [(1, "a"), (2, "new"), (3, "c")]
    assert bag(db.delete("t", [(2,)])["v"]) == [(2, "new", -1)]


# ---- bags ------------------------------------------------------------------------------------------------------------


def test_duplicates_count(db, plain, bag):
    assert bag(db.insert("t", [(1, 1), (1, 1), (2, 2)])["v"]) == [(1, 1, 2), (2, 2, 1)]
    assert bag(plain.to_arrow()) == [(1, 1), (1, 1), (2, 2)]
    assert plain.count() == 3
    assert bag(db.delete("t", [(1, 1)])["v"]) == [(1, 1, -1)]
    assert bag(plain.to_arrow(multiplicity=True)) == [(1, 1, 1), (2, 2, 1)]


def test_deleting_more_than_there_are(db, plain, state):
    db.insert("t", [(1, 1), (1, 1)])
    before = state(db)
    with pytest.raises(ev.ChangeError, match="table `t`, row 2.*a=1, b=1.*1 more") as refusal:
        db.delete("t", [(1, 1), (1, 1), (1, 1)])
    assert refusal.value.code == "ROW_NOT_FOUND"
    assert state(db) == before


def test_on_missing_ignore(db, plain, bag):
    db.insert("t", [(1, 1)])
    assert bag(db.delete("t", [(1, 1), (1, 1), (5, 5)], on_missing="ignore")["v"]) == [(1, 1, -1)]
    assert db.apply({"t": [{"a": 1, "b": 1, "_multiplicity": -1}]}, on_missing="ignore")["v"].num_rows == 0
    assert plain.count() == 0


def test_on_missing_ignore_by_key(db, keyed, bag):
    assert bag(db.delete("t", [(7,), (1,)], on_missing="ignore")["v"]) == [(1, "a", -1)]


def test_on_missing_is_one_of_two(db, plain):
    with pytest.raises(ev.ChangeError, match="on_missing") as refusal:
        db.delete("t", [(1, 1)], on_missing="skip")
    assert refusal.value.code == "INVALID_ARGUMENT"


def test_the_delta_of_a_join_is_net(db, bag):
    db.execute("CREATE TABLE r (a INT, b INT); CREATE TABLE s (b INT, c INT)")
    db.create_view("j", "SELECT r.a, s.c FROM r JOIN s ON r.b = s.b")
    db.insert("r", [(1, 1), (1, 1)])
    db.insert("s", [(1, 5)])
    delta = db.apply({"r": [{"a": 1, "b": 1, "_multiplicity": -1}], "s": [(1, 5)]})["j"]
    assert delta.num_rows == 0  # 2 x 1 before, 1 x 2 after


def test_rows_that_differ_by_null_differ(db, plain, bag):
    db.insert("t", [(1, None), (None, 1), (None, None), (None, None)])
    assert bag(db.delete("t", [(None, None), (1, None)])["v"]) == [(1, None, -1), (None, None, -1)]


def test_zero_and_nan_are_one_value_each(db):
    db.execute("CREATE TABLE f (x DOUBLE)")
    v = db.create_view("w", "SELECT x FROM f")
    db.insert("f", [(-0.0,), (float("nan"),)])
    db.delete("f", [(0.0,), (-float("nan"),)])
    assert v.count() == 0
