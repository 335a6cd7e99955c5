"""Settings: what is missing is named with its value, and configure() sets everything."""

import os
import sys
from types import SimpleNamespace

import pytest

from everview.errors import PipelineError
from everview.spark import settings as module
from everview.spark.settings import check_settings, configure, settings

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class Builder:
    def __init__(self, **options):
        self._options = {"spark." + name.replace("_", "."): value for name, value in options.items()}

    def config(self, name, value):
        self._options[name] = value
        return self


def session(master="local[1]", python=sys.executable, **changes):
    """A session with all settings but those changed; None takes one away."""
    builder = configure(
        Builder(master=master), shards=2, **({} if master.startswith("local") else {"executor_cores": 4})
    )
    found = builder._options | {name.replace("__", "."): value for name, value in changes.items()}
    return SimpleNamespace(
        conf=SimpleNamespace(get=lambda name, default: found.get(name) or default),
        _sc=SimpleNamespace(master=master, pythonExec=python),
    )


def refusal(spark, *, uses_timestamps=False):
    with pytest.raises(PipelineError) as caught:
        check_settings(spark, shards=2, uses_timestamps=uses_timestamps)
    assert caught.value.code == "MISSING_SETTING"
    parameters = caught.value.parameters
    assert f"{parameters['setting']}={parameters['value']}" in str(caught.value)
    assert "configure" in str(caught.value)
    return parameters["setting"], parameters["value"], caught.value.message


def test_what_configure_sets_is_enough():
    for master in ("local", "local[1]", "local[4]", "local[*]", "local[3,2]", "local-cluster[2,3,1024]", "yarn"):
        check_settings(session(master), shards=2, uses_timestamps=True)


def test_configure_sets_everything(monkeypatch):
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    builder = configure(Builder(master="local-cluster[2,3,1024]"), shards=5)
    assert settings(shards=5, executor_cores=3).items() <= builder._options.items()
    unchecked = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
    assert builder._options == {
        "spark.driver.extraJavaOptions": unchecked,
        "spark.executor.extraJavaOptions": unchecked,
        "spark.sql.codegen.hugeMethodLimit": "8000",
        "spark.sql.streaming.checkpointFileManagerClass": FILES,
        "spark.master": "local-cluster[2,3,1024]",
        PROVIDER: ROCKSDB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.task.cpus": "3",
        "spark.sql.shuffle.partitions": "5",
        "spark.sql.session.timeZone": "UTC",
        "spark.pyspark.python": sys.executable,
    }
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


def test_configure_keeps_what_is_set_for_speed():
    java, files = "spark.driver.extraJavaOptions", "spark.sql.streaming.checkpointFileManagerClass"
    builder = Builder(master="local").config(java, "-Xss4m").config(files, "other")
    options = configure(builder)._options
    assert options[java].startswith("-Xss4m -Darrow.") and options[files] == "other"
    assert configure(builder)._options[java] == options[java], "a second time adds nothing"
    assert files not in configure(Builder(master="yarn", executor_cores="2"))._options, "it may be any file system"


def test_configure_keeps_the_python_that_is_chosen(monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    assert configure(Builder(master="local"))._options["spark.pyspark.python"] == "/opt/python"


def test_configure_asks_for_the_cores_of_an_executor():
    with pytest.raises(PipelineError, match="how many cores an executor has is not known"):
        configure(Builder(master="yarn"))
    with pytest.raises(PipelineError, match="how many cores an executor has is not known"):
        configure(Builder())
    assert configure(Builder(master="yarn"), executor_cores=4)._options["spark.task.cpus"] == "4"
    assert configure(Builder(master="yarn", executor_cores="2"))._options["spark.task.cpus"] == "2"


@pytest.mark.parametrize("found", [None, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"])
def test_the_state_store(found):
    name, value, message = refusal(session(**{PROVIDER: found}))
    assert (name, value) == (PROVIDER, ROCKSDB)
    assert (found or "not set") in message


def test_one_task_at_a_time():
    name, value, message = refusal(session("local[4]", spark__task__cpus="1"))
    assert (name, value) == ("spark.task.cpus", "4") and "4 cores and would run 4 tasks" in message
    name, value, _ = refusal(session("local-cluster[2,2,1024]", spark__task__cpus=None))
    assert (name, value) == ("spark.task.cpus", "2")
    name, value, _ = refusal(session("yarn", spark__task__cpus="2", spark__executor__cores="4"))
    assert (name, value) == ("spark.task.cpus", "4")
    check_settings(session("local[4]", spark__task__cpus="3"), shards=2, uses_timestamps=False)


def test_the_time_zone_matters_to_timestamps_only():
    changed = session(**{"spark.sql.session.timeZone": "Europe/Stockholm"})
    assert refusal(changed, uses_timestamps=True)[:2] == ("spark.sql.session.timeZone", "UTC")
    check_settings(changed, shards=2, uses_timestamps=False)


def test_a_worker_without_everview(tmp_path):
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    name, value, message = refusal(session(python=str(python)))
    assert name.startswith("PYSPARK_PYTHON") and value == sys.executable
    assert f"workers would run {python}, which has no everview" in message
    python.write_text("#!/bin/sh\nexit 0\n")
    check_settings(session(python=str(python)), shards=2, uses_timestamps=False)
    python.write_text("#!/bin/sh\nexit 1\n")
    check_settings(session("yarn", python=str(python)), shards=2, uses_timestamps=False)  # of other machines


def test_other_numbers_of_partitions_are_warned_of(caplog):
    with caplog.at_level("WARNING", logger=module.logger.name):
        check_settings(session(), shards=2, uses_timestamps=False)
        assert not caplog.records
        check_settings(session(), shards=4, uses_timestamps=False)
    assert "spark.sql.shuffle.partitions is 2 and the view has 4 shards" in caplog.text


def test_a_session_of_spark(spark, streaming):
    from everview.spark import maintain

    frame = spark.createDataFrame([(1,)], "a INT")
    with pytest.raises(PipelineError) as caught:
        maintain(spark, "SELECT a FROM t", {"t": frame})
    assert caught.value.parameters["setting"] == PROVIDER
    check_settings(streaming, shards=2, uses_timestamps=True)
