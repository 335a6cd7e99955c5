"""save() and restore(): equal results, refused files, atomic writes."""

import hashlib
import json
import os
import stat

import pytest

import everview as ev
from everview.session import snapshot

SCHEMA = """
CREATE TABLE customer (id BIGINT PRIMARY KEY, name VARCHAR(20) NOT NULL, born DATE);
CREATE TABLE orders (o INT, customer BIGINT, price DECIMAL(12, 2), at TIMESTAMP, FOREIGN KEY (customer) REFERENCES customer (id));
CREATE TABLE kinds (t TINYINT, b BINARY, n TIMESTAMP_NTZ, v VARCHAR);
CREATE TABLE empty (x DOUBLE)
"""


@pytest.fixture
def full(db):
    import datetime as dt
    from decimal import Decimal

    db.execute(SCHEMA)
    db.create_view(
        "spent",
        "SELECT c.name, SUM(o.price) AS total FROM customer c JOIN orders o ON c.id = o.customer GROUP BY c.name",
    )
    db.create_view(
        "rows",
        "SELECT c.id, c.name, o.o, o.at FROM customer c JOIN orders o ON c.id = o.customer",
        update_rates={"orders": 1000},
    )
    db.insert("customer", [(1, "ann", None), (2, "bob", dt.date(2000, 1, 1))])
    db.create_view("kinds_of", "SELECT b, n, SUM(t) AS s FROM kinds GROUP BY b, n")
    db.insert(
        "kinds",
        [
            (-128, b"\xff", dt.datetime(2024, 3, 31, 2, 30), "v"),
            (7, b"\xff", dt.datetime(2024, 3, 31, 2, 30), None),
            (None,) * 4,
        ],
    )
    at = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    db.insert(
        "orders",
        [(1, 1, Decimal("1.50"), at), (1, 1, Decimal("1.50"), at), (2, 2, None, None), (3, None, Decimal(9), at)],
    )
    return db


@pytest.fixture
def path(full, tmp_path):
    target = tmp_path / "session.ev"
    full.save(target)
    return target


def test_a_restored_session_is_equal(full, path, state, bag):
    with ev.restore(path) as again:
        assert state(again) == state(full)
        assert again.tables == full.tables
        assert {n: v.sql for n, v in again.views.items()} == {n: v.sql for n, v in full.views.items()}
        assert again.view("rows").explain() == full.view("rows").explain()
        for session in (again, full):
            session.upsert("customer", [(1, "anna", None)])
        assert state(again) == state(full)
        with pytest.raises(ev.ChangeError):
            again.insert("customer", [(2, "x", None)])
        again.save(path)
    with ev.restore(str(path)) as third:
        assert state(third) == state(full)


def test_the_trees_are_chosen_as_they_were(db, tmp_path):
    db.execute("CREATE TABLE r (a INT, b INT); CREATE TABLE s (b INT, c INT); CREATE TABLE t (c INT, d INT)")
    sql = "SELECT r.a, r.b, s.c, t.d FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c"
    plans = {}
    plans["before"] = db.create_view("before", sql).explain("json")
    db.insert("t", [(i, i) for i in range(1000)])
    plans["observed"] = db.create_view("observed", sql).explain("json")
    plans["given"] = db.create_view("given", sql, update_rates={"r": 1000}).explain("json")
    db.insert("r", [(i, i) for i in range(5000)])
    db.save(tmp_path / "s")
    with ev.restore(tmp_path / "s") as again:
        assert {name: view.explain("json") for name, view in again.views.items()} == plans


def test_an_empty_session(db, tmp_path):
    db.save(tmp_path / "s")
    with ev.restore(tmp_path / "s") as again:
        assert (again.tables, again.views, again.version) == ({}, {}, 0)


def refused(path, code, match=None):
    with pytest.raises(ev.SnapshotError, match=match) as refusal:
        ev.restore(path)
    assert refusal.value.code == code
    assert str(path) in str(refusal.value)
    assert refusal.value.hint


def test_every_flipped_byte_is_noticed(path):
    content = path.read_bytes()
    for at in range(0, len(content), max(1, len(content) // 97)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(ev.SnapshotError):
            ev.restore(path)


@pytest.mark.parametrize("kept", [8, 20, 51, 200, -1])
def test_cut_files_are_refused(path, kept):
    path.write_bytes(path.read_bytes()[:kept])
    refused(path, "SNAPSHOT_DAMAGED")


@pytest.mark.parametrize(
    "content", [b"", b"EVER", b"PK\3\4 something else entirely, long enough to be read as a header"]
)
def test_foreign_files_are_refused(tmp_path, content):
    path = tmp_path / "foreign"
    path.write_bytes(content)
    refused(path, "NOT_A_SNAPSHOT", "not an everview snapshot")


def test_other_versions_are_refused(path):
    content = bytearray(path.read_bytes())
    content[8:12] = (99).to_bytes(4, "little")
    path.write_bytes(content)
    refused(path, "SNAPSHOT_VERSION", "format 99")


def forged(header):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    body = b"EVERVIEW" + snapshot.FORMAT_VERSION.to_bytes(4, "little") + len(text).to_bytes(8, "little") + text
    return body + hashlib.sha256(body).digest()


@pytest.mark.parametrize(
    "header",
    [
        b"not json",
        {},
        {"rows": 5},
        {"rows": [], "tables": [{}], "updates": [], "views": [], "version": 1},
        {"rows": [9], "tables": [], "updates": [], "views": [], "version": 1},
        [],
    ],
)
def test_content_that_is_no_session_is_refused(tmp_path, header):
    path = tmp_path / "forged"
    path.write_bytes(forged(header))
    refused(path, "SNAPSHOT_DAMAGED")


def test_a_missing_file_is_the_systems_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        ev.restore(tmp_path / "nowhere")


def test_a_failing_save_leaves_the_old_file(full, path, monkeypatch):
    before = path.read_bytes()
    full.insert("empty", [(1.0,)])

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(snapshot.os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        full.save(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_saving_into_no_directory(full, tmp_path):
    with pytest.raises(FileNotFoundError):
        full.save(tmp_path / "no" / "file")


def test_a_snapshot_has_the_permissions_of_any_new_file(path, tmp_path):
    other = tmp_path / "other"
    other.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(other.stat().st_mode)


def test_saving_in_a_callback_is_reading(full, path):
    full.view("rows").subscribe(lambda _: full.save(path))
    full.insert("customer", [(3, "cid", None)])
    full.insert("orders", [(7, 3, None, None)])
    with ev.restore(path) as again:
        assert again.view("rows").count() == full.view("rows").count() == 4


def test_a_refused_sql_text_is_named_as_such(tmp_path, monkeypatch):
    """As by an everview that maintains less than the one that wrote it."""
    from everview.session import snapshot

    with ev.connect() as db:
        db.execute("CREATE TABLE t (a INT)")
        db.create_view("kept", "SELECT a FROM t")
        db.create_view("gone", "SELECT a + 1 AS b FROM t")
        db.save(tmp_path / "s")
    create = snapshot.create_view

    def refusing(state, name, sql, rates):
        return create(state, name, sql if name == "kept" else "SELECT percentile(a) AS b FROM t", rates)

    monkeypatch.setattr(snapshot, "create_view", refusing)
    with pytest.raises(ev.SnapshotError, match="refuses the SQL text of its view `gone`") as refusal:
        ev.restore(tmp_path / "s")
    assert refusal.value.code == "SNAPSHOT_SQL"
    assert refusal.value.parameters["view"] == "gone"
    assert isinstance(refusal.value.__cause__, ev.UnsupportedQueryError)
