//! The SQL types of expressions, their text form and their Arrow form.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use arrow_schema::TimeUnit;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A SQL type. The text form (`Display`, `FromStr`, serde) is Spark's lower-case name, for example `decimal(12,2)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DataType {
    /// `boolean`
    Boolean,
    /// `tinyint`, 8 bits
    TinyInt,
    /// `smallint`, 16 bits
    SmallInt,
    /// `int`, 32 bits
    Int,
    /// `bigint`, 64 bits
    BigInt,
    /// `float`, 32 bits
    Float,
    /// `double`, 64 bits
    Double,
    /// `decimal(p,s)`
    Decimal {
        /// Number of digits, 1 to 38.
        precision: u8,
        /// Number of digits after the point, 0 to the precision.
        scale: i8,
    },
    /// `string`
    String,
    /// `char(n)`, padded with blanks
    Char(u32),
    /// `varchar(n)`
    VarChar(u32),
    /// `binary`
    Binary,
    /// `date`, days since 1970-01-01
    Date,
    /// `timestamp`, microseconds since 1970-01-01 00:00:00 UTC
    Timestamp,
    /// `timestamp_ntz`, a date and a time of day without zone: microseconds since 1970-01-01 00:00:00
    TimestampNtz,
    /// `null`, the type of a bare NULL
    Null,
}

impl DataType {
    /// The Arrow type of a column of this type.
    pub fn arrow(&self) -> arrow_schema::DataType {
        use arrow_schema::DataType as Arrow;
        match *self {
            Self::Boolean => Arrow::Boolean,
            Self::TinyInt => Arrow::Int8,
            Self::SmallInt => Arrow::Int16,
            Self::Int => Arrow::Int32,
            Self::BigInt => Arrow::Int64,
            Self::Float => Arrow::Float32,
            Self::Double => Arrow::Float64,
            Self::Decimal { precision, scale } => Arrow::Decimal128(precision, scale),
            Self::String | Self::Char(_) | Self::VarChar(_) => Arrow::Utf8,
            Self::Binary => Arrow::Binary,
            Self::Date => Arrow::Date32,
            Self::Timestamp => Arrow::Timestamp(TimeUnit::Microsecond, Some(Arc::from("UTC"))),
            Self::TimestampNtz => Arrow::Timestamp(TimeUnit::Microsecond, None),
            Self::Null => Arrow::Null,
        }
    }

    /// `string`, `char(n)` or `varchar(n)`.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Self::String | Self::Char(_) | Self::VarChar(_))
    }

    /// `timestamp` or `timestamp_ntz`.
    pub(crate) fn is_timestamp(self) -> bool {
        matches!(self, Self::Timestamp | Self::TimestampNtz)
    }

    /// `tinyint`, `smallint`, `int` or `bigint`.
    pub(crate) fn is_integer(self) -> bool {
        matches!(self, Self::TinyInt | Self::SmallInt | Self::Int | Self::BigInt)
    }

    /// `float` or `double`.
    pub(crate) fn is_floating(self) -> bool {
        matches!(self, Self::Float | Self::Double)
    }

    /// `decimal(p,s)`.
    pub(crate) fn is_decimal(self) -> bool {
        matches!(self, Self::Decimal { .. })
    }

    /// Any type that arithmetic knows.
    pub(crate) fn is_numeric(self) -> bool {
        self.is_integer() || self.is_floating() || self.is_decimal()
    }

    /// Whether columns of both types have the same representation, so that values can stand for each other.
    pub fn is_same_storage(self, other: Self) -> bool {
        self == other || (self.is_text() && other.is_text())
    }

    /// Whether values of both types can be compared.
    pub(crate) fn is_comparable(self, other: Self) -> bool {
        self.is_same_storage(other) || (self.is_decimal() && other.is_decimal())
    }

    /// Scale of a decimal, 0 for other types.
    pub(crate) fn scale(self) -> i8 {
        if let Self::Decimal { scale, .. } = self { scale } else { 0 }
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean => f.write_str("boolean"),
            Self::TinyInt => f.write_str("tinyint"),
            Self::SmallInt => f.write_str("smallint"),
            Self::Int => f.write_str("int"),
            Self::BigInt => f.write_str("bigint"),
            Self::Float => f.write_str("float"),
            Self::Double => f.write_str("double"),
            Self::Decimal { precision, scale } => write!(f, "decimal({precision},{scale})"),
            Self::String => f.write_str("string"),
            Self::Char(length) => write!(f, "char({length})"),
            Self::VarChar(length) => write!(f, "varchar({length})"),
            Self::Binary => f.write_str("binary"),
            Self::Date => f.write_str("date"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::TimestampNtz => f.write_str("timestamp_ntz"),
            Self::Null => f.write_str("null"),
        }
    }
}

/// A text that names no type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown data type `{0}`")]
pub struct ParseDataTypeError(String);

impl FromStr for DataType {
    type Err = ParseDataTypeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || ParseDataTypeError(text.to_owned());
        let (name, arguments) = match text.split_once('(') {
            Some((name, rest)) => (name.trim(), Some(rest.trim_end().strip_suffix(')').ok_or_else(unknown)?)),
            None => (text.trim(), None),
        };
        let name = name.to_ascii_lowercase();
        let length = |arguments: &str| match arguments.trim().parse::<u32>() {
            Ok(length) if length > 0 => Ok(length),
            _ => Err(unknown()),
        };
        match (name.as_str(), arguments) {
            ("boolean", None) => Ok(Self::Boolean),
            ("tinyint", None) => Ok(Self::TinyInt),
            ("smallint", None) => Ok(Self::SmallInt),
            ("int", None) => Ok(Self::Int),
            ("bigint", None) => Ok(Self::BigInt),
            ("float", None) => Ok(Self::Float),
            ("double", None) => Ok(Self::Double),
            ("string", None) => Ok(Self::String),
            ("binary", None) => Ok(Self::Binary),
            ("date", None) => Ok(Self::Date),
            ("timestamp", None) => Ok(Self::Timestamp),
            ("timestamp_ntz", None) => Ok(Self::TimestampNtz),
            ("null", None) => Ok(Self::Null),
            ("char", Some(arguments)) => Ok(Self::Char(length(arguments)?)),
            ("varchar", Some(arguments)) => Ok(Self::VarChar(length(arguments)?)),
            ("decimal", Some(arguments)) => {
                let (precision, scale) = arguments.split_once(',').ok_or_else(unknown)?;
                let precision = precision.trim().parse::<u8>().map_err(|_| unknown())?;
                let scale = scale.trim().parse::<i8>().map_err(|_| unknown())?;
                if (1..=38).contains(&precision) && scale >= 0 && scale as u8 <= precision {
                    Ok(Self::Decimal { precision, scale })
                } else {
                    Err(unknown())
                }
            }
            _ => Err(unknown()),
        }
    }
}

impl Serialize for DataType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DataType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::DataType;

    #[test]
    fn text_form_round_trips() {
        for text in [
            "boolean",
            "tinyint",
            "smallint",
            "int",
            "bigint",
            "float",
            "double",
            "decimal(38,18)",
            "string",
            "char(3)",
            "varchar(10)",
            "binary",
            "date",
            "timestamp",
            "timestamp_ntz",
            "null",
        ] {
            assert_eq!(text.parse::<DataType>().unwrap().to_string(), text);
        }
        assert_eq!("Decimal( 5 , 2 )".parse(), Ok(DataType::Decimal { precision: 5, scale: 2 }));
    }

    #[test]
    fn bad_types_are_refused() {
        for text in [
            "",
            "integer",
            "decimal",
            "decimal(39,0)",
            "decimal(0,0)",
            "decimal(5,6)",
            "decimal(5,-1)",
            "char(0)",
            "char(3",
            "int(3)",
        ] {
            assert!(text.parse::<DataType>().is_err(), "{text}");
        }
    }
}
