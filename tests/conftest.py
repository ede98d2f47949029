"""Fixtures and switches of the whole suite: goldens, Hypothesis profiles, seeds, ISA markers.

The quick profile is the default and derandomised, so that the same tests run everywhere; `--long`
draws fresh examples, many more of them, and also runs what is marked `slow`.
"""

from __future__ import annotations

import difflib
import gc
import os
import random
import re
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import hypothesis
import numpy as np
import pytest

from tests.levels import LEVELS
from tilewright.schedule.recipes.contraction.cycles import draft_contraction
from tilewright.schedule.recipes.recipe import draft_point
from tilewright.target import MachineModel, Target
from tilewright.target.machine import nominal

TESTS = Path(__file__).parent

# Kernels depend on the machine model: with the nominal one they are the same on every run, here
# and in the processes of tests. What is measured has tests of its own.
os.environ.setdefault("TILEWRIGHT_MACHINE", "nominal")
# Records of whoever runs the tests would schedule kernels by what was measured here.
os.environ["TILEWRIGHT_DATABASE"] = "none"

hypothesis.settings.register_profile(
    "quick", max_examples=20, derandomize=True, deadline=None, print_blob=True
)
hypothesis.settings.register_profile(
    "long",
    max_examples=2000,
    deadline=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tilewright")
    group.addoption("--update-golden", action="store_true", help="rewrite the expected texts")
    group.addoption("--long", action="store_true", help="many random examples, and slow tests")


def pytest_configure(config: pytest.Config) -> None:
    hypothesis.settings.load_profile("long" if config.getoption("--long") else "quick")


def pytest_report_header() -> str:
    return f"target: {Target.host()}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    slow = pytest.mark.skip(reason="slow: give --long to run it")
    for item in items:
        if item.get_closest_marker("slow") and not config.getoption("--long"):
            item.add_marker(slow)
        if marker := item.get_closest_marker("isa"):
            _skip_without(item, frozenset(marker.args))


def pytest_collection() -> None:
    """Collection makes over a million objects and no garbage to speak of."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Leave what it has made out of every garbage collection to come."""
    gc.freeze()
    gc.enable()


def _skip_without(item: pytest.Item, features: frozenset[str]) -> None:
    if missing := features - Target.host().features:
        item.add_marker(pytest.mark.skip(reason=f"host lacks {', '.join(sorted(missing))}"))


def _seed_of(node: pytest.Item) -> int:
    return zlib.crc32(node.nodeid.encode())


@pytest.fixture(autouse=True)
def _seeded(request: pytest.FixtureRequest) -> None:
    """The global generators start from the test's own name, whatever ran before."""
    random.seed(_seed_of(request.node))
    np.random.seed(_seed_of(request.node))  # noqa: NPY002 (the legacy one is what needs it)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator seeded by the test's name: the same numbers in every run."""
    return np.random.default_rng(_seed_of(request.node))


@pytest.fixture(params=LEVELS, ids=lambda target: target.name)
def level(request: pytest.FixtureRequest) -> Target:
    """Each instruction-set level that this machine can execute."""
    target: Target = request.param
    return target


class Golden:
    """`assert golden == value` compares `str(value)` with the text stored for this test."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, path: Path, *, update: bool) -> None:
        self.path, self.update = path, update

    def named(self, name: str) -> Golden:
        """A further text of the same test."""
        return Golden(self.path.with_name(f"{self.path.stem}.{name}.txt"), update=self.update)

    def __eq__(self, value: object) -> bool:
        text = str(value).rstrip("\n") + "\n"
        if self.update:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(text, encoding="utf-8")
            return True
        if not self.path.exists():
            pytest.fail(
                f"no expected text {self.path.relative_to(TESTS.parent)}; make it with "
                f"`pytest --update-golden` and read it before committing. Found:\n{text}",
                pytrace=False,
            )
        return self.path.read_text(encoding="utf-8") == text


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """The expected text of this test: tests/golden/<path of the test file>/<test name>.txt."""
    test_file = request.path.relative_to(TESTS).with_suffix("")
    name = re.sub(r"[^\w.=+-]+", "_", request.node.name).strip("_")
    update = request.config.getoption("--update-golden")
    return Golden(TESTS / "golden" / test_file / f"{name}.txt", update=update)


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Show a golden mismatch as a diff."""
    expected, found = (left, right) if isinstance(left, Golden) else (right, left)
    if op != "==" or not isinstance(expected, Golden):
        return None
    before = expected.path.read_text(encoding="utf-8").splitlines()
    after = str(found).rstrip("\n").splitlines()
    diff = difflib.unified_diff(before, after, "expected", "found", lineterm="")
    where = expected.path.relative_to(TESTS.parent)
    return [f"text differs from {where} (`--update-golden` rewrites it)", *diff]


@pytest.fixture(scope="module")
def parallel_at_once() -> Iterator[None]:
    """Small programs use all threads too, so that the parallel code is tested."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Target, "machine", property(_with_free_barriers))
        for drafted in (draft_contraction, draft_point):
            drafted.cache_clear()
        yield
    for drafted in (draft_contraction, draft_point):
        drafted.cache_clear()


def _with_free_barriers(target: Target) -> MachineModel:
    return replace(nominal(target), barrier_cycles=0.0)
