//! Helpers of the integration tests: expressions from JSON, batches from literals, results as texts.
// Each test binary uses its own part; values by value keep the tables of cases readable.
#![allow(dead_code, clippy::needless_pass_by_value)]

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, Schema};
use arrow_select::concat::concat;
use everview_expr::{EvalError, Expr};
use serde_json::{Value, json};

/// Reads an expression that must be well typed.
pub fn expr(json: Value) -> Expr {
    serde_json::from_value(json.clone()).unwrap_or_else(|error| panic!("{json}: {error}"))
}

/// The message with which an expression is refused.
pub fn refusal(json: Value) -> String {
    serde_json::from_value::<Expr>(json.clone()).err().unwrap_or_else(|| panic!("accepted: {json}")).to_string()
}

pub fn col(index: usize, data_type: &str) -> Value {
    json!({"op": "column", "index": index, "type": data_type})
}

pub fn lit(value: impl Into<Value>, data_type: &str) -> Value {
    json!({"op": "literal", "value": value.into(), "type": data_type})
}

pub fn call(op: &str, data_type: &str, args: &[Value]) -> Value {
    json!({"op": op, "args": args, "type": data_type})
}

/// A batch without columns.
pub fn rows(count: usize) -> RecordBatch {
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options).unwrap()
}

/// A column of literals.
pub fn column(data_type: &str, values: &Value) -> ArrayRef {
    let values = values.as_array().unwrap();
    let parts: Vec<ArrayRef> =
        values.iter().map(|value| expr(lit(value.clone(), data_type)).evaluate(&rows(1)).unwrap()).collect();
    let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
    concat(&parts).unwrap()
}

/// A batch of columns of literals.
pub fn batch(columns: &[(&str, Value)]) -> RecordBatch {
    let arrays: Vec<ArrayRef> = columns.iter().map(|(data_type, values)| column(data_type, values)).collect();
    let fields: Vec<Field> = arrays
        .iter()
        .enumerate()
        .map(|(index, array)| Field::new(format!("c{index}"), array.data_type().clone(), true))
        .collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

/// Evaluates and shows every row as a text, or gives the error.
pub fn try_show(json: Value, batch: &RecordBatch) -> Result<Vec<Option<String>>, EvalError> {
    let checked = expr(json.clone());
    let result = checked.evaluate(batch)?;
    assert_eq!(result.len(), batch.num_rows());
    assert_eq!(*result.data_type(), checked.data_type().arrow());
    let texts = expr(call("cast", "string", &[json])).evaluate(batch)?;
    Ok(texts.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect())
}

/// Evaluates and shows every row as a text, `NULL` for NULL.
pub fn show(json: Value, batch: &RecordBatch) -> Vec<String> {
    let texts = try_show(json.clone(), batch).unwrap_or_else(|error| panic!("{json}: {error}"));
    texts.into_iter().map(|text| text.unwrap_or_else(|| "NULL".to_owned())).collect()
}

/// The value of an expression without columns.
pub fn value(json: Value) -> String {
    show(json, &rows(1)).remove(0)
}

/// The condition that an expression without columns raises.
pub fn condition(json: Value) -> &'static str {
    try_show(json.clone(), &rows(1)).err().unwrap_or_else(|| panic!("no error: {json}")).code
}
