//! The operations of expressions: those of the language itself, with names and arity, and the functions of the register.

use crate::functions::{Function, Nulls};

/// Declares [`Operation`] with its names and the least and greatest number of arguments.
macro_rules! operations {
    ($($variant:ident $name:literal $least:literal $most:expr;)*) => {
        /// What a call computes; `docs/reference/expressions.md` has the meaning of each.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Operation {
            $($variant,)*
            /// A function of the register.
            Function(&'static Function),
        }

        impl Operation {
            /// The operation of this name that is no function.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }

            /// The name in JSON.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* Self::Function(function) => function.name }
            }

            /// Least and greatest number of arguments. Functions know their arguments themselves.
            pub fn arity(self) -> (usize, usize) {
                match self { $(Self::$variant => ($least, $most),)* Self::Function(_) => (0, usize::MAX) }
            }
        }
    };
}

operations! {
    Add "add" 2 2;
    Subtract "subtract" 2 2;
    Multiply "multiply" 2 2;
    Divide "divide" 2 2;
    IntDiv "int_div" 2 2;
    Modulo "modulo" 2 2;
    Negate "negate" 1 1;
    Abs "abs" 1 1;
    Round "round" 2 2;
    RoundEven "bround" 2 2;
    Floor "floor" 1 1;
    Ceil "ceil" 1 1;
    Eq "eq" 2 2;
    Ne "ne" 2 2;
    Lt "lt" 2 2;
    Le "le" 2 2;
    Gt "gt" 2 2;
    Ge "ge" 2 2;
    EqNullSafe "eq_null_safe" 2 2;
    And "and" 2 usize::MAX;
    Or "or" 2 usize::MAX;
    Not "not" 1 1;
    In "in" 2 usize::MAX;
    IsNull "is_null" 1 1;
    IsNotNull "is_not_null" 1 1;
    Case "case" 3 usize::MAX;
    Coalesce "coalesce" 1 usize::MAX;
    If "if" 3 3;
    NullIf "nullif" 2 2;
    Cast "cast" 1 1;
    Greatest "greatest" 2 usize::MAX;
    Least "least" 2 usize::MAX;
}

impl Operation {
    /// Whether the result is computed from whole columns of arguments, without a choice of rows: evaluation does not recurse.
    ///
    /// All of these but functions that say otherwise are NULL wherever an argument is.
    pub fn is_strict(self) -> bool {
        !matches!(
            self,
            Self::And
                | Self::Or
                | Self::Case
                | Self::If
                | Self::Coalesce
                | Self::In
                | Self::IsNull
                | Self::IsNotNull
                | Self::EqNullSafe
                | Self::NullIf
                | Self::Greatest
                | Self::Least
        )
    }

    /// How NULL arguments are treated, if the operation is strict.
    pub fn nulls(self) -> Nulls {
        if let Self::Function(function) = self { function.nulls } else { Nulls::Strict }
    }
}
