"""Reading of change rows: both forms a view's changes come in, as rows with a signed multiplicity.

A batch has the view's columns and either ``_change_type`` (insert, delete, update_preimage, update_postimage) or ``_multiplicity``
(negative where rows left); ``_commit_version`` and ``_commit_timestamp`` are allowed and not used. Equal rows may be repeated.

Two rows are the same row if their values are, NULL being equal to NULL. Doubles are compared as SQL does: zeros of either sign are one value
and so are all NaNs. Sinks store them in one form each (0.0, the canonical NaN), so that a target may compare bits.

Each sink reads a batch in ONE Spark action: a second one would run the stateful stage again. Who needs a second persists first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st
from pyspark.sql.pandas.types import to_arrow_schema

from everview.errors import ChangeError, SchemaError, UnsupportedQueryError

MULTIPLICITY = "_multiplicity"
CHANGE_TYPE = "_change_type"
COMMIT_COLUMNS = ("_commit_version", "_commit_timestamp")
RESERVED = frozenset((MULTIPLICITY, CHANGE_TYPE, *COMMIT_COLUMNS))
SIGNS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}

TYPES = (
    st.BooleanType,
    st.ByteType,
    st.ShortType,
    st.IntegerType,
    st.LongType,
    st.FloatType,
    st.DoubleType,
    st.DecimalType,
    st.StringType,
    st.BinaryType,
    st.DateType,
    st.TimestampType,
    st.TimestampNTZType,
)


def column(name: str) -> Column:
    """A column by its exact name, whatever characters are in it."""
    return sf.col("`" + name.replace("`", "``") + "`")


def view_schema(changes: DataFrame) -> st.StructType:
    """The view's columns in a batch of changes, all nullable; refuses what no sink can hold."""
    fields = [st.StructField(f.name, f.dataType) for f in changes.schema.fields if f.name not in RESERVED]
    seen: set[str] = set()
    for field in fields:
        if field.name.lower() in seen:
            message = f"the column {field.name!r} is there twice (Spark does not tell upper from lower case)"
            raise ChangeError("DUPLICATE_COLUMN", message, hint="rename one of them", column=field.name)
        seen.add(field.name.lower())
        if not isinstance(field.dataType, TYPES):
            message = f"no sink holds the type {field.dataType.simpleString()} of column {field.name!r}"
            raise UnsupportedQueryError(
                "UNSUPPORTED_TYPE", message, hint="cast it, to STRING for instance", column=field.name
            )
    if not fields:
        raise ChangeError("MISSING_COLUMN", "the batch has no columns of a view", hint="pass what maintain() returns")
    return st.StructType(fields)


def check_key(key: Sequence[str] | None, schema: st.StructType) -> None:
    """Refuse a key with columns that the view lacks."""
    for name in key or ():
        if name not in schema.names:
            hint = f"the columns are {', '.join(schema.names)}"
            raise SchemaError("UNKNOWN_COLUMN", f"the view has no column {name!r} for the key", hint=hint, column=name)


def checked_key(key: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """The option ``key`` of a sink as a tuple of distinct names."""
    if key is None:
        return None
    names = (key,) if isinstance(key, str) else tuple(key)
    if not names or len(set(names)) < len(names):
        message = f"key={list(names)!r} is not a list of distinct columns"
        raise SchemaError("INVALID_ARGUMENT", message, hint="name the columns that identify a row, or leave key out")
    return names


def signed_changes(changes: DataFrame) -> DataFrame:
    """The view's columns and ``_multiplicity``, a row per row of the batch; an unknown change fails the action that reads it."""
    schema = view_schema(changes)
    return changes.select(*(_stored_form(f).alias(f.name) for f in schema.fields), _sign(changes).alias(MULTIPLICITY))


def net_changes(changes: DataFrame) -> DataFrame:
    """The view's columns and ``_multiplicity``, equal rows added up and those that cancel left out. One shuffle."""
    signed = signed_changes(changes)
    rows = [column(name) for name in signed.columns[:-1]]
    return signed.groupBy(*rows).agg(sf.sum(MULTIPLICITY).alias(MULTIPLICITY)).where(column(MULTIPLICITY) != 0)


def collect_net(changes: DataFrame) -> pa.Table:
    """The net changes on the driver, in one action and without a shuffle. Costs the driver's memory for the changes of a batch."""
    schema = arrow_schema(view_schema(changes))
    arrived = run(signed_changes(changes).toArrow).cast(schema.append(pa.field(MULTIPLICITY, pa.int64())))
    net = added_up([arrived], schema.names)
    return net.filter(pc.not_equal(net[MULTIPLICITY], 0))


def drain(changes: DataFrame) -> None:
    """Run a batch for what it does to the state of its query only: a batch that is not consumed does not advance it."""
    changes.write.format("noop").mode("overwrite").save()


def arrow_schema(schema: st.StructType) -> pa.Schema:
    """The Arrow form in which sinks keep a view: instants in UTC, all nullable."""
    return to_arrow_schema(schema, timezone="UTC")


def run(action: Any) -> Any:
    """The result of a Spark action over signed changes; a change without meaning raises the error it is."""
    try:
        return action()
    except PySparkException as error:
        if error.getCondition() == "USER_RAISED_EXCEPTION":
            found = (error.getMessageParameters() or {}).get("errorMessage", "")
            if found.startswith(_INVALID):
                hint = f"{CHANGE_TYPE} is one of {', '.join(SIGNS)}; {MULTIPLICITY} is a number"
                raise ChangeError("INVALID_CHANGE", found.removeprefix(_INVALID), hint=hint) from error
        raise


_INVALID = "everview: "


def _sign(changes: DataFrame) -> Column:
    typed, counted = CHANGE_TYPE in changes.columns, MULTIPLICITY in changes.columns
    if typed and counted:
        raise ChangeError(
            "AMBIGUOUS_CHANGE", f"the batch has {CHANGE_TYPE} and {MULTIPLICITY}", hint="pass one of them"
        )
    if not typed and not counted:
        hint = "pass the changes that maintain() returns, not the view itself"
        raise ChangeError("MISSING_COLUMN", f"the batch has neither {CHANGE_TYPE} nor {MULTIPLICITY}", hint=hint)
    found = column(CHANGE_TYPE if typed else MULTIPLICITY)
    text = sf.coalesce(found.cast("string"), sf.lit("NULL"))
    name = CHANGE_TYPE if typed else MULTIPLICITY
    invalid = sf.raise_error(sf.concat(sf.lit(f"{_INVALID}{name} is "), text)).cast("long")
    if counted:
        return sf.when(found.isNotNull(), found.cast("long")).otherwise(invalid)
    plus = [name for name, sign in SIGNS.items() if sign > 0]
    minus = [name for name, sign in SIGNS.items() if sign < 0]
    one = sf.lit(1).cast("long")
    return sf.when(found.isin(plus), one).when(found.isin(minus), -one).otherwise(invalid)


def _stored_form(field: st.StructField) -> Column:
    value = column(field.name)
    if not isinstance(field.dataType, (st.FloatType, st.DoubleType)):
        return value
    zero, nan = (sf.lit(x).cast(field.dataType) for x in (0.0, float("nan")))
    return sf.when(sf.isnan(value), nan).when(value == zero, zero).otherwise(value)


# ---- net changes as Arrow tables: the columns of a view and _multiplicity ---------------------------------------------


def added_up(parts: Sequence[pa.Table], columns: Sequence[str]) -> pa.Table:
    """Multiplicities summed by the values of ``columns``; linear, NULL equal to NULL."""
    grouped = pa.concat_tables(parts).group_by(list(columns), use_threads=False).aggregate([(MULTIPLICITY, "sum")])
    return grouped.rename_columns([*columns, MULTIPLICITY])


def view_fields(changes: pa.Table) -> pa.Schema:
    """The schema without ``_multiplicity``, which is last."""
    return changes.schema.remove(len(changes.schema) - 1)


def counted(rows: pa.Table) -> pa.Table:
    """Rows as changes that add each of them once."""
    return rows.append_column(pa.field(MULTIPLICITY, pa.int64()), pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows))


def repeated(changes: pa.Table) -> pa.Table:
    """Rows without ``_multiplicity``, each repeated that often; none is negative."""
    copies, rows = changes[MULTIPLICITY].combine_chunks(), changes.drop_columns([MULTIPLICITY])
    if not len(copies) or pc.max(copies).as_py() == pc.min(copies).as_py() == 1:
        return rows
    ends = pc.cumulative_sum(copies)
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
    lists = pa.LargeListArray.from_arrays(offsets, pa.nulls(ends[-1].as_py()))
    return rows.take(pc.list_parent_indices(lists))


def first_row(changes: pa.Table) -> dict[str, Any]:
    """The values of the first row, without ``_multiplicity``."""
    (row,) = changes.slice(0, 1).to_pylist()
    return {name: value for name, value in row.items() if name != MULTIPLICITY}


def above_one(changes: pa.Table, key: Sequence[str]) -> pa.Table:
    """Of changes that only add: the key values that they add more than once."""
    by_key = added_up([changes.select([*key, MULTIPLICITY])], key)
    return by_key.filter(pc.greater(by_key[MULTIPLICITY], 1))
