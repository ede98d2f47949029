"""Generated code touches its own memory only: models run between forbidden pages.

A stray access ends the process that makes it, so each run is one of its own. `--long` (`make
sanitize`) runs everything with both guards, and many more random graphs.
"""

from __future__ import annotations

import re

import pytest

from tests.memory.guarded import GUARDS, run_apart

GUARDED = [guard for guard in GUARDS if guard != "none"]


def runs_of(said: str) -> int:
    """How many runs of generated code there were."""
    return sum(int(n) for n in re.findall(r": (\d+) runs$", said, re.MULTILINE))


def test_a_sample_with_pages_behind():
    """Shapes that do not fit; places and regions that data says, huge, negative and infinite."""
    said = run_apart(
        "end", "shapes", "places:/256", "regions:/256", "told:/5", "graphs:1", "nodes:*/900"
    )
    assert runs_of(said) >= 15


def test_a_sample_with_pages_in_front():
    said = run_apart("start", "networks:/8", "places:/128", "regions:/128", "graphs:1")
    assert runs_of(said) >= 10


def test_vectors_that_are_not_full():
    """Masked lanes leave alone what lies behind the arrays of callers, and in front of them."""
    assert runs_of(run_apart("none", "remainders")) >= 100


def test_a_sample_of_other_sizes():
    """The arrays of callers are as safe, and nothing beside them has a say."""
    assert runs_of(run_apart("none", "resized:/20")) >= 80


def test_a_sample_of_other_attributes():
    """Tables that are made of attributes hold places, too."""
    assert runs_of(run_apart("none", "altered:TreeEnsemble(", "altered:/320")) >= 12


@pytest.mark.slow
@pytest.mark.parametrize("guard", GUARDED)
@pytest.mark.parametrize(
    "what", ["nodes", "graphs:400", "places", "regions", "told", "networks", "shapes"]
)
def test_everything(guard, what):
    assert runs_of(run_apart(guard, what, timeout=3600)) > 50


@pytest.mark.slow
def test_every_other_size():
    assert runs_of(run_apart("none", "resized", timeout=3600)) > 2000


@pytest.mark.slow
def test_every_other_attribute():
    assert runs_of(run_apart("none", "altered", timeout=3600)) > 500


def test_a_stray_access_would_be_noticed():
    """A kernel of our own that reads behind its input ends the process."""
    with pytest.raises(AssertionError, match="stray"):
        run_apart("end", "stray")
    assert runs_of(run_apart("none", "stray")) == 1
