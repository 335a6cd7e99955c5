"""The PostgreSQL table: transactions, its record, existing tables and values it cannot hold."""

import os
import shutil

import pyarrow as pa
import pytest
from postgres_server import home_of, may_enter, programs_for
from sink_changes import simple
from sink_targets import PostgresTarget, counted

import everview as ev
from everview.errors import SinkError


def recorded(table):
    return {row[1]: row[2] for row in table.run("SELECT * FROM everview_commits") if row[0] == table.name}


def test_the_record_is_part_of_the_batch(spark, table):
    sink = table.sink(app_id="me")
    sink(simple(spark, (1, "a", 1)), 0)
    assert recorded(table) == {"me": 0}
    with pytest.raises(SinkError):
        sink(simple(spark, (2, "b", -1)), 1)
    assert recorded(table) == {"me": 0}
    sink(simple(spark), 1)
    assert recorded(table) == {"me": 1}


def test_types(spark, table):
    table.sink()(
        spark.sql(
            "SELECT true AS a, 1S AS b, 1 AS c, 1L AS d, 1F AS e, 1D AS f, 1.50BD AS g, 'x' AS h, DATE'2024-01-01' AS i,"
            " TIMESTAMP'2024-01-01 00:00:00' AS j, TIMESTAMP_NTZ'2024-01-01 00:00:00' AS k, 1Y AS l, X'FF' AS m, 1L AS _multiplicity"
        ),
        0,
    )
    query = "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute a JOIN pg_class c ON attrelid = c.oid WHERE attnum > 0"
    found = [t for _, t in table.run(f"{query} AND relname = '{table.name}' ORDER BY attnum")]
    assert found == [
        "boolean",
        "smallint",
        "integer",
        "bigint",
        "real",
        "double precision",
        "numeric(3,2)",
        "text",
        "date",
        "timestamp with time zone",
        "timestamp without time zone",
        "smallint",
        "bytea",
    ]


def test_a_table_made_beforehand(spark, table):
    table.run("CREATE TABLE {} (id serial PRIMARY KEY, v text, k integer NOT NULL)")
    sink = table.sink(key="k")
    sink(simple(spark, (1, "a", 1), (2, "b", 1)), 0)
    sink(simple(spark, (1, "a", -1), (1, "c", 1), (2, "b", -1)), 1)
    assert table.content() == counted([(1, "c", 1)])  # an update: the row is still the first


def test_an_update_keeps_the_row(spark, table):
    """Triggers and foreign keys see an update, not a delete."""
    table.run("CREATE TABLE {} (k integer, v text, note text DEFAULT 'mine')")
    table.sink(key="k")(simple(spark, (None, "a", 1)), 0)
    table.run("UPDATE {} SET note = 'yours'")
    table.sink(key="k")(simple(spark, (None, "a", -1), (None, None, 1)), 1)
    assert table.content() == counted([(None, None, "yours")])


def test_a_table_of_another_schema(spark, postgres):
    table = PostgresTarget(postgres, 'wei"rd %s table')
    table.run("CREATE SCHEMA {}", "sch%s-ema")
    table.sink(schema="sch%s-ema", key="k")(simple(spark, (1, "a", 1)), 0)
    assert table.run("SELECT * FROM {}.{}", "sch%s-ema", table.name) == [(1, "a")]
    assert table.run("SELECT count(*) FROM {}.everview_commits", "sch%s-ema") == [(1,)]


def test_partitions(spark, table):
    """The place of a row is unique within its partition only."""
    table.run("CREATE TABLE {} (k integer, v text) PARTITION BY LIST (k)")
    for k in (1, 2):
        table.run(f"CREATE TABLE {{}} PARTITION OF {{}} FOR VALUES IN ({k})", f"{table.name}_{k}", table.name)
    table.sink()(simple(spark, (1, "a", 3), (2, "a", 3)), 0)
    table.sink()(simple(spark, (1, "a", -2), (2, "a", -1)), 1)
    assert table.content() == counted([(1, "a"), (2, "a"), (2, "a")])


def test_a_dropped_table_is_noticed(spark, table):
    table.sink()(simple(spark, (1, "a", 1)), 0)
    table.run("DROP TABLE {}")
    with pytest.raises(SinkError, match="SINK_DAMAGED"):
        table.sink()(simple(spark, (2, "b", 1)), 1)


def test_values_it_cannot_hold(spark, table):
    table.sink()(simple(spark, (1, "a", 1)), 0)
    with pytest.raises(SinkError, match="SINK_VALUE"):
        table.sink()(simple(spark, (2, "nul \0 character", 1)), 1)
    assert table.content() == counted([(1, "a")])


def test_names_it_cannot_hold(spark, postgres, table):
    for wrong in ("", "x" * 64, "nul\0"):
        with pytest.raises(ev.SchemaError, match="INVALID_ARGUMENT"):
            PostgresTarget(postgres, wrong).sink()
    with pytest.raises(ev.SchemaError, match="INVALID_ARGUMENT"):
        table.sink()(simple(spark, (1, 1), types={"ä" * 32: pa.int32()}), 0)


def test_keys_go_through_the_index(spark, table):
    table.sink(key=["k"])(simple(spark, *((k, "a", 1) for k in range(5000)), (None, "n", 1)), 0)
    table.run("ANALYZE {}")
    table.sink(key=["k"])(simple(spark, (7, "a", -1), (8, "a", -1), (8, "b", 1), (None, "n", -1)), 1)
    # the statistics of a session reach the view when it ends, or when asked for
    table.run("SELECT pg_stat_force_next_flush()", "x")
    rows = table.run(f"SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = '{table.name}'")
    assert rows[0][0] <= 1, "a scan of the whole table"
    assert sum(table.content().values()) == 4999


def test_a_server_is_started_from_where_its_user_may_enter(tmp_path):
    """A clone below a private directory: programs are copied to the server's own directory, which is where its user may enter."""
    if os.geteuid() != 0:
        pytest.skip("only root runs the server as somebody else")
    private = tmp_path / "private"
    installed = private / "pginstall"
    (installed / "bin").mkdir(parents=True)
    (installed / "bin" / "initdb").write_text("#!/bin/sh\nexit 0\n")
    (installed / "bin" / "initdb").chmod(0o755)
    private.chmod(0o700)
    assert not may_enter("nobody", installed / "bin" / "initdb")
    assert home_of("nobody", [private]) is None
    home = home_of("nobody", [private, "/tmp"])
    try:
        assert may_enter("nobody", programs_for("nobody", installed, home) / "initdb")
        assert programs_for(None, installed, home) == installed / "bin"
    finally:
        shutil.rmtree(home)
