"""Makes the helpers of the plan tests (``textbook``, ``checker``) importable here too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "plan"))
