"""Transposed convolutions over channels-last data, without any work on zeros.

With stride s, output element o only sees the elements r of a window with (o + pad - r·dilation) a
multiple of s. All outputs with one remainder, a *phase*, therefore are an ordinary convolution of
stride one with a part of the window. The phases of the result lie beside each other:

    Z[p…, n, u…, o] = Σ X[n, u + shift(p) - t, c]·W[c, o, r(p, t)]
    Y[n, x…, o] = Z[x % s…, n, x // s…, o]

Phases whose parts of the window differ in size are blocks of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.build import Reduction, Shape, Tensor, compute, reduce_axis, select, sum_over
from tilewright.tensor.library.convolve import SPACE, WINDOW, ZERO, Geometry, known_size
from tilewright.tensor.library.dims import (
    accumulator,
    line_multiple,
    padded,
    rounded_up,
    turned,
    with_names,
)

__all__ = ["convolve_transposed"]


def convolve_transposed(
    x: Tensor,
    weights: Tensor,
    strides: Sequence[int] = (),
    dilations: Sequence[int] = (),
    pads: Sequence[int] = (),
    extra: Sequence[int] = (),
    groups: int = 1,
    name: str = "Y",
    *,
    lines: int | None = None,
) -> Tensor:
    """Y[n, i·stride + r·dilation - pad, o] += X[n, i, c]·W[c, o, r…], in 1 to 3 dimensions.

    Weights are (channels, filters of a group, window…); `extra` elements more at each end of space
    are reached by no further window. `lines` is that of `convolve`, where phases are alike.
    """
    kernel = [known_size(k) for k in weights.shape[2:]]
    geometry = Geometry(kernel, strides, dilations, pads)
    channels = known_size(weights.shape[0])
    if tir.int_value(x.shape[-1]) not in (None, channels) or channels % groups:
        raise ValueError(f"{groups} groups do not fit {channels} channels")
    along = [
        _Line.of(geometry, d, (extra or (0,) * geometry.rank)[d]) for d in range(geometry.rank)
    ]
    space = [line.size(size) for line, size in zip(along, x.shape[1:-1], strict=True)]
    data = _Data(x, weights, groups, name)
    if all(line.is_even for line in along):
        return _interleaved(data, along, space, multiple=lines)
    return _by_phase(data, along, space, multiple=lines or 0)


@dataclass(frozen=True)
class _Line:
    """One dimension: windows of `kernel`, one every `stride`, the first `before` off the result."""

    kernel: int
    stride: int
    dilation: int
    before: int
    after: int
    extra: int

    @classmethod
    def of(cls, geometry: Geometry, d: int, extra: int) -> _Line:
        return cls(
            geometry.kernel[d],
            geometry.strides[d],
            geometry.dilations[d],
            geometry.before[d],
            geometry.after[d],
            extra,
        )

    def size(self, size: tir.Expr) -> tir.Expr:
        """Elements of the result."""
        reach = (self.kernel - 1) * self.dilation + 1
        more = reach + self.extra - self.before - self.after
        return Analyzer().simplify((size - 1) * self.stride + more)

    @property
    def is_even(self) -> bool:
        """Whether every phase has as many elements of the window as the others."""
        return self.kernel % self.stride == 0 and self.dilation == 1

    def taps(self, phase: int) -> list[tuple[int, int]]:
        """(element of the window, input minus u) for the outputs u·stride + phase."""
        found = []
        for r in reversed(range(self.kernel)):
            distance = phase + self.before - r * self.dilation
            if distance % self.stride == 0:
                found.append((r, distance // self.stride))
        return found

    @property
    def shifts(self) -> list[int]:
        """How far inputs lie from u, over all phases; zero among them."""
        distances = (self.before - r * self.dilation for r in range(self.kernel))
        return [0, *(-(-distance // self.stride) for distance in distances)]

    def parts(self, size: tir.Expr) -> tir.Expr:
        """How many elements of the result each phase has, at most."""
        return Analyzer().simplify((size + (self.stride - 1)) // self.stride)


@dataclass(frozen=True)
class _Data:
    """The operands of a transposed convolution."""

    x: Tensor
    weights: Tensor
    groups: int
    name: str

    @property
    def filters(self) -> int:
        return known_size(self.weights.shape[1]) * self.groups

    def bordered(self, lines: Sequence[_Line], space: Sequence[tir.Expr]) -> Tensor:
        """X with zeros wherever some phase reads beyond its ends."""
        before = [-min(line.shifts) for line in lines]
        after = []
        for line, size, wanted in zip(lines, self.x.shape[1:-1], space, strict=True):
            # The last u is less than the size of X by a number, whatever that size is.
            last = line.parts(wanted) - 1 + max(line.shifts)
            after.append(max(0, _distance(last - (size - 1), size)))
        names = ("n", *SPACE[len(lines)], "c")
        return padded(f"{self.name}_border", self.x, (0, *before, 0), (0, *after, 0), names)

    def product(
        self,
        source: Tensor,
        n: tir.Expr,
        at: Sequence[tir.Expr],
        taps: Sequence[tir.Expr],
        o: tir.Expr,
        c: tir.Expr,
        *,
        first: bool = False,
    ) -> tir.Expr:
        acc = accumulator(self.x.dtype)
        per_group = known_size(self.weights.shape[0]) // self.groups
        filters = known_size(self.weights.shape[1])
        channel, own = c, o
        if self.groups > 1:
            channel, own = o // filters * per_group + c, o % filters
        left = source[(n, channel, *at) if first else (n, *at, channel)]
        return left.to(acc) * self.weights[(channel, own, *taps)].to(acc)


def _distance(expr: tir.Expr, size: tir.Expr) -> int:
    """The greatest value of an expression that a symbolic size cancels out of, up to rounding."""
    known = tir.int_value(size)
    if known is not None:
        value = tir.int_value(Analyzer().simplify(expr))
        assert value is not None
        return value
    bound = Analyzer({tir.Var("below"): size}).bounds(expr).hi
    if bound is None:
        raise ValueError(f"how far `{expr}` goes is not known")
    return int(bound)


def _interleaved(
    data: _Data, lines: Sequence[_Line], space: Sequence[tir.Expr], *, multiple: int | None
) -> Tensor:
    """All phases in one block: each takes the same number of elements of the window.

    Lines of a multiple of places have these in vectors.
    """
    rank = len(lines)
    taps = [line.kernel // line.stride for line in lines]
    c = reduce_axis(known_size(data.weights.shape[0]) // data.groups, "c")
    steps = [reduce_axis(t, r) for t, r in zip(taps, WINDOW[rank], strict=True)]
    inner = [step if t > 1 else ZERO for step, t in zip(steps, taps, strict=True)]
    axes = [*(step for step, t in zip(steps, taps, strict=True) if t > 1), c]

    several = [d for d, line in enumerate(lines) if line.stride > 1]
    parts = [line.parts(size) for line, size in zip(lines, space, strict=True)]
    multiple = line_multiple(multiple, data.filters, parts[-1])
    narrow = multiple > 0 and bool(several) and data.groups == 1
    wide = list(space)
    if narrow and parts[-1] is not (rounded := rounded_up(parts[-1], multiple)):
        parts[-1], wide[-1] = rounded, rounded * lines[-1].stride
    source = data.bordered(lines, wide)
    if narrow:
        source = turned(f"{data.name}_turned", source, ("n", *SPACE[rank], "c"))

    def value(*where: tir.Expr) -> Reduction:
        count = len(several)
        phases, n, rest = where[:count], where[count], where[count + 1 :]
        o, *units = rest if narrow else (rest[-1], *rest[:-1])
        phase_of = dict(zip(several, phases, strict=True))
        at, elements = [], []
        for d, (line, unit, step) in enumerate(zip(lines, units, inner, strict=True)):
            begun = phase_of.get(d, ZERO) + line.before
            at.append(unit + begun // line.stride + step + (1 - taps[d] - min(line.shifts)))
            elements.append(begun % line.stride + (taps[d] - 1 - step) * line.stride)
        return sum_over(data.product(source, n, at, elements, o, c, first=narrow), *axes)

    def spread(n: tir.Expr, *where: tir.Expr) -> tir.Expr:
        *places, o = where
        phases = [places[d] % lines[d].stride for d in several]
        units = [at // line.stride for at, line in zip(places, lines, strict=True)]
        return z[(*phases, n, o, *units) if narrow else (*phases, n, *units, o)]

    last = ("n", *SPACE[rank], "o")
    own = ("n", "o", *SPACE[rank]) if narrow else last
    sizes: Shape = (data.filters, *parts) if narrow else (*parts, data.filters)
    shape: Shape = (*(lines[d].stride for d in several), data.x.shape[0], *sizes)
    name = f"{data.name}_phases" if several else data.name
    names = (*(f"p{SPACE[rank][d]}" for d in several), *own)
    z = compute(name, shape, with_names(names, value))
    whole: Shape = (data.x.shape[0], *space, data.filters)
    return compute(data.name, whole, with_names(last, spread)) if several else z


def _by_phase(
    data: _Data, lines: Sequence[_Line], space: Sequence[tir.Expr], *, multiple: int
) -> Tensor:
    """A block for each phase, and one that puts their results beside each other."""
    parts = [line.parts(size) for line, size in zip(lines, space, strict=True)]
    first, wide = multiple > 0 and data.groups == 1, list(space)
    if first and parts[-1] is not (rounded := rounded_up(parts[-1], multiple)):
        parts[-1], wide[-1] = rounded, rounded * lines[-1].stride
    source = data.bordered(lines, wide)
    if first:
        source = turned(f"{data.name}_turned", source, ("n", *SPACE[len(lines)], "c"))
    phases = {
        phase: _one_phase(data, source, lines, phase, parts, first=first)
        for phase in product(*(range(line.stride) for line in lines))
    }
    zero = tir.const(0, accumulator(data.x.dtype))

    def spread(n: tir.Expr, *where: tir.Expr) -> tir.Expr:
        *places, o = where
        units = [at // line.stride for at, line in zip(places, lines, strict=True)]

        def chosen(begun: tuple[int, ...]) -> tir.Expr:
            d = len(begun)
            if d == len(lines):
                found = phases[begun]
                if found is None:
                    return zero
                return found[(n, o, *units) if first else (n, *units, o)]
            result = chosen((*begun, lines[d].stride - 1))
            for phase in reversed(range(lines[d].stride - 1)):
                here = (places[d] % lines[d].stride).eq(phase)
                result = select(here, chosen((*begun, phase)), result)
            return result

        return chosen(())

    names = ("n", *SPACE[len(lines)], "o")
    return compute(data.name, (data.x.shape[0], *space, data.filters), with_names(names, spread))


def _one_phase(
    data: _Data,
    source: Tensor,
    lines: Sequence[_Line],
    phase: tuple[int, ...],
    parts: Sequence[tir.Expr],
    *,
    first: bool,
) -> Tensor | None:
    """The outputs u·stride + phase; None if no window reaches them."""
    rank = len(lines)
    taps = [line.taps(p) for line, p in zip(lines, phase, strict=True)]
    if not all(taps):
        return None
    c = reduce_axis(known_size(data.weights.shape[0]) // data.groups, "c")
    steps = [reduce_axis(len(t), r) for t, r in zip(taps, WINDOW[rank], strict=True)]
    inner = [step if len(t) > 1 else ZERO for step, t in zip(steps, taps, strict=True)]
    axes = [*(step for step, t in zip(steps, taps, strict=True) if len(t) > 1), c]

    def value(n: tir.Expr, *where: tir.Expr) -> Reduction:
        o, *units = where if first else (where[-1], *where[:-1])
        at, elements = [], []
        for line, own, unit, step in zip(lines, taps, units, inner, strict=True):
            (begin, shift), second = own[0], own[1] if len(own) > 1 else own[0]
            at.append(unit + step * (second[1] - shift) + (shift - min(line.shifts)))
            elements.append(step * (second[0] - begin) + begin)
        return sum_over(data.product(source, n, at, elements, o, c, first=first), *axes)

    name = f"{data.name}_{''.join(map(str, phase))}"
    names = ("n", "o", *SPACE[rank]) if first else ("n", *SPACE[rank], "o")
    sizes: Shape = (data.filters, *parts) if first else (*parts, data.filters)
    return compute(name, (data.x.shape[0], *sizes), with_names(names, value))
