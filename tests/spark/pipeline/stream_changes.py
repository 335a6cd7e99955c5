"""Tables and random changes of them."""

from datetime import date, datetime, timezone
from decimal import Decimal
from random import Random

import pyarrow as pa

LONG, INT, SMALL, TEXT, DOUBLE, FLAG, DAY = (
    pa.int64(),
    pa.int32(),
    pa.int16(),
    pa.string(),
    pa.float64(),
    pa.bool_(),
    pa.date32(),
)
MONEY, INSTANT = pa.decimal128(12, 2), pa.timestamp("us", "UTC")
NOON = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)
EMPTY = "empty"

EDGE = ({"a": LONG, "b": LONG}, None)
CUSTOMER = ({"ck": LONG, "name": TEXT, "nation": TEXT}, ["ck"])
ORDERS = ({"ok": LONG, "ck": LONG, "day": DAY}, ["ok"])
LINEITEM = ({"ok": LONG, "line": INT, "qty": INT, "price": MONEY}, ["ok", "line"])
THING = (
    {"k": TEXT, "flag": FLAG, "small": SMALL, "money": MONEY, "double": DOUBLE, "at": INSTANT, "day": DAY, "t": TEXT}
    | {"tiny": pa.int8(), "bytes": pa.binary(), "local": pa.timestamp("us")},
    None,
)


def edge(rng):
    return (rng.randint(0, 6), rng.choice([0, 1, 2, 3, 4, 5, 6, None]))


def customer(rng):
    return (rng.randint(1, 6), rng.choice(["ann", "bob", "Zoë", None]), rng.choice(["se", "de", None]))


def orders(rng):
    day = date(rng.randint(2022, 2024), rng.randint(1, 12), rng.randint(1, 28))
    return (rng.randint(1, 12), rng.choice([1, 2, 3, 4, 5, None]), rng.choice([day, day, None]))


def lineitem(rng):
    price = rng.choice([None, Decimal(rng.randint(-500, 99999)) / 100, Decimal(rng.randint(0, 999)) / 100])
    return (rng.randint(1, 12), rng.randint(1, 3), rng.choice([None, 1, 2, 3]), price)


def thing(rng):
    return (
        rng.choice(["", "a", "A", "ä", "€😀", None]),
        rng.choice([True, False, None]),
        rng.choice([-(2**15), 0, 7, 2**15 - 1, None]),
        rng.choice([Decimal("1.50"), Decimal("-9999999999.99"), Decimal("0.00"), None]),
        rng.choice([0.0, -0.0, 0.5, -1.25, float("nan"), float("inf"), float("-inf"), None]),
        rng.choice([NOON, NOON.replace(microsecond=123456), NOON.replace(year=1969), None]),
        rng.choice([date(2024, 2, 29), date(1, 1, 1), None]),
        rng.choice(["x" * 40, "it's", 'quote " and \\', None]),
        rng.choice([-128, 0, 7, 127, None]),
        rng.choice([b"", b"\xff\xfe", b"a", "ä".encode(), None]),
        rng.choice([datetime(2024, 3, 31, 2, 30), datetime(1969, 12, 31, 23, 59, 59, 1), None]),
    )


MAKERS = {
    "edge": (EDGE, edge),
    "customer": (CUSTOMER, customer),
    "orders": (ORDERS, orders),
    "lineitem": (LINEITEM, lineitem),
    "thing": (THING, thing),
}


def tables(*names):
    return {name: MAKERS[name][0] for name in names}


def fill(scenario, sizes, seed=0):
    """Batches of random changes: about ``size`` per table each; 0 changes nothing, EMPTY deletes everything."""
    rng = Random(seed)
    for size in sizes:
        scenario.batch({name: changes(scenario, name, size, rng) for name in scenario.feeds})


def changes(scenario, name, size, rng):
    """Changes of one table that are valid: inserts, deletes, updates with both images; keys stay unique."""
    held = list(scenario.held[name])
    if size == EMPTY:
        rng.shuffle(held)
        return [(row, "delete") for row in held]
    make = MAKERS[name][1]
    names = list(scenario.columns[name])
    key_of = lambda row: tuple(row[names.index(k)] for k in scenario.keys[name])
    keyed = {key_of(row): row for row in held} if name in scenario.keys else None
    found, touched = [], set()
    for _ in range(size):
        row = make(rng)
        if keyed is not None:
            key = key_of(row)
            if key in touched:
                continue
            touched.add(key)
            if key not in keyed:
                found.append((row, "insert"))
            elif rng.random() < 0.3:
                found.append((keyed[key], "delete"))
            else:
                found += [(keyed[key], "update_preimage"), (row, "update_postimage")]
        elif held and rng.random() < 0.4:
            old = held.pop(rng.randrange(len(held)))
            found += [(old, "delete")] if rng.random() < 0.5 else [(old, "update_preimage"), (row, "update_postimage")]
        else:
            found.append((row, "insert"))
    return found
