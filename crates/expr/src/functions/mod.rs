//! The functions: everything that is computed from its evaluated arguments, apart from arithmetic, comparisons and casts.
//!
//! A function is a [`Function`]: its name, the types it takes and gives, and a loop over columns. Each group has a file
//! with a table of its functions; [`GROUPS`] lists the tables. A name may stand several times, with other arguments.
//! `python/everview/sql/functions/` says which calls of SQL become which of these.

use std::collections::BTreeSet;
use std::fmt;

use arrow_array::ArrayRef;

use crate::column::Input;
use crate::datatype::DataType;
use crate::error::EvalError;
use crate::expr::Expr;

mod binary;
pub(crate) mod build;
mod dates;
mod digests;
mod formats;
mod math;
mod pattern;
mod regexes;
pub(crate) mod text;

/// The tables of all groups.
const GROUPS: &[&[Function]] = &[
    text::FUNCTIONS,
    text::MORE,
    regexes::FUNCTIONS,
    binary::FUNCTIONS,
    digests::FUNCTIONS,
    math::FUNCTIONS,
    math::OF_INTEGERS,
    dates::FUNCTIONS,
    formats::FUNCTIONS,
];

/// What an argument or a result may be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Slot {
    /// Exactly this type.
    Is(DataType),
    /// `string`, `char(n)` or `varchar(n)`; as a result `string`.
    Text,
    /// A text that is a literal and not NULL.
    TextLiteral,
    /// A text that is a literal of one character.
    Character,
    /// `timestamp` or `timestamp_ntz`.
    Moment,
    /// `date` or a timestamp.
    Day,
    /// `decimal(p,s)`; the result has the precision and scale that were asked for.
    Decimal,
    /// The type of the first argument.
    First,
}

pub(crate) const BOOLEAN: Slot = Slot::Is(DataType::Boolean);
pub(crate) const INT: Slot = Slot::Is(DataType::Int);
pub(crate) const BIGINT: Slot = Slot::Is(DataType::BigInt);
pub(crate) const DOUBLE: Slot = Slot::Is(DataType::Double);
pub(crate) const BINARY: Slot = Slot::Is(DataType::Binary);
pub(crate) const DATE: Slot = Slot::Is(DataType::Date);
pub(crate) const TIMESTAMP: Slot = Slot::Is(DataType::Timestamp);

impl Slot {
    fn takes(self, arg: &Expr, first: DataType) -> bool {
        match self {
            Self::Is(data_type) => arg.data_type == data_type,
            Self::Text => arg.data_type.is_text(),
            Self::TextLiteral => arg.as_text().is_some(),
            Self::Character => arg.as_text().is_some_and(|text| text.chars().count() == 1),
            Self::Moment => arg.data_type.is_timestamp(),
            Self::Day => arg.data_type == DataType::Date || arg.data_type.is_timestamp(),
            Self::Decimal => arg.data_type.is_decimal(),
            Self::First => arg.data_type == first,
        }
    }

    fn gives(self, result: DataType, first: DataType) -> bool {
        match self {
            Self::Is(data_type) => result == data_type,
            Self::Text | Self::TextLiteral | Self::Character => result.is_text(),
            Self::Moment => result.is_timestamp(),
            Self::Day => result == DataType::Date || result.is_timestamp(),
            Self::Decimal => result.is_decimal(),
            Self::First => result == first,
        }
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Is(data_type) => data_type.fmt(formatter),
            Self::Text => formatter.write_str("text"),
            Self::TextLiteral => formatter.write_str("text literal"),
            Self::Character => formatter.write_str("one character"),
            Self::Moment => formatter.write_str("a timestamp"),
            Self::Day => formatter.write_str("a date or timestamp"),
            Self::Decimal => formatter.write_str("decimal"),
            Self::First => formatter.write_str("the first type"),
        }
    }
}

/// Whether a call whose arguments cannot fail can fail on some row.
#[derive(Clone, Copy)]
pub(crate) enum Fails {
    Never,
    OnSomeRows,
    /// It depends on the arguments, most often on a literal.
    If(fn(&[Expr]) -> bool),
}

/// How a call treats NULL arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nulls {
    /// It is NULL where one is, and later arguments are evaluated only where earlier ones are not NULL.
    Strict,
    /// It is NULL where one is, and all arguments are evaluated everywhere.
    StrictAfterAll,
    /// All arguments are evaluated everywhere, and the loop looks at their NULLs itself.
    Seen,
}

/// The loop of a function; it is told the type of the result.
pub(crate) type Compute = fn(&Input, DataType) -> Result<ArrayRef, EvalError>;

/// A function with one list of argument types.
pub(crate) struct Function {
    pub name: &'static str,
    args: &'static [Slot],
    /// Whether the last argument may be repeated.
    repeats: bool,
    gives: Slot,
    fails: Fails,
    pub nulls: Nulls,
    pub compute: Compute,
}

/// A function that is NULL where an argument is and cannot fail.
pub(crate) const fn function(name: &'static str, args: &'static [Slot], gives: Slot, compute: Compute) -> Function {
    Function { name, args, repeats: false, gives, fails: Fails::Never, nulls: Nulls::Strict, compute }
}

impl Function {
    /// The same function of more arguments like the last.
    pub const fn repeating(mut self) -> Self {
        self.repeats = true;
        self
    }

    /// The same function, which can fail on some row.
    pub const fn failing(mut self) -> Self {
        self.fails = Fails::OnSomeRows;
        self
    }

    /// The same function, which can fail if its arguments are such.
    pub const fn failing_if(mut self, condition: fn(&[Expr]) -> bool) -> Self {
        self.fails = Fails::If(condition);
        self
    }

    /// The same function with another treatment of NULLs.
    pub const fn with_nulls(mut self, nulls: Nulls) -> Self {
        self.nulls = nulls;
        self
    }

    /// Whether a call with arguments that cannot fail can fail on some row.
    pub fn can_fail(&self, args: &[Expr]) -> bool {
        match self.fails {
            Fails::Never => false,
            Fails::OnSomeRows => true,
            Fails::If(condition) => condition(args),
        }
    }

    fn takes_count(&self, count: usize) -> bool {
        count == self.args.len() || (self.repeats && count > self.args.len())
    }

    fn takes(&self, args: &[Expr]) -> bool {
        let Some((last, first)) = self.args.last().zip(args.first().map(|arg| arg.data_type)) else {
            return args.len() == self.args.len();
        };
        self.takes_count(args.len())
            && args.iter().enumerate().all(|(index, arg)| self.args.get(index).unwrap_or(last).takes(arg, first))
    }

    fn signature(&self) -> String {
        let args: Vec<String> = self.args.iter().map(ToString::to_string).collect();
        format!("({}{})", args.join(", "), if self.repeats { ", ..." } else { "" })
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{}{}", self.name, self.signature())
    }
}

impl PartialEq for Function {
    /// Functions are entries of tables: each is equal to itself alone.
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Function {}

fn named(name: &str) -> impl Iterator<Item = &'static Function> {
    GROUPS.iter().flat_map(|group| group.iter()).filter(move |function| function.name == name)
}

/// Whether there is a function of this name.
pub(crate) fn is_known(name: &str) -> bool {
    named(name).next().is_some()
}

/// The function of a name that takes some arguments and gives a result; the error says what was expected.
pub(crate) fn find(name: &str, args: &[Expr], result: DataType) -> Result<&'static Function, String> {
    let Some(function) = named(name).find(|function| function.takes(args)) else {
        if !named(name).any(|function| function.takes_count(args.len())) {
            let expected: BTreeSet<usize> = named(name).map(|function| function.args.len()).collect();
            let expected: Vec<String> = expected.iter().map(ToString::to_string).collect();
            return Err(format!("{} arguments expected, {} given", expected.join(" or "), args.len()));
        }
        let expected: Vec<String> = named(name).map(Function::signature).collect();
        let given: Vec<String> = args.iter().map(|arg| arg.data_type.to_string()).collect();
        return Err(format!("{} expected, ({}) given", expected.join(" or "), given.join(", ")));
    };
    let first = args.first().map_or(DataType::Null, |arg| arg.data_type);
    if function.gives.gives(result, first) {
        Ok(function)
    } else {
        let gives = if let Slot::First = function.gives { first.to_string() } else { function.gives.to_string() };
        Err(format!("the result is {gives}, not {result}"))
    }
}
