"""Batches of changes, and random ones with the view they lead to."""

import struct
from collections import Counter
from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
from sink_targets import canonical

COMMIT = [("_commit_version", pa.int64()), ("_commit_timestamp", pa.timestamp("us", "UTC"))]
TENTH = struct.unpack("f", struct.pack("f", 0.1))[0]
NOON = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)

# Every type, with values that are hard to compare, print or store.
DOMAINS = {
    "flag": (pa.bool_(), [True, False]),
    "tiny": (pa.int8(), [-128, 0, 127]),
    "small": (pa.int16(), [-(2**15), 0, 7]),
    "int": (pa.int32(), [-(2**31), 3]),
    "big": (pa.int64(), [2**63 - 1, -(2**63)]),
    "float": (pa.float32(), [TENTH, float("nan"), 0.0, -0.0, float("-inf")]),
    "double": (pa.float64(), [0.1, float("nan"), 0.0, -0.0, 1e300, float("inf")]),
    "decimal": (pa.decimal128(12, 3), [Decimal("1.500"), Decimal("-999999999.999")]),
    "wide": (pa.decimal128(38, 0), [Decimal(10**38 - 1), Decimal(0)]),
    "text": (pa.string(), ["", "NULL", "\\N", "a\tb\n\\.\n'\"", "Größe 😀", "x" * 300]),
    "bytes": (pa.binary(), [b"", b"\x00", b"\xff\xfe", b"\\x41", b"\\N"]),
    "local": (pa.timestamp("us"), [datetime(2024, 3, 31, 2, 30), datetime(1, 1, 1, 0, 0, 0, 1)]),
    "day": (pa.date32(), [date(1, 1, 1), date(2024, 2, 29), date(9999, 12, 31)]),
    "instant": (pa.timestamp("us", "UTC"), [NOON, NOON.replace(microsecond=123456), NOON.replace(year=1)]),
}
KEY = {"k": (pa.int32(), [1, 2, 3, 4, 5]), "l": (pa.string(), ["", "a", "b"])}


def frame(spark, types, rows, changes, form):
    """A batch: ``changes`` are change types or multiplicities, one per row."""
    from pyspark.sql.pandas.types import from_arrow_schema

    kind = pa.string() if form == "_change_type" else pa.int64()
    fields = [*types.items(), (form, kind), *COMMIT]
    columns = list(zip(*rows, strict=True)) or [[] for _ in types]
    columns += [changes, [3] * len(rows), [NOON] * len(rows)]
    arrays = [pa.array(values, t) for values, (_, t) in zip(columns, fields, strict=True)]
    schema = pa.schema(fields)
    types = from_arrow_schema(schema, prefer_timestamp_ntz=True)
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=schema), types)


def simple(spark, *changes, types=None):
    """A batch over (k INT, v STRING), of rows with a multiplicity last."""
    types = types or {"k": pa.int32(), "v": pa.string()}
    return frame(spark, types, [c[:-1] for c in changes], [c[-1] for c in changes], "_multiplicity")


class RandomView:
    """A view that changes at random: ``key`` many of its first columns identify a row."""

    def __init__(self, random, key):
        self.random = random
        self.key = key
        self.domains = KEY | DOMAINS if key else dict(random.sample(list(DOMAINS.items()), 4))
        self.types = {name: t for name, (t, _) in self.domains.items()}
        self.rows = []

    def content(self):
        return Counter(tuple(map(canonical, row)) for row in self.rows)

    def batch(self, spark):
        """The next changes, as a frame in either form."""
        form = self.random.choice(["_change_type", "_multiplicity"])
        changes = self._keyed() if self.key else self._bag()
        self.random.shuffle(changes)
        rows = [row for row, _ in changes]
        words = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}
        kinds = [kind if form == "_change_type" else words[kind] for _, kind in changes]
        return frame(spark, self.types, rows, kinds, form)

    def _row(self):
        return tuple(self.random.choice([None, *values]) for _, values in self.domains.values())

    def _bag(self):
        leaving = self.random.sample(self.rows, self.random.randint(0, len(self.rows)))
        if self.random.random() < 0.7:
            leaving = leaving[:5]
        for row in leaving:
            self.rows.remove(row)  # NaN is found by identity
        coming = [self._row() for _ in range(self.random.randint(0, 8))]
        coming += self.random.choices(self.rows, k=3) if self.rows else []
        self.rows += coming
        passing = [self._row() for _ in range(2)]  # came and left within the batch
        changes = [(row, "delete") for row in leaving] + [(row, "insert") for row in coming]
        return changes + [(row, kind) for row in passing for kind in ("insert", "delete")]

    def _keyed(self):
        by_key = {row[: self.key]: row for row in self.rows}
        changes = []
        for _ in range(self.random.randint(0, 8)):
            new = self._row()
            key = new[: self.key]
            old = by_key.pop(key, None)
            if old is None:
                by_key[key] = new
                changes.append((new, "insert"))
            elif self.random.random() < 0.5:
                changes.append((old, "delete"))
            else:
                by_key[key] = new
                changes += [(old, "update_preimage"), (new, "update_postimage")]
        self.rows = list(by_key.values())
        return changes
