"""Engines survive what happens to their workers and stores, and refuse state that is damaged or not theirs."""

import json
import zlib
from collections import Counter
from unittest.mock import patch

import pytest
from local_pipeline import LocalPipeline, add_up, batch_for
from watching import keyed_as

from everview.errors import ChangeError, CheckpointError
from everview.schema.datatype import BIGINT, INT, STRING
from everview.schema.table import Column, Table
from everview.shards import blob as blobs_of_rows, durable
from everview.shards.durable import Holder
from everview.shards.returning import Returning
from everview.testing.memory_store import MemoryStore

T = Table("t", (Column("g", BIGINT), Column("x", BIGINT)))
U = Table("u", (Column("g", BIGINT), Column("s", STRING)))
K = Table("k", (Column("id", BIGINT, False), Column("g", BIGINT), Column("s", STRING)), ("id",))
JOIN = "SELECT t.x, u.s FROM t JOIN u ON t.g = u.g"
BY_TEXT = "SELECT u.s, SUM(t.x) AS n FROM t JOIN u ON t.g = u.g GROUP BY u.s"
KEYED = "SELECT t.g, COUNT(*) AS n FROM t JOIN k ON t.g = k.g GROUP BY t.g"


class Broken(Exception):
    pass


class FailingStore:
    """A store whose operations fail at one point of the batch: before or after the n-th of all operations."""

    def __init__(self, store, fault):
        self._store, self._fault = store, fault

    def __getattr__(self, name):
        call = getattr(self._store, name)

        def counted(*arguments):
            self._fault.at += 1
            if (self._fault.at, self._fault.after) == (self._fault.wanted, False):
                raise Broken(name)
            result = call(*arguments)
            if (self._fault.at, self._fault.after) == (self._fault.wanted, True):
                raise Broken(name)
            return result

        return counted


class Fault:
    def __init__(self, wanted, after):
        self.wanted, self.after, self.at = wanted, after, 0


def t_batch(rows):
    return {"t": batch_for(T, rows)}


def fed(run, batches=4, size=3):
    """A few batches of inserts and deletes."""
    for n in range(batches):
        rows = [(i % 5, 10 * n + i, 1) for i in range(size)]
        rows += [(i % 5, 10 * (n - 1) + i, -1) for i in range(size - 1)] if n else []
        yield t_batch(rows) | ({"u": batch_for(U, [(n, f"s{n % 2}", 1), (4, None, 1)])} if "u" in run.tables else {})


# ---- faults ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [0, 3000, 4 << 20])
@pytest.mark.parametrize(("sql", "tables"), [(BY_TEXT, [T, U]), (KEYED, [T, K])], ids=["merged", "normalised"])
def test_a_batch_that_fails_at_any_store_operation_is_retried_as_if_it_had_not(sql, tables, threshold):
    inputs = {"k": keyed_as("ordered", K)} if K in tables else None
    batches = [
        {"t": batch_for(T, [(g, g + n, 1) for g in range(6)])}
        | ({"u": batch_for(U, [(g, f"s{g % 2}", 1) for g in range(n, n + 3)])} if U in tables else {})
        | (
            {"k": batch_for(K, [(i, i % 4 + n, None, n, n < 2) for i in range(5)], ("_sequence", "_live"))}
            if K in tables
            else {}
        )
        for n in range(3)
    ]
    with patch.object(durable, "_SMALLEST_SNAPSHOT", threshold):
        plain = LocalPipeline(sql, tables, 2, inputs)
        tried = LocalPipeline(sql, tables, 2, inputs, workers=2, seed=5)
        wanted, found, faults = Counter(), Counter(), Counter()
        for batch in batches:
            add_up(wanted, plain.step(batch))
            for after in (False, True):
                for n in range(1, 100):
                    fault = Fault(n, after)
                    tried.wrap = lambda store, fault=fault: FailingStore(store, fault)
                    before = {key: (s.head, list(s.log), list(s.snapshot)) for key, s in tried.stores.items()}
                    try:
                        tried.step(batch)
                    except Broken as broken:
                        faults[str(broken)] += 1
                        assert before == {key: (s.head, s.log, s.snapshot) for key, s in tried.stores.items()}
                    else:  # there is no n-th operation: take the batch back, as a later stage would
                        tried.stores, tried.batch = _rolled_back(before), tried.batch - 1
                        break
                else:
                    raise AssertionError("no end of operations")
            tried.wrap = lambda store: store
            add_up(found, tried.step(batch))
            assert found == wanted
    assert {"read_head", "write_head"} <= set(faults)
    assert "append_log" in faults if threshold else "write_snapshot" in faults


def _rolled_back(saved):
    stores = {}
    for key, (head, log, snapshot) in saved.items():
        stores[key] = MemoryStore()
        stores[key].head, stores[key].log, stores[key].snapshot = head, list(log), list(snapshot)
    return stores


def test_an_engine_that_a_failed_batch_has_changed_is_not_used():
    run = LocalPipeline(JOIN, [T, U], 1)
    total = add_up(Counter(), run.step({"u": batch_for(U, [(1, "a", 1)])}))
    fault = Fault(2, after=True)  # the log is written, the head is not
    run.wrap = lambda store: FailingStore(store, fault)
    with pytest.raises(Broken, match="append_log"):
        run.step(t_batch([(1, 7, 1)]))
    assert len(run.holders[0]) == 0
    run.wrap = lambda store: store
    add_up(total, run.step(t_batch([(1, 8, 1)])))
    assert run.sources == ["rebuilt"]
    assert total == {(8, "a"): 1}


def test_an_engine_of_a_batch_that_another_shard_failed_is_not_used():
    run = LocalPipeline(JOIN, [T, U], 2)
    total = add_up(Counter(), run.step({"u": batch_for(U, [(g, "a", 1) for g in range(9)])}))
    fault = Fault(4, after=False)
    run.wrap = lambda store: FailingStore(store, fault)
    with pytest.raises(Broken):
        run.step(t_batch([(g, 7, 1) for g in range(9)]))
    assert len(run.holders[0]) == 1, "the first shard has finished and is held"
    run.wrap = lambda store: store
    add_up(total, run.step(t_batch([(g, 8, 1) for g in range(9)])))
    assert run.sources == ["rebuilt", "rebuilt"]
    assert total == {(8, "a"): 9}


def test_an_engine_of_the_right_version_but_another_attempt_is_not_used():
    run = LocalPipeline("SELECT g, SUM(x) AS s FROM t GROUP BY g", [T], 1, workers=2)
    first, second = run.holders
    run.holders = [first]
    total = add_up(Counter(), run.step(t_batch([(1, 1, 1)])))
    before = {key: (s.head, list(s.log), list(s.snapshot)) for key, s in run.stores.items()}
    run.step(t_batch([(1, 100, 1)]))  # takes effect in this worker, and is then rolled back
    run.stores, run.holders = _rolled_back(before), [second]
    add_up(total, run.step(t_batch([(1, 10, 1)])))
    run.holders = [first]
    add_up(total, run.step(t_batch([(1, 5, 1)])))
    assert run.sources == ["rebuilt"]
    assert total == {(1, 16): 1}


def test_an_engine_that_refused_a_batch_is_not_used():
    run = LocalPipeline(JOIN, [T, U], 1)
    total = add_up(Counter(), run.step(t_batch([(1, 7, 1)]) | {"u": batch_for(U, [(1, "a", 1)])}))
    with pytest.raises(ChangeError):
        run.step(t_batch([(1, 9, 1), (1, 3, -1)]))
    add_up(total, run.step(t_batch([(1, 8, 1)])))
    assert run.sources == ["rebuilt"]
    assert total == {(7, "a"): 1, (8, "a"): 1}


def test_the_first_batch_begins_again_if_it_failed():
    run = LocalPipeline("SELECT COUNT(*) AS n FROM t JOIN u ON t.g = u.g", [T, U], 2)
    fault = Fault(6, after=True)
    run.wrap = lambda store: FailingStore(store, fault)
    with pytest.raises(Broken):
        run.step(t_batch([(1, 1, 1)]))
    run.wrap = lambda store: store
    assert add_up(Counter(), run.step(t_batch([]))) == {(0,): 1}
    assert set(run.sources) == {"new"}


# ---- where engines come from -----------------------------------------------------------------------------------------


def test_an_engine_that_missed_batches_catches_up_on_them_alone():
    run = LocalPipeline("SELECT g, SUM(x) AS s FROM t GROUP BY g", [T], 1, workers=2)
    applied, total = [], Counter()
    first, second = run.holders

    class Spying:
        def __init__(self, stage):
            self.stage = stage

        def apply(self, sections, *, deltas):
            applied.append(deltas)
            return self.stage.apply(sections, deltas=deltas)

        def __getattr__(self, name):
            return getattr(self.stage, name)

    make = run.pipeline.make
    engine = run.engine

    def spied(stage, number, holder):
        found = engine(stage, number, holder)
        found._make = lambda: Spying(make(0, number, lambda: run.batch))
        return found

    run.engine = spied
    expected = {
        1: ("new", [True]),
        2: ("rebuilt", [False, True]),
        3: ("held", [True]),
        4: ("caught up", [False, False, True]),
        5: ("caught up", [False, True]),
    }
    for n, holder in enumerate([first, second, second, first, second], 1):
        run.holders = [holder]
        applied.clear()
        add_up(total, run.step(t_batch([(1, n, 1)])))
        assert (run.sources, applied) == ([expected[n][0]], expected[n][1])
    assert total == {(1, 15): 1}


def test_an_engine_older_than_the_snapshot_is_rebuilt():
    run = LocalPipeline("SELECT g, SUM(x) AS s FROM t GROUP BY g", [T], 1, workers=2)
    first, second = run.holders
    total = Counter()
    for n, holder in enumerate([first, second, second, first]):
        run.holders = [holder]
        with patch.object(durable, "_SMALLEST_SNAPSHOT", 0 if n == 2 else 4 << 20):
            add_up(total, run.step(t_batch([(1, 10**n, 1)])))
    assert run.sources == ["rebuilt"]
    assert total == {(1, 1111): 1}


def test_a_snapshot_and_the_log_after_it_restore_what_the_engine_held():
    run = LocalPipeline(JOIN, [T, U], 2)
    total = Counter()
    for n, batch in enumerate(fed(run, 8)):
        with patch.object(durable, "_SMALLEST_SNAPSHOT", 0 if n == 4 else 4 << 20):
            add_up(total, run.step(batch))
    assert all(s.log and s.snapshot for s in run.stores.values())
    assert add_up(Counter(), (b for e in run.engines() for b in e.result(0))) == total
    assert total


def test_an_engine_that_has_never_run_has_nothing_to_read():
    run = LocalPipeline(JOIN, [T, U], 1)
    assert run.engine("shard", 0, Holder()).read(MemoryStore()) is None


def test_engines_that_nobody_asks_for_are_let_go():
    run = LocalPipeline(JOIN, [T, U], 2)
    run.step(t_batch([]))
    (holder,) = run.holders
    assert len(holder) == 2
    held = holder.take(("shard", 0))
    held.used -= 3601
    holder.put(("shard", 0), held)
    assert holder.take("another") is None
    assert len(holder) == 1
    assert holder.take(("shard", 1)) is not None


# ---- U3 --------------------------------------------------------------------------------------------------------------


def test_bytes_written_are_proportional_to_bytes_received():
    sql = "SELECT g, SUM(x) AS s FROM t GROUP BY g"
    run = LocalPipeline(sql, [T], 1)
    store = run.stores[("shard", 0)] = MemoryStore()
    received, snapshots, smallest = 0, 0, 20_000
    with patch.object(durable, "_SMALLEST_SNAPSHOT", smallest):
        for n in range(80):
            rows = t_batch([(n * 250 + i, i * 7919 * n, 1) for i in range(250)])
            blobs = [blob for _, blob in run.pipeline.dispatch(0, iter(rows.values()))]
            before, old = store.written, store.snapshot
            running = Returning(run.run("shard", 0, blobs))
            list(running)
            outcome = running.returned
            received += sum(map(len, blobs))
            assert outcome.written == store.written - before
            if store.snapshot is old:
                assert store.written - before <= sum(map(len, blobs)) + 24 * len(blobs)
            else:
                snapshots += 1
                assert not store.log
            assert sum(map(len, store.log)) <= max(smallest, sum(map(len, store.snapshot)))
            assert store.written <= 4 * received + smallest
    assert 3 <= snapshots <= 20
    assert outcome.state_rows == 80 * 250


def test_many_small_entries_lead_to_a_snapshot_too():
    run = LocalPipeline("SELECT g, SUM(x) AS s FROM t GROUP BY g", [T], 1)
    longest = 0
    with patch.object(durable, "_SMALLEST_SNAPSHOT", 50 << 10):
        for n in range(120):
            run.step(t_batch([(1, n, 1)]))
            longest = max(longest, len(run.stores["shard", 0].log))
    assert longest == 50


# ---- what is not theirs ----------------------------------------------------------------------------------------------


def mismatch(sql, tables, shards, inputs=None):
    """The error of a pipeline that goes on with the stores of ``JOIN`` over two shards."""
    before = LocalPipeline(JOIN, [T, U], 2)
    before.step(t_batch([(1, 1, 1)]))
    after = LocalPipeline(sql, tables, shards, inputs)
    after.stores = before.stores
    with pytest.raises(CheckpointError) as caught:
        after.step({tables[0].name: batch_for(tables[0], [])})
    assert caught.value.code == "CHECKPOINT_MISMATCH"
    assert "new checkpoint directory" in caught.value.hint
    return str(caught.value)


def test_state_of_another_query_is_refused_with_both_texts():
    other = JOIN.replace("u.s", "u.s AS z")
    assert f"written for the SQL\n  {JOIN}\nand this is\n  {other}" in mismatch(other, [T, U], 2)


@pytest.mark.parametrize("shards", [1, 3, 4])
def test_state_of_another_number_of_shards_is_refused(shards):
    assert f"written with shards=2 and this is shards={shards}" in mismatch(JOIN, [T, U], shards)


@pytest.mark.parametrize(
    "columns",
    [
        (Column("g", BIGINT), Column("s", STRING), Column("more", INT)),
        (Column("s", STRING), Column("g", BIGINT)),
        (Column("g", INT), Column("s", STRING)),
        (Column("g", BIGINT), Column("s", STRING, nullable=False)),
    ],
    ids=["more", "order", "type", "not null"],
)
def test_state_of_tables_with_other_columns_is_refused(columns):
    assert "columns, keys or options of its tables differ" in mismatch(JOIN, [T, Table("u", columns)], 2)


def test_state_of_tables_with_another_key_is_refused():
    keyed = Table("u", (Column("g", BIGINT, False), Column("s", STRING)), ("g",))
    assert "columns, keys or options" in mismatch(JOIN, [T, keyed], 2, {"u": keyed_as("images", keyed)})


def test_state_of_another_format_is_refused():
    run = LocalPipeline(JOIN, [T, U], 1)
    run.step(t_batch([]))
    store = run.stores["shard", 0]
    store.head = json.dumps(json.loads(store.head) | {"format": 99})
    with pytest.raises(CheckpointError, match=r"CHECKPOINT_MISMATCH.*format 99.*reads format 1"):
        run.step(t_batch([]))


def test_the_same_view_in_another_process_goes_on():
    before = LocalPipeline(JOIN, [T, U], 2)
    total = add_up(Counter(), before.step(t_batch([(1, 1, 1)])))
    after = LocalPipeline(JOIN, [T, U], 2)
    after.stores = before.stores
    assert add_up(total, after.step({"u": batch_for(U, [(1, "a", 1)])})) == {(1, "a"): 1}


@pytest.mark.parametrize("other", ["ordered", "unordered", "images with rest", "another column"])
def test_state_of_another_kind_of_input_is_refused(other):
    before = LocalPipeline(KEYED, [T, K], 1, {"k": keyed_as("images", K)})
    before.step({"k": batch_for(K, [(1, 1, None, 1)])})
    wider = Table("k", (*K.columns, Column("z", INT)), ("id",))
    table, mode = (wider, "images") if other == "another column" else (K, other)
    after = LocalPipeline(KEYED, [T, table], 1, {"k": keyed_as(mode, table)})
    after.stores = before.stores
    with pytest.raises(CheckpointError, match="CHECKPOINT_MISMATCH"):
        after.step(t_batch([(1, 1, 1)]))


# ---- damage ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def stored():
    """A store with a snapshot and four log entries; a function that reads it with a new engine."""
    run = LocalPipeline(JOIN, [T, U], 1)
    for n, batch in enumerate(fed(run, 4)):
        with patch.object(durable, "_SMALLEST_SNAPSHOT", 0 if n == 1 else 4 << 20):
            run.step(batch)
    store = run.stores["shard", 0]
    assert len(store.log) == 4
    assert len(store.snapshot) == 2
    return store, lambda: run.engine("shard", 0, Holder()).read(store)


def assert_damaged(read):
    with pytest.raises(CheckpointError) as caught:
        read()
    assert caught.value.code == "CHECKPOINT_DAMAGED"
    assert "restore this one from a backup" in caught.value.hint


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]


def test_undamaged_state_can_be_read(stored):
    assert stored[1]().size()[0] > 0


def test_a_flipped_bit_in_a_snapshot_is_found(stored):
    store, read = stored
    whole = store.snapshot[0]
    for at in range(0, len(whole), 7):
        store.snapshot[0] = flipped(whole, at)
        assert_damaged(read)


def test_a_flipped_bit_in_the_rows_of_a_log_is_found(stored):
    store, read = stored
    for n, whole in enumerate(list(store.log)):
        for at in range(24, len(whole), 13):
            store.log[n] = flipped(whole, at)
            assert_damaged(read)
        store.log[n] = whole


def test_a_flipped_bit_in_the_version_or_nonce_of_the_newest_entry_is_found(stored):
    store, read = stored
    whole = store.log[-1]
    for at in range(24):
        store.log[-1] = flipped(whole, at)
        assert_damaged(read)


@pytest.mark.parametrize("kept", [0, 3, 7, 8, 20, 100])
def test_a_snapshot_that_is_cut_off_is_found(stored, kept):
    store, read = stored
    store.snapshot[-1] = store.snapshot[-1][:kept]
    assert_damaged(read)


@pytest.mark.parametrize("kept", [24, 27, 31, 32, 44, 100])
def test_a_log_entry_that_is_cut_off_is_found(stored, kept):
    store, read = stored
    store.log[0] = store.log[0][:kept]
    assert_damaged(read)


@pytest.mark.parametrize(
    "head",
    ["", "{", "[]", "null", "{}", '"text"', '{"format": 1}'],
    ids=["empty", "cut", "list", "null", "no fields", "text", "format only"],
)
def test_a_head_that_cannot_be_read_is_found(stored, head):
    store, read = stored
    store.head = head
    assert_damaged(read)


def test_a_blob_of_another_version_is_told_from_a_damaged_one(stored):
    store, read = stored
    store.snapshot[0] = b"EVB9" + store.snapshot[0][4:]
    with pytest.raises(CheckpointError, match="not one of this version"):
        read()


def test_a_head_that_is_older_than_its_log_is_found(stored):
    store, read = stored
    head = json.loads(store.head)
    store.head = json.dumps(head | {"version": head["version"] - 1})
    assert_damaged(read)


def test_the_newest_batch_missing_from_the_log_is_found(stored):
    store, read = stored
    newest = store.log[-1][:8]
    store.log = [e for e in store.log if e[:8] != newest]
    assert store.log
    assert_damaged(read)


@pytest.mark.parametrize("kept", [0, 8, 23])
def test_a_log_entry_that_is_cut_off_in_its_head_is_found(stored, kept):
    store, read = stored
    store.log[0] = store.log[0][:kept]
    assert_damaged(read)


@pytest.mark.parametrize(
    "lost", [slice(None), slice(0, 1), slice(1, 3), slice(3, 4)], ids=["all", "first", "middle", "last"]
)
def test_entries_missing_from_the_log_are_found(stored, lost):
    store, read = stored
    del store.log[lost]
    assert_damaged(read)


@pytest.mark.parametrize("lost", [slice(None), slice(0, 1), slice(1, 2)], ids=["all", "first", "last"])
def test_blobs_missing_from_the_snapshot_are_found(stored, lost):
    store, read = stored
    del store.snapshot[lost]
    assert_damaged(read)


def test_a_flipped_bit_in_the_version_of_an_older_entry_is_found(stored):
    store, read = stored
    store.log[0] = flipped(store.log[0], 0)
    assert_damaged(read)


def test_a_blob_that_is_damaged_on_its_way_is_refused():
    run = LocalPipeline(JOIN, [T, U], 1)
    ((_, blob),) = run.pipeline.dispatch(0, iter([batch_for(T, [(1, 1, 1)])]))
    assert zlib.crc32(blob[8:]) == int.from_bytes(blob[4:8], "little")
    for at in range(0, len(blob), 5):
        with pytest.raises(CheckpointError, match="CHECKPOINT_DAMAGED"):
            list(run.run("shard", 0, [flipped(blob, at)]))


# ---- restoring in pieces ---------------------------------------------------------------------------------------------


BIG = 2**62
PIECES = {
    "a sum leaves bigint": ("SELECT g, SUM(x) AS s FROM t GROUP BY g", [BIG, BIG, -BIG, -BIG, 3]),
    "a sum is zero": ("SELECT g, 100 / SUM(x) AS s FROM t GROUP BY g", [1, -1, 4, 5, -3]),
}


@pytest.mark.parametrize("case", PIECES)
def test_a_snapshot_of_several_blobs_is_restored_at_once(case):
    sql, values = PIECES[case]
    with patch.object(durable, "_SMALLEST_SNAPSHOT", 0), patch.object(blobs_of_rows, "LARGEST", 48):
        run = LocalPipeline(sql, [T], 1)
        total = add_up(Counter(), run.step(t_batch([(1, x, 1) for x in values])))
        assert len(run.stores["shard", 0].snapshot) > 1
        assert add_up(Counter(), (b for e in run.engines() for b in e.result(0))) == total
