"""SQL text of the Spark dialect to statements and logical views. The only package that imports sqlglot."""

from everview.sql.lower import lower_query
from everview.sql.parse import parse_statements
from everview.sql.statement import CreateTable, CreateView, DropTable, DropView, Statement

__all__ = ["CreateTable", "CreateView", "DropTable", "DropView", "Statement", "lower_query", "parse_statements"]
