"""Calls of functions that are compared with Spark, in groups like those of ``expression_table``."""

NUMBERS = ["ti", "si", "i", "b", "f", "d", "n", "m", "k"]
TEXTS = ["st", "vc", "ch"]


def _lines(text):
    return [line.strip() for line in text.strip().splitlines() if line.strip()]


GROUPS: dict[str, list[str]] = {}
GROUPS["text functions"] = [
    f"{f}({x})"
    for f in ("reverse", "initcap", "ascii", "octet_length", "bit_length", "hex", "md5", "crc32")
    for x in ("st", "vc", "ch", "tbi", "nst", "NULL", "''")
] + _lines(r"""
    concat_ws('-', st, st2)
    concat_ws('-', st)
    concat_ws('-')
    concat_ws(NULL, st)
    concat_ws('-', NULL, NULL)
    concat_ws('-', st, NULL, st2)
    concat_ws('', st, st2)
    concat_ws(st, st2, 'x')
    concat_ws(', ', st, i, dt, n, bo)
    concat_ws('-', ch, vc)
    concat_ws('-', tbi, st)
    concat_ws(st, 'a', 'b', st2)
    concat_ws('-', CAST(10 / i AS STRING), st)
    concat_ws('-', st) IS NULL
    instr(st, 'b')
    instr(st, '')
    instr('', st)
    instr(st, st2)
    instr(st, NULL)
    instr(NULL, 'a')
    instr('日本語', '語')
    instr(i, '1')
    instr(tbi, 'b')
    locate('b', st)
    locate('b', st, 2)
    locate('b', st, 0)
    locate('b', st, -1)
    locate('b', st, i)
    locate('', st)
    locate('', st, 100)
    locate('', st, 0)
    locate('b', st, NULL)
    locate(st2, st, ti)
    locate('b', st, 1000)
    locate('ß', st)
    locate('x', st, 2)
    locate(NULL, st)
    locate(NULL, st, NULL)
    locate('', st, -1)
    locate('b', st, d)
    repeat('ab', n)
    split_part(st, 'b', 1.5)
    chr(d)
    position('b', st)
    position('b' IN st)
    position('b', st, 3)
    POSITION(st2 IN st)
    lpad(st, 5)
    lpad(st, 5, 'xy')
    lpad(st, 5, '')
    lpad(st, 0, 'x')
    lpad(st, -1, 'x')
    lpad(st, 3, '日本')
    lpad(st, ti, 'ab')
    lpad(st, si, 'ab')
    lpad(st, 4, st2)
    lpad(st, NULL)
    lpad(st, 5, NULL)
    lpad(i, 12, '0')
    lpad(n, 12, '*')
    lpad(ch, 7, '.')
    lpad(NULL, 5)
    lpad(st, '5', 'x')
    rpad(st, 5)
    rpad(st, 5, 'xy')
    rpad(st, 5, '')
    rpad(st, 0, 'x')
    rpad(st, -1, 'x')
    rpad(st, 3, '日本')
    rpad(st, ti, 'ab')
    rpad(st, 4, st2)
    rpad(dt, 12, '.')
    repeat(st, 3)
    repeat(st, 0)
    repeat(st, -1)
    repeat(st, ti)
    repeat(st, NULL)
    repeat(NULL, 2)
    repeat(ti, 2)
    repeat('ab', 2)
    repeat('', 2147483647)
    space(3)
    space(ti)
    space(NULL)
    '[' || space(2) || ']'
    initcap('hello wORLD foo-bar')
    initcap(' a  b ')
    initcap('ǆ ß ﬁx éA ΑΣ σς')
    translate(st, 'ab', 'xy')
    translate(st, 'abc', 'x')
    translate(st, '', 'x')
    translate(st, 'a', '')
    translate(st, 'aab', 'xyz')
    translate(st, '日ß', 'ns')
    translate(st, st2, 'xyz')
    translate(st, NULL, 'x')
    translate(i, '12', 'ab')
    split_part(st, 'b', 1)
    split_part(st, 'b', 2)
    split_part(st, 'b', -1)
    split_part(st, 'b', -2)
    split_part(st, 'b', 100)
    split_part(st, 'b', -100)
    split_part(st, '', 1)
    split_part(st, '', 2)
    split_part(st, '', -1)
    split_part(st, ' ', 1)
    split_part(st, 'b', 0)
    split_part(st, 'b', ti)
    split_part(st, st2, 1)
    split_part(st, NULL, 1)
    split_part(dt, '-', 2)
    split_part('a.b.c', '.', 2)
    split_part('aaaa', 'aa', 3)
    substring_index(st, 'b', 1)
    substring_index(st, 'b', 2)
    substring_index(st, 'b', -1)
    substring_index(st, 'b', -2)
    substring_index(st, 'b', 0)
    substring_index(st, '', 1)
    substring_index(st, ' ', ti)
    substring_index(st, st2, 1)
    substring_index('a.b.c', '.', 2)
    substring_index('aaaaa', 'aa', 2)
    substring_index('aaaaa', 'aa', -2)
    substring_index(st, NULL, 1)
    substring_index(dt, '-', 2)
    ascii('日')
    ascii('😀')
    ascii(i)
    chr(65)
    chr(0)
    chr(-1)
    chr(256)
    chr(321)
    chr(233)
    chr(ti)
    chr(i)
    chr(b)
    chr(NULL)
    chr('66')
    char(66)
    octet_length(bi)
    octet_length(i)
    bit_length(bi)
    hex(ti)
    hex(i)
    hex(b)
    hex(bi)
    hex('Spark')
    hex(17)
    hex(d)
    hex(bo)
    bin(i)
    bin(b)
    bin(ti)
    bin(13)
    bin(-13)
    bin(NULL)
    bin('7')
    bin(d)
    md5(bi)
    md5('Spark')
    md5(repeat('a', 119))
    crc32(bi)
    crc32('Spark')
    crc32(i)
    sha2(st, 256)
    sha2(bi, 0)
    sha2(repeat('a', 55), 256)
    sha2(repeat('a', 56), 256)
    sha2(repeat('a', 64), 256)
    sha2(NULL, 256)
    trim(st)
    trim('a', st)
    trim('ab ', st)
    trim('', st)
    trim(NULL, st)
    trim(st2, st)
    TRIM(BOTH 'ab' FROM st)
    TRIM(LEADING 'ab' FROM st)
    TRIM(TRAILING 'bc' FROM st)
    TRIM(BOTH st2 FROM st)
    TRIM('語日' FROM st)
    ltrim('ab', st)
    rtrim('bc', st)
    rtrim(st2, st)
    ltrim('1', i)
    btrim(st)
    btrim(st, 'ab')
    btrim(st, NULL)
    st ILIKE 'a!%%' ESCAPE '!'
    st LIKE 'a!!%' ESCAPE '!'
""")
GROUPS["patterns"] = [
    f"regexp_like(st, {p})"
    for p in (
        "'a'",
        "'^a'",
        "'c$'",
        "'^$'",
        "''",
        "'a.c'",
        "'[a-c]+'",
        "'[^a-c]'",
        "'(?i)ABC'",
        "'(?i)[A-C]{3}'",
        "'(?i)É'",
        "'a|b'",
        "'a{2}'",
        r"'\\d'",
        r"'\\w+'",
        r"'\\W'",
        r"'\\s'",
        r"'\\S'",
        r"'\\bAb\\b'",
        r"'\\p{L}'",
        r"'\\p{Alpha}'",
        r"'\\p{Lu}'",
        r"'\\\\'",
        r"'a\\\\b'",
        r"'%'",
        "'日'",
        "'.'",
        "'^.$'",
        "'(?s)^.+$'",
        r"'t$'",
        r"'t\\Z'",
        r"'t\\z'",
        r"'\\t'",
        r"'[\\s\\d]'",
        r"'[^\\S\\n]'",
        r"'\\Q.\\E'",
        r"'\\x61'",
        r"'\\u0061'",
        "'b{30}'",
        "'(b+)+'",
        "'(a)(b)?'",
        "'(?:ab)c'",
        "'(?<x>a)'",
        "'[-a]'",
        "'[a-]'",
        r"'[\\]]'",
        "'[.]'",
        "'a*?'",
        "'a+?b'",
        "'x?'",
        r"'\\R'",
        r"'\\h'",
        r"'\\v'",
        "NULL",
    )
] + _lines(r"""
    st RLIKE 'a.*b'
    st NOT RLIKE '^a'
    st REGEXP 'b+$'
    rlike(st, 'ab')
    regexp(st, '^[A-Z]')
    vc RLIKE '^ab *$'
    ch RLIKE ' $'
    i RLIKE '^1'
    dt RLIKE '^20'
    NULL RLIKE 'a'
    tbi RLIKE 'b'
    regexp_replace(st, 'b', 'X')
    regexp_replace(st, '', '-')
    regexp_replace(st, 'b*', '-')
    regexp_replace(st, '(.)(.)', '$2$1')
    regexp_replace(st, '(.)', '$0$0')
    regexp_replace(st, '(a)|(b)', '[$1|$2]')
    regexp_replace(st, '(a)', '$12')
    regexp_replace(st, 'a', '\\$1')
    regexp_replace(st, 'a', '\\\\')
    regexp_replace(st, '$', '!')
    regexp_replace(st, 't$', '!')
    regexp_replace(st, '^', '!')
    regexp_replace(st, '\\s+', '')
    regexp_replace(st, '[^a-z]', '')
    regexp_replace(st, 'b', st2)
    regexp_replace(st, 'b', NULL)
    regexp_replace(st, 'b', 'X', 2)
    regexp_replace(st, '^b', 'X', 2)
    regexp_replace(st, 'b', 'X', 100)
    regexp_replace(st, '', 'X', 1)
    regexp_replace(st, 'b', 'X', 0)
    regexp_replace(nst, '[^0-9.]', '')
    regexp_replace(dt, '-', '/')
    regexp_replace('100-200', '(\\d+)', 'num')
    regexp_extract(st, '(a)(b)?', 1)
    regexp_extract(st, '(a)(b)?', 2)
    regexp_extract(st, '(a)(b)?', 0)
    regexp_extract(st, '(a)(b)?')
    regexp_extract(st, 'a(.*)$', 1)
    regexp_extract(st, '(t)$', 0)
    regexp_extract(st, '(\\w+)\\s*$', 1)
    regexp_extract(st, 'a', 0)
    regexp_extract(st, 'a', 1)
    regexp_extract(st, '(a)', -1)
    regexp_extract(st, '(a)', NULL)
    regexp_extract(dt, '(\\d+)-(\\d+)', 2)
    regexp_extract(nst, '([0-9]+)', 1)
    regexp_extract('100-200', '(\\d+)-(\\d+)', 1)
    regexp_substr(st, 'b+')
    regexp_substr(st, 'x*')
    regexp_substr(st, '[^a]+$')
    regexp_substr(NULL, 'a')
    regexp_count(st, 'b')
    regexp_count(st, '')
    regexp_count(st, '.')
    regexp_count(st, '$')
    regexp_count(NULL, 'a')
    regexp_count(st, NULL)
""")
GROUPS["functions of numbers"] = (
    [f"{f}({x})" for f in ("sqrt", "ln", "exp", "sign", "signum", "isnan", "positive", "negative") for x in NUMBERS]
    + [
        f"{f}({x})"
        for f in (
            "cbrt",
            "expm1",
            "log",
            "log10",
            "log2",
            "log1p",
            "sin",
            "cos",
            "tan",
            "cot",
            "asin",
            "acos",
            "atan",
            "sinh",
            "cosh",
            "tanh",
            "degrees",
            "radians",
            "rint",
        )
        for x in ("i", "f", "d", "n", "nst", "NULL")
    ]
    + [f"{f}({x}, {x}2)" for f in ("pow", "atan2", "hypot", "log") for x in ("i", "f", "d", "n")]
    + [f"pmod({x}, {x}2)" for x in NUMBERS]
    + [f"bround({x})" for x in NUMBERS]
    + [f"bround({x}, {p})" for x in NUMBERS for p in (1, 2, 3, -1, -2, 9, -9)]
    + [
        f"bround({x})"
        for x in (
            "2.5",
            "-2.5",
            "3.5",
            "0.5D",
            "1.5D",
            "-1.5D",
            "2.50001D",
            "25, -1",
            "35, -1",
            "-25, -1",
            "NULL",
            "nst",
        )
    ]
    + [f"nanvl({x}, {x}2)" for x in ("f", "d", "i", "n")]
    + _lines("""
    power(2, 10)
    power(d, 0.5)
    power(d, 0)
    pow(1, d)
    pow(-1, d)
    pow(d, 'x')
    pow(2, NULL)
    sqrt(-1)
    sqrt('4')
    sqrt(bo)
    sqrt(dt)
    log(10, 100)
    log(2, d)
    log(d, 2)
    log(0, 2)
    log(1, 2)
    log(NULL, 2)
    pi()
    e()
    pmod(-7, 3)
    pmod(7, -3)
    pmod(-7, -3)
    pmod(-7.5, 2)
    pmod(i, 3)
    pmod(n, 3)
    pmod(i, 0)
    pmod(NULL, 3)
    pmod(b, -9223372036854775808)
    pmod(ti, si)
    nanvl(d, 0)
    nanvl(f, 0.0D)
    nanvl(NULL, 1)
    isnan(NULL)
    isnan('NaN')
    sign(-0.0D)
    sign(NULL)
    sign('x')
    negative(nst)
    positive(st)
    rint(2.5)
    rint(3.5)
    greatest(sqrt(d), 1)
    floor(sqrt(abs(i)))
    """)
)
GROUPS["bits"] = (
    [f"{x} {op} {y}2" for op in "&|^" for x in ("ti", "si", "i", "b") for y in ("ti", "si", "i", "b")]
    + [f"~{x}" for x in ("ti", "si", "i", "b", "d", "n", "bo", "NULL")]
    + [
        f"{f}({x}, {y})"
        for f in ("shiftleft", "shiftright", "shiftrightunsigned")
        for x in ("ti", "i", "b")
        for y in ("1", "i2", "-1", "NULL")
    ]
    + _lines("""
    i & 1
    i | 1 & 3
    i ^ 3 & 5 | 8
    1 | 2 ^ 3
    1 + 2 & 3
    i & 3 = 1
    i << 2
    b >> 3
    1 << 2 + 1
    7 & 1 << 1
    i & NULL
    i & '1'
    i & d
    i & n
    bo & bo2
    st | 1
    bit_count(i)
    bit_count(b)
    bit_count(ti)
    bit_count(bo)
    bit_count(NULL)
    bit_count(d)
    bit_count(st)
    shiftleft(b, 65)
    shiftleft(1, 33)
    shiftleft(d, 1)
    shiftleft(i, b)
    shiftleft('1', 2)
    """)
)
GROUPS["functions of dates"] = (
    [f"{f}({x})" for f in ("weekday", "last_day", "dayname", "monthname", "unix_date") for x in ("dt", "ts", "nt")]
    + [
        f"{f}({x})"
        for f in ("unix_timestamp", "to_unix_timestamp", "unix_seconds", "unix_millis", "unix_micros")
        for x in ("ts", "dt", "nt")
    ]
    + [
        f"EXTRACT({f} FROM {x})"
        for f in ("SECOND", "SECONDS", "YEAROFWEEK", "DOW_ISO", "DAYOFWEEK_ISO")
        for x in ("ts", "dt", "nt")
    ]
    + [
        f"date_part('{f}', ts)"
        for f in ("YEAR", "month", "week", "DAY", "doy", "hour", "minute", "SECOND", "yearofweek", "dow", "xyz")
    ]
    + [
        f"timestampdiff({u}, {x})"
        for u in ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")
        for x in ("ts, ts2", "nt, nt2", "dt, dt2")
    ]
    + [
        f"timestampadd({u}, {n}, {x})"
        for u in ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")
        for n, x in (("1", "ts"), ("-13", "nt"), ("ti", "ts2"), ("si", "dt"))
    ]
    + [
        f"date_format({x}, '{p}')"
        for x in ("ts", "dt")
        for p in (
            "yyyy-MM-dd",
            "yyyy-MM-dd HH:mm:ss",
            "y",
            "yy",
            "yyy",
            "yyyyy",
            "M/d/y",
            "MMM dd, yyyy",
            "MMMM",
            "E",
            "EEE",
            "EEEE",
            "D",
            "DDD",
            "Q",
            "QQ",
            "QQQ",
            "QQQQ",
            "q",
            "h:mm a",
            "hh:mm:ss a",
            "k",
            "kk",
            "K",
            "H",
            "m",
            "s",
            "S",
            "SSS",
            "SSSSSS",
            "SSSSSSSSS",
            "yyyyMMdd",
            "LLL",
            "X",
            "XXX",
            "x",
            "xxx",
            "Z",
            "yyyy-MM-dd\\'T\\'HH:mm:ss",
            "\\'quoted\\' yyyy",
            "",
            "MMMMM",
            "EEEEE",
            "Y",
            "w",
            "u",
            "e",
            "c",
            "b",
            "n",
            "G",
            "aa",
            "ddd",
            "SSSSSSSSSS",
        )
    ]
    + [
        f"CAST({a} - {b} AS {t})"
        for a, b in (("ts", "ts2"), ("nt", "nt2"), ("ts", "dt"), ("dt", "ts"), ("ts", "nt"))
        for t in ("BIGINT", "INT", "DECIMAL(20,6)", "DOUBLE")
    ]
    + [
        f"EXTRACT({f} FROM {a} - {b})"
        for f in ("DAY", "HOUR", "MINUTE", "SECOND", "MONTH")
        for a, b in (("ts", "ts2"), ("dt", "ts"), ("nt", "nt2"))
    ]
    + _lines("""
    weekday('2024-02-29')
    weekday(NULL)
    last_day('2024-02-01')
    last_day(dst)
    last_day(NULL)
    last_day(i)
    next_day(dt, 'MON')
    next_day(dt, 'tu')
    next_day(dt, 'Wednesday')
    next_day(dt, 'thu')
    next_day(dt, 'FRI')
    next_day(dt, 'sa')
    next_day(ts, 'SUNDAY')
    next_day(dt, 'x')
    next_day(dt, NULL)
    next_day(NULL, 'MON')
    months_between(ts, ts2)
    months_between(dt, dt2)
    months_between(ts, ts2, false)
    months_between(dt, dt2, false)
    months_between('2024-02-29', '2024-01-31')
    months_between('1997-02-28 10:30:00', '1996-10-30')
    months_between(ts, NULL)
    months_between(ts, ts2, bo)
    make_date(2024, 2, 29)
    make_date(2023, 2, 29)
    make_date(i, 1, 1)
    make_date(si, ti, ti2)
    make_date(2024, ti, 1)
    make_date(2024, 1, ti)
    make_date(NULL, 1, 1)
    make_date('2024', 1, 1)
    date_add(DAY, 1, ts)
    dateadd(MONTH, 1, ts)
    dateadd(HOUR, ti, dt)
    date_diff(DAY, dt, dt2)
    datediff(HOUR, ts, ts2)
    timestampdiff(SECOND, dst, ts)
    timestampdiff(FORTNIGHT, ts, ts2)
    timestampdiff(SECOND, ts, NULL)
    timestampadd(SECOND, i, ts)
    timestampadd(SECOND, NULL, ts)
    unix_timestamp(dst)
    unix_timestamp()
    from_unixtime(0)
    from_unixtime(i)
    from_unixtime(i, 'yyyy')
    from_unixtime(-1, 'yyyy-MM-dd HH:mm:ss')
    from_unixtime(NULL)
    timestamp_seconds(0)
    timestamp_seconds(i)
    timestamp_seconds(b)
    timestamp_millis(i)
    timestamp_millis(b)
    timestamp_micros(b)
    timestamp_micros(i)
    timestamp_seconds(NULL)
    date_from_unix_date(0)
    date_from_unix_date(ti)
    date_from_unix_date(1600000)
    date_from_unix_date(NULL)
    unix_micros(dst)
    unix_timestamp(ts) - unix_timestamp(ts2)
    unix_micros(ts) - unix_micros(ts2)
    date_format(dst, 'yyyy')
    date_format(nt, 'yyyy-MM')
    date_format(NULL, 'yyyy')
    date_format(ts, NULL)
    datepart('year', dt)
    to_date(dst, 'yyyy-MM-dd')
    to_date(dst, 'yyyy-M-d')
    to_date(dst, NULL)
    to_date(dt, 'yyyy')
    to_date('31/12/2024', 'dd/MM/yyyy')
    to_date('20240229', 'yyyyMMdd')
    to_date('20230229', 'yyyyMMdd')
    to_date('29 Feb 2024', 'd MMM yyyy')
    to_date('february 29, 2024', 'MMMM d, yyyy')
    to_date('24-2-9', 'yy-M-d')
    to_timestamp(dst, 'yyyy-MM-dd HH:mm:ss')
    to_timestamp(dst, 'yyyy')
    to_timestamp('2024-02-29 11:59:58.123', 'yyyy-MM-dd HH:mm:ss.SSS')
    to_timestamp('2024-02-29 12:30 am', 'yyyy-MM-dd hh:mm a')
    to_timestamp('2024-02-29 12:30 PM', 'yyyy-MM-dd hh:mm a')
    to_timestamp('2024-02-29 1:30 PM', 'yyyy-MM-dd h:mm a')
    to_timestamp('2024-02-29T01:02:03', 'yyyy-MM-dd\\'T\\'HH:mm:ss')
    to_timestamp('2024-02-29 25:00', 'yyyy-MM-dd HH:mm')
    to_timestamp('2024-02-29 ', 'yyyy-MM-dd')
    to_timestamp('12:30', 'HH:mm')
    to_timestamp_ntz(dst, 'yyyy-MM-dd')
    unix_timestamp(dst, 'yyyy-MM-dd')
    unix_timestamp('2024-02-29 00:00:00')
    ts - ts2
    current_date
    current_date()
    current_timestamp()
    now()
    """)
)
GROUPS["choices by name"] = _lines("""
    nvl2(st, st2, 'x')
    ifnull(d, 0)
    isnull(10 / i)
    iif(bo, 1, 2)
    if(isnan(d), NULL, d)
    nullif(sqrt(d), 0)
""")
