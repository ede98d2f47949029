"""Graphs whose sizes have several names: all of them fit in every run, and ones meet others."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np
import onnx
import pytest

from fuzz.aliases import declared, drawn, meeting, named
from fuzz.case import Case
from fuzz.generate import generate
from fuzz.stepwise import run_stepwise

SEEDS = range(40)


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [generate(seed, aliases=True) for seed in SEEDS]


def symbols(case: Case) -> list[tuple[str, tuple[int, ...]]]:
    """Each symbolic dimension of an input: its name or nothing, and how large it is in each run."""
    return [
        (dim.dim_param, tuple(feeds[info.name].shape[k] for feeds in case.runs))
        for info in case.model.graph.input
        for k, dim in enumerate(info.type.tensor_type.shape.dim)
        if not dim.HasField("dim_value")
    ]


def test_every_run_is_legal(cases):
    for case in cases:
        onnx.checker.check_model(case.model, full_check=True)
        for feeds in case.runs:
            values = run_stepwise(case.model, feeds)
            assert all(o.name in values for o in case.model.graph.output)


def test_a_name_is_one_size_in_a_run(cases):
    for case in cases:
        found: dict[str, tuple[int, ...]] = {}
        for name, extents in symbols(case):
            assert found.setdefault(name or f"? {len(found)}", extents) == extents
        for info in case.model.graph.input:
            dims = info.type.tensor_type.shape.dim
            numbers = [(k, d.dim_value) for k, d in enumerate(dims) if d.HasField("dim_value")]
            assert all(f[info.name].shape[k] == n for f in case.runs for k, n in numbers)


def test_sizes_have_other_names_or_none_and_are_one_where_others_are_not(cases):
    pairs = [pair for case in cases for pair in combinations(symbols(case), 2)]
    assert sum(a == b for (m, a), (n, b) in pairs if m != n) > len(cases)
    assert sum(not name for case in cases for name, _ in symbols(case)) > len(cases) // 2
    together = [set(zip(a, b, strict=True)) for (m, a), (n, b) in pairs if m != n and a != b]
    meet = [runs for runs in together if all(x == y or 1 in (x, y) for x, y in runs)]
    assert any(x == y > 1 for runs in meet for x, y in runs)
    for wanted in ({1}, {0, 1}):
        assert any({x, y} == wanted for runs in meet for x, y in runs)
    assert any(1 in (x, y) and max(x, y) > 1 for runs in meet for x, y in runs)


def test_the_same_seed_gives_the_same_case(cases):
    for first in cases[:5]:
        again = generate(cases.index(first), aliases=True)
        assert first.model == again.model
        for a, b in zip(first.runs, again.runs, strict=True):
            assert all(a[n].tobytes() == b[n].tobytes() for n in a)


def test_some_ordinary_graphs_have_aliases():
    assert any(name.startswith("s") for k in range(60) for name, _ in symbols(generate(k)))


@pytest.mark.parametrize("one_way", [False, True])
def test_sizes_that_meet_are_broadcast_in_every_run(one_way):
    draw = random.Random(3)
    for _ in range(200):
        sizes = {"n": drawn(draw, 4, aliases=True)}
        named(sizes, [1, 1, 5, 5])
        dim = draw.choice(("n", "s1", 3))
        wide = sizes[dim] if isinstance(dim, str) else [dim] * 4
        met = sizes[meeting(draw, sizes, dim, 4, one_way=one_way)]
        for a, b in zip(wide, met, strict=True):
            assert np.broadcast_shapes((a,), (b,)) == (a,) or (b != 1 == a and not one_way)


def test_what_is_declared_is_as_large():
    draw, sizes = random.Random(4), {"n": [3, 1], "m": [2, 5], "k": [3, 1]}
    found = [declared(draw, sizes, ["n", 4], 2, 0.5) for _ in range(50)]
    assert {None, "n", "k"} < {first for first, _ in found}
    assert {second for _, second in found} > {None, 4}
    assert declared(draw, sizes, [4] * 50, 2, 0) == [4] * 50
    for first, second in found:
        assert first is None or sizes[first] == [3, 1]
        assert second in {None, 4} or sizes[second] == [4, 4]
