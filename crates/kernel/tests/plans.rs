//! Plans as JSON: kinds of edges, where NULLs are dropped, and what is refused.
#![allow(missing_docs)]

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array};
use everview_expr::DataType;
use everview_kernel::database::Database;
use everview_kernel::flow::Flow;
use everview_kernel::plan::Plan;
use everview_kernel::table::Change;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

type Row = Vec<Option<i64>>;
/// A change of a row of two columns.
type Given = (Option<i64>, Option<i64>, i64);
type Delta<'a> = &'a [(&'a [Option<i64>], i64)];

/// R(k, a) above S(k, x) over a hub of a kind; `head` are variables of k, a, x.
fn plan(kind: &str, head: &[usize], connex_below: bool) -> Value {
    let column = |index: usize| json!({"op": "column", "index": index, "type": "bigint"});
    let variable = |name: &str| json!({"name": name, "type": "bigint", "nullable": true});
    let keeps = kind == "optional" || kind == "forbids";
    json!({
        "version": everview_kernel::plan::VERSION, "view": "v",
        "stages": [{
            "stage": "core", "mode": "bag", "components": 0,
            "variables": [variable("k"), variable("a"), variable("x")],
            "atoms": [
                {"name": "r", "source": {"table": "r"}, "filter": null, "factors": [], "power": 1, "columns": [
                    {"variable": 0, "expression": column(0), "not_null": !keeps}, {"variable": 1, "expression": column(1)}]},
                {"name": "s", "source": {"table": "s"}, "filter": null, "factors": [], "power": 1, "columns": [
                    {"variable": 0, "expression": column(0), "not_null": true}, {"variable": 2, "expression": column(1)}]},
            ],
            "nodes": [
                {"kind": "relation", "atom": 0, "columns": [0, 1], "connex": true, "up": 0, "down": [1]},
                {"kind": "relation", "atom": 1, "columns": [0, 2], "connex": connex_below, "up": 1, "down": []},
            ],
            "hubs": [
                {"key": [], "parent": null, "children": [0]},
                {"key": [0], "parent": 0, "children": [1], "kind": kind},
            ],
            "head": head,
        }],
        "output": head.iter().map(|_| variable("c")).collect::<Vec<_>>(),
    })
}

fn database() -> Database {
    let mut database = Database::new(1, None, None);
    for (table, second) in [("r", "a"), ("s", "x")] {
        let columns = ["k", second].map(|name| (name.to_owned(), DataType::BigInt, true));
        database.create_table(table, &columns, &[], None).unwrap();
    }
    database
}

fn change(rows: &[Given]) -> Change {
    let column = |at: fn(&Given) -> Option<i64>| -> ArrayRef { Arc::new(rows.iter().map(at).collect::<Int64Array>()) };
    Change::Rows(vec![column(|r| r.0), column(|r| r.1)], rows.iter().map(|r| r.2).collect())
}

fn rows(flow: &Flow) -> BTreeMap<Row, i64> {
    let mut found = BTreeMap::new();
    for chunk in &flow.chunks {
        for (i, weight) in chunk.weights.iter().enumerate() {
            let value = |c: &ArrayRef| c.is_valid(i).then(|| c.as_primitive::<Int64Type>().value(i));
            assert!(found.insert(chunk.columns.iter().map(value).collect(), *weight).is_none(), "a row twice");
        }
    }
    found
}

fn expected(rows: Delta) -> BTreeMap<Row, i64> {
    rows.iter().map(|(row, weight)| (row.to_vec(), *weight)).collect()
}

/// Rows with NULL keys: kept above a forbids or optional hub, where nothing matches them, and dropped elsewhere.
#[test]
fn nulls_are_dropped_where_a_partner_is_needed() {
    let (one, two, nine) = (Some(1), Some(2), Some(9));
    let cases: [(&str, &[usize], bool, Delta, Delta); 4] = [
        (
            "required",
            &[0, 1, 2],
            true,
            &[(&[one, nine, None], 1)],
            &[(&[one, nine, None], -1), (&[two, nine, nine], 1)],
        ),
        ("exists", &[0, 1], false, &[(&[one, nine], 1)], &[(&[one, nine], -1), (&[two, nine], 1)]),
        ("forbids", &[0, 1], false, &[(&[two, nine], 1), (&[None, nine], 1)], &[(&[two, nine], -1), (&[one, nine], 1)]),
        (
            "optional",
            &[0, 1, 2],
            true,
            &[(&[one, nine, None], 1), (&[two, nine, None], 1), (&[None, nine, None], 1)],
            // the row of S with x = NULL and the phantom that comes in its place look the same
            &[(&[two, nine, None], -1), (&[two, nine, nine], 1)],
        ),
    ];
    for (kind, head, connex_below, first, second) in cases {
        let mut database = database();
        database.create_view(serde_json::from_value::<Plan>(plan(kind, head, connex_below)).unwrap()).unwrap();
        let r = change(&[(one, nine, 1), (two, nine, 1), (None, nine, 1)]);
        let s = change(&[(one, None, 1), (None, nine, 1), (None, None, 1)]);
        let deltas = database.commit(&[(0, r), (1, s)], true, false, None).unwrap();
        assert_eq!(rows(&deltas[0].1), expected(first), "{kind}");
        let s = change(&[(one, None, -1), (two, nine, 1)]);
        let deltas = database.commit(&[(1, s)], true, false, None).unwrap();
        assert_eq!(rows(&deltas[0].1), expected(second), "{kind}");
        let all =
            database.create_view(serde_json::from_value::<Plan>(plan(kind, head, connex_below)).unwrap()).unwrap();
        for view in [0, all] {
            let mut cursor = database.open(view);
            let read = database.read(view, &mut cursor, 100).unwrap().unwrap_or_default();
            let mut want = expected(first);
            for (row, weight) in second {
                *want.entry(row.to_vec()).or_insert(0) += weight;
            }
            want.retain(|_, weight| *weight != 0);
            assert_eq!(rows(&read), want, "{kind}, built and maintained");
        }
    }
}

fn refusal(change: impl FnOnce(&mut Value)) -> String {
    let mut plan = plan("optional", &[0, 1, 2], true);
    change(&mut plan["stages"][0]);
    serde_json::from_value::<Plan>(plan).expect_err("it is wrong").to_string()
}

#[test]
fn wrong_plans_are_refused() {
    type Break = fn(&mut Value);
    let cases: [(&str, Break); 16] = [
        ("existence only", |core| core["hubs"][1]["kind"] = json!("exists")),
        ("existence only", |core| core["hubs"][1]["kind"] = json!("forbids")),
        ("unknown variant", |core| core["hubs"][1]["kind"] = json!("left")),
        ("root or a guard", |core| core["hubs"][0]["kind"] = json!("optional")),
        ("phantom", |core| core["hubs"][1]["phantom"] = json!([0])),
        ("not optional and has a phantom", |core| {
            core["hubs"][1] = json!({"key": [0], "parent": 0, "children": [1], "phantom": [0]});
        }),
        ("hubs that do not exist", |core| core["nodes"][0]["down"] = json!([7])),
        ("nodes that do not exist", |core| core["hubs"][1]["children"] = json!([7])),
        ("not one tree", |core| core["nodes"][0]["down"] = json!([])),
        ("do not agree", |core| core["nodes"][1]["up"] = json!(0)),
        ("lacks a variable", |core| core["hubs"][1]["key"] = json!([2])),
        ("other columns than its atom", |core| core["nodes"][1]["columns"] = json!([2, 0])),
        ("of no atom", |core| core["nodes"][1]["atom"] = json!(0)),
        ("in no connex node", |core| core["nodes"][1]["connex"] = json!(false)),
        ("not all in the head", |core| core["head"] = json!([0, 1])),
        ("does not exist, or one twice", |core| core["head"] = json!([0, 1, 9])),
    ];
    for (message, change) in cases {
        let refused = refusal(change);
        assert!(refused.contains(message), "{refused:?} does not say {message:?}");
    }
}

#[test]
fn phantoms_are_numbers_or_digits() {
    let mut plan = plan("optional", &[0, 1, 2], true);
    let core = &mut plan["stages"][0];
    core["components"] = json!(2);
    for atom in core["atoms"].as_array_mut().unwrap() {
        atom["factors"] = json!([null, null]);
    }
    core["hubs"][1]["phantom"] = json!([-3, "170141183460469231731687303715884105727"]);
    let read: Plan = serde_json::from_value(plan.clone()).unwrap();
    let everview_kernel::plan::Stage::Core(core) = &read.stages[0] else { panic!("a core") };
    assert_eq!(core.shape().hubs[1].phantom, [-3, i128::MAX]);
    plan["stages"][0]["hubs"][1]["phantom"] = json!([0, "1.5"]);
    assert!(serde_json::from_value::<Plan>(plan).is_err());
}

/// A top-k over R(k, a): by a descending, then by content.
fn top_k_plan(limit: Option<u64>, offset: u64) -> Value {
    let column = |index: usize| json!({"op": "column", "index": index, "type": "bigint"});
    let variable = |name: &str| json!({"name": name, "type": "bigint", "nullable": true});
    json!({
        "version": 2, "view": "v",
        "stages": [
            {
                "stage": "core", "mode": "bag", "components": 0, "variables": [variable("k"), variable("a")],
                "atoms": [{"name": "r", "source": {"table": "r"}, "filter": null, "factors": [], "power": 1, "columns": [
                    {"variable": 0, "expression": column(0)}, {"variable": 1, "expression": column(1)}]}],
                "nodes": [{"kind": "relation", "atom": 0, "columns": [0, 1], "connex": true, "up": 0, "down": []}],
                "hubs": [{"key": [], "parent": null, "children": [0]}],
                "head": [0, 1],
            },
            {"stage": "topk", "input": 0, "partition": [], "limit": limit, "offset": offset,
             "order": [{"column": 1, "descending": true, "nulls_first": false}]},
        ],
        "output": [variable("k"), variable("a")],
    })
}

#[test]
fn a_top_k_emits_what_enters_and_leaves_and_is_read_in_order() {
    let mut database = database();
    database.create_view(serde_json::from_value::<Plan>(top_k_plan(Some(2), 1)).unwrap()).unwrap();
    let (one, two, three) = (Some(1), Some(2), Some(3));
    let deltas =
        database.commit(&[(0, change(&[(one, three, 1), (two, two, 2), (three, None, 1)]))], true, false, None);
    assert_eq!(rows(&deltas.unwrap()[0].1), expected(&[(&[two, two], 2)]));
    let deltas = database.commit(&[(0, change(&[(two, two, -1)]))], true, false, None);
    assert_eq!(rows(&deltas.unwrap()[0].1), expected(&[(&[two, two], -1), (&[three, None], 1)]));
    let late = database.create_view(serde_json::from_value::<Plan>(top_k_plan(None, 0)).unwrap()).unwrap();
    let mut cursor = database.open(late);
    let mut read = Vec::new();
    while let Some(flow) = database.read(late, &mut cursor, 1).unwrap() {
        read.extend(rows(&flow).into_keys());
    }
    assert_eq!(read, [vec![one, three], vec![two, two], vec![three, None]]);
}

#[test]
fn a_top_k_by_columns_that_are_not_there_is_refused() {
    for (part, value) in
        [("partition", json!([2])), ("order", json!([{"column": 2, "descending": true, "nulls_first": true}]))]
    {
        let mut plan = top_k_plan(Some(1), 0);
        plan["stages"][1][part] = value;
        let refused = database().create_view(serde_json::from_value::<Plan>(plan).unwrap()).expect_err("it is wrong");
        assert_eq!(refused.code, "INVALID_PLAN");
    }
}

/// The core of `top_k_plan` with another stage above it.
fn above_core(stage: Value, output: &[&str]) -> Plan {
    let mut plan = top_k_plan(None, 0);
    plan["stages"][1] = stage;
    let output: Vec<Value> =
        output.iter().map(|name| json!({"name": name, "type": "bigint", "nullable": true})).collect();
    plan["output"] = json!(output);
    serde_json::from_value(plan).unwrap()
}

/// The rows of a view as they are read, one at a time.
fn read_one_by_one(database: &mut Database, view: usize) -> Vec<Vec<Option<i64>>> {
    let mut cursor = database.open(view);
    let mut read = Vec::new();
    while let Some(flow) = database.read(view, &mut cursor, 1).unwrap() {
        read.extend(rows(&flow).into_keys());
    }
    read
}

#[test]
fn a_top_k_per_partition() {
    let mut database = database();
    let stage = json!({"stage": "topk", "input": 0, "partition": [0], "limit": 1, "offset": 0,
                       "order": [{"column": 1, "descending": true, "nulls_first": false}]});
    let view = database.create_view(above_core(stage, &["k", "a"])).unwrap();
    let (one, two, three) = (Some(1), Some(2), Some(3));
    let first = [(one, one, 1), (one, two, 1), (two, one, 1), (None, None, 1), (None, one, 1)];
    let deltas = database.commit(&[(0, change(&first))], true, false, None).unwrap();
    assert_eq!(rows(&deltas[0].1), expected(&[(&[one, two], 1), (&[two, one], 1), (&[None, one], 1)]));
    let deltas = database.commit(&[(0, change(&[(one, two, -1), (two, three, 1)]))], true, false, None).unwrap();
    let moved = expected(&[(&[one, two], -1), (&[one, one], 1), (&[two, one], -1), (&[two, three], 1)]);
    assert_eq!(rows(&deltas[0].1), moved);
    assert_eq!(read_one_by_one(&mut database, view), [[None, one], [one, one], [two, three]]);
    assert_eq!(database.view(view).count(), Some(Some(3)));
}

#[test]
fn a_top_k_with_ranks() {
    let mut database = database();
    let stage = json!({"stage": "topk", "input": 0, "partition": [0], "limit": 2, "offset": 0, "rank": "n",
                       "order": [{"column": 1, "descending": false, "nulls_first": true}]});
    let mut plan = top_k_plan(None, 0);
    plan["stages"][1] = stage;
    let wide = json!({"op": "cast", "type": "bigint", "args": [{"op": "column", "index": 2, "type": "int"}]});
    let column = |index: usize| json!({"op": "column", "index": index, "type": "bigint"});
    plan["stages"].as_array_mut().unwrap().push(json!({"stage": "map", "input": 1, "columns": [
        {"name": "k", "expression": column(0)}, {"name": "a", "expression": column(1)}, {"name": "n", "expression": wide}]}));
    plan["output"].as_array_mut().unwrap().push(json!({"name": "n", "type": "bigint", "nullable": false}));
    let view = database.create_view(serde_json::from_value(plan).unwrap()).unwrap();
    let (one, two, three) = (Some(1), Some(2), Some(3));
    database.commit(&[(0, change(&[(one, one, 1), (one, three, 2), (two, two, 3)]))], true, false, None).unwrap();
    let deltas = database.commit(&[(0, change(&[(one, two, 1), (two, two, -2)]))], true, false, None).unwrap();
    let moved = expected(&[(&[one, three, two], -1), (&[one, two, two], 1), (&[two, two, two], -1)]);
    assert_eq!(rows(&deltas[0].1), moved);
    assert_eq!(read_one_by_one(&mut database, view), [[one, one, one], [one, two, two], [two, two, one]]);
}

#[test]
fn repeated_rows_are_there_as_often_as_they_say() {
    let mut database = database();
    let stage = json!({"stage": "repeat", "input": 0, "count": {"op": "column", "index": 1, "type": "bigint"}});
    let view = database.create_view(above_core(stage, &["k", "a"])).unwrap();
    let (one, two, three) = (Some(1), Some(2), Some(3));
    let first = [(one, three, 2), (one, Some(-1), 1), (two, None, 1), (two, Some(0), 1)];
    let deltas = database.commit(&[(0, change(&first))], true, false, None).unwrap();
    assert_eq!(rows(&deltas[0].1), expected(&[(&[one, three], 6)]));
    let deltas = database.commit(&[(0, change(&[(one, three, -1), (three, two, 1)]))], true, false, None).unwrap();
    assert_eq!(rows(&deltas[0].1), expected(&[(&[one, three], -3), (&[three, two], 2)]));
    let refused = database.commit(&[(0, change(&[(one, Some(i64::MAX), 2)]))], false, false, None).unwrap_err();
    assert_eq!(refused.code, "ARITHMETIC_OVERFLOW");
    let mut read = read_one_by_one(&mut database, view);
    read.sort();
    assert_eq!(read, [[one, three], [three, two]]);
}

#[test]
fn values_are_there_when_the_view_is_made() {
    let bigint = |value: Value| json!({"op": "literal", "type": "bigint", "value": value});
    let column = |name: &str| json!({"name": name, "type": "bigint", "nullable": true});
    let values = |rows: Value| {
        json!({"version": 2, "view": "v", "output": [column("x"), column("y")], "stages": [
        {"stage": "values", "columns": [column("x"), column("y")], "rows": rows}]})
    };
    let mut database = database();
    let plan = values(json!([[bigint(json!(1)), bigint(json!(2))], [bigint(json!(3)), bigint(Value::Null)]]));
    let view = database.create_view(serde_json::from_value(plan).unwrap()).unwrap();
    assert_eq!(read_one_by_one(&mut database, view), [[Some(1), Some(2)], [Some(3), None]]);
    assert_eq!(database.view(view).count(), Some(Some(2)));
    let short = values(json!([[bigint(json!(1))]]));
    assert_eq!(database.create_view(serde_json::from_value(short).unwrap()).unwrap_err().code, "INVALID_PLAN");
}

#[test]
fn a_plan_that_is_read_once_gives_what_a_view_holds_and_leaves_nothing() {
    for (kind, head) in [("required", vec![0, 1, 2]), ("optional", vec![0, 1, 2]), ("exists", vec![0, 1])] {
        let plan = |connex| serde_json::from_value::<Plan>(plan(kind, &head, connex)).unwrap();
        let mut database = database();
        let given = [change(&[(Some(1), Some(2), 2), (None, Some(3), 1)]), change(&[(Some(1), Some(5), 1)])];
        let [one, two] = given;
        database.commit(&[(0, one), (1, two)], false, false, None).unwrap();
        let connex = kind != "exists";
        let view = database.create_view(plan(connex)).unwrap();
        let (mut cursor, epoch) = (database.open(view), database.epoch().load(Ordering::Acquire));
        let (schema, once) = database.read_once(plan(connex)).unwrap();
        assert_eq!(database.epoch().load(Ordering::Acquire), epoch);
        assert_eq!(schema.fields().len(), head.len());
        let mut held = Flow::default();
        while let Some(flow) = database.read(view, &mut cursor, 1).unwrap() {
            held.chunks.extend(flow.chunks);
        }
        assert!(!once.chunks.is_empty());
        assert_eq!(rows(&once), rows(&held));
        assert_eq!(database.create_view(plan(connex)).unwrap(), view + 1);
    }
}
