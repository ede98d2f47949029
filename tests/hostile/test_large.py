"""Files of megabytes are refused, or compiled, within the memory declared for their size."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.hostile.large import LARGE, SLOW
from tilewright.frontend.onnx.limits import memory_bound

REFUSED_S = 5.0
CODES = {
    "100,000 nodes, one of them wrong": "M004",
    "100,000 unknown operators": "M004",
    "100,000 nodes in a ring": "M004",
    "a sum of 100,000": "M005",
    "a sum of 60,000 unknown ones": "M004",
    "nodes": "M005",
    "attributes": "M005",
    "inputs of a node": "M005",
    "weights": "M005",
    "values": "M005",
    "dimensions": "M002",
    "10,000 functions in a line": "M005",
    "a hundred nodes, a thousand times": "M005",
    "5,000,000 numbers of an attribute": "M004",
}


def ends_of(*names: str) -> dict[str, dict[str, object]]:
    command = [sys.executable, "-m", "tests.hostile.large", *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=1800)
    return dict(json.loads(done.stdout))


QUICK = list(LARGE)[1::5]
"""Without `--long`, every fifth one."""


def some(names):
    slow = pytest.mark.slow
    return [pytest.param(name, marks=() if name in QUICK else slow) for name in names]


@pytest.fixture(scope="module")
def ends(request):
    """What became of them, each compiled in a process of its own."""
    return ends_of(*(LARGE if request.config.getoption("--long") else QUICK))


def require_bounded(end):
    assert end["kind"] in ("compiled", "refused"), end["text"]
    assert end["memory_bytes"] <= memory_bound(end["size"])
    assert not end["touched"]


@pytest.mark.parametrize("name", some(LARGE))
def test_a_large_file_does_no_harm(ends, name):
    require_bounded(ends[name])
    if ends[name]["kind"] == "refused":
        assert ends[name]["cpu_s"] <= REFUSED_S


@pytest.mark.parametrize("name", some(CODES))
def test_a_large_file_is_refused_for_what_is_wrong_with_it(ends, name):
    assert ends[name]["code"] == CODES[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_a_large_model_that_is_right_takes_no_more_memory(name):
    require_bounded(ends_of(name)[name])
