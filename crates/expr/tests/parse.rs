//! The JSON form: clear refusals of what is not well typed.

mod common;

use common::{call, col, expr, lit, refusal};
use everview_expr::DataType;
use serde_json::json;

#[test]
fn columns_know_themselves() {
    assert_eq!(expr(col(3, "int")).as_column(), Some(3));
    assert_eq!(expr(lit(3, "int")).as_column(), None);
    assert_eq!(expr(col(3, "char(4)")).data_type(), DataType::Char(4));
}

#[test]
fn ill_typed_calls_are_refused_with_a_reason() {
    let one = lit(1, "int");
    let cases = [
        (call("frobnicate", "int", std::slice::from_ref(&one)), "unknown operation `frobnicate`"),
        (call("add", "int", std::slice::from_ref(&one)), "2 arguments expected, 1 given"),
        (call("add", "int", &[one.clone(), lit(1, "bigint")]), "two numbers of one type expected, (int, bigint) given"),
        (call("add", "bigint", &[one.clone(), one.clone()]), "the result is int, not bigint"),
        (
            call("add", "int", &[lit("1.0", "decimal(2,1)"), lit("1.0", "decimal(2,1)")]),
            "the result is a decimal, not int",
        ),
        (call("divide", "int", &[one.clone(), one.clone()]), "(int, int) given"),
        (call("and", "boolean", &[one.clone(), one.clone()]), "booleans expected"),
        (
            call("case", "int", &[lit(true, "boolean"), lit("x", "string"), one.clone()]),
            "a value of type string cannot stand for int",
        ),
        (
            call("case", "int", &[lit(true, "boolean"), one.clone(), lit(true, "boolean"), one.clone()]),
            "an else value expected",
        ),
        (call("cast", "date", std::slice::from_ref(&one)), "no cast from int to date"),
        (call("cast", "binary", std::slice::from_ref(&one)), "no cast from int to binary"),
        (call("cast", "timestamp_ntz", std::slice::from_ref(&one)), "no cast from int to timestamp_ntz"),
        (call("eq", "boolean", &[lit("61", "binary"), lit("a", "string")]), "arguments of one type expected"),
        (lit("6", "binary"), "`\"6\"` is not a literal of type binary"),
        (lit("6g", "binary"), "is not a literal of type binary"),
        (lit(128, "tinyint"), "`128` is not a literal of type tinyint"),
        (call("round", "int", &[one.clone(), col(0, "int")]), "argument 1 must be a literal"),
        (
            call("like", "boolean", &[lit("a", "string"), lit("a", "string"), lit("ab", "string")]),
            "one character) expected",
        ),
        (call("in", "boolean", &[one.clone(), lit("x", "string")]), "arguments of one type expected"),
        (lit(70000, "smallint"), "`70000` is not a literal of type smallint"),
        (lit("1.555", "decimal(5,2)"), "is not a literal of type decimal(5,2)"),
        (lit("abcd", "char(3)"), "is not a literal of type char(3)"),
        (json!({"op": "literal", "type": "int"}), "a literal has exactly `value` and `type`"),
        (json!({"op": "column", "index": 0, "args": [], "type": "int"}), "a column has exactly `index` and `type`"),
        (json!({"op": "add", "type": "int"}), "a call of `add` has exactly `args` and `type`"),
        (json!({"op": "column", "index": 0, "type": "integer"}), "unknown data type `integer`"),
        (json!({"op": "column", "index": 0, "type": "int", "name": "x"}), "unknown field `name`"),
        (json!({"op": "column", "index": -1, "type": "int"}), "invalid value"),
        (json!({"op": "shared", "index": 0, "type": "int"}), "there is no shared part 0 before this one"),
        (json!({"op": "shared", "type": "int"}), "a shared part has exactly `index` and `type`"),
        (json!({"op": "let", "in": one, "type": "int"}), "a `let` has exactly `shared`, `in` and `type`"),
        (json!({"op": "let", "shared": [], "in": one, "type": "bigint"}), "a `let` of type bigint gives int"),
        (
            json!({"op": "let", "shared": [one], "in": {"op": "shared", "index": 0, "type": "date"}, "type": "date"}),
            "shared part 0 is int, not date",
        ),
        (
            json!({"op": "let", "shared": [{"op": "shared", "index": 0, "type": "int"}], "in": one, "type": "int"}),
            "there is no shared part 0 before this one",
        ),
        (
            json!({"op": "let", "shared": [], "in": {"op": "let", "shared": [], "in": one, "type": "int"}, "type": "int"}),
            "a `let` stands outermost",
        ),
    ];
    for (source, reason) in cases {
        let message = refusal(source.clone());
        assert!(message.contains(reason), "{source}: {message}");
    }
}
