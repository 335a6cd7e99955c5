"""What is stored of every released format: a session's snapshot, the state of engines, a checkpoint of Spark; and how it is written.

Written once per format, by ``python tests/stored/states.py FORMAT``, and never changed: the tests restore all of them with every later version.
"""

from __future__ import annotations

import json
import shutil
import sys
import zipfile
from decimal import Decimal
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "shards"), str(HERE.parent / "spark" / "pipeline")]

import everview as ev
from everview.schema.datatype import BIGINT, INT, decimal
from everview.schema.table import Column, Table
from everview.testing.memory_store import MemoryStore

# ---- a session -------------------------------------------------------------------------------------------------------

DDL = """
CREATE TABLE customer (ck BIGINT PRIMARY KEY, name STRING NOT NULL, nation STRING);
CREATE TABLE orders (ok BIGINT PRIMARY KEY, ck BIGINT, day DATE, total DECIMAL(12, 2));
CREATE TABLE line (ok BIGINT, price DOUBLE, flag BOOLEAN, at TIMESTAMP, note BINARY);
CREATE TABLE recent (k INT, t TIMESTAMP_NTZ) TBLPROPERTIES ('everview.retain_rows' = '3');
CREATE VIEW spent AS SELECT c.nation, SUM(o.total) AS total, COUNT(*) AS n FROM customer c JOIN orders o ON c.ck = o.ck GROUP BY c.nation;
CREATE VIEW idle AS SELECT c.ck, c.name FROM customer c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.ck = c.ck);
CREATE VIEW lines AS SELECT o.ok, l.price, l.flag FROM orders o LEFT JOIN line l ON o.ok = l.ok;
CREATE VIEW nations AS SELECT COUNT(*) AS nations, SUM(n) AS orders FROM spent;
CREATE VIEW first AS SELECT ok, total FROM orders ORDER BY total DESC LIMIT 2
"""
VIEWS = ("spent", "idle", "lines", "nations", "first")
ROWS = {
    "customer": [(1, "ann", "se"), (2, "Zoë", None), (3, "bob", "de")],
    "orders": [(10, 1, "2024-02-29", "12.50"), (11, 1, None, "-3.25"), (12, 3, "1999-12-31", None)],
    "line": [
        (10, 0.5, True, "2024-05-01 12:00:00", b"\xff"),
        (10, 0.5, True, "2024-05-01 12:00:00", b"\xff"),
        (None, -0.0, None, None, None),
        (12, 1e300, False, "1969-12-31 23:59:59.000001", b""),
    ],
    "recent": [(1, "2024-01-01 00:00:00"), (2, None), (3, "2024-01-02 00:00:00"), (4, "2024-01-03 00:00:00")],
}
LATER = {"customer": [(4, "eve", "se")], "orders": [(13, 4, "2024-03-01", "7.00"), (14, 2, None, "1.00")]}


def values(rows):
    """Rows with values of the types of their columns."""
    from datetime import date, datetime, timezone

    def value(x):
        if isinstance(x, str) and len(x) == 10 and x[4] == x[7] == "-":
            return date.fromisoformat(x)
        if isinstance(x, str) and len(x) > 18 and x[4] == x[7] == "-":
            return datetime.fromisoformat(x)
        return Decimal(x) if isinstance(x, str) and x.lstrip("-").replace(".", "", 1).isdigit() else x

    found = [tuple(value(x) for x in row) for row in rows]
    utc = lambda row: tuple(x.replace(tzinfo=timezone.utc) if isinstance(x, datetime) else x for x in row)
    return [utc(row) if len(row) == 5 else row for row in found]


def new_session():
    session = ev.connect()
    session.execute(DDL)
    session.apply({table: values(rows) for table, rows in ROWS.items()})
    return session


def results(session):
    """What the views hold, as texts that compare."""
    return {name: sorted(map(repr, session.view(name).to_arrow().to_pylist())) for name in VIEWS}


# ---- engines ---------------------------------------------------------------------------------------------------------

TABLES = [
    Table("c", (Column("ck", BIGINT, False), Column("g", INT)), ("ck",)),
    Table("o", (Column("ok", BIGINT, False), Column("ck", BIGINT), Column("p", decimal(9, 2))), ("ok",)),
    Table("l", (Column("ok", BIGINT), Column("q", BIGINT), Column("r", BIGINT))),
]
MODES = {"c": "images", "o": "ordered"}
SQL = (
    "WITH d AS (SELECT o.ck, COUNT(*) AS n, SUM(o.p) AS p FROM o WHERE EXISTS (SELECT 1 FROM l WHERE l.ok = o.ok) GROUP BY o.ck)"
    " SELECT c.g, SUM(d.n) AS n, SUM(d.p) AS p FROM c LEFT JOIN d ON c.ck = d.ck GROUP BY c.g"
)
CHANGES = [
    [("c", (1, 5), 1), ("c", (2, 6), 1), ("c", (3, 5), 1), ("o", (7, 1, Decimal("1.50")), 1), ("l", (7, 1, 9), 1)],
    [("o", (8, 3, Decimal("2.25")), 1), ("o", (9, 3, None), 1), ("l", (8, 1, 1), 1), ("l", (8, 2, 2), 1)],
    [("l", (8, 1, 1), -1), ("l", (9, 0, 0), 1), ("c", (2, 6), -1), ("c", (2, None), 1)],
]
LAST = [
    ("l", (7, 1, 9), -1),
    ("o", (8, 3, Decimal("2.25")), -1),
    ("c", (4, 6), 1),
    ("o", (5, 4, Decimal("0.75")), 1),
    ("l", (5, 5, 5), 1),
]


def new_engines(shards, batches=CHANGES):
    from watching import Watched

    found = Watched(SQL, TABLES, shards, MODES)
    for batch in batches:
        found.step(batch)
    return found


def write_engines(path, shards):
    watched = new_engines(shards)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for (stage, number), store in watched.run.stores.items():
            file.writestr(f"{stage}-{number}/head", store.head or "")
            for kind, blobs in (("log", store.log), ("snapshot", store.snapshot)):
                for at, blob in enumerate(blobs):
                    file.writestr(f"{stage}-{number}/{kind}/{at:04d}", blob)


def read_engines(path, shards):
    """The stores of engines, and a pipeline that goes on from them."""
    from watching import Watched

    found = Watched(SQL, TABLES, shards, MODES)
    found.sequence = sum(len(batch) for batch in CHANGES)
    with zipfile.ZipFile(path) as file:
        for name in sorted(file.namelist()):
            engine, kind, *_ = name.split("/")
            stage, number = engine.rsplit("-", 1)
            store = found.run.stores.setdefault((stage, int(number)), MemoryStore())
            if kind == "head":
                store.head = file.read(name).decode()
            else:
                getattr(store, kind).append(file.read(name))
    return found


# ---- Spark -----------------------------------------------------------------------------------------------------------

SPARK_SQL = "SELECT a, COUNT(*) AS n FROM (SELECT DISTINCT x.a, y.b FROM edge x JOIN edge y ON x.b = y.a) GROUP BY a"
PLACE = b"@directory@"
EDGES = [[(1, 2), (2, 3), (2, 4), (3, 1)], [(4, 4), (4, 5), (1, 3)]]


def write_checkpoint(path, directory):
    """Runs a view on Spark and packs its checkpoint; where it lay is not part of it."""
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from stream_runs import Feed, start

    from everview.spark import configure, maintain

    spark = configure(SparkSession.builder.master("local[2]"), shards=2).getOrCreate()
    feed = Feed(directory / "edge", {"a": pa.int64(), "b": pa.int64()})
    for rows in EDGES:
        feed.write(rows)
    checkpoint = directory / "checkpoint"
    start(maintain(spark, SPARK_SQL, {"edge": feed.stream(spark)}, shards=2), checkpoint).wait()
    spark.stop()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for found in sorted(p for p in checkpoint.rglob("*") if p.is_file() and not p.name.endswith(".crc")):
            name = str(found.relative_to(checkpoint))
            file.writestr(
                name,
                found.read_bytes().replace(str(directory).encode(), PLACE) if is_text(name) else found.read_bytes(),
            )


def is_text(name):
    """Whether a file of a checkpoint is one of the logs, which name places."""
    return name.startswith("sources/") or "/_metadata/" in name


def read_checkpoint(path, directory):
    """Unpacks a checkpoint, as if it had been written in a directory, with the files that the query has read."""
    import pyarrow as pa
    from stream_runs import Feed

    feed = Feed(directory / "edge", {"a": pa.int64(), "b": pa.int64()})
    for rows in EDGES:
        feed.write(rows)
    with zipfile.ZipFile(path) as file:
        for name in file.namelist():
            target = directory / "checkpoint" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            found = file.read(name)
            target.write_bytes(found.replace(PLACE, str(directory).encode()) if is_text(name) else found)
    return feed


if __name__ == "__main__":
    import tempfile

    target = HERE / sys.argv[1]
    target.mkdir()
    with new_session() as made:
        made.save(target / "session.everview")
        (target / "session.json").write_text(json.dumps(results(made), indent=1, ensure_ascii=False) + "\n")
    for count in (1, 3):
        write_engines(target / f"engines-{count}.zip", count)
    scratch = Path(tempfile.mkdtemp())
    write_checkpoint(target / "checkpoint.zip", scratch)
    shutil.rmtree(scratch)
