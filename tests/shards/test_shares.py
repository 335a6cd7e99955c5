"""The grid: smallest load, each result on one shard, rows replicated as announced; the same layout everywhere."""

import os
import subprocess
import sys
from itertools import product
from math import prod
from random import Random

import pytest
from local_pipeline import batch_for
from watching import keyed_as

from everview.layout.layout import lay_out
from everview.layout.shares import choose_shares
from everview.query.expression import ColumnRef
from everview.schema.datatype import BIGINT, INT, STRING
from everview.schema.table import Column, Table
from everview.shards.pipeline import build_pipeline
from everview.shards.routing import FeedRouter, KeyRouter
from everview.lower import lower_query


def table(name, *columns, key=()):
    return Table(name, tuple(Column(c, BIGINT, c not in key) for c in columns), key)


TABLES = {t.name: t for t in (table("r", "a", "b"), table("s", "b", "c"), table("t", "c", "d"), table("w", "d", "a"))}
QUERIES = {
    "one table": "SELECT a, b FROM r",
    "one table, one column": "SELECT a FROM r",
    "no column": "SELECT COUNT(*) AS n FROM r",
    "no column of two": "SELECT COUNT(*) AS n FROM r CROSS JOIN s",
    "two tables": "SELECT r.a, s.c FROM r JOIN s ON r.b = s.b",
    "two variables": "SELECT r.a, s.c FROM r JOIN s ON r.b = s.b AND r.a = s.c",
    "path": "SELECT r.a, t.d FROM r, s, t WHERE r.b = s.b AND s.c = t.c",
    "longer path": "SELECT r.a, w.a AS z FROM r, s, t, w WHERE r.b = s.b AND s.c = t.c AND t.d = w.d",
    "star": "SELECT r.a FROM r, s, t WHERE r.b = s.b AND r.b = t.c",
    "almost a star": "SELECT r.a FROM r, s, t, w WHERE r.b = s.b AND r.b = t.c AND w.a = r.a",
    "cross": "SELECT r.a, s.c FROM r CROSS JOIN s",
    "join and cross": "SELECT r.a, s.c, t.d FROM r JOIN s ON r.b = s.b CROSS JOIN t",
    "self-join": "SELECT x.a, y.b FROM r x, r y WHERE x.b = y.a",
    "self-join on equal columns": "SELECT x.a, y.b FROM r x, r y WHERE x.a = y.a",
    "self-path": "SELECT x.a, z.b FROM r x, r y, r z WHERE x.b = y.a AND y.b = z.a",
}


def core(sql, tables=None):
    return lower_query("v", sql, tables or TABLES).stages[0].query


def shares_of(sql, shards, sizes=None, heaviest=None):
    found = choose_shares(core(sql), shards, sizes, heaviest)
    return {str(d): d.share for d in found.dimensions}, found


def by_hand(query, shards, sizes):
    """The smallest load of any assignment of shares to join variables and to atoms without one, and the least total at it."""
    alone = [a for a in query.atoms if not set(a.variables) & query.join_variables]
    dimensions = [*sorted(query.join_variables), *(a.name for a in alone)]
    best = (float("inf"), float("inf"))
    for vector in product(range(1, shards + 1), repeat=len(dimensions)):
        if prod(vector) > shards:
            continue
        share = dict(zip(dimensions, vector, strict=True))
        load = total = 0
        for atom in query.atoms:
            spread = prod(share[v] for v in {*atom.variables, atom.name} & share.keys())
            load += sizes.get(atom.table, 1000) / spread
            total += sizes.get(atom.table, 1000) * prod(vector) / spread
        best = min(best, (round(load, 9), total))
    return best


SIZES = [{}, {"r": 10**6}, {"s": 10**5, "t": 3}, {"r": 1, "s": 1, "t": 10**4, "w": 10**4}]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("name", QUERIES)
def test_no_grid_has_a_smaller_load(name, sizes):
    query = core(QUERIES[name])
    for shards in (1, 2, 3, 5, 6, 8, 12, 16):
        found = choose_shares(query, shards, sizes)
        load, total = by_hand(query, shards, sizes)
        assert found.shards <= shards
        assert (round(found.load, 9), found.total) == (load, pytest.approx(total))
        assert all(d.share > 1 for d in found.dimensions)


@pytest.mark.parametrize("shards", [2, 3, 7, 8, 12])
@pytest.mark.parametrize("name", ["two tables", "two variables", "star", "self-join on equal columns"])
def test_a_variable_of_every_atom_takes_all_shards(name, shards):
    dimensions, found = shares_of(QUERIES[name], shards)
    assert list(dimensions.values()) == [shards]
    assert set(found.replication.values()) == {1}
    assert found.load == pytest.approx(found.total / shards)


def test_a_variable_of_every_atom_that_is_in_the_head_is_preferred():
    """Results then tell their shard, and nothing is left to add up."""
    for head in ("b", "a"):
        dimensions, _ = shares_of(f"SELECT DISTINCT r.{head} FROM r JOIN s ON r.b = s.b AND r.a = s.c", 4)
        assert list(dimensions) == [head]


@pytest.mark.parametrize("head", ["b", "c"])
def test_of_grids_with_one_load_the_one_that_the_head_tells_is_chosen(head):
    dimensions, _ = shares_of(f"SELECT s.{head} FROM r, s, t WHERE r.b = s.b AND s.c = t.c", 2)
    assert dimensions == {head: 2}


def test_a_table_alone_is_spread_by_its_head():
    assert shares_of("SELECT a, COUNT(*) AS n FROM r GROUP BY a", 6)[0] == {"a": 6}
    assert shares_of("SELECT a, b FROM r", 6)[0] == {"a, b": 6}
    assert shares_of("SELECT COUNT(*) AS n FROM r", 6)[0] == {"whole rows": 6}


def test_large_tables_are_spread_and_small_ones_replicated():
    path = QUERIES["path"]
    first, found = shares_of(path, 8, {"r": 10**6})
    assert (first, found.replication) == ({"b": 8}, {"r": 1, "s": 1, "t": 8})
    last, found = shares_of(path, 8, {"t": 10**6})
    assert (last, found.replication) == ({"c": 8}, {"r": 8, "s": 1, "t": 1})
    both, found = shares_of(path, 8, {"r": 10**6, "t": 10**6, "s": 1})
    assert sorted(both.values()) == [2, 4]
    assert sorted(found.replication.values()) == [1, 2, 4]
    cross, found = shares_of(QUERIES["cross"], 9, {"r": 10**6, "s": 10**6})
    assert sorted(cross.values()) == [3, 3]
    assert shares_of(QUERIES["cross"], 9, {"r": 10**6, "s": 1})[1].replication == {"r": 1, "s": 9}


def test_a_heavy_value_turns_the_grid_the_other_way():
    path = QUERIES["path"]
    sizes = {"r": 1000, "s": 10**6, "t": 1000}
    even, skewed = shares_of(path, 8, sizes)[0], shares_of(path, 8, sizes, {("s", "b"): 0.9})[0]
    assert even != skewed
    assert skewed == {"c": 8}
    assert shares_of(path, 8, sizes, {("s", "c"): 0.9})[0] == {"b": 8}
    assert shares_of(path, 8, sizes, {("s", "b"): 0.01})[0] == even, "no heavier than a share of it"


def test_the_load_counts_the_heaviest_value_whole():
    found = shares_of(QUERIES["two tables"], 8, {"r": 1000, "s": 1000}, {("r", "b"): 0.5})[1]
    assert found.load == pytest.approx(1000 * 0.5 + 1000 / 8)


# ---- rows on shards --------------------------------------------------------------------------------------------------


def values_of(atom, row, columns):
    assert all(isinstance(e, ColumnRef) for _, e in atom.bindings)
    return {v: row[columns.index(e.name)] for v, e in atom.bindings}


@pytest.mark.parametrize("shards", [1, 2, 3, 4, 6, 7, 12])
@pytest.mark.parametrize("name", QUERIES)
def test_each_result_is_on_one_shard(name, shards):
    rng = Random(shards)
    layout = lay_out(lower_query("v", QUERIES[name], TABLES), TABLES, shards, sizes={"r": 100, "s": 100})
    pipeline = build_pipeline(layout, {})
    feeds = {s.table.name: s.feeds for s in pipeline.sources}
    section = {feed.name: n for n, feed in enumerate(layout.fragments[0].feeds)}
    query = layout.fragments[0].views[0].view.stages[0].query
    shares = layout.placement.stages[0].shares
    placed = {}  # per source: (row, {section: shards})
    for source, found in layout.sources.items():
        router = FeedRouter(feeds[found.name])
        rows = rng.sample(list(product(range(4), range(4))), 12 if len(query.atoms) < 4 else 8)
        placed[source] = []
        for row in rows:
            routed = list(router.route(batch_for(found, [(*row, 1)])))
            assert len({number for _, number, _ in routed}) == len(routed)
            placed[source].append((row, {number: [at for _, at in addresses] for addresses, number, _ in routed}))
        together = {}  # a batch goes where its rows go one by one
        for addresses, number, part in router.route(batch_for(found, [(*row, 1) for row in rows])):
            for _, at in addresses:
                together[number, at] = together.get((number, at), 0) + part.num_rows
        alone = {}
        for _, where in placed[source]:
            for number, destinations in where.items():
                for at in destinations:
                    alone[number, at] = alone.get((number, at), 0) + 1
        assert together == alone
    candidates = []
    for atom in query.atoms:
        origin = layout.fragments[0].feeds[section[atom.table]].origin
        columns = [c.name for c in layout.sources[origin].columns]
        candidates.append(
            [(values_of(atom, row, columns), set(where[section[atom.table]])) for row, where in placed[origin]]
        )
        for _, where in candidates[-1]:
            assert len(where) == shares.replication[atom.name]
            assert where <= set(range(shares.shards))
    results = 0
    for choice in product(*candidates):
        merged = {}
        if all(merged.setdefault(v, x) == x for values, _ in choice for v, x in values.items()):
            meeting = set.intersection(*(where for _, where in choice))
            assert len(meeting) == 1, f"{merged} is found on {meeting}"
            results += 1
    assert results > 0
    spread = {tuple(sorted(where)) for found in candidates for _, where in found}
    assert len(spread) > 1 or shares.shards == 1


def test_coordinates_count_through_the_grid():
    found = choose_shares(core(QUERIES["path"]), 6, {"r": 10**6, "t": 10**6, "s": 1})
    shares = [d.share for d in found.dimensions]
    assert sorted(shares) == [2, 3]
    assert [found.coordinates(n) for n in range(6)] == list(product(*(range(s) for s in shares)))


def test_rows_with_equal_keys_go_to_one_bucket_and_keep_their_order():
    rows = batch_for(TABLES["r"], [(i % 7, i, 1) for i in range(100)])
    found = list(KeyRouter([0], 5).route(rows))
    assert len(found) > 1
    owner = {}
    for at, part in found:
        assert part.column(1).to_pylist() == sorted(part.column(1).to_pylist())
        for key in part.column(0).to_pylist():
            assert owner.setdefault(key, at) == at
    assert sum(part.num_rows for _, part in found) == 100
    assert [(at, part.num_rows) for at, part in KeyRouter([], 5).route(rows)] == [(0, 100)]


# ---- layouts ---------------------------------------------------------------------------------------------------------

MIXED = "SELECT r.a, COUNT(*) AS n FROM r, s, t WHERE r.b = s.b AND s.c = t.c AND t.d > 1 GROUP BY r.a"
PROGRAM = """
from everview.layout.layout import lay_out
from everview.schema.datatype import BIGINT
from everview.schema.table import Column, Table
from everview.lower import lower_query
named = {{"r": "ab", "s": "bc", "t": "cd", "w": "da"}}
tables = {{n: Table(n, tuple(Column(c, BIGINT) for c in columns)) for n, columns in named.items()}}
print(lay_out(lower_query("v", {sql!r}, tables), tables, 6).fingerprint)
"""


def test_the_fingerprint_is_the_same_in_another_process():
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(sql=MIXED)],
        env=os.environ | {"PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == lay_out(lower_query("v", MIXED, TABLES), TABLES, 6).fingerprint


def test_the_fingerprint_tells_layouts_apart():
    def fingerprint(sql=MIXED, tables=TABLES, shards=6, **options):
        return lay_out(lower_query("v", sql, tables), tables, shards, **options).fingerprint

    wider = TABLES | {"t": table("t", "c", "d", "e")}
    typed = TABLES | {"t": Table("t", (Column("c", BIGINT), Column("d", INT)))}
    keyed = TABLES | {"t": Table("t", (Column("c", BIGINT, False), Column("d", BIGINT)), ("c",))}
    found = [
        fingerprint(),
        fingerprint(MIXED.replace("> 1", "> 2")),
        fingerprint(tables=wider),
        fingerprint(tables=typed),
        fingerprint(tables=keyed),
        fingerprint(shards=4),
        fingerprint(sizes={"t": 10**6}),
        fingerprint(checked=frozenset("t")),
    ]
    assert len(set(found)) == len(found)


def test_atoms_that_are_spread_alike_share_a_copy():
    def copies(sql):
        return [(f.origin, len(f.routes)) for f in lay_out(lower_query("v", sql, TABLES), TABLES, 4).feeds]

    assert copies(QUERIES["self-join on equal columns"]) == [("r", 1)]
    assert copies(QUERIES["self-join"]) == [("r", 1), ("r", 1)]


def test_only_what_a_view_reads_of_checked_tables_travels():
    tables = {"k": table("k", "id", "g", "x", "y", key=("id",)), "r": TABLES["r"]}
    sql = "SELECT k.g, COUNT(*) AS n FROM k JOIN r ON k.g = r.a WHERE k.x > 5 GROUP BY k.g"
    layout = lay_out(lower_query("v", sql, tables), tables, 2, checked=frozenset("k"))
    columns = {f.origin: [c.name for c in f.table.columns] for f in layout.feeds}
    assert columns == {"k": ["g", "x"], "r": ["a", "_rest"]}
    pipeline = build_pipeline(layout, {"k": keyed_as("images", tables["k"])})
    source = next(s for s in pipeline.sources if s.table.name == "k")
    rows = batch_for(tables["k"], [(1, 1, 5, 0, 1), (2, 1, 6, 0, 1), (3, 1, None, 0, 1), (4, 2, 7, 0, 1)])
    routed = [row for _, _, part in FeedRouter(source.feeds).route(rows) for row in part.to_pylist()]
    assert sorted(r["x"] for r in routed) == [6, 7]


def test_rows_that_differ_in_what_a_view_does_not_read_are_told_apart():
    tables = {"p": Table("p", (Column("a", BIGINT), Column("s", STRING)))}
    layout = lay_out(lower_query("v", "SELECT a FROM p", tables), tables, 1)
    rows = batch_for(tables["p"], [(1, "x", 1), (1, "y", 1), (1, "x", 1), (1, None, 1)])
    (source,) = build_pipeline(layout, {}).sources
    ((_, _, part),) = FeedRouter(source.feeds).route(rows)
    hashes = part.column("_rest").to_pylist()
    assert hashes[0] == hashes[2]
    assert len(set(hashes)) == 3
