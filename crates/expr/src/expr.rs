//! Expression trees: the JSON form and its translation to checked trees.
//!
//! An [`Expr`] exists only if it is well typed (`check.rs`), so evaluation need not look at types again except to choose
//! a loop. Each node remembers whether its evaluation can fail on some row: operations that evaluate an argument on
//! some rows only (`and`, `case`, ...) take the shorter way of whole columns where nothing can fail.

use arrow_array::{Array, ArrayRef};
use serde::{Deserialize, Serialize, de::Error as _};

use crate::check;
use crate::datatype::DataType;
use crate::literal;
use crate::operation::Operation;

/// A scalar expression over the columns of a batch.
///
/// ```
/// let json = r#"{"op": "add", "type": "int", "args": [
///     {"op": "column", "index": 0, "type": "int"}, {"op": "literal", "value": 1, "type": "int"}]}"#;
/// let expr: everview_expr::Expr = serde_json::from_str(json)?;
/// assert_eq!(expr.data_type().to_string(), "int");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Json", into = "Json")]
pub struct Expr {
    pub(crate) node: Node,
    pub(crate) data_type: DataType,
    pub(crate) fallible: bool,
}

/// The three kinds of expressions.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    /// A column of the batch.
    Column(usize),
    /// A constant: its JSON form and the same as an array of one value.
    Literal { json: serde_json::Value, array: ArrayRef },
    /// An operation on other expressions.
    Call { operation: Operation, args: Vec<Expr> },
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Column(a), Self::Column(b)) => a == b,
            (Self::Literal { json: a, .. }, Self::Literal { json: b, .. }) => a == b,
            (Self::Call { operation: a, args: b }, Self::Call { operation: c, args: d }) => a == c && b == d,
            _ => false,
        }
    }
}

impl Expr {
    /// The type of the result.
    pub fn data_type(&self) -> DataType {
        self.data_type
    }

    /// The column's index if the expression is a bare column reference.
    pub fn as_column(&self) -> Option<usize> {
        if let Node::Column(index) = self.node { Some(index) } else { None }
    }

    /// The constant, as an array of one value, if the expression is a literal.
    pub(crate) fn as_literal(&self) -> Option<&ArrayRef> {
        if let Node::Literal { array, .. } = &self.node { Some(array) } else { None }
    }

    /// Whether the expression is the literal NULL.
    pub(crate) fn is_null_literal(&self) -> bool {
        self.as_literal().is_some_and(|array| array.is_null(0) || self.data_type == DataType::Null)
    }

    /// Whether evaluation can fail on some row.
    pub fn is_fallible(&self) -> bool {
        self.fallible
    }

    /// The columns that the expression reads, ascending.
    pub fn columns(&self) -> Vec<usize> {
        match &self.node {
            Node::Column(index) => vec![*index],
            Node::Literal { .. } => Vec::new(),
            Node::Call { args, .. } => {
                let mut columns: Vec<usize> = args.iter().flat_map(Self::columns).collect();
                columns.sort_unstable();
                columns.dedup();
                columns
            }
        }
    }

    /// Marks the columns that the expression reads.
    pub(crate) fn mark_columns(&self, used: &mut [bool]) {
        match &self.node {
            Node::Column(index) => {
                if let Some(flag) = used.get_mut(*index) {
                    *flag = true;
                }
            }
            Node::Literal { .. } => {}
            Node::Call { args, .. } => args.iter().for_each(|arg| arg.mark_columns(used)),
        }
    }

    fn call(operation: Operation, args: Vec<Self>, data_type: DataType) -> Result<Self, String> {
        check::check(operation, &args, data_type)
            .map_err(|reason| format!("invalid call of `{}`: {reason}", operation.name()))?;
        let fallible = args.iter().any(|arg| arg.fallible) || check::can_fail(operation, &args, data_type);
        Ok(Self { node: Node::Call { operation, args }, data_type, fallible })
    }
}

/// The JSON object of one node, before checks.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Json {
    op: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    value: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    args: Option<Vec<Expr>>,
    #[serde(rename = "type")]
    data_type: DataType,
}

/// Tells `"value": null` from a missing value.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<serde_json::Value>, D::Error> {
    serde_json::Value::deserialize(deserializer).map(Some).map_err(D::Error::custom)
}

impl TryFrom<Json> for Expr {
    type Error = String;

    fn try_from(json: Json) -> Result<Self, String> {
        let Json { op, index, value, args, data_type } = json;
        match (op.as_str(), index, value, args) {
            ("column", Some(index), None, None) => Ok(Self { node: Node::Column(index), data_type, fallible: false }),
            ("column", ..) => Err("a column has exactly `index` and `type`".to_owned()),
            ("literal", None, Some(json), None) => {
                let array = literal::build(&json, data_type)
                    .ok_or_else(|| format!("`{json}` is not a literal of type {data_type}"))?;
                Ok(Self { node: Node::Literal { json, array }, data_type, fallible: false })
            }
            ("literal", ..) => Err("a literal has exactly `value` and `type`".to_owned()),
            (name, None, None, Some(args)) => {
                let operation = Operation::from_name(name).ok_or_else(|| format!("unknown operation `{name}`"))?;
                Self::call(operation, args, data_type)
            }
            (name, ..) if Operation::from_name(name).is_none() => Err(format!("unknown operation `{name}`")),
            (name, ..) => Err(format!("a call of `{name}` has exactly `args` and `type`")),
        }
    }
}

impl From<Expr> for Json {
    fn from(expr: Expr) -> Self {
        let data_type = expr.data_type;
        let empty = Self { op: String::new(), index: None, value: None, args: None, data_type };
        match expr.node {
            Node::Column(index) => Self { op: "column".to_owned(), index: Some(index), ..empty },
            Node::Literal { json, .. } => Self { op: "literal".to_owned(), value: Some(json), ..empty },
            Node::Call { operation, args } => Self { op: operation.name().to_owned(), args: Some(args), ..empty },
        }
    }
}
