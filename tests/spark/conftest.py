"""One Spark session for all tests of this directory; skipped, with the reason, where pyspark or Java 17 is missing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parent / "forking"))
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers import everview; read when the session starts


def _missing() -> str | None:
    try:
        import pyspark
    except ImportError:
        return "pyspark is not installed"
    if not pyspark.__version__.startswith("4.3."):
        return f"the semantics are those of Spark 4.3, and pyspark is {pyspark.__version__}"
    java = shutil.which("java")
    if java is None:
        return "Spark needs Java, and there is no `java` on the PATH"
    if subprocess.run([java, "-version"], capture_output=True, check=False).returncode:
        return "`java -version` fails"
    return None


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    reason = _missing()
    if reason is not None:
        pytest.skip(reason)
    from fork_server import serving
    from spark_oracle import start

    directory = tmp_path_factory.mktemp("spark")
    with serving() as variables:
        with pytest.MonkeyPatch.context() as patched:
            for name, value in variables.items():
                patched.setenv(name, value)
            session = start(directory)  # drivers that tests start are not served: they start what users' drivers start
        yield session
        session.stop()


@pytest.fixture(scope="session")
def streaming(spark):
    """The same Spark with the settings of everview.spark: one core, so one task at a time."""
    from everview.spark.settings import settings

    session = spark.newSession()
    for name, value in settings(shards=2, executor_cores=1).items():
        if name.startswith("spark.sql."):
            session.conf.set(name, value)
    return session
