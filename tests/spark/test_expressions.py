"""Scalar expressions: type, value and error of every cell are Spark's.

Each expression goes through the public API (a view over a table, the rows inserted) and through Spark SQL. Known differences are listed
with the number of differing cells: a difference that disappears, or a new one, fails.
"""

import re
from collections import Counter

import pytest
from expression_rows import COLUMNS, DATA, columns_of
from expression_table import EXPRESSIONS
from spark_oracle import differences, everview_outcome, spark_outcomes, spark_table

from everview.sql.functions import SCALARS

WRAPS = "Spark wraps or saturates silently; here it is an error"
EXACT = "Spark gives up beyond 34 digits; here nothing is lost"
ZERO = "-0.0 is stored as 0.0 and prints so"
NEVER = "a constant that can never be cast is refused at creation; Spark fails on the first row that needs it"
NARROWER = "not supported here"
WIDER = "accepted here; Spark refuses it"
SPARK_BUG = "Spark's position arithmetic overflows"
NO_TEXT = "bytes that are not UTF-8 are no text here; Spark makes a broken one of them"
NOT_FOLDED = "Spark pads constant expressions to the length of a CHAR(n), we only literals"
SURROGATES = "Java's empty matches split characters beyond 16 bits"
NO_ERA = "formats read no years with a sign before them"
CHANGES = "its value changes by itself: refused"
KNOWN: dict[str, tuple[str, int]] = {
    "cot(f)": (ZERO, 5),
    "cot(d)": (ZERO, 3),
    "negative(k)": (EXACT, 14),
    "~NULL": (NARROWER, 1),
    "date_format(ts, 'G')": (NARROWER, 1),
    "date_format(dt, 'G')": (NARROWER, 1),
    "ts - ts2": (NARROWER, 1),
    "next_day(dt, 'x')": (NEVER, 1),
    "regexp_extract(st, 'a', 1)": (NEVER, 1),
    "regexp_extract(st, '(a)', -1)": (NEVER, 1),
    "regexp_replace(st, '', '-')": (SURROGATES, 3),
    "regexp_replace(st, 'b*', '-')": (SURROGATES, 3),
    "regexp_replace(st, '', 'X', 1)": (SURROGATES, 3),
    "regexp_count(st, '')": (SURROGATES, 3),
    "to_date(dst, 'yyyy-MM-dd')": (NO_ERA, 1),
    "to_date(dst, 'yyyy-M-d')": (NO_ERA, 1),
    "to_timestamp_ntz(dst, 'yyyy-MM-dd')": (NO_ERA, 1),
    "unix_timestamp(dst, 'yyyy-MM-dd')": (NO_ERA, 1),
    "unix_timestamp()": (CHANGES, 1),
    "current_date": (CHANGES, 1),
    "current_date()": (CHANGES, 1),
    "current_timestamp()": (CHANGES, 1),
    "now()": (CHANGES, 1),
    "i DIV k2": (WRAPS, 1),
    "b DIV n2": (WRAPS, 2),
    "b DIV m2": (WRAPS, 5),
    "b DIV k2": (WRAPS, 1),
    "n DIV k2": (WRAPS, 2),
    "k DIV ti2": (WRAPS, 12),
    "k DIV si2": (WRAPS, 12),
    "k DIV i2": (WRAPS, 9),
    "k DIV b2": (WRAPS, 8),
    "k DIV n2": (WRAPS, 11),
    "k DIV m2": (WRAPS, 14),
    "k DIV k2": (WRAPS, 6),
    "CAST(b AS TIMESTAMP)": (WRAPS, 10),
    "CAST(k AS TIMESTAMP)": (WRAPS, 20),
    "dt + i": (WRAPS, 5),
    "dt - i": (WRAPS, 4),
    "date_add(dt, i)": (WRAPS, 5),
    "-(k)": (EXACT, 14),
    "abs(k)": (EXACT, 7),
    "round(i, NULL)": (NARROWER, 1),
    "st OR bo": (NARROWER, 1),
    "dt + NULL": (NARROWER, 1),
    "NULL + dt": (NARROWER, 1),
    "INTERVAL 1 DAY + '2024-01-31'": (NARROWER, 1),
    "dt - ts": (NARROWER, 1),
    "nt - nt2": (NARROWER, 1),
    "nt - ts": (NARROWER, 1),
    "nt - dt": (NARROWER, 1),
    "dt - nt": (NARROWER, 1),
    "concat()": (NARROWER, 1),
    "r'a\\b'": (NARROWER, 1),
    "concat(bi, NULL)": (NO_TEXT, 13),
    "CAST(bi AS STRING)": (NO_TEXT, 13),
    "CAST(X'FF' AS STRING)": (NO_TEXT, 54),
    "CAST(CAST(bi AS STRING) AS BINARY)": (NO_TEXT, 13),
    "ch = concat('a', '')": (NOT_FOLDED, 5),
    "CASE WHEN bo THEN 1.5 ELSE 'x' END": (NEVER, 1),
    "coalesce(i, 'x')": (NEVER, 1),
    "CASE WHEN NULL THEN 1 ELSE 2 END": (WIDER, 1),
    "CAST(f AS STRING)": (ZERO, 5),
    "CAST(d AS STRING)": (ZERO, 3),
    "string(d)": (ZERO, 3),
    "n || '|' || d": (ZERO, 3),
    "bo || '|' || f": (ZERO, 3),
    "concat(st, i, d)": (ZERO, 2),
    "length(d)": (ZERO, 3),
    "substring(st, i)": (SPARK_BUG, 4),
}


@pytest.fixture(scope="module")
def table(spark):
    found = spark_table(spark, "t", COLUMNS, DATA)
    yield found
    spark.sql("DROP TABLE t")


def _shown(expression):
    used = [c for c in columns_of(expression) if c != "id"]
    return lambda row: str(DATA.slice(row, 1).select(used).to_pylist()[0])


@pytest.mark.parametrize("group", list(EXPRESSIONS))
def test_group(spark, table, group):
    expected = spark_outcomes(spark, table, EXPRESSIONS[group])
    report, counts = [], Counter()
    for expression in EXPRESSIONS[group]:
        found = everview_outcome(expression, columns_of(expression), DATA)
        lines = differences(found, expected[expression], _shown(expression))
        known = KNOWN.get(expression)
        if len(lines) != (0 if known is None else known[1]):
            report.append(f"{expression}: {len(lines)} differences, known are {known}")
            report += [f"    {line}" for line in lines[:5]]
        counts["expressions"] += 1
        counts["cells"] += len(expected[expression].cells)
        counts["errors"] += len(expected[expression].failing)
        counts["refused by both"] += bool(found.refused and expected[expression].refused)
    print(group, dict(counts))
    assert not report, "\n".join(report)


def test_guarded_evaluation_is_spark_s_own(spark, table):
    """What the wrapper calls an error fails in a plain query, and what it calls a value does not."""
    from pyspark.errors import PySparkException

    for expression in ("i + i2", "n / n2", "CAST(nst AS INT)", "CAST(ch AS INT)"):
        outcome = spark_outcomes(spark, table, [expression])[expression]
        failing = sorted(outcome.failing)
        assert failing
        for row in failing[:3]:
            with pytest.raises(PySparkException):
                spark.sql(f"SELECT {expression} AS r FROM t WHERE id = {row}").collect()
        good = spark.sql(
            f"SELECT id, {expression} AS r FROM t WHERE id NOT IN ({', '.join(map(str, failing))})"
        ).collect()
        assert {r["id"]: r["r"] for r in good} == {
            row: v for row, v in outcome.cells.items() if row not in outcome.failing
        }


def test_every_function_is_compared():
    texts = " ".join(e.lower() for expressions in EXPRESSIONS.values() for e in expressions)
    called = set(re.findall(r"\b(\w+)\(", texts))
    assert sorted(set(SCALARS) - called) == []


def test_the_table_of_known_differences_has_no_stale_entries():
    assert set(KNOWN) <= {e for expressions in EXPRESSIONS.values() for e in expressions}
