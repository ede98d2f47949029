"""`DFT` and `STFT`: discrete Fourier transforms of any length, as products with small matrices.

A length n = r₁·r₂·… is transformed in stages, one for each factor. A stage is a contraction with
the matrix of a transform of length r over one digit of the place, real and imaginary parts taken
together; between stages elements are turned by the angles that the digits left open (Cooley and
Tukey). Digits that are done stand behind those that are not, so that the last stage writes the
result in its order (Stockham). Prime factors are plain products; with large ones the transform is a
convolution with a chirp (Bluestein). Lengths that only a run tells are plain products.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from tilewright.dtypes import f64
from tilewright.frontend.onnx.conversions import converted
from tilewright.frontend.onnx.indexing import known_scalar
from tilewright.frontend.onnx.movement import cut
from tilewright.frontend.onnx.node import OnnxNode, normal_axis
from tilewright.frontend.onnx.reductions import widened
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.spending import pay_elements
from tilewright.graph import Builder, Value
from tilewright.graph.guards import decided, is_one
from tilewright.graph.ir import Array
from tilewright.graph.ops import axis, picked
from tilewright.graph.ops.gather import Gather
from tilewright.graph.sizes import fixed, product, tidy
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, select

__all__: list[str] = []

SHORT: Final = 48
"""Up to this length one product is best."""

STAGE: Final = 8
"""What another stage costs, in elements of a factor: each is two kernels more."""

LONG: Final = 512
"""Prime factors above this make the transform a convolution, of a length with small factors."""

LONGEST: Final = 1 << 26
"""Lengths above this are not taken apart, which takes as many steps as their root."""

TABLES: Final = 16
"""Elements of what a convolution with a chirp needs, for each element of a row."""


@onnx_op("DFT")
def dft(
    b: Builder, node: OnnxNode, x: Value, length: Value | None = None, along: Value | None = None
) -> Value:
    """Along one dimension; the last one holds real and imaginary parts, or real ones only."""
    named = node.int("axis", 1) if node.opset < 20 else -2
    if along is not None:
        known = decided(b, b.integers(along), "axis")
        named = node.decline("the axis depends on data") if known is None else known[0]
    where, x = normal_axis(named, x.rank), _with_parts(b, x)
    inverse, half = bool(node.int("inverse")), bool(node.int("onesided"))
    size = x.shape[where]
    n = tidy((size - 1) * 2) if inverse and half else size
    if length is not None:
        n = tir.as_index(known_scalar(b, node, "dft_length", length))
    order = [d for d in range(x.rank - 1) if d != where]
    moved = widened(b, b.transpose(x, [*order, where, x.rank - 1]))
    lead = moved.shape[:-2]
    rows = b.reshape(moved, (product(lead), *moved.shape[-2:]))
    if inverse and half:
        found = _transformed(b, node, _mirrored(b, rows, n), n, inverse=True)
        found = cut(b, found, 2, tir.Const(0), tir.Const(1))
    else:
        found = _transformed(b, node, _fitted(b, rows, n), n, inverse=inverse, half=half)
    whole = b.reshape(found, (*lead, *found.shape[1:]))
    back = [*order, where, x.rank - 1]
    return converted(b, b.transpose(whole, [back.index(d) for d in range(x.rank)]), x.dtype)


@onnx_op("STFT")
def stft(
    b: Builder,
    node: OnnxNode,
    x: Value,
    step: Value,
    window: Value | None = None,
    length: Value | None = None,
) -> Value:
    """Transforms of frames that overlap, each weighted by a window.

    Exporters leave out the dimension of real and imaginary parts where all numbers are real.
    """
    x = b.reshape(x, (*x.shape, 1)) if x.rank == 2 else _with_parts(b, x)
    hop = known_scalar(b, node, "frame_step", step)
    if length is not None:
        n = tir.as_index(known_scalar(b, node, "frame_length", length))
    else:
        n = x.shape[1] if window is None else window.shape[0]
    batch, total, parts = x.shape
    frames = tidy((total - n) // hop + 1)
    taken = n if window is None else window.shape[0]

    def place(r: tir.Expr, t: tir.Expr, c: tir.Expr) -> list[tir.Expr]:
        return [r // frames, r % frames * hop + t, c]

    rows = b.remap(
        widened(b, x),
        (product([batch, frames]), taken, parts),
        place,
        inside=lambda r, t, _: r % frames * hop + t < total,
    )
    if window is not None:
        rows = b.map(lambda v, w: v * w, rows, b.reshape(widened(b, window), (taken, 1)))
    half = bool(node.int("onesided", 1))
    found = _transformed(b, node, _fitted(b, rows, n), n, inverse=False, half=half)
    return converted(b, b.reshape(found, (batch, frames, *found.shape[1:])), x.dtype)


def _with_parts(b: Builder, x: Value) -> Value:
    """With one part of numbers that are real, or two of complex ones, also where a run tells."""
    if not x.rank or fixed(x.shape[-1]) is not None:
        return x
    return b.reshape(x, (*x.shape[:-1], 1 if is_one(b, x.shape[-1], "parts") else 2))


def _fitted(b: Builder, rows: Value, n: tir.Expr) -> Value:
    """The first n elements of each row, or zeros behind them."""
    size = rows.shape[1]
    if tidy(size) == tidy(n):
        return rows
    shape = (rows.shape[0], n, rows.shape[2])
    return b.remap(rows, shape, lambda r, t, c: (r, t, c), inside=lambda _, t, __: t < size)


def _mirrored(b: Builder, rows: Value, n: tir.Expr) -> Value:
    """The whole spectrum of real numbers from its first half: the rest is its mirror image."""
    half = _fitted(b, rows, tidy(n // 2 + 1))

    def place(r: tir.Expr, k: tir.Expr, c: tir.Expr) -> list[tir.Expr]:
        return [r, tir.Select(k <= n // 2, k, n - k), c]

    full = b.remap(half, (half.shape[0], n, half.shape[2]), place)
    signs = b.tabulate((n, half.shape[2]), lambda k, c: select((c.eq(1)) & (n // 2 < k), -1, 1))
    return b.map(lambda v, s: v * s.to(v.dtype), full, signs)


def _transformed(
    b: Builder, node: OnnxNode, rows: Value, n: tir.Expr, *, inverse: bool, half: bool = False
) -> Value:
    """Rows of (n, 1 or 2) as rows of (n, 2), or of their first half; an inverse is divided by n."""
    length = fixed(n)
    if length is None:
        return _by_table(b, rows, n, inverse=inverse, half=half)
    if length > LONGEST:
        node.decline(f"a transform of length {length}")
    if max(factors(length)) > LONG:
        pay_elements(b, node, TABLES * length, "a chirp")
    else:
        pay_elements(b, node, sum(4 * f * f for f in factors(length)), "matrices of factors")
    wanted = length // 2 + 1 if half else length
    sign, scale = (1, 1 / max(length, 1)) if inverse else (-1, 1.0)
    parts, dtype = fixed(rows.shape[2]) or 1, rows.dtype
    if max(factors(length)) > LONG:
        return _by_chirp(b, node, rows, length, wanted, sign, scale)
    if length <= SHORT or len(factors(length)) == 1:
        matrix = (_matrix(length, sign) * scale)[..., :parts, :wanted, :]
        flat = b.reshape(rows, (rows.shape[0], length * parts))
        table = b.constant(matrix.reshape(length * parts, wanted * 2), "spectrum", dtype)
        return b.reshape(b.matmul(flat, table), (rows.shape[0], wanted, 2))
    return _in_stages(b, rows, length, wanted, sign, scale)


def _in_stages(b: Builder, rows: Value, length: int, wanted: int, sign: int, scale: float) -> Value:
    """One contraction for each factor: `j` is the digit that becomes `k`, `m` those to come."""
    count, dtype = rows.shape[0], rows.dtype
    first, *others = factors(length)
    parts, rest, done = fixed(rows.shape[2]) or 1, length // first, first
    data = b.reshape(rows, (count, first, rest, parts))
    table = b.constant(_matrix(first, sign)[:, :parts] * scale, "spectrum", dtype)
    data = b.contract("bjmc", "jckd", "bdmk", data, table)
    data = _turned(b, b.reshape(data, (count, 2, rest, first, 1)), sign)
    for number, factor in enumerate(others):
        rest //= factor
        data = b.reshape(data, (count, 2, factor, rest, done))
        matrix = _matrix(factor, sign)
        if number == len(others) - 1:
            kept = -(-wanted // done)
            table = b.constant(matrix[:, :, :kept], "spectrum", dtype)
            data = b.reshape(data, (count, 2, factor, done))
            data = b.contract("bcjs", "jckd", "bksd", data, table)
            whole = b.reshape(data, (count, kept * done, 2))
            return cut(b, whole, 1, tir.Const(0), tir.Const(wanted))
        table = b.constant(matrix, "spectrum", dtype)
        data = _turned(b, b.contract("bcjms", "jckd", "bdmks", data, table), sign)
        done *= factor
    return data


def _turned(b: Builder, data: Value, sign: int) -> Value:
    """Elements (row, part, m, k, done) times exp(±2πi·m·k/(m's · k's)): a complex product."""
    _, _, rest, factor, _ = data.shape
    others, here = fixed(rest) or 1, fixed(factor) or 1
    turn = sign * 2 * np.pi / (others * here)

    def cos(m: tir.Expr, k: tir.Expr, _: tir.Expr) -> tir.Expr:
        return call("cos", (m * k).to(f64) * turn)

    def sin(d: tir.Expr, m: tir.Expr, k: tir.Expr, _: tir.Expr) -> tir.Expr:
        side = tir.Select(d.eq(0), tir.Const(-1), tir.Const(1))
        return call("sin", (m * k * side).to(f64) * turn)

    tables = (
        b.tabulate((others, here, 1), cos, data.dtype),
        b.tabulate((2, others, here, 1), sin, data.dtype),
    )
    other = b.remap(data, data.shape, lambda r, d, m, k, s: (r, 1 - d, m, k, s))
    return b.map(lambda v, w, c, s: v * c + w * s, data, other, *tables)


def _by_chirp(
    b: Builder, node: OnnxNode, rows: Value, length: int, wanted: int, sign: int, scale: float
) -> Value:
    """With jk = (j² + k² - (k - j)²)/2 the transform is a convolution with a chirp.

    A convolution is a product between two transforms, here of a power of two.
    """
    size = 1 << (2 * length - 1).bit_length()
    angle = np.pi * (np.arange(length, dtype=np.int64) ** 2 % (2 * length)) / length
    chirp = np.exp(1j * sign * angle)
    around = np.zeros(size, np.complex128)
    around[:length] = chirp.conj()
    around[size - length + 1 :] = chirp.conj()[:0:-1]
    turned = _times(b, _complex(b, rows), chirp)
    whole = tir.Const(size)
    spectrum = _transformed(b, node, _fitted(b, turned, whole), whole, inverse=False)
    both = _times(b, spectrum, np.fft.fft(around) * scale)
    back = _transformed(b, node, both, whole, inverse=True)
    return _times(b, cut(b, back, 1, tir.Const(0), tir.Const(wanted)), chirp[:wanted])


def _complex(b: Builder, rows: Value) -> Value:
    """With zeros as imaginary parts, if there are none."""
    if fixed(rows.shape[2]) == 2:
        return rows
    shape = (*rows.shape[:2], tir.Const(2))
    return b.remap(rows, shape, lambda r, t, _: (r, t, 0), inside=lambda _, __, c: c.eq(0))


def _times(b: Builder, rows: Value, by: Array) -> Value:
    """Complex rows times complex numbers that are known."""
    other = b.remap(rows, rows.shape, lambda r, t, c: (r, t, 1 - c))
    cos = b.constant(by.real[:, None], "cos", rows.dtype)
    sin = b.constant(np.stack([-by.imag, by.imag], 1), "sin", rows.dtype)
    return b.map(lambda v, w, c, s: v * c + w * s, rows, other, cos, sin)


def _by_table(b: Builder, rows: Value, n: tir.Expr, *, inverse: bool, half: bool) -> Value:
    """A plain product with cosines and sines of a length that only a run tells."""
    dtype = rows.dtype
    wanted = tidy(n // 2 + 1) if half else n
    places = b.tabulate((n, wanted), lambda j, k: j * k % n)

    def wave(name: str) -> Value:
        numbers = b.tabulate((n,), lambda i: i)
        line = b.map(
            lambda i: call(name, i.to(dtype) * (2 * np.pi) / n.to(dtype)), numbers, dtype=dtype
        )
        at = Gather((n, wanted), ((1, (axis(0), axis(1))),), (picked(0),))
        return b.add(at, line, places)

    def along(part: int, table: Value) -> Value:
        column = b.reshape(cut(b, rows, 2, tir.Const(part), tir.Const(1)), rows.shape[:2])
        return b.contract("bj", "jk", "bk", column, table)

    sign = 1.0 if inverse else -1.0
    cos, sin = wave("cos"), wave("sin")
    real, imaginary = along(0, cos), b.map(lambda v: v * sign, along(0, sin))
    if fixed(rows.shape[2]) == 2:
        real = b.map(lambda v, w: v - w * sign, real, along(1, sin))
        imaginary = b.map(lambda v, w: v + w, imaginary, along(1, cos))
    both = [b.reshape(v, (*v.shape, 1)) for v in (real, imaginary)]
    found = b.concat(both, 2)
    return b.map(lambda v: v / n.to(v.dtype), found) if inverse else found


@lru_cache(maxsize=64)
def _matrix(n: int, sign: int) -> Array:
    """[place, part, frequency, part]: the transform of length n on real and imaginary parts."""
    angle = sign * 2 * np.pi * (np.outer(np.arange(n), np.arange(n)) % n) / n
    cos, sin = np.cos(angle), np.sin(angle)
    return np.stack([np.stack([cos, sin], -1), np.stack([-sin, cos], -1)], 1)


@lru_cache(maxsize=1024)
def factors(n: int) -> tuple[int, ...]:
    """The factors whose stages cost least, in falling order; (n,) if it is prime."""
    best: tuple[int, ...] = (n,)
    for first in range(2, int(n**0.5) + 1):
        if n % first == 0:
            for pair in ((first, n // first), (n // first, first)):
                found = tuple(sorted((pair[0], *factors(pair[1])), reverse=True))
                best = min(best, found, key=_cost)
    return best


def _cost(found: tuple[int, ...]) -> int:
    return sum(found) + STAGE * len(found)
