//! Texts, dates and timestamps; expected values are those of Spark 4.3.

mod common;

use common::{batch, call, col, condition, lit, show, try_show, value};
use serde_json::{Value, json};

const DAY: i64 = 86_400_000_000;

fn text(op: &str, args: &[Value]) -> String {
    value(call(op, "string", args))
}

fn cast(source: Value, to: &str) -> Value {
    call("cast", to, &[source])
}

#[test]
fn substrings_count_characters() {
    let substring = |source: &str, position: i32, count: i32| {
        text("substring", &[lit(source, "string"), lit(position, "int"), lit(count, "int")])
    };
    assert_eq!(substring("abc", 1, 2), "ab");
    assert_eq!(substring("abc", 0, 2), "ab");
    assert_eq!(substring("abc", -5, 3), "a");
    assert_eq!(substring("abc", -2, 5), "bc");
    assert_eq!(substring("abc", 1, -1), "");
    assert_eq!(substring("abc", i32::MAX, 5), "");
    assert_eq!(substring("abc", i32::MIN, i32::MAX), "ab");
    assert_eq!(substring("héllo", 2, 2), "él");
    assert_eq!(text("substring", &[lit("日本語", "string"), lit(2, "int")]), "本語");
    assert_eq!(text("left", &[lit("日本語", "string"), lit(2, "int")]), "日本");
    assert_eq!(text("left", &[lit("abc", "string"), lit(-1, "int")]), "");
    assert_eq!(text("right", &[lit("日本語", "string"), lit(2, "int")]), "本語");
    assert_eq!(text("right", &[lit("abc", "string"), lit(10, "int")]), "abc");
    assert_eq!(text("right", &[lit("abc", "string"), lit(i32::MIN, "int")]), "");
}

#[test]
fn text_functions() {
    assert_eq!(text("upper", &[lit("straße", "string")]), "STRASSE");
    assert_eq!(text("lower", &[lit("ΑΣ", "string")]), "ας");
    assert_eq!(text("trim", &[lit("  a\t ", "string")]), "a\t");
    assert_eq!(text("ltrim", &[lit("  a ", "string")]), "a ");
    assert_eq!(text("rtrim", &[lit("  a ", "string")]), "  a");
    assert_eq!(value(call("length", "int", &[lit("héllo ", "string")])), "6");
    assert_eq!(text("concat", &[lit("a", "string"), lit("b", "char(1)"), lit("", "string")]), "ab");
    assert_eq!(text("concat", &[lit("a", "string"), lit(json!(null), "string")]), "NULL");
    assert_eq!(text("replace", &[lit("aXbX", "string"), lit("X", "string"), lit("--", "string")]), "a--b--");
    assert_eq!(text("replace", &[lit("aaa", "string"), lit("", "string"), lit("x", "string")]), "aaa");
    assert_eq!(text("replace", &[lit("aba", "string"), lit("a", "string"), lit("", "string")]), "b");
    for (op, needle, expected) in [
        ("starts_with", "ab", "true"),
        ("ends_with", "ab", "false"),
        ("contains", "bc", "true"),
        ("contains", "", "true"),
    ] {
        assert_eq!(value(call(op, "boolean", &[lit("abcd", "string"), lit(needle, "string")])), expected);
    }
}

#[test]
fn like_with_literals_columns_and_escapes() {
    let columns = batch(&[
        ("string", json!(["PROMO BRUSHED", "a%b", null, "xPROMOx"])),
        ("string", json!(["PROMO%", "a\\%b", "%", "_PROMO_"])),
    ]);
    let like = |args: &[Value]| call("like", "boolean", args);
    assert_eq!(show(like(&[col(0, "string"), col(1, "string")]), &columns), ["true", "true", "NULL", "true"]);
    assert_eq!(show(like(&[col(0, "string"), lit("%PROMO%", "string")]), &columns), ["true", "false", "NULL", "true"]);
    assert_eq!(show(like(&[col(0, "string"), lit("PROMO%", "string")]), &columns), ["true", "false", "NULL", "false"]);
    let escaped = like(&[col(0, "string"), lit("a/%b", "string"), lit("/", "string")]);
    assert_eq!(show(escaped, &columns), ["false", "true", "NULL", "false"]);
    assert_eq!(condition(like(&[lit("abc", "string"), lit("a\\bc", "string")])), "INVALID_FORMAT");
    let columns = batch(&[("string", json!(["a", "b"])), ("string", json!(["a", "b\\"]))]);
    let error = try_show(like(&[col(0, "string"), col(1, "string")]), &columns).unwrap_err();
    assert_eq!((error.code, error.row), ("INVALID_FORMAT", Some(1)));
}

#[test]
fn dates() {
    let date = |text: &str| cast(lit(text, "string"), "date");
    let months = |text: &str, count: i32| value(call("add_months", "date", &[date(text), lit(count, "int")]));
    assert_eq!(months("2020-01-31", 1), "2020-02-29");
    assert_eq!(months("2020-02-29", 12), "2021-02-28");
    assert_eq!(months("2020-01-31", -2), "2019-11-30");
    assert_eq!(months("2020-02-29", 1), "2020-03-29");
    assert_eq!(condition(call("add_months", "date", &[date("2020-01-01"), lit(i32::MAX, "int")])), "DATETIME_OVERFLOW");
    assert_eq!(value(call("date_add", "date", &[date("9999-12-31"), lit(1, "int")])), "+10000-01-01");
    assert_eq!(value(call("date_sub", "date", &[date("0001-01-01"), lit(367, "int")])), "-0001-12-31");
    assert_eq!(condition(call("date_add", "date", &[date("2020-01-01"), lit(i32::MAX, "int")])), "DATETIME_OVERFLOW");
    assert_eq!(value(call("datediff", "int", &[date("2020-01-01"), date("2019-01-01")])), "365");
    for (op, text, expected) in [
        ("weekofyear", "2021-01-03", "53"),
        ("weekofyear", "2020-12-31", "53"),
        ("weekofyear", "2024-12-30", "1"),
        ("weekofyear", "2016-01-01", "53"),
        ("dayofweek", "2021-01-03", "1"),
        ("dayofyear", "2020-12-31", "366"),
        ("quarter", "2020-12-31", "4"),
        ("year", "-0044-03-15", "-44"),
        ("month", "1998-12-01", "12"),
        ("day", "1998-12-01", "1"),
    ] {
        assert_eq!(value(call(op, "int", &[date(text)])), expected, "{op}({text})");
    }
    let trunc = |unit: &str| value(call("trunc", "date", &[date("2021-05-13"), lit(unit, "string")]));
    assert_eq!(
        ["year", "MON", "week", "Quarter", "day", "Q"].map(trunc),
        ["2021-01-01", "2021-05-01", "2021-05-10", "2021-04-01", "NULL", "NULL"]
    );
}

#[test]
fn timestamps() {
    let at = |text: &str| cast(lit(text, "string"), "timestamp");
    let moment = || at("1921-01-03 10:11:12.923456");
    for (op, expected) in [("hour", "10"), ("minute", "11"), ("second", "12"), ("year", "1921"), ("dayofweek", "2")] {
        assert_eq!(value(call(op, "int", &[moment()])), expected, "{op}");
    }
    let trunc = |unit: &str| value(call("date_trunc", "timestamp", &[lit(unit, "string"), moment()]));
    assert_eq!(trunc("week"), "1921-01-03 00:00:00");
    assert_eq!(trunc("YY"), "1921-01-01 00:00:00");
    assert_eq!(trunc("hour"), "1921-01-03 10:00:00");
    assert_eq!(trunc("millisecond"), "1921-01-03 10:11:12.923");
    assert_eq!(trunc("days"), "NULL");
    let add = |micros: i64| call("timestamp_add", "timestamp", &[moment(), lit(micros, "bigint")]);
    assert_eq!(value(add(DAY)), "1921-01-04 10:11:12.923456");
    assert_eq!(condition(add(i64::MIN)), "DATETIME_OVERFLOW");
    let months = call("timestamp_add_months", "timestamp", &[at("2020-01-31 10:00:00.123"), lit(1, "int")]);
    assert_eq!(value(months), "2020-02-29 10:00:00.123");
    let difference = call("timestamp_diff", "bigint", &[at("2020-01-02"), at("2020-01-01")]);
    assert_eq!(value(difference), DAY.to_string());
    assert_eq!(
        condition(call("date_trunc", "timestamp", &[lit("year", "string"), lit(i64::MIN, "timestamp")])),
        "DATETIME_OVERFLOW"
    );
}
