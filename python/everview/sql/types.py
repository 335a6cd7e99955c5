"""sqlglot data types to ours."""

from __future__ import annotations

from sqlglot import exp

from everview.errors import SchemaError
from everview.schema.datatype import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    DataType,
    Kind,
    decimal,
)
from everview.sql.reject import reject
from everview.sql.spans import span_of, text_of

_PLAIN = {
    exp.DType.BOOLEAN: BOOLEAN,
    exp.DType.TINYINT: TINYINT,
    exp.DType.SMALLINT: SMALLINT,
    exp.DType.INT: INT,
    exp.DType.BIGINT: BIGINT,
    exp.DType.FLOAT: FLOAT,
    exp.DType.DOUBLE: DOUBLE,
    exp.DType.TEXT: STRING,
    exp.DType.VARCHAR: STRING,
    exp.DType.BINARY: BINARY,
    exp.DType.DATE: DATE,
    exp.DType.TIMESTAMP: TIMESTAMP,
    exp.DType.TIMESTAMPTZ: TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: TIMESTAMP_NTZ,
}
_SIZED = {exp.DType.CHAR: Kind.CHAR, exp.DType.VARCHAR: Kind.VARCHAR}


def data_type_of(node: exp.Expr, sql: str) -> DataType:
    """The type a type node names."""
    kind = node.this if isinstance(node, exp.DataType) else None
    sizes = [int(p.name) for p in node.expressions if isinstance(p, exp.DataTypeParam) and p.name.isdigit()]
    if kind in _PLAIN and not sizes:
        return _PLAIN[kind]
    if kind is exp.DType.DECIMAL:
        precision, scale = (*sizes, 10, 0)[:2] if not sizes else (*sizes, 0)[:2]
        if not 1 <= precision <= 38 or scale > precision:
            raise _invalid(node, sql, "a decimal has 1 to 38 digits, and no more of them after the point than in all")
        return decimal(precision, scale)
    if kind in _SIZED and len(sizes) == 1 and sizes[0] > 0:
        return DataType(_SIZED[kind], length=sizes[0])
    if kind in _SIZED:
        raise _invalid(node, sql, "the length of CHAR and VARCHAR is at least one; VARCHAR may have none")
    raise reject("UNSUPPORTED_TYPE", sql, node, name=text_of(node, sql).upper())


def _invalid(node: exp.Expr, sql: str, message: str) -> SchemaError:
    return SchemaError("INVALID_TYPE", message, sql=sql, span=span_of(node))
