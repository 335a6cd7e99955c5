"""What processes write while a session is started goes to a file, and only that."""

import subprocess
import sys

import pytest

pytest.importorskip("pyspark")

from everview.spark import errors_into


def test_processes_started_within_write_to_the_file(tmp_path, capfd):
    log = tmp_path / "spark.log"
    say = [sys.executable, "-c", "import sys; print('out'); print('err', file=sys.stderr)"]
    for name in (log, str(log)):
        with errors_into(name):
            subprocess.run(say, check=True)
    subprocess.run(say, check=True)
    assert sorted(log.read_text().split()) == ["err", "err", "out", "out"]
    assert capfd.readouterr() == ("out\n", "err\n")
