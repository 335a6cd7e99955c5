"""Net changes become inserts, deletes, and pairs of preimage and postimage."""

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from local_pipeline import LocalPipeline, batch_for
from watching import Watched

from everview.schema.datatype import BIGINT, STRING
from everview.schema.table import Column, Table
from everview.shards.changes import net, with_change_types
from everview.shards.normaliser import KeyedInput

PRE, POST = "update_preimage", "update_postimage"


def batch(*rows):
    """Rows (k, l, v, multiplicity)."""
    types = [pa.int64(), pa.string(), pa.float64(), pa.int64()]
    arrays = [pa.array([r[i] for r in rows], type=t) for i, t in enumerate(types)]
    return pa.RecordBatch.from_arrays(arrays, names=["k", "l", "v", "_multiplicity"])


def typed(rows, key):
    found = with_change_types(rows, key)
    assert found.schema.names == [*rows.schema.names[:-1], "_change_type"]
    return [tuple(r.values()) for r in found.to_pylist()]


def test_a_row_that_leaves_and_one_that_comes_with_its_key_are_an_update():
    rows = batch((1, "a", 2.0, 1), (2, "a", 0.0, -1), (1, "a", 1.0, -1), (3, "a", 0.0, 1))
    found = typed(rows, (0,))
    assert sorted(found, key=lambda r: r[0]) == [
        (1, "a", 1.0, PRE),
        (1, "a", 2.0, POST),
        (2, "a", 0.0, "delete"),
        (3, "a", 0.0, "insert"),
    ]


def test_all_columns_of_the_key_count():
    rows = batch((1, "a", 1.0, -1), (1, "b", 2.0, 1))
    assert typed(rows, (0, 1)) == [(1, "a", 1.0, "delete"), (1, "b", 2.0, "insert")]
    assert typed(rows, (0,)) == [(1, "a", 1.0, PRE), (1, "b", 2.0, POST)]


def test_without_a_key_nothing_is_paired_and_copies_are_repeated():
    rows = batch((1, "a", 1.0, -2), (1, "a", 2.0, 3), (2, None, None, 1))
    assert typed(rows, None) == [(1, "a", 1.0, "delete")] * 2 + [(1, "a", 2.0, "insert")] * 3 + [
        (2, None, None, "insert")
    ]


@pytest.mark.parametrize("null", [(None, "a"), (1, None), (None, None)])
def test_null_is_a_value_of_a_key(null):
    rows = batch((*null, 1.0, -1), (*null, 2.0, 1), (7, "z", 1.0, -1))
    assert Counter(typed(rows, (0, 1))) == Counter([(*null, 1.0, PRE), (*null, 2.0, POST), (7, "z", 1.0, "delete")])


def test_null_and_other_values_are_different_keys():
    rows = batch((None, "a", 1.0, -1), (0, "a", 2.0, 1), (None, "", 1.0, -1))
    assert {r[-1] for r in typed(rows, (0, 1))} == {"insert", "delete"}


def test_zeros_are_one_key_whatever_their_sign_and_so_are_nans():
    rows = batch((1, "a", 0.0, -1), (2, "a", -0.0, 1), (3, "a", float("nan"), 1), (4, "a", float("nan"), -1))
    assert [r[-1] for r in typed(rows, (2,))] == [PRE, POST] * 2


def test_the_empty_key_is_that_of_a_single_row():
    assert typed(batch((1, "a", 1.0, 1), (0, None, None, -1)), ()) == [(0, None, None, PRE), (1, "a", 1.0, POST)]
    assert typed(batch((1, "a", 1.0, 1)), ()) == [(1, "a", 1.0, "insert")]
    assert typed(batch((1, "a", 1.0, -1)), ()) == [(1, "a", 1.0, "delete")]


@pytest.mark.parametrize("key", [None, (), (0,)])
def test_no_rows_are_no_changes(key):
    assert typed(batch(), key) == []


values = st.tuples(
    st.sampled_from([None, 0, 1, 2]), st.sampled_from([None, "", "a"]), st.sampled_from([None, 0.0, 1.5, float("nan")])
)


def plain(row):
    return tuple("NaN" if v != v else v for v in row)


@settings(max_examples=60)
@given(old=st.lists(values, max_size=12), new=st.lists(values, max_size=12))
def test_states_told_apart_by_a_key_turn_into_each_other(old, new):
    """Old and new rows by key: what both have stays out, a key that both have is updated, the rest comes or goes."""
    before, after = ({(k, s): (k, s, v) for k, s, v in rows} for rows in (old, new))
    changes = net(batch(*((*r, -1) for r in before.values()), *((*r, 1) for r in after.values())))
    expected = {}
    for key in before.keys() | after.keys():
        one, two = before.get(key), after.get(key)
        if one is not None and two is not None:
            expected[key] = [] if plain(one) == plain(two) else [(*plain(one), PRE), (*plain(two), POST)]
        else:
            expected[key] = [(*plain(one), "delete")] if one else [(*plain(two), "insert")]
    found = {}
    for row in typed(changes, (0, 1)):
        found.setdefault(row[:2], []).append(plain(row))
    assert found == {key: rows for key, rows in expected.items() if rows}


@settings(max_examples=60)
@given(st.lists(st.tuples(values, st.integers(-3, 3)), max_size=20))
def test_net_changes_add_up_without_zeros_or_equal_rows(rows):
    expected = Counter()
    for row, count in rows:
        expected[plain(row)] += count
    found = [tuple(r.values()) for r in net(batch(*((*r, n) for r, n in rows))).to_pylist()]
    assert {plain(r[:-1]): r[-1] for r in found} == {row: n for row, n in expected.items() if n}
    assert len(found) == len({plain(r[:-1]) for r in found})
    copies = Counter(plain(r) for r in typed(net(batch(*((*r, n) for r, n in rows))), None))
    assert copies == {(*row, "insert" if n > 0 else "delete"): abs(n) for row, n in expected.items() if n}


# ---- as they leave a pipeline ----------------------------------------------------------------------------------------

T = Table("t", (Column("g", BIGINT), Column("x", BIGINT)))
U = Table("u", (Column("g", BIGINT), Column("s", STRING)))


def kinds(batches):
    return sorted((r["_change_type"] for b in batches for r in b.to_pylist()))


@pytest.mark.parametrize("shards", [1, 2, 4, 7])
def test_groups_are_updated_and_come_and_go(shards):
    run = Watched("SELECT u.s, SUM(t.x) AS n FROM t JOIN u ON t.g = u.g GROUP BY u.s", [T, U], shards)
    run.step([("u", (g, [None, "a", "b"][g % 3]), 1) for g in range(6)])
    assert kinds(run.step([("t", (g, 1), 1) for g in (0, 1, 4)], change_types=True)) == ["insert", "insert"]
    changes = [("t", (0, 1), -1), ("t", (1, 5), 1), ("t", (4, 5), 1), ("t", (2, 1), 1)]
    assert kinds(run.step(changes, change_types=True)) == ["delete", "insert", POST, PRE]
    assert run.step([("t", (1, 5), -1), ("t", (4, 5), -1), ("t", (1, 10), 1)], change_types=True) == []


@pytest.mark.parametrize("shards", [1, 2, 4, 7])
def test_the_row_of_an_aggregate_without_groups_is_inserted_once_and_then_updated(shards):
    run = Watched("SELECT COUNT(*) AS n FROM t JOIN u ON t.g = u.g", [T, U], shards)
    assert kinds(run.step([], change_types=True)) == ["insert"]
    changes = [("t", (g, 1), 1) for g in range(9)] + [("u", (g, "a"), 1) for g in range(9)]
    assert kinds(run.step(changes, change_types=True)) == [POST, PRE]
    assert run.rows == [(9,)]


@pytest.mark.parametrize("shards", [1, 2, 4, 7])
def test_a_row_that_moves_to_another_shard_is_updated(shards):
    """The join variable is no part of the output: what leaves one shard comes on another, with the key of the other."""
    keyed = Table("k", (Column("id", BIGINT, False), Column("g", BIGINT)), ("id",))
    other = Table("o", (Column("g", BIGINT, False), Column("s", STRING)), ("g",))
    sql = "SELECT k.id, o.s FROM k JOIN o ON k.g = o.g"
    run = Watched(sql, [keyed, other], shards)
    assert run.run.layout.key == ("id",)
    run.step([("k", (i, i), 1) for i in range(9)] + [("o", (i, f"s{i}"), 1) for i in range(9)])
    moved = [change for i in range(8) for change in (("k", (i, i), -1), ("k", (i, i + 1), 1))]
    assert Counter(kinds(run.step(moved, change_types=True))) == {PRE: 8, POST: 8}


@pytest.mark.parametrize("shards", [1, 2, 4, 7])
def test_a_group_whose_dependent_key_changes_is_updated(shards):
    """The customer's key determines the name, so a new name is an update, wherever the groups are merged."""
    customers = Table("c", (Column("ck", BIGINT, False), Column("name", STRING)), ("ck",))
    orders = Table("o", (Column("ok", BIGINT, False), Column("ck", BIGINT)), ("ok",))
    lines = Table("l", (Column("ok", BIGINT), Column("q", BIGINT)))
    sql = "SELECT c.ck, c.name, SUM(l.q) AS q FROM c, o, l WHERE c.ck = o.ck AND o.ok = l.ok GROUP BY c.ck, c.name"
    inputs = {t.name: KeyedInput(t) for t in (customers, orders)}
    pipeline = LocalPipeline(sql, [customers, orders, lines], shards, inputs, sizes={"c": 1e6, "o": 1e6, "l": 1e6})
    first = {
        "c": batch_for(customers, [(k, f"n{k}", 1) for k in range(20)]),
        "o": batch_for(orders, [(k, k % 20, 1) for k in range(100)]),
        "l": batch_for(lines, [(k % 100, 1, 1) for k in range(300)]),
    }
    pipeline.step(first)
    renamed = {"c": batch_for(customers, [(k, f"n{k}", -1) for k in range(20)] + [(k, f"m{k}", 1) for k in range(20)])}
    kinds = Counter(r["_change_type"] for b in pipeline.step(renamed, change_types=True) for r in b.to_pylist())
    assert kinds == {PRE: 20, POST: 20}
