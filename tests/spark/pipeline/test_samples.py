"""Shares chosen by what samples of the tables tell."""

import pytest

from everview.errors import SchemaError
from everview.spark import explain
from everview.spark.maintain import plan_pipeline

SQL = "SELECT r.a, t.d FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c"


@pytest.fixture(scope="module")
def tables(streaming):
    def frame(columns, rows):
        return streaming.createDataFrame(rows, columns)

    return {
        "r": frame("a BIGINT, b BIGINT", [(i, i) for i in range(10)]),
        "s": frame("b BIGINT, c BIGINT", [(0 if i < 900 else i, i) for i in range(1000)]),
        "t": frame("c BIGINT, d BIGINT", [(i, i) for i in range(10)] + [(None, i) for i in range(10)]),
    }


def test_a_heavy_hitter_turns_the_grid_the_other_way(tables):
    layout = plan_pipeline(SQL, tables, shards=4, samples=tables).layout
    assert layout.placement.stages[0].shares.sizes == {"r": 10.0, "s": 1000.0, "t": 20.0}
    assert layout.placement.stages[0].shares.heaviest["s", "b"] == pytest.approx(0.9)
    assert layout.placement.stages[0].shares.heaviest["t", "c"] == pytest.approx(1 / 20), (
        "NULL joins nothing and so weighs nothing"
    )
    assert [(str(d), d.share) for d in layout.placement.stages[0].shares.dimensions] == [("c", 4)]
    even = plan_pipeline(SQL, tables, shards=4, table_sizes={"r": 10, "s": 1000, "t": 2}).layout
    assert [(str(d), d.share) for d in even.placement.stages[0].shares.dimensions] != [("c", 4)]


def test_explain_tells_loads_and_skew(tables):
    text = explain(SQL, tables, shards=4, samples={"s": tables["s"]})
    assert "rows expected on the fullest shard" in text
    assert "of s have one value of c" in text


def test_a_sample_of_no_table_is_refused(tables):
    with pytest.raises(SchemaError, match="samples names `x`"):
        explain(SQL, tables, samples={"x": tables["r"]})
