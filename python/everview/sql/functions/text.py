"""Functions of strings and byte strings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everview.query.expression import Call, Expression, Literal
from everview.schema.datatype import BIGINT, BINARY, BOOLEAN, INT, STRING, Kind
from everview.sql.coercion import as_bigint, as_binary, as_position, as_string, as_string_or_binary
from everview.sql.functions.function import Arguments, ScalarFunction, plain
from everview.sql.literal import CoercionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from everview.schema.datatype import DataType


def trim(op: str, args: Arguments) -> Expression:
    """``trim``, ``ltrim`` or ``rtrim`` of (string) or (string, characters); blanks are taken off without being named."""
    blanks = len(args) > 1 and isinstance(args[1], Literal) and args[1].value == " "
    return plain(op, STRING, as_string)(args[:1] if blanks else args)


def _replace(args: Arguments) -> Expression:
    return plain("replace", STRING, as_string)([*args, Literal("", STRING)][:3])


def concat(args: Arguments) -> Expression:
    """CONCAT and ``||``: of byte strings only a byte string."""
    if all(a.type.kind is Kind.BINARY for a in args):
        return plain("concat", BINARY, as_binary)(args)
    return plain("concat", STRING, as_string)(args)


def substring(args: Arguments) -> Expression:
    """SUBSTRING(string, position [, length])."""
    return _part_of("substring", args)


def _part_of(op: str, args: Arguments) -> Expression:
    """A part of a string or byte string, by positions."""
    result = BINARY if args[0].type.kind is Kind.BINARY else STRING
    return plain(op, result, as_string_or_binary, as_position)(args)


def _search(op: str) -> Callable[[Arguments], Expression]:
    """Whether one string has another somewhere. The bytes decide, so strings become byte strings where one of both is."""

    def build(args: Arguments) -> Expression:
        binary = any(a.type.kind is Kind.BINARY for a in args)
        return plain(op, BOOLEAN, as_binary if binary else as_string)(args)

    return build


def _concat_ws(args: Arguments) -> Expression:
    parts = tuple(as_string(a) for a in args)
    return Call("concat_ws", parts, STRING, parts[0].nullable)


def locate(args: Arguments) -> Expression:
    """LOCATE(part, string [, position]): 0 where the position is NULL, as in Spark."""
    part, text = as_string(args[0]), as_string(args[1])
    position = as_position(args[2]) if len(args) > 2 else Literal(1, INT)
    nullable = part.nullable or text.nullable
    found = Call("locate", (part, text, position), INT, nullable or position.nullable)
    if not position.nullable:
        return found
    zero = Literal(0, INT)
    return Call("if", (Call("is_null", (position,), BOOLEAN, nullable=False), zero, found), INT, nullable)


def _pad(op: str) -> Callable[[Arguments], Expression]:
    def build(args: Arguments) -> Expression:
        if any(a.type.kind is Kind.BINARY for a in args):
            raise CoercionError(f"{op.upper()} takes strings, not byte strings")
        pad = args[2] if len(args) > 2 else Literal(" ", STRING)
        return plain(op, STRING, as_string, as_position, as_string)([*args[:2], pad])

    return build


def _bytes(factor: int) -> Callable[[Arguments], Expression]:
    def build(args: Arguments) -> Expression:
        length = plain("length", INT, as_binary)(args)
        return length if factor == 1 else Call("multiply", (length, Literal(factor, INT)), INT, length.nullable)

    return build


def _hex(args: Arguments) -> Expression:
    (operand,) = args
    return plain("hex", STRING, as_bigint if operand.type.is_numeric else as_binary)(args)


def _digest(op: str, data_type: DataType) -> Callable[[Arguments], Expression]:
    def build(args: Arguments) -> Expression:
        (operand,) = args
        if not operand.type.is_string and operand.type.kind not in (Kind.BINARY, Kind.NULL):
            raise CoercionError(f"{op.upper()} takes a string or byte string, not `{operand.type}`")
        return plain(op, data_type, as_binary)(args)

    return build


def _reverse(args: Arguments) -> Expression:
    return plain("reverse", BINARY if args[0].type.kind is Kind.BINARY else STRING, as_string_or_binary)(args)


def _sha2(args: Arguments) -> Expression:
    operand, bits = args
    if not isinstance(bits, Literal) or bits.value not in (0, 256):
        raise CoercionError("the number of bits of SHA2 must be 256")
    return _digest("sha256", STRING)([operand])


TITLE = "Strings"
FUNCTIONS = (
    ScalarFunction("upper", "string", "in upper case", plain("upper", STRING, as_string), ("ucase",)),
    ScalarFunction("lower", "string", "in lower case", plain("lower", STRING, as_string), ("lcase",)),
    ScalarFunction(
        "length",
        "string",
        "number of characters; of a byte string, of bytes",
        plain("length", INT, as_string_or_binary),
        ("len", "char_length", "character_length"),
    ),
    ScalarFunction("concat", "string, ...", "one after the other, as `\\|\\|`", concat),
    ScalarFunction(
        "concat_ws",
        "separator[, string, ...]",
        "one after the other with the separator between; NULLs are left out",
        _concat_ws,
    ),
    ScalarFunction(
        "trim",
        "string",
        "without blanks at both ends; `TRIM([BOTH\\|LEADING\\|TRAILING] [characters] FROM string)`",
        lambda args: trim("trim", args),
    ),
    # The characters come first in these calls: ltrim(characters, string).
    ScalarFunction(
        "ltrim",
        "[characters,] string",
        "without the characters (blanks if none are given) at the start",
        lambda args: trim("ltrim", args[::-1]),
    ),
    ScalarFunction("rtrim", "[characters,] string", "the same at the end", lambda args: trim("rtrim", args[::-1])),
    ScalarFunction("btrim", "string[, characters]", "the same at both ends", lambda args: trim("trim", args)),
    ScalarFunction(
        "lpad", "string, length[, pad]", "filled up at the start, or cut, to a length; by blanks or `pad`", _pad("lpad")
    ),
    ScalarFunction("rpad", "string, length[, pad]", "the same at the end", _pad("rpad")),
    ScalarFunction(
        "instr",
        "string, part",
        "the place of the first occurrence, from 1; 0 if there is none",
        lambda args: locate(args[::-1]),
    ),
    ScalarFunction(
        "locate",
        "part, string[, position]",
        "the same from a position on; `POSITION(part IN string)`",
        locate,
        ("position",),
    ),
    ScalarFunction("repeat", "string, times", "the string some times", plain("repeat", STRING, as_string, as_position)),
    ScalarFunction(
        "space",
        "times",
        "some blanks",
        lambda args: plain("repeat", STRING, as_string, as_position)([Literal(" ", STRING), *args]),
    ),
    ScalarFunction("reverse", "string", "its characters from the last to the first", _reverse),
    ScalarFunction(
        "initcap", "string", "words, between blanks, with a capital first letter", plain("initcap", STRING, as_string)
    ),
    ScalarFunction(
        "translate",
        "string, from, to",
        "each character of `from` replaced by that of `to` at its place, or taken out",
        plain("translate", STRING, as_string),
    ),
    ScalarFunction(
        "split_part",
        "string, delimiter, number",
        "a part between delimiters, from 1, or from the end by negative numbers; '' if there is none",
        plain("split_part", STRING, as_string, as_string, as_position),
    ),
    ScalarFunction(
        "substring_index",
        "string, delimiter, count",
        "what is before the last of `count` delimiters; after it, counted from the end, if negative",
        plain("substring_index", STRING, as_string, as_string, as_position),
    ),
    ScalarFunction("ascii", "string", "the code of the first character", plain("ascii", INT, as_string)),
    ScalarFunction("chr", "number", "the character of a code, modulo 256", plain("chr", STRING, as_bigint), ("char",)),
    ScalarFunction("octet_length", "string", "number of bytes", _bytes(1)),
    ScalarFunction("bit_length", "string", "number of bits", _bytes(8)),
    ScalarFunction("hex", "value", "an integer, or the bytes of a string, in hexadecimal", _hex),
    ScalarFunction("bin", "integer", "in binary", plain("bin", STRING, as_bigint)),
    ScalarFunction("crc32", "string", "its check sum", _digest("crc32", BIGINT)),
    ScalarFunction("md5", "string", "its MD5 digest in hexadecimal", _digest("md5", STRING)),
    ScalarFunction("sha2", "string, bits", "its SHA-2 digest of 256 bits in hexadecimal", _sha2),
    ScalarFunction("replace", "string, search[, replacement]", "every occurrence replaced, or taken out", _replace),
    ScalarFunction(
        "substring",
        "string, position[, length]",
        "characters from a position on, from 1; negative ones count from the end",
        substring,
        ("substr",),
    ),
    ScalarFunction("left", "string, length", "its first characters", lambda args: _part_of("left", args)),
    ScalarFunction("right", "string, length", "its last characters", plain("right", STRING, as_string, as_position)),
    ScalarFunction("startswith", "string, prefix", "whether it begins with the other", _search("starts_with")),
    ScalarFunction("endswith", "string, suffix", "whether it ends with the other", _search("ends_with")),
    ScalarFunction("contains", "string, part", "whether the other occurs in it", _search("contains")),
)
