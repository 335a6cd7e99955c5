"""What a query says, as a hash: other texts of one query have the same, other queries have not."""

import pytest

from everview.lower import lower_query
from everview.schema.datatype import BIGINT, INT
from everview.schema.table import Column, Table

TABLES = {
    "r": Table("r", (Column("a", BIGINT), Column("b", BIGINT))),
    "s": Table("s", (Column("b", BIGINT), Column("c", BIGINT))),
}
SQL = "SELECT r.a, COUNT(*) AS n FROM r JOIN s ON r.b = s.b WHERE s.c > 1 GROUP BY r.a"


def meaning(sql, tables=TABLES):
    return lower_query("v", sql, tables).meaning


@pytest.mark.parametrize(
    "sql",
    [
        "select  X.A, count(*) n\nFROM R x /* the first */ JOIN s AS y ON x.b = y.b WHERE y.c > 1 GROUP BY x.a".replace(
            "X.A", "x.a"
        ),
        "SELECT `r`.`a`, COUNT(*) AS n FROM r JOIN s ON r.b = s.b WHERE s.c > 1 GROUP BY 1",
    ],
)
def test_other_texts_say_the_same(sql):
    assert meaning(sql) == meaning(SQL)


@pytest.mark.parametrize(
    "sql",
    [
        SQL.replace("> 1", "> 2"),
        SQL.replace("> 1", ">= 1"),
        SQL.replace("r.b = s.b", "r.a = s.b"),
        SQL.replace("COUNT(*)", "COUNT(s.c)"),
        SQL.replace("AS n", "AS m"),
        SQL.replace("JOIN", "LEFT JOIN"),
        SQL.replace("r.a", "r.b"),
        SQL + " HAVING COUNT(*) > 0",
        f"SELECT DISTINCT * FROM ({SQL})",
    ],
)
def test_other_queries_say_something_else(sql):
    assert meaning(sql) != meaning(SQL)


def test_only_what_is_read_of_a_table_counts():
    wider = TABLES | {"s": Table("s", (Column("x", INT), *TABLES["s"].columns, Column("y", INT)))}
    assert meaning(SQL, wider) == meaning(SQL)
    typed = TABLES | {"s": Table("s", (Column("b", BIGINT), Column("c", INT)))}
    assert meaning(SQL, typed) != meaning(SQL)
    assert meaning("SELECT * FROM s", wider) != meaning("SELECT * FROM s")


def test_rows_that_are_compared_are_read():
    for sql in ("SELECT DISTINCT b FROM s", "SELECT a FROM r WHERE a IN (SELECT b FROM s)"):
        assert meaning(sql) != meaning(sql.replace("b FROM s", "c FROM s"))
