"""The command line: ``everview explain``, ``run``, ``check``, ``demo`` and ``version``.

What a user can get wrong is told in one message on standard error, with exit code 2; a traceback is a bug.
"""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from everview.cli import job
from everview.errors import EverviewError, UnsupportedQueryError
from everview.explain.formats import Format
from everview.explain.layout import explain_layout, layout_facts
from everview.layout.layout import Layout, lay_out
from everview.lower import lower_query
from everview.session.session import connect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from everview.schema.table import Table

app = typer.Typer(
    help="Keep the result of a SQL query up to date while its tables change.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@contextmanager
def _user_errors() -> Iterator[None]:
    try:
        yield
    except (EverviewError, OSError, UnicodeDecodeError) as error:
        typer.echo(f"everview: {error}", err=True)
        raise typer.Exit(2) from None


@app.command()
def explain(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="The SELECT of the view; - reads it from standard input.")],
    schema: Annotated[Path, typer.Option(help="A file of CREATE TABLE statements.", metavar="FILE")],
    format: Annotated[str, typer.Option(help=f"One of {', '.join(get_args(Format))}.")] = "text",  # noqa: A002
    output: Annotated[Path | None, typer.Option(help="Write to this file.", metavar="FILE")] = None,
    shards: Annotated[
        int | None, typer.Option(help="Also show how it is spread over so many shards (text, json).", min=1)
    ] = None,
) -> None:
    """Show how a query would be maintained: its class, its join tree, what that guarantees, and why."""
    with _user_errors(), connect() as session:
        session.execute(schema.read_text(encoding="utf-8"))
        query = sys.stdin.read() if sql == "-" else sql
        query = query.strip().removesuffix(";")
        text = session.create_view("query", query).explain(format)  # type: ignore[arg-type]
        if shards is not None:
            text = _with_shards(text, format, _layout(query, session.tables.values(), shards))
        if output is None:
            typer.echo(text, nl=not text.endswith("\n"))
        else:
            output.write_text(text, encoding="utf-8")


def _with_shards(text: str, format: str, layout: Layout) -> str:  # noqa: A002 the option is called format
    if format == "text":
        return f"{text}\n{explain_layout(layout)}"
    if format == "json":
        return json.dumps({**json.loads(text), "layout": layout_facts(layout)}, indent=2, ensure_ascii=False) + "\n"
    raise UnsupportedQueryError(
        "UNKNOWN_EXPLAIN_FORMAT", f"shards are not shown as `{format}`", hint="use text or json, or leave --shards out"
    )


def _layout(sql: str, tables: Iterable[Table], shards: int) -> Layout:
    by_name = {t.name.lower(): t for t in tables}
    keyed = frozenset(name for name, table in by_name.items() if table.primary_key)
    return lay_out(lower_query("query", sql, by_name), by_name, shards, checked=keyed)


job.register(app)


@app.command()
def demo() -> None:
    """Run two views on Spark in local mode and prove them: a join with a hot key, and a live revenue view."""
    from everview.cli.demo import run

    with _user_errors():
        run()


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(f"everview {installed_version('everview')}")


if __name__ == "__main__":
    app()
