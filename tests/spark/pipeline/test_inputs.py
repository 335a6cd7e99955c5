"""What comes in: inserts, changes, upserts and Debezium's events, up to the rows that workers get and to the view."""

import gzip
import json
import math
import os
from collections import Counter
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from stream_changes import LONG, TEXT
from stream_runs import Feed, Lines, canonical, collected, net, start

from everview.errors import PipelineError, SchemaError, UnsupportedQueryError
from everview.spark import debezium, full_result, maintain, read_metrics, read_warnings, upserts
from everview.spark.inputs import declare, prepare
from everview.shards.normaliser import WITHIN
from everview.spark.inputs.table_input import FIELDS
from everview.spark.maintain import plan_pipeline
from everview.spark.placement import engine_keys, partition_of

REPOSITORY = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("EVERVIEW_DATA") or REPOSITORY.parent / "shared" / "data") / "cdc-samples"


def table(streaming, **columns):
    """A batch DataFrame from lists of Python values or Arrow arrays."""
    return streaming.createDataFrame(pa.table(columns))


def result(changes):
    return net(changes.toArrow(), [c for c in changes.columns if not c.startswith("_")])


# ---- inserts and changes -------------------------------------------------------------------------------------------


def test_a_plain_table_is_inserts(streaming):
    frame = table(streaming, a=[1, 2, 2], b=["x", "y", "y"])
    changes = maintain(streaming, "SELECT b, a FROM t WHERE a > 1", {"t": frame})
    assert result(changes) == {("y", 2): 2}
    assert [r._change_type for r in changes.collect()] == ["insert", "insert"]


def test_changes_in_either_form(streaming):
    kinds = ["insert", "insert", "update_preimage", "update_postimage", "insert", "delete"]
    typed = table(streaming, a=[1, 2, 2, 3, 9, 9], _change_type=kinds)
    counted = table(streaming, a=[1, 3, 9], _multiplicity=[4, 2, 1], _commit_version=[0, 0, 0])
    assert result(maintain(streaming, "SELECT a FROM t", {"t": typed})) == {(1,): 1, (3,): 1}
    sql = "SELECT t.a, u.a AS b FROM t JOIN u ON t.a = u.a"
    assert result(maintain(streaming, sql, {"t": typed, "u": counted})) == {(1, 1): 4, (3, 3): 2}


def test_columns_that_are_not_read_tell_rows_apart(streaming):
    frame = table(streaming, a=[1, 1, 1], b=["x", "y", "z"], _change_type=["insert", "insert", "delete"])
    with pytest.raises(Exception, match="ROW_NOT_FOUND"):
        maintain(streaming, "SELECT a FROM t", {"t": frame}).collect()


def test_a_table_cannot_say_twice_what_a_change_is(streaming):
    frame = table(streaming, a=[1], _change_type=["insert"], _multiplicity=[-1])
    with pytest.raises(PipelineError, match="table `t` has _change_type and _multiplicity") as caught:
        maintain(streaming, "SELECT a FROM t", {"t": frame})
    assert caught.value.code == "AMBIGUOUS_CHANGE"


def test_a_table_that_is_not_read_is_refused(streaming):
    frame = table(streaming, a=[1])
    with pytest.raises(PipelineError, match="the view does not read the table `U`") as caught:
        plan_pipeline("SELECT a FROM t", {"t": frame, "U": frame})
    assert (caught.value.code, caught.value.hint) == ("UNUSED_TABLE", "leave it out; the view reads t")


@pytest.mark.parametrize("condition", ["a =", "b = 1", "a", "array(a)"])
def test_a_condition_that_is_none_is_refused_by_name(streaming, condition):
    given = {"t": upserts(table(streaming, k=[1], a=[1]), delete_when=condition)}
    with pytest.raises(PipelineError, match="table `t`: delete_when is '") as caught:
        maintain(streaming, "SELECT a FROM t", given, primary_keys={"t": "k"})
    assert caught.value.code == "INVALID_OPTION" and condition in caught.value.message
    assert len(str(caught.value)) < 600


def test_names_of_any_case(streaming):
    columns = {"a b": [1, 2], "destination": [7, 8], "Größe": [True, None], "_CHANGE_type": ["insert", "insert"]}
    frame = table(streaming, **columns)
    sql = "SELECT `a b`, destination, `größe` AS size FROM T WHERE `A B` > 1"
    assert result(maintain(streaming, sql, {"t": frame}, primary_keys={"T": "A b"})) == {(2, 8, None): 1}


@pytest.mark.parametrize("name", ["c.d", "e`f"])
def test_names_of_any_kind(streaming, name):
    quoted = name.replace("`", "``")
    changes = maintain(streaming, f"SELECT `{quoted}` FROM t", {"t": table(streaming, **{name: [1, 2]})})
    assert net(changes.toArrow(), [name]) == {(1,): 1, (2,): 1}


# ---- keys ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "code", "reason"),
    [
        ([(1, "x"), (1, "y")], "DUPLICATE_KEY", "another row has its key, in the row"),
        ([(1, "x"), (1, "x")], "DUPLICATE_KEY", "another row has its key, in the row"),
        ([(1, "x"), (None, "y")], "NULL_NOT_ALLOWED", "the key column `k` is NULL, in the row"),
    ],
)
def test_keys_are_checked(streaming, rows, code, reason):
    frame = table(streaming, k=pa.array([r[0] for r in rows], LONG), v=[r[1] for r in rows])
    with pytest.raises(Exception, match=code) as caught:
        maintain(streaming, "SELECT v FROM t", {"t": frame}, primary_keys={"t": "k"}).collect()
    assert "table `t`: " in str(caught.value) and reason in str(caught.value)


# ---- upserts ---------------------------------------------------------------------------------------------------------


def run_upserts(streaming, directory, columns, batches, **options):
    feed = Feed(directory / "t", columns)
    for rows in batches:
        feed.write(rows)
    given = {"t": upserts(feed.stream(streaming), **options)}
    changes = maintain(streaming, "SELECT k, v FROM t WHERE v <> 'hidden'", given, primary_keys={"t": "k"}, shards=2)
    run = start(changes, directory / "c").wait()
    assert collected(full_result(streaming, str(directory / "c"))) == run.result
    return run


@pytest.mark.parametrize("zone", ["UTC", None])
def test_upserts_with_a_sequence(streaming, tmp_path, zone):
    columns = {"k": LONG, "v": TEXT, "at": pa.timestamp("us", zone), "gone": pa.bool_()}
    at = lambda second: datetime(2024, 1, 1, 0, 0, second, tzinfo=zone and timezone.utc)
    batches = [
        [(1, "new", at(11), False), (1, "old", at(10), False), (2, "two", at(10), None), (4, "never", at(9), True)],
        [(1, "late", at(5), False), (2, "two", at(10), False), (3, "three", at(1), False), (4, "late", at(8), False)],
        [(1, None, at(20), True), (2, "hidden", at(11), False), (3, "four", at(2), False)],
        [(1, "zombie", at(15), False), (2, "shown", at(12), False), (2, "late", at(11), False)],
        [(1, "back", at(21), False), (3, "three", at(0), True)],
    ]
    run = run_upserts(streaming, tmp_path, columns, batches, sequence="at", delete_when="gone")
    assert list(run.results().values()) == [
        {(1, "new"): 1, (2, "two"): 1},
        {(1, "new"): 1, (2, "two"): 1, (3, "three"): 1},
        {(3, "four"): 1},
        {(3, "four"): 1, (2, "shown"): 1},
        {(1, "back"): 1, (3, "four"): 1, (2, "shown"): 1},
    ]
    third = run.changes(2)
    at = third.index(((3, "three"), "update_preimage"))
    assert third[at + 1] == ((3, "four"), "update_postimage")
    found = [read_metrics(p)["normalise"] for p in run.progress]
    assert [m["stale_rows"] for m in found] == [0, 3, 0, 1, 1]
    assert [m["rows_in"] for m in found] == [4, 4, 3, 3, 2]


def test_a_sequence_that_begins_anew_is_told(streaming, tmp_path):
    """Not late rows beside others, nor rows that come again; each engine sees some keys only."""
    first = [(k, "x", 1000 + k) for k in range(20)]
    batches = [
        first,
        first,
        [*((k, "late", 900 + k) for k in range(19)), (19, "y", 2000)],
        [(k, "z", k) for k in range(25)],
    ]
    run = run_upserts(streaming, tmp_path, {"k": LONG, "v": TEXT, "at": LONG}, batches, sequence="at")
    *nothing, told = [read_warnings(p) for p in run.progress]
    assert nothing == [[], [], []]
    assert "table `t`: 20 rows are older than what is held, and none of a known key is newer" in told[0]
    assert "failover" in told[0] and len(told) == 1
    assert run.result == {(k, "x"): 1 for k in range(19)} | {(19, "y"): 1} | {(k, "z"): 1 for k in range(20, 25)}


def test_upserts_without_a_sequence(streaming, tmp_path):
    batches = [
        [(1, "b", "set"), (1, "a", "set"), (2, "x", "set")],  # within a batch content decides
        [(1, "a", "set"), (2, None, "unset"), (3, "y", "set"), (3, "z", "unset")],  # and a row is newer than a deletion
        [(2, "again", "set"), (1, "d", "unset"), (1, "e", "set"), (3, "z", "unset")],
    ]
    run = run_upserts(streaming, tmp_path, {"k": LONG, "v": TEXT, "do": TEXT}, batches, delete_when="do = 'unset'")
    assert list(run.results().values()) == [
        {(1, "b"): 1, (2, "x"): 1},
        {(1, "a"): 1, (3, "y"): 1},
        {(1, "e"): 1, (2, "again"): 1},
    ]
    assert read_metrics(run.progress[-1])["normalise"]["stale_rows"] == 0


def test_upserts_are_declared_right(streaming):
    frame = table(streaming, k=[1], v=["x"], s=[1.5])
    with pytest.raises(PipelineError) as caught:
        maintain(streaming, "SELECT v FROM t", {"t": upserts(frame)})
    assert caught.value.code == "MISSING_KEY" and 'primary_keys={"t"' in str(caught.value)
    with pytest.raises(PipelineError, match="the sequence column `s` is double"):
        maintain(streaming, "SELECT v FROM t", {"t": upserts(frame, sequence="s")}, primary_keys={"t": "k"})
    with pytest.raises(PipelineError, match="no column `w`"):
        maintain(streaming, "SELECT v FROM t", {"t": upserts(frame, sequence="w")}, primary_keys={"t": "k"})


# ---- Debezium --------------------------------------------------------------------------------------------------------

SCHEMA = "id INT, name STRING, price DECIMAL(10,2), day DATE, at TIMESTAMP, ok BOOLEAN, weight DOUBLE, raw BINARY"
ROW = {
    "id": 1,
    "name": "a",
    "price": "1.50",
    "day": 19782,
    "at": 1714564800123,
    "ok": True,
    "weight": 0.5,
    "raw": "YQ==",
}
PARSED = (1, "a", Decimal("1.50"), date(2024, 2, 29), datetime(2024, 5, 1, 12, 0, 0, 123000), True, 0.5, b"a")


def event(op="c", before=None, after=None, lsn=1, **source):
    return {"before": before, "after": after, "op": op, "source": {"lsn": lsn, **source}, "ts_ms": 5}


def parsed(streaming, lines, schema=SCHEMA, key=None, without=(WITHIN, FIELDS), **options):
    """What workers get of lines: rows of values, sign or (sequence, live), and what is wrong."""
    texts = [line if line is None or isinstance(line, str) else json.dumps(line) for line in lines]
    frame = streaming.createDataFrame(pa.table({options.get("column", "value"): pa.array(texts, pa.string())}))
    declared = declare("t", debezium(frame, schema, **options), [key] if key else None)
    found = prepare(declared, frozenset(c.name.lower() for c in declared.table.columns)).frame.drop(*without)
    return [tuple(map(canonical, row)) for row in found.collect()]


def test_events_with_a_key(streaming):
    other = ROW | {"name": "b"}
    lines = [
        event("c", None, ROW, 1),
        {"schema": {"type": "struct"}, "payload": event("r", None, ROW, 2)},
        event("u", None, other, 3),
        event("u", ROW, other, 4),
        event("d", {"id": 1}, None, 5),
        {"payload": event("d", ROW, None, 6)},
        None,
        "",
        "  ",
        "null",
    ]
    rows = parsed(streaming, lines, key="id")
    changed = (1, "b", *PARSED[2:])
    assert rows[:4] == [
        (*PARSED, 1, True, None),
        (*PARSED, 2, True, None),
        (*changed, 3, True, None),
        (*changed, 4, True, None),
    ]
    assert rows[4] == (1, *[None] * 7, 5, False, None)
    assert rows[5] == (*PARSED, 6, False, None)
    assert len(rows) == 6


def test_an_update_of_the_key_ends_the_old_one(streaming):
    other, schema = ROW | {"id": 2}, SCHEMA
    for before in (ROW, {"id": 1}, ROW | {"id": "01"}):
        ended, came = parsed(streaming, [{"payload": event("u", before, other, 7)}], schema, key="id")
        assert (ended[0], ended[-3:], came) == (1, (7, False, None), (2, *PARSED[1:], 7, True, None))
    (same,) = parsed(streaming, [event("u", {"id": "1"}, ROW, 7)], schema, key="id")
    assert same == (*PARSED, 7, True, None), "the same key, written in another way"


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ({"name": "a"}, ROW, "the row before the event lacks the key column `id`: set the replica identity to FULL"),
        ({"id": "x"}, ROW, "column `id` is INT and got x"),
        ({"id": 2}, ROW | {"price": "cheap"}, "column `price` is DECIMAL(10,2) and got cheap"),
    ],
)
def test_an_update_of_the_key_is_used_or_set_aside_as_a_whole(streaming, before, after, reason):
    (row,) = parsed(streaming, [event("u", before, after)], key="id")
    assert row[-1] == reason


def test_keys_that_move_in_a_stream(streaming, tmp_path):
    """A key that moves and is taken by another row of the same event, in one batch and over several."""
    rows = Lines(tmp_path / "t")
    mysql = lambda op, before, after, row: json.dumps(
        event(op, before, after, None, file="bin.000007", pos=500, row=row)
    )
    image = lambda id, v: {"id": id, "v": v}
    rows.write([json.dumps(event("c", None, image(n, n), n)) for n in (1, 2, 3)])
    # UPDATE t SET id = id + 1 ORDER BY id DESC, in any order
    moves = [mysql("u", image(n, n), image(n + 1, n), row) for row, n in enumerate((3, 2, 1))]
    rows.write([moves[2], moves[0]])
    rows.write([moves[1]])
    given = {"t": debezium(rows.stream(streaming), "id INT, v INT")}
    run = start(maintain(streaming, "SELECT id, v FROM t", given, primary_keys={"t": "id"}), tmp_path / "c").wait()
    assert run.result == {(2, 1): 1, (3, 2): 1, (4, 3): 1}


def test_events_without_a_key_need_full_images(streaming):
    other = ROW | {"name": "b"}
    rows = parsed(
        streaming,
        [
            event("r", None, ROW),
            event("u", ROW, other),
            event("d", other, None),
            event("u", None, other),
            event("d", None, None),
        ],
    )
    changed = (1, "b", *PARSED[2:])
    assert rows[:4] == [(*PARSED, 1, None), (*PARSED, -1, None), (*changed, 1, None), (*changed, -1, None)]
    assert len(rows) == 6 and all("replica identity to FULL" in row[-1] for row in rows[4:])


def test_values_left_out_because_they_did_not_change(streaming):
    left_out = ROW | {"name": "__debezium_unavailable_value"}
    lines = [event("u", ROW, left_out), event("u", None, left_out), event("u", left_out, left_out)]
    for key, signs in (("id", [(1, True)]), (None, [(-1,), (1,)])):
        rows = parsed(streaming, lines[:1], key=key)
        assert rows == [(*PARSED, *sign, None) for sign in signs]
        for line in lines[1:]:
            (row,) = parsed(streaming, [line], key=key)
            assert "replica identity to FULL" in row[-1]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{not json", "not a Debezium event with op c, r, u or d: {not json"),
        ("[1]", "not a Debezium event"),
        ({"id": 1}, "not a Debezium event"),
        (event("t"), "not a Debezium event"),
        (event("c"), "the event has no image of its row"),
        (event("c", None, ROW | {"id": "x"}), "column `id` is INT and got x"),
        (event("c", None, ROW | {"price": "ASNF"}), r"column `price` is DECIMAL(10,2) and got ASNF"),
        (event("c", None, ROW | {"price": "123456789.00"}), "and got 123456789.00"),
        (event("c", None, ROW | {"day": "soon"}), "column `day` is DATE and got soon"),
        (event("c", None, ROW | {"at": "soon"}), "column `at` is TIMESTAMP and got soon"),
        (event("c", None, ROW | {"at": 10**36}), "column `at` is TIMESTAMP and got 1"),
        (event("c", None, ROW | {"day": 10**12}), "column `day` is DATE and got 1000000000000"),
        (event("c", None, ROW | {"id": 2**31}), "column `id` is INT and got 2147483648"),
        (event("c", None, ROW | {"raw": "no base64"}), "column `raw` is BINARY and got no base64"),
        (event("c", None, ROW, None), "does not tell its place in the log: pass sequence="),
        (event("d", ROW | {"id": {}}, None), "column `id` is INT and got {}"),
    ],
)
def test_events_that_cannot_be_read(streaming, line, reason):
    (row,) = parsed(streaming, [line], key="id")
    assert reason in row[-1]


def test_values_of_every_notation(streaming):
    schema = "id INT, d DECIMAL(38,18), day DATE, f FLOAT, s SMALLINT, b BIGINT, t STRING, y TINYINT, x BINARY"
    before = {
        "id": 1,
        "d": "-99999999999999999999.999999999999999999",
        "day": "2024-02-29",
        "f": 0.1,
        "s": -7,
        "y": -128,
    }
    after = {"id": 1, "d": None, "day": -1, "f": "NaN", "s": 32767, "b": 2**63 - 1, "t": {"nested": [1]}, "x": "/wA="}
    rows = parsed(streaming, [event("u", before, after)], schema)
    assert rows[0][1:3] == (Decimal("-99999999999999999999.999999999999999999"), date(2024, 2, 29))
    assert rows[0][3] == pytest.approx(0.1, 1e-6) and rows[0][4:9] == (-7, None, None, -128, None)
    last = (2**63 - 1, '{"nested":[1]}', None, b"\xff\x00", 1, None)
    assert rows[1][1:] == (None, date(1969, 12, 31), "NaN", 32767, *last)


@pytest.mark.parametrize(
    ("unit", "value", "expected"),
    [
        ("millis", 1714564800123, datetime(2024, 5, 1, 12, 0, 0, 123000)),
        ("millis", -1, datetime(1969, 12, 31, 23, 59, 59, 999000)),
        ("micros", 1714564800123456, datetime(2024, 5, 1, 12, 0, 0, 123456)),
        ("nanos", 1714564800123456789, datetime(2024, 5, 1, 12, 0, 0, 123456)),
        ("nanos", -1, datetime(1969, 12, 31, 23, 59, 59, 999999)),
        ("nanos", "2024-05-01T12:00:00Z", datetime(2024, 5, 1, 12)),
        ("millis", "2024-05-01T12:00:00.5+02:00", datetime(2024, 5, 1, 10, 0, 0, 500000)),
    ],
)
def test_units_of_time(streaming, unit, value, expected):
    line, schema = event("c", None, {"id": 1, "at": value, "local": value}), "id INT, at TIMESTAMP, local TIMESTAMP_NTZ"
    (row,) = parsed(streaming, [line], schema, "id", time_unit=unit)
    zoned = value == "2024-05-01T12:00:00.5+02:00"  # what has no zone keeps the digits
    assert row[2] == (expected.replace(hour=12) if zoned else expected)
    assert row[1] == expected and row[-1] is None


def test_places_in_the_log(streaming):
    mysql = lambda file, pos, row: event("c", None, {"id": 1}, None, file=f"bin.{file:06d}", pos=pos, row=row)
    places = [
        (0, 0, 0),
        (3, 154, 0),
        (3, 154, 1),
        (3, 154, 255),
        (3, 154, 256),
        (3, 154, 10**6),
        (3, 900, 0),
        (4, 4, 0),
    ]
    places += [(524_287, 2**32 - 1, 3), (524_288, 0, 0), (999_999, 2**32 - 1, 3), (2**31 - 1, 2**32 - 1, 2**40)]
    lines = [mysql(*place) for place in places]
    found = [row[1:3] for row in parsed(streaming, lines, "id INT", "id", without=[FIELDS])]
    assert found == sorted(set(found)) and len(found) == len(places)
    assert parsed(streaming, [event("c", None, {"id": 1}, 7)], "id INT", "id", without=[FIELDS])[0][1:3] == (7, 0)
    for beyond in (mysql(2**31, 0, 0), mysql(10**30, 0, 0), mysql(1, 2**32, 0), mysql(1, -1, 0)):
        assert "does not tell its place" in parsed(streaming, [beyond], "id INT", "id")[0][-1]
    own = [event("c", None, {"id": 1}), {"schema": None, "payload": event("c", None, {"id": 1})}]
    assert [r[1] for r in parsed(streaming, own, "id INT", "id", sequence="ts_ms")] == [5, 5]
    assert [r[1] for r in parsed(streaming, own, "id INT", "id", sequence="source.lsn")] == [1, 1]
    assert "pass sequence=" in parsed(streaming, own[:1], "id INT", "id", sequence="source.none")[0][-1]


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (
            "DECIMAL(4,2)",
            ["1.55", "-1.5", "1.5500", 1, "1e1", 0.25, "99.99"],
            ["1.555", 1.555, "-.001", "1.5e-3", "100"],
        ),
        ("DECIMAL(3,0)", ["1", "1.0", "12."], ["1.5", "0.01", "15e-1"]),
        ("DECIMAL(38,20)", ["0.12345678901234567890"], ["0.123456789012345678901"]),
        ("FLOAT", [1e30, "NaN", "Infinity"], [1e300]),
        ("DOUBLE", ["-inf", 1e308], ["1e400"]),
        ("DATE", ["2024-02-29", 5], ["2024-02-29T12:00:00", "2024-02", "2024-02-30"]),
        ("INT", ["7"], ["7.5", 7.5, "7e0", 2**31]),
    ],
)
def test_values_are_neither_rounded_nor_cut(streaming, kind, good, bad):
    line = lambda value: event("c", None, {"id": 1, "x": value})
    rows = parsed(streaming, [line(value) for value in good], f"id INT, x {kind}", "id")
    assert [(row[1] is not None, row[-1]) for row in rows] == [(True, None)] * len(good)
    for value, row in zip(bad, parsed(streaming, [line(v) for v in bad], f"id INT, x {kind}", "id"), strict=True):
        assert row[1] is None and row[-1].startswith(f"column `x` is {kind} and got "), value


def test_columns_that_no_event_has_are_told(streaming, tmp_path):
    """Misspelt, or in another case; not those that are NULL, that some event has, or that the view does not read."""
    rows = Lines(tmp_path / "t")
    line = lambda lsn, **after: json.dumps({"payload": event("c", None, {"id": lsn} | after, lsn)})
    rows.write([line(1, price="1.00", note=None), line(2, price=None, Note="x")])
    rows.write([line(3, price=None), line(4, price="5", extra="new")])
    rows.write([json.dumps(event("d", {"id": 1}, None, 5))])
    schema = "id INT, prcie DECIMAL(4,2), note STRING, extra STRING, unread INT"
    given = {"t": debezium(rows.stream(streaming), schema)}
    sql = "SELECT id, prcie, note, extra FROM t"
    run = start(maintain(streaming, sql, given, primary_keys={"t": "id"}), tmp_path / "c").wait()
    told = [read_warnings(p) for p in run.progress]
    lacks = lambda column, has: (
        f"table `t`: no event of the batch has the column `{column}`, which is NULL then; their columns are {has}"
    )
    assert told == [
        [lacks("extra", "Note, id, note, price"), lacks("prcie", "Note, id, note, price")],
        [lacks("note", "extra, id, price"), lacks("prcie", "extra, id, price")],
        [],
    ]


def test_events_as_bytes_in_another_column(streaming):
    frame = streaming.createDataFrame(
        pa.table({"key": ["k"], "body": [json.dumps(event("c", None, {"id": 3})).encode()]})
    )
    declared = declare("t", debezium(frame, "id INT", column="body"), ["id"])
    assert prepare(declared, frozenset(["id"])).frame.collect()[0][:4] == (3, 1, 0, True)
    with pytest.raises(PipelineError, match="no column `value` with the envelopes"):
        declare("t", debezium(frame, "id INT"), ["id"])
    with pytest.raises(PipelineError, match="not a list of columns"):
        debezium(frame, "INT")


def test_rows_carry_their_input_whole(streaming):
    """All columns, read or not, as JSON that loses nothing; the row images of events with the columns declared."""
    schema = "k BIGINT, s STRING, d DECIMAL(38,18), day DATE, at TIMESTAMP, f FLOAT, w DOUBLE, ok BOOLEAN, `x.y` INT, "
    schema += "raw BINARY, local TIMESTAMP_NTZ"
    big = "-99999999999999999999.999999999999999999"
    moment, local = datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=timezone.utc), datetime(2024, 3, 31, 2, 30, 0, 1)
    rows = [
        (2**63 - 1, 'a "b"\n\u00e9', Decimal(big), date(2024, 2, 29), moment, 0.1, math.nan, True, 1, b"\xff", local),
        (1, *[None] * 10),
    ]
    texts = [2**63 - 1, 'a "b"\n\u00e9', big, "2024-02-29", "2024-02-29 12:00:00.000001+00:00", 0.1, "NaN", True, 1]
    texts += ["/w==", "2024-03-31 02:30:00.000001"]
    frame = streaming.createDataFrame(rows, schema)
    for given, key in (
        (frame, None),
        (frame.selectExpr("*", "'delete' AS _change_type"), None),
        (upserts(frame), ["k"]),
    ):
        prepared = prepare(declare("t", given, key), frozenset("k"), carry=True)
        assert prepared.frame.columns[0] == "k" and "s" not in prepared.frame.columns
        found = [json.loads(row[-1]) for row in prepared.frame.collect()]
        assert found == [dict(zip(frame.columns, texts, strict=True)), dict.fromkeys(frame.columns) | {"k": 1}]
    image = {"id": 1, "name": 'a "b"', "price": "1.50", "at": 1714564800123}
    told = {"id": 1, "name": 'a "b"', "price": "1.50", "at": "2024-05-01 12:00:00.123000+00:00"}
    lines = [event("u", {"id": 7}, image), event("d", image, None), event("c", None, {"id": 1, "at": "soon"})]
    frame = streaming.createDataFrame(pa.table({"value": [json.dumps(line) for line in lines]}))
    nothing = dict.fromkeys(told)
    unread = nothing | {"id": "1", "at": "soon"}  # as it came
    for key, wanted in (
        (["id"], [nothing | {"id": 7}, told, told, unread]),
        (None, [nothing | {"id": 7}, told, told, unread]),
    ):
        declared = declare("t", debezium(frame, "id INT, name STRING, price DECIMAL(9,2), at TIMESTAMP"), key)
        found = prepare(declared, frozenset(["id"]), carry=True).frame
        assert found.columns[0] == "id" and "name" not in found.columns
        assert [json.loads(row[-1]) for row in found.collect()] == wanted


def test_events_as_a_stream(streaming, tmp_path):
    """Updates without before images, late events, and deletes by key, into a join."""
    people, visits = Lines(tmp_path / "people"), Lines(tmp_path / "visits")
    person = lambda op, lsn, id, name=None: json.dumps(
        event(op, {"id": id} if op == "d" else None, None if op == "d" else {"id": id, "name": name}, lsn)
    )
    visit = lambda op, before, after: json.dumps({"payload": event(op, before, after)})
    row = lambda person, cost: {"person": person, "cost": cost}
    people.write([person("r", 1, 1, "ann"), person("r", 2, 2, "bob"), ""])
    visits.write([visit("c", None, row(1, "1.50")), visit("c", None, row(1, "1.50")), visit("c", None, row(2, "4.00"))])
    people.write([person("u", 5, 1, "anna"), person("u", 4, 1, "late"), person("d", 6, 2)])
    visits.write([visit("u", row(1, "1.50"), row(1, "2.00")), "null"])
    people.write([person("u", 3, 2, "late"), person("c", 7, 2, "bo")])
    visits.write([visit("d", row(1, "2.00"), None)])
    sql = "SELECT p.name, SUM(v.cost) AS cost, COUNT(*) AS n FROM people p JOIN visits v ON p.id = v.person GROUP BY p.name"
    given = {
        "people": debezium(people.stream(streaming), "id INT, name STRING"),
        "visits": debezium(visits.stream(streaming), "person INT, cost DECIMAL(8,2)"),
    }
    run = start(maintain(streaming, sql, given, primary_keys={"people": ["id"]}), tmp_path / "c").wait()
    cost = lambda text: Decimal(text)
    assert list(run.results().values()) == [
        {("ann", cost("3.00"), 2): 1, ("bob", cost("4.00"), 1): 1},
        {("anna", cost("3.50"), 2): 1},
        {("anna", cost("1.50"), 1): 1, ("bo", cost("4.00"), 1): 1},
    ]
    assert [read_metrics(p)["normalise"]["stale_rows"] for p in run.progress] == [0, 0, 1]


def sample(streaming, name):
    path = DATA / f"{name}.jsonl.gz"
    if not path.exists():
        pytest.skip(f"{path} is missing: set EVERVIEW_DATA to the directory that has cdc-samples")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        events = [json.loads(line) for line in lines]
    return streaming.read.text(str(path)), [e.get("payload", e) for e in events]


def content(events):
    """The table after all events."""
    rows = {}
    for found in events:
        if found["op"] == "d":
            del rows[found["before"]["id"]]
        else:
            rows[found["after"]["id"]] = tuple(found["after"].values())
    return rows


PRODUCTS = "id INT, name STRING, description STRING, weight DOUBLE"


def test_sample_files_with_a_key(streaming):
    names = {
        "mysql": "debezium-data-schema-include",
        "plain": "debezium-data-schema-exclude",
        "postgres": "debezium-postgres-data-schema-exclude",
        "partial": "debezium-postgres-data-replica-identity",
    }
    samples = {table: sample(streaming, name) for table, name in names.items()}
    frame, events = samples["partial"]  # its one delete tells nothing of its row: the key is in Kafka's key only
    samples["partial"] = frame.filter('value NOT LIKE \'%"op":"d"%\''), [e for e in events if e["op"] != "d"]
    given = {table: debezium(frame, PRODUCTS) for table, (frame, _) in samples.items()}
    sql = (
        "SELECT a.id, a.name, a.description, a.weight, b.name AS bn, b.weight AS bw, c.name AS cn, c.weight AS cw, d.name AS dn, d.weight AS dw "
        "FROM mysql a JOIN plain b ON a.id = b.id JOIN postgres c ON a.id = c.id JOIN partial d ON a.id = d.id"
    )
    found = result(maintain(streaming, sql, given, primary_keys=dict.fromkeys(given, "id")))
    a, b, c, d = (content(events) for _, events in samples.values())
    assert len(a) == 10
    assert found == Counter((*row, b[k][1], b[k][3], c[k][1], c[k][3], d[k][1], d[k][3]) for k, row in a.items())


@pytest.mark.parametrize("name", ["debezium-data-schema-include", "debezium-postgres-data-schema-exclude"])
def test_sample_files_without_a_key(streaming, name):
    frame, events = sample(streaming, name)
    found = result(maintain(streaming, "SELECT * FROM t", {"t": debezium(frame, PRODUCTS)}))
    assert found == Counter(content(events).values())


def test_a_sample_without_before_images_needs_a_key(streaming):
    frame, _ = sample(streaming, "debezium-postgres-data-replica-identity")
    with pytest.raises(Exception, match="replica identity to FULL, or declare the primary key"):
        maintain(streaming, "SELECT * FROM t", {"t": debezium(frame, PRODUCTS)}).collect()


# ---- types, placement ------------------------------------------------------------------------------------------------


def test_columns_of_other_types(streaming):
    frame = streaming.createDataFrame([(1, [2], {}, None)], "a INT, list ARRAY<INT>, pairs MAP<INT, INT>, v VARIANT")
    assert result(maintain(streaming, "SELECT a, COUNT(*) AS n FROM t GROUP BY a", {"t": frame})) == {(1, 1): 1}
    for sql, message in [
        ("SELECT list FROM t", "column `list` of table `t` is array<int>"),
        ("SELECT a FROM t WHERE t.pairs IS NULL", "column `pairs` of table `t` is map<int,int>"),
        ("SELECT * FROM t", "`\\*` would read column `list` of table `t`, of type array<int>"),
        ("SELECT x.* FROM t x", "`\\*` would read column `list`"),
        ("SELECT `t`.* FROM t", "`\\*` would read column `list`"),
        ("SELECT a FROM t WHERE v = 1", "column `v` of table `t` is variant"),
    ]:
        with pytest.raises(UnsupportedQueryError, match=message) as caught:
            plan_pipeline(sql, {"t": frame})
        assert caught.value.code == "UNSUPPORTED_TYPE"
    plan_pipeline("SELECT a * 2 AS b FROM t", {"t": frame})
    with pytest.raises(SchemaError, match="none"):
        plan_pipeline("SELECT none FROM t", {"t": frame})


def test_rows_with_other_types_are_told_apart_by_them(streaming):
    frame = streaming.createDataFrame(
        [(1, [2], "insert"), (1, [3], "insert"), (1, [2], "delete")], "a INT, list ARRAY<INT>, _change_type STRING"
    )
    assert result(maintain(streaming, "SELECT a FROM t", {"t": frame})) == {(1,): 1}


def test_placement_is_that_of_spark(streaming):
    keys = [*range(-300, 300), 2**31 - 1, -(2**31), 123456789]
    for n in (1, 2, 3, 7, 16):
        rows = streaming.createDataFrame([(k,) for k in keys], "k INT").selectExpr("k", f"pmod(hash(k), {n}) AS p")
        assert {r.k: r.p for r in rows.collect()} == {k: partition_of(k, n) for k in keys}
        assert [partition_of(k, n) for k in engine_keys(n)] == list(range(n))
