"""Views and their tables: late ones, shared ones, global aggregates, names, dropping."""

import pytest

import everview as ev


@pytest.fixture
def graph(db):
    db.execute("CREATE TABLE g (src BIGINT, dst BIGINT)")
    return db


HOP = "SELECT a.src, b.dst FROM g a JOIN g b ON a.dst = b.src"


def test_a_late_view_is_built_from_the_rows(graph, bag):
    early = graph.create_view("early", HOP)
    graph.insert("g", [(1, 2), (2, 3), (2, 3), (3, 4)])
    late = graph.create_view("late", HOP)
    assert bag(late.to_arrow()) == bag(early.to_arrow())
    deltas = graph.insert("g", [(4, 5)])
    assert bag(deltas["late"]) == bag(deltas["early"]) == [(3, 5, 1)]
    deltas = graph.delete("g", [(2, 3)])
    assert bag(deltas["late"]) == bag(deltas["early"])
    assert late.metrics().state_rows == early.metrics().state_rows


def test_views_share_the_base_store(graph):
    graph.create_view("one", HOP)
    graph.insert("g", [(i, i + 1) for i in range(1000)])
    alone = graph.table_metrics("g").bytes
    for i in range(5):
        graph.create_view(f"other{i}", HOP)
    assert graph.table_metrics("g").bytes == alone


def test_initial_result_and_deltas_are_the_result(graph, bag):
    graph.insert("g", [(1, 2), (2, 3)])
    v = graph.create_view("v", "SELECT src, COUNT(*) AS n FROM g GROUP BY src")
    held = {tuple(r.values()): 1 for r in v.to_arrow().to_pylist()}
    for rows in ([(1, 5)], [(3, 3), (1, 1)]):
        for row in graph.insert("g", rows)["v"].to_pylist():
            key = (row["src"], row["n"])
            held[key] = held.get(key, 0) + row["_multiplicity"]
    assert sorted(k for k, n in held.items() if n) == bag(v.to_arrow())
    assert set(held.values()) <= {0, 1}


def test_a_global_aggregate_starts_with_one_row(graph, bag):
    v = graph.create_view("v", "SELECT COUNT(*) AS n, SUM(src) AS s, AVG(dst) AS a FROM g")
    assert bag(v.to_arrow()) == [(0, None, None)]
    assert v.count() == 1
    assert bag(graph.insert("g", [(1, 2)])["v"]) == [(0, None, None, -1), (1, 1, 2.0, 1)]
    assert bag(graph.delete("g", [(1, 2)])["v"]) == [(0, None, None, 1), (1, 1, 2.0, -1)]
    assert bag(v.to_arrow()) == [(0, None, None)]


def test_a_global_count_without_arguments_starts_with_one_row(graph, bag):
    v = graph.create_view("v", "SELECT COUNT(*) AS n FROM g a JOIN g b ON a.dst = b.src")
    assert bag(v.to_arrow()) == [(0,)]
    assert bag(graph.insert("g", [(1, 2), (2, 3)])["v"]) == [(0, -1), (1, 1)]
    assert bag(v.to_arrow()) == [(1,)]
    assert v.count() == 1


def test_names_are_found_whatever_their_case(graph):
    v = graph.create_view("Hop", HOP)
    assert graph.view("hOP") == v == graph.views["Hop"]
    assert (v.name, v.sql) == ("Hop", HOP)
    assert list(graph.insert("G", [(1, 2)])) == ["Hop"]
    assert list(graph.tables) == ["g"]


def test_unknown_views(graph):
    graph.create_view("v", HOP)
    with pytest.raises(ev.SchemaError, match="no view `w`") as refusal:
        graph.view("w")
    assert refusal.value.code == "UNKNOWN_VIEW"
    assert "v" in refusal.value.hint


@pytest.mark.parametrize("name", ["g", "v"])
def test_names_in_use_are_refused(graph, name):
    graph.create_view("v", HOP)
    with pytest.raises(ev.SchemaError, match="already") as refusal:
        graph.create_view(name, HOP)
    assert refusal.value.code == "NAME_IN_USE"
    with pytest.raises(ev.SchemaError, match="already"):
        graph.execute(f"CREATE TABLE {name} (a INT)")


def test_drop_table_in_use(graph):
    graph.create_view("one", HOP)
    graph.create_view("two", "SELECT src FROM g")
    with pytest.raises(ev.SchemaError, match="read by view `one`") as refusal:
        graph.execute("DROP TABLE g")
    assert refusal.value.code == "TABLE_IN_USE"
    assert "one, two" in refusal.value.hint
    graph.execute("DROP VIEW one")
    graph.view("two").drop()
    graph.execute("DROP TABLE g; DROP TABLE IF EXISTS g; DROP VIEW IF EXISTS one")
    assert graph.tables == {} == graph.views
    graph.execute("CREATE TABLE g (a STRING)")
    assert graph.create_view("one", "SELECT a FROM g").count() == 0


def test_definitions_by_sql(graph):
    graph.execute(
        f"CREATE MATERIALIZED VIEW a AS {HOP}; CREATE VIEW IF NOT EXISTS a AS SELECT src FROM g; CREATE TABLE IF NOT EXISTS g (z INT)"
    )
    assert graph.view("a").sql == HOP
    graph.execute("CREATE OR REPLACE VIEW a AS SELECT src FROM g")
    assert graph.view("a").schema.names == ["src"]
    assert graph.create_view("a", HOP, replace=True).schema.names == ["src", "dst"]


def test_a_replacement_that_is_refused_leaves_the_old_view(graph):
    old = graph.create_view("a", HOP)
    with pytest.raises(ev.EverviewError):
        graph.create_view("a", "SELECT nope FROM g", replace=True)
    graph.insert("g", [(1, 2), (2, 3)])
    assert old.count() == 1


def test_a_dropped_view_says_so(graph):
    v = graph.create_view("v", HOP)
    v.drop()
    v.drop()
    for call in (v.to_arrow, v.count, v.metrics, lambda: v.subscribe(print), lambda: v.lookup(src=1), lambda: iter(v)):
        with pytest.raises(ev.SessionError) as refusal:
            call()
        assert refusal.value.code == "VIEW_DROPPED"
    assert v.name == "v" and v.explain()


def test_a_dropped_view_does_not_drop_its_successor(graph):
    old = graph.create_view("v", HOP)
    old.drop()
    graph.create_view("v", HOP)
    old.drop()
    assert list(graph.views) == ["v"]


def test_dropping_frees_texts(db):
    db.execute("CREATE TABLE t (s STRING)")
    v = db.create_view("v", "SELECT UPPER(s) AS u FROM t")
    db.insert("t", [("abc",), ("def",)])
    v.drop()
    db.delete("t", [("abc",), ("def",)])
    assert db._state.kernel.texts_size()[0] == 0


def test_update_rates_name_tables(graph):
    with pytest.raises(ev.SchemaError, match="nope"):
        graph.create_view("v", HOP, update_rates={"nope": 1})
    graph.create_view("v", HOP, update_rates={"G": 5})


def test_explain_formats(graph):
    v = graph.create_view("v", HOP)
    for kind in ("text", "json", "dot", "svg", "html"):
        assert v.explain(format=kind)
    with pytest.raises(ev.EverviewError, match="no explain format"):
        v.explain(format="pdf")


@pytest.mark.parametrize("name", ["_multiplicity", "_Change_Type"])
def test_names_that_batches_use_are_reserved(graph, name):
    for call in (
        lambda: graph.execute(f"CREATE TABLE t ({name} INT)"),
        lambda: graph.create_view("v", f"SELECT src AS {name} FROM g"),
    ):
        with pytest.raises(ev.SchemaError, match=name) as refusal:
            call()
        assert refusal.value.code == "RESERVED_NAME"
    assert list(graph.tables) == ["g"] and graph.views == {}


def test_a_view_over_a_view_hears_of_a_batch_that_leaves_in_pieces(db, bag):
    db.execute("CREATE TABLE r (a INT, b INT)")
    db.create_view("inner_view", "SELECT DISTINCT a, b FROM r")
    view = db.create_view("outer_view", "SELECT b FROM inner_view")
    got = []
    for rows in ([(1, 2), (3, 4)], [(5, 6)]):
        db.apply_stream({"r": rows}, lambda name, piece: got.append((name, piece.num_rows)))
    assert bag(view.to_arrow()) == [(2,), (4,), (6,)]
    assert sum(n for name, n in got if name == "outer_view") == 3
    db.delete("r", [(1, 2)])
    assert bag(view.to_arrow()) == [(4,), (6,)]
