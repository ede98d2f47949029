"""Convolutions and pooling that the draft has scheduled compute what NumPy says.

Channels are few or many, in full vectors or not; with an epilogue or without; one thread or two;
weights known ahead or not; the batch, or space, of a size that is not known.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tilewright as tw
from tests.examples import examples
from tests.levels import targets
from tests.windows import Windows, convolved, transposed, windows, windows_of
from tilewright.schedule.recipes import recipe as recipes
from tilewright.schedule.recipes.recipe import draft_point
from tilewright.schedule.recipes.tile_blocks import TILE_BLOCKS
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor, compute, func, placeholder, size
from tilewright.tensor.library.convolve import convolve
from tilewright.tensor.library.pool import average_pool, pool
from tilewright.tensor.library.tile_weights import winograd_weights
from tilewright.tensor.library.tiles import Tiles
from tilewright.tensor.library.transposed import convolve_transposed
from tilewright.tensor.library.winograd import convolve_winograd

CHANNELS = st.sampled_from((1, 3, 8, 13, 16, 24, 40, 64))
STEPS = st.sampled_from(((1, 1), (1, 1), (2, 1), (1, 2), (2, 2), (3, 1)))
EXAMPLES = 12
seeds = st.integers(0, 2**16)

Epilogue = Callable[[tir.Expr, tir.Expr], tir.Expr]


pytestmark = pytest.mark.usefixtures("parallel_at_once")


def followed(data: st.DataObject, y: Tensor, filters: int) -> tuple[list[Tensor], Tensor, Callable]:
    """What follows a window: its further inputs, the result, and the same in NumPy."""
    kinds = ("nothing", "bias", "residual", "gate")
    kind = data.draw(st.sampled_from(kinds), label="epilogue")
    if kind == "nothing":
        return [], y, lambda value: value
    if kind == "bias":
        b = placeholder("B", (filters,))
        z = compute("Z", y.shape, lambda *at: tir.maximum(y[at] + b[at[-1]], 0.0))
        return [b], z, lambda value, bias: np.maximum(value + bias, 0)
    if kind == "gate":  # reads its input twice
        z = compute("Z", y.shape, lambda *at: y[at] * tir.minimum(y[at] + 0.5, 1.0))
        return [], z, lambda value: value * np.minimum(value + 0.5, 1)
    r = placeholder("R", y.shape)
    s = compute("S", y.shape, lambda *at: y[at] * 0.5)
    z = compute("Z", y.shape, lambda *at: s[at] + r[at])
    return [r], z, lambda value, residual: value * 0.5 + residual


def check(
    data: st.DataObject,
    made: Callable[[list[Tensor]], Tensor],
    inputs: list[Tensor],
    arrays: list[np.ndarray],
    expected: np.ndarray,
) -> None:
    """Compile a program with what follows it, run it, compare it."""
    more, result, follow = followed(data, made(inputs), expected.shape[-1])
    rng = np.random.default_rng(5)
    shapes = [expected.shape if t.buffer.name == "R" else expected.shape[-1:] for t in more]
    further = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
    program = func("program", [*inputs, *more], [result])
    known = data.draw(st.booleans(), label="weights are constants")
    fixed = {t.buffer.name: a for t, a in zip(inputs[1:], arrays[1:], strict=True) if known}
    target = data.draw(targets(), label="target")
    threads = data.draw(st.sampled_from((1, 2)), label="threads")
    kernel = tw.build(program, target=target, threads=threads, constants=fixed)
    free = [a for t, a in zip(inputs, arrays, strict=True) if t.buffer.name not in fixed]
    found = kernel(*free, *further)
    np.testing.assert_allclose(found, follow(expected, *further), rtol=1e-4, atol=3e-4)


def numbers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


@examples(EXAMPLES)
@given(w=windows(largest=15), batch=st.integers(1, 2), data=st.data(), seed=seeds)
def test_convolution(w: Windows, batch: int, data: st.DataObject, seed: int):
    groups = data.draw(st.sampled_from((1, 1, 2, 4)), label="groups")
    per, each = data.draw(CHANNELS, label="channels"), data.draw(CHANNELS, label="filters")
    x = numbers(seed, batch, *w.space, groups * per)
    weights = numbers(seed + 1, groups * each, per, *w.kernel)
    n = size("n") if data.draw(st.booleans(), label="symbolic batch") else batch
    inputs = [placeholder("X", (n, *x.shape[1:])), placeholder("W", weights.shape)]
    expected = convolved(x, weights, w, groups)
    check(data, lambda t: convolve(*t, *w.geometry, groups), inputs, [x, weights], expected)


@examples(EXAMPLES)
@given(w=windows(largest=15), channels=CHANNELS, data=st.data(), seed=seeds)
def test_depthwise_convolution(w: Windows, channels: int, data: st.DataObject, seed: int):
    x, weights = numbers(seed, 2, *w.space, channels), numbers(seed + 1, channels, 1, *w.kernel)
    n = size("n") if data.draw(st.booleans(), label="symbolic batch") else 2
    inputs = [placeholder("X", (n, *x.shape[1:])), placeholder("W", weights.shape)]
    expected = convolved(x, weights, w, channels)
    check(data, lambda t: convolve(*t, *w.geometry, channels), inputs, [x, weights], expected)


@examples(EXAMPLES)
@given(
    space=st.tuples(st.integers(1, 19), st.integers(1, 19)),
    reach=st.sampled_from((1, 3, 5)),
    depthwise=st.booleans(),
    data=st.data(),
)
def test_symbolic_space(
    space: tuple[int, int], reach: int, *, depthwise: bool, data: st.DataObject
):
    """With stride one and a border that keeps sizes, one kernel serves images of all sizes."""
    border = reach // 2
    w = Windows(space, (reach, reach), (1, 1), (1, 1), (border,) * 4)
    channels = data.draw(CHANNELS, label="channels")
    groups = channels if depthwise else 1
    x = numbers(1, 1, *space, channels)
    weights = numbers(2, channels, channels // groups, reach, reach)
    shape = (1, size("h"), size("w"), channels)
    inputs = [placeholder("X", shape), placeholder("W", weights.shape)]
    expected = convolved(x, weights, w, groups)
    check(data, lambda t: convolve(*t, *w.geometry, groups), inputs, [x, weights], expected)


@examples(EXAMPLES)
@given(w=windows(largest=6), data=st.data(), seed=seeds)
def test_transposed_convolution(w: Windows, data: st.DataObject, seed: int):
    channels, filters = data.draw(CHANNELS), data.draw(CHANNELS)
    extra = tuple(data.draw(st.integers(0, s - 1), label="extra") for s in w.strides)
    x = numbers(seed, 1, *w.space, channels)
    weights = numbers(seed + 1, channels, filters, *w.kernel)
    expected = transposed(x, weights, w, extra, 1)
    assume(min(expected.shape) > 0)
    inputs = [placeholder("X", x.shape), placeholder("W", weights.shape)]
    arrays = [x, weights]
    check(data, lambda t: convolve_transposed(*t, *w.geometry, extra), inputs, arrays, expected)


@examples(EXAMPLES)
@given(
    space=st.tuples(st.integers(1, 15), st.integers(1, 15)),
    depth=st.sampled_from((0, 0, 1, 2, 3)),
    filters=st.sampled_from(((3, 2), (3, 4), (3, 6), (2, 4), (5, 2), (5, 4))),
    batch=st.integers(1, 2),
    in_blocks=st.booleans(),
    data=st.data(),
)
def test_winograd(
    space: tuple[int, int],
    depth: int,
    filters: tuple[int, int],
    batch: int,
    *,
    in_blocks: bool,
    data: st.DataObject,
):
    """In blocks of tiles wherever they can be cut, or only where the model says so."""
    lead, (taps, results) = (depth,) if depth else (), filters
    rank, kernel = 2 + len(lead), (*(3 for _ in lead), taps, taps)
    across = data.draw(st.sampled_from((0, results, results)), label="results across")
    steps = [data.draw(STEPS, label="stride and gaps") for _ in range(rank)]
    strides, dilations = (tuple(step[k] for step in steps) for k in (0, 1))
    tiles = Tiles(kernel, (*(0 for _ in lead), results, across), strides, dilations)
    w = Windows((*lead, *space), kernel, strides, dilations, (2 * taps,) * (2 * rank))
    channels, count = data.draw(CHANNELS), data.draw(CHANNELS)
    groups = data.draw(st.sampled_from((1, 1, 2)), label="groups")
    x = numbers(3, batch, *w.space, channels * groups)
    weights = numbers(4, count * groups, channels, *kernel)
    transformed = winograd_weights(weights, tiles)
    n = size("n") if data.draw(st.booleans(), label="symbolic batch") else batch
    inputs = [placeholder("X", (n, *x.shape[1:])), placeholder("W", transformed.shape)]
    expected = convolved(x, weights, w, groups)
    with pytest.MonkeyPatch.context() as patch:
        if in_blocks:
            patch.setattr(recipes, "draft_point", _in_blocks)
        check(
            data,
            lambda t: convolve_winograd(*t, tiles, w.pads, groups),
            inputs,
            [x, transformed],
            expected,
        )


@examples(EXAMPLES)
@given(w=windows(largest=15), channels=CHANNELS, average=st.booleans(), data=st.data())
def test_pooling(w: Windows, channels: int, *, average: bool, data: st.DataObject):
    x = numbers(7, 1, *w.space, channels)
    axes = tuple(range(-w.rank, 0))
    inside = windows_of(np.ones_like(x), w, 0).sum(axis=axes)
    assume(inside.min() > 0)
    if average:
        expected = windows_of(x, w, 0).sum(axis=axes) / inside
    else:
        expected = windows_of(x, w, -np.inf).max(axis=axes)

    def made(inputs: list[Tensor]) -> Tensor:
        if average:
            return average_pool(*inputs, w.kernel, *w.geometry)
        return pool(*inputs, tir.Fold.MAX, w.kernel, *w.geometry)

    check(data, made, [placeholder("X", x.shape)], [x], expected)


def _in_blocks(recipe, shape, target):
    """The best point of a recipe; of tiles, the best one in blocks if there is any."""
    if recipe is not TILE_BLOCKS:
        return draft_point(recipe, shape, target)
    table = recipe.space(shape, target)
    whole = (table["down"] == shape.lines) & (table["across"] == shape.columns)
    cycles = recipe.cycles(shape, target.machine, table) + np.where(whole, 1e12, 0)
    row = int(np.argmin(cycles))
    return table.point(row), float(cycles[row])
