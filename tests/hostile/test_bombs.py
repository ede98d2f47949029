"""Small models that ask for much are refused, or left to the run, in seconds and little memory."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.hostile.bombs import BOMBS

MEMORY = 256 << 20
"""Half of what is declared for a model of a few kilobytes (`limits.MEMORY_BASE`)."""
REFUSED = {
    "function of itself": "M002",
    "functions of each other": "M002",
    "laughing functions": "M005",
    "sparse": "M002",
    "rank": "M004",
    "axes": "M004",
    "resize": "M004",
    "conv dilations": "M004",
    "top k": "M004",
    "doubled": "M004",
    "nested loops": "M005",
    "dimensions of dimensions": "M005",
    "joined, too many": "M005",
    "sequences that overlap": "M004",
    "pairs of classes": "M004",
    "joined one by one, many": "M005",
    "joined one by one, too many": "M005",
    "joined inside, too many": "M005",
    "joined and used": "M005",
}


QUICK = [name for k, name in enumerate(BOMBS) if name in REFUSED or k % 6 == 0]
"""Without `--long`, those that are refused, and every sixth one."""


@pytest.fixture(scope="module")
def ends(request):
    """What became of them, each compiled in a process of its own with limits."""
    names = BOMBS if request.config.getoption("--long") else QUICK
    command = [sys.executable, "-m", "tests.hostile.bombs", *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in BOMBS]
)
def test_a_bomb_does_no_harm(ends, name):
    end = ends[name]
    assert end["kind"] in ("compiled", "refused"), end["text"]
    assert end["cpu_s"] <= 5.0
    assert end["memory_bytes"] <= MEMORY
    assert not end["touched"]


@pytest.mark.parametrize("name", REFUSED)
def test_what_can_never_run_is_refused(ends, name):
    assert ends[name]["code"] == REFUSED[name]
