//! Type rules: which calls are well typed, and which of them can fail on a row.
//!
//! The front end has made every implicit cast explicit, so the rules are strict: equal types on both sides, decimals
//! apart, and the result type follows from the arguments (for decimals the front end chooses precision and scale).

use arrow_array::{Array, cast::AsArray};

use crate::cast;
use crate::datatype::DataType;
use crate::expr::Expr;
use crate::operation::Operation;
use crate::pattern::Pattern;

/// Checks a call; the error says what was expected.
pub(crate) fn check(operation: Operation, args: &[Expr], result: DataType) -> Result<(), String> {
    let (least, most) = operation.arity();
    if args.len() < least || args.len() > most {
        let expected = match most {
            usize::MAX => format!("at least {least}"),
            _ if least == most => least.to_string(),
            _ => format!("{least} to {most}"),
        };
        return Err(format!("{expected} arguments expected, {} given", args.len()));
    }
    let types: Vec<DataType> = args.iter().map(|arg| arg.data_type).collect();
    let first = types[0];
    match operation {
        Operation::Add | Operation::Subtract | Operation::Multiply | Operation::Modulo => {
            arithmetic(&types, result, DataType::is_numeric)
        }
        Operation::Divide => arithmetic(&types, result, |t| t.is_floating() || t.is_decimal()),
        Operation::IntDiv => {
            require(
                comparable(&types) && (first.is_integer() || first.is_decimal()),
                &types,
                "two integers or decimals",
            )?;
            returns(result, DataType::BigInt)
        }
        Operation::Negate | Operation::Abs => {
            require(first.is_numeric(), &types, "a number")?;
            returns(result, first)
        }
        Operation::Round => {
            require(first.is_numeric() && types[1] == DataType::Int, &types, "a number and an int literal")?;
            literal(args, 1)?;
            if first.is_decimal() { returns_decimal(result) } else { returns(result, first) }
        }
        Operation::Floor | Operation::Ceil => {
            let known = first.is_floating() || first.is_decimal() || first == DataType::BigInt;
            require(known, &types, "a double, decimal or bigint")?;
            if first.is_decimal() { returns_decimal(result) } else { returns(result, DataType::BigInt) }
        }
        Operation::Eq
        | Operation::Ne
        | Operation::Lt
        | Operation::Le
        | Operation::Gt
        | Operation::Ge
        | Operation::EqNullSafe
        | Operation::In => {
            require(comparable(&types), &types, "arguments of one type")?;
            returns(result, DataType::Boolean)
        }
        Operation::And | Operation::Or | Operation::Not => {
            require(all(&types, |t| t == DataType::Boolean), &types, "booleans")?;
            returns(result, DataType::Boolean)
        }
        Operation::Like => {
            require(all(&types, DataType::is_text), &types, "texts")?;
            if args.len() == 3 {
                literal(args, 2)?;
                let escape = args[2].as_literal().filter(|array| array.is_valid(0));
                let one = escape.is_none_or(|array| array.as_string::<i32>().value(0).chars().count() == 1);
                require(one, &types, "an escape of one character")?;
            }
            returns(result, DataType::Boolean)
        }
        Operation::IsNull | Operation::IsNotNull => returns(result, DataType::Boolean),
        Operation::Case => {
            require(args.len() % 2 == 1, &types, "conditions and values in turn and an else value")?;
            for pair in types.chunks_exact(2) {
                require(pair[0] == DataType::Boolean, &types, "boolean conditions")?;
                stands_for(pair[1], result)?;
            }
            stands_for(types[types.len() - 1], result)
        }
        Operation::Coalesce | Operation::Greatest | Operation::Least => {
            types.iter().try_for_each(|&value| stands_for(value, result))
        }
        Operation::If => {
            require(first == DataType::Boolean, &types, "a boolean condition")?;
            stands_for(types[1], result)?;
            stands_for(types[2], result)
        }
        Operation::NullIf => {
            require(comparable(&types), &types, "arguments of one type")?;
            returns(result, first)
        }
        Operation::Cast => {
            if cast::is_supported(first, result) {
                Ok(())
            } else {
                Err(format!("no cast from {first} to {result}"))
            }
        }
        _ => functions(operation, args, &types, result),
    }
}

/// The rules of date, time and text functions: fixed signatures.
fn functions(operation: Operation, args: &[Expr], types: &[DataType], result: DataType) -> Result<(), String> {
    use DataType::{BigInt, Binary, Boolean, Date, Int, String as Text, Timestamp};
    let first = types[0];
    let texts = |count: usize| types.iter().take(count).all(|t| t.is_text());
    match operation {
        Operation::DateAdd | Operation::DateSub | Operation::AddMonths => {
            require(types == [Date, Int], types, "a date and an int")?;
            returns(result, Date)
        }
        Operation::DateDiff => {
            require(types == [Date, Date], types, "two dates")?;
            returns(result, Int)
        }
        Operation::TimestampAdd => {
            require(first.is_timestamp() && types[1] == BigInt, types, "a timestamp and a bigint")?;
            returns(result, first)
        }
        Operation::TimestampAddMonths => {
            require(first.is_timestamp() && types[1] == Int, types, "a timestamp and an int")?;
            returns(result, first)
        }
        Operation::TimestampDiff => {
            require(first.is_timestamp() && types[1] == first, types, "two timestamps of one type")?;
            returns(result, BigInt)
        }
        Operation::Hour | Operation::Minute | Operation::Second => {
            require(first.is_timestamp(), types, "a timestamp")?;
            returns(result, Int)
        }
        Operation::DateTrunc => {
            require(first.is_text() && types[1] == Timestamp, types, "a unit and a timestamp")?;
            literal(args, 0)?;
            returns(result, Timestamp)
        }
        Operation::Trunc => {
            require(first == Date && types[1].is_text(), types, "a date and a unit")?;
            literal(args, 1)?;
            returns(result, Date)
        }
        Operation::Substring => {
            let known = texts(1) || first == Binary;
            require(known && all(&types[1..], |t| t == Int), types, "a text or binary and one or two ints")?;
            returns(result, if first == Binary { Binary } else { Text })
        }
        Operation::Left if first == Binary => {
            require(types[1] == Int, types, "a binary and an int")?;
            returns(result, Binary)
        }
        Operation::Left | Operation::Right => {
            require(texts(1) && types[1] == Int, types, "a text and an int")?;
            returns(result, Text)
        }
        Operation::Length => {
            require(texts(1) || first == Binary, types, "a text or binary")?;
            returns(result, Int)
        }
        Operation::StartsWith | Operation::EndsWith | Operation::Contains => {
            require(texts(2) || types == [Binary, Binary], types, "two texts or binaries")?;
            returns(result, Boolean)
        }
        Operation::Concat if first == Binary => {
            require(all(types, |t| t == Binary), types, "binaries")?;
            returns(result, Binary)
        }
        Operation::Upper
        | Operation::Lower
        | Operation::Trim
        | Operation::LTrim
        | Operation::RTrim
        | Operation::Concat
        | Operation::Replace => {
            require(texts(types.len()), types, "texts")?;
            returns(result, Text)
        }
        // Year, Month, Day, Quarter, DayOfWeek, DayOfYear, WeekOfYear
        _ => {
            require(first == Date || first.is_timestamp(), types, "a date or a timestamp")?;
            returns(result, Int)
        }
    }
}

/// Whether a call with infallible arguments can fail on some row.
pub(crate) fn can_fail(operation: Operation, args: &[Expr], result: DataType) -> bool {
    match operation {
        Operation::Add | Operation::Subtract | Operation::Multiply | Operation::Negate | Operation::Abs => {
            !result.is_floating()
        }
        Operation::Divide
        | Operation::IntDiv
        | Operation::Modulo
        | Operation::Round
        | Operation::Floor
        | Operation::Ceil
        | Operation::DateAdd
        | Operation::DateSub
        | Operation::DateDiff
        | Operation::AddMonths
        | Operation::TimestampAdd
        | Operation::TimestampAddMonths
        | Operation::TimestampDiff
        | Operation::DateTrunc
        | Operation::Trunc => true,
        Operation::Cast => cast::can_fail(args[0].data_type, result),
        Operation::Like => {
            let pattern = args[1].as_literal().filter(|array| array.is_valid(0));
            pattern.is_none_or(|array| {
                let escape = args.get(2).and_then(Expr::as_literal).filter(|escape| escape.is_valid(0));
                let escape = escape.and_then(|escape| escape.as_string::<i32>().value(0).chars().next());
                Pattern::parse(array.as_string::<i32>().value(0), escape.unwrap_or('\\')).is_err()
            })
        }
        _ => false,
    }
}

fn all(types: &[DataType], holds: impl Fn(DataType) -> bool) -> bool {
    types.iter().all(|&t| holds(t))
}

fn comparable(types: &[DataType]) -> bool {
    all(types, |t| t.is_comparable(types[0]) && t != DataType::Null)
}

fn require(holds: bool, types: &[DataType], expected: &str) -> Result<(), String> {
    if holds {
        return Ok(());
    }
    let given: Vec<String> = types.iter().map(ToString::to_string).collect();
    Err(format!("{expected} expected, ({}) given", given.join(", ")))
}

fn arithmetic(types: &[DataType], result: DataType, known: fn(DataType) -> bool) -> Result<(), String> {
    require(comparable(types) && known(types[0]), types, "two numbers of one type")?;
    if types[0].is_decimal() { returns_decimal(result) } else { returns(result, types[0]) }
}

fn literal(args: &[Expr], position: usize) -> Result<(), String> {
    if args[position].as_literal().is_some() { Ok(()) } else { Err(format!("argument {position} must be a literal")) }
}

/// The result has the expected type; any text type stands for `string`.
fn returns(result: DataType, expected: DataType) -> Result<(), String> {
    if result.is_same_storage(expected) { Ok(()) } else { Err(format!("the result is {expected}, not {result}")) }
}

fn returns_decimal(result: DataType) -> Result<(), String> {
    if result.is_decimal() { Ok(()) } else { Err(format!("the result is a decimal, not {result}")) }
}

/// A branch value can stand for the result.
fn stands_for(value: DataType, result: DataType) -> Result<(), String> {
    if value == DataType::Null || value.is_same_storage(result) {
        Ok(())
    } else {
        Err(format!("a value of type {value} cannot stand for {result}"))
    }
}
