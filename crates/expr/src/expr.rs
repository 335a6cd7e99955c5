//! Expressions: the JSON form and its translation to checked ones.
//!
//! An [`Expr`] exists only if it is well typed (`check.rs`), so evaluation need not look at types again except to choose
//! a loop. Each node remembers whether its evaluation can fail on some row: operations that evaluate an argument on
//! some rows only (`and`, `case`, ...) take the shorter way of whole columns where nothing can fail.
//!
//! A part may occur several times: `let` names parts, and `shared` refers to them by number. So an expression is a DAG
//! whose tree may be exponentially larger, and everything here visits each part once. Nothing recurses along NULL-strict
//! operations; of the others there are at most [`MOST_LEVELS`] on a path.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::check;
use crate::datatype::DataType;
use crate::functions;
use crate::literal;
use crate::operation::Operation;

/// The most operations on a path that are evaluated by recursion.
const MOST_LEVELS: usize = 256;

/// A scalar expression over the columns of a batch.
///
/// ```
/// let json = r#"{"op": "add", "type": "int", "args": [
///     {"op": "column", "index": 0, "type": "int"}, {"op": "literal", "value": 1, "type": "int"}]}"#;
/// let expr: everview_expr::Expr = serde_json::from_str(json)?;
/// assert_eq!(expr.data_type().to_string(), "int");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone)]
pub struct Expr {
    pub(crate) node: Arc<Node>,
    pub(crate) data_type: DataType,
    pub(crate) fallible: bool,
    /// Whether it occurs several times in the expression that it is a part of.
    pub(crate) shared: bool,
    levels: usize,
}

/// The three kinds of expressions.
pub(crate) enum Node {
    /// A column of the batch.
    Column(usize),
    /// A constant, as an array of one value.
    Literal(ArrayRef),
    /// An operation on other expressions.
    Call { operation: Operation, args: Vec<Expr> },
}

impl Drop for Node {
    /// Without recursion: chains of operations may be long.
    fn drop(&mut self) {
        let mut open = match self {
            Self::Call { args, .. } => std::mem::take(args),
            _ => return,
        };
        while let Some(expr) = open.pop() {
            if let Some(Self::Call { args, .. }) = Arc::into_inner(expr.node).as_mut() {
                open.append(args);
            }
        }
    }
}

impl fmt::Debug for Expr {
    /// The outermost operation only: what is below may be large.
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match &*self.node {
            Node::Column(index) => write!(formatter, "column {index}: {}", self.data_type),
            Node::Literal(_) => write!(formatter, "literal: {}", self.data_type),
            Node::Call { operation, .. } => write!(formatter, "{}(...): {}", operation.name(), self.data_type),
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
        if let Node::Column(index) = *self.node { Some(index) } else { None }
    }

    /// The constant, as an array of one value, if the expression is a literal.
    pub(crate) fn as_literal(&self) -> Option<&ArrayRef> {
        if let Node::Literal(array) = &*self.node { Some(array) } else { None }
    }

    /// The text, if the expression is a literal text that is not NULL.
    pub(crate) fn as_text(&self) -> Option<&str> {
        let array = self.as_literal().filter(|array| self.data_type.is_text() && array.is_valid(0))?;
        Some(array.as_string::<i32>().value(0))
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
        let mut columns = Vec::new();
        let mut seen = HashSet::new();
        let mut open = vec![self];
        while let Some(expr) = open.pop() {
            match &*expr.node {
                Node::Column(index) => columns.push(*index),
                Node::Call { args, .. } if seen.insert(expr.identity()) => open.extend(args),
                Node::Literal(_) | Node::Call { .. } => {}
            }
        }
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// Tells parts of one expression from each other.
    pub(crate) fn identity(&self) -> usize {
        Arc::as_ptr(&self.node) as usize
    }

    /// Whether the expression is a NULL-strict operation.
    pub(crate) fn is_strict(&self) -> bool {
        matches!(&*self.node, Node::Call { operation, .. } if operation.is_strict())
    }

    fn leaf(node: Node, data_type: DataType) -> Self {
        Self { node: Arc::new(node), data_type, fallible: false, shared: false, levels: 0 }
    }

    fn call(operation: Operation, args: Vec<Self>, data_type: DataType) -> Result<Self, String> {
        check::check(operation, &args, data_type)
            .map_err(|reason| format!("invalid call of `{}`: {reason}", operation.name()))?;
        let fallible = args.iter().any(|arg| arg.fallible) || check::can_fail(operation, &args, data_type);
        let below = args.iter().map(|arg| arg.levels).max().unwrap_or(0);
        let levels = below + usize::from(!operation.is_strict());
        if levels > MOST_LEVELS {
            return Err(format!("the expression has more than {MOST_LEVELS} levels"));
        }
        Ok(Self { node: Arc::new(Node::Call { operation, args }), data_type, fallible, shared: false, levels })
    }
}

/// The JSON object of one node, before checks.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Json {
    op: String,
    #[serde(default)]
    index: Option<usize>,
    #[serde(default, deserialize_with = "present")]
    value: Option<serde_json::Value>,
    #[serde(default)]
    args: Option<Vec<Json>>,
    #[serde(default)]
    shared: Option<Vec<Json>>,
    #[serde(default, rename = "in")]
    body: Option<Box<Json>>,
    #[serde(rename = "type")]
    data_type: DataType,
}

/// Tells `"value": null` from a missing value.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<serde_json::Value>, D::Error> {
    serde_json::Value::deserialize(deserializer).map(Some).map_err(D::Error::custom)
}

impl<'de> Deserialize<'de> for Expr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(Json::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// The expression of a JSON object, which may be a `let`.
fn read(json: Json) -> Result<Expr, String> {
    if json.op != "let" {
        return read_part(json, &[]);
    }
    let Json { index: None, value: None, args: None, shared: Some(shared), body: Some(body), data_type, .. } = json
    else {
        return Err("a `let` has exactly `shared`, `in` and `type`".to_owned());
    };
    let mut uses = vec![0_usize; shared.len()];
    shared.iter().chain([&*body]).for_each(|json| count_uses(json, &mut uses));
    let mut parts: Vec<Expr> = Vec::with_capacity(shared.len());
    for (json, uses) in shared.into_iter().zip(uses) {
        let part = read_part(json, &parts)?;
        parts.push(Expr { shared: uses > 1, ..part });
    }
    let expr = read_part(*body, &parts)?;
    if expr.data_type == data_type {
        Ok(expr)
    } else {
        Err(format!("a `let` of type {data_type} gives {}", expr.data_type))
    }
}

fn count_uses(json: &Json, uses: &mut [usize]) {
    if let (true, Some(count)) = (json.op == "shared", json.index.and_then(|index| uses.get_mut(index))) {
        *count += 1;
    }
    json.args.iter().flatten().for_each(|json| count_uses(json, uses));
}

/// The expression of a JSON object; `shared` are the parts that it may refer to.
fn read_part(json: Json, shared: &[Expr]) -> Result<Expr, String> {
    let Json { op, index, value, args, shared: inner, body, data_type } = json;
    if inner.is_some() || body.is_some() || op == "let" {
        return Err("a `let` stands outermost".to_owned());
    }
    match (op.as_str(), index, value, args) {
        ("column", Some(index), None, None) => Ok(Expr::leaf(Node::Column(index), data_type)),
        ("column", ..) => Err("a column has exactly `index` and `type`".to_owned()),
        ("shared", Some(index), None, None) => match shared.get(index) {
            Some(expr) if expr.data_type == data_type => Ok(expr.clone()),
            Some(expr) => Err(format!("shared part {index} is {}, not {data_type}", expr.data_type)),
            None => Err(format!("there is no shared part {index} before this one")),
        },
        ("shared", ..) => Err("a shared part has exactly `index` and `type`".to_owned()),
        ("literal", None, Some(json), None) => {
            let array = literal::build(&json, data_type)
                .ok_or_else(|| format!("`{json}` is not a literal of type {data_type}"))?;
            Ok(Expr::leaf(Node::Literal(array), data_type))
        }
        ("literal", ..) => Err("a literal has exactly `value` and `type`".to_owned()),
        (name, None, None, Some(args)) => {
            let args: Vec<Expr> = args.into_iter().map(|arg| read_part(arg, shared)).collect::<Result<_, _>>()?;
            let operation = match Operation::from_name(name) {
                Some(operation) => operation,
                None if functions::is_known(name) => {
                    let found = functions::find(name, &args, data_type);
                    Operation::Function(found.map_err(|reason| format!("invalid call of `{name}`: {reason}"))?)
                }
                None => return Err(format!("unknown operation `{name}`")),
            };
            Expr::call(operation, args, data_type)
        }
        (name, ..) if Operation::from_name(name).is_none() && !functions::is_known(name) => {
            Err(format!("unknown operation `{name}`"))
        }
        (name, ..) => Err(format!("a call of `{name}` has exactly `args` and `type`")),
    }
}
