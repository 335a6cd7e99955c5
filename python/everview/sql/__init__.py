"""SQL text of the Spark dialect to statements and relational plans. The only package that imports sqlglot."""

from everview.sql.parse import parse_statements
from everview.sql.statement import ChangeRows, CreateTable, CreateView, DropTable, DropView, Statement

__all__ = ["ChangeRows", "CreateTable", "CreateView", "DropTable", "DropView", "Statement", "parse_statements"]
