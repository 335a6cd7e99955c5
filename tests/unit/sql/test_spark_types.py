"""Types of expressions against those of Spark.

The table was printed by Spark 4.3.0 itself (``spark.sql("SELECT <expression> FROM t").schema``, ANSI mode, UTC).
"""

import pytest

from everview.schema.table import Table
from everview.lower import lower_query
from everview.sql import CreateTable, parse_statements

DDL = """CREATE TABLE t (bo BOOLEAN, s SMALLINT, i INT, b BIGINT, f FLOAT, d DOUBLE, n DECIMAL(12,2), m DECIMAL(5,4),
k DECIMAL(38,10), k2 DECIMAL(38,0), st STRING, ch CHAR(5), vc VARCHAR(8), dt DATE, ts TIMESTAMP,
y TINYINT, x BINARY, nt TIMESTAMP_NTZ)"""

SPARK = """
y + y                                        -> tinyint
y + 1                                        -> int
y + 1Y                                       -> tinyint
y + s                                        -> smallint
y * n                                        -> decimal(16,2)
y + 1.5                                      -> decimal(5,1)
y / y                                        -> double
y DIV y                                      -> bigint
y % y                                        -> tinyint
y + '1'                                      -> bigint
y + f                                        -> double
- y                                          -> tinyint
abs(y)                                       -> tinyint
round(y, -1)                                 -> tinyint
floor(y)                                     -> bigint
-128Y                                        -> tinyint
sum(y)                                       -> bigint
avg(y)                                       -> double
greatest(y, s)                               -> smallint
coalesce(y, 1)                               -> int
dt + y                                       -> date
x = st                                       -> boolean
coalesce(x, st)                              -> binary
CASE WHEN bo THEN x ELSE st END              -> binary
concat(x, x)                                 -> binary
concat(x, st)                                -> string
concat(x)                                    -> binary
concat(x, NULL)                              -> string
x || x                                       -> binary
length(x)                                    -> int
substring(x, 2)                              -> binary
left(x, 2)                                   -> binary
right(x, 2)                                  -> string
upper(x)                                     -> string
greatest(x, x)                               -> binary
nullif(x, st)                                -> binary
nullif(st, x)                                -> string
X'1F2'                                       -> binary
binary(st)                                   -> binary
count(x)                                     -> bigint
nt = ts                                      -> boolean
coalesce(nt, ts)                             -> timestamp
coalesce(nt, dt)                             -> timestamp_ntz
coalesce(dt, nt)                             -> timestamp_ntz
coalesce(nt, '2024-01-01')                   -> timestamp_ntz
greatest(nt, ts)                             -> timestamp
nt + INTERVAL 1 DAY                          -> timestamp_ntz
nt + INTERVAL 1 MONTH                        -> timestamp_ntz
year(nt)                                     -> int
hour(nt)                                     -> int
date_trunc('MONTH', nt)                      -> timestamp
trunc(nt, 'MONTH')                           -> date
date_add(nt, 1)                              -> date
to_timestamp_ntz(st)                         -> timestamp_ntz
to_timestamp_ltz('2024-01-01 10:00:00')      -> timestamp
CAST(nt AS TIMESTAMP)                        -> timestamp
CAST(ts AS TIMESTAMP_NTZ)                    -> timestamp_ntz
TIMESTAMP_LTZ '2024-02-29 12:34:56'          -> timestamp
nt || '|' || x                               -> string
s + s                                        -> smallint
s + i                                        -> int
i + b                                        -> bigint
i + f                                        -> double
b + f                                        -> double
f + f                                        -> float
f + d                                        -> double
i + d                                        -> double
i + n                                        -> decimal(13,2)
b + n                                        -> decimal(23,2)
s + n                                        -> decimal(13,2)
n + n                                        -> decimal(13,2)
n - n                                        -> decimal(13,2)
n * n                                        -> decimal(25,4)
n / n                                        -> decimal(27,15)
n % n                                        -> decimal(12,2)
n + m                                        -> decimal(15,4)
n * m                                        -> decimal(18,6)
n / m                                        -> decimal(22,8)
m / n                                        -> decimal(20,17)
n % m                                        -> decimal(5,4)
m % n                                        -> decimal(5,4)
k * k                                        -> decimal(38,6)
k / k                                        -> decimal(38,6)
k + k                                        -> decimal(38,9)
k % k                                        -> decimal(38,10)
k + n                                        -> decimal(38,9)
k * n                                        -> decimal(38,6)
k / n                                        -> decimal(38,8)
n + f                                        -> double
n + d                                        -> double
1 + n                                        -> decimal(13,2)
100 * n                                      -> decimal(16,2)
n / 3                                        -> decimal(16,6)
n * 1.5                                      -> decimal(15,3)
1 - n                                        -> decimal(13,2)
2 * k                                        -> decimal(38,8)
n + 1.5                                      -> decimal(13,2)
n > 1                                        -> boolean
n % 2                                        -> decimal(3,2)
i / i                                        -> double
i / b                                        -> double
s / s                                        -> double
f / f                                        -> double
i div i                                      -> bigint
b div i                                      -> bigint
n div m                                      -> bigint
i % i                                        -> int
b % i                                        -> bigint
i % b                                        -> bigint
s % i                                        -> int
d % i                                        -> double
-i                                           -> int
-n                                           -> decimal(12,2)
-s                                           -> smallint
1                                            -> int
2147483648                                   -> bigint
-2147483648                                  -> int
9223372036854775808                          -> decimal(19,0)
1.5                                          -> decimal(2,1)
0.05                                         -> decimal(2,2)
1.50                                         -> decimal(3,2)
.5                                           -> decimal(1,1)
1e3                                          -> double
1.5e3                                        -> double
10L                                          -> bigint
5S                                           -> smallint
1.5BD                                        -> decimal(2,1)
2.5D                                         -> double
2.5F                                         -> float
100 + s                                      -> int
i + 5L                                       -> bigint
i + '5'                                      -> bigint
n + '5'                                      -> double
d + '1'                                      -> double
i = '5'                                      -> boolean
n = '5'                                      -> boolean
n = i                                        -> boolean
n = m                                        -> boolean
dt = '2020-01-01'                            -> boolean
ts = '2020-01-01'                            -> boolean
dt = ts                                      -> boolean
bo = 'true'                                  -> boolean
case when bo then i else b end               -> bigint
case when bo then i else n end               -> decimal(12,2)
case when bo then n else m end               -> decimal(14,4)
case when bo then i else d end               -> double
case when bo then i else f end               -> double
case when bo then i end                      -> int
case when bo then i else '1' end             -> bigint
case when bo then n else '1' end             -> double
case when bo then 1 else n end               -> decimal(12,2)
case when bo then 0 else n * (1 - m) end     -> decimal(19,6)
case when bo then dt else ts end             -> timestamp
case when bo then dt else '2020-01-01' end   -> date
case when bo then 'a' else 'bcd' end         -> string
case i when 1 then 'x' else 'y' end          -> string
coalesce(i, 0)                               -> int
coalesce(n, 0)                               -> decimal(12,2)
coalesce(b, 1.5)                             -> decimal(21,1)
coalesce(i, b, n)                            -> decimal(22,2)
coalesce(st, 'x')                            -> string
coalesce(k, n)                               -> decimal(38,10)
coalesce(k2, b)                              -> decimal(38,0)
ifnull(i, 0)                                 -> int
nvl(n, 0)                                    -> decimal(12,2)
nvl2(i, n, m)                                -> decimal(14,4)
nullif(i, 5)                                 -> int
nullif(n, 0)                                 -> decimal(12,2)
if(bo, i, n)                                 -> decimal(12,2)
greatest(i, b)                               -> bigint
greatest(n, m, i)                            -> decimal(14,4)
least(dt, ts)                                -> timestamp
abs(i)                                       -> int
abs(n)                                       -> decimal(12,2)
abs(s)                                       -> smallint
round(n)                                     -> decimal(11,0)
round(n, 1)                                  -> decimal(12,1)
round(n, 0)                                  -> decimal(11,0)
round(n, 3)                                  -> decimal(13,2)
round(n, -1)                                 -> decimal(11,0)
round(k, 2)                                  -> decimal(31,2)
round(d, 2)                                  -> double
round(i, -1)                                 -> int
round(i)                                     -> int
round(s)                                     -> smallint
floor(n)                                     -> decimal(11,0)
floor(d)                                     -> bigint
floor(i)                                     -> bigint
floor(k)                                     -> decimal(29,0)
floor(m)                                     -> decimal(2,0)
floor(f)                                     -> bigint
ceil(n)                                      -> decimal(11,0)
ceil(d)                                      -> bigint
ceil(b)                                      -> bigint
cast(i as decimal)                           -> decimal(10,0)
cast(i as decimal(5))                        -> decimal(5,0)
cast(d as decimal(10,2))                     -> decimal(10,2)
cast(st as char(5))                          -> string
cast(st as varchar(5))                       -> string
cast(ts as date)                             -> date
cast(dt as timestamp)                        -> timestamp
cast(i as string)                            -> string
cast(ts as bigint)                           -> bigint
cast(b as timestamp)                         -> timestamp
cast(bo as int)                              -> int
i::bigint                                    -> bigint
int(d)                                       -> int
date(ts)                                     -> date
dt + 1                                       -> date
dt - 1                                       -> date
dt + interval 1 day                          -> date
dt + interval 1 month                        -> date
dt + interval 1 year                         -> date
dt - interval '3' month                      -> date
dt + interval 1 hour                         -> timestamp
dt + interval 24 hours                       -> timestamp
dt - interval 1 day                          -> date
interval 1 day + dt                          -> date
ts + interval 1 day                          -> timestamp
ts - interval 1 month                        -> timestamp
ts + interval '1 12:00:00' day to second     -> timestamp
datediff(dt, dt)                             -> int
datediff(ts, dt)                             -> int
date_add(dt, 3)                              -> date
date_sub(dt, 3)                              -> date
date_add(ts, 3)                              -> date
add_months(dt, 2)                            -> date
date_trunc('month', ts)                      -> timestamp
date_trunc('month', dt)                      -> timestamp
trunc(dt, 'MM')                              -> date
extract(year from dt)                        -> int
extract(month from ts)                       -> int
extract(hour from ts)                        -> int
extract(week from dt)                        -> int
extract(day from dt - dt)                    -> int
extract(quarter from dt)                     -> int
extract(dow from dt)                         -> int
year(dt)                                     -> int
quarter(dt)                                  -> int
month(ts)                                    -> int
day(dt)                                      -> int
dayofweek(dt)                                -> int
dayofyear(dt)                                -> int
weekofyear(dt)                               -> int
hour(ts)                                     -> int
minute(ts)                                   -> int
second(ts)                                   -> int
substring(st, 1, 2)                          -> string
substring(st from 2 for 3)                   -> string
substr(st, 2)                                -> string
upper(st)                                    -> string
lower(ch)                                    -> string
trim(st)                                     -> string
ltrim(st)                                    -> string
length(st)                                   -> int
concat(st, i)                                -> string
concat(st, ch)                               -> string
st || vc                                     -> string
st || i                                      -> string
left(st, 2)                                  -> string
right(st, 2)                                 -> string
replace(st, 'a', 'b')                        -> string
startswith(st, 'a')                          -> boolean
contains(st, 'a')                            -> boolean
st like 'a%'                                 -> boolean
st like 'a!%' escape '!'                     -> boolean
i in (1, 2, 3)                               -> boolean
n in (1, 2.5)                                -> boolean
i between 1 and 5                            -> boolean
st is null                                   -> boolean
not bo                                       -> boolean
bo and i > 3                                 -> boolean
i <=> b                                      -> boolean
mod(i, 3)                                    -> int
mod(n, m)                                    -> decimal(5,4)
sum(s)                                       -> bigint
sum(i)                                       -> bigint
sum(b)                                       -> bigint
sum(n)                                       -> decimal(22,2)
sum(k)                                       -> decimal(38,10)
sum(k2)                                      -> decimal(38,0)
sum(f)                                       -> double
sum(d)                                       -> double
avg(s)                                       -> double
avg(b)                                       -> double
avg(n)                                       -> decimal(16,6)
avg(k)                                       -> decimal(38,14)
avg(k2)                                      -> decimal(38,4)
avg(m)                                       -> decimal(9,8)
avg(f)                                       -> double
count(*)                                     -> bigint
count(i)                                     -> bigint
sum(n * (1 - m))                             -> decimal(29,6)
sum(n * (1 - m) * (1 + m))                   -> decimal(36,10)
sum(i) / count(*)                            -> double
sum(n) / sum(m)                              -> decimal(38,14)
100.00 * sum(n) / sum(m)                     -> decimal(38,10)
avg(n) + 1                                   -> decimal(17,6)
sum(case when bo then n else 0 end)          -> decimal(22,2)
sum(i + b)                                   -> bigint
sum(1)                                       -> bigint
abs('5') -> double
round('5.5') -> double
-'5' -> double
floor('5.5') -> bigint
sum('5') -> double
avg('5') -> double
null + 1 -> int
-null -> double
abs(null) -> double
sum(null) -> double
not null -> boolean
upper(5) -> string
length(date '2020-01-01') -> int
year('2020-01-01') -> int
hour('2020-01-01 05:00:00') -> int
substring('abc', b) -> string
left('abc', b) -> string
round(f, 1) -> float
cast(bo as decimal(5,2)) -> decimal(5,2)
cast(ts as decimal(20,2)) -> decimal(20,2)
cast(i as boolean) -> boolean
mod(b, 2) -> bigint
"""

CASES = [tuple(part.strip() for part in line.rsplit("->", 1)) for line in SPARK.strip().splitlines()]


@pytest.fixture(scope="module")
def table() -> Table:
    (statement,) = parse_statements(DDL)
    assert isinstance(statement, CreateTable)
    return statement.table


@pytest.mark.parametrize(("expression", "expected"), CASES, ids=[e for e, _ in CASES])
def test_type_is_that_of_spark(table: Table, expression: str, expected: str) -> None:
    view = lower_query("v", f"SELECT {expression} AS z FROM t", {"t": table})
    assert str(view.columns[0].type) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [("ch", "char(5)"), ("vc", "varchar(8)"), ("coalesce(ch, vc)", "string"), ("NULL", "null")],
)
def test_declared_string_types_are_kept_for_bare_columns(table: Table, expression: str, expected: str) -> None:
    # Spark reports plain `string` for CHAR and VARCHAR columns; the declared type says more and costs nothing.
    assert str(lower_query("v", f"SELECT {expression} AS z FROM t", {"t": table}).columns[0].type) == expected
