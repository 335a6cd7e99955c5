"""Deletes of absent rows: set aside once, whatever the number of shards and copies, while the rest of the batch is applied."""

import json
from collections import Counter

import pytest
from fuzzing import examples
from hypothesis import given
from hypothesis import strategies as st
from local_pipeline import LocalPipeline, add_up, batch_for
from watching import keyed_as

from everview.errors import ChangeError
from everview.schema.datatype import BIGINT, DATE, STRING
from everview.schema.table import Column, Table
from everview.shards.bad_rows import BadRow, DeadLetterFile

T = Table("t", (Column("g", BIGINT), Column("x", BIGINT), Column("s", STRING)))
U = Table("u", (Column("g", BIGINT), Column("d", DATE)))
K = Table("k", (Column("id", BIGINT, False), Column("g", BIGINT)), ("id",))
QUERIES = {
    "join": ("SELECT t.x, u.d FROM t JOIN u ON t.g = u.g", [T, U]),
    "replicated": (
        "SELECT t.x, u.d, w.x AS y FROM t, u, t w WHERE t.g = u.g AND u.d IS NOT NULL AND t.x = w.x",
        [T, U],
    ),
    "copies spread in two ways": ("SELECT a.s, b.s AS z FROM t a, t b WHERE a.g = b.x", [T]),
    "a path": ("SELECT a.x, b.s, c.s AS z FROM t a, t b, t c WHERE a.g = b.g AND b.x = c.x", [T]),
    "cross": ("SELECT t.x, u.g FROM t CROSS JOIN u", [T, U]),
    "sum": ("SELECT SUM(t.x) AS n FROM t JOIN u ON t.g = u.g", [T, U]),
    "one column": ("SELECT DISTINCT s FROM t", [T]),
    "filtered": ("SELECT t.x FROM t JOIN u ON t.g = u.g WHERE t.x > 100", [T, U]),
}
SHARDS = range(1, 8)


def letters(directory):
    """The lines of all dead-letter files."""
    return [json.loads(line) for path in sorted(directory.rglob("*.jsonl")) for line in path.read_text().splitlines()]


def quarantining(name, shards, directory, **options):
    sql, tables = QUERIES[name]
    return LocalPipeline(sql, tables, shards, whole_rows=True, dead_letters=str(directory), **options)


@pytest.mark.parametrize("shards", SHARDS)
@pytest.mark.parametrize("name", QUERIES)
def test_a_bad_row_is_set_aside_once_and_the_rest_is_applied(name, shards, tmp_path):
    run, plain = quarantining(name, shards, tmp_path), LocalPipeline(*QUERIES[name], shards)
    good = [(g, x, "a", 1) for g in range(3) for x in range(3)] + [(1, 1, "a", -1)]
    bad = [(7, 7, "b", -1), (0, 1, "z", -3), (None, None, None, -1)]
    others = {"u": batch_for(U, [(g, None, 1) for g in range(3)])} if U in QUERIES[name][1] else {}
    total = add_up(Counter(), run.step({"t": batch_for(T, good + bad)} | others, parts=3))
    assert total == add_up(Counter(), plain.step({"t": batch_for(T, good)} | others))
    found = Counter((r["table"], r["code"], r["batch"], *r["row"].values(), r["reason"]) for r in letters(tmp_path))
    reason = "cannot delete it: {} more than the table holds"
    assert found == Counter([("t", "ROW_NOT_FOUND", 0, *row[:3], reason.format(-row[3])) for row in bad])
    assert set(letters(tmp_path)[0]["row"]) == {"g", "x", "s"}


@pytest.mark.parametrize("shards", [1, 3, 7])
def test_of_a_row_deleted_too_often_what_is_there_goes(shards, tmp_path):
    run = quarantining("a path", shards, tmp_path)
    total = add_up(Counter(), run.step({"t": batch_for(T, [(1, 1, "a", 2)])}))
    assert total == {(1, "a", "a"): 8}
    assert add_up(total, run.step({"t": batch_for(T, [(1, 1, "a", -3), (1, 1, "a", -2), (1, 1, "a", 1)])})) == {}
    assert [r["reason"] for r in letters(tmp_path)] == ["cannot delete it: 2 more than the table holds"]
    assert run.rows_held() == 0


rows = st.tuples(st.sampled_from([None, 0, 1]), st.sampled_from([None, 0, 1]), st.sampled_from([None, "a"]))
batches = st.lists(
    st.lists(st.tuples(rows, st.sampled_from([1, 1, 2, -1, -1, -3])), max_size=8), min_size=1, max_size=4
)


@examples(25)
@given(
    given_batches=batches,
    name=st.sampled_from(["copies spread in two ways", "a path", "one column"]),
    shards=st.integers(1, 7),
    losses=st.booleans(),
)
def test_engines_agree_on_what_is_bad(given_batches, name, shards, losses, tmp_path_factory):
    directory = tmp_path_factory.mktemp("letters")
    run, plain = quarantining(name, shards, directory, workers=2), LocalPipeline(*QUERIES[name], 1)
    held, total, wanted, expected = Counter(), Counter(), Counter(), Counter()
    for number, batch in enumerate(given_batches):
        net = Counter()
        for row, n in batch:
            net[row] += n
        accepted = []
        for row, n in net.items():
            if held[row] + n < 0:
                expected[number, row] += 1
            if (n := max(n, -held[row])) != 0:
                accepted.append((*row, n))
                held[row] += n
        if losses:
            run.lose_workers()
        add_up(total, run.step({"t": batch_for(T, [(*row, n) for row, n in batch])}, parts=2))
        add_up(wanted, plain.step({"t": batch_for(T, accepted)}))
        assert total == wanted
    assert Counter((r["batch"], tuple(r["row"].values())) for r in letters(directory)) == expected


def test_a_replayed_batch_replaces_its_letters(tmp_path):
    run = quarantining("join", 2, tmp_path)
    run.step({"t": batch_for(T, [(1, 1, "a", -1), (2, 2, "a", -1)])})
    first = letters(tmp_path)
    run.stores, run.batch = {}, 0
    run.step({"t": batch_for(T, [(1, 1, "a", -1), (2, 2, "a", -1)])})
    assert letters(tmp_path) == first
    assert len(first) == 2
    run.stores, run.batch = {}, 0
    run.step({"t": batch_for(T, [(1, 1, "a", 1)])})
    assert letters(tmp_path) == []


def test_restoring_an_engine_writes_no_letters(tmp_path):
    run = quarantining("join", 2, tmp_path)
    run.step({"t": batch_for(T, [(1, 1, "a", -1)])})
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.jsonl")}
    run.lose_workers()
    run.step({"t": batch_for(T, [(1, 1, "a", 1)])})
    assert set(run.sources) == {"rebuilt"}
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.jsonl")} == files


def test_letters_of_batches_and_places_are_apart_and_leave_nothing_half_written(tmp_path):
    batch = 3
    one, two = (DeadLetterFile(str(tmp_path), place, lambda: batch) for place in ("shard-000", "shard-001"))
    one.write([BadRow("t", "CODE", "why", {"a": 1})])
    two.write([BadRow("t", "CODE", "why", {"a": 2}), BadRow("t", "CODE", "why", {"a": 3})])
    batch = 4
    one.write([BadRow("t", "CODE", "why", {"a": 4})])
    assert [r["row"]["a"] for r in letters(tmp_path)] == [1, 2, 3, 4]
    assert sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()) == [
        "batch=0000000003/shard-000.jsonl",
        "batch=0000000003/shard-001.jsonl",
        "batch=0000000004/shard-000.jsonl",
    ]
    one.write([])
    one.write([])
    assert [r["row"]["a"] for r in letters(tmp_path)] == [1, 2, 3]


@pytest.mark.parametrize("shards", SHARDS)
def test_bad_rows_of_a_keyed_table_are_set_aside_by_its_key(shards, tmp_path):
    sql = "SELECT a.id, b.id AS other FROM k a, k b WHERE a.g = b.id"
    run = LocalPipeline(sql, [K], shards, {"k": keyed_as("images", K)}, whole_rows=True, dead_letters=str(tmp_path))
    total = add_up(Counter(), run.step({"k": batch_for(K, [(i, i + 1, 1) for i in range(5)])}))
    assert total == {(i, i + 1): 1 for i in range(4)}
    bad = [(0, 3, 1), (9, 9, -1), (None, 1, 1)]
    add_up(total, run.step({"k": batch_for(K, [*bad, (5, 0, 1), (1, 2, -1)])}, parts=2))
    assert total == {(i, (i + 1) % 6): 1 for i in (2, 3, 4, 5)}
    found = {(r["code"], r["row"]["id"], r["batch"]) for r in letters(tmp_path)}
    assert found == {("DUPLICATE_KEY", 0, 1), ("ROW_NOT_FOUND", 9, 1), ("NULL_NOT_ALLOWED", None, 1)}
    assert len(letters(tmp_path)) == 3


@pytest.mark.parametrize("shards", SHARDS)
@pytest.mark.parametrize("whole_rows", [True, False])
@pytest.mark.parametrize("name", ["copies spread in two ways", "join", "sum"])
def test_without_a_place_for_them_the_first_one_is_refused_by_table_and_row(name, whole_rows, shards):
    sql, tables = QUERIES[name]
    run = LocalPipeline(sql, tables, shards, whole_rows=whole_rows)
    with pytest.raises(ChangeError) as caught:
        run.step({"t": batch_for(T, [(5, 6, "b", -1), (1, 1, "a", 1)])})
    assert caught.value.code == "ROW_NOT_FOUND"
    assert caught.value.parameters["table"] == "t"
    assert "table `t`: cannot delete (" in str(caught.value)
    assert "x=6" in str(caught.value) or "g=5" in str(caught.value)
    assert not whole_rows or "(g=5, x=6, s=b)" in str(caught.value)
    assert "t_" not in str(caught.value)
    assert run.stores == {}


def test_a_refusal_does_not_show_the_hash_of_columns_that_the_view_does_not_read():
    run = LocalPipeline(*QUERIES["join"], 2)
    with pytest.raises(ChangeError) as caught:
        run.step({"t": batch_for(T, [(5, 6, "b", -1)])})
    assert "_rest" not in str(caught.value)


def test_the_advice_for_a_bad_row_is_one_that_a_pipeline_can_take():
    run = LocalPipeline(*QUERIES["join"], 2)
    with pytest.raises(ChangeError) as caught:
        run.step({"t": batch_for(T, [(5, 6, "b", -1)])})
    assert "on_missing" not in caught.value.hint
    assert "on_bad_rows='quarantine'" in caught.value.hint
