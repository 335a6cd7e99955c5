"""Subscriptions: called after the commit, unable to change the session, unable to lose a commit."""

import logging

import pytest

import everview as ev


@pytest.fixture
def view(db):
    db.execute("CREATE TABLE t (a INT); CREATE TABLE other (a INT)")
    db.create_view("w", "SELECT a FROM other")
    return db.create_view("v", "SELECT a FROM t")


def test_a_callback_gets_every_delta(db, view, bag):
    seen = []
    view.subscribe(lambda delta: seen.append(bag(delta)))
    db.insert("t", [(1,)])
    db.insert("other", [(9,)])
    db.insert("t", [])
    db.apply({"t": [{"a": 1, "_multiplicity": -1}, {"a": 2, "_multiplicity": 2}]})
    assert seen == [[(1, 1)], [(1, -1), (2, 2)]]


def test_a_callback_gets_deltas_that_the_caller_did_not_ask_for(db, view, bag):
    seen = []
    view.subscribe(lambda delta: seen.append(bag(delta)))
    assert db.insert("t", [(1,)], deltas=False) == {}
    assert seen == [[(1, 1)]]


def test_a_callback_sees_the_state_after_the_commit(db, view):
    seen = []
    view.subscribe(lambda _: seen.append((db.version, view.count(), len(list(view)))))
    db.insert("t", [(1,), (2,)])
    assert seen == [(1, 2, 2)]


CHANGES = {
    "insert": lambda db, v: db.insert("t", [(5,)]),
    "apply": lambda db, v: db.apply({}),
    "execute": lambda db, v: db.execute("CREATE TABLE u (a INT)"),
    "create_view": lambda db, v: db.create_view("x", "SELECT a FROM t"),
    "drop": lambda db, v: v.drop(),
    "close": lambda db, v: db.close(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changing_the_session_from_a_callback_is_refused(db, view, bag, change):
    refusals = []

    def callback(_):
        try:
            CHANGES[change](db, view)
        except ev.SessionError as error:
            refusals.append(error.code)

    view.subscribe(callback)
    db.insert("t", [(1,)])
    assert refusals == ["CHANGE_IN_CALLBACK"]
    assert bag(view.to_arrow()) == [(1,)]
    db.insert("other", [(1,)])  # the lock is free again


def test_a_failing_callback_does_not_lose_the_commit(db, view, bag, caplog):
    calls = []

    def fail(delta):
        calls.append("fail")
        raise ZeroDivisionError("mine")

    view.subscribe(fail)
    view.subscribe(lambda delta: calls.append("next"))
    with caplog.at_level(logging.ERROR, "everview"), pytest.raises(ev.CallbackError, match="the commit stands"):
        db.insert("t", [(1,)])
    assert "callback of view v" in caplog.text
    assert calls == ["fail", "next"]
    assert (db.version, bag(view.to_arrow())) == (1, [(1,)])


def test_the_errors_of_all_callbacks_surface_and_the_deltas_are_kept(db, view, bag):
    def fail(error):
        def callback(delta):
            raise error

        return callback

    view.subscribe(fail(ZeroDivisionError("first")))
    view.subscribe(fail(KeyError("second")))
    db.view("w").subscribe(fail(ValueError("third")))
    with pytest.raises(ev.CallbackError) as raised:
        db.apply({"t": [(1,)], "other": [(2,)]})
    error = raised.value
    assert (error.code, [type(e) for e in error.exceptions]) == (
        "CALLBACK_FAILED",
        [ValueError, ZeroDivisionError, KeyError],
    )
    assert [e.__notes__ for e in error.exceptions][0] == ["raised by a callback of view `w`"]
    assert {name: bag(delta) for name, delta in error.deltas.items()} == {"v": [(1, 1)], "w": [(2, 1)]}
    assert isinstance(error, ev.EverviewError) and error.hint in str(error)
    with pytest.raises(ev.CallbackError) as raised:
        db.insert("t", [(5,)], deltas=False)
    assert raised.value.deltas == {}


def test_errors_of_callbacks_can_be_taken_apart(db, view):
    def fail(delta):
        raise ZeroDivisionError("mine")

    view.subscribe(fail)
    try:
        db.insert("t", [(1,)])
    except* ZeroDivisionError as group:
        assert isinstance(group, ev.CallbackError)
        assert group.deltas["v"].num_rows == 1
    matched, rest = (raised := _error_of(db)).split(KeyError)
    assert matched is None and rest.deltas == raised.deltas


def _error_of(db):
    try:
        db.insert("t", [(2,)])
    except ev.CallbackError as error:
        return error


@pytest.mark.parametrize("callback", [5, None, "print"])
def test_what_cannot_be_called_is_refused(db, view, callback):
    with pytest.raises(ev.AccessPatternError, match="`v`") as refusal:
        view.subscribe(callback)
    assert refusal.value.code == "INVALID_ARGUMENT"
    db.insert("t", [(1,)])


def test_an_exit_in_a_callback_is_raised_after_the_others(db, view):
    seen = []
    view.subscribe(lambda delta: (_ for _ in ()).throw(SystemExit(3)))
    view.subscribe(seen.append)
    with pytest.raises(SystemExit) as raised:
        db.insert("t", [(1,)])
    assert raised.value.code == 3
    assert len(seen) == db.version == 1
    db.insert("other", [(1,)])  # the lock is free, and it is no longer a callback that asks


def test_a_refused_batch_calls_nobody(db, view):
    view.subscribe(lambda _: pytest.fail("called"))
    with pytest.raises(ev.ChangeError):
        db.delete("t", [(1,)])


def test_cancel(db, view):
    seen = []
    subscription = view.subscribe(seen.append)
    db.insert("t", [(1,)])
    subscription.cancel()
    subscription.cancel()
    db.insert("t", [(1,)])
    assert len(seen) == 1


def test_cancel_from_a_callback_before(db, view):
    seen = []
    view.subscribe(lambda _: second.cancel())
    second = view.subscribe(seen.append)
    db.insert("t", [(1,)])
    assert seen == []


def test_subscriptions_end_with_the_view(db, view):
    seen = []
    subscription = view.subscribe(seen.append)
    view.drop()
    db.insert("t", [(1,)])
    subscription.cancel()
    assert seen == []
