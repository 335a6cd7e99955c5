"""Spark SQL as an oracle for scalar expressions and queries.

Spark evaluates many expressions in one query. Where ANSI mode raises, only the cell may be lost and not the query: each expression is
wrapped in an array inside Catalyst's ``TryEval``, which is NULL where the evaluation fails. An array with a NULL inside is a NULL result,
no array is an error. Elimination of common subexpressions is off, since it would evaluate them outside of the wrapper.
"""

import logging
import math
from dataclasses import dataclass, field

import pyarrow as pa

import everview as ev

CHUNK = 40
RELATIVE = 1e-9
ERROR = "<error>"
QUICK_JVM = "-XX:TieredStopAtLevel=1"  # less compiling: no JVM of the tests lives long enough to gain by more
STREAMING = "org.apache.spark.sql.execution.streaming"


def start(directory):
    """A small local session: one core, no UI, UTC, ANSI mode.

    Checkpoints are written by the means for file systems without links: the others run `readlink` as a process, dozens of times per batch.
    """
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.subexpressionElimination.enabled": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.debug.maxToStringFields": "10000",
        "spark.sql.streaming.checkpointFileManagerClass": f"{STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.log.level": "ERROR",
        "spark.driver.extraJavaOptions": f"-Duser.timezone=UTC -Dderby.system.home={directory} {QUICK_JVM}",
    }
    builder = SparkSession.builder.master("local[1]").appName("everview")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)  # every refused query, with its stack
    return session


@dataclass
class Outcome:
    """An expression over all rows: refused as a whole, or a type and a value or error per row."""

    refused: str | None = None
    type: pa.DataType | None = None
    cells: dict[int, object] = field(default_factory=dict)

    @property
    def failing(self):
        return {row for row, cell in self.cells.items() if cell is ERROR}


def values_of(column, found_type):
    """Values that compare well: dates and timestamps as numbers, which Python's classes may not reach; Spark's texts need not be UTF-8."""
    if pa.types.is_string(found_type):
        return [v if v is None else v.decode(errors="surrogateescape") for v in column.cast(pa.binary()).to_pylist()]
    if pa.types.is_date(found_type):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(found_type):
        column = column.cast(pa.int64())
    return column.to_pylist()


# ---- Spark -----------------------------------------------------------------------------------------------------------


def spark_table(spark, name, columns, rows):
    """A stored table (CHAR(n) has a meaning in these only), kept in memory."""
    spark.sql(f"CREATE TABLE {name} ({', '.join(f'{c} {t}' for c, t in columns.items())}) USING parquet")
    spark.createDataFrame(rows).createOrReplaceTempView(f"{name}_rows")
    spark.sql(f"INSERT INTO {name} SELECT * FROM {name}_rows")
    spark.sql(f"CACHE TABLE {name}")
    return spark.table(name)


def _guarded(spark, text):
    from pyspark.sql import functions
    from pyspark.sql.classic.column import Column

    sql = spark._jvm.org.apache.spark.sql
    inner = functions.array(functions.expr(text))._jc  # an unknown syntax raises here
    utils = sql.classic.ExpressionUtils
    return Column(utils.column(sql.catalyst.expressions.TryEval(utils.expression(inner))))


def spark_outcomes(spark, table, expressions):
    """The outcome of every expression over the rows of a table."""
    found = {}
    for start_ in range(0, len(expressions), CHUNK):
        found |= _chunk(spark, table, expressions[start_ : start_ + CHUNK])
    return found


def _chunk(spark, table, expressions):
    from pyspark.errors import PySparkException

    columns = [_guarded(spark, e).alias(f"e{n}") for n, e in enumerate(expressions)]
    try:
        frame = table.select("id", *columns)
    except PySparkException:
        refused = {e: _refusal(table, column) for e, column in zip(expressions, columns, strict=True)}
        found = {e: Outcome(refused=reason) for e, reason in refused.items() if reason is not None}
        rest = [e for e in expressions if e not in found]
        return found | _chunk(spark, table, rest) if rest else found
    try:
        result = frame.toArrow()
    except PySparkException:  # a constant that fails already in the optimizer, whatever the rows are
        if len(expressions) == 1:
            ids = table.select("id").toArrow().column("id").to_pylist()
            return {expressions[0]: Outcome(cells=dict.fromkeys(ids, ERROR))}
        middle = len(expressions) // 2
        return _chunk(spark, table, expressions[:middle]) | _chunk(spark, table, expressions[middle:])
    ids = result.column("id").to_pylist()
    found = {}
    for n, expression in enumerate(expressions):
        chunks = result.column(f"e{n}").chunks
        inner = pa.chunked_array([c.flatten() for c in chunks], type=result.schema.field(f"e{n}").type.value_type)
        values = iter(values_of(inner, inner.type))
        cells = [next(values) if valid else ERROR for c in chunks for valid in c.is_valid().to_pylist()]
        found[expression] = Outcome(type=inner.type, cells=dict(zip(ids, cells, strict=True)))
    return found


def _refusal(table, column):
    from pyspark.errors import PySparkException

    try:
        table.select(column)
    except PySparkException as error:
        return error.getCondition() or str(error)
    return None


# ---- everview --------------------------------------------------------------------------------------------------------


def everview_outcome(expression, columns, rows):
    """The outcome of an expression through the public API; rows that refuse the batch are found one by one."""
    with ev.connect() as db:
        db.execute(f"CREATE TABLE t ({', '.join(f'{c} {t}' for c, t in columns.items())})")
        try:
            view = db.create_view("v", f"SELECT id, {expression} AS r FROM t")
        except ev.EverviewError as error:
            return Outcome(refused=str(error).split("\n")[0])
        rows = rows.select(list(columns))
        failing = set()
        try:
            db.insert("t", rows)
        except ev.ChangeError:
            for n in range(rows.num_rows):
                try:
                    db.insert("t", rows.slice(n, 1))
                except ev.ChangeError:
                    failing.add(rows.column("id")[n].as_py())
            assert failing, f"{expression}: the rows are refused together but none of them alone"
        result = view.to_arrow()
        assert result.schema == view.schema
        r = view.schema.field("r")
        assert r.nullable or not result.column("r").null_count, f"{expression} is declared never NULL and is NULL"
        cells = dict(zip(result.column("id").to_pylist(), values_of(result.column("r"), r.type), strict=True))
        assert not failing & set(cells)
        return Outcome(type=r.type, cells=cells | dict.fromkeys(failing, ERROR))


# ---- comparison ------------------------------------------------------------------------------------------------------


def same(one, two):
    """Whether two values are equal; doubles within 1e-9 relative, zeros of either sign."""
    if isinstance(one, float) and isinstance(two, float):
        if math.isnan(one) or math.isnan(two):
            return math.isnan(one) and math.isnan(two)
        return one == two or math.isclose(one, two, rel_tol=RELATIVE)
    return type(one) is type(two) and one == two


def differences(ours, spark, describe=str):
    """What differs between two outcomes, as readable lines; empty if nothing does."""
    if ours.refused is not None or spark.refused is not None:
        if ours.refused is not None and spark.refused is not None:
            return []
        if ours.refused is not None and spark.failing == set(spark.cells):
            return []  # a constant that always fails is refused at creation
        return [f"refused by us: {ours.refused}; by Spark: {spark.refused}"]
    found = []
    if ours.type != spark.type:
        found.append(f"type {ours.type}, Spark {spark.type}")
    if set(ours.cells) != set(spark.cells):
        found.append(f"rows {sorted(set(ours.cells) ^ set(spark.cells))} are only on one side")
    for row in sorted(set(ours.cells) & set(spark.cells)):
        if not same(ours.cells[row], spark.cells[row]):
            found.append(f"{describe(row)}: {ours.cells[row]!r}, Spark {spark.cells[row]!r}")
    return found
