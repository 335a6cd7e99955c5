//! The maintenance plan as the kernel reads it: see `docs/reference/maintenance-plan.md`.

use crate::codec::words_of;
use crate::shape::{EdgeKind, HubShape, NodeShape, TreeShape, VariableShape};
use everview_expr::{DataType, Expr};
use serde::{Deserialize, Deserializer};

/// The plan format this kernel understands.
pub const VERSION: u32 = 2;

/// A plan.
#[derive(Clone, Debug, Deserialize)]
pub struct Plan {
    /// Format version.
    pub version: u32,
    /// The view's name.
    pub view: String,
    /// The stages in topological order; the last is the view.
    pub stages: Vec<Stage>,
    /// The output columns.
    pub output: Vec<Column>,
}

/// A column of the output.
#[derive(Clone, Debug, Deserialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub data_type: DataType,
    /// Whether it can be NULL.
    pub nullable: bool,
}

/// A stage.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "stage", rename_all = "lowercase")]
pub enum Stage {
    /// A semi-join tree over tables.
    Core(Core),
    /// Groups.
    Aggregate(Aggregate),
    /// Computed columns.
    Map {
        /// The stage read.
        input: usize,
        /// The output columns.
        columns: Vec<MapColumn>,
    },
    /// A condition.
    Filter {
        /// The stage read.
        input: usize,
        /// The condition over its columns.
        predicate: Expr,
    },
    /// Each row once.
    Distinct {
        /// The stage read.
        input: usize,
    },
    /// The first rows of an order.
    TopK(TopK),
    /// Each row as often as it says itself.
    Repeat {
        /// The stage read.
        input: usize,
        /// How often, a BIGINT over its columns.
        count: Expr,
    },
    /// Rows that never change.
    Values(Values),
    /// The rows of several stages.
    Union {
        /// The stages read.
        inputs: Vec<usize>,
    },
}

impl Stage {
    /// The stages read; those of a core's atoms each once.
    pub fn inputs(&self) -> Vec<usize> {
        match self {
            Self::Core(core) => {
                let stage = |atom: &Atom| if let Source::Stage(stage) = atom.source { Some(stage) } else { None };
                let mut found: Vec<usize> = core.atoms.iter().filter_map(stage).collect();
                found.sort_unstable();
                found.dedup();
                found
            }
            Self::Aggregate(aggregate) => vec![aggregate.input],
            Self::Map { input, .. }
            | Self::Filter { input, .. }
            | Self::Distinct { input }
            | Self::Repeat { input, .. } => vec![*input],
            Self::Values(_) => Vec::new(),
            Self::TopK(top_k) => vec![top_k.input],
            Self::Union { inputs } => inputs.clone(),
        }
    }
}

/// A computed column.
#[derive(Clone, Debug, Deserialize)]
pub struct MapColumn {
    /// Its name.
    pub name: String,
    /// What it is.
    pub expression: Expr,
}

/// Rows that never change.
#[derive(Clone, Debug, Deserialize)]
pub struct Values {
    /// Their columns.
    pub columns: Vec<Column>,
    /// Constant expressions, one per column.
    pub rows: Vec<Vec<Expr>>,
}

/// The rows from one rank of an order to another.
#[derive(Clone, Debug, Deserialize)]
pub struct TopK {
    /// The stage read.
    pub input: usize,
    /// Positions of the columns by whose values rows are ordered apart from others.
    pub partition: Vec<usize>,
    /// What rows are ordered by; those that are equal there, by their other columns.
    pub order: Vec<SortColumn>,
    /// How many rows there are at most; `None`: all.
    pub limit: Option<u64>,
    /// How many rows before them are left out.
    pub offset: u64,
    /// The name of a last column, an INT, with the rank of the row in its partition, from 1.
    #[serde(default)]
    pub rank: Option<String>,
}

/// A column that rows are ordered by.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub struct SortColumn {
    /// Its position.
    pub column: usize,
    /// Whether large values come first.
    pub descending: bool,
    /// Whether NULL comes first.
    pub nulls_first: bool,
}

/// A group aggregate.
#[derive(Clone, Debug, Deserialize)]
pub struct Aggregate {
    /// The stage read.
    pub input: usize,
    /// Positions of the grouping columns in the input.
    pub keys: Vec<usize>,
    /// The aggregates.
    pub aggregates: Vec<AggregateColumn>,
}

impl Aggregate {
    /// Its columns, above an input of these.
    pub fn columns(&self, input: &[(String, DataType)]) -> Vec<(String, DataType)> {
        let keys = self.keys.iter().map(|&k| input[k].clone());
        keys.chain(self.aggregates.iter().map(|a| (a.function.to_string(), a.data_type))).collect()
    }
}

/// An aggregate function.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Function {
    /// Number of rows or of non-NULL values.
    Count,
    /// Sum of the non-NULL values.
    Sum,
    /// Mean of the non-NULL values.
    Avg,
    /// The least of the non-NULL values.
    Min,
    /// The greatest of the non-NULL values.
    Max,
    /// The value of the only row; a group of two is refused.
    Single,
    /// The first argument where the second is least.
    MinBy,
    /// The first argument where the second is greatest.
    MaxBy,
    /// Variance.
    VarPop,
    /// Variance of a sample.
    VarSamp,
    /// Its root.
    StddevPop,
    /// The root of that of a sample.
    StddevSamp,
    /// Covariance.
    CovarPop,
    /// Covariance of a sample.
    CovarSamp,
    /// Correlation.
    Corr,
    /// The exact sums of a variance, as bytes: a partial result. An argument of this kind in the place of numbers is such a partial result.
    VarianceState,
    /// Those of a covariance.
    CovarianceState,
    /// Those of a correlation.
    CorrelationState,
}

impl std::fmt::Display for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Count => "count",
            Self::Sum => "sum",
            Self::Avg => "avg",
            Self::Min => "min",
            Self::Max => "max",
            Self::Single => "single",
            Self::MinBy => "min_by",
            Self::MaxBy => "max_by",
            Self::VarPop => "var_pop",
            Self::VarSamp => "var_samp",
            Self::StddevPop => "stddev_pop",
            Self::StddevSamp => "stddev_samp",
            Self::CovarPop => "covar_pop",
            Self::CovarSamp => "covar_samp",
            Self::Corr => "corr",
            Self::VarianceState => "variance_state",
            Self::CovarianceState => "covariance_state",
            Self::CorrelationState => "correlation_state",
        })
    }
}

/// One aggregate.
#[derive(Clone, Debug, Deserialize)]
pub struct AggregateColumn {
    /// The function.
    pub function: Function,
    /// The type of the result.
    #[serde(rename = "type")]
    pub data_type: DataType,
    /// The type of the summed expression.
    pub argument_type: Option<DataType>,
    /// The argument over the input's columns, where the tree does not carry it.
    pub argument: Option<Expr>,
    /// The second argument, of functions that take two.
    #[serde(default)]
    pub second: Option<Expr>,
    /// The component that holds the sum.
    pub sum: Option<usize>,
    /// The component that holds the number of non-NULL values; the multiplicity without one.
    pub count: Option<usize>,
}

/// A semi-join tree over tables.
#[derive(Clone, Debug, Deserialize)]
#[serde(remote = "Self")]
pub struct Core {
    /// `bag` or `set`.
    pub mode: Mode,
    /// The variables.
    pub variables: Vec<Column>,
    /// Annotation components beyond the multiplicity.
    pub components: usize,
    /// The atoms.
    pub atoms: Vec<Atom>,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The hubs; hub 0 is the root.
    pub hubs: Vec<Hub>,
    /// The output variables.
    pub head: Vec<usize>,
}

/// How results count.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// With their multiplicity.
    Bag,
    /// Once.
    Set,
}

/// Where the rows of an atom come from.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// A table.
    Table(String),
    /// An earlier stage of the plan.
    Stage(usize),
    /// Another view.
    View(String),
}

/// An occurrence of a table, a stage or a view.
#[derive(Clone, Debug, Deserialize)]
pub struct Atom {
    /// Its alias.
    pub name: String,
    /// What it reads.
    pub source: Source,
    /// The condition its rows fulfil.
    pub filter: Option<Expr>,
    /// What its variables are bound to.
    pub columns: Vec<AtomColumn>,
    /// Its factor in each component.
    pub factors: Vec<Option<Expr>>,
    /// The number of equal atoms it stands for.
    pub power: u32,
}

/// A binding.
#[derive(Clone, Debug, Deserialize)]
pub struct AtomColumn {
    /// The variable.
    pub variable: usize,
    /// What it is bound to.
    pub expression: Expr,
    /// Whether rows where it is NULL are dropped; unless said, where the variable is one of a join.
    #[serde(default)]
    pub not_null: Option<bool>,
}

/// A node.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Node {
    /// The rows of an atom.
    Relation {
        /// The atom.
        atom: usize,
        /// Its variables.
        columns: Vec<usize>,
        /// Whether results bind it.
        connex: bool,
        /// The hub above.
        up: usize,
        /// The hubs below.
        down: Vec<usize>,
    },
    /// One row per entry of its guard, the first hub below.
    Projection {
        /// Its variables.
        columns: Vec<usize>,
        /// Whether results bind it.
        connex: bool,
        /// The hub above.
        up: usize,
        /// The hubs below.
        down: Vec<usize>,
    },
}

/// A hub.
#[derive(Clone, Debug, Deserialize)]
pub struct Hub {
    /// The key.
    pub key: Vec<usize>,
    /// The node above.
    pub parent: Option<usize>,
    /// The nodes below.
    pub children: Vec<usize>,
    /// What it asks of the rows of the node above.
    #[serde(default)]
    pub kind: EdgeKind,
    /// Of an optional hub, the components of the phantom; zeros unless said.
    #[serde(default)]
    pub phantom: Vec<Integer>,
}

/// An integer of 128 bits: a JSON number, or a text of its decimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "IntegerText")]
pub struct Integer(pub i128);

#[derive(Deserialize)]
#[serde(untagged)]
enum IntegerText {
    Number(i64),
    Digits(String),
}

impl TryFrom<IntegerText> for Integer {
    type Error = std::num::ParseIntError;

    fn try_from(text: IntegerText) -> Result<Self, Self::Error> {
        match text {
            IntegerText::Number(number) => Ok(Self(number.into())),
            IntegerText::Digits(digits) => digits.parse().map(Self),
        }
    }
}

impl<'de> Deserialize<'de> for Core {
    /// A core that is not a tree as the engine relies on is refused here, so that nothing later can stumble over it.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let core = Self::deserialize(from)?; // the derived function, which checks nothing
        core.check().map_err(serde::de::Error::custom)?;
        Ok(core)
    }
}

impl Node {
    /// Its variables.
    pub fn columns(&self) -> &[usize] {
        let (Self::Relation { columns, .. } | Self::Projection { columns, .. }) = self;
        columns
    }

    /// Whether results bind it.
    pub fn is_connex(&self) -> bool {
        let (Self::Relation { connex, .. } | Self::Projection { connex, .. }) = self;
        *connex
    }

    /// The hub above.
    pub fn up(&self) -> usize {
        let (Self::Relation { up, .. } | Self::Projection { up, .. }) = self;
        *up
    }

    /// The hubs below.
    pub fn down(&self) -> &[usize] {
        let (Self::Relation { down, .. } | Self::Projection { down, .. }) = self;
        down
    }
}

impl Core {
    /// Whether rows that bind a column to NULL are dropped before they reach the tree.
    pub fn drops_null(&self, column: &AtomColumn) -> bool {
        column.not_null.unwrap_or_else(|| self.is_join_variable(column.variable))
    }

    /// Whether a variable occurs in two or more atoms.
    pub fn is_join_variable(&self, variable: usize) -> bool {
        let occurs = |atom: &&Atom| atom.columns.iter().any(|c| c.variable == variable);
        self.atoms.iter().filter(occurs).count() > 1
    }

    /// The columns of its results.
    pub fn head_columns(&self) -> Vec<(String, DataType)> {
        self.head.iter().map(|&v| (self.variables[v].name.clone(), self.variables[v].data_type)).collect()
    }

    /// The shape of the tree.
    pub fn shape(&self) -> TreeShape {
        let columns = || self.atoms.iter().flat_map(|atom| &atom.columns);
        let keeps_null = |v: usize| columns().any(|column| column.variable == v && !self.drops_null(column));
        let variables = (0..self.variables.len()).map(|v| {
            let nullable = self.variables[v].nullable && keeps_null(v);
            VariableShape { words: words_of(self.variables[v].data_type), nullable, null_in_rows: nullable }
        });
        let nodes = self.nodes.iter().map(|node| match node {
            Node::Relation { atom, columns, connex, up, down } => {
                let mut next = 0;
                let factors =
                    self.atoms[*atom].factors.iter().map(|f| f.as_ref().map(|_| (next, next += 1).0)).collect();
                NodeShape {
                    atom: Some(*atom),
                    columns: columns.clone(),
                    connex: *connex,
                    up: *up,
                    downs: down.clone(),
                    factors,
                    power: self.atoms[*atom].power,
                    stores_rows: false,
                }
            }
            Node::Projection { columns, connex, up, down } => NodeShape {
                atom: None,
                columns: columns.clone(),
                connex: *connex,
                up: *up,
                downs: down.clone(),
                factors: vec![None; self.components],
                power: 1,
                stores_rows: false,
            },
        });
        let hubs = self.hubs.iter().map(|h| HubShape {
            key: h.key.clone(),
            parent: h.parent,
            children: h.children.clone(),
            kind: h.kind,
            phantom: if h.phantom.is_empty() {
                vec![0; self.components]
            } else {
                h.phantom.iter().map(|component| component.0).collect()
            },
        });
        let mut shape = TreeShape {
            variables: variables.collect(),
            nodes: nodes.collect(),
            hubs: hubs.collect(),
            head: self.head.clone(),
            set: self.mode == Mode::Set,
            components: self.components,
        };
        shape.allow_phantoms();
        shape
    }
}
