//! Well-typed calls of every operation with up to three arguments on extreme values: nothing panics, a batch gives what its rows give one
//! by one, the reported row is the first that fails, and constants give what columns give.

mod common;

use arrow_array::{Array, RecordBatch};
use common::{batch, call, col, lit};
use everview_expr::{EvalError, Expr};
use serde_json::{Value, json};

const OPERATIONS: [&str; 139] = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "int_div",
    "modulo",
    "negate",
    "abs",
    "round",
    "floor",
    "ceil",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "eq_null_safe",
    "and",
    "or",
    "not",
    "in",
    "like",
    "is_null",
    "is_not_null",
    "case",
    "coalesce",
    "if",
    "nullif",
    "cast",
    "date_add",
    "date_sub",
    "datediff",
    "add_months",
    "timestamp_add",
    "timestamp_add_months",
    "timestamp_diff",
    "year",
    "month",
    "day",
    "quarter",
    "dayofweek",
    "dayofyear",
    "weekofyear",
    "hour",
    "minute",
    "second",
    "date_trunc",
    "trunc",
    "substring",
    "upper",
    "lower",
    "trim",
    "length",
    "concat",
    "replace",
    "left",
    "right",
    "starts_with",
    "contains",
    "ends_with",
    "ltrim",
    "rtrim",
    "greatest",
    "least",
    "concat_ws",
    "locate",
    "lpad",
    "rpad",
    "repeat",
    "reverse",
    "initcap",
    "translate",
    "split_part",
    "substring_index",
    "ascii",
    "chr",
    "crc32",
    "md5",
    "sha256",
    "hex",
    "bin",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bit_not",
    "pmod",
    "sqrt",
    "cbrt",
    "exp",
    "expm1",
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
    "signum",
    "ln",
    "log10",
    "log2",
    "log1p",
    "pow",
    "atan2",
    "hypot",
    "log",
    "is_nan",
    "shift_left",
    "shift_right",
    "shift_right_unsigned",
    "bit_count",
    "weekday",
    "yearofweek",
    "second_fraction",
    "last_day",
    "next_day",
    "make_date",
    "months_between",
    "timestamp_until",
    "timestamp_until_months",
    "unix_micros",
    "timestamp_from",
    "unix_date",
    "date_from_unix_date",
    "date_format",
    "parse_timestamp",
    "bround",
    "regexp_like",
    "regexp_count",
    "regexp_substr",
    "regexp_extract",
    "regexp_replace",
];

/// Types with extreme values; all columns have the same number of rows.
fn columns() -> Vec<(&'static str, Value)> {
    let nines = "99999999999999999999999999999999999999";
    vec![
        ("boolean", json!([true, false, null, true, false, null, true])),
        ("tinyint", json!([127, -128, 0, null, -1, 3, 1])),
        ("smallint", json!([0, 32767, -32768, null, -1, 3, 1])),
        ("int", json!([-1, 2_147_483_647, -2_147_483_648_i64, 0, 2, null, 1])),
        ("bigint", json!([i64::MIN, i64::MAX, 0, -1, null, 86_400_000_000_i64, 1])),
        ("float", json!(["nan", "-inf", 0.0, 3.4e38, -1.5, null, 1.0])),
        ("double", json!([1e-320, "nan", "inf", -1.7e308, null, -0.0, 1.0])),
        ("decimal(38,0)", json!([nines, format!("-{nines}"), "0", null, "7", "-1", "1"])),
        (
            "decimal(38,38)",
            json!([
                format!("0.{nines}"),
                format!("-0.{nines}"),
                "0",
                "0.1",
                null,
                "0.00000000000000000000000000000000000001",
                "0"
            ]),
        ),
        ("decimal(5,2)", json!(["999.99", "-999.99", "0.00", "1.50", "-0.01", null, "1.00"])),
        ("string", json!(["", "日本語 🦀", "a%_\\", null, " 2020-02-29 ", "-1.5e3", "YEAR"])),
        ("char(3)", json!(["   ", "é%\\", "1  ", "abc", null, "NaN", "day"])),
        ("binary", json!(["", "FF00fe", "e697a5", null, "20323032302d30322d3239", "80", "6461"])),
        ("date", json!([i32::MIN, i32::MAX, 0, -719_162, 18_321, null, 1])),
        ("timestamp", json!([i64::MIN, i64::MAX, 0, -1, null, 1_582_934_400_000_000_i64, 1])),
        ("timestamp_ntz", json!([i64::MAX, i64::MIN, 0, null, -1, 1_582_934_400_000_000_i64, 1])),
        ("null", json!([null, null, null, null, null, null, null])),
    ]
}

/// All ways to choose `count` of `types` positions.
fn choices(types: usize, count: usize) -> impl Iterator<Item = Vec<usize>> {
    (0..types.pow(count as u32)).map(move |mut number| {
        (0..count)
            .map(|_| {
                let position = number % types;
                number /= types;
                position
            })
            .collect()
    })
}

fn row_by_row(expr: &Expr, batch: &RecordBatch) -> Vec<Result<Value, EvalError>> {
    (0..batch.num_rows())
        .map(|row| expr.evaluate(&batch.slice(row, 1)).map(|array| json!(format!("{array:?}"))))
        .collect()
}

/// Compares a batch with its rows; NaNs print alike, so arrays are compared as texts.
fn check(expr: &Expr, source: &Value, batch: &RecordBatch) {
    let single = row_by_row(expr, batch);
    match expr.evaluate(batch) {
        Ok(array) => {
            for (row, value) in single.into_iter().enumerate() {
                let shown = json!(format!("{:?}", array.slice(row, 1)));
                assert_eq!(value.as_ref(), Ok(&shown), "row {row} of {source}");
            }
        }
        Err(error) => {
            let first = single.iter().position(Result::is_err);
            assert_eq!(error.row, first, "{source}: {error}");
            let code = first.and_then(|row| single[row].as_ref().err()).map(|error| error.code);
            assert_eq!(Some(error.code), code, "{source}");
        }
    }
}

#[test]
fn batches_give_what_rows_give() {
    let columns = columns();
    let batch = batch(&columns);
    let types: Vec<&str> = columns.iter().map(|(data_type, _)| *data_type).collect();
    let mut calls = 0;
    for operation in OPERATIONS {
        for count in 1..=3 {
            let nulls = vec![lit(json!(null), "null"); count];
            let refusal = serde_json::from_value::<Expr>(call(operation, "null", &nulls));
            if refusal.is_err_and(|error| error.to_string().contains("arguments expected,")) {
                continue;
            }
            for chosen in choices(types.len(), count) {
                // Signatures of three arguments repeat a type.
                if count == 3 && chosen[1] != chosen[2] && chosen[0] != chosen[1] {
                    continue;
                }
                // Wrong arguments are wrong whatever the result is.
                let mut fitting = false;
                for (number, result) in types.iter().enumerate() {
                    if number == 1 && !fitting {
                        break;
                    }
                    let args: Vec<Value> = chosen.iter().map(|&index| col(index, types[index])).collect();
                    let source = call(operation, result, &args);
                    let plain = serde_json::from_value::<Expr>(source.clone());
                    let fits = |read: &serde_json::Result<Expr>| {
                        !read.as_ref().is_err_and(|error| error.to_string().contains(" expected, ("))
                    };
                    fitting |= fits(&plain);
                    if let Ok(expr) = &plain {
                        calls += 1;
                        check(expr, &source, &batch);
                    }
                    // Literals in place of the first or last argument; some operations insist on one. Two rows suffice.
                    for position in [0, count - 1] {
                        for row in [1, 6] {
                            if plain.is_ok() && count == 3 && row == 1 {
                                continue;
                            }
                            let mut args = args.clone();
                            let index = chosen[position];
                            args[position] = lit(columns[index].1[row].clone(), types[index]);
                            let source = call(operation, result, &args);
                            let read = serde_json::from_value::<Expr>(source.clone());
                            fitting |= fits(&read);
                            let Ok(expr) = read else {
                                continue;
                            };
                            calls += 1;
                            check(&expr, &source, &batch);
                            if let Ok(plain) = &plain {
                                let rows = batch.slice(row, 1);
                                let (a, b) = (plain.evaluate(&rows), expr.evaluate(&rows));
                                assert_eq!(format!("{a:?}"), format!("{b:?}"), "constants in {source}");
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(calls > 3000, "only {calls} calls were well typed");
}
