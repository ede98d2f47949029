"""Generated code touches its own memory only: models run between forbidden pages.

A stray access ends the process that makes it, so each run is one of its own. `--long` (`make
sanitize`) runs all node tests of onnx with both guards, and many more random graphs.
"""

from __future__ import annotations

import re

import pytest

from tests.memory.guarded import GUARDS, run_apart

GUARDED = [guard for guard in GUARDS if guard != "none"]


def runs_of(said: str) -> int:
    """How many runs of generated code there were."""
    return sum(int(n) for n in re.findall(r": (\d+) runs$", said, re.MULTILINE))


@pytest.mark.parametrize("guard", GUARDED)
def test_shapes_that_do_not_fit_are_refused(guard):
    assert runs_of(run_apart(guard, "shapes")) >= 36


def test_places_that_data_says():
    """Huge, negative and infinite ones: what is outside is clamped, or refused."""
    assert runs_of(run_apart("end", "places")) >= 150


@pytest.mark.parametrize("guard", GUARDED)
def test_regions_that_data_says(guard):
    """Boxes and offsets of any size, ids outside of tables, lengths beyond caches, turns."""
    assert runs_of(run_apart(guard, "regions")) >= 90


@pytest.mark.parametrize("guard", GUARDED)
def test_a_sample_of_everything(guard):
    assert runs_of(run_apart(guard, "networks", "graphs:12", "nodes:*/60")) >= 90


@pytest.mark.slow
@pytest.mark.parametrize("guard", GUARDED)
@pytest.mark.parametrize("what", ["nodes", "graphs:400", "places", "networks"])
def test_everything(guard, what):
    assert runs_of(run_apart(guard, what, timeout=3600)) > 50


def test_a_stray_access_would_be_noticed():
    """A kernel of our own that reads behind its input ends the process."""
    with pytest.raises(AssertionError, match="stray"):
        run_apart("end", "stray")
    assert runs_of(run_apart("none", "stray")) == 1
