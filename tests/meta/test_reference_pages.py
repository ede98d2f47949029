"""The reference pages in docs/ are what the code says today, on every machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.levels import LEVELS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("host", ["host", *(level.name for level in LEVELS)])
def test_reference_pages_are_up_to_date(host):
    command = [sys.executable, str(ROOT / "scripts" / "make_reference.py"), "--check"]
    variables = {**os.environ, "TILEWRIGHT_TARGET": host} if host != "host" else None
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    assert result.returncode == 0, (
        f"{result.stdout}{result.stderr}\nrun `python scripts/make_reference.py`"
    )
