"""SQL types as Arrow types."""

from __future__ import annotations

import pyarrow as pa

from everview.schema.datatype import DataType, Kind
from everview.schema.table import Table

_SIMPLE = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.TINYINT: pa.int8(),
    Kind.SMALLINT: pa.int16(),
    Kind.INT: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.CHAR: pa.string(),
    Kind.VARCHAR: pa.string(),
    Kind.BINARY: pa.binary(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    Kind.TIMESTAMP_NTZ: pa.timestamp("us"),
    Kind.NULL: pa.null(),
}


def arrow_type(data_type: DataType) -> pa.DataType:
    """The Arrow type of a column.

    >>> from everview.schema.datatype import decimal
    >>> arrow_type(decimal(12, 2))
    Decimal128Type(decimal128(12, 2))
    """
    if data_type.kind is Kind.DECIMAL:
        return pa.decimal128(data_type.precision, data_type.scale)
    return _SIMPLE[data_type.kind]


def arrow_schema(table: Table) -> pa.Schema:
    """The Arrow schema of a table's rows."""
    return pa.schema([pa.field(c.name, arrow_type(c.type), c.nullable) for c in table.columns])
