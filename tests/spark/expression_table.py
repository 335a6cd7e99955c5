"""The expressions that are compared with Spark, in groups, over the columns of ``expression_rows``."""

from expression_rows import TYPES
from function_table import GROUPS as FUNCTION_GROUPS

NUMBERS = ["ti", "si", "i", "b", "f", "d", "n", "m", "k"]
EXACT = ["ti", "si", "i", "b", "n", "m", "k"]
ALL = list(TYPES)
PAIRS = [
    (c, c + "2") for c in ("bo", "ti", "bi", "nt", "si", "i", "b", "f", "d", "n", "m", "k", "st", "dt", "ts", "ch")
]
TARGETS = [
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL(10,2)",
    "DECIMAL(38,0)",
    "DECIMAL(4,4)",
    "STRING",
    "BINARY",
    "DATE",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
]


def _lines(text):
    return [line.strip() for line in text.strip().splitlines() if line.strip()]


GROUPS: dict[str, list[str]] = {}
GROUPS["arithmetic"] = [f"{x} {op} {y}2" for op in "+-*/%" for x in NUMBERS for y in NUMBERS]
GROUPS["div"] = [f"{x} DIV {y}2" for x in EXACT for y in EXACT] + [
    "i DIV 2",
    "b DIV -1",
    "i DIV 0",
    "n DIV 3",
    "si DIV 7",
    "d DIV 2",
    "f DIV 1",
]
GROUPS["arithmetic with constants"] = [
    f"{x} {op} {c}" for x in NUMBERS for op in "+*/%" for c in ("3", "0", "2.5", "-1L", "NULL", "'2'")
] + [f"{c} {op} {x}" for x in NUMBERS for op in "-/" for c in ("100", "1.50", "7S", "10.0D", "2.5F")]
GROUPS["sign and rounding"] = (
    [f"{f}({x})" for f in ("-", "abs", "round", "floor", "ceil") for x in NUMBERS]
    + [f"round({x}, {p})" for x in NUMBERS for p in (1, 2, 3, -1, -2, 9, -9)]
    + [
        "+i",
        "- -i",
        "-(i)",
        "abs(-5)",
        "round(2.5)",
        "round(-2.5)",
        "round(2.675, 2)",
        "round(1.005D, 2)",
        "abs(nst)",
        "round(i, NULL)",
        "ceiling(n)",
    ]
    + [
        "mod(i, i2)",
        "mod(n, 3)",
        "abs(dt)",
        "round(st)",
        "-bo",
        "-2147483648",
        "-9223372036854775808",
        "- 2147483648",
        "9223372036854775808",
    ]
    + [
        "-st",
        "abs(NULL)",
        "round(NULL)",
        "-NULL",
        "floor(NULL)",
        "floor(nst)",
        "-0.0",
        "-(0.0D)",
        "1e-3",
        "123456789012",
        ".5",
        "5.",
        "0.10",
    ]
)
GROUPS["comparison"] = [f"{x} {op} {y}" for op in ("=", "<>", "<", "<=", ">", ">=", "<=>") for x, y in PAIRS] + [
    f"{x} {op} {y}2" for op in ("=", "<") for n, x in enumerate(NUMBERS) for y in NUMBERS[n + 1 :]
]
GROUPS["comparison across types"] = _lines("""
    nst = i
    nst < b
    nst = si
    nst = d
    nst > f
    nst = n
    nst < k
    nst = bo
    dst = dt
    dst < ts
    dt = ts
    dt < ts
    ts >= dt2
    dt <=> ts
    st = vc
    ch = vc
    ch = st
    ch < st
    vc < ch
    i = '12'
    i = 12.5
    i < 2.5
    b = 1e0
    n = '1.25'
    n = 1.25
    n > 1
    d > 2.5
    f = 0.1
    f = CAST(0.1 AS FLOAT)
    d = 0.1
    bo = 'true'
    bo = 1
    dt = '2024-02-29'
    dt > '2023'
    dt = 'abc'
    dt = 1
    dt < TIMESTAMP '2000-01-01 00:00:00'
    ts > '2024-02-29'
    ts = '2024-01-01 00:00:00'
    ts < DATE '2000-01-01'
    i = NULL
    NULL = NULL
    NULL <=> i
    NULL <=> NULL
    st = NULL
    i = bo
    st = dt
    i = dt
    ts = b
    i == i2
    i != i2
    st = 'abc'
    st < 'b'
    'abc' = st
    1 = 1
    1 = 1.0
    'a' < 'b'
    'a' = 'a '
    i IS DISTINCT FROM i2
    i IS NOT DISTINCT FROM i2
    NOT i = i2
    NOT i <=> i2
    k = 1.5
    k < 12345678901234567890.5
    k = m
    si = 7S
    b = 3L
    d <=> d2
    f <=> d
""")
GROUPS["char"] = _lines("""
    ch
    vc
    ch2
    ch = 'a'
    ch = 'a    '
    ch = 'a     '
    ch = 'abcdef'
    'ab' = ch
    ch <> 'a'
    ch < 'b'
    ch >= 'abc'
    ch = ch2
    ch < ch2
    ch <=> 'ab'
    ch IN ('a', 'ab')
    ch IN ('a')
    ch IN ('abcdefg', 'a')
    ch NOT IN ('a', NULL)
    ch IN (ch2)
    ch IN (ch2, 'abc')
    ch2 IN (ch)
    ch IN ('a', NULL)
    ch IN (st, vc)
    ch BETWEEN 'a' AND 'abc'
    ch2 BETWEEN ch AND 'b'
    ch LIKE 'a'
    ch LIKE 'a    '
    ch LIKE 'a%'
    ch LIKE 'ab_'
    ch || 'x'
    concat(ch, ch2)
    length(ch)
    upper(ch)
    trim(ch)
    rtrim(ch)
    substring(ch, 2, 2)
    substring(ch, -2)
    coalesce(ch, 'z')
    coalesce(ch, ch2) = 'a'
    CASE WHEN ch = 'a' THEN ch ELSE ch2 END
    CASE ch WHEN 'a' THEN 1 WHEN 'ab' THEN 2 ELSE 3 END
    CASE ch WHEN ch2 THEN 1 END
    if(ch = 'ab', ch, vc)
    nullif(ch, 'a')
    nullif(ch, ch2)
    CAST(ch AS STRING)
    CAST(ch AS STRING) = 'a'
    trim(ch) = 'a'
    CAST(st AS CHAR(5))
    CAST(st AS VARCHAR(2))
    CAST(ch AS CHAR(2))
    CAST(i AS CHAR(3))
    CAST(i AS VARCHAR(30))
    CAST('ab' AS CHAR(5))
    CAST('ab' AS CHAR(5)) = 'ab'
    CAST(ch AS VARCHAR(3)) = 'a'
    vc = 'a'
    vc = 'ab'
    vc IN ('a', 'ab')
    vc = ch
    vc LIKE 'a%'
    length(vc)
    vc || ch
    greatest(ch, 'b')
    ch IS NULL
    left(ch, 2)
    replace(ch, ' ', '_')
    startswith(ch, 'a ')
    NOT ch = 'a'
    ch = 'a' OR ch = 'ab'
    ch = upper('a')
    ch = concat('a', '')
    ch = NULL
    ch <=> NULL
""")
GROUPS["logic"] = _lines("""
    bo AND bo2
    bo OR bo2
    NOT bo
    NOT (bo AND bo2)
    bo AND NULL
    bo OR NULL
    NULL AND bo
    NULL OR NULL
    NOT NULL
    bo AND TRUE
    bo OR FALSE
    TRUE
    bo AND bo2 OR NOT bo
    bo OR bo2 AND i > 0
    i <> 0 AND 10 / i > 1
    i = 0 OR 10 / i > 1
    i = 0 OR i % i2 = 0
    10 / i > 1 AND i <> 0
    bo = bo2
    bo < bo2
    bo IS TRUE
    bo IS FALSE
    bo IS NOT TRUE
    bo IS NOT FALSE
    (i > 1) IS TRUE
    bo IS UNKNOWN
    bo IS NOT UNKNOWN
    i AND bo
    st OR bo
    NOT i
    i > 0 AND i < 100 AND i2 IS NOT NULL
    i2 IS NULL OR i > i2 OR d > 1
    bo <=> NULL
    bo != bo2
    !bo
""")
GROUPS["membership"] = (
    [
        f"{x} IN ({x}2, {c})"
        for x, c in zip(
            ["ti", "si", "i", "b", "f", "d", "n", "m", "k"],
            ["7Y", "1", "0, 1, 2", "3", "1.5", "0.1, 'NaN'", "1.25", "0.5", "1.5"],
            strict=True,
        )
    ]
    + [f"{x} BETWEEN -1 AND 2" for x in NUMBERS]
    + _lines("""
    i IN (1, 2, 3)
    i NOT IN (1, 2, 3)
    i IN (1, NULL)
    i NOT IN (1, NULL)
    i IN (NULL)
    NULL IN (1, 2)
    i IN (1, 2.5)
    i IN (1, '12')
    i IN ('12')
    i IN (i2)
    i IN (1L, b2)
    b IN (i, si)
    n IN (1.25, 2.550)
    n IN (1, 100)
    d IN (0, 1.5)
    d IN (0.0, d2)
    st IN ('a', 'abc', '')
    st IN ('a', NULL)
    st NOT IN ('a', 'b')
    st IN (st2, 'ab')
    dt IN (DATE '2024-02-29', '2000-01-01')
    dt IN ('2024-02-29')
    ts IN (TIMESTAMP '2024-01-01 00:00:00', NULL)
    dt IN (ts, dt2)
    bo IN (TRUE)
    bo IN (TRUE, NULL)
    i IN (1, 'abc')
    i IN (1, DATE '2020-01-01')
    i IN (0, 10 / i)
    i BETWEEN i2 AND 100
    i NOT BETWEEN 0 AND 10
    i BETWEEN NULL AND 5
    i BETWEEN 0 AND NULL
    i BETWEEN '0' AND '10'
    i BETWEEN 0.5 AND 10.5
    n BETWEEN 0 AND 1.5
    d BETWEEN d2 AND 1e10
    st BETWEEN 'a' AND 'b'
    dt BETWEEN '2000-01-01' AND DATE '2024-02-29'
    ts BETWEEN dt AND ts2
    i BETWEEN 10 AND 0
    i BETWEEN SYMMETRIC 10 AND 0
    k BETWEEN m AND n
    """)
)
GROUPS["like"] = [
    f"st LIKE '{p}'"
    for p in (
        "a%",
        "%b",
        "%",
        "",
        "_",
        "__",
        "a_c",
        "a\\\\%b",
        "a\\\\_b",
        "%\\\\\\\\%",
        "%b%b%",
        "日%",
        "_x",
        "%ß%",
        "A%",
        "ab\\\\c",
    )
] + _lines(r"""
    st NOT LIKE 'a%'
    st LIKE st2
    st LIKE NULL
    NULL LIKE 'a'
    st LIKE 'a!%b' ESCAPE '!'
    st LIKE 'a!_b' ESCAPE '!'
    st LIKE 'a!b' ESCAPE '!'
    st LIKE 'a!' ESCAPE '!'
    st LIKE '%' ESCAPE '%'
    st ILIKE 'A%'
    st ILIKE 'ab%'
    st ILIKE 'STRASSE'
    st NOT ILIKE 'a%'
    vc LIKE 'ab %'
    i LIKE '1%'
    dt LIKE '2024%'
    n LIKE '%.25'
    st LIKE 'ab'
    st LIKE '%a%'
    st LIKE '\t%'
    st LIKE '%pad%'
    startswith(st, 'a')
    endswith(st, 'c')
    contains(st, 'b')
    contains(st, '')
    startswith(st, st2)
    startswith(i, '1')
""")
GROUPS["null tests"] = [f"{x} IS {t}NULL" for x in ALL for t in ("", "NOT ")] + _lines("""
    isnull(i)
    isnotnull(st)
    (i + 1) IS NULL
    (10 / i) IS NOT NULL
    NULL IS NULL
    (i > i2) IS NULL
""")
GROUPS["conditional"] = (
    [f"coalesce({x}, {x}2)" for x in NUMBERS]
    + [f"coalesce({x}, {y}2)" for n, x in enumerate(NUMBERS) for y in NUMBERS[n + 1 :]]
    + [f"CASE WHEN bo THEN {x} ELSE {y}2 END" for n, x in enumerate(NUMBERS) for y in NUMBERS[n + 1 :: 2]]
    + [f"greatest({x}, {x}2)" for x in NUMBERS]
    + [f"least({x}, {x}2)" for x in NUMBERS]
    + _lines("""
    CASE WHEN i > 0 THEN 'pos' WHEN i < 0 THEN 'neg' ELSE 'zero' END
    CASE WHEN i > 0 THEN 'pos' WHEN i < 0 THEN 'neg' END
    CASE i WHEN 0 THEN 'zero' WHEN 1 THEN 'one' END
    CASE i WHEN NULL THEN 'null' ELSE 'other' END
    CASE WHEN i = 0 THEN 0 ELSE 10 / i END
    CASE WHEN i <> 0 THEN 10 / i END
    CASE WHEN i <> 0 THEN 10 DIV i ELSE 0 END
    CASE WHEN bo THEN 1 ELSE 2.5 END
    CASE WHEN bo THEN 1 ELSE '2' END
    CASE WHEN bo THEN nst ELSE 1 END
    CASE WHEN bo THEN 1.5 ELSE 'x' END
    CASE WHEN bo THEN NULL ELSE i END
    CASE WHEN bo THEN NULL END
    CASE WHEN NULL THEN 1 ELSE 2 END
    CASE WHEN bo THEN dt ELSE ts END
    CASE WHEN bo THEN dt ELSE '2024-01-01' END
    CASE WHEN bo THEN dst ELSE dt END
    CASE WHEN bo THEN st ELSE vc END
    CASE WHEN bo THEN bo2 ELSE 'true' END
    CASE WHEN i THEN 1 END
    CASE WHEN bo THEN i ELSE dt END
    CASE WHEN i > 5 THEN 1 WHEN b > 5 THEN 2L WHEN d > 5 THEN 3.5 ELSE 0 END
    CASE d WHEN 1.5 THEN 'x' WHEN d2 THEN 'y' END
    CASE st WHEN 'a' THEN i WHEN 'abc' THEN b END
    coalesce(i, 0)
    coalesce(i, 0L)
    coalesce(i, 'x')
    coalesce(st, 'none')
    coalesce(NULL, i)
    coalesce(NULL, NULL)
    coalesce(i)
    coalesce(i, 10 / i2)
    coalesce(dt, ts)
    coalesce(st, i)
    coalesce(i, i2, -1)
    coalesce(dt, '2024-01-01')
    nvl(i, 0)
    ifnull(n, 0)
    nvl2(i, 'a', 'b')
    nvl2(i, i, 2.5)
    nullif(i, 0)
    nullif(i, i2)
    nullif(n, 1.25)
    nullif(i, 0L)
    nullif(st, 'a')
    nullif(d, 0)
    nullif(i, NULL)
    nullif(NULL, i)
    nullif(dt, '2024-02-29')
    10 / nullif(i, 0)
    if(i > 0, i, 0)
    if(bo, i, n)
    if(bo, st, i)
    if(bo, NULL, 1)
    if(NULL, 1, 2)
    greatest(i, 5, b)
    greatest(i, n)
    greatest(i, NULL)
    least(st, st2)
    greatest(dt, dt2)
    least(ts, ts2)
    greatest(dt, ts)
    greatest(d, d2, 1)
    least(bo, bo2)
    greatest(st, i)
    greatest(dt, '2024-01-01')
    greatest(st, NULL)
    greatest(i)
    """)
)
_SOURCES = ["bo", "ti", "tbi", "nt", "si", "i", "b", "f", "d", "n", "m", "k", "nst", "dst", "dt", "ts"]
GROUPS["casts"] = [f"CAST({x} AS {t})" for x in _SOURCES for t in TARGETS] + _lines("""
    CAST(NULL AS INT)
    CAST(NULL AS DATE)
    CAST(TRUE AS INT)
    CAST(2.7 AS INT)
    CAST(-2.7 AS INT)
    CAST(2.5 AS DECIMAL(3,0))
    CAST('2.7' AS INT)
    CAST('12' AS INT)
    CAST(' 12 ' AS INT)
    CAST('' AS INT)
    CAST('abc' AS DOUBLE)
    CAST('NaN' AS DOUBLE)
    CAST('inf' AS FLOAT)
    CAST('1e400' AS DOUBLE)
    CAST('1.005' AS DECIMAL(5,2))
    CAST('12345' AS DECIMAL(4,0))
    CAST('2024-02-29' AS DATE)
    CAST('2023-02-29' AS DATE)
    CAST('2024-02-29 12:00:00' AS TIMESTAMP)
    CAST('2024-02-29 12:00:00+02:00' AS TIMESTAMP)
    CAST('true' AS BOOLEAN)
    CAST('maybe' AS BOOLEAN)
    CAST('t' AS BOOLEAN)
    CAST(1 AS BOOLEAN)
    CAST(0.0 AS BOOLEAN)
    CAST(1.5 AS STRING)
    CAST(1e7 AS STRING)
    CAST(1.0D AS STRING)
    CAST(0.001D AS STRING)
    CAST(1e-4 AS STRING)
    CAST(123456789.125D AS STRING)
    CAST(1.10 AS STRING)
    CAST(0.00000001 AS STRING)
    CAST(DATE '2024-02-29' AS STRING)
    CAST(TIMESTAMP '2024-02-29 12:00:00.500' AS STRING)
    CAST(1 AS TIMESTAMP)
    CAST(1.5 AS TIMESTAMP)
    CAST(TIMESTAMP '1970-01-01 00:00:01.5' AS INT)
    CAST(TIMESTAMP '1970-01-01 00:00:01.5' AS DOUBLE)
    CAST(300 AS SMALLINT)
    CAST(40000 AS SMALLINT)
    CAST(i + 0.5 AS INT)
    CAST(CAST(d AS STRING) AS DOUBLE)
    CAST(CAST(ts AS STRING) AS TIMESTAMP)
    CAST(CAST(k AS STRING) AS DECIMAL(38,10))
    CAST(CAST(f AS DOUBLE) AS DECIMAL(20,10))
    int(n)
    bigint(d)
    double(nst)
    string(d)
    string(n)
    date(dst)
    timestamp(dst)
    boolean(nst)
    smallint(i)
    float(n)
    i::STRING
    nst::DOUBLE
    to_date(dst)
    to_timestamp(dst)
    CAST(ch AS INT)
    CAST(vc AS DOUBLE)
    CAST(ts AS DATE) = dt
    CAST(i AS DECIMAL(5,1))
    CAST(d AS DECIMAL(38,20))
    CAST(f AS DECIMAL(38,20))
    CAST(f AS STRING)
    CAST(m AS DECIMAL(3,3))
""")
GROUPS["dates"] = (
    [
        f"{f}({x})"
        for f in ("year", "quarter", "month", "day", "dayofmonth", "dayofweek", "dayofyear", "weekofyear")
        for x in ("dt", "ts", "nt")
    ]
    + [f"{f}({x})" for f in ("hour", "minute", "second") for x in ("ts", "dt", "nt")]
    + [
        f"EXTRACT({f} FROM {x})"
        for f in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DOW", "DOY", "HOUR", "MINUTE")
        for x in ("dt", "ts", "nt")
    ]
    + [
        f"date_trunc('{u}', ts)"
        for u in (
            "YEAR",
            "YYYY",
            "quarter",
            "MONTH",
            "mon",
            "WEEK",
            "DAY",
            "hour",
            "MINUTE",
            "SECOND",
            "MILLISECOND",
            "MICROSECOND",
        )
    ]
    + [f"trunc(dt, '{u}')" for u in ("YEAR", "yy", "QUARTER", "MM", "week")]
    + [
        f"{x} {op} INTERVAL {v}"
        for x in ("dt", "ts", "nt")
        for op in "+-"
        for v in (
            "1 DAY",
            "'3' DAYS",
            "2 WEEK",
            "1 MONTH",
            "13 MONTHS",
            "1 YEAR",
            "'1-2' YEAR TO MONTH",
            "5 HOURS",
            "90 MINUTE",
            "'1.5' SECOND",
            "'1 12:30:00' DAY TO SECOND",
        )
        + (
            "-1 MONTH",
            "1 DAY 2 HOURS",
            "'10:20' HOUR TO MINUTE",
            "250 MILLISECONDS",
            "7 MICROSECONDS",
            "'1 2' DAY TO HOUR",
            "'-1' DAY",
            "0 DAYS",
        )
    ]
    + _lines("""
    dt + 1
    dt - 1
    1 + dt
    dt + si
    dt - si
    dt + i
    dt + b
    dt + 1.5
    dt + '1'
    dt - i
    dt + NULL
    NULL + dt
    ts + 1
    date_add(dt, 1)
    date_add(dt, si)
    date_add(dt, i)
    date_add(ts, 1)
    date_add(dst, 1)
    date_add(dt, b)
    date_add(dt, '7')
    date_add(dt, NULL)
    date_add(dt, 1.5)
    date_sub(dt, 30)
    date_sub(dt, si)
    dateadd(dt, 5)
    datediff(dt, dt2)
    datediff(ts, dt)
    datediff(dst, dt)
    date_diff(dt, dt2)
    add_months(dt, 1)
    add_months(dt, -1)
    add_months(dt, si)
    add_months(dt, i)
    add_months(ts, 12)
    EXTRACT(DAY FROM dt - dt2)
    CAST(dt - dt2 AS INT)
    CAST(dt - dt2 AS BIGINT)
    year(dst)
    month('2024-02-29')
    year(i)
    hour(dst)
    year(NULL)
    INTERVAL 1 DAY + dt
    INTERVAL 1 MONTH + ts
    INTERVAL 1 DAY - dt
    dt + INTERVAL 1 DAY + INTERVAL 1 MONTH
    dt + (INTERVAL 1 DAY + INTERVAL 2 DAY)
    dt + INTERVAL 1 YEAR - INTERVAL 1 DAY
    dst + INTERVAL 1 DAY
    dst + INTERVAL 90 MINUTES
    dst - INTERVAL 1 MONTH
    '2024-01-31' + INTERVAL 1 MONTH
    '2024-01-31' + INTERVAL 1 DAY
    INTERVAL 1 DAY + '2024-01-31'
    DATE '2024-01-31' + INTERVAL 1 MONTH
    DATE '2024-02-29' + INTERVAL 1 YEAR
    DATE '2024-02-29' - INTERVAL '90' DAY
    TIMESTAMP '2024-01-31 10:00:00' + INTERVAL 1 MONTH
    DATE '9999-12-31' + INTERVAL 1 DAY
    DATE '9999-12-31' + INTERVAL 1 MONTH
    DATE '0001-01-01' - INTERVAL 1 DAY
    DATE '0001-01-01' - INTERVAL 1 YEAR
    DATE '2024-02-29'
    DATE '2024-2-9'
    TIMESTAMP '2024-02-29 12:34:56.789'
    TIMESTAMP '2024-02-29 12:34:56+02:00'
    TIMESTAMP '2024-02-29'
    dt + INTERVAL 1 DAY > ts
    dt + INTERVAL '1' DAY = dt2
    date_trunc('month', dt)
    date_trunc('day', dst)
    trunc(ts, 'month')
    trunc(dst, 'year')
    EXTRACT(YEAR FROM dst)
    EXTRACT(SECOND FROM ts)
    EXTRACT(YEAR FROM dt) * 100 + EXTRACT(MONTH FROM dt)
    year(dt) - year(dt2)
    dt - ts
    i + INTERVAL 1 DAY
    """)
)
GROUPS["strings"] = (
    [f"{f}({x})" for f in ("upper", "lower", "trim", "ltrim", "rtrim", "length") for x in ("st", "vc", "nst")]
    + [
        f"substring(st, {p})"
        for p in (
            "1",
            "0",
            "2",
            "-1",
            "-3",
            "-100",
            "100",
            "i",
            "NULL",
            "1, 2",
            "0, 2",
            "-2, 1",
            "-5, 3",
            "2, 0",
            "2, -1",
            "i, i2",
            "2, NULL",
            "si, 2",
        )
    ]
    + [
        f"substring(st, {p})"
        for p in ("'2'", "2L, 1L", "1.5", "b, 2", "1, 2147483647", "-2147483648, 2147483647", "2147483647, 2147483647")
    ]
    + [
        f"{x} || '|' || {y}"
        for x, y in (("st", "st2"), ("i", "b"), ("n", "d"), ("dt", "ts"), ("bo", "f"), ("k", "m"), ("vc", "si"))
    ]
    + _lines(r"""
    SUBSTRING(st FROM 2 FOR 2)
    SUBSTRING(st FROM 2)
    substr(st, 2)
    substr(i, 1, 2)
    substring(dt, 1, 4)
    concat(st, st2)
    concat(st, NULL)
    concat(st)
    concat(st, i, d)
    concat(dt, ts)
    concat()
    st || NULL
    'a' || 'b'
    'a' 'b'
    1 || 2
    upper(i)
    lower(bo)
    upper(NULL)
    length(i)
    length(d)
    length(NULL)
    char_length(st)
    character_length(st)
    len(st)
    ucase(st)
    lcase(st)
    TRIM(BOTH FROM st)
    TRIM(LEADING FROM st)
    TRIM(TRAILING FROM st)
    TRIM(BOTH ' ' FROM st)
    ltrim(' ', st)
    trim(i)
    trim(NULL)
    left(st, 2)
    right(st, 2)
    left(st, 0)
    left(st, -1)
    right(st, -1)
    left(st, i)
    right(st, NULL)
    replace(st, 'a', 'xy')
    replace(st, 'a')
    replace(st, '', 'x')
    replace(st, NULL, 'x')
    replace(st, 'b', st2)
    replace(i, '1', '2')
    upper(st) = upper(st2)
    length(st) + 1
    length(trim(st))
    upper(substring(st, 1, 1)) || lower(substring(st, 2))
    'it''s'
    'a''b' 'c'
    ''''
    "a""b"
    'a'"b"
    'a\'b'
    "double"
    'tab\t'
    '\\'
    '\u0041'
    r'a\b'
    ''
    'é' || st
    concat_ws('-', st, st2)
    """)
)
GROUPS["nested"] = _lines("""
    (i + 1) * 2 - i2 / 3
    n * (1 - m) * (1 + m2)
    n * (1 - 0.05)
    n * 1.1 + 5
    round(n * 1.19, 2)
    round(n / 3, 4)
    round(i / 7, 3)
    n / (m + 10)
    n / 100 * 3
    (n + n2) / 2
    n % 1
    m * m2 * m
    k + m - n
    k * 2 / 3
    CAST(n AS DOUBLE) / 3
    CAST(n / 3 AS DECIMAL(20,2))
    n + 1e0
    i * 1.0
    i / 2
    i % 2 = 0
    si * si2
    si + 1
    si * 2S
    b * 2
    i * 100000L
    CAST(i AS BIGINT) * i2
    abs(i - i2)
    abs(n - n2) > 0.5
    CASE WHEN n > 0 THEN n * 2 ELSE 0 END
    CASE WHEN st LIKE 'a%' THEN length(st) ELSE -1 END
    coalesce(n, 0) + coalesce(m, 0)
    coalesce(i, 0) % 3 = 1 OR st IS NULL
    length(concat(st, CAST(i AS STRING))) * 2
    year(dt) * 10000 + month(dt) * 100 + day(dt)
    datediff(dt + INTERVAL 1 MONTH, dt)
    substring(CAST(dt AS STRING), 1, 7)
    CAST(substring(CAST(ts AS STRING), 12, 2) AS INT)
    d * 0
    d / d2 * 100
    -d
    d - d
    f * d
    f + 1
    f * 2.5
    f / 3
    f % 1
    d % 0.3
    0.1 + 0.2
    0.1D + 0.2D
    1 / 3
    1 / 3.0
    10 / 4
    2.0 * 3.00
    1.0 / 3
    7 % 3
    -7 % 3
    7 DIV 2
    -7 DIV 2
    1 / 0
    1 % 0
    1.0 / 0
    2147483647 + 1
    9223372036854775807 + 1
    32767S + 1S
    100000 * 100000
    NULL + 1
    NULL / NULL
    '5' + 1
    '5' * '2'
    '5' + '2'
    '1.5' + 1
    nst + 1
    nst * 2.5
    nst + nst
    bo + 1
    st + 1
    dt + dt2
    3.4E38F + f
    1e308 * 10
    99999999999999999999999999999999999999 + 1
    k * k2
    k / k2
    CAST(99999999999999999999999999999999999999 AS DECIMAL(38,0)) * 10
    i & 1
    ~i
""")

GROUPS["tinyint"] = _lines("""
    ti
    -128Y
    - 128Y
    -(128Y)
    -32768S
    -9223372036854775808L
    128Y
    -129Y
    127Y + 1Y
    127Y + 1
    ti * 2Y
    ti + 100Y
    ti - 100
    ti = 7Y
    ti = '7'
    ti + '7'
    ti || 'x'
    ti IN (7Y, 100, NULL)
    ti BETWEEN 1Y AND 100S
    CASE WHEN bo THEN ti ELSE si END
    CASE WHEN bo THEN ti ELSE 1 END
    coalesce(ti, ti2, 0Y)
    greatest(ti, ti2, 1Y)
    least(ti, si)
    nullif(ti, 7)
    nullif(ti, ti2)
    tinyint(i)
    tinyint(nst)
    tinyint(bo)
    CAST(i AS BYTE)
    CAST(127.9 AS TINYINT)
    CAST(128 AS TINYINT)
    CAST('128' AS TINYINT)
    CAST(-128.9D AS TINYINT)
    CAST(ti AS DECIMAL(3,0))
    CAST(ti AS DECIMAL(2,0))
    CAST(ti AS CHAR(4))
    dt + ti
    dt - ti
    ti + dt
    date_add(dt, ti)
    date_sub(dt, ti)
    add_months(dt, ti)
    substring(st, ti)
    substring(st, ti, ti2)
    left(st, ti)
    right(st, ti)
    ti = bo
    ti = dt
    ti AND bo
    length(ti)
    abs(ti - ti2)
    ti % 3Y
    ti / ti2
    round(ti, -2)
    (ti + 0) * (si + 0) * (i + 0L)
""")
GROUPS["binary"] = _lines("""
    bi
    X''
    x'aB'
    X'1F2'
    X'1G'
    bi = X'616263'
    bi <> X'61'
    bi < X'80'
    bi <=> X''
    bi >= bi2
    bi = st
    bi = 'abc'
    'abc' < bi
    bi = ch
    ch = bi
    bi = vc
    bi IN (X'61', X'FFFE')
    bi IN ('abc', X'61')
    bi IN ('abc', 'x')
    bi IN (bi2, X'61')
    bi IN (X'61', NULL)
    bi NOT IN (X'61', X'')
    bi BETWEEN X'61' AND X'62'
    bi BETWEEN 'a' AND bi2
    bi = i
    i = bi
    bi = bo
    bi = dt
    bi = NULL
    bi IS NULL
    bi + 1
    bi + bi2
    -bi
    abs(bi)
    bi AND bo
    dt + bi
    st + bi
    bi IS DISTINCT FROM bi2
    concat(bi, bi2)
    concat(bi)
    concat(bi, X'00', bi2)
    concat(tbi, st)
    concat(st, tbi)
    concat(tbi, i)
    concat(bi, NULL)
    bi || bi2
    tbi || st
    tbi || '|' || tbi2
    length(bi)
    len(bi)
    char_length(bi)
    character_length(bi)
    length(tbi || st)
    substring(bi, 2)
    substring(bi, 2, 1)
    substring(bi, -1)
    substring(bi, -2, 1)
    substring(bi, -5, 4)
    substring(bi, 0, 2)
    substring(bi, i, 2)
    substring(bi, 1, -1)
    substring(bi, NULL)
    substr(bi, 2)
    SUBSTRING(bi FROM 2 FOR 1)
    left(bi, 2)
    left(bi, 0)
    left(bi, -1)
    left(bi, i)
    right(tbi, 2)
    right(tbi, 0)
    upper(tbi)
    lower(tbi)
    trim(tbi)
    ltrim(tbi)
    rtrim(tbi)
    replace(tbi, 'a', 'b')
    replace(st, tbi, 'b')
    tbi LIKE 'a%'
    st LIKE tbi
    tbi ILIKE 'A%'
    startswith(bi, bi2)
    startswith(bi, 'a')
    startswith(st, bi)
    endswith(bi, bi2)
    endswith(bi, X'FE')
    contains(bi, bi2)
    contains(bi, st)
    contains(st, bi)
    contains(bi, X'')
    greatest(bi, bi2)
    least(bi, X'00', bi2)
    greatest(bi, st)
    coalesce(bi, X'00')
    coalesce(bi, bi2)
    coalesce(bi, st)
    coalesce(st, bi)
    nullif(bi, bi2)
    nullif(bi, X'61')
    nullif(bi, st)
    nullif(st, tbi)
    nvl(bi, X'')
    nvl2(bi, bi2, X'00')
    if(bo, bi, bi2)
    if(bo, bi, st)
    if(bo, ti, bi)
    CASE WHEN bo THEN bi ELSE bi2 END
    CASE WHEN bo THEN bi END
    CASE WHEN bo THEN bi ELSE st END
    CASE bi WHEN X'61' THEN 1 WHEN bi2 THEN 2 ELSE 3 END
    CAST(st AS BINARY)
    CAST('a' AS BINARY)
    CAST(' a ' AS BINARY)
    CAST(ch AS BINARY)
    CAST(vc AS BINARY)
    CAST(bi AS BINARY)
    CAST(NULL AS BINARY)
    CAST(CAST(st AS BINARY) AS STRING)
    CAST(bi AS STRING)
    CAST(X'FF' AS STRING)
    CAST(CAST(bi AS STRING) AS BINARY)
    CAST(tbi AS VARCHAR(10))
    CAST(i AS BINARY)
    CAST(d AS BINARY)
    binary(st)
    binary(i)
    string(tbi)
    CAST(tbi AS STRING) = st
    length(CAST(st AS BINARY)) - length(st)
""")
GROUPS["timestamp without zone"] = (
    [f"nt {op} {y}" for op in ("=", "<", ">=", "<=>") for y in ("ts", "dt", "dst", "nt2")]
    + [f"date_trunc('{u}', nt)" for u in ("YEAR", "week", "DAY", "hour", "SECOND")]
    + [f"trunc(nt, '{u}')" for u in ("YEAR", "QUARTER", "MM", "week")]
    + _lines("""
    nt
    TIMESTAMP_NTZ '2024-02-29 12:34:56.789'
    TIMESTAMP_NTZ '2024-02-29 12:34:56+05:30'
    TIMESTAMP_NTZ '2024-02-29 12:34:56Z'
    TIMESTAMP_NTZ '2024-02-29'
    TIMESTAMP_NTZ 'abc'
    TIMESTAMP_LTZ '2024-02-29 12:34:56'
    nt = '2024-01-01'
    nt > '2000-01-01 00:00:00'
    nt = TIMESTAMP_NTZ '2024-01-01 00:00:00'
    nt = TIMESTAMP '2024-01-01 00:00:00'
    nt < DATE '2000-01-01'
    nt = i
    nt = bi
    nt = bo
    nt = NULL
    nt IN (ts, dt)
    nt IN (TIMESTAMP_NTZ '2024-01-01 00:00:00', NULL)
    nt IN ('2024-01-01')
    nt BETWEEN dt AND ts
    nt IS NOT DISTINCT FROM nt2
    coalesce(nt, ts)
    coalesce(ts, nt)
    coalesce(nt, dt)
    coalesce(dt, nt)
    coalesce(nt, '2024-01-01')
    coalesce(dt, nt, ts)
    CASE WHEN bo THEN nt ELSE dt END
    CASE WHEN bo THEN nt ELSE ts END
    CASE WHEN bo THEN nt ELSE dst END
    CASE WHEN bo THEN nt ELSE i END
    greatest(nt, ts)
    greatest(nt, dt)
    least(nt, nt2)
    nullif(nt, nt2)
    nullif(nt, dt)
    INTERVAL 1 DAY + nt
    INTERVAL 1 MONTH + nt
    nt + INTERVAL 1 DAY + INTERVAL 1 MONTH
    nt + INTERVAL 1 DAY > ts
    TIMESTAMP_NTZ '2024-01-31 10:00:00' + INTERVAL 1 MONTH
    nt + 1
    nt - nt2
    nt - ts
    nt - dt
    dt - nt
    nt + ti
    date_add(nt, 1)
    date_sub(nt, ti)
    datediff(nt, dt)
    datediff(dt, nt)
    add_months(nt, 1)
    to_date(nt)
    to_timestamp(nt)
    to_timestamp_ntz(dst)
    to_timestamp_ntz(ts)
    to_timestamp_ntz(dt)
    to_timestamp_ntz(nt)
    to_timestamp_ltz(dst)
    to_timestamp_ltz(nt)
    timestamp_ntz(dst)
    date(nt)
    timestamp(nt)
    string(nt)
    CAST(nt AS TIMESTAMP_LTZ)
    CAST(ts AS TIMESTAMP_NTZ) = nt
    CAST('2024-02-29 12:34:56+05:30' AS TIMESTAMP_NTZ)
    CAST('2024-02-29 12:34:56 Foo' AS TIMESTAMP_NTZ)
    CAST('12:34:56' AS TIMESTAMP_NTZ)
    CAST('2024' AS TIMESTAMP_NTZ)
    CAST('294247-01-10 04:00:54.775807' AS TIMESTAMP_NTZ)
    CAST('294247-01-10 05:00:54.775807+01:00' AS TIMESTAMP_NTZ)
    CAST('294247-01-10 03:00:54.775807-01:00' AS TIMESTAMP_NTZ)
    CAST(CAST(nt AS STRING) AS TIMESTAMP_NTZ)
    CAST(nt AS CHAR(30))
    'x' || nt
    nt || '|' || tbi
    length(nt)
    upper(nt)
    nt LIKE '2024%'
    nt AND bo
    year(nt) * 100 + month(nt)
    """)
)

EXPRESSIONS = {group: list(dict.fromkeys(expressions)) for group, expressions in (GROUPS | FUNCTION_GROUPS).items()}
