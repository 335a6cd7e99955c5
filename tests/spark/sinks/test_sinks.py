"""What holds for every sink."""

import random
from datetime import datetime, timezone

import pyarrow as pa
import pytest
from sink_changes import RandomView, frame, simple
from sink_targets import counted

import everview as ev
from everview.errors import SinkError
from everview.spark.sinks import net_changes

KEYS = {"bag": None, "keyed": ["k", "l"]}


@pytest.mark.parametrize("shape", KEYS)
@pytest.mark.seeds(2)
def test_the_target_follows_a_random_view(spark, target, shape, seed):
    key = KEYS[shape]
    view = RandomView(random.Random(f"{shape} {seed}"), len(key or ()))
    for batch_id in range(6):
        target.sink(key=key)(view.batch(spark), batch_id)
        assert target.content() == view.content(), f"after batch {batch_id}"


def test_a_batch_is_applied_once(spark, target):
    sink = target.sink()
    for _ in range(2):
        sink(simple(spark, (1, "a", 2), (2, None, 1)), 0)
    target.sink()(simple(spark, (1, "a", 2), (2, None, 1)), 0)  # as after a restart
    assert target.content() == counted([(1, "a"), (1, "a"), (2, None)])
    for _ in range(2):
        sink(simple(spark, (1, "a", -1)), 1)
    assert target.content() == counted([(1, "a"), (2, None)])


@pytest.mark.parametrize("key", [None, "k"])
def test_an_emptied_view_is_readable_and_grows_again(spark, target, key):
    sink = target.sink(key=key)
    sink(simple(spark, *((k, "a", 1) for k in range(20)), (None, None, 1)), 0)
    sink(simple(spark, *((k, "a", -1) for k in range(20)), (None, None, -1)), 1)
    assert target.content() == {}
    sink(simple(spark, (5, "b", 1)), 2)
    assert target.content() == counted([(5, "b")])


def test_a_batch_without_changes_is_recorded(spark, target):
    sink = target.sink()
    sink(simple(spark), 0)
    assert target.content() == {}
    sink(simple(spark, (1, "a", 1)), 1)
    sink(simple(spark), 2)
    with pytest.raises(SinkError, match="SINK_BATCH_ORDER"):
        sink(simple(spark, (1, "b", 1)), 1)
    assert target.content() == counted([(1, "a")])


@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("row", [(1, "b"), (None, None)])
def test_a_row_that_is_not_there_is_named(spark, target, key, row):
    sink = target.sink(key=key)
    sink(simple(spark, (1, "a", 1), (2, None, 1)), 0)
    with pytest.raises(SinkError, match="SINK_ROW_NOT_FOUND") as caught:
        sink(simple(spark, (2, None, -1), (3, "c", 1), (*row, -1)), 1)
    assert caught.value.parameters["row"] == {"k": row[0], "v": row[1]}
    assert target.content() == counted([(1, "a"), (2, None)])
    sink(simple(spark, (2, None, -1)), 1)  # the batch that failed was not recorded
    assert target.content() == counted([(1, "a")])


def test_the_old_row_of_an_update_must_be_there(spark, target):
    sink = target.sink(key="k")
    sink(simple(spark, (1, "a", 1)), 0)
    with pytest.raises(SinkError, match="SINK_ROW_NOT_FOUND.*k = 1, v = 'b'"):
        sink(simple(spark, (1, "b", -1), (1, "c", 1)), 1)
    assert target.content() == counted([(1, "a")])


def test_more_copies_than_there_are(spark, target):
    sink = target.sink()
    sink(simple(spark, (1, None, 2)), 0)
    with pytest.raises(SinkError, match="SINK_ROW_NOT_FOUND.*k = 1, v = NULL"):
        sink(simple(spark, (1, None, -3)), 1)
    assert target.content() == counted([(1, None)] * 2)


def test_a_new_target_has_nothing_to_lose(spark, target):
    with pytest.raises(SinkError, match="SINK_ROW_NOT_FOUND"):
        target.sink()(simple(spark, (1, "a", -1)), 0)


def test_a_key_belongs_to_one_row(spark, target):
    sink = target.sink(key=["k"])
    sink(simple(spark, (1, "a", 1), (None, "x", 1)), 0)
    for changes in ([(1, "b", 1)], [(2, "a", 1), (2, "b", 1)], [(3, "c", 2)], [(None, "y", 1)]):
        with pytest.raises(SinkError, match="SINK_DUPLICATE_KEY"):
            sink(simple(spark, *changes), 1)
    assert target.content() == counted([(1, "a"), (None, "x")])


def test_another_query_does_not_start_on_what_is_there(spark, target):
    target.sink(app_id="one")(simple(spark, (1, "a", 1)), 0)
    with pytest.raises(SinkError, match="SINK_NOT_EMPTY"):
        target.sink()(simple(spark, (2, "b", 1)), 0)
    assert target.content() == counted([(1, "a")])


def test_no_batch_is_left_out(spark, target):
    """A target that was removed, or set back, while its query went on: what came before would be missing."""
    with pytest.raises(SinkError, match="SINK_BATCH_ORDER.*lacks the batches 0 to 2 of 'everview', and batch 3 came"):
        target.sink()(simple(spark, (1, "a", 1)), 3)
    for app_id in (None, "one"):
        with pytest.raises(SinkError, match="SINK_BATCH_ORDER") as caught:
            target.sink(app_id=app_id)(simple(spark, (1, "a", 1)), 1)
        assert "new checkpoint" in caught.value.hint
    assert not target.exists(), "nothing is made for a batch that is refused"
    target.sink()(simple(spark, (1, "a", 1)), 0)
    with pytest.raises(SinkError, match="SINK_BATCH_ORDER.*lacks the batches 1 to 1"):
        target.sink()(simple(spark, (2, "b", 1)), 2)
    assert target.content() == counted([(1, "a")])
    target.remove()
    with pytest.raises(SinkError, match="SINK_BATCH_ORDER|SINK_DAMAGED"):
        target.sink()(simple(spark, (2, "b", 1)), 1)
    assert not target.exists()


def test_named_writers_share_a_target(spark, target):
    one, two = target.sink(app_id="one"), target.sink(app_id='it\'s "two"')
    for _ in range(2):
        one(simple(spark, (1, "a", 1)), 0)
        two(simple(spark, (1, "a", 1)), 0)
    two(simple(spark, (1, "a", -1)), 1)
    one(simple(spark), 1)
    assert target.content() == counted([(1, "a")])


NAMES = ["a b", 'x"y', "per%s{}", "dot.ted", "back`tick", "Größe", "kind", "number", "c1", "t", "_bucket", "select"]


@pytest.mark.parametrize("key", [None, NAMES[:6]])
def test_names_are_only_names(spark, target, key):
    types = dict.fromkeys(NAMES, pa.int32())
    sink = target.sink(key=key)
    old, new = tuple(range(len(NAMES))), (*range(len(NAMES) - 1), None)
    sink(simple(spark, (*old, 1), types=types), 0)
    sink(simple(spark, (*old, -1), (*new, 1), types=types), 1)
    assert target.content() == counted([new])


def test_the_columns_stay(spark, target):
    target.sink()(simple(spark, (1, "a", 1)), 0)
    for types, row in (
        ({"k": pa.int32(), "w": pa.string()}, (1, "a", 1)),
        ({"k": pa.int64(), "v": pa.string()}, (1, "a", 1)),
    ):
        with pytest.raises(SinkError, match="SINK_SCHEMA"):
            target.sink()(simple(spark, row, types=types), 1)
    assert target.content() == counted([(1, "a")])


def test_a_batch_is_read_in_one_action(spark, target):
    """A second action would run the stateful stage of a query twice."""
    read = spark.sparkContext.accumulator(0)

    def count(batches):
        for batch in batches:
            read.add(batch.num_rows)
            yield batch

    for batch_id, changes in enumerate([[(1, "a", 2), (2, "b", 1)], [(1, "a", -1), (3, "c", 1)]]):
        plain = simple(spark, *changes)
        target.sink()(plain.mapInArrow(count, plain.schema), batch_id)
    assert read.value == 4
    plain = simple(spark, *changes)
    target.sink()(plain.mapInArrow(count, plain.schema), 1)  # a replay runs the batch too: its state must advance
    assert read.value == 6
    assert target.content() == counted([(1, "a"), (2, "b"), (3, "c")])


TYPES = {"k": pa.int32(), "v": pa.string()}


def test_changes_without_meaning(spark, target):
    target.sink()(simple(spark, (1, "a", 1)), 0)
    for wrong in ("Insert", None):
        with pytest.raises(ev.ChangeError, match="INVALID_CHANGE.*_change_type is"):
            target.sink()(frame(spark, TYPES, [(2, "b"), (3, "c")], ["insert", wrong], "_change_type"), 1)
    with pytest.raises(ev.ChangeError, match="INVALID_CHANGE.*_multiplicity is NULL"):
        target.sink()(simple(spark, (2, "b", None)), 1)
    assert target.content() == counted([(1, "a")])


def test_frames_that_are_no_changes(spark, target):
    changes = simple(spark, (1, "a", 1))
    for code, wrong in (
        ("MISSING_COLUMN", changes.drop("_multiplicity")),
        ("AMBIGUOUS_CHANGE", changes.selectExpr("*", "'insert' AS _change_type")),
        ("MISSING_COLUMN", changes.select("_multiplicity")),
        ("UNSUPPORTED_TYPE", changes.selectExpr("*", "array(1) AS a")),
        ("DUPLICATE_COLUMN", changes.selectExpr("*", "1 AS K")),
    ):
        with pytest.raises(ev.EverviewError, match=code):
            target.sink()(wrong, 0)


def test_the_key_has_columns_of_the_view(spark, target):
    with pytest.raises(ev.SchemaError, match="UNKNOWN_COLUMN.*'w'"):
        target.sink(key=["k", "w"])(simple(spark, (1, "a", 1)), 0)
    for wrong in ([], ["k", "k"]):
        with pytest.raises(ev.SchemaError, match="INVALID_ARGUMENT"):
            target.sink(key=wrong)


@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns"])
def test_times_do_not_depend_on_the_session(spark, target, zone):
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        query = "SELECT 1Y AS b, TIMESTAMP_NTZ'2024-03-10 02:30:00' AS n, TIMESTAMP'2024-07-01 12:00:00Z' AS t"
        for batch_id, m in enumerate([2, -1]):
            target.sink()(spark.sql(f"{query}, {m}L AS _multiplicity"), batch_id)
            spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert target.content() == counted(
        [(1, datetime(2024, 3, 10, 2, 30), datetime(2024, 7, 1, 12, tzinfo=timezone.utc))]
    )


def test_net_changes_are_the_same_in_both_forms(spark):
    rows = [(1, "a"), (1, "a"), (2, None), (2, None), (3, "c")]
    typed = frame(
        spark, TYPES, rows, ["insert", "update_postimage", "insert", "delete", "update_preimage"], "_change_type"
    )
    counts = frame(spark, TYPES, rows, [3, -1, 4, -4, -1], "_multiplicity")
    for changes in (typed, counts):
        net = net_changes(changes)
        assert net.columns == ["k", "v", "_multiplicity"]
        assert sorted(map(tuple, net.collect())) == [(1, "a", 2), (3, "c", -1)]


def test_zeros_and_nans_are_one_value_each(spark):
    types = {"f": pa.float32(), "d": pa.float64()}
    nan = float("nan")
    changes = simple(spark, (0.0, -0.0, 1), (-0.0, 0.0, -1), (nan, -nan, 1), (-nan, nan, 1), types=types)
    (row,) = net_changes(changes).collect()
    assert str(tuple(row)) == "(nan, nan, 2)"


class Killed(Exception):
    pass


def test_a_query_is_restarted_from_its_checkpoint(spark, target, tmp_path):
    """A query dies after the sink has committed; it repeats the batch, and a query with another checkpoint is refused."""
    source = tmp_path / "source"

    def arrive(*changes):
        simple(spark, *changes).coalesce(1).write.mode("append").parquet(str(source))

    def run(sink, checkpoint):
        schema = simple(spark).schema
        stream = spark.readStream.schema(schema).parquet(str(source))
        started = stream.writeStream.foreachBatch(sink).option("checkpointLocation", str(tmp_path / checkpoint))
        query = started.trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        finally:
            query.stop()

    applied = []

    def dying(changes, batch_id):
        target.sink()(changes, batch_id)
        applied.append(batch_id)
        if batch_id == 1:
            raise Killed

    arrive((1, "a", 2), (2, None, 1))
    run(dying, "checkpoint")
    arrive((1, "a", -1), (3, "c", 1))
    with pytest.raises(Exception, match="Killed"):
        run(dying, "checkpoint")
    run(target.sink(), "checkpoint")  # batch 1 again
    arrive((3, "c", -1))
    run(target.sink(), "checkpoint")
    assert applied == [0, 1]
    assert target.content() == counted([(1, "a"), (2, None)])
    with pytest.raises(Exception, match="SINK_NOT_EMPTY"):
        run(target.sink(), "another checkpoint")
    assert target.content() == counted([(1, "a"), (2, None)])
