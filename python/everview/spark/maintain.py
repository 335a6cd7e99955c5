"""``maintain``: streaming DataFrames and SQL in, a streaming DataFrame of the view's changes out."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from pyspark.sql import functions as f
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from everview.analysis.normalise import merge_equal_atoms
from everview.errors import PipelineError, SchemaError
from everview.explain.formats import explain as explain_view
from everview.explain.layout import explain_layout
from everview.interop.batch import CHANGE_TYPE, MULTIPLICITY
from everview.layout.feeds import columns_read, expressions_of, over
from everview.layout.layout import Layout, lay_out
from everview.lower import lower_query, refuse_warnings
from everview.plan.lower import plan_view
from everview.query.conjunctive import Atom, ConjunctiveQuery, TableSource
from everview.query.logical_view import Core, LogicalView
from everview.shards.pipeline import Pipeline, build_pipeline, hop_name
from everview.spark.dispatch import TIMESTAMP, VERSION, Dispatch, Exit
from everview.spark.inputs import declare, prepare, shape_of
from everview.spark.inputs.table_input import Declared, Prepared, TableInput
from everview.spark.metrics import observed
from everview.spark.placement import engine_keys
from everview.spark.processor import EMITTED, PACKED, EngineProcessor
from everview.spark.samples import measure
from everview.spark.settings import check_settings
from everview.spark.types import to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OnBadRows = Literal["fail", "quarantine"]
Output = Literal["changes", "multiplicity"]
OnWarning = Literal["accept", "refuse"]


def maintain(
    spark: SparkSession,
    sql: str,
    tables: Mapping[str, DataFrame | TableInput],
    *,
    primary_keys: Mapping[str, Sequence[str] | str] | None = None,
    shards: int = 2,
    name: str = "view",
    output: Output = "changes",
    on_bad_rows: OnBadRows = "fail",
    dead_letters: str | None = None,
    table_sizes: Mapping[str, float] | None = None,
    samples: Mapping[str, DataFrame] | None = None,
    tombstones: float = 86400.0,
    on_warning: OnWarning = "accept",
) -> DataFrame:
    """The changes of a view of changing tables, as a DataFrame.

    The DataFrame has the view's columns, ``_change_type`` (insert, delete, update_preimage, update_postimage; ``output="multiplicity"`` gives a
    signed ``_multiplicity`` instead), ``_commit_version`` (the micro-batch) and ``_commit_timestamp``. It is streaming if the tables are.

    ``tables``: per table a DataFrame (inserts, or changes if it has ``_change_type``), ``upserts(...)`` or ``debezium(...)``.
    ``primary_keys``: per table its key; such tables are checked for duplicate keys. ``shards``: over how many engines the work is spread.
    ``on_bad_rows``: ``fail``, or ``quarantine`` to set bad rows aside in the directory ``dead_letters``. ``table_sizes``: expected rows, for the choice
    of shares; ``samples``: batch DataFrames with rows like the tables', from which sizes and heavy hitters are measured instead. Shares are part of
    the state: a query goes on from its checkpoint only with the same. ``tombstones``: seconds for which deleted keys are remembered, to recognise late rows.
    ``on_warning``: ``accept``, or ``refuse`` for views of which ``explain`` warns.
    """
    plan = plan_pipeline(
        sql,
        tables,
        primary_keys=primary_keys,
        shards=shards,
        name=name,
        on_bad_rows=on_bad_rows,
        dead_letters=dead_letters,
        table_sizes=table_sizes,
        samples=samples,
        tombstones=tombstones,
        on_warning=on_warning,
    )
    if output not in ("changes", "multiplicity"):
        raise PipelineError("INVALID_OPTION", f"output is {output!r}", hint="use 'changes' or 'multiplicity'")
    timestamps = any(c.type.is_timestamp for t in plan.declared for c in t.table.columns)
    check_settings(spark, shards=plan.pipeline.shards, uses_timestamps=timestamps)
    return assemble(plan, change_types=output == "changes")


def explain(sql: str, tables: Mapping[str, DataFrame | TableInput], **options: Unpack[PlanOptions]) -> str:
    """How a view would be maintained on Spark: class, join tree and guarantees of what each shard runs, shares, replication, predicted load."""
    plan = plan_pipeline(sql, tables, **options)
    return explain_view(plan_view(plan.layout.view, plan.layout.sources)) + "\n" + explain_layout(plan.layout)


@dataclass(frozen=True)
class PipelinePlan:
    """A view laid out, its pipeline, and the inputs as workers get them."""

    layout: Layout
    pipeline: Pipeline
    declared: tuple[Declared, ...]
    prepared: tuple[Prepared, ...]


class PlanOptions(TypedDict, total=False):
    """The options of ``maintain`` that decide the plan."""

    primary_keys: Mapping[str, Sequence[str] | str] | None
    shards: int
    name: str
    on_bad_rows: OnBadRows
    dead_letters: str | None
    table_sizes: Mapping[str, float] | None
    samples: Mapping[str, DataFrame] | None
    tombstones: float
    on_warning: OnWarning


def plan_pipeline(
    sql: str,
    tables: Mapping[str, DataFrame | TableInput],
    *,
    primary_keys: Mapping[str, Sequence[str] | str] | None = None,
    shards: int = 2,
    name: str = "view",
    on_bad_rows: OnBadRows = "fail",
    dead_letters: str | None = None,
    table_sizes: Mapping[str, float] | None = None,
    samples: Mapping[str, DataFrame] | None = None,
    tombstones: float = 86400.0,
    on_warning: OnWarning = "accept",
) -> PipelinePlan:
    """Everything ``maintain`` decides before it builds a DataFrame."""
    _check_options(shards, on_bad_rows, dead_letters)
    if on_warning not in ("accept", "refuse"):
        raise PipelineError("INVALID_OPTION", f"on_warning is {on_warning!r}", hint="use 'accept' or 'refuse'")
    keys = {table.lower(): [k] if isinstance(k, str) else list(k) for table, k in (primary_keys or {}).items()}
    _refuse_unknown("primary_keys", keys, tables)
    _refuse_unknown("table_sizes", table_sizes or {}, tables)
    _refuse_unknown("samples", samples or {}, tables)
    declared = {t.lower(): declare(t, given, keys.get(t.lower())) for t, given in tables.items()}
    view = _lower(name, sql, declared)
    if on_warning == "refuse":
        refuse_warnings(view)
    read = _read(view)
    _refuse_unused(declared, read)
    _refuse_mixed(list(declared.values()))
    quarantine = on_bad_rows == "quarantine"
    prepared = {table: prepare(declared[table], columns, carry=quarantine) for table, columns in read.items()}
    measured = measure(_cores(view), {t.lower(): frame for t, frame in (samples or {}).items()})
    layout = lay_out(
        view,
        {name: p.table for name, p in prepared.items()},
        shards,
        checked=frozenset(n for n, p in prepared.items() if p.checked),
        sizes=measured.sizes | {t.lower(): float(size) for t, size in (table_sizes or {}).items()},
        heaviest=measured.heaviest,
    )
    inputs = {n: prepared[n].keyed for n in layout.sources if prepared[n].keyed is not None}
    pipeline = build_pipeline(
        layout,
        {n: i for n, i in inputs.items() if i is not None},
        shapes={declared[n].name: shape_of(declared[n], prepared[n]) for n in layout.sources},
        dead_letters=local_path(dead_letters) if quarantine and dead_letters else None,
        tombstone_seconds=tombstones,
    )
    ordered = tuple(prepared[n] for n in layout.sources)
    return PipelinePlan(layout, pipeline, tuple(declared[n] for n in layout.sources), ordered)


def tables_read(name: str, sql: str, declared: Mapping[str, Declared]) -> dict[str, frozenset[str]]:
    """The tables that a view reads, and the columns of each; all names in lower case."""
    return _read(_lower(name, sql, declared))


def _cores(view: LogicalView) -> dict[int, ConjunctiveQuery]:
    """The queries of a view's cores, by stage."""
    return {at: merge_equal_atoms(s.query) for at, s in enumerate(view.stages) if isinstance(s, Core)}


def _read(view: LogicalView) -> dict[str, frozenset[str]]:
    atoms: dict[str, list[Atom]] = {}
    for query in _cores(view).values():
        for atom in query.atoms:
            if isinstance(atom.source, TableSource):
                atoms.setdefault(atom.table.lower(), []).append(atom)
    return {table: frozenset(columns_read(found)) for table, found in sorted(atoms.items())}


def _check_options(shards: int, on_bad_rows: str, dead_letters: str | None) -> None:
    if not isinstance(shards, int) or shards < 1:
        raise PipelineError("INVALID_OPTION", f"shards is {shards!r}", hint="use a whole number from 1 on")
    if on_bad_rows not in ("fail", "quarantine"):
        raise PipelineError("INVALID_OPTION", f"on_bad_rows is {on_bad_rows!r}", hint="use 'fail' or 'quarantine'")
    if on_bad_rows == "quarantine" and not dead_letters:
        raise PipelineError(
            "INVALID_OPTION",
            "on_bad_rows='quarantine' needs a place for the rows",
            hint="pass dead_letters='/some/directory'",
        )


def local_path(directory: str) -> str:
    """A directory of a file system that workers see as a path; ``file:`` may stand before it."""
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):(?://)?", directory)
    if scheme is None:
        return directory
    if scheme[1].lower() != "file":
        raise PipelineError(
            "INVALID_OPTION",
            f"dead_letters is {directory!r}, and workers write dead letters as plain files",
            hint="pass a path that is the same directory on every machine",
        )
    return directory[scheme.end() :]


def _refuse_unknown(option: str, given: Mapping[str, Any], tables: Mapping[str, Any]) -> None:
    known = {t.lower() for t in tables}
    wrong = next((t for t in given if t.lower() not in known), None)
    if wrong is not None:
        raise SchemaError(
            "UNKNOWN_TABLE", f"{option} names `{wrong}`, which is no table", hint=f"the tables are: {', '.join(tables)}"
        )


def _refuse_unused(declared: Mapping[str, Declared], read: Mapping[str, Any]) -> None:
    unused = next((d.name for name, d in declared.items() if name not in read), None)
    if unused is not None:
        raise PipelineError(
            "UNUSED_TABLE",
            f"the view does not read the table `{unused}`",
            hint=f"leave it out; the view reads {', '.join(declared[name].name for name in read)}",
        )


def _refuse_mixed(declared: list[Declared]) -> None:
    streaming = [d.name for d in declared if d.is_streaming]
    batch = [d.name for d in declared if not d.is_streaming]
    if streaming and batch:
        raise PipelineError(
            "MIXED_INPUTS",
            f"`{streaming[0]}` is a streaming DataFrame and `{batch[0]}` is not",
            hint=f"read `{batch[0]}` with spark.readStream too: what its source holds is then the first batch",
        )


def _lower(name: str, sql: str, declared: Mapping[str, Declared]) -> LogicalView:
    tables = {n: replace(d.table, unreadable=tuple(d.unreadable.items())) for n, d in declared.items()}
    return lower_query(name, sql, tables)


def assemble(plan: PipelinePlan, *, change_types: bool) -> DataFrame:
    pipeline = plan.pipeline
    keys = engine_keys(pipeline.shards)
    to_shards: list[DataFrame] = []
    to_normaliser: list[DataFrame] = []
    for number, (source, prepared) in enumerate(zip(pipeline.sources, plan.prepared, strict=True)):
        names = prepared.frame.columns
        dispatch = Dispatch(pipeline, number, keys, names, _scans(plan.layout, source.table.name, prepared))
        plain = prepared.frame.toDF(
            *(f"c{i}" for i in range(len(names)))
        )  # mapInArrow takes a name with a dot for a path
        packed = plain.mapInArrow(dispatch, PACKED)
        (to_shards if source.keyed is None else to_normaliser).append(packed)
    arriving = to_normaliser
    for hop in pipeline.hop_numbers:
        given = [*to_shards, *arriving] if hop == 0 else arriving
        changed = _hop(pipeline, hop, given, keys)
        arriving = [changed.select(*PACKED.names)]
    is_barrier = pipeline.shards > 1 and len(pipeline.hops) == 1  # one shard accepts the batch before it emits
    if is_barrier or pipeline.gathered_by is not None:
        changed = changed.repartition(pipeline.shards, "destination")
    fields = [StructField(c.name, to_spark(c.type), c.nullable) for c in plan.layout.columns]
    kind = (
        StructField(CHANGE_TYPE, StringType(), False) if change_types else StructField(MULTIPLICITY, LongType(), False)
    )
    commit = [StructField(VERSION, LongType(), False), StructField(TIMESTAMP, TimestampType(), False)]
    # the time comes in with the blobs: adding it to the rows that leave would copy each of them once more
    blobs = changed.select("blob", f.current_timestamp())
    return blobs.mapInArrow(Exit(pipeline, change_types), StructType([*fields, kind, *commit]))


def _hop(pipeline: Pipeline, hop: int, arriving: Sequence[DataFrame], keys: Sequence[int]) -> DataFrame:
    first, *others = arriving
    for other in others:
        first = first.union(other)
    processor = EngineProcessor(pipeline, hop, keys)
    rows = first.groupBy("destination").transformWithState(processor, EMITTED, "Append", "None")
    return observed(rows, pipeline.name, hop_name(hop), pipeline.shards)


def _scans(layout: Layout, table: str, prepared: Prepared) -> list[tuple[str | None, list[str]]]:
    """What engines evaluate on rows of a table: per atom its filter and the other expressions."""
    found = []
    for query in _cores(layout.view).values():
        for atom in query.atoms:
            if atom.source != TableSource(atom.table) or atom.table.lower() != table.lower():
                continue
            condition = None if atom.filter is None else json.dumps(over(atom.filter, prepared.table))
            others = [json.dumps(over(e, prepared.table)) for e in expressions_of(atom) if e is not atom.filter]
            found.append((condition, others))
    return found
