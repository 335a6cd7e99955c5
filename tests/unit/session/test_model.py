"""Random requests against a model of tables as Python counters: the same results, the same refusals, the same deltas."""

import random
from collections import Counter

import pytest

import everview as ev


class Refused(Exception):
    pass


class Model:
    """A keyed table k(id, x) and a bag b(id, y)."""

    def __init__(self):
        self.k, self.b = Counter(), Counter()

    def apply(self, table, changes, *, ignore=False):
        rows = Counter(getattr(self, table))
        for row, n in changes.items():
            rows[row] += n
            if rows[row] < 0:
                if not ignore:
                    raise Refused("ROW_NOT_FOUND")
                rows[row] = 0
        rows = +rows
        if table == "k" and max(Counter(row[0] for row in rows.elements()).values(), default=0) > 1:
            raise Refused("DUPLICATE_KEY")
        setattr(self, table, rows)

    def by_key(self, key):
        return next((row for row in self.k if row[0] == key), None)

    def upsert(self, rows, *, must_exist):
        changes = Counter()
        for key, x in dict(rows).items():
            old = self.by_key(key)
            if old is None and must_exist:
                raise Refused("ROW_NOT_FOUND")
            if old is not None:
                changes[old] -= 1
            changes[key, x] += 1
        self.apply("k", changes)

    def delete_keys(self, keys, *, ignore):
        changes = Counter()
        for key in set(keys):
            old = self.by_key(key)
            if old is not None:
                changes[old] -= 1
            elif not ignore:
                raise Refused("ROW_NOT_FOUND")
        self.apply("k", changes)

    def views(self):
        joined = Counter()
        for (key, x), n in self.k.items():
            for (other, y), m in self.b.items():
                if key == other:
                    joined[x, y] += n * m
        counted = Counter()
        for (_, y), m in self.b.items():
            counted[y] += m
        distinct = {x for _, x in self.k if x is not None}
        return {"j": joined, "c": Counter(counted.items()), "d": Counter((x.upper(),) for x in distinct)}


def request(rng, db, model):
    """A random request: a function that asks it of the session and one that asks it of the model."""
    ignore = rng.random() < 0.3
    deltas = {"deltas": rng.random() < 0.7}
    missing = {"on_missing": "ignore"} if ignore else {}
    texts = ["a", "b", "c", None]
    keys = lambda: rng.randrange(6)
    kind = rng.choice(["k", "b", "both", "upsert", "update", "keys"])
    if kind in ("upsert", "update"):
        rows = [(keys(), rng.choice(texts)) for _ in range(rng.randint(1, 3))]
        return lambda: getattr(db, kind)("k", rows, **deltas), lambda: model.upsert(rows, must_exist=kind == "update")
    if kind == "keys":
        chosen = [keys() for _ in range(rng.randint(1, 3))]
        return lambda: db.delete("k", [(c,) for c in chosen], **missing, **deltas), lambda: model.delete_keys(
            chosen, ignore=ignore
        )
    batches = {}
    for table in ("k", "b") if kind == "both" else (kind,):
        rows = []
        for _ in range(rng.randint(0, 4)):
            held = list(getattr(model, table))
            row = (
                rng.choice(held)
                if held and rng.random() < 0.6
                else (keys(), rng.choice(texts) if table == "k" else rng.randrange(3))
            )
            rows.append((row, rng.choice([-1, 1]) if table == "k" else rng.choice([-2, -1, 1, 3])))
        batches[table] = rows

    def to_db():
        named = {"k": ("id", "x"), "b": ("id", "y")}
        return db.apply(
            {t: [dict(zip(named[t], row)) | {"_multiplicity": n} for row, n in rows] for t, rows in batches.items()},
            **missing,
            **deltas,
        )

    def to_model():
        saved = model.k, model.b
        try:
            for table, rows in batches.items():
                changes = Counter()
                for row, n in rows:
                    changes[row] += n
                model.apply(table, changes, ignore=ignore)
        except Refused:
            model.k, model.b = saved
            raise

    return to_db, to_model


def rows_of(table):
    """Rows with their multiplicity; each row once."""
    rows = [tuple(row.values()) for row in table.to_pylist()]
    found = {row[:-1]: row[-1] for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.seeds(30)
def test_random_requests(seed):
    rng = random.Random(seed)
    model = Model()
    with ev.connect() as db:
        db.execute("CREATE TABLE k (id INT PRIMARY KEY, x STRING); CREATE TABLE b (id INT, y INT)")
        db.create_view("j", "SELECT k.x, b.y FROM k JOIN b ON k.id = b.id")
        db.create_view("c", "SELECT y, COUNT(*) AS n FROM b GROUP BY y")
        db.create_view("d", "SELECT DISTINCT UPPER(x) AS u FROM k WHERE x IS NOT NULL")
        refused = 0
        for _ in range(150):
            to_db, to_model = request(rng, db, model)
            before = model.views()
            code = expected = None
            try:
                to_model()
            except Refused as refusal:
                expected = str(refusal)
            try:
                deltas = to_db()
            except ev.ChangeError as refusal:
                code, deltas = refusal.code, {}
            assert code == expected
            refused += code is not None
            after = model.views()
            for name, delta in deltas.items():
                assert all(delta["_multiplicity"].to_pylist())
                assert rows_of(delta) == {
                    row: n for row in before[name] | after[name] if (n := after[name][row] - before[name][row])
                }
            assert rows_of(db.table_rows("k")) == model.k
            assert rows_of(db.table_rows("b")) == model.b
            for name, result in after.items():
                assert rows_of(db.view(name).to_arrow(multiplicity=True)) == result, name
                assert db.view(name).count() == result.total()
        assert 10 < refused < 140
        db.delete("k", [(key,) for key in range(6)], on_missing="ignore")
        db.apply({"b": [{"id": r[0], "y": r[1], "_multiplicity": -n} for r, n in model.b.items()]})
        assert [view.metrics().state_rows for view in db.views.values()] == [0, 0, 0]
        assert db._state.kernel.texts_size()[0] == 0
