"""Every Python block of README.md and docs/ runs, in order, in one namespace per file."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w[^\n]*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


def blocks(page):
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        if match[1].split()[0].lower() in ("python", "py", "python3"):
            yield match[1], match[2], text.count("\n", 0, match.start(2))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for tag, code, line in blocks(page):
        assert tag == "python", f"{page.name}:{line}: a block tagged {tag!r}; every Python block is run"
        exec(compile("\n" * line + code, str(page), "exec"), namespace)
