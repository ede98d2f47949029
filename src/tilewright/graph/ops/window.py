"""Windows that slide over channels-last data: `Conv`, `ConvTranspose` and `Pool`.

Data are (batch, space…, channels), in one to three dimensions of space whose sizes may be symbolic;
weights have known shapes and the order of dimensions that models store. `pads` are all beginnings,
then all ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np

from tilewright.dtypes import DType
from tilewright.errors import Code, GraphError
from tilewright.graph.ir import Array, TensorType
from tilewright.graph.ops.op import Limit, Op, Role, SizeOf
from tilewright.graph.sizes import as_shape, fixed, sized
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor, fold_identity
from tilewright.tensor.library.convolve import convolve
from tilewright.tensor.library.dims import stored
from tilewright.tensor.library.pool import pool
from tilewright.tensor.library.transposed import convolve_transposed
from tilewright.tensor.printer import print_node

__all__ = ["Conv", "ConvTranspose", "Pool"]

G030 = Code(
    "G030", "weights of shape [{weights}] do not fit {channels} channels in {groups} groups"
)
G031 = Code("G031", "a window of {window} elements does not fit into {size} elements")

FIT: Final = "weights are (filters, channels of a group, window…), all of them numbers"

_NUMPY = {
    tir.Fold.ADD: np.add,
    tir.Fold.MUL: np.multiply,
    tir.Fold.MIN: np.minimum,
    tir.Fold.MAX: np.maximum,
}
_NAMES = {1: "nxo", 2: "nhwo", 3: "ndhwo"}


@dataclass(frozen=True)
class Conv(Op):
    """`y[n, s…, o] = Σ x[n, s·stride + r·dilation - pad, c] · w[o, c, r…]`, stored as `dtype`.

    Filters see the channels of their group only.
    """

    role = Role.ANCHOR

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    groups: int
    dtype: DType
    lines: int | None = None
    """What lines of places, which are in vectors, are rounded up to a multiple of; 0 if filters are
    in vectors instead. Nothing is said before algorithms are chosen."""

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        x, weights = inputs
        filters, per_group, *kernel = _known(weights)
        _require_channels(x, weights, self.groups, per_group * self.groups, filters % self.groups)
        space = window_counts(x.shape[1:-1], kernel, self.strides, self.dilations, self.pads)
        return [TensorType(self.dtype, as_shape([x.shape[0], *space, filters]))]

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        wide = np.float64 if self.dtype.is_float else self.dtype.numpy
        x, weights = (a.astype(wide) for a in arrays)
        filters, per_group, *kernel = weights.shape
        windows = _windows(x, kernel, self.strides, self.dilations, self.pads, 0)
        batch, *space = windows.shape[: len(kernel) + 1]
        size = per_group * prod(kernel)
        rows = windows.reshape(batch * prod(space), self.groups, size)
        by_group = weights.reshape(self.groups, filters // self.groups, size)
        y = np.einsum("pgk,gok->pgo", rows, by_group, optimize=True)
        return [y.reshape(batch, *space, filters).astype(self.dtype.numpy)]

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        x, weights = inputs
        geometry = (self.strides, self.dilations, self.pads, self.groups)
        y = convolve(x, weights, *geometry, names[0], lines=self.lines)
        return [stored(f"{names[0]}_n", y, self.dtype, _NAMES[len(self.strides)])]

    def attributes(self) -> dict[str, object]:
        return _said(super().attributes())


@dataclass(frozen=True)
class ConvTranspose(Op):
    """The gradient of a convolution by its data.

    `y[n, i·stride + r·dilation - pad, o] += x[n, i, c] · w[c, o, r…]`, stored as `dtype`.

    Weights are (channels, filters of a group, window…); `extra` elements more at each end of space
    see no further window.
    """

    role = Role.ANCHOR

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    extra: tuple[int, ...]
    groups: int
    dtype: DType
    lines: int | None = None

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        x, weights = inputs
        channels, per_group, *kernel = _known(weights)
        _require_channels(x, weights, self.groups, channels, channels % self.groups)
        space = self.space(x.shape[1:-1], kernel)
        return [TensorType(self.dtype, as_shape([x.shape[0], *space, per_group * self.groups]))]

    def limits(
        self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]
    ) -> Iterator[Limit]:
        """Where a result may be longer than the border, there are data behind it."""
        x, weights = inputs
        left = self.space([tir.Const(0)] * (x.rank - 2), _known(weights)[2:])
        for size, nothing in zip(x.shape[1:-1], left, strict=True):
            if (fixed(nothing) or 0) > 0:
                yield tir.Const(1), size, outputs[0].shape

    def space(self, sizes: Sequence[tir.Expr], kernel: Sequence[int]) -> list[tir.Expr]:
        """How many elements the result has along each dimension."""
        rank = len(kernel)
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, self.dilations, strict=True)]
        cut = [self.pads[d] + self.pads[rank + d] for d in range(rank)]
        parts = zip(sizes, self.strides, reach, cut, self.extra, strict=True)
        return [(size - 1) * s + r - c + e for size, s, r, c, e in parts]

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        """Each element of a window adds a shifted, spread copy of the data."""
        wide = np.float64 if self.dtype.is_float else self.dtype.numpy
        x, weights = (a.astype(wide) for a in arrays)
        batch, *sizes, channels = x.shape
        _, per_group, *kernel = weights.shape
        rank, groups = len(kernel), self.groups
        x = x.reshape(batch, *sizes, groups, channels // groups)
        weights = weights.reshape(groups, channels // groups, per_group, *kernel)
        space = [fixed(s) or 0 for s in as_shape(self.space([tir.Const(s) for s in sizes], kernel))]
        whole = [s + self.pads[d] + self.pads[rank + d] for d, s in enumerate(space)]
        y = np.zeros((batch, *whole, groups, per_group), wide)
        for place in np.ndindex(*kernel):
            starts = [p * d for p, d in zip(place, self.dilations, strict=True)]
            spread = zip(starts, sizes, self.strides, strict=True)
            where = tuple(slice(a, a + (n - 1) * s + 1, s) if n else slice(0) for a, n, s in spread)
            step = np.einsum("n...gc,gco->n...go", x, weights[(..., *place)], optimize=True)
            y[(slice(None), *where)] += step
        cut = tuple(slice(self.pads[d], self.pads[d] + s) for d, s in enumerate(space))
        y = y[(slice(None), *cut)]
        return [y.reshape(batch, *space, groups * per_group).astype(self.dtype.numpy)]

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        x, weights = inputs
        geometry = (self.strides, self.dilations, self.pads, self.extra, self.groups)
        y = convolve_transposed(x, weights, *geometry, names[0], lines=self.lines)
        return [stored(f"{names[0]}_n", y, self.dtype, _NAMES[len(self.strides)])]

    def attributes(self) -> dict[str, object]:
        return _said(super().attributes())


@dataclass(frozen=True)
class Pool(Op):
    """A fold over each window of each channel; the border changes no result."""

    role = Role.ANCHOR

    fold: tir.Fold
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        (x,) = inputs
        space = window_counts(x.shape[1:-1], self.kernel, self.strides, self.dilations, self.pads)
        return [TensorType(x.dtype, as_shape([x.shape[0], *space, x.shape[-1]]))]

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        (x,) = arrays
        wide = x.astype(np.float64) if x.dtype.kind not in "iub" else x
        fill = _border(self.fold, x)
        windows = _windows(wide, self.kernel, self.strides, self.dilations, self.pads, fill)
        axes = tuple(range(-len(self.kernel), 0))
        with np.errstate(all="ignore"):
            return [_NUMPY[self.fold].reduce(windows, axis=axes).astype(x.dtype)]

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        (x,) = inputs
        y = pool(x, self.fold, self.kernel, self.strides, self.dilations, self.pads, names[0])
        return [stored(f"{names[0]}_n", y, x.dtype, _NAMES[len(self.kernel)])]

    def attributes(self) -> dict[str, object]:
        shown: dict[str, object] = {"fold": self.fold, "kernel": self.kernel}
        return shown | {"strides": self.strides, "dilations": self.dilations, "pads": self.pads}


def _said(attributes: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in attributes.items() if value is not None}


def window_counts(
    sizes: Sequence[tir.Expr],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
) -> list[tir.Expr]:
    """How many windows there are along each dimension of space.

    None, and an empty result, if less than a step is missing for one: so the formula says, also
    where sizes are symbolic.
    """
    counts: list[tir.Expr] = []
    for d, size in enumerate(sizes):
        reach = (kernel[d] - 1) * dilations[d] + 1
        bordered = size + pads[d] + pads[len(kernel) + d]
        known = fixed(as_shape([bordered])[0])
        if known is not None and known < reach - strides[d]:
            hint = "make the border wider or the window smaller"
            raise GraphError(G031, {"window": reach, "size": known}, hint=hint)
        counts.append((bordered - reach) // strides[d] + 1)
    return counts


def _windows(
    x: Array,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    fill: float,
) -> Array:
    """(batch, space…, channels, window…): a view of all windows of channels-last data."""
    rank = len(kernel)
    border = [(pads[d], pads[rank + d]) for d in range(rank)]
    x = np.pad(x, [(0, 0), *border, (0, 0)], constant_values=fill)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    axes = tuple(range(1, rank + 1))
    view = np.lib.stride_tricks.sliding_window_view(x, reach, axis=axes)
    taken = [slice(None, None, s) for s in strides]
    inside = [slice(None, None, d) for d in dilations]
    return view[(slice(None), *taken, slice(None), *inside)]


def _border(fold: tir.Fold, x: Array) -> float:
    from tilewright.dtypes import dtype_of

    return fold_identity(fold, dtype_of(x.dtype)).value


def _known(weights: TensorType) -> tuple[int, ...]:
    shape = sized(weights.shape)
    if shape is None:
        shown = ", ".join(map(str, weights.shape))
        facts = {"weights": shown, "channels": "any number of", "groups": "any"}
        raise GraphError(G030, facts, hint=FIT)
    return shape


def _require_channels(
    x: TensorType, weights: TensorType, groups: int, wanted: int, rest: int
) -> None:
    channels = fixed(x.shape[-1])
    if channels not in {None, wanted} or rest or weights.rank != x.rank:
        shown = ", ".join(map(str, weights.shape))
        facts = {"weights": shown, "channels": print_node(x.shape[-1]), "groups": groups}
        raise GraphError(G030, facts, hint=FIT)
