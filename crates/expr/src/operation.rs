//! The operations of expressions: names and arity.

/// Declares [`Operation`] with its names and the least and greatest number of arguments.
macro_rules! operations {
    ($($variant:ident $name:literal $least:literal $most:expr;)*) => {
        /// What a call computes; `docs/reference/expressions.md` has the meaning of each.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum Operation { $($variant),* }

        impl Operation {
            /// The operation of this name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }

            /// The name in JSON.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// Least and greatest number of arguments.
            pub fn arity(self) -> (usize, usize) {
                match self { $(Self::$variant => ($least, $most)),* }
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
    Like "like" 2 3;
    IsNull "is_null" 1 1;
    IsNotNull "is_not_null" 1 1;
    Case "case" 3 usize::MAX;
    Coalesce "coalesce" 1 usize::MAX;
    If "if" 3 3;
    NullIf "nullif" 2 2;
    Cast "cast" 1 1;
    DateAdd "date_add" 2 2;
    DateSub "date_sub" 2 2;
    DateDiff "datediff" 2 2;
    AddMonths "add_months" 2 2;
    TimestampAdd "timestamp_add" 2 2;
    TimestampAddMonths "timestamp_add_months" 2 2;
    TimestampDiff "timestamp_diff" 2 2;
    Year "year" 1 1;
    Month "month" 1 1;
    Day "day" 1 1;
    Quarter "quarter" 1 1;
    DayOfWeek "dayofweek" 1 1;
    DayOfYear "dayofyear" 1 1;
    WeekOfYear "weekofyear" 1 1;
    Hour "hour" 1 1;
    Minute "minute" 1 1;
    Second "second" 1 1;
    DateTrunc "date_trunc" 2 2;
    Trunc "trunc" 2 2;
    Substring "substring" 2 3;
    Upper "upper" 1 1;
    Lower "lower" 1 1;
    Trim "trim" 1 1;
    LTrim "ltrim" 1 1;
    RTrim "rtrim" 1 1;
    Length "length" 1 1;
    Concat "concat" 1 usize::MAX;
    Replace "replace" 2 3;
    Left "left" 2 2;
    Right "right" 2 2;
    StartsWith "starts_with" 2 2;
    EndsWith "ends_with" 2 2;
    Contains "contains" 2 2;
    Greatest "greatest" 2 usize::MAX;
    Least "least" 2 usize::MAX;
}

impl Operation {
    /// Whether the result is NULL wherever an argument is, so that all arguments are evaluated wherever it can be anything else.
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
}
