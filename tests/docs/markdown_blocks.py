"""The Python blocks of Markdown pages. Those tagged ``python spark`` need a Spark session and are run by tests/spark/test_docs.py."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w[^\n]*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


def run_blocks(page, wanted, namespace):
    """Run the blocks of a page that have a tag, in order."""
    for tag, code, line in blocks(page):
        assert tag in ("python", "python spark"), (
            f"{page.name}:{line}: a block tagged {tag!r}; every Python block is run"
        )
        if tag == wanted:
            exec(compile("\n" * line + code, str(page), "exec"), namespace)


def blocks(page):
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        if match[1].split()[0].lower() in ("python", "py", "python3"):
            yield match[1], match[2], text.count("\n", 0, match.start(2))
