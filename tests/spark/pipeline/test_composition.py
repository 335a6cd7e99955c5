"""What leaves a view is what comes into another: views over views, several in one query."""

from collections import Counter
from itertools import pairwise

import pytest
from stream_changes import EMPTY, fill, tables
from stream_runs import Scenario, collected, start

from everview.errors import CheckpointError, PipelineError
from everview.spark import full_result, maintain, read_metrics

HOPS = "SELECT x.a, y.b FROM edge x JOIN edge y ON x.b = y.a"
REACH = "SELECT a, COUNT(*) AS n, SUM(b) AS s FROM hops GROUP BY a"
FAR = f"SELECT a, COUNT(*) AS n, SUM(b) AS s FROM ({HOPS}) GROUP BY a"


@pytest.fixture(scope="module")
def composed(spark, streaming, tmp_path_factory):
    given = Scenario(spark, streaming, tmp_path_factory.mktemp("views"), tables("edge"))
    fill(given, [20, 12, EMPTY, 15], seed=3)
    hops = given.maintained(HOPS, name="hops", shards=2)
    reach = maintain(streaming, REACH, {"hops": hops}, name="reach", shards=2)
    return given, start(reach, given.checkpoint("c")).wait()


def test_a_view_over_a_view_is_the_view_of_both(composed):
    given, run = composed
    assert run.results() == given.recomputed(FAR)


def test_metrics_are_told_by_view(composed):
    given, run = composed
    hops = [Counter(), *given.recomputed(HOPS).values()]
    changes = [sum(abs(after[row] - before[row]) for row in before | after) for before, after in pairwise(hops)]
    assert [read_metrics(p, "reach")["shard"]["rows_in"] for p in run.progress] == changes
    copies = read_metrics(run.progress[-1], "hops")["shard"]["state_rows"]
    assert copies >= len(set(given.contents[-1]["edge"]))
    with pytest.raises(PipelineError, match="the views hops, reach") as caught:
        read_metrics(run.progress[-1])
    assert caught.value.code == "AMBIGUOUS_VIEW"
    assert read_metrics(run.progress[-1], "other") == {}


def test_results_are_told_by_view(composed, streaming):
    given, _ = composed
    checkpoint = str(given.checkpoint("c"))
    last = len(given.contents) - 1
    assert collected(full_result(streaming, checkpoint, "hops")) == given.recomputed(HOPS)[last]
    assert collected(full_result(streaming, checkpoint, view="reach")) == given.recomputed(FAR)[last]
    with pytest.raises(PipelineError, match="the views hops, reach"):
        full_result(streaming, checkpoint)
    with pytest.raises(CheckpointError, match="no view other in the checkpoint"):
        full_result(streaming, checkpoint, "other")
