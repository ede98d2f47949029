"""docs/functions.md is what the tables say, and its code runs."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "functions.md"


def test_page_is_up_to_date():
    script = runpy.run_path(str(ROOT / "scripts" / "functions_page.py"))
    fresh = script["functions_page"]()
    assert PAGE.read_text(encoding="utf-8") == fresh, "run `python scripts/functions_page.py`"


def test_code_of_the_page_runs():
    """In a process of its own: a function that is defined there stays defined."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    result = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
