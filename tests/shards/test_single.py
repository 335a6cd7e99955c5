"""The value of a group's only row over shards: rows of a group may stand on several."""

from collections import Counter

import pytest
from everview.aggregates import FUNCTIONS, SPELLINGS
from everview.errors import ChangeError
from everview.schema.datatype import INT
from everview.schema.table import Column, Table
from local_pipeline import LocalPipeline, add_up, batch_for

T = Table("t", (Column("g", INT), Column("x", INT)))
QUERIES = ("SELECT g, single(x) AS x FROM t GROUP BY g", "SELECT single(x) AS x FROM t")


@pytest.fixture(autouse=True)
def called(monkeypatch):
    monkeypatch.setitem(SPELLINGS, "single", FUNCTIONS["single"])


@pytest.mark.parametrize("shards", [1, 2, 4])
@pytest.mark.parametrize("sql", QUERIES)
@pytest.mark.parametrize("one", [3, None])
def test_two_rows_on_any_shards_are_refused(sql, shards, one):
    pipeline = LocalPipeline(sql, [T], shards)
    key = (1,) if "GROUP" in sql else ()
    total = Counter()

    def step(*changes):
        add_up(total, pipeline.step({"t": batch_for(T, [(*row, n) for row, n in changes])}))

    step(((1, one), 1))
    for other in (3, 4, 5, 6, 7, None):
        with pytest.raises(ChangeError) as refusal:
            pipeline.step({"t": batch_for(T, [(1, other, 1)])})
        assert refusal.value.code == "SCALAR_SUBQUERY_TOO_MANY_ROWS"
    for value in (8, 9, 10):
        step(((1, one), -1), ((1, value), 1))
        one = value
        assert total == {(*key, value): 1}
    step(((1, one), -1))
    assert total == ({} if key else {(None,): 1})
