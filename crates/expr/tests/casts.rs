//! Casts; expected values are those of Spark 4.3 in ANSI mode.

mod common;

use common::{batch, call, col, condition, lit, show, try_show, value};
use serde_json::{Value, json};

fn cast(source: Value, from: &str, to: &str) -> Value {
    call("cast", to, &[lit(source, from)])
}

#[test]
fn numbers_among_each_other() {
    let cases = [
        (json!(127.9), "double", "tinyint", "127"),
        (json!("-128.9"), "decimal(4,1)", "tinyint", "-128"),
        (json!(-128), "tinyint", "decimal(3,0)", "-128"),
        (json!(32767.9), "double", "smallint", "32767"),
        (json!(-32768.9), "double", "smallint", "-32768"),
        (json!(9.223_372_036_854_776e18), "double", "bigint", "9223372036854775807"),
        (json!(1e39), "double", "float", "Infinity"),
        (json!("2.5"), "decimal(2,1)", "int", "2"),
        (json!("-2.5"), "decimal(2,1)", "int", "-2"),
        (json!("-2.5"), "decimal(2,1)", "decimal(1,0)", "-3"),
        (json!(0.05), "double", "decimal(3,1)", "0.1"),
        (json!(0.1), "float", "decimal(20,18)", "0.100000001490116120"),
        (json!("nan"), "double", "decimal(10,2)", "NULL"),
        (json!("12345678901234567890.12"), "decimal(22,2)", "double", "1.2345678901234567E19"),
        (json!("123456789.987"), "decimal(12,3)", "float", "1.2345679E8"),
        (json!(7), "int", "decimal(5,2)", "7.00"),
        (json!(true), "boolean", "bigint", "1"),
        (json!(0.0), "double", "boolean", "false"),
        (json!("0.01"), "decimal(3,2)", "boolean", "true"),
    ];
    for (source, from, to, expected) in cases {
        assert_eq!(value(cast(source.clone(), from, to)), expected, "{source} {from} to {to}");
    }
    let errors = [
        (json!("nan"), "double", "int", "CAST_OVERFLOW"),
        (json!(1e30), "double", "bigint", "CAST_OVERFLOW"),
        (json!(128), "smallint", "tinyint", "CAST_OVERFLOW"),
        (json!(128.0), "float", "tinyint", "CAST_OVERFLOW"),
        (json!(-128), "tinyint", "decimal(2,0)", "NUMERIC_VALUE_OUT_OF_RANGE"),
        (json!(40000), "int", "smallint", "CAST_OVERFLOW"),
        (json!("99999.9"), "decimal(6,1)", "smallint", "CAST_OVERFLOW"),
        (json!("99.5"), "decimal(3,1)", "decimal(2,0)", "NUMERIC_VALUE_OUT_OF_RANGE"),
        (json!(1000), "int", "decimal(5,2)", "NUMERIC_VALUE_OUT_OF_RANGE"),
        (json!(true), "boolean", "decimal(1,1)", "NUMERIC_VALUE_OUT_OF_RANGE"),
        (json!(i64::MAX), "bigint", "timestamp", "CAST_OVERFLOW"),
        (json!("nan"), "double", "timestamp", "CAST_INVALID_INPUT"),
    ];
    for (source, from, to, code) in errors {
        assert_eq!(condition(cast(source.clone(), from, to)), code, "{source} {from} to {to}");
    }
}

#[test]
fn texts_to_values() {
    let cases = [
        (" 42\t", "int", "42"),
        ("+5", "int", "5"),
        (" 1e2 ", "decimal(5,1)", "100.0"),
        (".5", "decimal(3,1)", "0.5"),
        ("1e-2000000000", "decimal(5,1)", "0.0"),
        ("1.5d", "double", "1.5"),
        ("inf", "double", "Infinity"),
        ("1e39", "float", "Infinity"),
        (" Yes", "boolean", "true"),
        ("F", "boolean", "false"),
        (" 2020-1-5 ", "date", "2020-01-05"),
        ("2020-1-5T01:02:03+01:30", "timestamp", "2020-01-04 23:32:03"),
        ("2020-1-5T01:02:03+01:30", "timestamp_ntz", "2020-01-05 01:02:03"),
        ("-128", "tinyint", "-128"),
        (" é ", "binary", " é "),
    ];
    for (text, to, expected) in cases {
        assert_eq!(value(cast(json!(text), "string", to)), expected, "{text} to {to}");
    }
    let errors = [
        ("5.", "int", "CAST_INVALID_INPUT"),
        ("", "int", "CAST_INVALID_INPUT"),
        ("99999999999", "int", "CAST_INVALID_INPUT"),
        ("+nan", "double", "CAST_INVALID_INPUT"),
        ("abc", "decimal(5,1)", "CAST_INVALID_INPUT"),
        ("1e5", "decimal(5,1)", "NUMERIC_VALUE_OUT_OF_RANGE"),
        ("1e2000000000", "decimal(5,1)", "NUMERIC_OUT_OF_SUPPORTED_RANGE"),
        ("tru", "boolean", "CAST_INVALID_INPUT"),
        ("2020-02-30", "date", "CAST_INVALID_INPUT"),
        ("12:30", "timestamp", "CAST_INVALID_INPUT"),
        ("12:30", "timestamp_ntz", "CAST_INVALID_INPUT"),
        ("128", "tinyint", "CAST_INVALID_INPUT"),
    ];
    for (text, to, code) in errors {
        assert_eq!(condition(cast(json!(text), "string", to)), code, "{text} to {to}");
    }
    let columns = batch(&[("string", json!(["1", null, "x", "y"]))]);
    let error = try_show(call("cast", "int", &[col(0, "string")]), &columns).unwrap_err();
    assert_eq!(error.row, Some(2));
    assert!(error.message.contains("'x'"), "{}", error.message);
}

#[test]
fn values_to_texts() {
    let cases = [
        (json!(1e10), "double", "1.0E10"),
        (json!(1e-5), "double", "1.0E-5"),
        (json!(0.1), "float", "0.1"),
        (json!("0.000001"), "decimal(7,6)", "0.000001"),
        (json!(true), "boolean", "true"),
        (json!(-1), "timestamp", "1969-12-31 23:59:59.999999"),
        (json!(1_500_000), "timestamp", "1970-01-01 00:00:01.5"),
        (json!(-719_162), "date", "0001-01-01"),
        (json!(-32768), "smallint", "-32768"),
    ];
    for (source, from, expected) in cases {
        assert_eq!(value(cast(source, from, "string")), expected);
    }
}

#[test]
fn bytes_are_a_text_only_if_they_are_utf8() {
    assert_eq!(value(cast(json!("c3a9"), "binary", "string")), "é");
    assert_eq!(value(call("length", "int", &[lit("c3a9", "binary")])), "2");
    let columns = batch(&[("binary", json!(["", null, "61C3", "80"]))]);
    let error = try_show(call("cast", "string", &[col(0, "binary")]), &columns).unwrap_err();
    assert_eq!((error.code, error.row), ("CAST_INVALID_INPUT", Some(2)));
    assert!(error.message.contains("X'61C3'"), "{}", error.message);
}

#[test]
fn declared_lengths() {
    let shown = |source: &str, to: &str| {
        value(call("concat", "string", &[cast(json!(source), "string", to), lit("|", "string")]))
    };
    assert_eq!(shown("a", "char(3)"), "a  |");
    assert_eq!(shown("a    ", "char(3)"), "a  |");
    assert_eq!(shown("a", "varchar(3)"), "a|");
    assert_eq!(shown("ab   ", "varchar(3)"), "ab |");
    assert_eq!(shown("日本語", "char(3)"), "日本語|");
    assert_eq!(condition(cast(json!("abcd"), "string", "char(3)")), "EXCEED_LIMIT_LENGTH");
    assert_eq!(condition(cast(json!("日本語!"), "string", "varchar(3)")), "EXCEED_LIMIT_LENGTH");
    assert_eq!(condition(cast(json!(12345), "int", "varchar(3)")), "EXCEED_LIMIT_LENGTH");
    assert_eq!(value(cast(json!("ab "), "char(3)", "string")), "ab ");
}

#[test]
fn times() {
    assert_eq!(value(cast(json!(-500_000), "timestamp", "bigint")), "-1");
    assert_eq!(value(cast(json!(-500_000), "timestamp", "double")), "-0.5");
    assert_eq!(value(cast(json!(-500_000), "timestamp", "decimal(10,3)")), "-0.500");
    assert_eq!(value(cast(json!(1.5), "double", "timestamp")), "1970-01-01 00:00:01.5");
    assert_eq!(value(cast(json!("1.1234567"), "decimal(8,7)", "timestamp")), "1970-01-01 00:00:01.123456");
    assert_eq!(value(cast(json!(-1), "timestamp", "date")), "1969-12-31");
    assert_eq!(value(cast(json!(1), "date", "timestamp")), "1970-01-02 00:00:00");
    assert_eq!(value(cast(json!(1), "date", "timestamp_ntz")), "1970-01-02 00:00:00");
    assert_eq!(value(cast(json!(-1), "timestamp_ntz", "date")), "1969-12-31");
    assert_eq!(value(cast(json!(-1), "timestamp", "timestamp_ntz")), "1969-12-31 23:59:59.999999");
    assert_eq!(condition(cast(json!(i32::MAX), "date", "timestamp_ntz")), "DATETIME_OVERFLOW");
    assert_eq!(condition(cast(json!(i32::MAX), "date", "timestamp")), "DATETIME_OVERFLOW");
    assert_eq!(condition(cast(json!(2_177_452_800_000_000_i64), "timestamp", "int")), "CAST_OVERFLOW");
}

#[test]
fn null_casts_to_everything() {
    for to in ["boolean", "int", "decimal(5,2)", "string", "char(3)", "date", "timestamp", "null"] {
        let source = call("cast", to, &[lit(json!(null), "null")]);
        if to == "null" {
            assert_eq!(common::expr(source).evaluate(&common::rows(2)).unwrap().len(), 2);
        } else {
            assert_eq!(show(source, &common::rows(2)), ["NULL", "NULL"]);
        }
    }
}
