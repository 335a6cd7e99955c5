"""Interrupts at every point and at random ones: a change is made, counted and told to callbacks, or it is not made at all.

The interpreter raises interrupts when a function is entered and after a native one has returned. `interrupted` raises one at each of
these points in turn; the random tests send real signals and exceptions.
"""

import ctypes
import random
import signal
import sys
import threading
import time
from collections import Counter
from functools import partial

import pytest

import everview as ev

# what comes while a generator is being freed is dropped by the interpreter
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


class Interrupt(BaseException):
    pass


def raise_at(point, count=None):
    """A profiler that raises at the n-th place where the interpreter could."""
    passed = 0

    def profile(frame, event, arg):
        nonlocal passed
        if event in ("call", "c_return"):
            passed += 1
            if count is not None:
                count[0] = passed
            if passed == point:
                raise Interrupt

    return profile


def points_of(action):
    count = [0]
    sys.setprofile(raise_at(-1, count))
    try:
        action()
    finally:
        sys.setprofile(None)
    return count[0]


def interrupt_at(point, action):
    """Whether the interrupt came."""
    sys.setprofile(raise_at(point))
    try:
        action()
    except Interrupt:
        return True
    finally:
        sys.setprofile(None)
    return False


def beside(action, seconds=30):
    """The result of an action in another thread: locks that an interrupt left behind would hang it."""
    result = []

    def run():
        result.append(action())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert result, "a lock was left behind, or the action failed"
    return result[0]


class World:
    """A session, what its callbacks got, and what it held when they were set."""

    def __init__(self, state):
        self.state = state
        self.db = db = ev.connect()
        db.execute(
            "CREATE TABLE k (id INT PRIMARY KEY, x INT); CREATE TABLE b (id INT, y INT); CREATE TABLE w (a INT) WITH (retain_rows = 3)"
        )
        db.create_view("j", "SELECT k.x, b.y FROM k JOIN b ON k.id = b.id")
        db.create_view("g", "SELECT y, COUNT(*) AS n FROM b GROUP BY y")
        db.create_view("last", "SELECT a FROM w")
        db.apply({"k": [(1, 10), (2, 20)], "b": [(1, 1), (1, 2), (2, 1)], "w": [(1,), (2,), (3,)]})
        self.got = {name: [] for name in db.views}
        self.first = {name: self.rows(view.to_arrow(multiplicity=True)) for name, view in db.views.items()}
        for name, view in db.views.items():
            view.subscribe(self.got[name].append)  # native: called as a whole or not at all

    @staticmethod
    def rows(table):
        counted = Counter()
        for row in table.to_pylist():
            counted[tuple(v for k, v in row.items() if k != "_multiplicity")] += row["_multiplicity"]
        return Counter({row: n for row, n in counted.items() if n})

    def told(self):
        """What the callbacks add up to: it must be the result, however the commits ended."""
        told = {}
        for name, deltas in self.got.items():
            total = Counter(self.first[name])
            for delta in deltas:
                for row, n in self.rows(delta).items():
                    total[row] += n
            told[name] = {row: n for row, n in total.items() if n}
        return told

    def look(self):
        return self.state(self.db)

    def results(self):
        return {name: dict(self.rows(self.db.view(name).to_arrow(multiplicity=True))) for name in self.got}


COMMITS = {
    "insert": lambda db: db.insert("b", [(1, 7), (2, 7)]),
    "insert dicts": lambda db: db.insert("b", [{"id": 1, "y": 7}]),
    "insert without deltas": lambda db: db.insert("b", [(1, 7)], deltas=False),
    "delete": lambda db: db.delete("b", [(1, 1)]),
    "delete keys": lambda db: db.delete("k", [(1,)]),
    "update": lambda db: db.update("k", [(1, 11)]),
    "upsert": lambda db: db.upsert("k", [(1, 11), (3, 30)]),
    "several tables": lambda db: db.apply({"k": [(3, 30)], "b": [(3, 3)], "w": [(4,), (5,)]}),
    "a window": lambda db: db.insert("w", [(9,)]),
    "a stream": lambda db: db.apply_stream({"b": [(1, 7), (2, 7)]}, lambda view, piece: None),
}


@pytest.mark.parametrize("name", COMMITS)
def test_a_commit_interrupted_anywhere(name, state):
    change = COMMITS[name]
    world = World(state)
    before = world.look()
    points = points_of(lambda: change(world.db))
    after = world.look()
    assert after != before and points > 10
    interrupted = committed = 0
    for point in range(1, points + 1):
        world = World(state)
        came = interrupt_at(point, lambda: change(world.db))
        interrupted += came
        found = beside(world.look)
        assert found == (after if world.db.version == 2 else before), point
        assert came or world.db.version == 2
        committed += came and world.db.version == 2
        assert world.told() == world.results(), point
        version = world.db.version
        world.db.apply({})  # in this thread: it is not taken for a callback
        assert world.db.version == version + 1
        if version == 1:
            beside(lambda: change(world.db) or True)
            assert {**world.look(), "version": 2} == after
        world.db.close()
    assert interrupted > 0.9 * points
    assert committed >= 1


REFUSED = {
    "absent row": lambda db: db.delete("b", [(9, 9)]),
    "wrong type": lambda db: db.insert("b", [("x", 1)]),
    "key twice": lambda db: db.insert("k", [(1, 1)]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_interrupted_anywhere(name, state):
    def change(db):
        with pytest.raises(ev.ChangeError):
            REFUSED[name](db)

    world = World(state)
    before = world.look()
    points = points_of(lambda: change(world.db))
    for point in range(1, points + 1):
        try:
            interrupt_at(point, lambda: REFUSED[name](world.db))
        except ev.ChangeError:
            pass
        assert beside(world.look) == before, point


def test_a_stream_interrupted_anywhere_from_within_the_kernel(state):
    """Joins that keep all columns hand their pieces out while the batch is applied."""

    def world():
        db = ev.connect()
        db.execute("CREATE TABLE k (id INT, x INT); CREATE TABLE b (id INT, y INT)")
        db.create_view("j", "SELECT k.id, k.x, b.y FROM k JOIN b ON k.id = b.id")
        db.insert("k", [(1, x) for x in range(1000)], deltas=False)
        return db

    pieces = []
    change = lambda db: db.apply_stream({"b": [(1, y) for y in range(400)]}, lambda view, piece: pieces.append(piece))
    db = world()
    points = points_of(lambda: change(db))
    assert len(pieces) > 1
    for point in range(1, points + 1):
        db = world()
        came = interrupt_at(point, lambda: change(db))
        assert beside(db.view("j").count) == (400_000 if db.version == 2 else 0), point
        assert came or db.version == 2
        db.apply({})  # in this thread: it is not taken for the stream's function
        db.view("j").count()
        db.close()


def test_callbacks_in_python_are_called_before_a_pending_interrupt_is_raised(state):
    """An interrupt that comes in native code waits until the callbacks have run to their end."""
    world = World(state)
    kinds = (ctypes.c_int, ctypes.c_ulong, ctypes.py_object, ctypes.py_object)
    send = ctypes.PYFUNCTYPE(*kinds)(("PyThreadState_SetAsyncExc", ctypes.pythonapi))  # ignores the delta
    ended = []
    world.db.view("g").subscribe(partial(send, threading.get_ident(), Interrupt))
    world.db.view("g").subscribe(lambda delta: ended.append(delta.num_rows))
    world.db.view("g").subscribe(lambda delta: ended.append(delta.num_rows))
    with pytest.raises(Interrupt) as raised:
        world.db.insert("b", [(1, 7)])
    assert "was committed" in raised.value.__notes__[0]
    assert (ended, world.db.version) == ([1, 1], 2)
    assert world.told() == world.results()


DEFINITIONS = {
    "create table": ("CREATE TABLE n (c STRING)", "CREATE TABLE IF NOT EXISTS n (c STRING)"),
    "create view": (
        "CREATE VIEW q AS SELECT 1 / y AS z FROM b",
        "CREATE VIEW IF NOT EXISTS q AS SELECT 1 / y AS z FROM b",
    ),
    "replace view": ("CREATE OR REPLACE VIEW g AS SELECT 1 / y AS z FROM b",) * 2,
    "drop view": ("DROP VIEW g", "DROP VIEW IF EXISTS g"),
    "drop table": ("DROP VIEW last; DROP TABLE w", "DROP VIEW IF EXISTS last; DROP TABLE IF EXISTS w"),
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_definition_interrupted_anywhere(name, state):
    first, again = DEFINITIONS[name]
    world = World(state)
    before = world.look()
    points = points_of(lambda: world.db.execute(first))
    after = world.look()
    step = max(1, points // 40)  # most of it is the parser; the end, where things change, is tried point by point
    for point in [*range(1, points - 60, step), *range(max(1, points - 60), points + 1)]:
        world = World(state)
        interrupt_at(point, lambda: world.db.execute(first))
        found = beside(world.look)
        if name != "drop table":  # two statements: there is a state between them
            assert found in (before, after), point
        beside(lambda: world.db.execute(again) or True)
        assert world.look() == after, point
        refuses = name in ("create view", "replace view")
        for kind in ("insert", "delete"):  # by a view that is there, and by none that is not
            try:
                getattr(world.db, kind)("b", [(5, 0)])
                assert not refuses
            except ev.ChangeError as error:
                assert refuses and error.code in ("DIVIDE_BY_ZERO", "ROW_NOT_FOUND")
        world.db.close()


READS = {
    "to_arrow": lambda db: db.view("j").to_arrow(),
    "count": lambda db: db.view("j").count(),
    "rows": lambda db: list(db.view("j")),
    "lookup": lambda db: db.view("g").lookup(y=1),
    "metrics": lambda db: db.view("j").metrics(),
    "table_rows": lambda db: db.table_rows("k"),
    "subscribe and cancel": lambda db: db.view("j").subscribe(print).cancel(),
}


@pytest.mark.parametrize("name", READS)
def test_a_read_interrupted_anywhere_holds_nobody_up(name, state):
    world = World(state)
    before = world.look()
    for point in range(1, points_of(lambda: READS[name](world.db)) + 1):
        interrupt_at(point, lambda: READS[name](world.db))
        assert beside(world.look) == before
    beside(lambda: world.db.insert("w", [(1,)]))


def test_a_save_interrupted_anywhere_leaves_the_old_file(state, tmp_path):
    world = World(state)
    world.db.save(tmp_path / "s")
    world.db.insert("b", [(1, 9)])
    after = world.look()
    seen = set()
    for point in range(1, points_of(lambda: world.db.save(tmp_path / "other")) + 1):
        interrupt_at(point, lambda: world.db.save(tmp_path / "s"))
        found = (tmp_path / "s").read_bytes()
        if found not in seen:
            with ev.restore(tmp_path / "s") as restored:
                assert restored.version in (1, 2)
        seen.add(found)
        assert beside(world.look) == after
    assert len(seen) == 2
    assert {path.name for path in tmp_path.iterdir()} <= {"s", "other"}


# ---- at random -------------------------------------------------------------------------------------------------------


def random_change(rng):
    rows = [(rng.randrange(5), rng.randrange(5)) for _ in range(rng.randrange(1, 200))]
    kind = rng.randrange(4)
    deltas = rng.random() < 0.7
    if kind == 0:
        return lambda db: db.upsert("k", rows, deltas=deltas)
    if kind == 1:
        return lambda db: db.insert("b", rows, deltas=deltas)
    if kind == 2:
        return lambda db: db.delete("b", rows[:5], deltas=deltas, on_missing="ignore")
    return lambda db: db.apply({"b": rows, "w": [(y,) for _, y in rows]}, deltas=deltas)


def run_random(state, seed, interrupting, wanted, most):
    """Random changes under random interrupts, until so many have come within a change."""
    rng = random.Random(seed)
    world, came, longest = World(state), 0, 0.001
    for step in range(most):
        if step % 30 == 29:
            check(world)
            world = World(state)
        change = random_change(rng)
        version, calls = world.db.version, sum(map(len, world.got.values()))
        raised = finished = False
        started = time.perf_counter()
        try:
            with interrupting(rng.random() * longest):
                change(world.db)
                finished = True
        except KeyboardInterrupt:
            raised = True
        longest = 0.9 * longest + 0.1 * 1.5 * (time.perf_counter() - started)
        committed = world.db.version - version
        assert committed in ((1,) if finished else (0, 1))
        assert committed or sum(map(len, world.got.values())) == calls
        came += raised and not finished
        assert world.told() == world.results()
        if came >= wanted:
            break
    assert came > 0
    check(world)


def check(world):
    """No lock is left behind, and the state is that of the rows."""
    assert beside(world.look)
    with ev.connect() as fresh:
        fresh.execute("CREATE TABLE k (id INT PRIMARY KEY, x INT); CREATE TABLE b (id INT, y INT)")
        fresh.apply({name: world.db.table_rows(name) for name in ("k", "b")})
        for name in ("j", "g"):
            view = fresh.create_view(name, world.db.view(name).sql)
            assert World.rows(view.to_arrow(multiplicity=True)) == world.results()[name]
    world.db.close()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
@pytest.mark.seeds(1)
def test_signals_at_random_points(state, seed):
    class Signal:
        def __init__(self, delay):
            self.delay = max(delay, 1e-6)

        def __enter__(self):
            signal.setitimer(signal.ITIMER_REAL, self.delay)

        def __exit__(self, *_):
            signal.setitimer(signal.ITIMER_REAL, 0)

    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        run_random(state, seed, Signal, wanted=150, most=2000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


@pytest.mark.seeds(1)
def test_exceptions_from_another_thread_at_random_points(state, seed):
    """As debuggers, notebooks and timeouts send them."""
    victim = threading.get_ident()

    class Sent:
        def __init__(self, delay):
            self.over = threading.Event()
            self.lock = threading.Lock()
            self.thread = threading.Thread(target=self.send, args=(delay,))

        def send(self, delay):
            if not self.over.wait(delay):
                with self.lock:
                    if not self.over.is_set():
                        ctypes.pythonapi.PyThreadState_SetAsyncExc(
                            ctypes.c_ulong(victim), ctypes.py_object(KeyboardInterrupt)
                        )

        def __enter__(self):
            self.thread.start()

        def __exit__(self, *_):
            with self.lock:
                self.over.set()
            self.thread.join()

    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        run_random(state, seed, Sent, wanted=100, most=1000)
    finally:
        sys.setswitchinterval(switching)
