"""Stored checkpoints of every format so far are read, and queries go on from them."""

import sys
from pathlib import Path

import pytest
from stream_runs import collected, start

from everview.spark import full_result, maintain, read_metrics

STORED = Path(__file__).resolve().parents[2] / "stored"
sys.path.append(str(STORED))
FORMATS = sorted(p.parent.name for p in STORED.glob("*/checkpoint.zip"))


@pytest.mark.parametrize("name", FORMATS)
def test_a_query_goes_on(streaming, tmp_path, name):
    from states import SPARK_SQL, read_checkpoint

    feed = read_checkpoint(STORED / name / "checkpoint.zip", tmp_path)
    checkpoint = tmp_path / "checkpoint"
    assert collected(full_result(streaming, str(checkpoint))) == {(1, 3): 1, (2, 3): 1, (3, 2): 1, (4, 2): 1}
    feed.write([(5, 1)])
    aliased = SPARK_SQL.replace("x.", "p.").replace("edge x", "edge AS p")
    run = start(maintain(streaming, aliased, {"edge": feed.stream(streaming)}, shards=2), checkpoint).wait()
    (number,) = run.batches
    assert number == 2
    assert run.deltas[2] == {(4, 2): -1, (4, 3): 1, (5, 2): 1}
    assert read_metrics(run.progress[-1])["shard"]["rebuilt"] > 0
