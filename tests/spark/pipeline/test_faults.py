"""Executors and drivers that are killed: what the sink holds in the end is the view, nothing lost and nothing doubled."""

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest
from fault_driver import SQL
from processes import descendants, wait_until
from stream_changes import EMPTY, fill, tables
from stream_runs import Scenario, rows_of

from everview.spark.sinks import parquet_sink

SCRIPT = Path(__file__).with_name("fault_driver.py")
SIZES = [40, 20, 20, EMPTY, 30, 15, 15]
PATIENCE = 240


def spark_home(directory):
    """Spark's files, in a place where its workers may leave theirs."""
    home = directory / "home"
    if not home.exists():
        home.mkdir()
        for entry in Path(pyspark.__file__).parent.iterdir():
            if entry.name != "work":
                (home / entry.name).symlink_to(entry)
    return home


class Driver:
    """A driver process, and everything that descends from it."""

    def __init__(self, directory, master, *how):
        self.directory = directory
        self.marks = directory / "marks"
        self.log = (directory / f"driver-{len(list(directory.glob('driver-*')))}.log").open("wb")
        command = [sys.executable, str(SCRIPT), str(directory), master, *how]
        environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(spark_home(directory))}
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=environment
        )
        self.known = set()

    def below(self):
        self.known |= set(descendants(self.process.pid))
        return self.known

    def executors(self):
        return [
            p for p in self.below() if p.lives and "CoarseGrainedExecutorBackend" in p.command and "java" in p.command
        ]

    def wait_for(self, mark):
        path = self.marks / mark if "/" not in mark else self.directory / mark

        def there():
            self.below()
            assert path.exists() or self.process.poll() is None, f"the driver ended before {mark}:\n{self.tail()}"
            return path.exists()

        wait_until(there, PATIENCE, f"{mark}:\n{self.tail()}")

    def finish(self):
        wait_until(lambda: self.below() is not None and self.process.poll() is not None, PATIENCE, "the driver to end")
        return self.process.returncode

    def kill(self):
        """SIGKILL, and the end of all that descends from it."""
        self.below()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.end()

    def end(self):
        self.below()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for process in self.known:
            process.kill()
        wait_until(lambda: not any(p.lives for p in self.known), 30, "the driver's processes to end")
        self.log.close()

    def tail(self):
        return Path(self.log.name).read_text(errors="replace")[-3000:]


@pytest.fixture
def drive(spark, streaming, tmp_path):
    """A scenario on disk, and drivers for it, all of which end with the test."""
    given = Scenario(spark, streaming, tmp_path, tables("edge", "customer"))
    drivers = []

    def start(master, *how):
        drivers.append(Driver(tmp_path, master, *how))
        return drivers[-1]

    yield given, start
    for driver in drivers:
        driver.end()


def check(given):
    expected = given.recomputed(SQL, given.contents[-1:])[0]
    assert len(expected) > 1
    assert Counter(rows_of(pq.read_table(given.directory / "view"))) == expected
    assert given.full_result() == expected


def test_an_executor_and_drivers_are_killed(drive):
    """Where a driver dies between noting a file and noting the batch with it, the batch grows by a file: batches may be fewer than files."""
    given, start = drive
    given.checkpoint = lambda name: given.directory / "checkpoint"
    fill(given, SIZES, seed=11)
    commits = given.directory / "checkpoint" / "commits"

    first = start("local-cluster[2,1,1024]", "die-after-sink", "3")
    first.wait_for("begin-1")
    executors = first.executors()
    assert len(executors) == 2
    executors[0].kill()
    assert first.finish() == 9, first.tail()  # the query has gone on; the sink has a batch that Spark does not know of
    assert not executors[0].lives
    first.end()
    assert (given.directory / "marks" / "sunk-3").exists() and not (commits / "3").exists()

    second = start("local[1]")
    second.wait_for("begin-5")
    second.kill()  # within a batch

    changes = given.maintained(SQL, shards=2)  # and the rest here
    writer = changes.writeStream.trigger(availableNow=True).option("checkpointLocation", str(given.checkpoint("c")))
    writer.foreachBatch(parquet_sink(given.directory / "view", key="nation", buckets=2)).start().awaitTermination()
    check(given)
