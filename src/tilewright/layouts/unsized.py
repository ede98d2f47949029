"""Convolutions of images whose size only a run tells.

Minimal filters have more weights to stream than a direct convolution, which small images do not
pay back. So two ways are compiled, and a run takes one of them (`graph/ops/by_size.py`): the model
of the machine says with how many places of the result the larger tiles begin to be faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import exp, log, prod
from typing import Final

from tilewright.graph.ir import Array, Value
from tilewright.graph.ops.window import Conv, ConvTranspose
from tilewright.graph.sizes import evaluate_size, fixed, variables
from tilewright.layouts.algorithms import DIRECT, Algorithm, algorithms_of, shape_with
from tilewright.layouts.costs import Machine

__all__ = ["unsized_ways"]

_USUAL: Final = (128, 192, 224, 256, 384, 512, 640)
"""What the unknown sizes of a model are taken for when algorithms are compared with each other: the
sides of images that networks are trained with. Each counts alike."""

_SECOND: Final = 1.1
"""How much faster it must be to have tiles for small results, too. This is policy: a second set of
weights takes memory and time to load, which no run shows."""

_SIDES: Final = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128)
"""Results along a dimension that are tried, to find where tiles begin to be faster: powers of √2,
which is as near as costs are known."""


def unsized_ways(
    op: Conv | ConvTranspose, weights: Array, result: Value, machine: Machine, *, strict: bool
) -> Iterator[tuple[Algorithm, float]]:
    """Algorithms with what takes their place for small results, and their cycles on the whole."""
    every = list(algorithms_of(op, weights, strict=strict))

    def cycles(algorithm: Algorithm, space: Sequence[int]) -> float:
        conv = shape_with(op, weights, space)
        return algorithm.price(algorithm.cycles(conv, machine), conv, machine)

    usual = list(_usual_spaces(result))
    known = {a: [cycles(a, space) for space in usual] for a in every}
    yield DIRECT, _mean(known[DIRECT])
    for large in every[1:]:
        best, small = min(
            (_together(known[large], known[a]) * (_SECOND if a.tiles else 1.0), k)
            for k, a in enumerate(every)
            if a.weight < large.weight
        )
        below = every[small]
        # From this side on, large tiles are faster for all larger images.
        first = len(_SIDES)
        while first and _is_faster(cycles, large, below, _space(result, _SIDES[first - 1])):
            first -= 1
        if first < len(_SIDES):
            places = prod(_space(result, _SIDES[first])) if first else 0
            yield replace(large, places=places, below=below.tiles if first else None), best


def _is_faster(
    cycles: Callable[[Algorithm, Sequence[int]], float],
    large: Algorithm,
    below: Algorithm,
    space: Sequence[int],
) -> bool:
    return cycles(large, space) < cycles(below, space)


def _usual_spaces(result: Value) -> Iterator[tuple[int, ...]]:
    """The sizes of a result for usual sizes of what a model is given."""
    space = result.shape[1:-1]
    for usual in _USUAL:
        sizes = dict.fromkeys(variables(space), usual)
        yield tuple(max(1, evaluate_size(size, sizes)) for size in space)


def _space(result: Value, side: int) -> list[int]:
    """Space with a number for what is not known."""
    return [fixed(size) or side for size in result.shape[1:-1]]


def _together(large: Sequence[float], small: Sequence[float]) -> float:
    """The mean for a pair of algorithms, of which the faster one runs."""
    return _mean([min(pair) for pair in zip(large, small, strict=True)])


def _mean(cycles: Sequence[float]) -> float:
    """Such that it counts by how much a size gets faster, not how large it is."""
    return exp(sum(map(log, cycles)) / len(cycles))
