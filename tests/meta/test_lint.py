"""The formatter and the linter have nothing to say; `make format` mends what they can.

The version is fixed: another one may know more rules. Types are left to `make check`, which takes
longer than all other rules together.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.meta.source_files import ROOT


@pytest.mark.parametrize("command", ["format --check", "check"])
def test_sources_are_clean(command):
    ruff = [sys.executable, "-m", "ruff", *command.split(), "--quiet", "--no-cache", "."]
    result = subprocess.run(ruff, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
