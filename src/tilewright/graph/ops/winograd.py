"""Convolutions by minimal filters, whose weights have been transformed ahead of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.dtypes import DType
from tilewright.errors import GraphError
from tilewright.graph.ir import Array, TensorType
from tilewright.graph.ops.op import Op, Role, SizeOf
from tilewright.graph.ops.window import FIT, G030, Conv, window_counts
from tilewright.graph.sizes import as_shape, dims_equal
from tilewright.tensor.build import Tensor
from tilewright.tensor.library.winograd import Tiles, convolve_winograd, plain_weights

__all__ = ["WinogradConv"]


@dataclass(frozen=True)
class WinogradConv(Op):
    """A convolution with `winograd_weights` for its tiles; see `tensor/library/winograd.py`."""

    role = Role.ANCHOR

    taps: tuple[int, ...]
    results: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    groups: int
    dtype: DType

    @property
    def tiles(self) -> Tiles:
        """Which dimensions are tiled, and how."""
        return Tiles(self.taps, self.results)

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        x, weights = inputs
        fits = x.rank == weights.rank == len(self.taps) + 2
        if not fits or not dims_equal(x.shape[-1], weights.shape[-2] * self.groups):
            shown = ", ".join(map(str, weights.shape))
            facts = {"weights": shown, "channels": x.shape[-1], "groups": self.groups}
            raise GraphError(G030, facts, hint=FIT)
        space = window_counts(x.shape[1:-1], self.taps, self.strides, self.dilations, self.pads)
        return [TensorType(self.dtype, as_shape([x.shape[0], *space, weights.shape[-1]]))]

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        """The weights transformed back, and a plain convolution with them."""
        plain = Conv(self.strides, self.dilations, self.pads, self.groups, self.dtype)
        return plain.evaluate([arrays[0], plain_weights(arrays[1], self.tiles)], size_of)

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        x, weights = inputs
        how = (self.tiles, self.pads, self.strides, self.dilations, self.groups)
        return [convolve_winograd(x, weights, *how, names[0])]
