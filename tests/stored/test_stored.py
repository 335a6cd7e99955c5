"""Stored state of every format so far is restored, and goes on."""

import json

import pytest
from states import CHANGES, HERE, LAST, LATER, new_engines, new_session, read_engines, results, values

import everview as ev

FORMATS = sorted(p.name for p in HERE.iterdir() if p.is_dir() and not p.name.startswith("_"))


def test_there_is_one():
    assert FORMATS


@pytest.mark.parametrize("name", FORMATS)
def test_a_session(name):
    restored = ev.restore(HERE / name / "session.everview")
    with restored, new_session() as fresh:
        expected = json.loads((HERE / name / "session.json").read_text())
        assert results(restored) == expected == results(fresh)
        for session in (restored, fresh):
            session.apply({table: values(rows) for table, rows in LATER.items()})
        assert results(restored) == results(fresh) != expected
        assert restored.version == fresh.version


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("name", FORMATS)
def test_engines(name, shards):
    restored, fresh = read_engines(HERE / name / f"engines-{shards}.zip", shards), new_engines(shards)
    restored.sum, restored.values = fresh.sum.copy(), dict(fresh.values)  # what had left before
    for watched in (restored, fresh):
        watched.changes = [rows.to_pylist() for rows in watched.step(LAST)]
    assert restored.changes and restored.changes == fresh.changes
    assert restored.run.sources and "new" not in restored.run.sources
    assert restored.run.rows_held() == fresh.run.rows_held()
    assert len(CHANGES) == 3
