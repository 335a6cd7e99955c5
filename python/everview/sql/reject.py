"""What is refused, why, and what to write instead: one table.

Every entry has a stable code. ``reject`` builds the error; the caller gives the place. Codes are part of the public
interface: later versions lift entries, they do not rename them.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from everview.errors import SchemaError, Span, UnsupportedQueryError
from everview.sql.spans import span_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlglot import exp


@dataclass(frozen=True, slots=True)
class Reason:
    """``what`` names the construct (with parameters in braces), ``why`` gives the reason, ``hint`` the way out."""

    what: str
    why: str
    hint: str


_QUERY_SHAPE = "supported are SELECT [DISTINCT] ... FROM ... WHERE ... GROUP BY ... HAVING ... ORDER BY ... LIMIT over joins, and UNION, EXCEPT and INTERSECT [ALL]"

REASONS: dict[str, Reason] = {
    "UNSUPPORTED_STATEMENT": Reason(
        "statement {name} is not supported",
        "a session executes definitions and changes of rows",
        "supported are CREATE TABLE, CREATE [MATERIALIZED] VIEW, DROP TABLE, DROP VIEW, INSERT INTO, UPDATE and DELETE FROM; for SELECT use sql()",
    ),
    "PARAMETER_IN_DEFINITION": Reason(
        "a definition has no parameters",
        "it stays when the values are gone",
        "write the value as a literal, or put it into a table that the view joins",
    ),
    "UNSUPPORTED_CLAUSE": Reason(
        "{name} is not supported",
        "it is not part of what a session takes",
        "leave it out, or write it in another way",
    ),
    "OUTER_JOIN": Reason(
        "{name} is not supported",
        "the joins are [INNER], CROSS, LEFT, RIGHT and FULL [OUTER], LEFT SEMI and LEFT ANTI JOIN",
        "use one of these",
    ),
    "LATERAL_JOIN": Reason(
        "LATERAL in this join is not supported",
        "a lateral subquery is computed for the rows before it, all of which it must leave, or whose partners it gives",
        "use [INNER], CROSS or LEFT JOIN LATERAL",
    ),
    "SET_OPERATION": Reason(
        "{name} is not supported",
        "columns of set operations are matched by position",
        "list the columns in the same order on both sides",
    ),
    "ORDER_BY": Reason(
        "{name} is not supported", "a view is a bag of rows without an order", "sort what you read from the view"
    ),
    "ORDER_BY_NOT_SELECTED": Reason(
        "ORDER BY {name} is not supported",
        "reads, and the rows of DISTINCT and UNION, are ordered by columns of the result",
        "add it to the SELECT list; with LIMIT, rows without DISTINCT may be ordered by what is not selected",
    ),
    "LIMIT": Reason(
        "{name} is not supported",
        "how many rows there are is a whole number below 2^31, written in the text",
        "write LIMIT 10, LIMIT ALL, or LIMIT 10 OFFSET 20",
    ),
    "WINDOW_FUNCTION": Reason(
        "this window function is not supported",
        "of window functions row_number() OVER ([PARTITION BY ...] ORDER BY ...) is maintained, in SELECT, QUALIFY and ORDER BY",
        "write aggregates with GROUP BY and join them; the first rows per group by row_number()",
    ),
    "SUBQUERY_EXPRESSION": Reason(
        "{name} is not supported",
        "subqueries stand in the SELECT list, WHERE, GROUP BY, HAVING, ORDER BY and, reading one side, in ON",
        "{hint}",
    ),
    "RECURSIVE_CTE": Reason("WITH RECURSIVE is not supported", "recursion is not maintained", _QUERY_SHAPE),
    "NO_FROM": Reason(
        "`*` without FROM has no meaning", "there are no columns to show", "list expressions, or select from a table"
    ),
    "TABLE_EXPRESSION": Reason(
        "{name} in FROM is not supported", "only tables and derived tables can change", "join tables by name"
    ),
    "TOO_MANY_TABLES": Reason(
        "the query reads tables more than {most} times",
        "every occurrence of a table is a part of the join, and a CTE counts as often as it is used",
        "split the query into several views",
    ),
    "GROUPING_SETS": Reason(
        "{name} is not supported", "a view groups in one way", "GROUP BY expressions; one view per grouping set"
    ),
    "AGGREGATE_FUNCTION": Reason(
        "aggregate function {name} is not supported",
        "it is not among those that are maintained",
        "supported are COUNT, SUM, AVG, MIN, MAX, MIN_BY, MAX_BY, COUNT_IF, BOOL_AND, BOOL_OR, ANY_VALUE, variances, standard "
        "deviations, covariances and CORR",
    ),
    "AGGREGATE_FILTER": Reason(
        "FILTER (WHERE ...) is not supported here",
        "it belongs to a call of an aggregate function",
        "write it behind the call: SUM(x) FILTER (WHERE condition)",
    ),
    "MISPLACED_AGGREGATE": Reason(
        "{name} is an aggregate and not allowed here",
        "aggregates belong to the SELECT list and HAVING, and do not nest",
        "move the condition to HAVING, or aggregate at the outermost level only",
    ),
    "NONDETERMINISTIC_FUNCTION": Reason(
        "{name} is not supported",
        "its value changes without a change of the tables",
        "put the value into a column, or into the query as a literal",
    ),
    "UNSUPPORTED_FUNCTION": Reason("function {name} is not supported", "{why}", "{hint}"),
    "UNSUPPORTED_EXPRESSION": Reason(
        "{name} is not supported",
        "it is not among the scalar expressions",
        "supported are arithmetic, comparisons, AND/OR/NOT, IN (list), BETWEEN, LIKE, IS NULL, CASE, COALESCE, CAST, "
        "EXTRACT, date and interval arithmetic, and string and number functions",
    ),
    "INTERVAL_VALUE": Reason(
        "{name} is not supported",
        "intervals are not values of a column",
        "{hint}",
    ),
    "UNSUPPORTED_TYPE": Reason(
        "type {name} is not supported",
        "the engine has no such values",
        "supported are BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p,s), STRING, VARCHAR(n), CHAR(n), "
        "BINARY, DATE, TIMESTAMP and TIMESTAMP_NTZ",
    ),
}


def reject(code: str, sql: str, place: exp.Expr | Span, **parameters: Any) -> UnsupportedQueryError:
    """The error for an entry of the table; ``parameters`` fill its braces."""
    reason = REASONS[code]
    span = place if isinstance(place, Span) else span_of(place)
    what, why, hint = (text.format(**parameters) for text in (reason.what, reason.why, reason.hint))
    named = {k: v for k, v in parameters.items() if k not in ("why", "hint")}
    return UnsupportedQueryError(code, f"{what}: {why}", hint=hint, sql=sql, span=span, **named)


def mismatch(sql: str, place: exp.Expr | Span, message: str) -> SchemaError:
    """Types that do not fit together."""
    span = place if isinstance(place, Span) else span_of(place)
    return SchemaError("TYPE_MISMATCH", message, sql=sql, span=span, hint="add a CAST or correct the value")


def close_matches(name: str, known: Iterable[str]) -> str | None:
    """A hint that lists the names nearest to one that is unknown."""
    by_lower = {k.lower(): k for k in known}
    near = difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)
    if near:
        return "did you mean " + " or ".join(f"`{by_lower[n]}`" for n in near) + "?"
    if by_lower:
        listed = sorted(by_lower.values())
        return "known are " + ", ".join(f"`{n}`" for n in listed[:10]) + (", ..." if len(listed) > 10 else "")
    return None
