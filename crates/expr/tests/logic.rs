//! Three-valued logic, choices and which rows their arguments are evaluated on.

mod common;

use arrow_array::Array;
use common::{batch, call, col, condition, expr, lit, refusal, rows, show, try_show, value};
use serde_json::{Value, json};

/// `c1 / c2`, which fails where `c2` is zero.
fn ratio() -> Value {
    call("divide", "double", &[col(1, "double"), col(2, "double")])
}

fn risky() -> Value {
    call("gt", "boolean", &[ratio(), lit(1.0, "double")])
}

#[test]
fn connectives_are_three_valued() {
    let columns = batch(&[
        ("boolean", json!([true, true, true, false, false, false, null, null, null])),
        ("boolean", json!([true, false, null, true, false, null, true, false, null])),
    ]);
    let args = [col(0, "boolean"), col(1, "boolean")];
    assert_eq!(
        show(call("and", "boolean", &args), &columns),
        ["true", "false", "NULL", "false", "false", "false", "NULL", "false", "NULL"]
    );
    assert_eq!(
        show(call("or", "boolean", &args), &columns),
        ["true", "true", "true", "true", "false", "NULL", "true", "NULL", "NULL"]
    );
    assert_eq!(show(call("not", "boolean", &args[..1]), &columns)[5..7], ["true", "NULL"]);
}

#[test]
fn decided_rows_cannot_fail() {
    let columns = batch(&[
        ("boolean", json!([false, true, false, true])),
        ("double", json!([1.0, 4.0, 1.0, 1.0])),
        ("double", json!([0.0, 2.0, 0.0, 5.0])),
    ]);
    let guarded = call("and", "boolean", &[col(0, "boolean"), risky()]);
    assert_eq!(show(guarded, &columns), ["false", "true", "false", "false"]);
    let unguarded = call("or", "boolean", &[col(0, "boolean"), risky()]);
    let error = try_show(unguarded, &columns).unwrap_err();
    assert_eq!((error.code, error.row), ("DIVIDE_BY_ZERO", Some(0)));
    assert_eq!(error.to_string(), "[DIVIDE_BY_ZERO] division by zero (row 0)");
}

#[test]
fn null_does_not_decide() {
    let columns =
        batch(&[("boolean", json!([true, null])), ("double", json!([1.0, 1.0])), ("double", json!([1.0, 0.0]))]);
    let error = try_show(call("and", "boolean", &[col(0, "boolean"), risky()]), &columns).unwrap_err();
    assert_eq!(error.row, Some(1));
}

#[test]
fn rows_of_errors_are_those_of_the_batch() {
    // Nested selections: rows 1, 3, 4 reach the case, rows 3 and 4 its second branch, row 4 fails.
    let columns = batch(&[
        ("boolean", json!([false, true, false, true, true])),
        ("double", json!([1.0, 1.0, 1.0, 1.0, 1.0])),
        ("double", json!([0.0, 1.0, 0.0, 2.0, 0.0])),
        ("boolean", json!([false, true, false, false, false])),
    ]);
    let inner = call("case", "boolean", &[col(3, "boolean"), lit(true, "boolean"), risky()]);
    let error = try_show(call("and", "boolean", &[col(0, "boolean"), inner]), &columns).unwrap_err();
    assert_eq!((error.code, error.row), ("DIVIDE_BY_ZERO", Some(4)));
}

#[test]
fn the_first_offending_row_is_reported_whatever_fails_first() {
    let columns = batch(&[("int", json!([1, 2, 3, 0])), ("int", json!([5, 0, 7, 8]))]);
    let quotient = |index| call("int_div", "bigint", &[lit(1, "int"), col(index, "int")]);
    let error = try_show(call("add", "bigint", &[quotient(0), quotient(1)]), &columns).unwrap_err();
    assert_eq!(error.row, Some(1));
}

#[test]
fn arguments_after_a_null_are_not_evaluated() {
    let columns =
        batch(&[("double", json!([null, 1.0])), ("double", json!([1.0, 1.0])), ("double", json!([0.0, 2.0]))]);
    assert_eq!(show(call("add", "double", &[col(0, "double"), ratio()]), &columns), ["NULL", "1.5"]);
    assert!(try_show(call("add", "double", &[ratio(), col(0, "double")]), &columns).is_err());
    // Divisors come first.
    assert_eq!(show(call("divide", "double", &[ratio(), col(0, "double")]), &columns), ["NULL", "0.5"]);
}

#[test]
fn choices_evaluate_only_what_they_choose() {
    let columns = batch(&[
        ("boolean", json!([true, false, null])),
        ("double", json!([1.0, 1.0, 3.0])),
        ("double", json!([0.0, 2.0, 1.5])),
    ]);
    let zero = call("eq", "boolean", &[col(2, "double"), lit(0.0, "double")]);
    let guarded = call("if", "double", &[zero.clone(), lit(json!(null), "null"), ratio()]);
    assert_eq!(show(guarded, &columns), ["NULL", "0.5", "2.0"]);
    let case = call("case", "double", &[zero, lit(-1.0, "double"), risky(), ratio(), lit(json!(null), "double")]);
    assert_eq!(show(case, &columns), ["-1.0", "NULL", "2.0"]);
    let coalesced =
        call("coalesce", "double", &[call("nullif", "double", &[col(1, "double"), lit(3.0, "double")]), ratio()]);
    assert_eq!(show(coalesced, &columns), ["1.0", "1.0", "2.0"]);
    let never = call("coalesce", "double", &[lit(json!(null), "null"), lit(json!(null), "double")]);
    assert_eq!(show(never, &columns), ["NULL", "NULL", "NULL"]);
}

#[test]
fn constants_that_fail_fail_only_where_evaluated() {
    let bad = call("int_div", "bigint", &[lit(1, "int"), lit(0, "int")]);
    assert_eq!(condition(bad.clone()), "DIVIDE_BY_ZERO");
    assert_eq!(show(bad.clone(), &rows(0)), Vec::<String>::new());
    let guarded = call("if", "bigint", &[lit(true, "boolean"), lit(1, "bigint"), bad]);
    assert_eq!(show(guarded, &rows(3)), ["1", "1", "1"]);
}

#[test]
fn membership_with_nulls() {
    let columns = batch(&[("int", json!([1, 2, null])), ("int", json!([null, 1, 1]))]);
    let membership = |args: &[Value]| show(call("in", "boolean", args), &columns);
    assert_eq!(membership(&[col(0, "int"), lit(1, "int"), lit(5, "int")]), ["true", "false", "NULL"]);
    assert_eq!(membership(&[col(0, "int"), lit(1, "int"), lit(json!(null), "int")]), ["true", "NULL", "NULL"]);
    assert_eq!(membership(&[col(0, "int"), col(1, "int"), lit(2, "int")]), ["NULL", "true", "NULL"]);
    let doubles = call("in", "boolean", &[lit(-0.0, "double"), lit(0.0, "double")]);
    assert_eq!(value(doubles), "true");
    let nan = call("in", "boolean", &[lit("nan", "double"), lit("nan", "double")]);
    assert_eq!(value(nan), "true");
    let decimals = call("in", "boolean", &[lit("1.5", "decimal(2,1)"), lit("1.50", "decimal(3,2)")]);
    assert_eq!(value(decimals), "true");
    let finer = call("in", "boolean", &[lit("1.5", "decimal(2,1)"), lit("1.51", "decimal(3,2)")]);
    assert_eq!(value(finer), "false");
    let texts = call("in", "boolean", &[lit("b", "string"), lit("a", "string"), lit("b", "string")]);
    assert_eq!(value(texts), "true");
    let truth = call("in", "boolean", &[lit(false, "boolean"), lit(true, "boolean")]);
    assert_eq!(value(truth), "false");
}

#[test]
fn membership_short_circuits() {
    let columns =
        batch(&[("double", json!([1.0, null])), ("double", json!([1.0, 1.0])), ("double", json!([0.0, 0.0]))]);
    assert_eq!(show(call("in", "boolean", &[col(0, "double"), col(1, "double"), ratio()]), &columns), ["true", "NULL"]);
}

#[test]
fn null_tests() {
    let columns = batch(&[("int", json!([1, null]))]);
    assert_eq!(show(call("is_null", "boolean", &[col(0, "int")]), &columns), ["false", "true"]);
    assert_eq!(show(call("is_not_null", "boolean", &[col(0, "int")]), &columns), ["true", "false"]);
    assert_eq!(show(call("is_null", "boolean", &[lit(json!(null), "null")]), &columns), ["true", "true"]);
}

#[test]
fn predicates_have_no_nulls() {
    let columns = batch(&[("int", json!([1, null, 5]))]);
    let predicate = expr(call("lt", "boolean", &[col(0, "int"), lit(3, "int")]));
    let result = predicate.evaluate_predicate(&columns).unwrap();
    assert_eq!(result.iter().collect::<Vec<_>>(), [Some(true), Some(false), Some(false)]);
    let error = expr(col(0, "int")).evaluate_predicate(&columns).unwrap_err();
    assert_eq!(error.code, "INVALID_EXPRESSION");
}

#[test]
fn columns_must_fit_the_batch() {
    let columns = batch(&[("int", json!([1]))]);
    for wrong in [col(1, "int"), col(0, "bigint"), col(0, "string")] {
        let error = expr(wrong).evaluate(&columns).unwrap_err();
        assert_eq!((error.code, error.row), ("INVALID_EXPRESSION", None));
    }
    assert!(refusal(call("if", "int", &[col(0, "int"), col(0, "int"), col(0, "int")])).contains("boolean condition"));
}

#[test]
fn empty_batches_give_empty_columns() {
    let columns = batch(&[("boolean", json!([true])), ("double", json!([1.0])), ("double", json!([0.0]))]).slice(0, 0);
    for source in [risky(), ratio(), call("and", "boolean", &[col(0, "boolean"), risky()]), lit("x", "string")] {
        assert_eq!(show(source, &columns), Vec::<String>::new());
    }
}

#[test]
fn choices_of_nothing_but_null() {
    let columns = batch(&[("boolean", json!([true, false]))]);
    let null = || lit(json!(null), "null");
    for source in [
        call("case", "null", &[col(0, "boolean"), null(), null()]),
        call("coalesce", "null", &[null(), null()]),
        call("greatest", "null", &[null(), null()]),
    ] {
        assert_eq!(expr(source).evaluate(&columns).unwrap().logical_null_count(), 2);
    }
}

#[test]
fn nullif_compares_only_what_is_there() {
    let columns =
        batch(&[("double", json!([null, 0.5])), ("double", json!([1.0, 1.0])), ("double", json!([0.0, 2.0]))]);
    assert_eq!(show(call("nullif", "double", &[col(0, "double"), ratio()]), &columns), ["NULL", "NULL"]);
}
