"""Every block tagged ``python spark`` of README.md and docs/ runs on the session of the tests, in order, in one namespace per file."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))

from markdown_blocks import PAGES, ROOT, blocks, run_blocks

TAG = "python spark"
README_INPUT = {
    "customers": [{"id": 1, "country": "UK"}, {"id": 2, "country": "NL"}],
    "orders": [
        {"id": 10, "customer": 1, "total": 19.90, "at": "2026-01-05T10:00:00Z"},
        {"id": 11, "customer": 2, "total": 5.00, "at": "2026-01-05T10:00:00Z"},
        {"id": 11, "customer": 2, "total": 6.00, "at": "2026-01-05T11:00:00Z"},
    ],
}


@pytest.fixture
def builder(streaming, monkeypatch):
    """Builders give the session of the tests; what they were configured with is kept."""
    from pyspark.sql import SparkSession

    built = []

    def get_or_create(self):
        built.append(dict(self._options))
        return streaming

    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", get_or_create)
    return built


PAGES_OF_SPARK = [page for page in PAGES if any(tag == TAG for tag, _, _ in blocks(page))]


@pytest.mark.parametrize("page", PAGES_OF_SPARK, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_spark_code_of_a_page_runs(page, streaming, builder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if page.name == "README.md":
        for name, rows in README_INPUT.items():
            path = tmp_path / "lake" / name / "1.json"
            path.parent.mkdir(parents=True)
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run_blocks(page, TAG, {"__name__": "__main__"})
    assert streaming.streams.active == []
    assert builder
    for options in builder:
        assert options["spark.task.cpus"] == "2" and options["spark.sql.session.timeZone"] == "UTC"
    if page.name == "README.md":
        found = streaming.read.parquet(str(tmp_path / "lake" / "revenue")).collect()
        assert sorted((r.country, r.orders, str(r.total)) for r in found) == [("NL", 1, "6.00"), ("UK", 1, "19.90")]
