"""Every Python block of README.md and docs/ runs, in order, in one namespace per file. Those for Spark: tests/spark/test_docs.py."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from markdown_blocks import PAGES, ROOT, run_blocks


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_blocks(page, "python", {"__name__": "__main__"})
