"""What a kind of sink is to jobs: its keys in the file, how it is written, and how it is read back.

To add a kind: a file with its function for ``foreachBatch`` and a subclass of ``JobSink``, and a line in ``everview.spark.sinks``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql import types as st

    from everview.spark.job_keys import Section

SinkFunction = Callable[[DataFrame, int], None]
"""For ``foreachBatch``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSink(ABC):
    """Where a view goes. ``key``: columns that identify a row; without it the view is a bag."""

    kind: ClassVar[str]
    keys: ClassVar[tuple[str, ...]]
    """The keys of its table in the file, besides ``kind``; the first names the place."""
    key: tuple[str, ...] | None = None

    @classmethod
    @abstractmethod
    def read(cls, section: Section, key: tuple[str, ...] | None) -> Self:
        """From the table of a job file."""

    @property
    @abstractmethod
    def target(self) -> str:
        """The target for people."""

    @property
    @abstractmethod
    def place(self) -> tuple[str | None, ...] | None:
        """What no other view may write to; None where nothing is written."""

    @abstractmethod
    def writer(self, view: str, on_rows: Callable[[str], None]) -> SinkFunction:
        """The function that writes. ``on_rows`` takes lines for people. ImportError if a package is missing."""

    @abstractmethod
    def contents(self, spark: SparkSession, schema: st.StructType, checkpoint: str) -> DataFrame | None:
        """The rows it holds as a view's columns; None if there is nothing yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectorySink(JobSink):
    """A table that is a directory."""

    path: str

    @staticmethod
    def read_path(section: Section) -> str:
        """The directory that a job file names."""
        return section.required_path("path", "name the directory of the table")

    @property
    def target(self) -> str:
        return self.path

    @property
    def place(self) -> tuple[str | None, ...]:
        return (self.path,)


def or_none(read: Callable[[], DataFrame]) -> DataFrame | None:
    """What is read, None if it is not there."""
    try:
        return read()
    except PySparkException as error:
        if error.getCondition() in _ABSENT:
            return None
        raise


_ABSENT = frozenset(
    ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA", "STDS_FAILED_TO_READ_STATE_SCHEMA", "STDS_OFFSET_LOG_UNAVAILABLE")
)
