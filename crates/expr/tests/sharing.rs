//! Expressions whose parts occur several times: they mean what their trees mean, and cost what their parts cost.

mod common;

use arrow_array::{ArrayRef, RecordBatch};
use common::{batch, call, col, expr, lit, refusal};
use everview_expr::EvalError;
use serde_json::{Value, json};

fn part(index: usize, data_type: &str) -> Value {
    json!({"op": "shared", "index": index, "type": data_type})
}

fn with_parts(shared: &[Value], body: &Value, data_type: &str) -> Value {
    json!({"op": "let", "shared": shared, "in": body, "type": data_type})
}

/// The tree that a part stands for.
fn expanded(json: &Value, shared: &[Value]) -> Value {
    if json["op"] == "shared" {
        return shared[usize::try_from(json["index"].as_u64().unwrap()).unwrap()].clone();
    }
    let mut json = json.clone();
    if let Some(args) = json.get_mut("args").and_then(Value::as_array_mut) {
        for arg in args {
            *arg = expanded(arg, shared);
        }
    }
    json
}

/// A few bits after another, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

/// An operation on integers, some of which fail on some rows, over parts that are there; and its type.
#[allow(clippy::many_single_char_names)]
fn operation(random: &mut Random, whole: &[usize], tests: &[usize]) -> (Value, bool) {
    let integer = |random: &mut Random| match random.below(4) {
        0 => col(random.below(2), "bigint"),
        1 => lit(i64::try_from(random.below(3)).unwrap(), "bigint"),
        _ if !whole.is_empty() => part(whole[random.below(whole.len())], "bigint"),
        _ => col(0, "bigint"),
    };
    let test = |random: &mut Random| {
        if tests.is_empty() || random.below(3) == 0 {
            call("gt", "boolean", &[integer(random), integer(random)])
        } else {
            part(tests[random.below(tests.len())], "boolean")
        }
    };
    let (a, b, c) = (integer(random), integer(random), integer(random));
    let (p, q) = (test(random), test(random));
    match random.below(10) {
        0 => (call("and", "boolean", &[p, q]), false),
        1 => (call("or", "boolean", &[p, q]), false),
        2 => (call("in", "boolean", &[a, b, c]), false),
        3 => (call("case", "bigint", &[p, a, q, b, c]), true),
        4 => (call("coalesce", "bigint", &[a, b]), true),
        5 => (call("nullif", "bigint", &[a, b]), true),
        6 => (call("int_div", "bigint", &[a, b]), true),
        7 => (call("modulo", "bigint", &[a, b]), true),
        8 => (call("case", "bigint", &[p, call("int_div", "bigint", &[a, b]), c]), true),
        _ => (call("add", "bigint", &[a, b]), true),
    }
}

fn outcome(json: Value, rows: &RecordBatch) -> Result<ArrayRef, EvalError> {
    expr(json).evaluate(rows)
}

#[test]
fn shared_parts_mean_what_their_tree_means() {
    let rows = batch(&[
        ("bigint", json!([0, 1, 2, null, 3, 0, 1, 5, null, 2])),
        ("bigint", json!([1, 0, null, 2, 1, 0, 2, 0, null, 3])),
    ]);
    let mut failures = 0;
    for seed in 0..3000 {
        let mut random = Random(seed);
        let (mut shared, mut trees, mut whole, mut tests) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for index in 0..3 + random.below(6) {
            let (json, is_integer) = operation(&mut random, &whole, &tests);
            trees.push(expanded(&json, &trees));
            shared.push(json);
            if is_integer { whole.push(index) } else { tests.push(index) }
        }
        let body = shared.pop().unwrap();
        let data_type = body["type"].as_str().unwrap().to_owned();
        let found = outcome(with_parts(&shared, &body, &data_type), &rows);
        let expected = outcome(trees.pop().unwrap(), &rows);
        failures += usize::from(expected.is_err());
        assert_eq!(found, expected, "seed {seed}: {shared:?} {body}");
    }
    assert!((100..2900).contains(&failures), "{failures} of 3000 fail");
}

#[test]
fn cost_follows_the_parts_and_not_the_tree() {
    let rows = batch(&[("bigint", json!([1, -2, null, 4])), ("boolean", json!([true, false, true, null]))]);
    let x = |level: usize| if level == 0 { col(0, "bigint") } else { part(level - 1, "bigint") };
    let c = || col(1, "boolean");
    let zero = || lit(0, "bigint");
    let none = || lit(json!(null), "bigint");
    // Each level uses the one below it twice; evaluated as trees these would take 2^100 steps.
    let forms: [&dyn Fn(Value) -> Value; 6] = [
        &|x| {
            call(
                "case",
                "bigint",
                &[call("gt", "boolean", &[x.clone(), zero()]), x.clone(), call("negate", "bigint", &[x])],
            )
        },
        &|x| call("case", "bigint", &[c(), x.clone(), call("negate", "bigint", &[x])]),
        &|x| call("subtract", "bigint", &[call("case", "bigint", &[c(), x.clone(), none()]), x]),
        &|x| call("subtract", "bigint", &[x.clone(), call("case", "bigint", &[c(), x, none()])]),
        &|x| call("coalesce", "bigint", &[call("nullif", "bigint", &[x.clone(), zero()]), x]),
        &|x| call("subtract", "bigint", &[x.clone(), x]),
    ];
    for form in forms {
        let shared: Vec<Value> = (0..100).map(|level| form(x(level))).collect();
        let found = outcome(with_parts(&shared, &form(x(100)), "bigint"), &rows);
        assert!(found.is_ok(), "{found:?}");
    }
}

#[test]
fn long_chains_need_no_stack() {
    let rows = batch(&[("bigint", json!([1, 2]))]);
    let shared: Vec<Value> = (0..50_000)
        .map(|level| {
            let left = if level == 0 { lit(0, "bigint") } else { part(level - 1, "bigint") };
            if level % 2 == 0 {
                call("add", "bigint", &[left, col(0, "bigint")])
            } else {
                call("subtract", "bigint", &[col(0, "bigint"), left])
            }
        })
        .collect();
    let chain = expr(with_parts(&shared, &part(49_999, "bigint"), "bigint"));
    assert_eq!(&chain.evaluate(&rows).unwrap(), &common::column("bigint", &json!([0, 0])));
    assert_eq!(chain.columns(), [0]);
}

#[test]
fn levels_of_choices_are_bounded() {
    let rows = batch(&[("bigint", json!([1, null]))]);
    let nested = |levels: usize| {
        let shared: Vec<Value> = (0..levels)
            .map(|level| {
                let inner = if level == 0 { col(0, "bigint") } else { part(level - 1, "bigint") };
                call("coalesce", "bigint", &[lit(json!(null), "bigint"), inner])
            })
            .collect();
        with_parts(&shared, &part(levels - 1, "bigint"), "bigint")
    };
    assert_eq!(&outcome(nested(256), &rows).unwrap(), &common::column("bigint", &json!([1, null])));
    assert!(refusal(nested(257)).contains("more than 256 levels"));
}
