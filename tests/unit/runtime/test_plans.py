"""Sizes that come again are not planned again; what is not asked for for longest is forgotten."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tests.expect import raises_code
from tests.unit.model.test_control_flow import FLOAT, info, model, node
from tilewright.dtypes import f32
from tilewright.graph import Builder
from tilewright.model.assemble import assemble
from tilewright.model.module import Module, parts_of
from tilewright.target import Target
from tilewright.tensor import ir as tir

KEPT = 8
"""TW_MEMOS in native/frame.h."""
N, M = tir.Var("n"), tir.Var("m")


def chain() -> tuple[Module, list[np.ndarray]]:
    """x·A·B·C for matrices of random numbers."""
    rng = np.random.default_rng(3)
    constants = [rng.standard_normal((24, 24)).astype(np.float32) for _ in range(3)]
    b = Builder("chain")
    y = b.input("x", f32, (N, M, 24))
    for array in constants:
        y = b.matmul(y, b.constant(array))
    graph = b.graph([y])
    made = assemble(graph, Target.host(), 1)
    return Module.of(made, parts_of(made, Target.host(), {}), 1, graph), constants


@pytest.fixture(scope="module")
def matrices():
    return chain()


def plans_of(matrices, *shapes):
    """How many of these runs make a plan; every one of them is right."""
    module, constants = matrices
    before = module.executable._plans()
    for n, m in shapes:
        x = np.random.default_rng(n).standard_normal((n, m, 24)).astype(np.float32)
        wanted = x
        for array in constants:
            wanted = wanted @ array
        np.testing.assert_allclose(module.run({"x": x})[0], wanted, rtol=1e-3, atol=1e-3)
    return module.executable._plans() - before


def test_batch_sizes_that_take_turns_are_planned_once(matrices):
    shapes = [(n, 5) for n in (1, 4, 2, 9)]
    assert plans_of(matrices, *shapes) == 4
    memory = matrices[0].memory()
    assert plans_of(matrices, *shapes * 5) == 0
    assert plans_of(matrices, *reversed(shapes * 3)) == 0
    assert matrices[0].memory() == memory


def test_all_sizes_count(matrices):
    plans_of(matrices, (6, 7))
    assert plans_of(matrices, (7, 6), (6, 7), (7, 6)) == 1


def test_the_size_that_was_not_asked_for_for_longest_is_forgotten(matrices):
    plans_of(matrices, *[(n, 1) for n in range(1, KEPT + 1)])
    assert plans_of(matrices, *[(n, 1) for n in range(1, KEPT + 1)]) == 0
    assert plans_of(matrices, (1, 1), (20, 1)) == 1
    assert plans_of(matrices, (1, 1)) == 0, "it was asked for again"
    assert plans_of(matrices, (2, 1)) == 1


def test_sizes_that_cannot_be_spoil_nothing():
    """A window that is larger than the picture: found while the sizes are computed."""
    picture = info("x", FLOAT, [1, 1, "h", "w"])
    nodes = [node("Conv", "x W", "t"), node("Relu", "t", "u"), node("Conv", "u W", "y")]
    window = {"W": np.full((1, 1, 3, 3), 0.25, np.float32)}
    module = tw.compile(model(nodes, [picture], "y", window), threads=1, cache=False)
    x = np.random.default_rng(0).standard_normal((1, 1, 9, 8)).astype(np.float32)
    (first,) = module.run({"x": x})
    with raises_code("C025"):
        module.run({"x": x[:, :, :3]})
    plans = module.executable._plans()
    np.testing.assert_array_equal(module.run({"x": x})[0], first)
    assert module.executable._plans() == plans


def test_places_are_told(matrices):
    module, _ = matrices
    module.run({"x": np.ones((2, 3, 24), np.float32)})
    sizes = [size for _, size in module.executable._places()]
    assert len(sizes) == len(module.executable.program.buffers)
    assert sizes.count(2 * 3 * 24 * 4) == 4
