"""Deletes of absent rows: set aside once, whatever the number of shards and copies, while the rest of the batch is applied."""

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from local_pipeline import LocalPipeline, add_up, batch_for, carrying
from watching import MODES, ORDER, keyed_as

from everview.errors import ChangeError
from everview.schema.datatype import BIGINT, DATE, STRING
from everview.schema.table import Column, Table
from everview.shards.bad_rows import BadRow, DeadLetterFile
from everview.shards.blob import by_number, unpack
from everview.shards.carried import ROW

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
    return LocalPipeline(sql, tables, shards, dead_letters=str(directory), **options)


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


@settings(max_examples=25)
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
    run = LocalPipeline(sql, [K], shards, {"k": keyed_as("images", K)}, dead_letters=str(tmp_path))
    total = add_up(Counter(), run.step({"k": batch_for(K, [(i, i + 1, 1) for i in range(5)])}))
    assert total == {(i, i + 1): 1 for i in range(4)}
    bad = [(0, 3, 1), (9, 9, -1), (None, 1, 1)]
    add_up(total, run.step({"k": batch_for(K, [*bad, (5, 0, 1), (1, 2, -1)])}, parts=2))
    assert total == {(i, (i + 1) % 6): 1 for i in (2, 3, 4, 5)}
    found = {(r["code"], r["row"]["id"], r["batch"]) for r in letters(tmp_path)}
    assert found == {("DUPLICATE_KEY", 0, 1), ("ROW_NOT_FOUND", 9, 1), ("NULL_NOT_ALLOWED", None, 1)}
    assert len(letters(tmp_path)) == 3


@pytest.mark.parametrize("shards", SHARDS)
@pytest.mark.parametrize("name", ["copies spread in two ways", "join", "sum"])
def test_without_a_place_for_them_the_first_one_is_refused_by_table_and_row(name, shards):
    sql, tables = QUERIES[name]
    run = LocalPipeline(sql, tables, shards)
    with pytest.raises(ChangeError) as caught:
        run.step({"t": batch_for(T, [(5, 6, "b", -1), (1, 1, "a", 1)])})
    assert caught.value.code == "ROW_NOT_FOUND"
    assert caught.value.parameters["table"] == "t"
    assert "table `t`: cannot delete (" in str(caught.value)
    assert "x=6" in str(caught.value) or "g=5" in str(caught.value)
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


# ---- fail and quarantine on the same state ---------------------------------------------------------------------------

KEYED = Table("k", (Column("id", BIGINT, False), Column("g", BIGINT), Column("unread", STRING)), ("id",))


def keyed_batch(mode, rows):
    """Rows (id, g, unread, whether they stay) as the input has them; what comes later has the higher sequence."""
    if not mode.startswith("images"):
        given = [(*row, *(n for _ in ORDER[mode]), live) for n, (*row, live) in enumerate(rows)]
        return batch_for(KEYED, given, (*ORDER[mode], "_live"))
    table = keyed_as(mode, KEYED).table
    return batch_for(table, [(*row, *[len(row[2])] * (table is not KEYED), 1 if live else -1) for *row, live in rows])


def of_every_kind(mode, shards, **options):
    """A table without a key, and one with a key in one of its forms; of both a column is not read."""
    sql = "SELECT t.x, k.g FROM t JOIN k ON t.g = k.id"
    return LocalPipeline(sql, [T, KEYED], shards, {"k": keyed_as(mode, KEYED)}, **options)


GOOD = [
    ([(1, 1, "a", 1), (2, 2, "b", 2)], [(1, 10, "x", True), (2, 20, "y", True)]),
    ([(1, 1, "a", -1), (1, 5, "c", 1)], [(3, 30, "z", True)]),
    ([(2, 2, "b", -1)], [(2, 20, "y", False)]),
]


def logged(run):
    """What the log of every engine holds: per batch the rows of each section, as a bag."""
    found = {}
    for place, store in run.stores.items():
        for entry in store.read_log():
            for section, rows in by_number(unpack(entry[24:])).items():
                version = int.from_bytes(entry[:8], "little")
                bag = found.setdefault((place, version, section, tuple(rows.schema.names)), Counter())
                bag.update(tuple(row.values()) for row in rows.to_pylist())
    return found


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("mode", MODES)
def test_state_is_the_same_whether_bad_rows_can_be_set_aside(mode, shards, tmp_path):
    plain, quarantine = of_every_kind(mode, shards), of_every_kind(mode, shards, dead_letters=str(tmp_path))
    assert plain.pipeline.identity == quarantine.pipeline.identity
    for bare, keyed in GOOD:
        changes = {"t": batch_for(T, bare), "k": keyed_batch(mode, keyed)}
        assert add_up(Counter(), quarantine.step(changes)) == add_up(Counter(), plain.step(changes))
        assert logged(quarantine) == logged(plain)
    assert letters(tmp_path) == []


@pytest.mark.parametrize("lost", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_a_query_goes_on_after_a_failure_with_rows_set_aside_and_back(mode, lost, tmp_path):
    """Engines that are held refuse as they were made to: with other options they are made anew."""
    run, reference = of_every_kind(mode, 2), of_every_kind(mode, 2)
    bad = {1: ((7, 7, "absent", -1), (None, 5, "no key", True)), 2: ((2, 2, "other", -1), (None, 6, "none", False))}
    total, expected = Counter(), Counter()
    for number, (bare, keyed) in enumerate(GOOD):
        good = {"t": batch_for(T, bare), "k": keyed_batch(mode, keyed)}
        add_up(expected, reference.step(good))
        if number not in bad:
            add_up(total, run.step(good))
            continue
        worse = {"t": batch_for(T, [*bare, bad[number][0]]), "k": keyed_batch(mode, [*keyed, bad[number][1]])}
        with pytest.raises(ChangeError):
            run.step(worse)
        if lost:
            run.lose_workers()
        run.restart(dead_letters=str(tmp_path / str(number)))
        add_up(total, run.step(worse))
        assert set(run.sources) == {"rebuilt"}
        found = {r["row"].get("unread", r["row"].get("s")) for r in letters(tmp_path / str(number))}
        assert found == {row[2] for row in bad[number]}
        run.restart()
    assert total == expected
    assert run.rows_held() == reference.rows_held()


def test_rows_carry_their_input_only_as_far_as_they_can_be_refused():
    run = LocalPipeline(*QUERIES["copies spread in two ways"], 2)
    rows = carrying(batch_for(T, [(n, n, "a", sign) for n in range(9) for sign in (1, -1)]))
    found = {}
    for _, blob in run.pipeline.dispatch(0, iter([rows])):
        for section, part in by_number(unpack(blob)).items():
            found.setdefault(section, []).extend(part.to_pylist())
    assert {number: {ROW in row for row in part} for number, part in found.items()} == {0: {True}, 1: {False}}
    assert all((row[ROW] is None) == (row["_multiplicity"] > 0) for row in found[0])
    for mode, wanted in {"ordered": [0, 0, 1], "unordered": [0, 1, 1], "images": [1, 1, 1]}.items():
        run = of_every_kind(mode, 1)
        given = keyed_batch(mode, [(1, 1, "a", True), (2, 2, "b", False), (None, 3, "c", True)])
        ((_, blob),) = run.pipeline.dispatch(run.source_index("k"), iter([carrying(given)]))
        (found,) = by_number(unpack(blob)).values()
        assert [text is not None for text in found.column(ROW).to_pylist()] == wanted
