"""The console: the first changes of each batch, for people. What the view holds is in the checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from everview.interop.batch import CHANGE_TYPE
from everview.spark.dispatch import TIMESTAMP, VERSION
from everview.spark.result import full_result
from everview.spark.sinks.job_sink import JobSink, SinkFunction, or_none

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import types as st

    from everview.spark.job_keys import Section

_SHOWN_ROWS = 20


def console_sink(view: str, on_rows: Callable[[str], None]) -> SinkFunction:
    """Prints the first changes of each batch. All of them are taken to the driver: a batch that is not read to its end does not advance the state."""

    def write(changes: DataFrame, batch_id: int) -> None:
        rows = changes.drop(VERSION, TIMESTAMP).toArrow()
        on_rows(f"view {view}, batch {batch_id}: {rows.num_rows} changes")
        for row in rows.slice(0, _SHOWN_ROWS).to_pylist():
            kind = row.pop(CHANGE_TYPE)
            on_rows(f"  {kind:<16} " + ", ".join(f"{k}={'NULL' if v is None else v}" for k, v in row.items()))
        if rows.num_rows > _SHOWN_ROWS:
            on_rows(f"  and {rows.num_rows - _SHOWN_ROWS} more")

    return write


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSink(JobSink):
    """Prints changes."""

    kind: ClassVar[str] = "console"
    keys: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def read(cls, section: Section, key: tuple[str, ...] | None) -> Self:
        del section
        return cls(key=key)

    @property
    def target(self) -> str:
        return "the console"

    @property
    def place(self) -> None:
        return None

    def writer(self, view: str, on_rows: Callable[[str], None]) -> SinkFunction:
        return console_sink(view, on_rows)

    def contents(self, spark: SparkSession, schema: st.StructType, checkpoint: str) -> DataFrame | None:
        del schema
        return or_none(lambda: full_result(spark, checkpoint))
