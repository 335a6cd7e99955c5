"""Public queries as they are written, and random rows on which they give results.

The texts of TPC-H, SSB and TPC-DS are among the test resources of Spark, which Maven fetches into a cache; no copy of them is part of this
project. Rows are made of the constants that the queries compare columns with, so that results are not empty, and of few other values.
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import sqlglot
from sqlglot import exp

from everview.schema.arrow import arrow_schema
from everview.schema.datatype import DataType, Kind
from everview.sql import parse_statements
from everview.sql.statement import CreateTable

if TYPE_CHECKING:
    from random import Random

    from everview.schema.table import Table

ARTIFACT = "org.apache.spark:spark-sql_2.13:4.0.0:jar:tests"
CACHE = Path(tempfile.gettempdir()) / "everview-corpora"
_KEYS = re.compile(r"(key|_sk|_id|number|linenumber)$")


@dataclass(frozen=True, slots=True)
class Corpus:
    """Tables, and queries over them by name."""

    ddl: tuple[str, ...]
    queries: Mapping[str, str]


def missing() -> str | None:
    """Why the texts cannot be had; None if they are in the cache, where this puts them."""
    if (CACHE / "tpch").exists():
        return None
    if shutil.which("mvn") is None:
        return "the texts of public queries are fetched by Maven, and there is no `mvn` on the PATH"
    command = ["mvn", "-q", "dependency:get", f"-Dartifact={ARTIFACT}", "-Dtransitive=false"]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        return "Maven cannot fetch the test resources of Spark"
    jar = next((Path.home() / ".m2" / "repository" / "org/apache/spark/spark-sql_2.13/4.0.0").glob("*-tests.jar"))
    with zipfile.ZipFile(jar) as archive:
        wanted = ("tpch/", "tpcds/", "ssb/", "sql-tests/inputs/")
        names = [n for n in archive.namelist() if n.startswith(wanted) or n.endswith("/TPCDSSchema.class")]
        archive.extractall(CACHE, names)
    return None


def tpch() -> Corpus:
    """The 22 queries of TPC-H."""
    return Corpus(tuple(f"CREATE TABLE {name} ({columns})" for name, columns in _TPCH.items()), _queries("tpch"))


def ssb() -> Corpus:
    """The 13 queries of the star schema benchmark."""
    return Corpus(tuple(f"CREATE TABLE `{name}` ({columns})" for name, columns in _SSB.items()), _queries("ssb"))


def tpcds() -> Corpus:
    """The queries of TPC-DS; the tables are those of Spark's tests, which are found in a class file."""
    found = list(_constants(CACHE / "org/apache/spark/sql/TPCDSSchema.class"))
    ddl = []
    for at, text in enumerate(found):
        if "|`" in text:
            columns = ", ".join(line.strip().lstrip("|") for line in text.splitlines() if line.strip().lstrip("|"))
            name = [t for t in found[:at] if re.fullmatch(r"[a-z_]{4,30}", t)][-1]
            ddl.append(f"CREATE TABLE {name} ({columns.rstrip(', ')})")
    return Corpus(tuple(ddl), _queries("tpcds"))


def _queries(folder: str) -> dict[str, str]:
    texts = {path.stem: path.read_text(encoding="utf-8") for path in (CACHE / folder).glob("*.sql")}
    order = sorted(texts, key=lambda name: [int(x) if x.isdigit() else x for x in re.findall(r"\d+|\D+", name)])
    return {name: re.sub(r"--[^\n]*", "", texts[name]).strip().rstrip(";") for name in order}


def _constants(path: Path) -> Iterator[str]:
    """The texts in the pool of constants of a Java class."""
    content = path.read_bytes()
    count, at, number = struct.unpack(">H", content[8:10])[0], 10, 1
    sizes = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4}
    while number < count:
        tag, at = content[at], at + 1
        if tag == 1:
            length = struct.unpack(">H", content[at : at + 2])[0]
            yield content[at + 2 : at + 2 + length].decode("utf8", "replace")
            at += 2 + length
        else:
            at += sizes[tag]
        number += 2 if tag in (5, 6) else 1


def tables_of(corpus: Corpus) -> dict[str, Table]:
    """The tables of a corpus, by name."""
    statements = parse_statements(";\n".join(corpus.ddl))
    return {s.table.name: s.table for s in statements if isinstance(s, CreateTable)}


class Rows:
    """Random rows for the tables of one query."""

    def __init__(self, query: str, tables: Mapping[str, Table], random: Random) -> None:
        self._random = random
        self._tables = tables
        self._compared = _compared(query)
        self._most_key = random.choice((4, 7, 20))
        named = {t.name.lower() for t in sqlglot.parse_one(query, dialect="spark").find_all(exp.Table)}
        self.tables = {name: table for name, table in tables.items() if name.lower() in named}
        self._held: dict[str, list[tuple[Any, ...]]] = {name: [] for name in self.tables}

    def batch(self, most: int, *, deletes: float = 0.3) -> dict[str, pa.Table]:
        """Changes of every table: rows that come, and some that are there and go."""
        found = {}
        for name, table in self.tables.items():
            held = self._held[name]
            changes = []
            for _ in range(self._random.randint(most // 2, most)):
                if held and self._random.random() < deletes:
                    changes.append((held.pop(self._random.randrange(len(held))), -1))
                else:
                    row = tuple(self._value(c.name.lower(), c.type, nullable=c.nullable) for c in table.columns)
                    held.append(row)
                    changes.append((row, 1))
            schema = arrow_schema(table)
            arrays = [pa.array([row[i] for row, _ in changes], schema.field(i).type) for i in range(len(table.columns))]
            counts = pa.array([count for _, count in changes], pa.int64())
            found[name] = pa.table([*arrays, counts], names=[*schema.names, "_multiplicity"])
        return found

    def _value(self, name: str, data_type: DataType, *, nullable: bool) -> Any:
        random = self._random
        if nullable and random.random() < 0.03:
            return None
        known = self._compared.get(name, [])
        if known and random.random() < 0.75:
            value = _as(random.choice(known), data_type, random)
            if value is not None:
                return value
        if data_type.is_integer:
            return random.randint(1, self._most_key if _KEYS.search(name) else 40)
        if data_type.kind is Kind.DECIMAL:
            digits = random.randint(1, min(data_type.precision - data_type.scale, 3))
            return Decimal(random.randint(1, 10**digits)).quantize(Decimal(1).scaleb(-data_type.scale))
        if data_type.is_floating:
            return float(random.randint(0, 400)) / 4
        if data_type.kind is Kind.DATE:
            return date(1992, 1, 1) + timedelta(days=random.randint(0, 4000))
        return random.choice(("a", "b", "Customer Complaints", "green forest"))


def _compared(query: str) -> dict[str, list[Any]]:
    """The constants that columns are compared with, by the column's name; a pattern gives a text that it matches."""
    found: dict[str, list[Any]] = {}
    for node in sqlglot.parse_one(query, dialect="spark").walk():
        if isinstance(node, exp.Predicate | exp.Between | exp.In | exp.Binary):
            columns = {c.name.lower() for c in node.this.find_all(exp.Column)} if node.this is not None else set()
            others = [part for key, part in node.args.items() if key != "this"]
            parts = [p for other in others for p in (other if isinstance(other, list) else [other])]
            literals = [lit for part in parts if isinstance(part, exp.Expr) for lit in _literals(part)]
            for column in columns:
                found.setdefault(column, []).extend(literals)
    return found


def _literals(node: exp.Expr) -> Iterator[Any]:
    if node.find(exp.Select):
        return
    for literal in node.find_all(exp.Literal):
        if literal.is_string:
            yield literal.this.replace("%", " ").replace("_", "x")
        else:
            yield Decimal(literal.this)


def _as(value: Any, data_type: DataType, random: Random) -> Any:
    """A constant as a value of a type, or near it; None if it is none."""
    try:
        if data_type.is_string:
            return value if isinstance(value, str) else str(value)
        if data_type.kind is Kind.DATE:
            return date.fromisoformat(str(value)) + timedelta(days=random.randint(-20, 60))
        number = Decimal(str(value).strip()) + random.choice((0, 0, 1, -1))
    except (ValueError, ArithmeticError):
        return None
    if data_type.is_integer:
        return int(number) if abs(number) < 2**31 else None
    if data_type.is_floating:
        return float(number)
    if data_type.kind is Kind.DECIMAL:
        fits = abs(number) < 10 ** (data_type.precision - data_type.scale)
        return number.quantize(Decimal(1).scaleb(-data_type.scale)) if fits else None
    return None


_MONEY = "DECIMAL(12,2)"
_TPCH = {
    "region": "r_regionkey BIGINT, r_name STRING, r_comment STRING",
    "nation": "n_nationkey BIGINT, n_name STRING, n_regionkey BIGINT, n_comment STRING",
    "supplier": f"s_suppkey BIGINT, s_name STRING, s_address STRING, s_nationkey BIGINT, s_phone STRING, s_acctbal {_MONEY}, s_comment STRING",
    "customer": f"c_custkey BIGINT, c_name STRING, c_address STRING, c_nationkey BIGINT, c_phone STRING, c_acctbal {_MONEY}, "
    "c_mktsegment STRING, c_comment STRING",
    "part": "p_partkey BIGINT, p_name STRING, p_mfgr STRING, p_brand STRING, p_type STRING, p_size INT, p_container STRING, "
    f"p_retailprice {_MONEY}, p_comment STRING",
    "partsupp": f"ps_partkey BIGINT, ps_suppkey BIGINT, ps_availqty INT, ps_supplycost {_MONEY}, ps_comment STRING",
    "orders": f"o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus STRING, o_totalprice {_MONEY}, o_orderdate DATE, "
    "o_orderpriority STRING, o_clerk STRING, o_shippriority INT, o_comment STRING",
    "lineitem": f"l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INT, l_quantity {_MONEY}, l_extendedprice {_MONEY}, "
    f"l_discount {_MONEY}, l_tax {_MONEY}, l_returnflag STRING, l_linestatus STRING, l_shipdate DATE, l_commitdate DATE, "
    "l_receiptdate DATE, l_shipinstruct STRING, l_shipmode STRING, l_comment STRING",
}
_SSB = {
    "lineorder": "lo_orderkey INT, lo_linenumber INT, lo_custkey INT, lo_partkey INT, lo_suppkey INT, lo_orderdate INT, "
    "lo_orderpriority STRING, lo_shippriority STRING, lo_quantity INT, lo_extendedprice INT, lo_ordertotalprice INT, lo_discount INT, "
    "lo_revenue INT, lo_supplycost INT, lo_tax INT, lo_commitdate INT, lo_shipmode STRING",
    "part": "p_partkey INT, p_name STRING, p_mfgr STRING, p_category STRING, p_brand1 STRING, p_color STRING, p_type STRING, p_size INT, "
    "p_container STRING",
    "supplier": "s_suppkey INT, s_name STRING, s_address STRING, s_city STRING, s_nation STRING, s_region STRING, s_phone STRING",
    "customer": "c_custkey INT, c_name STRING, c_address STRING, c_city STRING, c_nation STRING, c_region STRING, c_phone STRING, "
    "c_mktsegment STRING",
    "date": "d_datekey INT, d_date STRING, d_dayofweek STRING, d_month STRING, d_year INT, d_yearmonthnum INT, d_yearmonth STRING, "
    "d_daynuminweek INT, d_daynuminmonth INT, d_daynuminyear INT, d_monthnuminyear INT, d_weeknuminyear INT, d_sellingseason STRING, "
    "d_lastdayinweekfl STRING, d_lastdayinmonthfl STRING, d_holidayfl STRING, d_weekdayfl STRING",
}
