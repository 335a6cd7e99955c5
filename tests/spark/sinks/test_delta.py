"""The Delta table: its commits, and what is refused."""

import pytest
from sink_changes import simple
from sink_targets import counted


@pytest.mark.parametrize("key", [None, "k"])
def test_a_batch_is_one_commit_with_its_id(spark, delta, key):
    batches = [[(1, "a", 1), (2, "b", 1)], [(1, "a", -1), (1, "c", 1)], [(2, "b", -1)], [], [(3, "d", 1)]]
    for batch_id, changes in enumerate(batches):
        delta.sink(key=key, app_id="me")(simple(spark, *changes), batch_id)
        table = delta.table()
        assert (table.version(), table.transaction_version("me")) == (batch_id, batch_id)
    assert delta.content() == counted([(1, "c"), (3, "d")])


def test_additions_to_a_bag_only_append(spark, delta):
    delta.sink()(simple(spark, (1, "a", 1)), 0)
    before = set(delta.table().file_uris())
    delta.sink()(simple(spark, (1, "a", 2)), 1)
    assert before < set(delta.table().file_uris())
    assert delta.content() == counted([(1, "a")] * 3)


def test_an_update_of_a_key_is_a_merge(spark, delta):
    delta.sink(key="k")(simple(spark, (1, "a", 1), (2, "b", 1), (3, "c", 1)), 0)
    delta.sink(key="k")(simple(spark, (1, "a", -1), (1, "x", 1), (2, "b", -1), (4, "d", 1)), 1)
    (commit,) = delta.table().history(1)
    assert commit["operation"] == "MERGE"
    metrics = commit["operationMetrics"]
    found = [int(metrics[f"num_target_rows_{what}"]) for what in ("updated", "deleted", "inserted")]
    assert found == [1, 1, 1]


def test_a_table_made_beforehand_may_be_empty_only(spark, delta):
    import pyarrow as pa
    from deltalake import write_deltalake

    from everview.errors import SinkError

    mine = pa.table({"k": pa.array([], pa.int32()), "v": pa.array([], pa.string())})
    write_deltalake(delta.path, mine)
    delta.sink()(simple(spark, (1, "a", 1)), 0)
    assert delta.content() == counted([(1, "a")])
    with pytest.raises(SinkError, match="SINK_SCHEMA"):
        write_deltalake(delta.path, pa.table({"k": [1]}), mode="overwrite", schema_mode="overwrite")
        delta.sink()(simple(spark, (1, "a", 1)), 1)
