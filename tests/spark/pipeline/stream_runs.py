"""Views run by Spark over files of changes, one file per table and micro-batch, and Spark SQL over the tables' content as the oracle."""

import math
import os
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from everview.spark import full_result, maintain

SIGNS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}
FIRST = 1_600_000_000  # the time of the first file; the file source goes by time


def canonical(value):
    """A value that compares well: NaNs and zeros are one each, instants are in UTC."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).replace(tzinfo=None) if value.tzinfo else value
    return value


def rows_of(table, columns=None):
    """The rows of an Arrow table as tuples."""
    names = table.schema.names if columns is None else columns
    values = [table.column(name).to_pylist() for name in names]
    return [tuple(map(canonical, row)) for row in zip(*values, strict=True)] if values else [()] * table.num_rows


def bag(rows):
    return Counter(tuple(map(canonical, row)) for row in rows)


def collected(frame):
    """The rows of a batch DataFrame as a bag."""
    return Counter(rows_of(frame.toArrow()))


class Feed:
    """A directory of Parquet files that a streaming DataFrame reads one by one."""

    def __init__(self, directory, columns):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.schema = pa.schema(list(columns.items()))
        self.files = 0

    def write(self, rows, at=None):
        """The next file, or the one at a position again."""
        at = self.files if at is None else at
        columns = list(zip(*rows, strict=True)) if rows else [[] for _ in self.schema]
        arrays = [pa.array(values, t.type) for values, t in zip(columns, self.schema, strict=True)]
        path = self.directory / f"{at:05d}.parquet"
        waiting = path.with_name(f"_{path.name}")
        pq.write_table(pa.Table.from_arrays(arrays, schema=self.schema), waiting)
        os.utime(waiting, (FIRST + at, FIRST + at))
        waiting.rename(path)
        self.files = max(self.files, at + 1)

    def stream(self, session):
        reader = session.readStream.schema(from_arrow_schema(self.schema)).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.directory))

    def batch(self, session):
        return session.read.schema(from_arrow_schema(self.schema)).parquet(str(self.directory))


class Lines:
    """A directory of text files."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.files = 0

    def write(self, lines):
        path = self.directory / f"_{self.files:05d}"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        os.utime(path, (FIRST + self.files, FIRST + self.files))
        path.rename(self.directory / f"{self.files:05d}.txt")
        self.files += 1

    def stream(self, session):
        return session.readStream.option("maxFilesPerTrigger", 1).text(str(self.directory))


@dataclass
class Run:
    """A run of a streaming query to its end."""

    query: object
    columns: list
    batches: dict = field(default_factory=dict)

    def wait(self):
        self.query.awaitTermination()
        return self

    @property
    def progress(self):
        return self.query.recentProgress

    @property
    def deltas(self):
        """Per batch the net change as a bag with signs."""
        return {number: net(rows, self.columns) for number, rows in sorted(self.batches.items())}

    def results(self):
        """The sum of the deltas after each batch."""
        total, found = Counter(), {}
        for number, delta in self.deltas.items():
            total.update(delta)
            total = Counter({row: count for row, count in total.items() if count})
            found[number] = Counter(total)
        return found

    @property
    def result(self):
        return list(self.results().values())[-1]

    def changes(self, number):
        """The rows of a batch in the order in which they came: (values, change type)."""
        rows = self.batches[number]
        return list(zip(rows_of(rows, self.columns), rows.column("_change_type").to_pylist(), strict=True))


def net(rows, columns):
    if "_multiplicity" in rows.schema.names:
        weights = rows.column("_multiplicity").to_pylist()
    else:
        weights = [SIGNS[kind] for kind in rows.column("_change_type").to_pylist()]
    total = Counter()
    for row, weight in zip(rows_of(rows, columns), weights, strict=True):
        total[row] += weight
    return Counter({row: count for row, count in total.items() if count})


def start(changes, checkpoint, each=None):
    """Start a query that takes all there is and ends. ``each`` is called first with every batch and its number."""
    run = Run(None, [c for c in changes.columns if not c.startswith("_")])

    def take(frame, number):
        if each is not None:
            each(frame, number)
        run.batches[number] = frame.toArrow()

    writer = changes.writeStream.trigger(availableNow=True).option("checkpointLocation", str(checkpoint))
    run.query = writer.foreachBatch(take).start()
    return run


def side_by_side(starters, at_once=2):
    """Starts queries so that two run at a time: a query starts Python processes, and Spark gives each ten seconds to report."""
    runs = {}
    for name, starter in starters.items():
        while sum(run.query.isActive for run in runs.values()) >= at_once:
            time.sleep(0.05)
        runs[name] = starter()
    return runs


class Scenario:
    """Changing tables: {name: (columns, primary key)}. Rows come as changes; a table is a feed and its content after each batch."""

    def __init__(self, spark, streaming, directory, tables):
        self.spark, self.streaming, self.directory = spark, streaming, directory
        self.columns = {name: columns for name, (columns, _) in tables.items()}
        self.keys = {name: key for name, (_, key) in tables.items() if key}
        changed = {"_change_type": pa.string()}
        self.feeds = {name: Feed(directory / name, columns | changed) for name, columns in self.columns.items()}
        self.held = {name: [] for name in tables}
        self.contents = []

    def batch(self, changes):
        """One micro-batch: {table: [(row, change type)]}; every table gets a file."""
        for name, feed in self.feeds.items():
            given = changes.get(name, [])
            feed.write([(*row, kind) for row, kind in given])
            for row, kind in given:
                if SIGNS[kind] > 0:
                    self.held[name].append(row)
                else:
                    self.held[name].remove(row)
        self.contents.append({name: list(rows) for name, rows in self.held.items()})

    def maintained(self, sql, *, batch=False, session=None, **options):
        session = session or self.streaming
        frames = {n: feed.batch(session) if batch else feed.stream(session) for n, feed in self.feeds.items()}
        options.setdefault("primary_keys", self.keys)
        return maintain(session, sql, frames, **options)

    def checkpoint(self, name):
        return self.directory / f"checkpoint-{name}"

    def start(self, sql, *, checkpoint="c", each=None, **options):
        return start(self.maintained(sql, **options), self.checkpoint(checkpoint), each)

    def run(self, sql, **options):
        return self.start(sql, **options).wait()

    def recomputed(self, sql, contents=None):
        """What Spark SQL makes of the tables as they were after each batch, in one job."""
        parts = []
        for number, content in enumerate(self.contents if contents is None else contents):
            for name, rows in content.items():
                fields = [pa.field(c, t) for c, t in self.columns[name].items()]
                arrays = [pa.array([r[i] for r in rows], t.type) for i, t in enumerate(fields)]
                table = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
                self.spark.createDataFrame(table, from_arrow_schema(table.schema)).createOrReplaceTempView(name)
            parts.append(self.spark.sql(sql).withColumn("_batch", f.lit(number)))
        whole = parts[0]
        for part in parts[1:]:
            whole = whole.unionAll(part)
        table = whole.toArrow()
        found = {number: Counter() for number in range(len(parts))}
        for number, row in zip(
            table.column("_batch").to_pylist(), rows_of(table, table.schema.names[:-1]), strict=True
        ):
            found[number][row] += 1
        return found

    def full_result(self, checkpoint="c"):
        return collected(full_result(self.streaming, str(self.checkpoint(checkpoint))))

    def check(self, run, sql, checkpoint="c"):
        """The deltas add up to what Spark SQL computes after every batch, and so does the state at the end."""
        expected = self.recomputed(sql)
        assert run.results() == expected
        assert self.full_result(checkpoint) == expected[len(expected) - 1]
