"""Weights for Winograd tiles: transformed ahead of time, and taken back.

Elements of a window that one phase, piece or image sees are put together first (`tiles`): these are
short windows, as many numbers as the model has. Each is then multiplied by the matrix G of its
filter, in double precision.

The second half gives the same bits wherever it runs, in NumPy or in a kernel: entries of G have 29
bits, so that products with weights of 24 are exact in double precision and it does not matter
whether a multiplication and an addition are fused; sums have one order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tilewright.tensor.library.minimal_filters import Matrix
from tilewright.tensor.library.tiles import SpreadLine, SpreadTiles, Tiles

__all__ = [
    "plain_spread_weights",
    "plain_weights",
    "short_windows",
    "spread_weights",
    "spread_windows",
    "tile_matrix",
    "transformed",
    "winograd_weights",
]

_MATRIX_BITS: Final = 29
"""Of entries of G: with the 24 bits of a weight they fill the 53 of a double."""
_BLOCK: Final = 8192
"""Weights that are transformed at a time, so that all that is read and written stays in a cache."""


def winograd_weights(weights: NDArray[Any], tiles: Tiles) -> NDArray[Any]:
    """U[p, q, e…, f…, c, o] for weights W[o, c, window…]: e of plain dimensions, f of parts."""
    made = transformed(tile_matrix(tiles), short_windows(weights, tiles))
    return made.reshape(*(f.tile for f in tiles.filters), *made.shape[1:])


def short_windows(weights: NDArray[Any], tiles: Tiles) -> NDArray[Any]:
    """S[k, e…, f…, c, o] for weights W[o, c, window…]: k of the elements that share a tile."""
    taken = _by_part(weights, tiles)
    flat = taken.reshape(*taken.shape[: taken.ndim - len(tiles.tiled)], -1)
    # Often a view: what several weights are made of at a time is then in memory once.
    return flat.transpose([flat.ndim - 1, *range(2, flat.ndim - 1), 1, 0])


def tile_matrix(tiles: Tiles) -> NDArray[np.float64]:
    """The matrix G[p q, k] of all tiled dimensions, with so few bits that products are exact."""
    mantissas, exponents = np.frexp(_matrix(f.weights for f in tiles.filters))
    rounded = np.round(mantissas * 2.0**_MATRIX_BITS)
    return rounded * 2.0 ** (exponents - _MATRIX_BITS)


def transformed(matrix: NDArray[Any], windows: NDArray[Any], lead: int = 0) -> NDArray[Any]:
    """U[i…, t, …]: the sum of G[t, k] · S[i…, k, …] over k, in order; i of `lead` dimensions."""
    before, (count, *after) = windows.shape[:lead], windows.shape[lead:]
    rows = windows.reshape(math.prod(before), count, math.prod(after))
    made = np.empty((len(rows), len(matrix), rows.shape[2]), windows.dtype)
    for image, results in zip(rows, made, strict=True):
        for start in range(0, rows.shape[2], _BLOCK):
            here = slice(start, start + _BLOCK)
            _transform_block(matrix, image[:, here].astype(np.float64), results[:, here])
    return made.reshape(*before, len(matrix), *after)


def _transform_block(
    matrix: NDArray[Any], rows: NDArray[np.float64], results: NDArray[Any]
) -> None:
    """Products and sums one by one: how a matrix product orders its sums, nobody says."""
    product = np.empty_like(rows[0])
    for factors, result in zip(matrix, results, strict=True):
        total = rows[0] * factors[0]
        for row, factor in zip(rows[1:], factors[1:], strict=True):
            np.multiply(row, factor, out=product)
            total += product
        result[:] = total


def plain_weights(transformed: NDArray[Any], tiles: Tiles) -> NDArray[Any]:
    """W[o, c, window…] for `winograd_weights`."""
    rank = len(tiles.tiled)
    flat = transformed.reshape(-1, *transformed.shape[rank:]).astype(np.float64)
    inverse = np.linalg.pinv(_matrix(f.weights for f in tiles.filters))
    made = np.tensordot(inverse, flat, axes=1)  # [elements, e…, f…, c, o]
    turned = made.transpose(made.ndim - 1, made.ndim - 2, *range(1, made.ndim - 2), 0)
    shape, order = _divided(tiles)
    split = turned.reshape(*turned.shape[:2], *(shape[k] for k in order))
    back = split.transpose(0, 1, *(2 + int(k) for k in np.argsort(order)))
    windows = tuple(slice(t) for t in tiles.taps)
    return back.reshape(*back.shape[:2], *_whole(tiles))[(slice(None), slice(None), *windows)]


def _by_part(weights: NDArray[Any], tiles: Tiles) -> NDArray[Any]:
    """Windows as [o, c, e…, f…, elements…]: those of a part together, zeros where they end."""
    missing = [(0, n - t) for n, t in zip(_whole(tiles), tiles.taps, strict=True)]
    is_whole = not any(map(any, missing))
    wide = weights if is_whole else np.pad(weights, [(0, 0), (0, 0), *missing])
    shape, order = _divided(tiles)
    split = wide.reshape(*wide.shape[:2], *shape).transpose(0, 1, *(2 + k for k in order))
    plain, tiled = len(tiles.plain), len(tiles.tiled)
    inner = split.shape[split.ndim - tiled :]
    return split.reshape(*split.shape[: 2 + plain], *tiles.parts, *inner)


def _whole(tiles: Tiles) -> list[int]:
    """Sizes of windows whose parts are equal."""
    lines = tiles.lines
    return [lines[d].taps * lines[d].parts if d in lines else t for d, t in enumerate(tiles.taps)]


def _divided(tiles: Tiles) -> tuple[list[int], list[int]]:
    """The shape of a window with its parts apart, and where plain, parts and elements are in it."""
    shape: list[int] = []
    plain, parts, elements = list[int](), list[int](), list[int]()
    for d, taps in enumerate(tiles.taps):
        line = tiles.lines.get(d)
        if line is None:
            plain.append(len(shape))
            shape.append(taps)
            continue
        first, second = (parts, elements) if line.pieces > 1 else (elements, parts)
        first.append(len(shape))
        second.append(len(shape) + 1)
        shape += [line.parts, line.taps] if line.pieces > 1 else [line.taps, line.parts]
    return shape, [*plain, *parts, *elements]


def _matrix(parts: Iterable[Matrix]) -> NDArray[np.float64]:
    """The Kronecker product of the matrices of all dimensions."""
    found: NDArray[Any] = np.ones((1, 1))
    for part in parts:
        found = np.kron(found, np.array(part, np.float64))
    return found


def spread_weights(weights: NDArray[Any], tiles: SpreadTiles, groups: int) -> NDArray[Any]:
    """U[i…, p, q, c, o] for weights W[c, o, window…] of a transposed convolution: i of images."""
    windows, lead = spread_windows(weights, tiles, groups), len(tiles.images)
    made = transformed(tile_matrix(tiles.of_one_image), windows, lead)
    each = (f.tile for f in tiles.of_one_image.filters)
    return made.reshape(*tiles.images, *each, *made.shape[lead + 1 :])


def spread_windows(weights: NDArray[Any], tiles: SpreadTiles, groups: int) -> NDArray[Any]:
    """S[i…, k, c, o] for weights W[c, o, window…]: k of the elements that share a tile."""
    channels, filters, *_ = weights.shape
    by_group = weights.reshape(groups, channels // groups, filters, *tiles.taps)
    plain = np.moveaxis(by_group, 1, 2).reshape(groups * filters, -1, *tiles.taps)
    wide = np.pad(plain, [(0, 0), (0, 0), *_missing(tiles)])
    made = [
        short_windows(wide[np.ix_(*map(range, wide.shape[:2]), *seen)], tiles.of_one_image)
        for seen in _windows_of(tiles)
    ]
    return np.stack(made).reshape(*tiles.images, *made[0].shape)


def plain_spread_weights(
    transformed: NDArray[Any], tiles: SpreadTiles, groups: int
) -> NDArray[Any]:
    """W[c, o, window…] for `spread_weights`."""
    per_group, filters = transformed.shape[-2:]
    sizes = [t + more for t, (_, more) in zip(tiles.taps, _missing(tiles), strict=True)]
    wide = np.zeros((filters, per_group, *sizes))
    images = transformed.reshape(-1, *transformed.shape[len(tiles.images) :])
    for seen, image in zip(_windows_of(tiles), images, strict=True):
        where = np.ix_(*map(range, wide.shape[:2]), *seen)
        wide[where] = plain_weights(image, tiles.of_one_image)
    plain = wide[(slice(None), slice(None), *(slice(t) for t in tiles.taps))]
    by_group = plain.reshape(groups, filters // groups, *plain.shape[1:])
    return np.moveaxis(by_group, 1, 2).reshape(groups * per_group, -1, *tiles.taps)


def _missing(tiles: SpreadTiles) -> list[tuple[int, int]]:
    """The zeros behind windows that make them equal parts for all images."""
    lines = tiles.lines.values()
    return [(0, n.taps * n.images - t) for t, n in zip(tiles.taps, lines, strict=True)]


def _windows_of(tiles: SpreadTiles) -> Iterator[tuple[list[int], ...]]:
    """For each image the elements of the window that it sees, along each dimension."""
    lines = [line for line in tiles.lines.values() if isinstance(line, SpreadLine)]
    return product(*([line.window_of(i) for i in range(line.images)] for line in lines))
