"""The reference pages in docs/ are what the code says today."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_reference_pages_are_up_to_date():
    command = [sys.executable, str(ROOT / "scripts" / "make_reference.py"), "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, (
        f"{result.stdout}{result.stderr}\nrun `python scripts/make_reference.py`"
    )
