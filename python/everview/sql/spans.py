"""The Spark parser of sqlglot, made to keep what errors and lowering need.

Four changes to sqlglot's own Spark parser:

- **Every node knows its place.** sqlglot records positions for identifiers and some functions only. Here each parse
  method that returns a node notes the tokens it consumed, so ``span_of`` can point at any construct. A node that was
  built inside a loop (the left part of ``a + b + c``) falls back on the hull of its descendants.
- **Functions stay as written.** sqlglot rewrites functions to canonical nodes while parsing (``date_add`` to
  ``TsOrDsAdd``, ``year(x)`` to ``Year(TsOrDsToDate(x))``), which loses Spark's typing. With an empty function table
  every call is ``Anonymous`` and ``sql/functions.py`` gives it its meaning. Only the calls with a syntax of their own
  (CAST, EXTRACT, SUBSTRING ... FROM, TRIM ... FROM) keep their parsers.
- **A doubled quote is a quote.** sqlglot's tokens for ``'it''s'`` are two texts side by side; they are put together
  before anything is parsed, so that every literal, wherever it stands, means what Spark says.
- **A join without ON is complete.** sqlglot looks for the ON of ``a JOIN b JOIN c`` behind the joins that follow, which
  is not Spark's grammar and takes exponential time.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from everview.errors import SchemaError, Span, SqlParseError, cut
from everview.sql.names import why_no_name
from everview.sql.nesting import check_nesting, room_to_recurse, too_deep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SPAN = "everview_span"
_TOKEN = re.compile(r"<Token token_type: \S+, text: (.{0,60}).*?, line: .*?>", re.DOTALL)  # as sqlglot shows one
_LONGEST_REASON = 200

# The parse methods that return one node for the tokens they consume.
_RECORDED = (
    "_parse_statement",
    "_parse_select",
    "_parse_table",
    "_parse_table_parts",
    "_parse_join",
    "_parse_lateral",
    "_parse_with",
    "_parse_cte",
    "_parse_where",
    "_parse_group",
    "_parse_having",
    "_parse_qualify",
    "_parse_order",
    "_parse_sort",
    "_parse_cube_or_rollup",
    "_parse_grouping_sets",
    "_parse_distinct",
    "_parse_hint",
    "_parse_limit",
    "_parse_offset",
    "_parse_window",
    "_parse_table_sample",
    "_parse_set_operations",
    "_parse_expression",
    "_parse_alias",
    "_parse_lambda",
    "_parse_disjunction",
    "_parse_conjunction",
    "_parse_equality",
    "_parse_comparison",
    "_parse_range",
    "_parse_bitwise",
    "_parse_term",
    "_parse_factor",
    "_parse_unary",
    "_parse_type",
    "_parse_types",
    "_parse_column",
    "_parse_primary",
    "_parse_paren",
    "_parse_function",
    "_parse_interval",
    "_parse_case",
    "_parse_id_var",
    "_parse_field_def",
    "_parse_column_def",
    "_parse_column_constraint",
    "_parse_constraint",
    "_parse_unnamed_constraint",
    "_parse_property",
)


class _Parser(SparkParser):
    """Spark's parser without function rewriting, recording spans."""

    STRICT_CAST = True
    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: SparkParser.FUNCTION_PARSERS[name]
        for name in ("CAST", "TRY_CAST", "EXTRACT", "SUBSTRING", "SUBSTR", "TRIM", "POSITION", "OVERLAY")
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        "CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"],
    }

    _in_join = False

    def _parse_join(self, *args: Any, **kwargs: Any) -> Any:
        return self._with_join(True, super()._parse_join, *args, **kwargs)

    def _parse_table(self, *args: Any, **kwargs: Any) -> Any:
        return self._with_join(False, super()._parse_table, *args, **kwargs)

    def _parse_joins(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        return iter(()) if self._in_join else super()._parse_joins(*args, **kwargs)

    def _with_join(self, inside: bool, parse: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        outer, self._in_join = self._in_join, inside
        try:
            return parse(*args, **kwargs)
        finally:
            self._in_join = outer

    def _warn_unsupported(self) -> None:
        """Nothing: a statement that sqlglot does not know is refused by us, by name."""


def _recording(name: str) -> Any:
    inherited = getattr(_Parser, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        first = self._index
        node = inherited(self, *args, **kwargs)
        if isinstance(node, exp.Expr) and first < self._index <= len(self._tokens):
            _extend(node, self._tokens[first].start, self._tokens[self._index - 1].end + 1)
        return node

    return method


for _name in _RECORDED:
    if hasattr(SparkParser, _name):
        setattr(_Parser, _name, _recording(_name))


class _Dialect(Spark):
    Parser = _Parser


def _extend(node: exp.Expr, start: int, end: int) -> None:
    known = node.meta.get(_SPAN)
    if known is not None:
        start, end = min(start, known[0]), max(end, known[1])
    node.meta[_SPAN] = (start, end)


def parse(sql: str) -> list[exp.Expr]:
    """The statements of ``sql`` as sqlglot trees with spans; empty statements are left out."""
    if not isinstance(sql, str):
        message = f"SQL is a text, not {type(sql).__name__}"
        raise SchemaError("INVALID_ARGUMENT", message, hint="pass the statements as a str")
    dialect = _Dialect()
    try:
        tokens = _with_doubled_quotes(dialect.tokenize(sql), sql)
        check_nesting(tokens, sql)
        with room_to_recurse():
            trees = dialect.parser().parse(tokens, sql)
        found = [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]
        for tree in found:
            _check_names(tree, sql)
        return found  # noqa: TRY300
    except RecursionError:
        raise too_deep(sql) from None
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        start = len(first.get("start_context") or "") if first else 0
        if first and first.get("line"):
            start = _offset(sql, first["line"], first["col"], len(first.get("highlight") or ""))
        width = max(1, len(first.get("highlight") or ""))
        said = _TOKEN.sub(r"`\1`", str(first.get("description") or error))
        message = cut(said.strip().rstrip(".").lower(), _LONGEST_REASON)
        raise _syntax_error(sql, Span(start, start + width), message) from None
    except TokenError as error:
        raise _syntax_error(sql, _token_error_span(sql, str(error)), "the text cannot be split into tokens") from None


def _with_doubled_quotes(tokens: list[Token], sql: str) -> list[Token]:
    """The tokens with texts that touch, quote to quote, made one: ``'it'`` and ``'s'`` are ``'it''s'``."""
    found: list[Token] = []
    for token in tokens:
        last = found[-1] if found else None
        if (
            last is not None
            and token.token_type is last.token_type is TokenType.STRING
            and token.start == last.end + 1
            and sql[token.start] == sql[last.end]
        ):
            text = last.text + sql[token.start] + token.text
            found[-1] = Token(
                TokenType.STRING, text, token.line, token.col, last.start, token.end, [*last.comments, *token.comments]
            )
        else:
            found.append(token)
    return found


def _check_names(tree: exp.Expr, sql: str) -> None:
    for identifier in tree.find_all(exp.Identifier):
        wrong = why_no_name(identifier.name)
        if wrong is not None:
            raise SchemaError("INVALID_NAME", wrong, sql=sql, span=span_of(identifier), hint="give it another name")


def parse_query(sql: str) -> exp.Expr:
    """The single statement in ``sql``."""
    trees = parse(sql)
    if len(trees) != 1:
        message = "a query is expected, the text is empty" if not trees else "one query is expected, there are several"
        span = span_of(trees[1]) if trees else Span(0, len(sql))
        raise SqlParseError("SYNTAX_ERROR", message, sql=sql, span=span, hint="give one SELECT statement")
    return trees[0]


def span_of(node: exp.Expr) -> Span:
    """The characters of the SQL text a node was parsed from."""
    known = node.meta.get(_SPAN)
    if known is not None:
        return Span(*known)
    places = [s for s in (_place(n) for n in node.walk()) if s is not None]
    if places:
        node.meta[_SPAN] = (min(s[0] for s in places), max(s[1] for s in places))
        return Span(*node.meta[_SPAN])
    return span_of(node.parent) if node.parent is not None else Span(0, 0)


def source_of(node: exp.Expr, sql: str) -> str:
    """The source text of a node, white space collapsed."""
    span = span_of(node)
    return re.sub(r"\s+", " ", sql[span.start : span.end]).strip()


def text_of(node: exp.Expr, sql: str) -> str:
    """The source text of a node as a message shows it."""
    return cut(source_of(node, sql))


def keyword_span(sql: str, within: Span, words: str) -> Span:
    """The first occurrence of some key words inside a span; the span itself if they are not found."""
    pattern = r"\b" + r"\s+".join(map(re.escape, words.split())) + r"\b"
    match = re.compile(pattern, re.IGNORECASE).search(sql, within.start, within.end)
    return within if match is None else Span(match.start(), match.end())


def _place(node: exp.Expr) -> tuple[int, int] | None:
    known: tuple[int, int] | None = node.meta.get(_SPAN)
    if known is None and "start" in node.meta:
        known = (node.meta["start"], node.meta["end"] + 1)
    return known


def _syntax_error(sql: str, span: Span, message: str) -> SqlParseError:
    return SqlParseError("SYNTAX_ERROR", f"not valid Spark SQL: {message}", sql=sql, span=span)


def _offset(sql: str, line: int, column: int, width: int) -> int:
    """sqlglot gives the line and the column of the last character of a token, both from one."""
    start = 0
    for _ in range(line - 1):
        start = sql.find("\n", start) + 1
    return max(0, min(start + column - max(1, width), len(sql) - 1))


def _token_error_span(sql: str, message: str) -> Span:
    match = re.search(r"from (\d+):(\d+)", message)
    start = _offset(sql, int(match[1]), int(match[2]), 1) if match else max(0, len(sql) - 1)
    return Span(start, start + 1)
