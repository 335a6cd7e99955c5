//! Type rules: which calls are well typed, and which of them can fail on a row.
//!
//! The front end has made every implicit cast explicit, so the rules are strict: equal types on both sides, decimals
//! apart, and the result type follows from the arguments (for decimals the front end chooses precision and scale).

use crate::cast;
use crate::datatype::DataType;
use crate::expr::Expr;
use crate::operation::Operation;

/// Checks a call; the error says what was expected.
pub(crate) fn check(operation: Operation, args: &[Expr], result: DataType) -> Result<(), String> {
    if let Operation::Function(_) = operation {
        return Ok(()); // it was found by its arguments and its result
    }
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
        Operation::Round | Operation::RoundEven => {
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
        Operation::Function(_) => Ok(()),
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
        | Operation::RoundEven
        | Operation::Floor
        | Operation::Ceil => true,
        Operation::Cast => cast::can_fail(args[0].data_type, result),
        Operation::Function(function) => function.can_fail(args),
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
