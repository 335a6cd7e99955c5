"""What a checkpoint was written for is compared before a query starts."""

import pytest

pytest.importorskip("pyspark")

from everview.errors import CheckpointError
from everview.shards.identity import Identity, TableShape
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
        (Identity("f2", "SELECT 1", 3), "with shards=2 and this is shards=3"),
        (Identity("f2", "SELECT 1", 2), "columns, keys or options"),
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


SHAPE = TableShape("changes", ("id",), {"id": "bigint", "v": "int"}, {"note": "string", "at": "date"})


@pytest.mark.parametrize(
    ("other", "told", "hint"),
    [
        (
            TableShape("inserts", ("id",), SHAPE.columns, {}),
            "table `t` was read as changes and is read as inserts",
            None,
        ),
        (TableShape("changes", (), SHAPE.columns, SHAPE.unread), "primary key of table `t` was (id) and is ()", None),
        (
            TableShape("changes", ("id",), SHAPE.columns | {"v": "bigint"}, SHAPE.unread),
            "column `v` of table `t` was int and is bigint",
            None,
        ),
        (
            TableShape("changes", ("id",), SHAPE.columns, SHAPE.unread | {"at": "int"}),
            "column `at` of table `t` was date and is int",
            None,
        ),
        (
            TableShape("changes", ("id",), SHAPE.columns, SHAPE.unread | {"new": "int"}),
            "table `t` has a new column `new`, which counts although the view does not read it",
            "leave `new` out",
        ),
        (
            TableShape("changes", ("id",), SHAPE.columns, {"note": "string"}),
            "table `t` lacks the column `at`, which counts",
            None,
        ),
        (
            TableShape("changes", ("id",), SHAPE.columns, dict(reversed(SHAPE.unread.items()))),
            "the columns of table `t` are in another order",
            None,
        ),
    ],
)
def test_what_differs_of_a_table_is_named(tmp_path, other, told, hint):
    check_record(str(tmp_path), Identity("f1", "SELECT 1", 2, {"t": SHAPE, "u": SHAPE}))
    commit(tmp_path)
    with pytest.raises(CheckpointError) as caught:
        check_record(str(tmp_path), Identity("f2", "SELECT 1", 2, {"t": other, "u": SHAPE}))
    assert told in str(caught.value)
    assert (hint or "start with a new checkpoint directory") in caught.value.hint


def test_records_from_before_tables_were_described_are_read(tmp_path):
    check_record(str(tmp_path), ONE)
    commit(tmp_path)
    (tmp_path / "everview.json").write_text('{"fingerprint": "f1", "sql": "SELECT 1", "shards": 2}')
    check_record(str(tmp_path), ONE)
    with pytest.raises(CheckpointError, match="another version of everview"):
        check_record(str(tmp_path), Identity("f2", "SELECT 1", 2, {"t": SHAPE}))
