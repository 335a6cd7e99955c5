"""The queries of TPC-H and SSB as they are written, maintained on random rows, against Spark SQL after every batch.

A sample by default; EVERVIEW_ALL=1 (``make test-all``) takes all of them, and TPC-DS, of which what is refused must be refused by name.
"""

import os
import re
from random import Random

import pytest
from corpora import Rows, missing, ssb, tables_of, tpcds, tpch
from everview.testing.asserts import DeltaSum, assert_view_equals
from everview.testing.oracle import repeated

import everview as ev

ALL = os.environ.get("EVERVIEW_ALL") == "1"
CORPORA = {"tpch": tpch, "ssb": ssb, "tpcds": tpcds}
SAMPLE = {"tpch": ("q2", "q13", "q17", "q20", "q21", "q22"), "ssb": ("4.3",), "tpcds": ()}
WHOLE = {
    "tpch": tuple(f"q{n}" for n in range(1, 23)),
    "ssb": ("1.1", "1.2", "1.3", "2.1", "2.2", "2.3", "3.1", "3.2", "3.3", "3.4", "4.1", "4.2", "4.3"),
    "tpcds": (),
}
BATCHES, MOST = 4, 30
WITHOUT_ROWS: dict[str, set[str]] = {"tpch": set(), "ssb": set()}  # queries too choosy for so few rows
REFUSED = {"WINDOW_FUNCTION", "GROUPING_SETS", "UNSUPPORTED_FUNCTION", "DUPLICATE_COLUMN", "DIVIDE_BY_ZERO"}


@pytest.fixture(scope="module")
def corpora():
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    return {name: make() for name, make in CORPORA.items()}


def without_limit(query):
    """Which of equal rows are the first is open in SQL, so all rows are compared."""
    return re.sub(r"\bLIMIT\s+\d+\s*$", "", query, flags=re.IGNORECASE)


def in_spark(spark, db, query):
    for name in db.tables:
        spark.createDataFrame(repeated(db.table_rows(name))).createOrReplaceTempView(f"`{name}`")
    return [tuple(row.values()) for row in spark.sql(query).toArrow().to_pylist()]


def maintained(spark, corpus, query, seed):
    """Maintains a query over random batches; the number of rows that it had in all."""
    tables = tables_of(corpus)
    rows = Rows(query, tables, Random(seed))
    seen = 0
    with ev.connect() as db:
        for statement, name in zip(corpus.ddl, tables, strict=True):
            if name in rows.tables:
                db.execute(statement)
        view = db.create_view("v", query)
        total = DeltaSum.of(view)
        for n in range(BATCHES):
            total.add(db.apply(rows.batch(MOST, deletes=0.5 if n == BATCHES - 1 else 0.3))["v"])
            total.check(view)
            expected = in_spark(spark, db, query)
            assert_view_equals(view, expected)
            seen += len(expected)
    return seen


@pytest.mark.parametrize(("corpus", "name"), [(c, n) for c, names in (WHOLE if ALL else SAMPLE).items() for n in names])
def test_public_queries(spark, corpora, corpus, name):
    query = without_limit(corpora[corpus].queries[name])
    seen = sum(maintained(spark, corpora[corpus], query, seed) for seed in range(6 if ALL else 2))
    print(corpus, name, seen)
    assert seen or name in WITHOUT_ROWS[corpus]


@pytest.mark.skipif(not ALL, reason="takes long: EVERVIEW_ALL=1, or make test-all")
def test_tpcds(spark, corpora):
    """All that is taken equals Spark; what is not is refused by a known name."""
    corpus = corpora["tpcds"]
    taken, empty = [], []
    for name, text in corpus.queries.items():
        query = without_limit(text)
        try:
            seen = maintained(spark, corpus, query, 1)
        except ev.UnsupportedQueryError as error:
            assert error.code in REFUSED, name
            continue
        except ev.SchemaError as error:
            assert error.code in REFUSED, name
            continue
        taken.append(name)
        empty += [name] * (seen == 0)
    print(f"{len(taken)} of {len(corpus.queries)} taken; without rows: {' '.join(empty)}")
    assert len(taken) >= 70
