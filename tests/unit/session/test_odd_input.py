"""Whatever a session is called with, it raises its own errors and stays as it is."""

import datetime as dt
import random
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import everview as ev


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no")


class Failing:
    """Whatever is asked of it fails."""

    def __arrow_c_stream__(self, requested_schema=None):
        raise KeyError("mine")


class FailingArray:
    def __arrow_c_array__(self, requested_schema=None):
        raise RuntimeError("mine")


class NoStream:
    def __arrow_c_stream__(self, requested_schema=None):
        return 5


def failing_batches():
    yield pa.record_batch({"id": pa.array([7]), "x": pa.array(["a"])})
    raise OSError("the wire is cut")


ATOMS = [
    None,
    True,
    0,
    -1,
    2**70,
    1.5,
    float("nan"),
    "",
    "id",
    "no such name",
    "\ud800",
    "x" * 10_000,
    b"x",
    1j,
    Decimal("NaN"),
    dt.date.min,
    dt.datetime.max,
    object(),
    Unprintable(),
    len,
    int,
    ...,
    pd.NA,
    pd.NaT,
    np.array([[1, 2]]),
    np.array(3),
    np.zeros(2, dtype=[("id", "i4"), ("x", "U1")]),
]
BATCHES = [
    lambda: Failing(),
    lambda: FailingArray(),
    lambda: NoStream(),
    lambda: pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64()), ("x", pa.string())]), failing_batches()),
    lambda: pl.LazyFrame({"id": [1]}).select(pl.col("nothing")),
    lambda: pl.DataFrame({"id": [object()], "x": ["a"]}),
    lambda: pl.DataFrame({"id": [[1]], "x": [{"a": 1}]}),
    lambda: pl.Series([1]),
    lambda: pd.DataFrame([[1, 2]]),
    lambda: pd.DataFrame({("a", "b"): [1]}),
    lambda: pd.DataFrame([[1, "a", "b"]], columns=["id", "x", "x"]),
    lambda: pd.DataFrame({"id": pd.interval_range(0, 2), "x": pd.period_range("2020", periods=2, freq="D")}),
    lambda: pd.DataFrame({"id": pd.arrays.SparseArray([0, 1]), "x": ["a", "b"]}),
    lambda: pd.DataFrame({"id": [1j], "x": ["a"]}),
    lambda: pd.DataFrame({"id": [9, 10], "x": pd.Series(["a", 1], dtype="category")}),
    lambda: pd.Series([1]),
    lambda: pa.array([1]),
    lambda: pa.array([{"id": 1, "x": 5}]),
    lambda: pa.table({"id": pa.array([2**62], pa.timestamp("s")), "x": pa.nulls(1)}),
    lambda: pa.table({"": [1]}),
    lambda: [(1, "a"), None],
    lambda: [{}],
    lambda: [{None: 1}],
    lambda: [{"id": 1, "ID": 2}],
    lambda: {"id": 1},
    lambda: {"id": "ab", "x": "cd"},
    lambda: {"id": [1], "x": {"a": 1}},
    lambda: {1: [1]},
    lambda: {"id": Unprintable(), "x": [1]},
    lambda: [[1]],
    lambda: (x for x in [1, 2]),
    lambda: {"id", "x"},
    lambda: range(3),
    lambda: ev.connect(),
]
LAWFUL = (ev.EverviewError,)


@pytest.fixture
def loaded(db):
    db.execute("CREATE TABLE k (id BIGINT PRIMARY KEY, x STRING)")
    db.create_view("v", "SELECT id, x FROM k")
    db.insert("k", [(1, "a"), (2, None)])
    return db


def calls(db, odd):
    view = db.view("v")
    return {
        "apply": lambda: db.apply(odd()),
        "apply to a table": lambda: db.apply({"k": odd()}),
        "a table's name": lambda: db.insert(odd(), []),
        "insert": lambda: db.insert("k", odd()),
        "delete": lambda: db.delete("k", odd()),
        "update": lambda: db.update("k", odd()),
        "upsert": lambda: db.upsert("k", odd()),
        "a value of a tuple": lambda: db.insert("k", [(7, odd())]),
        "a key of a tuple": lambda: db.delete("k", [(odd(),)]),
        "a value of a dict": lambda: db.upsert("k", [{"id": odd(), "x": "b"}]),
        "a column": lambda: db.insert("k", {"id": [7], "x": odd()}),
        "on_missing": lambda: db.delete("k", [], on_missing=odd()),
        "multiplicity": lambda: db.apply({"k": [{"id": 7, "x": "b", "_multiplicity": odd()}]}),
        "change type": lambda: db.apply({"k": [{"id": 7, "x": "b", "_change_type": odd()}]}),
        "lookup": lambda: view.lookup(id=odd()),
        "lookup of two": lambda: view.lookup(id=odd(), x=odd()),
        "batches": lambda: view.batches(odd()),
        "subscribe": lambda: view.subscribe(odd()).cancel(),
        "view": lambda: db.view(odd()),
        "table_rows": lambda: db.table_rows(odd()),
        "table_metrics": lambda: db.table_metrics(odd()),
        "update_rates": lambda: db.create_view("w", "SELECT id FROM k", update_rates=odd()).drop(),
        "an update rate": lambda: db.create_view("w", "SELECT id FROM k", update_rates={"k": odd()}).drop(),
    }


@pytest.mark.parametrize("name", list(calls(type("Db", (), {"view": lambda *_: None})(), None)))
@pytest.mark.filterwarnings("ignore")
def test_odd_arguments(loaded, state, name):
    before = state(loaded)
    for odd in [*(lambda atom=atom: atom for atom in ATOMS), *BATCHES]:
        try:
            calls(loaded, odd)[name]()
        except ev.EverviewError as error:
            assert error.code and len(str(error)) < 3000
            assert {**state(loaded), "version": 0} == {**before, "version": 0}
        else:  # it was a value like any other: taken back
            list(loaded.view("v"))
            left = {1, 2} ^ set(loaded.view("v").to_arrow()["id"].to_pylist())
            loaded.delete("k", [(key,) for key in left], on_missing="ignore")
            loaded.upsert("k", [(1, "a"), (2, None)])
            assert {**state(loaded), "version": 0} == {**before, "version": 0}


def test_random_nests(loaded, state, seed):
    """Odd values within lists, dicts, tuples and frames, as batches of every request."""
    rng = random.Random(seed)
    before = {**state(loaded), "version": 0}

    def nest(depth):
        kind = rng.randrange(6 if depth else 1)
        if kind == 0:
            return rng.choice(ATOMS)
        if kind == 1:
            return [nest(depth - 1) for _ in range(rng.randrange(3))]
        if kind == 2:
            return tuple(nest(depth - 1) for _ in range(rng.randrange(3)))
        keys = ["id", "x", "X", "_multiplicity", "_change_type", "zz", 5]
        if kind == 3:
            return {rng.choice(keys): nest(depth - 1) for _ in range(rng.randrange(4))}
        if kind == 4:
            return rng.choice(BATCHES)()
        return (nest(depth - 1) for _ in range(2))

    for _ in range(300):
        request = rng.choice(["insert", "delete", "update", "upsert", "apply"])
        batch = nest(3)
        try:
            loaded.apply({"k": batch}) if request == "apply" else getattr(loaded, request)("k", batch)
        except ev.EverviewError:
            assert {**state(loaded), "version": 0} == before
        else:
            left = {1, 2} ^ set(loaded.view("v").to_arrow()["id"].to_pylist())
            loaded.delete("k", [(key,) for key in left], on_missing="ignore")
            loaded.upsert("k", [(1, "a"), (2, None)])
            assert {**state(loaded), "version": 0} == before
