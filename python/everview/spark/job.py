"""A job file: tables, views over them and where each goes, read from TOML and judged before Spark is started.

A ``Job`` is made of values only. Everything that can be known without Spark holds for it: keys, types, names and paths, columns of the schemas
given, and the SQL of all views whose tables have one. The format is described in docs/reference/jobs.md.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from everview.errors import PipelineError
from everview.interop.batch import CHANGE_TYPE, MULTIPLICITY
from everview.query.logical_view import OutputColumn
from everview.schema.table import Table
from everview.spark.dispatch import TIMESTAMP, VERSION
from everview.spark.inputs import JOB_INPUTS
from everview.spark.inputs.debezium_values import TimeUnit
from everview.spark.job_keys import Section, job_error, near
from everview.spark.job_schema import KnownTable, SchemaTextError, check_sink_key, check_sql, read_schema
from everview.spark.maintain import OnBadRows
from everview.spark.sinks import JOB_SINKS, JobSink

AVAILABLE_NOW = "available-now"

_JOB = ("name", "master", "shards", "trigger", "checkpoint", "on_bad_rows", "dead_letters", "spark", "tables", "views")
_TABLE = (
    *("format", "path", "schema", "options", "changes", "primary_key"),
    *("sequence", "delete_when", "column", "row_schema", "time_unit"),
)
_VIEW = ("sql", "sql_file", "sink")
_NEED_PATH = ("parquet", "json", "csv", "text", "orc", "xml", "avro")
_NEED_SCHEMA = ("parquet", "json", "csv", "orc", "xml", "avro")
_INTERVAL = re.compile(r"[1-9]\d* (?:millisecond|second|minute|hour|day)s?")
_TABLE_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_VIEW_NAME = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
_CONTROL = (CHANGE_TYPE, MULTIPLICITY, VERSION, TIMESTAMP)


@dataclass(frozen=True, slots=True)
class TableSource:
    """Where a table's changes come from. ``changes`` is None if that is to be told from the columns of the source."""

    name: str
    format: str
    path: str | None
    schema: str | None
    options: Mapping[str, str]
    changes: str | None
    primary_key: tuple[str, ...]
    sequence: str | None
    delete_when: str | None
    column: str
    row_schema: str | None
    time_unit: TimeUnit


@dataclass(frozen=True, slots=True)
class View:
    """A query and its sink."""

    name: str
    sql: str
    sink: JobSink


@dataclass(frozen=True, slots=True)
class Job:
    """A job file that was read."""

    file: Path
    name: str
    master: str | None
    shards: int
    trigger: str
    checkpoint: str
    on_bad_rows: OnBadRows
    dead_letters: str | None
    spark: Mapping[str, str]
    tables: Mapping[str, TableSource]
    views: Mapping[str, View]

    @property
    def primary_keys(self) -> dict[str, tuple[str, ...]]:
        return {name: table.primary_key for name, table in self.tables.items() if table.primary_key}

    def checkpoint_of(self, view: str) -> str:
        """The checkpoint directory of a view."""
        return f"{self.checkpoint.rstrip('/')}/{view}"

    def dead_letters_of(self, view: str) -> str | None:
        """The directory for rows that a view sets aside; views judge rows by their own expressions, and each has its own."""
        return None if self.dead_letters is None else f"{self.dead_letters.rstrip('/')}/{view}"


def load_job(path: str | os.PathLike[str]) -> Job:
    """Read and judge a job file."""
    file = Path(path)
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PipelineError(
            "JOB_SYNTAX", f"{file} is not TOML: {error}", hint="see docs/reference/jobs.md for an example"
        ) from None
    except OSError as error:
        message = f"the job file {file} cannot be read: {error.strerror}"
        raise PipelineError("JOB_SYNTAX", message, hint="pass the path of a TOML file") from None
    file = file.resolve()
    top = Section(file, "", values)
    top.refuse_unknown(_JOB)
    top.require("tables", "describe each table in [tables.<name>]")
    top.require("views", "describe each view in [views.<name>]")
    quarantine = top.choice("on_bad_rows", ("fail", "quarantine")) == "quarantine"
    if quarantine:
        top.require("dead_letters", "name the directory for rows that are set aside")
    else:
        top.refuse(["dead_letters"], "has no meaning here", 'set on_bad_rows = "quarantine", or leave it out')
    shards = top.positive("shards", 2)
    tables = {name: _table(name, s) for name, s in _named(top, "tables", _TABLE_NAME).items()}
    known = {name: _known(source, top.section("tables").section(name)) for name, source in tables.items()}
    views = {name: _view(name, s, known, shards) for name, s in _named(top, "views", _VIEW_NAME).items()}
    _refuse_shared_targets(file, views)
    top.require("checkpoint", "name the directory that keeps the state, for example checkpoints/revenue")
    checkpoint = top.path("checkpoint")
    assert checkpoint is not None
    return Job(
        file=file,
        name=top.text("name") or file.stem,
        master=top.text("master"),
        shards=shards,
        trigger=_trigger(top),
        checkpoint=checkpoint,
        on_bad_rows="quarantine" if quarantine else "fail",
        dead_letters=top.path("dead_letters"),
        spark=_spark_settings(top),
        tables=tables,
        views=views,
    )


def _trigger(top: Section) -> str:
    found = top.text("trigger") or AVAILABLE_NOW
    if found != AVAILABLE_NOW and not _INTERVAL.fullmatch(found):
        hint = f'use "{AVAILABLE_NOW}", or the time between micro-batches such as "5 seconds"'
        raise top.error("trigger", f"is {found!r}", hint)
    return found


def _spark_settings(top: Section) -> dict[str, str]:
    settings = top.settings("spark")
    wrong = next((name for name in settings if not name.startswith("spark.")), None)
    if wrong is not None:
        # a bare spark.x = 1 under [spark] is spark.spark.x, and arrives here as it should
        raise top.error(f"spark.{wrong}", "is no setting of Spark", f'settings begin with "spark.": "spark.{wrong}"')
    if "spark.master" in settings:
        raise top.error("spark.spark.master", "is given among the settings", "use the key `master`")
    return settings


def _named(top: Section, key: str, pattern: re.Pattern[str]) -> dict[str, Section]:
    """The tables of [tables] or [views], at least one, their names distinct whatever the case."""
    found = top.sections(key)
    if not found:
        raise top.error(key, "is empty", f"describe at least one in [{key}.<name>]")
    seen: dict[str, str] = {}
    for name in found:
        if not pattern.fullmatch(name):
            raise top.error(f"{key}.{name}", "is not a name", "use letters, digits and _, beginning with a letter")
        if name.lower() in seen:
            message = f"differs from `{seen[name.lower()]}` in case only, which SQL does not tell apart"
            raise top.error(f"{key}.{name}", message, "rename one of them")
        seen[name.lower()] = name
    return found


# ---- tables ----------------------------------------------------------------------------------------------------------


def _table(name: str, section: Section) -> TableSource:
    section.refuse_unknown(_TABLE)
    given = section.required_text("format", "name a streaming source of Spark: parquet, json, csv, text, kafka, delta")
    kind = given.lower()
    if kind in _NEED_PATH:
        section.require("path", f"name the directory of the {kind} files")
    changes = section.choice("changes", tuple(JOB_INPUTS))
    given_as = None if changes is None else JOB_INPUTS[changes]
    for key in dict.fromkeys(key for known in JOB_INPUTS.values() for key in known.job_keys):
        kinds = [known.kind for known in JOB_INPUTS.values() if key in known.job_keys]
        if changes not in kinds:
            hint = f'set changes = "{kinds[0]}", or leave it out'
            section.refuse([key], f"has a meaning for {' and '.join(kinds)} only", hint)
    if kind in _NEED_SCHEMA:
        section.require("schema", f'{kind} files need their columns, for example schema = "id BIGINT, name STRING"')
    for key, hint in (given_as.needs if given_as is not None else {}).items():
        section.require(key, hint)
    return TableSource(
        name=name,
        format=given,
        path=section.path("path"),
        schema=section.text("schema"),
        options=section.settings("options"),
        changes=changes,
        primary_key=section.names("primary_key"),
        sequence=section.text("sequence"),
        delete_when=section.text("delete_when"),
        column=section.text("column") or "value",
        row_schema=section.text("row_schema"),
        time_unit=cast("TimeUnit", section.choice("time_unit", ("millis", "micros", "nanos")) or "millis"),
    )


def _known(source: TableSource, section: Section) -> KnownTable | None:
    """The columns that views see of a table, if the file tells; names of columns elsewhere in the table must be among them."""
    arriving = _read(source.name, section, "schema")
    schema_key = "schema" if source.changes is None else JOB_INPUTS[source.changes].schema_key
    if schema_key != "schema":  # what arrives are not the rows of the table
        rows = _read(source.name, section, schema_key)
        _require_columns(section, "primary_key", source.primary_key, rows)
        _require_columns(section, "column", [source.column], arriving)
        return None if rows is None else rows.keyed(source.primary_key)
    if arriving is None:
        return None
    _require_columns(section, "primary_key", source.primary_key, arriving)
    _require_columns(section, "sequence", [source.sequence] if source.sequence else [], arriving)
    if source.changes == "changes" and not (arriving.has(CHANGE_TYPE) or arriving.has(MULTIPLICITY)):
        hint = f"add {CHANGE_TYPE} STRING to the schema, or set changes to another kind"
        raise section.error("changes", f"is 'changes', and the schema has no column {CHANGE_TYPE}", hint)
    columns = tuple(c for c in arriving.table.columns if c.name.lower() not in _CONTROL)
    return KnownTable(Table(source.name, columns), arriving.unread).keyed(source.primary_key)


def _read(name: str, section: Section, key: str) -> KnownTable | None:
    text = section.text(key)
    if text is None:
        return None
    try:
        return read_schema(name, text)
    except SchemaTextError as error:
        raise section.error(key, str(error), error.hint) from None


def _require_columns(section: Section, key: str, names: tuple[str, ...] | list[str], known: KnownTable | None) -> None:
    if known is None:
        return
    for name in names:
        if not known.has(name):
            message = f"names `{name}`, which is no column of the table"
            raise section.error(key, message, near(name, known.names))


# ---- views -----------------------------------------------------------------------------------------------------------


def _view(name: str, section: Section, tables: Mapping[str, KnownTable | None], shards: int) -> View:
    section.refuse_unknown(_VIEW)
    sql = _sql(section)
    known = check_sql(section.file, name, sql, tables, shards=shards)
    section.require("sink", f"say in [views.{name}.sink] where the view goes")
    sink = _sink(section.section("sink"), None if known is None else known.columns)
    if known is not None:
        check_sink_key(section.file, name, sink.key, known)
    return View(name, sql, sink)


def _sql(section: Section) -> str:
    if "sql" not in section.values:
        section.require(
            "sql_file" if "sql_file" in section.values else "sql", "give the SELECT, or its file in `sql_file`"
        )
        path = section.path("sql_file")
        assert path is not None
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise section.error("sql_file", f"is {path}, which cannot be read: {reason}", "correct the path") from None
    else:
        section.refuse(["sql_file"], "is given beside `sql`", "leave one of them out")
        text = section.text("sql") or ""
    return text.strip().removesuffix(";").rstrip()


def _sink(section: Section, columns: tuple[OutputColumn, ...] | None) -> JobSink:
    section.require("kind", f"use one of {', '.join(JOB_SINKS)}")
    kind = section.choice("kind", tuple(JOB_SINKS))
    assert kind is not None
    section.refuse_unknown(("kind", *JOB_SINKS[kind].keys))
    key = section.names("key") or None
    names = [c.name for c in columns or ()]
    for column in key or ():
        if columns is not None and column not in names:
            raise section.error("key", f"names `{column}`, which is no column of the view", near(column, names))
    return JOB_SINKS[kind].read(section, key)


def _refuse_shared_targets(file: Path, views: Mapping[str, View]) -> None:
    """Two views in one target would each take the other's rows for its own."""
    seen: dict[tuple[str | None, ...], str] = {}
    for view in views.values():
        target = view.sink.place
        if target is None:
            continue
        if target in seen:
            key = f"views.{view.name}.sink.{view.sink.keys[0]}"
            message = f"is the target of the view `{seen[target]}` too"
            raise job_error("JOB_INVALID_VALUE", file, key, message, "give each view its own")
        seen[target] = view.name
