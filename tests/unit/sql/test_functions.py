"""Functions by name: what is refused and how, operators of one level, and patterns of regular expressions."""

import re

import pytest

import everview as ev
from everview.sql.functions.java_regex import translate
from everview.sql.literal import CoercionError


@pytest.fixture
def db():
    with ev.connect() as found:
        found.execute("CREATE TABLE t (x INT, s STRING, d DATE, ts TIMESTAMP)")
        yield found


def refusal(db, expression):
    with pytest.raises(ev.EverviewError) as caught:
        db.create_view("v", f"SELECT {expression} AS r FROM t")
    return caught.value


@pytest.mark.parametrize(
    ("call", "near"),
    [
        ("uper(s)", "upper"),
        ("regex_like(s, 'a')", "regexp_like"),
        ("substrng(s, 1)", "substring"),
        ("concatws('-', s)", "concat_ws"),
    ],
)
def test_unknown_functions_are_refused_with_close_names(db, call, near):
    error = refusal(db, call)
    assert error.code == "UNSUPPORTED_FUNCTION"
    assert f"`{near}`" in error.hint


@pytest.mark.parametrize(
    "call", ["now()", "rand()", "uuid()", "current_date", "unix_timestamp()", "current_timestamp()"]
)
def test_what_changes_by_itself_is_refused_by_name(db, call):
    assert refusal(db, call).code == "NONDETERMINISTIC_FUNCTION"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("regexp_like(s, s)", "must be a string literal"),
        ("s RLIKE '(a)\\\\1'", "a back reference"),
        ("s RLIKE 'a(?=b)'", "look-ahead"),
        ("s RLIKE '(?<!a)b'", "negative look-behind"),
        ("s RLIKE 'a++'", "a possessive quantifier"),
        ("s RLIKE '(?m)^a'", "the flag `m`"),
        ("s RLIKE '[a[b]]'", "a class inside of a class"),
        ("s RLIKE '('", "an opening parenthesis"),
        ("s RLIKE ')'", "a closing parenthesis"),
        ("s RLIKE '*a'", "a `*` without anything before it"),
        ("s RLIKE 'a**'", "a `*` without anything before it"),
        ("s RLIKE 'a{2,1}'", "at least more than at most"),
        ("s RLIKE 'a{1001}'", "a repetition of more than 1000"),
        ("s RLIKE '[a'", "an end where more is expected"),
        ("s RLIKE '[b-a]'", "a range that is none"),
        ("s RLIKE '\\\\j'", "the escape `\\j`"),
        ("regexp_extract(s, 'a', 1)", "there is no group 1"),
        ("date_format(ts, 'w')", "`w` in a format is not supported"),
        ("date_format(ts, s)", "must be a string literal"),
        ("timestampdiff(FORTNIGHT, ts, ts)", "is not a unit"),
        ("next_day(d, 'x')", "is not a day of the week"),
        ("sha2(s, 512)", "must be 256"),
        ("lpad(CAST(s AS BINARY), 3)", "takes strings"),
        ("x & 1.5", "bit operations take integers"),
    ],
)
def test_arguments_are_refused_with_the_reason(db, call, said):
    error = refusal(db, call)
    assert error.code == "TYPE_MISMATCH"
    assert said in str(error)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 | 2 & 3", 1 | 2 & 3),
        ("1 ^ 2 | 4 & 6", 1 ^ 2 | 4 & 6),
        ("1 << 2 & 7", 4),
        ("1 << 2 + 1", 8),
        ("x & 4 | 2", 6),
        ("~x", -6),
    ],
)
def test_operators_that_are_parsed_on_one_level_have_their_precedence(db, expression, expected):
    view = db.create_view("v", f"SELECT {expression} AS r FROM t")
    db.insert("t", [(5, "a", None, None)])
    assert view.to_arrow().column("r").to_pylist() == [expected]


def test_a_text_that_would_be_huge_refuses_the_batch(db):
    view = db.create_view("v", "SELECT repeat(s, x) AS r FROM t")
    with pytest.raises(ev.ChangeError) as caught:
        db.insert("t", [(2147483647, "a", None, None)])
    assert caught.value.code == "EXCEED_LIMIT_LENGTH"
    assert view.to_arrow().num_rows == 0


def test_functions_see_deletes(db):
    view = db.create_view(
        "v", "SELECT upper(s) AS u, COUNT(*) AS n, SUM(length(concat_ws('-', s, x))) AS l FROM t GROUP BY upper(s)"
    )
    db.insert("t", [(5, "a", None, None), (6, "A", None, None), (None, "b", None, None)])
    assert sorted(view.to_arrow().to_pylist(), key=str) == [{"u": "A", "n": 2, "l": 6}, {"u": "B", "n": 1, "l": 1}]
    db.delete("t", [(5, "a", None, None)])
    assert sorted(view.to_arrow().to_pylist(), key=str) == [{"u": "A", "n": 1, "l": 3}, {"u": "B", "n": 1, "l": 1}]


@pytest.mark.parametrize(
    ("pattern", "expected", "groups"),
    [
        ("a.c", r"a[^\n\r\u{85}\u{2028}\u{2029}]c", 0),
        ("(?s)a.c", "a(?s:.)c", 0),
        (r"(\d+)-(?<y>\w)", r"([0-9]+)\-(?P<y>[a-zA-Z_0-9])", 2),
        ("(?i)a[b-d]", "[aA][b-dB-D]", 0),
        ("(?i:a)a", "(?:[aA])a", 0),
        (r"[^\S\n]", r"[^[^ \t\n\x0B\f\r]\u{A}]", 0),
        (r"\Qa.b\E+", r"(?:a\.b)+", 0),
        ("a{2,}?", "a{2,}?", 0),
        (r"\p{Alpha}\P{L}", r"[[:alpha:]][\P{L}]", 0),
    ],
)
def test_patterns_are_translated(pattern, expected, groups):
    assert translate(pattern) == (expected, groups)


def test_the_end_of_a_text_may_have_a_line_terminator_before_it():
    text, groups = translate("a$|b$")
    assert groups == 0
    assert len(re.findall(r"\(\?P<__end\d>", text)) == 2


def test_a_pattern_that_is_none_is_refused():
    with pytest.raises(CoercionError):
        translate("a(")
