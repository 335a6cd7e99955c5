//! Arithmetic, rounding and comparisons; expected values are those of Spark 4.3 in ANSI mode.

mod common;

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch};
use arrow_buffer::NullBuffer;
use common::{batch, call, col, condition, lit, show, try_show, value};
use serde_json::{Value, json};

fn binary(op: &str, result: &str, left: (Value, &str), right: (Value, &str)) -> Value {
    call(op, result, &[lit(left.0, left.1), lit(right.0, right.1)])
}

fn same(op: &str, data_type: &str, left: Value, right: Value) -> Value {
    binary(op, data_type, (left, data_type), (right, data_type))
}

#[test]
fn integers_overflow_is_an_error() {
    let columns = batch(&[("int", json!([1, null, 2_147_483_647, -3])), ("int", json!([2, 5, null, 4]))]);
    let sum = call("add", "int", &[col(0, "int"), col(1, "int")]);
    assert_eq!(show(sum, &columns), ["3", "NULL", "NULL", "1"]);
    let next = call("add", "int", &[col(0, "int"), lit(1, "int")]);
    let error = try_show(next, &columns).unwrap_err();
    assert_eq!((error.code, error.row), ("ARITHMETIC_OVERFLOW", Some(2)));
    assert_eq!(condition(same("add", "smallint", json!(32767), json!(1))), "ARITHMETIC_OVERFLOW");
    assert_eq!(condition(same("subtract", "bigint", json!(i64::MIN), json!(1))), "ARITHMETIC_OVERFLOW");
    assert_eq!(condition(same("multiply", "bigint", json!(i64::MAX), json!(2))), "ARITHMETIC_OVERFLOW");
    assert_eq!(condition(call("negate", "int", &[lit(i32::MIN, "int")])), "ARITHMETIC_OVERFLOW");
    assert_eq!(condition(call("abs", "smallint", &[lit(-32768, "smallint")])), "ARITHMETIC_OVERFLOW");
}

#[test]
fn overflow_under_null_does_not_count() {
    let values = vec![i32::MAX, 1];
    let array: ArrayRef = Arc::new(Int32Array::new(values.into(), Some(NullBuffer::from(vec![false, true]))));
    let columns = RecordBatch::try_from_iter([("c0", array)]).unwrap();
    for op in ["add", "multiply"] {
        let total = call(op, "int", &[col(0, "int"), lit(2, "int")]);
        assert_eq!(show(total, &columns)[0], "NULL");
    }
    assert_eq!(show(call("negate", "int", &[col(0, "int")]), &columns), ["NULL", "-1"]);
}

/// Quotients and products of 38 digits round once.
#[test]
fn decimals_round_once() {
    let quotient =
        binary("divide", "decimal(38,38)", (json!("-0.0005074"), "decimal(7,7)"), (json!("4144"), "decimal(38,0)"));
    assert_eq!(value(quotient), "-0.00000012244208494208494208494208494208");
}

#[test]
fn division_by_zero() {
    assert_eq!(condition(same("divide", "double", json!(1.0), json!(0.0))), "DIVIDE_BY_ZERO");
    assert_eq!(condition(same("divide", "double", json!(1.0), json!(-0.0))), "DIVIDE_BY_ZERO");
    assert_eq!(condition(binary("int_div", "bigint", (json!(5), "int"), (json!(0), "int"))), "DIVIDE_BY_ZERO");
    assert_eq!(condition(same("modulo", "int", json!(5), json!(0))), "REMAINDER_BY_ZERO");
    assert_eq!(condition(same("modulo", "double", json!(5.5), json!(0.0))), "REMAINDER_BY_ZERO");
    assert_eq!(value(same("divide", "double", json!(null), json!(0.0))), "NULL");
}

#[test]
fn quotients_and_remainders() {
    assert_eq!(value(binary("int_div", "bigint", (json!(-5), "int"), (json!(2), "int"))), "-2");
    assert_eq!(condition(same("int_div", "bigint", json!(i64::MIN), json!(-1))), "ARITHMETIC_OVERFLOW");
    assert_eq!(value(same("modulo", "int", json!(-5), json!(3))), "-2");
    assert_eq!(value(same("modulo", "int", json!(i32::MIN), json!(-1))), "0");
    assert_eq!(value(same("modulo", "double", json!(-5.5), json!(2.0))), "-1.5");
    let decimal = binary("modulo", "decimal(3,2)", (json!("-5.55"), "decimal(3,2)"), (json!("2.1"), "decimal(2,1)"));
    assert_eq!(value(decimal), "-1.35");
    let quotient = binary("int_div", "bigint", (json!("10.5"), "decimal(3,1)"), (json!("0.4"), "decimal(2,1)"));
    assert_eq!(value(quotient), "26");
}

#[test]
fn decimals_settle_in_the_result_type() {
    let big = "99999999999999999999999999999999999999";
    assert_eq!(
        condition(binary("add", "decimal(38,0)", (json!(big), "decimal(38,0)"), (json!("1"), "decimal(1,0)"))),
        "NUMERIC_VALUE_OUT_OF_RANGE"
    );
    let third = binary("divide", "decimal(38,6)", (json!("1"), "decimal(38,18)"), (json!("3"), "decimal(38,18)"));
    assert_eq!(value(third), "0.333333");
    let large = binary("divide", "decimal(38,6)", (json!("1"), "decimal(38,0)"), (json!("0.000003"), "decimal(38,37)"));
    assert_eq!(value(large), "333333.333333");
    let product =
        binary("multiply", "decimal(38,6)", (json!("1.0000005"), "decimal(38,7)"), (json!("1"), "decimal(38,0)"));
    assert_eq!(value(product), "1.000001");
    assert_eq!(
        condition(binary("divide", "decimal(38,6)", (json!(big), "decimal(38,0)"), (json!("0.001"), "decimal(10,3)"))),
        "NUMERIC_VALUE_OUT_OF_RANGE"
    );
}

#[test]
fn rounding_is_half_up_by_decimal_digits() {
    let round = |x: Value, data_type: &str, places: i32, result: &str| {
        call("round", result, &[lit(x, data_type), lit(places, "int")])
    };
    for (x, places, expected) in [
        (2.5, 0, "3.0"),
        (-2.5, 0, "-3.0"),
        (0.285, 2, "0.29"),
        (1.005, 2, "1.01"),
        (-0.4, 0, "0.0"),
        (1e300, -299, "1.0E300"),
        (999.96, 1, "1000.0"),
        (4.0, -1, "0.0"),
        (5.0, -1, "10.0"),
        (0.04, 0, "0.0"),
        (0.5, 0, "1.0"),
    ] {
        assert_eq!(value(round(json!(x), "double", places, "double")), expected, "round({x}, {places})");
    }
    assert_eq!(value(round(json!("nan"), "double", 2, "double")), "NaN");
    assert_eq!(value(round(json!(12345), "int", -2, "int")), "12300");
    assert_eq!(value(round(json!(i32::MAX), "int", -10, "int")), "0");
    assert_eq!(condition(round(json!(i32::MAX), "int", -1, "int")), "ARITHMETIC_OVERFLOW");
    assert_eq!(value(round(json!("12345.678"), "decimal(8,3)", -2, "decimal(6,0)")), "12300");
    assert_eq!(value(round(json!("99.99"), "decimal(4,2)", 1, "decimal(4,1)")), "100.0");
}

#[test]
fn floors_and_ceilings() {
    let floor = |op: &str, x: Value, data_type: &str, result: &str| call(op, result, &[lit(x, data_type)]);
    assert_eq!(value(floor("floor", json!(-1.5), "double", "bigint")), "-2");
    assert_eq!(value(floor("ceil", json!(-0.5), "double", "bigint")), "0");
    assert_eq!(value(floor("floor", json!("nan"), "double", "bigint")), "0");
    assert_eq!(condition(floor("floor", json!(1e30), "double", "bigint")), "ARITHMETIC_OVERFLOW");
    assert_eq!(value(floor("floor", json!("-1.5"), "decimal(2,1)", "decimal(2,0)")), "-2");
    assert_eq!(value(floor("ceil", json!("99.9"), "decimal(3,1)", "decimal(3,0)")), "100");
}

#[test]
fn doubles_compare_as_sql_says() {
    let columns = batch(&[
        ("double", json!(["nan", "nan", -0.0, 1.0, null, "inf"])),
        ("double", json!(["nan", "inf", 0.0, "nan", 1.0, "inf"])),
    ]);
    let compare = |op: &str| show(call(op, "boolean", &[col(0, "double"), col(1, "double")]), &columns);
    assert_eq!(compare("eq"), ["true", "false", "true", "false", "NULL", "true"]);
    assert_eq!(compare("ne"), ["false", "true", "false", "true", "NULL", "false"]);
    assert_eq!(compare("lt"), ["false", "false", "false", "true", "NULL", "false"]);
    assert_eq!(compare("ge"), ["true", "true", "true", "false", "NULL", "true"]);
    assert_eq!(compare("gt"), ["false", "true", "false", "false", "NULL", "false"]);
    assert_eq!(compare("le"), ["true", "false", "true", "true", "NULL", "true"]);
    assert_eq!(compare("eq_null_safe"), ["true", "false", "true", "false", "false", "true"]);
}

#[test]
fn decimals_compare_by_value() {
    let columns = batch(&[
        ("decimal(38,0)", json!(["1", "99999999999999999999999999999999999999", null])),
        ("decimal(38,38)", json!(["0.5", "0.99999999999999999999999999999999999999", "0.1"])),
    ]);
    let args = [col(0, "decimal(38,0)"), col(1, "decimal(38,38)")];
    assert_eq!(show(call("gt", "boolean", &args), &columns), ["true", "true", "NULL"]);
    let equal = call("eq", "boolean", &[lit("1.50", "decimal(3,2)"), lit("1.5", "decimal(2,1)")]);
    assert_eq!(value(equal), "true");
}

#[test]
fn extremes_skip_nulls_and_know_nan() {
    let columns = batch(&[("double", json!([1.0, null, null, 0.0])), ("double", json!(["nan", 2.0, null, -0.0]))]);
    let args = [col(0, "double"), col(1, "double")];
    assert_eq!(show(call("greatest", "double", &args), &columns), ["NaN", "2.0", "NULL", "0.0"]);
    assert_eq!(show(call("least", "double", &args), &columns), ["1.0", "2.0", "NULL", "0.0"]);
    let constant = call("greatest", "double", &[lit(3.0, "double"), col(1, "double"), lit(json!(null), "null")]);
    assert_eq!(show(constant, &columns), ["NaN", "3.0", "3.0", "3.0"]);
}
