"""The command line as a user meets it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from everview.cli.main import app

ROOT = Path(__file__).parents[3]
SCHEMA = "CREATE TABLE g (src BIGINT, dst BIGINT);"
HOP = "SELECT a.src, b.dst FROM g a JOIN g b ON a.dst = b.src"


@pytest.fixture
def run(tmp_path):
    (tmp_path / "schema.sql").write_text(SCHEMA)

    def call(*arguments, stdin=None):
        words = [str(tmp_path / "schema.sql") if a == "SCHEMA" else a for a in arguments]
        return CliRunner().invoke(app, words, input=stdin, env={"COLUMNS": "100", "TERM": "dumb"})

    return call


def test_explain(run):
    result = run("explain", "--schema", "SCHEMA", HOP)
    assert result.exit_code == 0
    assert "free-connex" in result.stdout
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("kind", "start"), [("text", "view query"), ("json", "{"), ("dot", "digraph"), ("svg", "<svg"), ("html", "<!")]
)
def test_explain_formats(run, tmp_path, kind, start):
    target = tmp_path / "out"
    result = run("explain", "--schema", "SCHEMA", "--format", kind, "--output", str(target), HOP)
    assert (result.exit_code, result.stdout) == (0, "")
    assert target.read_text().lower().startswith(start)
    assert run("explain", "--schema", "SCHEMA", "--format", kind, HOP).stdout == target.read_text()


def test_explain_with_shards(run):
    text = run("explain", "--schema", "SCHEMA", "--shards", "4", HOP).stdout
    assert "grid" in text
    facts = json.loads(run("explain", "--schema", "SCHEMA", "--format", "json", "--shards", "4", HOP).stdout)
    assert facts["layout"]["wanted"] == 4
    plain = json.loads(run("explain", "--schema", "SCHEMA", "--format", "json", HOP).stdout)
    assert {**plain, "layout": facts["layout"]} == facts


def test_explain_reads_standard_input(run):
    result = run("explain", "--schema", "SCHEMA", "--format", "json", "-", stdin=HOP + ";\n")
    assert json.loads(result.stdout)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["explain", "--schema", "SCHEMA", "SELECT nope FROM g"], "[UNKNOWN_COLUMN]"),
        (["explain", "--schema", "SCHEMA", "SELECT FROM WHERE"], "[SYNTAX_ERROR]"),
        (["explain", "--schema", "SCHEMA", "--format", "pdf", HOP], "[UNKNOWN_EXPLAIN_FORMAT]"),
        (["explain", "--schema", "SCHEMA", "--format", "svg", "--shards", "4", HOP], "[UNKNOWN_EXPLAIN_FORMAT]"),
        (["explain", "--schema", "SCHEMA", "--shards", "0", HOP], "--shards"),
        (["explain", "--schema", "/no/such/file", HOP], "No such file"),
        (["explain", "--schema", "SCHEMA", "--output", "/no/such/directory/file", HOP], "No such file"),
        (["explain", HOP], "--schema"),
        (["nope"], "No such command"),
    ],
)
def test_user_errors_are_one_message_and_exit_code_2(run, arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_version(run):
    assert re.fullmatch(r"everview \d+\.\d+\.\d+\S*\n", run("version").stdout)


def test_the_command_is_installed():
    command = Path(sys.executable).with_name("everview")
    done = subprocess.run([command, "version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("everview ")


def test_explain_shows_the_shards(run):
    shown = run("explain", "--schema", "SCHEMA", "--shards", "3", HOP).stdout
    assert "grid        3 = 3 by a_dst" in shown
    assert "rows expected on the fullest shard" in shown


def test_demo_without_java_says_what_is_missing(run, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    result = run("demo")
    assert result.exit_code == 2
    assert "[MISSING_SPARK]" in result.stderr


def test_the_documented_help_is_the_help(run):
    """docs/reference/cli.md quotes the help of every command; EVERVIEW_GOLDEN=rewrite writes it anew."""
    page = ROOT / "docs" / "reference" / "cli.md"
    written = page.read_text()

    def quote(match):
        return f"```text\n$ everview {match[1]}--help\n{run(*match[1].split(), '--help').stdout.replace('Usage: root ', 'Usage: everview ')}```"

    current = re.sub(r"```text\n\$ everview (.*?)--help\n.*?```", quote, written, flags=re.DOTALL)
    if os.environ.get("EVERVIEW_GOLDEN") == "rewrite":
        page.write_text(current)
    assert current == written
    assert current.count("--help\nUsage") == 6
