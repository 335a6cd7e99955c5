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

SEQUENCE = ("_sequence",)
TABLE = Table("k", (Column("id", BIGINT, False), Column("z", STRING, False), Column("v", BIGINT)), ("id", "z"))
OTHER = Table("o", (Column("f", DOUBLE, False), Column("v", BIGINT)), ("f",))


class Letters:
    def __init__(self):
        self.written = []

    def write(self, rows):
        self.written.append(list(rows))


class Run:
    """A normaliser of one table, and its rows by key as what left says."""

    def __init__(self, latest=False, order=(), quarantine=False, table=TABLE, seconds=3600.0):
        self.table, self.extra = table, (*order, "_live") if latest else ("_multiplicity",)
        self.letters = Letters() if quarantine else None
        self.make = lambda: Normaliser(
            [KeyedInput(table, 0, latest, order)], tombstone_seconds=seconds, letters=self.letters
        )
        self.stage = self.make()
        self.log = []

    def batch(self, rows):
        return batch_for(self.table, rows, self.extra)

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
    """The rows held, without when they were deleted and how often they are there."""
    return sorted(
        (tuple(r.values())[:-2] for _, batches in stage.snapshot() for b in batches for r in b.to_pylist()), key=repr
    )


keys = st.tuples(st.sampled_from([1, 2, 3]), st.sampled_from(["a", "b"]))
images = st.lists(st.tuples(keys, st.sampled_from([None, 7, 8]), st.sampled_from([1, -1, 1, -1, 2, -2])), max_size=12)


# ---- images ----------------------------------------------------------------------------------------------------------


def by_value(row):
    """The order of rows by content: NULL first."""
    return [(value is not None, value) for value in row]


def judged(held, batch):
    """Images by the book: net, refuse deletes of what is not there, then rows whose key is taken or goes to a greater row."""
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
    for row, n in sorted(net.items(), key=lambda found: by_value(found[0]), reverse=True):
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


@pytest.mark.parametrize(("latest", "row"), [(False, (None, "a", 1, 1)), (True, (None, "a", 1, True))])
def test_a_row_with_a_null_in_its_key_is_refused_by_name(latest, row):
    with pytest.raises(ChangeError, match=r"NULL_NOT_ALLOWED.*table `k`.*key column `id` is NULL.*z='a', v=1"):
        Run(latest).step([row])


def test_rows_that_differ_in_what_is_hidden_alone_are_different():
    table = Table("k", (*TABLE.columns, Column("_rest", BIGINT, False)), TABLE.primary_key)
    run = Run(quarantine=True, table=table)
    run.make = lambda: Normaliser([KeyedInput(table, 1)], tombstone_seconds=1, letters=run.letters)
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
    """The newest row per key by the book: by sequence, then a row before a deletion, then by value."""

    def __init__(self):
        self.held = {}  # key: (row, sequence, live)

    def step(self, batch):
        before = dict(self.held)
        given = [(row[:3] if row[-1] else (*row[:2], None), row[3:-1], row[-1]) for row in batch]
        place = lambda found: (found[1], found[2], by_value(found[0]))
        stale = sum(f[0][:2] in before and place(f) <= place(before[f[0][:2]]) for f in given)
        for found in given:
            key = found[0][:2]
            if key not in self.held or place(found) > place(self.held[key]):
                self.held[key] = found
        delta = Counter(r for r, _, live in self.held.values() if live)
        delta.subtract(Counter(r for r, _, live in before.values() if live))
        return Counter({row: n for row, n in delta.items() if n}), stale

    def rows(self):
        return sorted([(*row, *sequence, live) for row, sequence, live in self.held.values()], key=repr)


events = st.lists(
    st.tuples(keys, st.sampled_from([None, 7, 8]), st.integers(-2, 9), st.sampled_from([True, True, False])),
    max_size=12,
)


@settings(max_examples=100)
@given(st.lists(events, max_size=5), st.integers(1, 3), st.booleans(), st.booleans())
def test_the_newest_row_by_sequence(batches, parts, quarantine, two):
    order = ("_sequence", "_within") if two else SEQUENCE
    run, model = Run(latest=True, order=order, quarantine=quarantine), Latest()
    for changes in batches:
        batch = [(*key, v, *(divmod(n, 3) if two else (n,)), live) for key, v, n, live in changes]
        delta, stale = model.step(batch)
        found, applied = run.step(batch, parts)
        assert found == delta
        assert applied.notes == {"stale": stale, "bad": 0}
    assert run.held() == model.rows()
    assert_replays(run, state_of)


@settings(max_examples=60)
@given(events, st.randoms(use_true_random=False))
def test_rows_may_come_in_any_order_and_any_batches(changes, random):
    rows = [(*key, v, n // 3, live) for key, v, n, live in changes]  # few different sequences
    model, total = Latest(), Counter()
    model.step(rows)
    shuffled = Run(latest=True, order=SEQUENCE)
    random.shuffle(rows)
    while rows:
        size = random.randint(1, 4)
        total.update(shuffled.step(rows[:size])[0])
        del rows[:size]
    assert shuffled.held() == model.rows()
    assert Counter({row: n for row, n in total.items() if n}) == Counter(r[:3] for r in model.rows() if r[-1])


def test_where_sequences_tie_content_decides_across_batches_too():
    for rows in ([7, 8], [8, 7]):
        one, two = Run(latest=True, order=SEQUENCE), Run(latest=True, order=SEQUENCE)
        one.step([(1, "a", v, 5, True) for v in rows])
        for v in rows:
            two.step([(1, "a", v, 5, True)])
        assert one.held() == two.held() == [(1, "a", 8, 5, True)]


@pytest.mark.parametrize("order", [1, -1])
def test_a_row_is_newer_than_a_deletion_of_its_sequence(order):
    """An update that comes as a deletion and a row of one place in a log, cut in any way."""
    rows = [(1, "a", 7, 5, True), (1, "a", 9, 5, False)][::order]
    for batches in ([rows], [[row] for row in rows]):
        run = Run(latest=True, order=SEQUENCE)
        for batch in batches:
            run.step(batch)
        assert run.held() == [(1, "a", 7, 5, True)]


def test_how_many_rows_are_older_is_told():
    run = Run(latest=True, order=SEQUENCE)
    told = lambda rows: [(f["table"], f["known"], f["behind"]) for f in run.step(rows)[1].facts]
    assert told([(1, "a", 7, 100, True), (2, "a", 7, 200, True)]) == []
    assert told([(1, "a", 7, 100, True)]) == [("k", 1, 0)], "the same row again is no sign of anything"
    assert told([(1, "a", 7, 99, True), (2, "a", 8, 201, True)]) == [("k", 2, 1)]
    assert told([(5, "a", 7, 1, True)]) == [], "nothing is known of its key"
    assert told([(1, "a", 8, 2, True), (2, "a", 9, 3, False), (6, "a", 1, 4, True)]) == [("k", 2, 2)]


def test_a_late_row_after_a_deletion_is_stale():
    run = Run(latest=True, order=SEQUENCE)
    run.step([(1, "a", 7, 1, True)])
    assert run.step([(1, "a", None, 5, False)])[0] == {(1, "a", 7): -1}
    found, applied = run.step([(1, "a", 8, 4, True), (1, "a", 9, 5, False)])
    assert (found, applied.notes["stale"]) == ({}, 2)
    assert run.step([(1, "a", 9, 6, True)])[0] == {(1, "a", 9): 1}


def test_a_deletion_of_what_never_was_leaves_a_tombstone_only():
    run = Run(latest=True, order=SEQUENCE)
    assert run.step([(1, "a", None, 5, False)])[0] == {}
    assert run.step([(1, "a", 8, 4, True)])[0] == {}
    assert run.stage.size()[0] == 1


def test_an_equal_row_with_a_newer_sequence_changes_nothing_but_is_remembered():
    run = Run(latest=True, order=SEQUENCE)
    run.step([(1, "a", 7, 1, True)])
    found, applied = run.step([(1, "a", 7, 5, True)])
    assert (found, applied.notes["stale"]) == ({}, 0)
    assert run.step([(1, "a", 8, 4, True)])[1].notes["stale"] == 1


def test_a_null_sequence_is_refused():
    with pytest.raises(ChangeError, match="NULL_NOT_ALLOWED.*the sequence is NULL"):
        Run(latest=True, order=SEQUENCE).step([(1, "a", 7, None, True)])
    run = Run(latest=True, order=SEQUENCE, quarantine=True)
    found, _ = run.step([(1, "a", 7, None, True), (2, "a", 7, 0, True)])
    assert found == {(2, "a", 7): 1}
    assert run.bad() == {("NULL_NOT_ALLOWED", (1, "a", 7)): 1}


def at(milliseconds):
    return patch.object(module.time, "time_ns", lambda: milliseconds * 1_000_000)


def test_tombstones_are_forgotten_when_a_snapshot_is_taken_after_their_time():
    run = Run(latest=True, order=SEQUENCE, seconds=10)
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
    run = Run(latest=True, order=SEQUENCE)
    run.step([(1, "a", 7, 1, True)])
    run.step([(1, "a", None, 5, False)])
    other = run.make()
    for section in run.stage.snapshot():
        other.restore([section])
    run.stage = other
    assert run.step([(1, "a", 8, 4, True)])[1].notes["stale"] == 1


# ---- latest without a sequence -----------------------------------------------------------------------------------------


def test_without_a_sequence_what_comes_in_a_later_batch_is_newer():
    run = Run(latest=True)
    assert run.step([(1, "a", 8, True)])[0] == {(1, "a", 8): 1}
    assert run.step([(1, "a", 7, True)])[0] == {(1, "a", 8): -1, (1, "a", 7): 1}
    assert run.step([(1, "a", None, False)])[0] == {(1, "a", 7): -1}
    assert run.stage.size()[0] == 0, "there is no tombstone"
    assert run.step([(1, "a", 9, True)])[0] == {(1, "a", 9): 1}


def test_without_a_sequence_the_deletion_of_an_absent_key_is_refused():
    with pytest.raises(ChangeError, match=r"ROW_NOT_FOUND.*`k`.*there is no row with its key.*id=1, z='a'"):
        Run(latest=True).step([(1, "a", None, False)])
    run = Run(latest=True, quarantine=True)
    found, _ = run.step([(1, "a", 5, False), (2, "a", 7, True), (1, "a", 6, False)])
    assert found == {(2, "a", 7): 1}
    assert run.bad() == {("ROW_NOT_FOUND", (1, "a", 5)): 1, ("ROW_NOT_FOUND", (1, "a", 6)): 1}


@settings(max_examples=60)
@given(st.lists(events, max_size=5), st.integers(1, 3))
def test_the_newest_row_by_batch_and_value(batches, parts):
    run, held = Run(latest=True, quarantine=True), {}
    for changes in batches:
        batch = [(*key, v, live) for key, v, _, live in changes]
        after, absent = dict(held), Counter()
        for key in {row[:2] for row in batch}:
            live = [row[:3] for row in batch if row[:2] == key and row[3]]
            if live:
                after[key] = max(live, key=by_value)
            elif key in held:
                del after[key]
            else:
                absent.update(("ROW_NOT_FOUND", row[:3]) for row in batch if row[:2] == key)
        delta = Counter(after.values())
        delta.subtract(Counter(held.values()))
        found, applied = run.step(batch, parts)
        assert found == {r: n for r, n in delta.items() if n}
        assert run.bad() == absent
        assert applied.notes == {"stale": 0, "bad": absent.total()}
        held = after
    assert [row[:3] for row in run.held()] == sorted(held.values(), key=repr)
    assert_replays(run, state_of)


def test_without_a_sequence_a_row_is_newer_than_a_deletion_of_its_batch():
    run = Run(latest=True)
    assert run.step([(1, "a", 7, True), (1, "a", None, False)])[0] == {(1, "a", 7): 1}
    assert run.step([(1, "a", None, False), (1, "a", 9, True)])[0] == {(1, "a", 7): -1, (1, "a", 9): 1}


# ---- input rows that are carried -------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.lists(images, max_size=4), st.lists(events, max_size=4))
def test_what_rows_carry_changes_nothing_but_what_is_shown(images_given, events_given):
    """State, changes and log are those of rows that carry nothing; the letters show what was carried."""
    for latest, order, batches in (
        (False, (), [[(*key, v, n) for key, v, n in changes] for changes in images_given]),
        (True, SEQUENCE, [[(*key, v, s, live) for key, v, s, live in changes] for changes in events_given]),
        (True, (), [[(*key, v, live) for key, v, _, live in changes] for changes in events_given]),
    ):
        plain, run = (Run(latest, order, quarantine=True) for _ in range(2))
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
    texts = ["two", "one", "three"]
    assert run.step([(1, "a", 7, -1)] * 3)[0] == {(1, "a", 7): -1}
    assert run.bad() == {("ROW_NOT_FOUND", ("two",)): 1, ("ROW_NOT_FOUND", ("three",)): 1}, "the last by their texts"


# ---- several inputs --------------------------------------------------------------------------------------------------


def test_inputs_of_both_kinds_live_side_by_side():
    stage = Normaliser([KeyedInput(TABLE), KeyedInput(OTHER, 0, True, SEQUENCE)], tombstone_seconds=60, letters=None)
    rows = batch_for(TABLE, [(1, "a", 7, 1)])
    other = batch_for(OTHER, [(1.5, 2, 1, True), (2.5, 2, 1, False)], ("_sequence", "_live"))
    applied = stage.apply([(1, [other]), (0, [rows])], deltas=True)
    assert {n: [tuple(r.values()) for b in bs for r in b.to_pylist()] for n, bs in applied.delta} == {
        0: [(1, "a", 7, 1)],
        1: [(1.5, 2, 1)],
    }
    assert applied.rows_in == 3
    restored = Normaliser([KeyedInput(TABLE), KeyedInput(OTHER, 0, True, SEQUENCE)], tombstone_seconds=60, letters=None)
    for section in stage.snapshot():
        restored.restore([section])
    assert restored.size()[0] == stage.size()[0] == 3
