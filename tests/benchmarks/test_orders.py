"""The stream of orders is what its description says."""

import numpy as np
import pytest
from benchmarks import generate, orders
from benchmarks.orders import CUSTOMER, LINEITEM, OrdersSpec

TINY = OrdersSpec(orders=2_000, seed=1)
BATCHES = 10


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    monkeypatch.setattr(generate, "DATA", tmp_path)


def test_orders_leave_in_the_order_in_which_they_came():
    stream = orders.load(TINY)
    rows = np.column_stack((stream.table, stream.columns))
    facts = stream.table != CUSTOMER
    inserted, deleted = rows[facts & (stream.op > 0)], rows[facts & (stream.op < 0)]
    window = int(len(inserted) * TINY.window)
    assert np.array_equal(deleted, inserted[: len(inserted) - window])
    assert np.all(stream.op[~facts] == 1)
    again = orders.make(TINY)
    assert np.array_equal(again.op, stream.op)
    assert np.array_equal(np.column_stack((again.table, again.columns)), rows)


def test_lines_follow_their_order_and_keys_are_unique():
    stream = orders.load(TINY)
    placed = None
    keys = set()
    for op, number, columns in zip(stream.op, stream.table, stream.columns.tolist(), strict=True):
        if op < 0 or number == CUSTOMER:
            continue
        if number == LINEITEM:
            assert columns[0] == placed[0]
            assert 1 <= columns[3] - placed[2] <= 121
            keys.add((columns[0], columns[1]))
        else:
            placed = columns
            keys.add(columns[0])
    assert len(keys) == np.sum((stream.op > 0) & (stream.table != CUSTOMER))


def test_a_batch_has_all_changes_of_its_part_of_the_stream():
    stream = orders.load(TINY)
    batches = stream.record_batches(BATCHES)
    assert len(batches) == BATCHES
    assert sum(table.num_rows for batch in batches for table in batch.values()) == len(stream)
    assert {name for batch in batches for name in batch} == set(orders.COLUMNS)
    assert "customer" not in batches[-1]
