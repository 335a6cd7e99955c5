"""Keyed inputs against a plain model: what leaves, what is refused or set aside, what is stale, what is remembered."""

import json
from collections import Counter
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from local_pipeline import batch_for, carrying

from everview.errors import ChangeError
from everview.schema.datatype import BIGINT, DOUBLE, STRING
from everview.schema.table import Column, Table
from everview.shards import normaliser as module
from everview.shards.blob import pack, unpack
from everview.shards.carried import together
from everview.shards.normaliser import KeyedInput, Normaliser

TABLE = Table("k", (Column("id", BIGINT, False), Column("z", STRING, False), Column("v", BIGINT)), ("id", "z"))
OTHER = Table("o", (Column("f", DOUBLE, False), Column("v", BIGINT)), ("f",))


class Letters:
    def __init__(self):
        self.written = []

    def write(self, rows):
        self.written.append(list(rows))


class Run:
    """A normaliser of one table, and its rows by key as what left says."""

    def __init__(self, latest=False, ordered=False, quarantine=False, table=TABLE, seconds=3600.0):
        self.table, self.latest = table, latest
        self.letters = Letters() if quarantine else None
        self.make = lambda: Normaliser(
            [KeyedInput(table, 0, latest, ordered)], tombstone_seconds=seconds, letters=self.letters
        )
        self.stage = self.make()
        self.log = []

    def batch(self, rows):
        return batch_for(self.table, rows, ("_sequence", "_live") if self.latest else ("_multiplicity",))

    def step(self, rows, parts=1):
        """The change that leaves as {row: multiplicity}, and what was done. The batch comes in parts, in order."""
        at = [len(rows) * n // parts for n in range(parts + 1)]
        sections = [(0, [self.batch(rows[a:b])]) for a, b in zip(at, at[1:], strict=False)]
        applied = self.stage.apply(sections, deltas=True)
        self.log.append(sections if applied.accepted is None else applied.accepted)
        return changes_of(applied), applied

    def bad(self):
        return Counter((b.code, tuple(b.row.values())) for b in self.letters.written[-1])

    def held(self, stage=None):
        return state_of(stage or self.stage)


def changes_of(applied):
    found = Counter()
    for _, batches in applied.delta:
        for b in batches:
            for *row, n in (r.values() for r in b.to_pylist()):
                assert n and tuple(row) not in found, "not net"
                found[tuple(row)] = n
    return found


def state_of(stage):
    return sorted(
        (tuple(r.values())[:-2] for _, batches in stage.snapshot() for b in batches for r in b.to_pylist()), key=repr
    )


keys = st.tuples(st.sampled_from([1, 2, 3]), st.sampled_from(["a", "b"]))
images = st.lists(st.tuples(keys, st.sampled_from([None, 7, 8]), st.sampled_from([1, -1, 1, -1, 2, -2])), max_size=12)


# ---- images ----------------------------------------------------------------------------------------------------------


def judged(held, batch):
    """Images by the book: net, refuse deletes of what is not there, then refuse rows whose key is taken. First come, first served."""
    net = {}
    for row in batch:
        net[row[:-1]] = net.get(row[:-1], 0) + row[-1]
    net = {row: n for row, n in net.items() if n}
    bad, delta = Counter(), {}
    for row, n in net.items():
        if n < 0:
            there = 1 if held.get(row[:2]) == row else 0
            if -n > there:
                bad["ROW_NOT_FOUND", row] += 1
            if there:
                delta[row] = -1
    left = {k: r for k, r in held.items() if r not in delta}
    for row, n in net.items():
        if n > 0:
            if row[:2] in left:
                bad["DUPLICATE_KEY", row] += 1
                continue
            if n > 1:
                bad["DUPLICATE_KEY", row] += 1
            left[row[:2]] = row
            delta[row] = 1
    return left, Counter(delta), bad


@settings(max_examples=80)
@given(st.lists(images, max_size=5), st.integers(1, 3))
def test_images_with_bad_rows_set_aside(batches, parts):
    run, held = Run(quarantine=True), {}
    for changes in batches:
        batch = [(*key, v, n) for key, v, n in changes]
        held, delta, bad = judged(held, batch)
        found, applied = run.step(batch, parts)
        assert run.bad() == bad
        assert applied.notes == {"stale": 0, "bad": bad.total()}
        assert (applied.accepted is None) == (not bad)
        assert found == delta
    assert Counter(images_held(run.stage)) == Counter(held.values())
    assert_replays(run, images_held)


def images_held(stage):
    return [tuple(r.values())[:-1] for _, bs in stage.snapshot() for b in bs for r in b.to_pylist()]


@settings(max_examples=80)
@given(st.lists(images, max_size=5))
def test_images_with_bad_rows_refused(batches):
    run, held = Run(), {}
    for changes in batches:
        batch = [(*key, v, n) for key, v, n in changes]
        after, delta, bad = judged(held, batch)
        if not bad:
            found, applied = run.step(batch)
            assert (found, applied.accepted, applied.rows_in) == (delta, None, len(batch))
            held = after
            continue
        with pytest.raises(ChangeError) as caught:
            run.step(batch)
        assert caught.value.code in {code for code, _ in bad}
        assert "table `k`" in str(caught.value)
        assert "quarantine" in caught.value.hint
        shown = [f"(id={r[0]!r}, z={r[1]!r}, v={r[2]!r})" for _, r in bad]
        assert any(text in str(caught.value) for text in shown)
        return  # an engine that refused is not used again


def assert_replays(run, held):
    """A log of what was accepted leads to the same state, without a letter, and so do a snapshot and the rest of the log."""
    before = None if run.letters is None else len(run.letters.written)
    for restored in range(len(run.log) + 1):
        first, second = run.make(), run.make()
        for n, sections in enumerate(run.log):
            if n == restored:
                for section in list(first.snapshot()):
                    second.restore(unpack(pack([section])))
                first = second
            assert first.apply(sections, deltas=False).delta == []
        assert sorted(held(first), key=repr) == sorted(held(run.stage), key=repr)
    if before is not None:
        assert len(run.letters.written) == before


@pytest.mark.parametrize("order", [1, -1])
def test_an_update_may_name_its_images_in_any_order(order):
    run = Run()
    run.step([(1, "a", 7, 1)])
    assert run.step([(1, "a", 7, -1), (1, "a", 8, 1)][::order])[0] == {(1, "a", 7): -1, (1, "a", 8): 1}


def test_rows_with_a_null_in_their_key_are_set_aside():
    run = Run(quarantine=True)
    rows = [(None, "a", 1, 1), (1, None, 2, 1), (None, None, 3, -1), (1, "a", None, 1)]
    found, applied = run.step(rows)
    assert found == {(1, "a", None): 1}
    assert {(code, row[2]) for code, row in run.bad()} == {("NULL_NOT_ALLOWED", n) for n in (1, 2, 3)}
    assert [b.reason for b in run.letters.written[0]].count("the key column `z` is NULL") == 1
    assert applied.notes["bad"] == 3


@pytest.mark.parametrize(("latest", "row"), [(False, (None, "a", 1, 1)), (True, (None, "a", 1, 1, True))])
def test_a_row_with_a_null_in_its_key_is_refused_by_name(latest, row):
    with pytest.raises(ChangeError, match=r"NULL_NOT_ALLOWED.*table `k`.*key column `id` is NULL.*z='a', v=1"):
        Run(latest, latest).step([row])


def test_rows_that_differ_in_what_is_hidden_alone_are_different():
    table = Table("k", (*TABLE.columns, Column("_rest", BIGINT, False)), TABLE.primary_key)
    run = Run(quarantine=True, table=table)
    run.make = lambda: Normaliser([KeyedInput(table, 1, False, False)], tombstone_seconds=1, letters=run.letters)
    run.stage = run.make()
    assert run.step([(1, "a", 7, 100, 1)])[0] == {(1, "a", 7): 1}
    assert run.step([(1, "a", 7, 101, -1)])[0] == {}
    assert run.bad() == {("ROW_NOT_FOUND", (1, "a", 7)): 1}
    assert run.step([(1, "a", 7, 100, -1), (1, "a", 7, 101, 1)])[0] == {}, "what changes is not seen"
    assert run.step([(1, "a", 7, 101, -1)])[0] == {(1, "a", 7): -1}


def test_keys_that_are_zero_or_nan_are_found_again():
    run = Run(table=OTHER)
    run.step([(0.0, 1, 1), (float("nan"), 2, 1)])
    with pytest.raises(ChangeError, match="DUPLICATE_KEY"):
        run.step([(-0.0, 5, 1)])
    nan = run.step([(-0.0, 1, -1), (float("nan"), 2, -1)])[0]
    assert sorted(nan.values()) == [-1, -1]
    assert images_held(run.stage) == []


# ---- latest ----------------------------------------------------------------------------------------------------------


class Latest:
    """The newest row per key by the book."""

    def __init__(self):
        self.held = {}  # key: (row, sequence, live)

    def step(self, batch):
        before = dict(self.held)
        stale = sum(r[:2] in before and r[3] <= before[r[:2]][1] for r in batch)
        newest = {}
        for *values, sequence, live in batch:
            row = tuple(values)
            if row[:2] not in newest or sequence >= newest[row[:2]][1]:
                newest[row[:2]] = (row, sequence, live)
        for key, found in newest.items():
            if key not in before or found[1] > before[key][1]:
                self.held[key] = found
        delta = Counter(r for r, _, live in self.held.values() if live)
        delta.subtract(Counter(r for r, _, live in before.values() if live))
        return Counter({row: n for row, n in delta.items() if n}), stale


events = st.lists(
    st.tuples(keys, st.sampled_from([None, 7, 8]), st.integers(-2, 9), st.sampled_from([True, True, False])),
    max_size=12,
)


@settings(max_examples=100)
@given(st.lists(events, max_size=5), st.integers(1, 3), st.booleans())
def test_the_newest_row_by_sequence(batches, parts, quarantine):
    run, model = Run(latest=True, ordered=True, quarantine=quarantine), Latest()
    for changes in batches:
        batch = [(*key, v if live else None, sequence, live) for key, v, sequence, live in changes]
        delta, stale = model.step(batch)
        found, applied = run.step(batch, parts)
        assert found == delta
        assert applied.notes == {"stale": stale, "bad": 0}
    expected = [(*row, sequence, live) for row, sequence, live in model.held.values()]
    assert run.held() == sorted(expected, key=repr)
    assert_replays(run, state_of)


@settings(max_examples=40)
@given(events, st.randoms(use_true_random=False))
def test_rows_with_different_sequences_may_come_in_any_order_and_any_batches(changes, random):
    unique = [(*key, v if live else None, n, live) for n, (key, v, _, live) in enumerate(changes)]
    in_order, shuffled = Run(latest=True, ordered=True), Run(latest=True, ordered=True)
    total = Counter()
    for row in unique:
        in_order.step([row])
    random.shuffle(unique)
    while unique:
        size = random.randint(1, 4)
        for row, n in shuffled.step(unique[:size])[0].items():
            total[row] += n
        del unique[:size]
    assert shuffled.held() == in_order.held()
    assert +total == Counter(row[:3] for row in in_order.held() if row[-1])


def test_a_late_row_after_a_deletion_is_stale():
    run = Run(latest=True, ordered=True)
    run.step([(1, "a", 7, 1, True)])
    assert run.step([(1, "a", None, 5, False)])[0] == {(1, "a", 7): -1}
    found, applied = run.step([(1, "a", 8, 4, True), (1, "a", 9, 5, True)])
    assert (found, applied.notes["stale"]) == ({}, 2)
    assert run.step([(1, "a", 9, 6, True)])[0] == {(1, "a", 9): 1}


def test_a_deletion_of_what_never_was_leaves_a_tombstone_only():
    run = Run(latest=True, ordered=True)
    assert run.step([(1, "a", None, 5, False)])[0] == {}
    assert run.step([(1, "a", 8, 4, True)])[0] == {}
    assert run.stage.size()[0] == 1


def test_an_equal_row_with_a_newer_sequence_changes_nothing_but_is_remembered():
    run = Run(latest=True, ordered=True)
    run.step([(1, "a", 7, 1, True)])
    found, applied = run.step([(1, "a", 7, 5, True)])
    assert (found, applied.notes["stale"]) == ({}, 0)
    assert run.step([(1, "a", 8, 4, True)])[1].notes["stale"] == 1


def test_a_null_sequence_is_refused():
    with pytest.raises(ChangeError, match="NULL_NOT_ALLOWED.*the sequence is NULL"):
        Run(latest=True, ordered=True).step([(1, "a", 7, None, True)])
    run = Run(latest=True, ordered=True, quarantine=True)
    found, _ = run.step([(1, "a", 7, None, True), (2, "a", 7, 0, True)])
    assert found == {(2, "a", 7): 1}
    assert run.bad() == {("NULL_NOT_ALLOWED", (1, "a", 7)): 1}


def at(milliseconds):
    return patch.object(module.time, "time_ns", lambda: milliseconds * 1_000_000)


def test_tombstones_are_forgotten_when_a_snapshot_is_taken_after_their_time():
    run = Run(latest=True, ordered=True, seconds=10)
    with at(1_000_000):
        run.step([(1, "a", None, 5, False), (2, "a", 7, 5, True)])
    with at(1_005_000):
        run.step([(3, "a", None, 5, False)])
    with at(1_010_000):
        assert len(run.held()) == 3
    with at(1_010_001):
        assert run.held() == [(2, "a", 7, 5, True), (3, "a", None, 5, False)]
    assert run.step([(1, "a", 8, 4, True)])[0] == {(1, "a", 8): 1}, "nothing is known of it any more"
    assert run.step([(3, "a", 8, 4, True)])[0] == {}
    with at(9_000_000):
        assert run.held() == [(1, "a", 8, 4, True), (2, "a", 7, 5, True)], "live rows are never forgotten"


def test_tombstones_come_back_from_a_snapshot():
    run = Run(latest=True, ordered=True)
    run.step([(1, "a", 7, 1, True)])
    run.step([(1, "a", None, 5, False)])
    other = run.make()
    for section in run.stage.snapshot():
        other.restore([section])
    run.stage = other
    assert run.step([(1, "a", 8, 4, True)])[1].notes["stale"] == 1


# ---- latest without a sequence -----------------------------------------------------------------------------------------


def test_without_a_sequence_what_comes_later_is_newer():
    run = Run(latest=True)
    assert run.step([(1, "a", 7, 0, True), (1, "a", 8, 0, True)])[0] == {(1, "a", 8): 1}
    assert run.step([(1, "a", 9, 0, True)])[0] == {(1, "a", 8): -1, (1, "a", 9): 1}
    assert run.step([(1, "a", None, 0, False)])[0] == {(1, "a", 9): -1}
    assert run.stage.size()[0] == 0, "there is no tombstone"
    assert run.step([(1, "a", 9, 0, True)])[0] == {(1, "a", 9): 1}


def test_without_a_sequence_the_deletion_of_an_absent_key_is_refused():
    with pytest.raises(ChangeError, match=r"ROW_NOT_FOUND.*`k`.*there is no row with its key.*id=1, z='a'"):
        Run(latest=True).step([(1, "a", None, 0, False)])
    run = Run(latest=True, quarantine=True)
    found, _ = run.step([(1, "a", None, 0, False), (2, "a", 7, 0, True)])
    assert found == {(2, "a", 7): 1}
    assert run.bad() == {("ROW_NOT_FOUND", (1, "a", None)): 1}


@settings(max_examples=60)
@given(st.lists(events, max_size=5), st.integers(1, 3))
def test_the_newest_row_by_arrival(batches, parts):
    """A key that is absent before a batch and deleted last within it is left to the test below."""
    run, held = Run(latest=True, quarantine=True), {}
    for changes in batches:
        batch = [(*key, v if live else None, 0, live) for key, v, _, live in changes]
        newest = {row[:2]: row for row in batch}
        batch = [r for r in batch if newest[r[:2]][4] or r[:2] in held or newest[r[:2]] is r]
        absent = Counter(("ROW_NOT_FOUND", r[:3]) for k, r in newest.items() if not r[4] and k not in held)
        after = {k: r[:3] for k, r in (held | newest).items() if k not in newest or r[4]}
        delta = Counter(after.values())
        delta.subtract(Counter(held.values()))
        found, applied = run.step(batch, parts)
        assert found == {r: n for r, n in delta.items() if n}
        assert run.bad() == absent
        assert applied.notes["stale"] == 0
        held = after
    assert [row[:3] for row in run.held()] == sorted(held.values(), key=repr)
    assert_replays(run, state_of)


def test_without_a_sequence_a_key_may_come_and_go_within_a_batch():
    run = Run(latest=True)
    assert run.step([(1, "a", 7, 0, True), (1, "a", None, 0, False)])[0] == {}
    assert run.stage.size()[0] == 0


# ---- input rows that are carried -------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.lists(images, max_size=4), st.lists(events, max_size=4))
def test_what_rows_carry_changes_nothing_but_what_is_shown(images_given, events_given):
    """State, changes and log are those of rows that carry nothing; the letters show what was carried."""
    for latest, ordered, batches in (
        (False, False, [[(*key, v, n) for key, v, n in changes] for changes in images_given]),
        (True, True, [[(*key, v, s, live) for key, v, s, live in changes] for changes in events_given]),
        (True, False, [[(*key, v, 0, live) for key, v, _, live in changes] for changes in events_given]),
    ):
        plain, run = (Run(latest, ordered, quarantine=True) for _ in range(2))
        run.batch = lambda rows, plain=plain: carrying(plain.batch(rows))
        for rows in batches:
            (delta, did), (wanted, expected) = run.step(rows), plain.step(rows)
            assert (delta, did.rows_in, did.notes) == (wanted, expected.rows_in, expected.notes)
            assert run.bad() == plain.bad()
            assert did.accepted is not None or not rows
        assert run.held() == plain.held()
        assert_replays(run, state_of)


def test_input_rows_that_the_view_cannot_tell_apart_are_shown_one_by_one():
    """As many as are refused, of those that came with the refused row, and the same one once."""
    run = Run(quarantine=True)
    rows = [(1, "a", 7, n) for n in (1, 1, 1, 1, -1)]
    texts = ["first", "same", "same", "last", "a delete"]
    run.batch = lambda rows: together(batch_for(TABLE, rows), pa.array([json.dumps({"r": t}) for t in texts]))
    assert run.step(rows)[0] == {(1, "a", 7): 1}
    assert run.bad() == {("DUPLICATE_KEY", ("same",)): 1, ("DUPLICATE_KEY", ("last",)): 1}
    texts = ["one", "two", "three"]
    assert run.step([(1, "a", 7, -1)] * 3)[0] == {(1, "a", 7): -1}
    assert run.bad() == {("ROW_NOT_FOUND", ("two",)): 1, ("ROW_NOT_FOUND", ("three",)): 1}


# ---- several inputs --------------------------------------------------------------------------------------------------


def test_inputs_of_both_kinds_live_side_by_side():
    stage = Normaliser(
        [KeyedInput(TABLE, 0, False, False), KeyedInput(OTHER, 0, True, True)], tombstone_seconds=60, letters=None
    )
    rows = batch_for(TABLE, [(1, "a", 7, 1)])
    other = batch_for(OTHER, [(1.5, 2, 1, True), (2.5, 2, 1, False)], ("_sequence", "_live"))
    applied = stage.apply([(1, [other]), (0, [rows])], deltas=True)
    assert {n: [tuple(r.values()) for b in bs for r in b.to_pylist()] for n, bs in applied.delta} == {
        0: [(1, "a", 7, 1)],
        1: [(1.5, 2, 1)],
    }
    assert applied.rows_in == 3
    restored = Normaliser(
        [KeyedInput(TABLE, 0, False, False), KeyedInput(OTHER, 0, True, True)], tombstone_seconds=60, letters=None
    )
    for section in stage.snapshot():
        restored.restore([section])
    assert restored.size()[0] == stage.size()[0] == 3
