"""Features of random programs: finite, of one length, blind to names, and growing with loops."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tuning.nests import AVX2, PRODUCT, nest
from tilewright.errors import UserError
from tilewright.schedule.draft import draft
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.parser import parse
from tilewright.tensor.printer import print_func
from tilewright.testing.strategies import programs
from tilewright.tuning.features.footprints import footprint
from tilewright.tuning.features.loops import LOOP_NAMES, loop_features
from tilewright.tuning.features.nests import lowered_loops
from tilewright.tuning.features.stores import (
    PROGRAM_NAMES,
    STORE_NAMES,
    program_features,
    store_features,
)

TARGETS = [Target.named(name) for name in ("x86-64-v2", "x86-64-v4", "aarch64")]


def _lowered(program: tir.Func, target: Target, threads: int) -> tir.Func:
    try:
        scheduled = draft(program, target, threads).func
    except UserError:
        scheduled = program
    return lowered_loops(scheduled, target)


@given(programs(), st.sampled_from(TARGETS), st.sampled_from([1, 4]))
def test_features_of_any_program_are_finite(program, target, threads):
    func = _lowered(program.func, target, threads)
    loops, stores = loop_features(func), program_features(func, target)
    assert loops.shape == (len(LOOP_NAMES),)
    assert stores.shape == (len(PROGRAM_NAMES),)
    assert np.isfinite(loops).all()
    assert np.isfinite(stores).all()


@given(programs())
def test_features_do_not_see_names(program):
    func = _lowered(program.func, AVX2, 1)
    renamed = parse(_renamed(print_func(func)))
    assert np.array_equal(loop_features(func), loop_features(renamed))
    assert np.array_equal(program_features(func, AVX2), program_features(renamed, AVX2))


def _renamed(text: str) -> str:
    """Other names, in another alphabetical order, for buffers and loops."""
    found = re.findall(r"(\w+): \w+\[|for (\w+) in|(\w+) = alloc", text)
    names = [name for group in found for name in group if name]
    new = {name: f"zz{len(names) - k}" for k, name in enumerate(dict.fromkeys(names))}
    return re.sub(r"\b(" + "|".join(map(re.escape, new)) + r")\b", lambda m: new[m[0]], text)


GROWS = ("float_mad", "iterations", "alloc_inner", "into_l1", "into_l2")
"""Not among them: instructions, of which seven lanes take three and eight take one."""
GROWS_TOGETHER = ("bytes", "unique_bytes", "lines", "unique_lines")
"""Of all buffers: which of them is the busiest may change."""


@given(st.sampled_from(["i", "k", "j"]), st.integers(1, 40), st.integers(1, 40))
def test_longer_loops_do_not_touch_or_compute_less(loop, first, second):
    short, long = (_sized(loop, extent) for extent in sorted((first, second)))
    for name in GROWS:
        assert short[name] <= long[name] + 1e-9, name
    for name in GROWS_TOGETHER:
        totals = [sum(2 ** row[f"buffer{k}_{name}"] for k in range(3)) for row in (short, long)]
        assert totals[0] <= totals[1] + 1e-6, name


def _sized(loop: str, extent: int) -> dict[str, float]:
    sizes = {"i": 4, "k": 8, "j": 16} | {loop: extent}
    text = re.sub(r"f32\[\d+\]", "f32[4096]", PRODUCT)
    for name, size in sizes.items():
        text = re.sub(rf"(for {name} in \w+)\(\d+\)", rf"\1({size})", text)
    # Rows of 64, so that strides do not depend on extents.
    text = text.replace("* 16", "* 64").replace("i * 8", "i * 64")
    program = nest(text)
    return dict(zip(STORE_NAMES, store_features(program, AVX2).rows[0], strict=True))


STEPS = st.lists(st.tuples(st.integers(1, 64), st.integers(1, 6)), max_size=4)


@given(STEPS)
def test_footprints_of_steps_are_near_what_is_touched(steps):
    """At least a run of one step, at most every element once, and exact if steps do not overlap."""
    touched = {0}
    for apart, count in steps:
        touched = {t + apart * k for t in touched for k in range(count)}
    found = footprint([(4 * apart, count) for apart, count in steps], 4, 64)
    assert 4 <= found.size_bytes <= 4 * np.prod([n for _, n in steps], initial=1)
    assert found.size_bytes <= 4 * (max(touched) + 1)
    ordered = sorted(steps)
    spans = np.cumsum([1, *(apart * (n - 1) for apart, n in ordered)])
    if all(apart >= span for (apart, _), span in zip(ordered, spans, strict=False)):
        assert found.size_bytes == 4 * len(touched)
    lines = {t * 4 // 64 for t in touched}
    assert 1 <= found.lines <= max(1, -(-(max(touched) + 1) * 4 // 64))
    assert found.lines >= min(len(lines), found.size_bytes / 64)


def test_renaming_reaches_every_name():
    assert not re.search(r"\b[ABCijk]\b", _renamed(PRODUCT))
