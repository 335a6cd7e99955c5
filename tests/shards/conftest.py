"""Makes the helpers of this directory importable."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("hypothesis")
pytest.importorskip("duckdb")  # everview.testing imports it

sys.path.insert(0, str(Path(__file__).parent))
