"""A Spark session whose JVM writes to a file what it would write on the user's screen."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def errors_into(log: str | os.PathLike[str]) -> Iterator[None]:
    """Processes started meanwhile write their standard output and error to a file: the JVM keeps its streams for life.

    Build a session within, and what Spark and its Python workers say goes to the file.
    """
    saved = [os.dup(1), os.dup(2)]
    sys.stdout.flush()
    sys.stderr.flush()
    with Path(log).open("ab") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for stream, old in zip((1, 2), saved, strict=True):
            os.dup2(old, stream)
            os.close(old)


def without_traces(session: SparkSession) -> SparkSession:
    """The same session; PySpark no longer prints stack traces when the JVM is gone, in a thread that waits for it and for every call to it."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # PySpark sets a level when it is imported
    server = getattr(session.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None
    return session
