"""Job files: what is read, and one clear error for everything that can be wrong, all without Spark."""

import re
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from everview.errors import EverviewError, PipelineError
from everview.spark.job import load_job

ROOT = Path(__file__).parents[3]

GOOD = """
name = "revenue"
master = "local[2]"
shards = 3
trigger = "5 seconds"
checkpoint = "checkpoints"
on_bad_rows = "quarantine"
dead_letters = "letters"

[spark]
"spark.driver.memory" = "2g"
spark.sql.adaptive.enabled = false

[tables.orders]
format = "json"
path = "data/orders"
schema = "id BIGINT NOT NULL, customer: INT, total DECIMAL(10, 2) COMMENT 'a, b', `order` STRING, tags ARRAY<STRUCT<a: INT, b: STRING>>"
options = { maxFilesPerTrigger = 1, multiLine = true }
primary_key = "id"

[tables.customers]
format = "kafka"
options = { subscribe = "customers", "kafka.bootstrap.servers" = "broker:9092" }
changes = "debezium"
row_schema = "id INT, name STRING"
primary_key = ["id"]
time_unit = "micros"

[views.revenue]
sql = "SELECT c.name, SUM(o.total) AS total FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.name;"

[views.revenue.sink]
kind = "parquet"
path = "out/revenue"
key = ["name"]
"""


@pytest.fixture
def load(tmp_path):
    def call(text, **files):
        for name, content in files.items():
            (tmp_path / name).write_text(content)
        (tmp_path / "job.toml").write_text(text)
        return load_job(tmp_path / "job.toml")

    return call


def test_a_job_is_read(load, tmp_path):
    job = load(GOOD)
    assert (job.name, job.master, job.shards, job.trigger) == ("revenue", "local[2]", 3, "5 seconds")
    assert job.spark == {"spark.driver.memory": "2g", "spark.sql.adaptive.enabled": "false"}
    assert job.primary_keys == {"orders": ("id",), "customers": ("id",)}
    orders, customers = job.tables["orders"], job.tables["customers"]
    assert orders.options == {"maxFilesPerTrigger": "1", "multiLine": "true"}
    assert orders.changes is None
    assert (customers.changes, customers.column, customers.time_unit) == ("debezium", "value", "micros")
    assert customers.options["kafka.bootstrap.servers"] == "broker:9092"
    view = job.views["revenue"]
    assert not view.sql.endswith(";")
    assert (view.sink.kind, view.sink.key, view.sink.buckets) == ("parquet", ("name",), 8)


def test_paths_are_relative_to_the_file(load, tmp_path):
    job = load(GOOD)
    assert job.tables["orders"].path == str(tmp_path / "data/orders")
    assert job.views["revenue"].sink.path == str(tmp_path / "out/revenue")
    assert job.checkpoint_of("revenue") == str(tmp_path / "checkpoints/revenue")
    assert job.dead_letters_of("revenue") == str(tmp_path / "letters/revenue")
    remote = load(GOOD.replace("data/orders", "s3://bucket/orders").replace('"checkpoints"', '"/var/cp"'))
    assert remote.tables["orders"].path == "s3://bucket/orders"
    assert remote.checkpoint == "/var/cp"


def test_defaults(load):
    job = load("""
        checkpoint = "cp"
        [tables.t]
        format = "parquet"
        path = "t"
        schema = "a INT"
        [views.v]
        sql = "SELECT a FROM t"
        sink.kind = "console"
    """)
    assert (job.name, job.master, job.shards, job.trigger, job.on_bad_rows) == ("job", None, 2, "available-now", "fail")
    assert job.dead_letters_of("v") is None
    assert job.views["v"].sink.key is None


def test_sql_in_a_file(load):
    text = re.sub(r"^sql = .*$", 'sql_file = "revenue.sql"', GOOD, flags=re.MULTILINE)
    sql = "SELECT name, COUNT(*) AS n FROM customers GROUP BY name"
    assert load(text, **{"revenue.sql": sql + "\n;\n"}).views["revenue"].sql == sql


def test_the_example_is_a_job():
    assert load_job(ROOT / "examples" / "files" / "job.toml").views["revenue"].sink.key == ("country",)


def test_every_key_of_the_format_is_documented():
    page = (ROOT / "docs" / "reference" / "jobs.md").read_text()
    from everview.spark import job

    for key in {
        *job._JOB,
        *job._TABLE,
        *job._VIEW,
        *(k for sink in job.JOB_SINKS.values() for k in ("kind", *sink.keys)),
    }:
        assert f"`{key}`" in page, key
    for block in re.findall(r"^```toml\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL):
        tomllib.loads(block)


def replaced(old, new):
    assert old in GOOD
    return GOOD.replace(old, new)


def without(line):
    text, count = re.subn(rf"^{re.escape(line)}.*\n", "", GOOD, flags=re.MULTILINE)
    assert count
    return text


WRONG = {
    "no TOML": ("a = = 1", "JOB_SYNTAX", "job.toml is not TOML"),
    "unknown key": ("chekpoint = 'x'\n" + GOOD, "JOB_UNKNOWN_KEY", "`chekpoint`", "did you mean `checkpoint`?"),
    "unknown key of a table": (
        replaced('primary_key = "id"', 'primary_keys = "id"'),
        "JOB_UNKNOWN_KEY",
        "`tables.orders.primary_keys`",
        "did you mean `primary_key`?",
    ),
    "unknown key of a view": (replaced("sql =", "query ="), "JOB_UNKNOWN_KEY", "`views.revenue.query`", "`sql`"),
    "key of another sink": (
        replaced('kind = "parquet"', 'kind = "delta"\nbuckets = 3'),
        "JOB_UNKNOWN_KEY",
        "`views.revenue.sink.buckets`",
    ),
    "no checkpoint": (without("checkpoint"), "JOB_MISSING_KEY", "`checkpoint` is missing"),
    "no tables": ("checkpoint = 'c'\nviews = {}", "JOB_MISSING_KEY", "`tables` is missing"),
    "no table": ("checkpoint = 'c'\nviews = {}\ntables = {}", "JOB_INVALID_VALUE", "`tables` is empty"),
    "no views": (GOOD.split("[views.")[0], "JOB_MISSING_KEY", "`views` is missing"),
    "no format": (without('format = "json"'), "JOB_MISSING_KEY", "`tables.orders.format`"),
    "no path": (without('path = "data/orders"'), "JOB_MISSING_KEY", "`tables.orders.path`"),
    "no schema": (without('schema = "id'), "JOB_MISSING_KEY", "`tables.orders.schema`"),
    "no SQL": (without("sql ="), "JOB_MISSING_KEY", "`views.revenue.sql`", "sql_file"),
    "no sink": (GOOD.split("[views.revenue.sink]")[0], "JOB_MISSING_KEY", "`views.revenue.sink`"),
    "no kind": (without("kind ="), "JOB_MISSING_KEY", "`views.revenue.sink.kind`"),
    "no path of a sink": (without('path = "out'), "JOB_MISSING_KEY", "`views.revenue.sink.path`"),
    "no DSN": (replaced('kind = "parquet"\npath', 'kind = "postgres"\ntable'), "JOB_MISSING_KEY", "sink.dsn`"),
    "no row schema": (without("row_schema"), "JOB_MISSING_KEY", "`tables.customers.row_schema`"),
    "no dead letters": (without("dead_letters"), "JOB_MISSING_KEY", "`dead_letters`"),
    "no key for upserts": (
        replaced('primary_key = "id"', 'changes = "upserts"'),
        "JOB_MISSING_KEY",
        "`tables.orders.primary_key`",
    ),
    "number as text": (
        replaced("shards = 3", 'shards = "3"'),
        "JOB_WRONG_TYPE",
        "`shards` is a text, not a whole number",
    ),
    "boolean as number": (replaced("shards = 3", "shards = true"), "JOB_WRONG_TYPE", "`shards` is true or false"),
    "text as number": (replaced('path = "data/orders"', "path = 3"), "JOB_WRONG_TYPE", "`tables.orders.path`"),
    "table as text": (
        replaced('[spark]\n"spark.driver.memory" = "2g"\nspark.sql.adaptive.enabled = false\n', "spark = 'a'\n"),
        "JOB_WRONG_TYPE",
        "`spark` is a text, not a table",
    ),
    "sink as text": (
        GOOD.replace("[views.revenue.sink]", "sink = 'parquet'\n[views.other]").replace("kind =", "sql ="),
        "JOB_WRONG_TYPE",
        "`views.revenue.sink` is a text, not a table",
    ),
    "list of numbers": (replaced('key = ["name"]', "key = [1]"), "JOB_WRONG_TYPE", "`views.revenue.sink.key`"),
    "list as option": (
        replaced("multiLine = true", "multiLine = [1]"),
        "JOB_WRONG_TYPE",
        "`tables.orders.options.multiLine` is list",
    ),
    "empty text": (replaced('"data/orders"', '" "'), "JOB_INVALID_VALUE", "`tables.orders.path` is empty"),
    "no shards": (replaced("shards = 3", "shards = 0"), "JOB_INVALID_VALUE", "`shards` is 0"),
    "trigger": (replaced("5 seconds", "often"), "JOB_INVALID_VALUE", "`trigger` is 'often'", '"5 seconds"'),
    "kind of sink": (
        replaced('"parquet"', '"parqet"'),
        "JOB_INVALID_VALUE",
        "`views.revenue.sink.kind` is 'parqet'",
        "did you mean `parquet`?",
    ),
    "kind of changes": (replaced('"debezium"', '"debesium"'), "JOB_INVALID_VALUE", "`tables.customers.changes`"),
    "time unit": (replaced('"micros"', '"seconds"'), "JOB_INVALID_VALUE", "`tables.customers.time_unit`"),
    "bad rows": (replaced('"quarantine"', '"ignore"'), "JOB_INVALID_VALUE", "`on_bad_rows`"),
    "dead letters for nothing": (replaced('"quarantine"', '"fail"'), "JOB_INVALID_VALUE", "`dead_letters`"),
    "sequence for nothing": (
        replaced('primary_key = "id"', 'primary_key = "id"\nsequence = "id"'),
        "JOB_INVALID_VALUE",
        "`tables.orders.sequence` has a meaning for upserts and debezium only",
    ),
    "key of no column": (
        replaced('primary_key = "id"', 'primary_key = "idd"'),
        "JOB_INVALID_VALUE",
        "`tables.orders.primary_key` names `idd`",
        "did you mean `id`?",
    ),
    "key twice": (replaced('key = ["name"]', 'key = ["name", "NAME"]'), "JOB_INVALID_VALUE", "sink.key`"),
    "sequence of no column": (
        replaced('primary_key = "id"', 'primary_key = "id"\nchanges = "upserts"\nsequence = "when"'),
        "JOB_INVALID_VALUE",
        "`tables.orders.sequence` names `when`",
    ),
    "changes without their column": (
        replaced('primary_key = "id"', 'changes = "changes"'),
        "JOB_INVALID_VALUE",
        "`tables.orders.changes`",
        "_change_type",
    ),
    "type": (
        replaced("customer: INT", "customer BIGNT"),
        "JOB_INVALID_VALUE",
        "`tables.orders.schema` gives the column `customer` the type 'BIGNT'",
        "did you mean `bigint`",
    ),
    "type of a source": (replaced("customer: INT", "customer VARCHAR(3)"), "JOB_INVALID_VALUE", "use STRING"),
    "bare type of a source": (replaced("customer: INT", "customer varchar"), "JOB_INVALID_VALUE", "use STRING"),
    "column without a type": (
        replaced("customer: INT", "customer"),
        "JOB_INVALID_VALUE",
        "'customer', which is not a column",
    ),
    "column twice": (replaced("customer: INT", "ID INT"), "JOB_INVALID_VALUE", "the column `ID` twice"),
    "sink's key of no column": (
        replaced('key = ["name"]', 'key = ["nam"]'),
        "JOB_INVALID_VALUE",
        "`views.revenue.sink.key` names `nam`",
        "did you mean `name`?",
    ),
    "sink's key that is not the view's": (
        replaced("SELECT c.name, SUM(o.total) AS total", "SELECT c.name, SUM(o.total) AS total, COUNT(*) AS n").replace(
            'key = ["name"]', 'key = ["total", "n"]'
        ),
        "JOB_INVALID_VALUE",
        "`views.revenue.sink.key` is total, n, which does not identify a row of the view",
        "the key of the view is name",
    ),
    "SQL twice": (replaced("sql =", "sql_file = 'a.sql'\nsql ="), "JOB_INVALID_VALUE", "`views.revenue.sql_file`"),
    "no SQL file": (
        re.sub(r"^sql = .*$", "sql_file = 'nope.sql'", GOOD, flags=re.MULTILINE),
        "JOB_INVALID_VALUE",
        "nope.sql, which cannot be read: No such file",
    ),
    "no setting": (replaced('"spark.driver.memory"', '"driver.memory"'), "JOB_INVALID_VALUE", '"spark.driver.memory"'),
    "master twice": (replaced('"spark.driver.memory"', '"spark.master"'), "JOB_INVALID_VALUE", "use the key `master`"),
    "name of a table": (replaced("[tables.orders]", '[tables."my orders"]'), "JOB_INVALID_VALUE", "`tables.my orders`"),
    "names that differ in case": (
        GOOD + "[tables.ORDERS]\nformat = 'text'\npath = 'x'\n",
        "JOB_INVALID_VALUE",
        "`tables.ORDERS` differs from `orders` in case only",
    ),
    "one target for two views": (
        GOOD
        + "[views.again]\nsql = 'SELECT id FROM customers'\nsink = { kind = 'parquet', path = 'out/../out/revenue' }",
        "JOB_INVALID_VALUE",
        "`views.again.sink.path` is the target of the view `revenue` too",
    ),
    "unknown column": (
        replaced("o.total)", "o.totl)"),
        "UNKNOWN_COLUMN",
        "job.toml: the SQL of `views.revenue`: ",
        "did you mean",
        "^^^^",
    ),
    "unknown table": (
        replaced("JOIN customers", "JOIN customer"),
        "UNKNOWN_TABLE",
        "job.toml: the SQL of `views.revenue`: ",
    ),
    "SQL that is none": (
        replaced("GROUP BY c.name;", "GROUP;"),
        "SYNTAX_ERROR",
        "job.toml: the SQL of `views.revenue`: ",
    ),
    "SQL that is not maintained": (
        replaced("JOIN customers", "RIGHT SEMI JOIN customers"),
        "OUTER_JOIN",
        "job.toml: the SQL of `views.revenue`: ",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_are_told_by_their_key(load, case):
    text, code, *told = WRONG[case]
    with pytest.raises(EverviewError) as caught:
        load(text)
    assert caught.value.code == code
    assert caught.value.hint or caught.value.span
    for part in told:
        assert part in str(caught.value)


def test_a_sinks_key_may_be_any_that_identifies_a_row(load):
    """More columns than needed, another key than the one that explain names, or, where no key is known, what the data may have."""
    orders = "FROM orders o JOIN customers c ON o.customer = c.id"
    for sql, key in (
        (f"SELECT c.name, SUM(o.total) AS total {orders} GROUP BY c.name", ["total", "name"]),
        (f"SELECT c.id, c.name, SUM(o.total) AS total {orders} GROUP BY c.id, c.name", ["id"]),
        (f"SELECT o.id, c.id AS customer, c.name {orders}", ["id"]),
        (f"SELECT o.id + 0 AS n, c.name {orders}", ["n"]),
        ("SELECT DISTINCT name FROM customers", ["name"]),
        ("SELECT COUNT(*) AS n, SUM(id) AS s FROM customers", ["s"]),
    ):
        text = re.sub(r"^sql = .*$", f'sql = "{sql}"', GOOD, flags=re.MULTILINE)
        assert load(text.replace('key = ["name"]', f"key = {key}")).views["revenue"].sink.key == tuple(key)
    for sql, key in (
        (f"SELECT c.id, c.name, SUM(o.total) AS total {orders} GROUP BY c.id, c.name", ["name"]),
        (f"SELECT o.id, c.id AS customer, c.name {orders}", ["customer"]),
        ("SELECT id, name FROM customers", ["name"]),
    ):
        text = re.sub(r"^sql = .*$", f'sql = "{sql}"', GOOD, flags=re.MULTILINE)
        with pytest.raises(PipelineError, match="does not identify a row of the view"):
            load(text.replace('key = ["name"]', f"key = {key}"))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(PipelineError, match=r"\[JOB_SYNTAX\].*nope.toml cannot be read: No such file"):
        load_job(tmp_path / "nope.toml")


def test_what_is_not_known_is_left_to_spark(load):
    unknown_schema = re.sub(r'^changes = "debezium"\nrow_schema.*\n', "", GOOD, flags=re.MULTILINE)
    unknown_schema = unknown_schema.replace('time_unit = "micros"', "")
    assert load(unknown_schema).tables["customers"].schema is None
    load(replaced("c.name, SUM", "o.tags, c.name, SUM"))
