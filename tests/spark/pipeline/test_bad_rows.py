"""Rows that cannot be applied: they stop the query with all that is needed to find them, or are set aside once."""

import json
from collections import Counter
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from stream_changes import LONG, TEXT
from stream_runs import Feed, Lines, bag, collected, net, start

from everview.spark import debezium, full_result, maintain, read_metrics, upserts

CHANGES = {"k": LONG, "v": TEXT, "_change_type": TEXT}


def frame(streaming, rows, types=CHANGES):
    columns = list(zip(*rows, strict=True))
    return streaming.createDataFrame(
        pa.table({n: pa.array(c, t) for (n, t), c in zip(types.items(), columns, strict=True)})
    )


# name: (SQL, rows, primary key, code, what the message says)
FAILING = {
    "absent": ("SELECT k FROM t", [(1, "x", "insert"), (2, "y", "delete")], None, "ROW_NOT_FOUND", ["`t`", "2"]),
    "absent by key": (
        "SELECT k FROM t",
        [(1, "x", "insert"), (2, "y", "delete")],
        "k",
        "ROW_NOT_FOUND",
        ["table `t`: cannot delete what is not there, in the row (k=2"],
    ),
    "another row by key": (
        "SELECT v FROM t",
        [(1, "x", "insert"), (1, "y", "delete")],
        "k",
        "ROW_NOT_FOUND",
        ["(k=1, v='y')"],
    ),
    "kind": (
        "SELECT k FROM t",
        [(1, "x", "upsert")],
        None,
        "INVALID_CHANGE",
        [
            "table `t`: `_change_type` is 'upsert', not insert, delete, update_preimage or update_postimage, in the row (k=1"
        ],
    ),
    "no kind": ("SELECT k FROM t", [(1, "x", None)], "k", "INVALID_CHANGE", ["`_change_type` is NULL", "(k=1"]),
    "division": (
        "SELECT k FROM t WHERE 10 / k > 1",
        [(1, "x", "insert"), (0, "y", "insert")],
        None,
        "DIVIDE_BY_ZERO",
        ["`t`"],
    ),
    "cast": (
        "SELECT CAST(v AS INT) AS n FROM t",
        [(1, "1", "insert"), (0, "y", "insert")],
        "k",
        "CAST_INVALID_INPUT",
        ["'y'", "view `view`"],
    ),
}


@pytest.mark.parametrize("case", FAILING)
def test_a_bad_row_stops_the_query(streaming, case):
    sql, rows, key, code, said = FAILING[case]
    keys = {"t": key} if key else {}
    with pytest.raises(Exception, match=rf"\[{code}\]") as caught:
        maintain(streaming, sql, {"t": frame(streaming, rows)}, primary_keys=keys).collect()
    for text in said:
        assert text in str(caught.value)
    assert "Hint: " in str(caught.value)


def test_a_replay_with_fewer_partitions_leaves_no_files_of_the_first_attempt(streaming, tmp_path):
    rows = [(n, "x" if n % 3 else str(n), "insert" if n % 5 else "upsert") for n in range(30)]
    sql = "SELECT CAST(v AS INT) AS n, COUNT(*) AS c FROM t GROUP BY CAST(v AS INT)"
    options = {"on_bad_rows": "quarantine", "dead_letters": str(tmp_path)}
    other = tmp_path / "batch=0000000000" / "input-t-2-00007.jsonl"  # of the table t-2
    for key in ({}, {"t": "k"}):
        attempts = []
        for parts in (5, 2, 3):
            frames = {"t": frame(streaming, rows).repartition(parts)}
            found = net(maintain(streaming, sql, frames, primary_keys=key, **options).toArrow(), ["n", "c"])
            files = sorted(p.name for p in tmp_path.glob("batch=*/input-t-0*.jsonl"))
            assert len(files) <= parts
            letters = [
                json.loads(line) for p in tmp_path.rglob("input-t-0*.jsonl") for line in p.read_text().splitlines()
            ]
            attempts.append((found, Counter((a["code"], a["row"]["k"]) for a in letters)))
            other.touch()
        assert attempts[0] == attempts[1] == attempts[2]
        assert attempts[0][1].total() == sum(n % 5 == 0 or n % 3 != 0 for n in range(30))
        assert other.exists()


def test_nothing_of_a_refused_batch_leaves_and_a_corrected_file_goes_on(streaming, tmp_path):
    """The batch is fixed to the file: correcting it where it is lets the same checkpoint go on."""
    feed = Feed(tmp_path / "t", CHANGES)
    feed.write([(1, "a", "insert"), (2, "b", "insert")])
    feed.write([(3, "c", "insert"), (9, "z", "delete"), (4, "d", "insert")])
    feed.write([(1, "a", "delete")])
    make = lambda: maintain(streaming, "SELECT v FROM t", {"t": feed.stream(streaming)}, shards=2)
    run = start(make(), tmp_path / "c")
    with pytest.raises(Exception, match=r"\[ROW_NOT_FOUND\]"):
        run.wait()
    assert run.results() == {0: bag([("a",), ("b",)])}
    assert collected(full_result(streaming, str(tmp_path / "c"))) == bag([("a",), ("b",)])
    feed.write([(3, "c", "insert"), (4, "d", "insert")], at=1)
    again = start(make(), tmp_path / "c").wait()
    assert again.deltas == {1: bag([("c",), ("d",)]), 2: Counter({("a",): -1})}
    assert collected(full_result(streaming, str(tmp_path / "c"))) == bag([("b",), ("c",), ("d",)])


# ---- set aside -------------------------------------------------------------------------------------------------------


def letters(directory):
    """The dead letters: (file, table, code, row), in order."""
    found = []
    for path in sorted(Path(directory).rglob("*")):
        if path.is_file():
            assert path.suffix == ".jsonl"
            for line in path.read_text("utf-8").splitlines():
                letter = json.loads(line)
                assert path.parent.name == f"batch={letter['batch']:010d}" and letter["reason"]
                found.append((letter["batch"], letter["table"], letter["code"], tuple(letter["row"].values())))
    return sorted(found, key=str)


def texts(directory):
    return {str(p.relative_to(directory)): p.read_text() for p in Path(directory).rglob("*") if p.is_file()}


SQL = "SELECT t.v, u.w FROM t JOIN u ON t.k = u.k WHERE 10 / t.k > 0 AND CAST(u.w AS INT) >= 0"


def test_bad_rows_are_set_aside_once(streaming, tmp_path):
    keyed = Feed(tmp_path / "t", CHANGES)
    bare = Feed(tmp_path / "u", {"k": LONG, "w": TEXT, "rest": TEXT, "_change_type": TEXT})
    keyed.write(
        [(1, "a", "insert"), (2, "b", "insert"), (2, "c", "insert"), (0, "zero", "insert"), (None, "n", "insert")]
    )
    bare.write([(1, "1", "r", "insert"), (2, "2", "r", "insert"), (1, "x", "r", "insert"), (1, "1", "s", "delete")])
    keyed.write(
        [
            (1, "a", "update_preimage"),
            (1, "A", "update_postimage"),
            (7, "no", "delete"),
            (2, "d", "insert"),
            (3, "e", "drop"),
        ]
    )
    bare.write(
        [
            (2, "2", "r", "delete"),
            (2, "2", "r", "delete"),
            (1, "5", "r", None),
            (1, "1", "r", "insert"),
            (1, "x", "r", "delete"),
        ]
    )
    make = lambda: maintain(
        streaming,
        SQL,
        {"t": keyed.stream(streaming), "u": bare.stream(streaming)},
        primary_keys={"t": "k"},
        shards=3,
        on_bad_rows="quarantine",
        dead_letters=str(tmp_path / "letters"),
    )
    run = start(make(), tmp_path / "c").wait()
    first, second = run.results().values()
    kept = {row[1] for _, _, code, row in letters(tmp_path / "letters") if code == "DUPLICATE_KEY" and row[0] == 2}
    assert first == bag([("a", "1"), (("c" if "b" in kept else "b"), "2")])
    assert second == bag([("A", "1"), ("A", "1")])
    found = letters(tmp_path / "letters")
    loser = "b" if "b" in kept else "c"
    assert found == sorted(
        [
            (0, "t", "DUPLICATE_KEY", (2, loser)),
            (0, "t", "DIVIDE_BY_ZERO", (0, "zero")),
            (0, "t", "NULL_NOT_ALLOWED", (None, "n")),
            (0, "u", "CAST_INVALID_INPUT", (1, "x", "r")),
            (0, "u", "ROW_NOT_FOUND", (1, "1", "s")),
            (1, "t", "ROW_NOT_FOUND", (7, "no")),
            (1, "t", "DUPLICATE_KEY", (2, "d")),
            (1, "t", "INVALID_CHANGE", (3, "e")),
            (1, "u", "ROW_NOT_FOUND", (2, "2", "r")),
            (1, "u", "INVALID_CHANGE", (1, "5", "r")),
            (1, "u", "CAST_INVALID_INPUT", (1, "x", "r")),
        ],
        key=str,
    )
    told = [read_metrics(p) for p in run.progress]
    assert [(m["normalise"]["bad_rows"], m["shard"]["bad_rows"]) for m in told] == [(3, 2), (3, 3)]
    assert all(m["shard"]["engines"] == 3 for m in told)
    # the last batch once more, as after a crash before Spark noted its end: from the log, without the engines that saw it
    before = texts(tmp_path / "letters")
    for path in (tmp_path / "c" / "commits").glob("*1*"):
        path.unlink()
    again = start(make(), tmp_path / "c").wait()
    assert again.deltas == {1: run.deltas[1]}
    assert texts(tmp_path / "letters") == before
    assert again.progress[-1].observedMetrics["everview_view_shard"]["rebuilt"] > 0
    assert collected(full_result(streaming, str(tmp_path / "c"))) == second


def test_a_delete_by_key_is_not_judged_by_its_values(streaming, tmp_path):
    """Only its key counts: the other columns of a deletion are often empty."""
    rows = [(1, "5", 1, False), (2, "6", 1, False), (1, "", 2, True)]
    types = {"k": LONG, "v": TEXT, "s": LONG, "gone": pa.bool_()}
    options = {"primary_keys": {"t": "k"}, "on_bad_rows": "quarantine", "dead_letters": str(tmp_path / "letters")}
    given = upserts(frame(streaming, rows, types), sequence="s", delete_when="gone")
    changes = maintain(streaming, "SELECT k FROM t WHERE CAST(v AS INT) > 0", {"t": given}, **options)
    assert net(changes.toArrow(), ["k"]) == {(2,): 1}
    assert letters(tmp_path / "letters") == []


JOINED = ("bare", "keyed", "replaced", "events", "log", "added")
COUNTED = f"SELECT keyed.g, COUNT(*) AS n FROM bare {' '.join(f'JOIN {t} ON bare.id = {t}.id' for t in JOINED[1:])} GROUP BY keyed.g"


class OfEveryKind:
    """A join of tables of every kind of input; of each there is a column that the view does not read."""

    def __init__(self, session, directory):
        self.session = session
        row = {"id": LONG, "unread": TEXT}
        self.feeds = {
            "bare": Feed(directory / "bare", row | {"_change_type": TEXT}),
            "keyed": Feed(directory / "keyed", {"id": LONG, "g": TEXT, "day": pa.date32(), "_change_type": TEXT}),
            "replaced": Feed(directory / "replaced", row | {"gone": pa.bool_()}),
            "events": Lines(directory / "events"),
            "log": Lines(directory / "log"),
            "added": Feed(directory / "added", row),
        }

    def write(self, **rows):
        for table, given in rows.items():
            self.feeds[table].write(given)

    def maintained(self, **options):
        given = {table: feed.stream(self.session) for table, feed in self.feeds.items()}
        given["replaced"] = upserts(given["replaced"], delete_when="gone")
        given["events"] = debezium(given["events"], "id BIGINT, name STRING")
        given["log"] = debezium(given["log"], "id BIGINT, price DECIMAL(9,2), at TIMESTAMP")
        keys = dict.fromkeys(("keyed", "replaced", "events", "added"), "id")
        return maintain(self.session, COUNTED, given, primary_keys=keys, shards=2, **options)


def event(op, row, lsn=None):
    sides = {"before": row, "after": None} if op == "d" else {"before": None, "after": row}
    return json.dumps(sides | {"op": op, "source": {"lsn": lsn}})


def test_rows_can_be_set_aside_after_a_failure_and_no_longer_after_that(streaming, tmp_path):
    """State is the same in both modes, whatever the input and whatever the view reads; letters have all columns."""
    given = OfEveryKind(streaming, tmp_path)
    at, day, good = 1714564800123, date(2024, 2, 29), (1, 2, 3)
    rows = lambda table, ids: {
        "bare": [(n, "u", "insert") for n in ids],
        "keyed": [(n, "ab"[n % 2], day, "insert") for n in ids],
        "replaced": [(n, "u", False) for n in ids],
        "events": [event("c", {"id": n, "name": "u"}, n) for n in ids],
        "log": [event("c", {"id": n, "price": "1.50", "at": at}) for n in ids],
        "added": [(n, "u") for n in ids],
    }[table]
    bad = {
        "bare": (9, 'a "whole" row', "delete"),
        "keyed": (1, "c", day, "insert"),
        "replaced": (9, None, True),
        "events": event("c", {"id": None, "name": "nobody"}, 9),
        "log": event("d", {"id": 9, "price": "1.50", "at": at}),
        "added": (1, "again"),
    }
    given.write(**{table: rows(table, good) for table in JOINED})
    given.write(**{table: [*rows(table, [4]), bad[table]] for table in JOINED})
    with pytest.raises(Exception, match=r"(?s)on_bad_rows='quarantine'\W"):
        start(given.maintained(), tmp_path / "c").wait()
    options = {"on_bad_rows": "quarantine", "dead_letters": str(tmp_path / "letters")}
    second = start(given.maintained(**options), tmp_path / "c").wait()
    assert second.deltas == {1: Counter({("a", 1): -1, ("a", 2): 1})}
    assert letters(tmp_path / "letters") == sorted(
        [
            (1, "bare", "ROW_NOT_FOUND", (9, 'a "whole" row')),
            (1, "keyed", "DUPLICATE_KEY", (1, "c", "2024-02-29")),
            (1, "replaced", "ROW_NOT_FOUND", (9, None, True)),
            (1, "events", "NULL_NOT_ALLOWED", (None, "nobody")),
            (1, "log", "ROW_NOT_FOUND", (9, "1.50", "2024-05-01 12:00:00.123000+00:00")),
            (1, "added", "DUPLICATE_KEY", (1, "again")),
        ],
        key=str,
    )
    given.write(bare=[(3, "u", "delete")])
    third = start(given.maintained(), tmp_path / "c").wait()
    assert third.deltas == {2: Counter({("b", 2): -1, ("b", 1): 1})}
    assert collected(full_result(streaming, str(tmp_path / "c"))) == bag([("a", 2), ("b", 1)])
    for run in (second, third):
        told = read_metrics(run.progress[-1])
        assert told["merge"]["engines"] == 2, "each tells its state, whether its groups change or not"
        assert told["merge"]["state_rows"] >= 2
