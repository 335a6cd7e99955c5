"""What a checkpoint was written for is compared before a query starts."""

import pytest

pytest.importorskip("pyspark")

from everview.errors import CheckpointError
from everview.shards.durable import Identity
from everview.spark.job_record import check_record

ONE = Identity("f1", "SELECT 1", 2)


def commit(checkpoint):
    (checkpoint / "commits").mkdir()
    (checkpoint / "commits" / "0").write_text("v1\n{}")


def test_another_view_is_refused(tmp_path):
    checkpoint = tmp_path / "cp" / "view"
    check_record(str(checkpoint), ONE)
    commit(checkpoint)
    check_record(str(checkpoint), ONE)
    check_record(f"file:{checkpoint}", Identity("f1", "select  1", 2))
    for other, told in (
        (Identity("f2", "SELECT 2", 2), "SELECT 2"),
        (Identity("f2", "SELECT 1", 3), "with shards = 2, and this is 3"),
        (Identity("f2", "SELECT 1", 2), "the columns, keys or options"),
    ):
        with pytest.raises(CheckpointError, match="CHECKPOINT_MISMATCH") as caught:
            check_record(str(checkpoint), other)
        assert told in str(caught.value)


def test_without_a_committed_batch_a_view_may_change(tmp_path):
    check_record(str(tmp_path), ONE)
    other = Identity("f2", "SELECT 2", 2)
    check_record(str(tmp_path), other)
    commit(tmp_path)
    check_record(str(tmp_path), other)
    with pytest.raises(CheckpointError):
        check_record(str(tmp_path), ONE)


def test_checkpoints_of_others_and_elsewhere_are_left_alone(tmp_path):
    commit(tmp_path)
    check_record(str(tmp_path), ONE)
    assert not (tmp_path / "everview.json").exists()
    check_record("s3://bucket/cp", ONE)


def test_a_damaged_record(tmp_path):
    check_record(str(tmp_path), ONE)
    commit(tmp_path)
    (tmp_path / "everview.json").write_text("{}")
    with pytest.raises(CheckpointError, match="CHECKPOINT_DAMAGED"):
        check_record(str(tmp_path), ONE)
