"""What leaves a view on Spark adds up, batch by batch, to what Spark SQL computes from the tables."""

from functools import partial

import pyarrow as pa
import pytest
from stream_changes import EMPTY, TEXT, fill, tables
from stream_runs import Scenario, net, side_by_side

from everview.errors import PipelineError
from everview.spark import maintain, read_metrics

SIZES = [20, 12, EMPTY, 15]
HOPS = "SELECT x.a, z.b AS far FROM edge x, edge y, edge z WHERE x.b = y.a AND y.b = z.a AND x.a < 4"
REVENUE = (
    "SELECT c.nation, YEAR(o.day) AS year, SUM(l.price * l.qty) AS revenue, AVG(l.price) AS mean, COUNT(*) AS n "
    "FROM customer c JOIN orders o ON c.ck = o.ck JOIN lineitem l ON o.ok = l.ok "
    "WHERE o.day >= DATE '2022-06-01' GROUP BY c.nation, YEAR(o.day)"
)
REACHED = (
    "SELECT y.b, COUNT(*) AS n, SUM(x.a) AS s FROM edge x JOIN edge y ON x.b = y.a GROUP BY y.b HAVING COUNT(*) > 2"
)

# name: (SQL, sizes of the batches, columns by which changes are paired)
VIEWS = {
    "distinct": ("SELECT DISTINCT x.a FROM edge x JOIN edge y ON x.b = y.a WHERE y.b > 1", SIZES, None),
    "totals": (
        "SELECT COUNT(*) AS n, SUM(x.a) AS s, AVG(y.b) AS m FROM edge x JOIN edge y ON x.b = y.a",
        [0, 12, EMPTY, 9],
        [],
    ),
    "bag": ("SELECT x.a FROM edge x JOIN edge y ON x.b = y.a", SIZES, None),
    "cross": ("SELECT c.name, e.b FROM customer c CROSS JOIN edge e", [6, 5, EMPTY, 4], None),
    "types": (
        "SELECT x.k, x.flag, y.small, x.money, y.double, x.at, y.day, y.t, x.tiny, y.bytes, y.local FROM thing x"
        " JOIN thing y ON x.k = y.k AND x.at = y.at",
        SIZES,
        None,
    ),
    "groups of every type": (
        "SELECT double, day, flag, COUNT(*) AS n, SUM(money) AS m, SUM(small) AS s FROM thing GROUP BY double, day, flag",
        [40, 30, EMPTY, 30],
        ["double", "day", "flag"],
    ),
    "groups of bytes and local times": (
        "SELECT bytes, local, SUM(tiny) AS s, AVG(tiny) AS a, COUNT(bytes) AS n FROM thing GROUP BY bytes, local",
        [40, 30, EMPTY, 30],
        ["bytes", "local"],
    ),
    "keyed": ("SELECT o.ok, o.day, c.name FROM orders o JOIN customer c ON o.ck = c.ck", [20, 20, EMPTY, 15], ["ok"]),
}


def scenario_of(spark, streaming, directory, sql, sizes, seed):
    names = [n for n in ("edge", "customer", "orders", "lineitem", "thing") if f" {n} " in f"{sql} "]
    given = Scenario(spark, streaming, directory, tables(*names))
    fill(given, sizes, seed=seed)
    return given


@pytest.fixture(scope="module")
def started(spark, streaming, tmp_path_factory):
    """Two views run at a time, as several queries of one application do."""
    directory = tmp_path_factory.mktemp("views")
    given = {
        name: scenario_of(spark, streaming, directory / str(seed), sql, sizes, seed)
        for seed, (name, (sql, sizes, _)) in enumerate(VIEWS.items())
    }
    runs = side_by_side({name: partial(given[name].start, VIEWS[name][0], shards=2) for name in VIEWS})
    yield {name: (given[name], run) for name, run in runs.items()}
    for run in runs.values():
        run.query.stop()


def check_pairs(run, key):
    """Each preimage stands before the postimage with its key; a key comes once or as such a pair. Returns the number of pairs."""
    positions = [run.columns.index(name) for name in key]
    pairs = 0
    for number in run.batches:
        seen, before = [], None
        for row, kind in run.changes(number):
            found = tuple(row[i] for i in positions)
            if kind == "update_postimage":
                assert before is not None and found == tuple(before[i] for i in positions) and row != before
                before = None
                pairs += 1
                continue
            assert before is None and kind in ("insert", "delete", "update_preimage")
            before = row if kind == "update_preimage" else None
            seen.append(found)
        assert before is None
        assert len(seen) == len(set(seen))
    return pairs


@pytest.mark.parametrize("name", VIEWS)
def test_view(started, name):
    sql, _, key = VIEWS[name]
    given, run = started[name]
    run.wait()
    given.check(run, sql)
    if key is None:
        assert {kind for n in run.batches for _, kind in run.changes(n)} == {"insert", "delete"}
    else:
        assert check_pairs(run, key) > 0


def test_the_totals_of_nothing_are_a_row(started):
    _, run = started["totals"]
    results = run.wait().results()
    assert results[0] == results[2] == {(0, None, None): 1}
    assert run.changes(0) == [((0, None, None), "insert")]
    assert [kind for _, kind in run.changes(2)] == ["update_preimage", "update_postimage"]


def over_shards(spark, streaming, directory, sql, seed, shards, sizes=SIZES):
    """The same changes over several numbers of shards, side by side: all give the same, and one is compared with Spark SQL."""
    given = scenario_of(spark, streaming, directory, sql, sizes, seed)
    runs = side_by_side({n: partial(given.start, sql, shards=n, checkpoint=n) for n in shards})
    for n, run in runs.items():
        assert run.wait().results() == runs[shards[0]].wait().results(), n
    given.check(runs[shards[-1]], sql, checkpoint=shards[-1])
    for run in runs.values():
        for number, rows in run.batches.items():
            assert set(rows.column("_commit_version").to_pylist()) <= {number}
            assert len(set(rows.column("_commit_timestamp").to_pylist())) <= 1
    return given, list(runs.values())


def test_hops_over_one_and_many_shards(spark, streaming, tmp_path):
    _, runs = over_shards(spark, streaming, tmp_path, HOPS, 1, shards=(1, 7))
    one, many = (read_metrics(run.progress[-1])["shard"]["engines"] for run in runs)
    assert one == 1 and 4 < many <= 7


def test_groups_of_a_self_join_over_shards(spark, streaming, tmp_path):
    _, runs = over_shards(spark, streaming, tmp_path, REACHED, 2, shards=(2, 4))
    assert [read_metrics(run.progress[-1])["shard"]["engines"] for run in runs] == [2, 4]
    assert all(check_pairs(run, ["b"]) > 0 for run in runs)


def test_revenue_over_shards(spark, streaming, tmp_path):
    """All three stages, and what they tell of themselves."""
    given, (run,) = over_shards(spark, streaming, tmp_path, REVENUE, 3, shards=(7,), sizes=[40, 30, EMPTY, 30])
    assert check_pairs(run, ["nation", "year"]) > 0
    held = [sum(map(len, content.values())) for content in given.contents]
    for at, progress in enumerate(run.progress):
        told = read_metrics(progress)
        assert set(told) == {"normalise", "shard", "merge"}
        for values in told.values():
            assert {"engines", "held", "rebuilt", "rows_in", "rows_out", "state_rows", "state_bytes"} <= set(values)
            assert {"bytes_written", "stale_rows", "bad_rows", "seconds", "skew"} <= set(values)
            assert values["bytes_written"] > 0 and 1 <= values["skew"] <= 7
            assert sum(v for k, v in values.items() if k.startswith("state_rows_")) == values["state_rows"]
            assert 4 < values["engines"] <= 7
            assert (values["held"], values["rebuilt"]) == ((values["engines"], 0) if at else (0, 0))
        assert 0 < told["normalise"]["rows_out"] <= told["normalise"]["rows_in"]
        assert told["merge"]["rows_out"] == len(run.changes(at))
    assert [read_metrics(p)["normalise"]["state_rows"] for p in run.progress] == held


# ---- batch DataFrames ----------------------------------------------------------------------------------------------


def test_batch_tables_are_one_commit(spark, streaming, tmp_path):
    given = scenario_of(spark, streaming, tmp_path, REVENUE, [20, 15], 4)
    changes = given.maintained(REVENUE, batch=True)
    assert not changes.isStreaming
    rows = changes.toArrow()
    assert set(rows.column("_change_type").to_pylist()) == {"insert"}
    assert set(rows.column("_commit_version").to_pylist()) == {0}
    assert net(rows, changes.columns[:5]) == given.recomputed(REVENUE)[1]
    expected = spark.sql(REVENUE).schema
    assert [(f.name, f.dataType) for f in changes.schema.fields[:5]] == [(f.name, f.dataType) for f in expected.fields]


def test_multiplicities(spark, streaming, tmp_path):
    sql = VIEWS["bag"][0]
    given = scenario_of(spark, streaming, tmp_path, sql, [20, 15], 5)
    changes = given.maintained(sql, batch=True, output="multiplicity")
    assert changes.columns == ["a", "_multiplicity", "_commit_version", "_commit_timestamp"]
    rows = changes.toArrow()
    assert max(rows.column("_multiplicity").to_pylist()) > 1
    assert len(set(rows.column("a").to_pylist())) == rows.num_rows
    assert net(rows, ["a"]) == given.recomputed(sql)[1]


def test_the_totals_of_empty_batch_tables_are_a_row(spark, streaming, tmp_path):
    given = Scenario(spark, streaming, tmp_path, tables("edge"))
    given.batch({})
    sql = "SELECT COUNT(*) AS n, SUM(a) AS s FROM edge"
    assert net(given.maintained(sql, batch=True).toArrow(), ["n", "s"]) == {(0, None): 1}


def test_the_totals_of_tables_without_partitions_are_a_row(streaming):
    nothing = streaming.createDataFrame([], "a LONG")
    changes = maintain(streaming, "SELECT COUNT(*) AS n, SUM(a) AS s FROM t", {"t": nothing})
    assert net(changes.toArrow(), ["n", "s"]) == {(0, None): 1}


def test_streams_and_batch_tables_do_not_mix(spark, streaming, tmp_path):
    given = Scenario(spark, streaming, tmp_path, tables("edge", "customer"))
    frames = {"edge": given.feeds["edge"].stream(streaming), "customer": given.feeds["customer"].stream(streaming)}
    frames["customer"] = streaming.createDataFrame(pa.table({"ck": [1], "name": ["x"]}))
    with pytest.raises(PipelineError, match="`edge` is a streaming DataFrame and `customer` is not") as caught:
        maintain(streaming, "SELECT e.a, c.name FROM edge e JOIN customer c ON e.a = c.ck", frames)
    assert caught.value.code == "MIXED_INPUTS" and "readStream" in str(caught.value)


def test_unknown_options_are_refused(streaming):
    frame = streaming.createDataFrame(pa.table({"a": pa.array([1]), "t": pa.array(["x"], TEXT)}))
    for options, message in [
        ({"output": "rows"}, "output is 'rows'"),
        ({"shards": 0}, "shards is 0"),
        ({"on_bad_rows": "ignore"}, "on_bad_rows is 'ignore'"),
        ({"on_bad_rows": "quarantine"}, "needs a place"),
        ({"primary_keys": {"u": "a"}}, "`u`, which is no table"),
        ({"table_sizes": {"u": 5}}, "`u`, which is no table"),
        ({"primary_keys": {"t": "b"}}, "no column `b`"),
    ]:
        with pytest.raises(ValueError, match=message):
            maintain(streaming, "SELECT a FROM t", {"t": frame}, **options)
    with pytest.raises(PipelineError, match="table `t` is list"):
        maintain(streaming, "SELECT a FROM t", {"t": [1]})
