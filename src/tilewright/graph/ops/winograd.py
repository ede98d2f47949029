"""Convolutions with windows of 3×3 whose weights have been transformed ahead of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tilewright.dtypes import DType
from tilewright.errors import GraphError
from tilewright.graph.ir import Array, TensorType
from tilewright.graph.ops.op import Op, Role, SizeOf
from tilewright.graph.ops.window import G030, window_counts
from tilewright.graph.sizes import as_shape, dims_equal
from tilewright.tensor.build import Tensor
from tilewright.tensor.library.winograd import convolve_winograd, plain_weights

__all__ = ["WinogradConv"]

_WINDOW: Final = (3, 3)


@dataclass(frozen=True)
class WinogradConv(Op):
    """A convolution of stride one with `winograd_weights`, [tile, tile, channels, filters]."""

    role = Role.ANCHOR

    pads: tuple[int, ...]
    dtype: DType

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        x, weights = inputs
        fits = x.rank == weights.rank == 4 and dims_equal(x.shape[-1], weights.shape[2])
        if not fits:
            shown = ", ".join(map(str, weights.shape))
            raise GraphError(G030, {"weights": shown, "channels": x.shape[-1], "groups": 1})
        space = window_counts(x.shape[1:-1], _WINDOW, (1, 1), (1, 1), self.pads)
        return [TensorType(self.dtype, as_shape([x.shape[0], *space, weights.shape[-1]]))]

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        """The weights transformed back, and a plain convolution with them."""
        x = arrays[0].astype(np.float64)
        weights = plain_weights(arrays[1]).transpose(2, 3, 1, 0)
        top, left, bottom, right = self.pads
        x = np.pad(x, [(0, 0), (top, bottom), (left, right), (0, 0)])
        high, wide = x.shape[1] - 2, x.shape[2] - 2
        y = np.zeros((x.shape[0], high, wide, weights.shape[-1]))
        for i, j in np.ndindex(*_WINDOW):
            y += x[:, i : i + high, j : j + wide] @ weights[i, j]
        return [y.astype(self.dtype.numpy)]

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        x, weights = inputs
        return [convolve_winograd(x, weights, self.pads, names[0])]
