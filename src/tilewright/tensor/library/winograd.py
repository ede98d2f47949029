"""Convolutions with windows of 3×3 by fewer multiplications (Winograd's F(2×2) and F(4×4, 3×3)).

Sixteen neighbouring results need 36 products per channel instead of 144 (four need 16, not 36), of
sums and differences of the data with sums of the weights. The products of all channels are 36 (16)
matrix products. With tiles of t = 6 (4) elements for r = 4 (2) results along each dimension:

    R[n, y, x, p, j, c]     = Σ_i B[p, i] · X[n, r·y + i, r·x + j, c]        (columns of a tile)
    V[p, q, n, y, x, c]     = Σ_j B[q, j] · R[n, y, x, p, j, c]              (and its rows)
    M[p, q, n, y, x, o]     = Σ_c V[p, q, n, y, x, c] · U[p, q, c, o]
    S[n, y, x, a, q, o]     = Σ_p A[a, p] · M[p, q, n, y, x, o]
    Y[n, r·y + a, r·x + b, o] = Σ_q A[b, q] · S[n, y, x, a, q, o]

Results differ from those of a direct convolution by rounding: about 1e-5 of the largest one for
r = 4, and less for r = 2. The weights are transformed ahead of time, in double precision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.build import (
    Reduction,
    Shape,
    Tensor,
    compute,
    reduce_axis,
    select,
    sum_over,
)
from tilewright.tensor.library.convolve import known_size
from tilewright.tensor.library.dims import padded, with_names

__all__ = ["RESULTS", "convolve_winograd", "plain_weights", "winograd_weights"]

Elements = Callable[[int], tir.Expr]

_WEIGHTS: Final = {
    2: np.array([[1, 0, 0], [1 / 2, 1 / 2, 1 / 2], [1 / 2, -1 / 2, 1 / 2], [0, 0, 1]]),
    4: np.array(
        [
            [1 / 4, 0, 0],
            [-1 / 6, -1 / 6, -1 / 6],
            [-1 / 6, 1 / 6, -1 / 6],
            [1 / 24, 1 / 12, 1 / 6],
            [1 / 24, -1 / 12, 1 / 6],
            [0, 0, 1],
        ]
    ),
}

RESULTS: Final = tuple(_WEIGHTS)
"""Results that a tile may have along each dimension."""


def winograd_weights(weights: NDArray[Any], results: int = 4) -> NDArray[Any]:
    """U[p, q, c, o] for weights W[o, c, 3, 3], for tiles of so many results."""
    wide, change = weights.astype(np.float64), _WEIGHTS[results]
    made = np.einsum("pi,ocij,qj->pqco", change, wide, change, optimize=True)
    return np.ascontiguousarray(made.astype(weights.dtype))


def plain_weights(transformed: NDArray[Any]) -> NDArray[Any]:
    """W[o, c, 3, 3] for `winograd_weights`."""
    back = np.linalg.pinv(_WEIGHTS[len(transformed) - 2])
    wide = transformed.astype(np.float64)
    made: NDArray[Any] = np.einsum("ip,pqco,jq->ocij", back, wide, back, optimize=True)
    return made


def convolve_winograd(
    x: Tensor, transformed: Tensor, pads: Sequence[int] = (0, 0, 0, 0), name: str = "Y"
) -> Tensor:
    """The convolution of channels-last data with `winograd_weights`, of stride one."""
    tile = known_size(transformed.shape[0])
    results = tile - 2
    change, back = _DATA[results], _BACK[results]
    top, left, bottom, right = pads
    batch, height, width, channels = x.shape
    filters = transformed.shape[-1]
    tidy = Analyzer().simplify
    space = (tidy(height + top + bottom - 2), tidy(width + left + right - 2))
    tiles = tuple(tidy((size + (results - 1)) // results) for size in space)
    missing = [tir.int_value(tidy(t * results - s)) for t, s in zip(tiles, space, strict=True)]
    more = [results - 1 if m is None else m for m in missing]
    after = (0, bottom + more[0], right + more[1], 0)
    source = padded(f"{name}_border", x, (0, top, left, 0), after, "nhwc")
    rows = compute(
        f"{name}_rows",
        (batch, *tiles, tile, tile, channels),
        lambda n, y, x, p, j, c: _one_of(
            p, change, lambda i: source[n, y * results + i, x * results + j, c]
        ),
    )
    data = compute(
        f"{name}_data",
        (tile, tile, batch, *tiles, channels),
        lambda p, q, n, y, x, c: _one_of(q, change, lambda j: rows[n, y, x, p, j, c]),
    )
    r = reduce_axis(channels, "c")

    def product(*at: tir.Expr) -> Reduction:
        p, q, n, y, x, o = at
        return sum_over(data[p, q, n, y, x, r] * transformed[p, q, r, o], r)

    names = ("p", "q", "n", "y", "x", "o")
    shape: Shape = (tile, tile, batch, *tiles, filters)
    products = compute(f"{name}_products", shape, with_names(names, product))
    sums = compute(
        f"{name}_sums",
        (batch, *tiles, results, tile, filters),
        lambda n, y, x, a, q, o: _one_of(a, back, lambda p: products[p, q, n, y, x, o]),
    )

    def result(n: tir.Expr, h: tir.Expr, w: tir.Expr, o: tir.Expr) -> tir.Expr:
        row, column = h // results, w // results
        return _one_of(w % results, back, lambda q: sums[n, row, column, h % results, q, o])

    return compute(name, (batch, *space, filters), result)


def _data_of_four(d: Elements) -> list[tir.Expr]:
    """The rows of B times four elements."""
    return [d(0) - d(2), d(1) + d(2), d(2) - d(1), d(1) - d(3)]


def _results_of_two(m: Elements) -> list[tir.Expr]:
    """The rows of A times four elements."""
    return [m(0) + (m(1) + m(2)), m(1) - m(2) - m(3)]


def _data_of_six(d: Elements) -> list[tir.Expr]:
    """The rows of B times six elements; pairs of them share their sums."""
    even, odd = d(4) - d(2) * 4.0, d(3) - d(1) * 4.0
    near, far = d(4) - d(2), (d(3) - d(1)) * 2.0
    first = d(0) * 4.0 + (d(4) - d(2) * 5.0)
    last = d(1) * 4.0 + (d(5) - d(3) * 5.0)
    return [first, even + odd, even - odd, near + far, near - far, last]


def _results_of_four(m: Elements) -> list[tir.Expr]:
    """The rows of A times six elements."""
    one, two = m(1) + m(2), m(3) + m(4)
    minus, twice = m(1) - m(2), m(3) - m(4)
    return [
        m(0) + one + two,
        minus + twice * 2.0,
        one + two * 4.0,
        minus + twice * 8.0 + m(5),
    ]


Transform = Callable[[Elements], list[tir.Expr]]

_DATA: Final[dict[int, Transform]] = {2: _data_of_four, 4: _data_of_six}
_BACK: Final[dict[int, Transform]] = {2: _results_of_two, 4: _results_of_four}


def _one_of(place: tir.Expr, transform: Transform, elements: Elements) -> tir.Expr:
    """Number `place` of the transformed elements."""
    *others, result = transform(elements)
    for number, value in reversed(list(enumerate(others))):
        result = select(place.eq(number), value, result)
    return result
