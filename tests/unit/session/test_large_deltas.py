"""Deltas larger than their limit are refused without a trace; streams hand them out in pieces."""

from collections import Counter

import everview as ev
import pyarrow as pa
import pytest

SHAPES = {
    "join": "SELECT r.a, r.k, s.b FROM r JOIN s ON r.k = s.k",
    "projected": "SELECT r.a, s.b FROM r JOIN s ON r.k = s.k",
    "expression": "SELECT r.a, s.b, r.a / (s.b + 1) AS q FROM r JOIN s ON r.k = s.k",
    "distinct": "SELECT DISTINCT r.a + s.b AS ab FROM r JOIN s ON r.k = s.k",
    "sums above": "SELECT r.k, SUM(r.a / (s.b + 1)) AS q FROM r JOIN s ON r.k = s.k GROUP BY r.k",
}
LOW = 40_000  # bytes: some hundred rows


def hot(n, start=0):
    return {"r": [(start + i, 0) for i in range(n)], "s": [(0, start + i) for i in range(n)]}


def make(sql, **options):
    db = ev.connect(**options)
    db.execute("CREATE TABLE r (a INT, k INT); CREATE TABLE s (k INT, b INT)")
    return db, db.create_view("v", sql)


def bag(table):
    return Counter(tuple(row.values()) for row in table.to_pylist())


@pytest.mark.parametrize("shape", SHAPES)
def test_a_delta_beyond_the_limit_is_refused_without_a_trace(shape):
    db, view = make(SHAPES[shape], delta_limit=LOW)
    twin, other = make(SHAPES[shape])
    for session in (db, twin):
        session.apply(hot(5))
    before = view.metrics()
    with pytest.raises(ev.ChangeError, match="more than [0-9]+ results") as refused:
        db.apply(hot(100, start=5))
    assert refused.value.code == "DELTA_TOO_LARGE"
    for way in ("deltas=False", "apply_stream", "delta_limit"):
        assert way in refused.value.hint
    assert bag(view.to_arrow()) == bag(other.to_arrow())
    assert view.metrics().state_rows == before.state_rows
    assert (db.version, db.table_rows("r").num_rows) == (1, 5)
    small = {"r": [(7, 0)], "s": [(0, 7)]}
    assert bag(db.apply(small)["v"]) == bag(twin.apply(small)["v"])


def test_without_deltas_there_is_nothing_to_hold():
    db, view = make(SHAPES["join"], delta_limit=LOW)
    assert db.apply(hot(300), deltas=False) == {}
    assert view.count() == 300 * 300


@pytest.mark.parametrize("shape", SHAPES)
def test_a_stream_hands_out_what_apply_returns(shape):
    db, _ = make(SHAPES[shape])
    twin, _ = make(SHAPES[shape])
    for batch in (hot(20), hot(30, start=20), {"r": [{"a": 3, "k": 0, "_multiplicity": -1}]}):
        pieces = []
        assert db.apply_stream(batch, lambda view, piece: pieces.append((view, piece))) is None
        assert {view for view, _ in pieces} <= {"v"}
        assert all(isinstance(piece, pa.RecordBatch) and piece.num_rows for _, piece in pieces)
        assert sum((bag(piece) for _, piece in pieces), Counter()) == bag(twin.apply(batch)["v"])
    assert db.version == 3


def test_pieces_leave_before_the_delta_is_complete():
    """A delta beyond the limit passes in pieces, and no piece holds much of it, though all of it belongs to one changed row."""
    db, view = make("SELECT r.a, s.b FROM r CROSS JOIN s", delta_limit=100_000)
    db.apply({"r": [(i, 0) for i in range(3000)]})
    sizes = []
    db.apply_stream({"s": [(0, i) for i in range(1000)]}, lambda _, piece: sizes.append(piece.num_rows))
    assert sum(sizes) == 3_000_000 == view.count()
    assert max(sizes) < 400_000 and len(sizes) > 5


def test_nothing_is_handed_out_of_a_refused_batch():
    db, view = make(SHAPES["join"])
    db.create_view("picky", "SELECT a, 1 / (a - 7) AS q FROM r")
    pieces = []
    with pytest.raises(ev.ChangeError, match="division by zero"):
        db.apply_stream(hot(10), lambda *piece: pieces.append(piece))
    assert pieces == [] and view.count() == 0 and db.version == 0


def test_one_view_streams_beside_others():
    db, _ = make(SHAPES["join"])
    for name in ("expression", "distinct"):
        db.create_view(name, SHAPES[name])
    twin, _ = make(SHAPES["join"])
    for name in ("expression", "distinct"):
        twin.create_view(name, SHAPES[name])
    found = {}
    db.apply_stream(hot(30), lambda view, piece: found.setdefault(view, []).append(piece))
    wanted = twin.apply(hot(30))
    assert {v: bag(pa.Table.from_batches(p)) for v, p in found.items()} == {v: bag(t) for v, t in wanted.items()}


def test_a_receiver_that_fails_does_not_undo_the_commit():
    db, view = make(SHAPES["join"])
    with pytest.raises(ZeroDivisionError) as raised:
        db.apply_stream(hot(10), lambda *_: 1 // 0)
    assert "committed" in raised.value.__notes__[0]
    assert (db.version, view.count()) == (1, 100)
    db.apply(hot(1, start=10))
    assert view.count() == 121


@pytest.mark.parametrize("shape", SHAPES)
def test_a_receiver_can_neither_change_nor_hang_the_session(shape):
    db, view = make(SHAPES[shape])
    raised = []

    def receive(*_):
        for use in (lambda: db.insert("r", [(1, 1)]), lambda: db.apply({})):
            with pytest.raises(ev.SessionError) as refused:
                use()
            raised.append(refused.value.code)
        try:
            view.count()
        except ev.SessionError as error:
            raised.append(error.code)

    db.apply_stream(hot(3), receive)
    assert set(raised) <= {"CHANGE_IN_CALLBACK", "READ_IN_STREAM"}
    assert view.count() == len(list(view))


def test_subscribers_hear_of_streams():
    db, view = make(SHAPES["join"])
    heard, pieces = [], []
    view.subscribe(heard.append)
    db.apply_stream(hot(10), lambda _, piece: pieces.append(piece))
    assert bag(heard[0]) == bag(pa.Table.from_batches(pieces))


@pytest.mark.parametrize("limit", [0, -1, 1.5, "1GB", True])
def test_a_limit_without_sense_is_refused(limit):
    with pytest.raises(ev.SessionError) as refused:
        ev.connect(delta_limit=limit)
    assert refused.value.code == "INVALID_ARGUMENT"
