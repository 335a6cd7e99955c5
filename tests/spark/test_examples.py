"""The examples, run as their READMEs say."""

import importlib.util
import os
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from spark_oracle import QUICK_JVM

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_debezium(streaming, tmp_path):
    spec = importlib.util.spec_from_file_location("revenue", EXAMPLES / "debezium" / "revenue.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    rows = [tuple(row) for row in example.main(streaming, tmp_path)]
    assert rows == [("UK", 2, Decimal("21.00")), ("US", 2, Decimal("13.50"))]
    readme = (EXAMPLES / "debezium" / "README.md").read_text()
    assert "\n".join(" ".join(map(str, row)) for row in rows) in readme


# ---- the declarative pipeline ----------------------------------------------------------------------------------------

PACKAGES = ("yaml", "grpc", "grpc_status", "google.protobuf", "zstandard")
COMMAND = Path(sys.executable).parent / "spark-pipelines"


@pytest.fixture
def pipeline(spark, tmp_path):
    """A copy of the example with the paths of this machine; ``spark`` skips where Spark is missing."""
    if not COMMAND.exists():
        pytest.skip(f"there is no {COMMAND}")
    missing = [name for name in PACKAGES if not _found(name)]
    if missing:
        pytest.skip(f"declarative pipelines need pyspark[pipelines]: {', '.join(missing)} not installed")
    folder = tmp_path / "pipelines"
    shutil.copytree(EXAMPLES / "pipelines", folder, ignore=shutil.ignore_patterns("storage", "spark-warehouse"))
    for day, name in enumerate(("first", "later")):
        os.utime(folder / "data" / "friends" / f"{name}.json", (1767225600 + day * 86400,) * 2)
    text = (folder / "spark-pipeline.yml").read_text()
    assert "storage: file://HERE/storage" in text
    (folder / "my-pipeline.yml").write_text(text.replace("HERE", str(folder)))
    return folder


def _found(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def run(folder):
    environment = os.environ | {
        "PATH": f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JAVA_TOOL_OPTIONS": QUICK_JVM,
    }
    command = [COMMAND, "--remote", "local[1]", "run", "--spec", "my-pipeline.yml"]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    table = pq.read_table(folder / "spark-warehouse" / "friend_of_friend_changes")
    rows = table.select(["_commit_version", "a", "b", "_change_type"]).to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def test_pipelines(pipeline):
    first = [(0, "ada", "cleo", "insert"), (0, "ben", "dan", "insert"), (0, "eve", "dan", "insert")]
    later = [
        (1, "ben", "dan", "delete"),
        (1, "cleo", "ada", "insert"),
        (1, "dan", "ben", "insert"),
        (1, "dan", "eve", "insert"),
    ]
    assert run(pipeline) == first + later
    readme = (EXAMPLES / "pipelines" / "README.md").read_text()
    for _, *row in first + later:
        assert f"| {' | '.join(row)} |" in readme
