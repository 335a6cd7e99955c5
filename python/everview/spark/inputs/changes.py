"""Changes of rows: Spark's ``_change_type``, or a signed ``_multiplicity``."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql import functions as f

from everview.errors import PipelineError
from everview.interop.batch import CHANGE_TYPE, MULTIPLICITY
from everview.schema.datatype import BIGINT
from everview.schema.table import Column, Table
from everview.shards.normaliser import KeyedInput
from everview.spark.inputs.table_input import (
    BAD,
    CONTROL,
    UNREAD,
    Declared,
    Prepared,
    TableInput,
    carried,
    picked,
    quoted,
)

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from everview.spark.job import TableSource


@dataclass(frozen=True)
class Changes(TableInput):
    """A DataFrame with a column that says of each row whether it comes or goes."""

    kind: ClassVar[str] = "changes"

    def check(self, name: str, key: Sequence[str]) -> None:
        del key
        if {CHANGE_TYPE, MULTIPLICITY} <= {c.lower() for c in self.frame.columns}:
            raise PipelineError(
                "AMBIGUOUS_CHANGE", f"table `{name}` has {CHANGE_TYPE} and {MULTIPLICITY}", hint="drop one of them"
            )

    def prepare(self, declared: Declared, wanted: Sequence[Column], *, carry: bool) -> Prepared:
        frame, table = self.frame, declared.table
        known = {c.name.lower() for c in wanted} | set(CONTROL)
        unread = [name for name in frame.columns if name.lower() not in known]
        multiplicity, bad = _multiplicity(frame)
        kinds = {s.name: s.dataType.simpleString() for s in frame.schema.fields}
        unread_as = f"{UNREAD}{zlib.crc32(json.dumps([[name, kinds[name]] for name in unread]).encode()):08x}"
        hashed = [f.xxhash64(*(f.col(quoted(name)) for name in unread)).alias(unread_as)] if unread else []
        told = [multiplicity.alias(MULTIPLICITY), bad.alias(BAD)]
        selected = frame.select(*picked(wanted), *hashed, *told, *carried(declared, carry=carry))
        columns = (*wanted, *(Column(unread_as, BIGINT, nullable=False) for _ in hashed))
        unread_types = {name: kinds[name] for name in unread}
        if table.primary_key:
            keyed = KeyedInput(Table(table.name, columns, table.primary_key), hidden=len(hashed))
            whole = Table(table.name, tuple(wanted), table.primary_key)
            return Prepared(whole, selected, keyed, checked=True, unread=unread_types)
        return Prepared(Table(table.name, columns), selected, None, checked=False, unread=unread_types)

    @classmethod
    def of_job(cls, frame: DataFrame, source: TableSource) -> Changes:
        if not {CHANGE_TYPE, MULTIPLICITY} & {c.lower() for c in frame.columns}:
            raise PipelineError(
                "INVALID_INPUT",
                f"`tables.{source.name}.changes` is 'changes', and the source has no column {CHANGE_TYPE}",
                hint=f"its columns are {', '.join(frame.columns)}",
            )
        return cls(frame)


def _multiplicity(frame: DataFrame) -> tuple[SparkColumn, SparkColumn]:
    """The multiplicity of a change, and what is wrong with it."""
    if CHANGE_TYPE not in (c.lower() for c in frame.columns):
        column = f.col(MULTIPLICITY).cast("long")
        return column, f.when(column.isNull(), f.lit("`_multiplicity` is NULL"))
    kind = f.col(CHANGE_TYPE)
    sign = f.when(kind.isin("insert", "update_postimage"), 1).when(kind.isin("delete", "update_preimage"), -1)
    shown = f.coalesce(f.concat(f.lit("'"), kind, f.lit("'")), f.lit("NULL"))
    reason = f.concat(
        f.lit("`_change_type` is "), shown, f.lit(", not insert, delete, update_preimage or update_postimage")
    )
    return sign.cast("long"), f.when(sign.isNull(), reason)
