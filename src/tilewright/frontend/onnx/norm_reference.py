"""`BatchNormalization` for the ONNX reference implementation, in the place of its own.

Before opset 14 that one mixes means of the batch with those that it is given, as in training.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference.ops.op_batch_normalization import BatchNormalization_14

__all__ = ["BatchNormalization"]


class BatchNormalization(BatchNormalization_14):  # type: ignore[misc]
    """Channels less their means, by their deviations; statistics are those that are given."""

    def _run(
        self,
        x: Any,
        scale: Any,
        bias: Any,
        mean: Any,
        var: Any,
        epsilon: float = 1e-5,
        momentum: float = 0.9,
        training_mode: int = 0,
        spatial: int = 1,
        is_test: int = 0,  # noqa: ARG002  (nobody trains with this)
    ) -> tuple[Any, ...]:
        given: tuple[Any, ...] = (scale, bias, mean, var)
        if training_mode:
            made: tuple[Any, ...] = super()._run(x, *given, epsilon, momentum, training_mode)
            return made
        if spatial:
            given = tuple(np.reshape(v, (-1, *[1] * (np.ndim(x) - 2))) for v in given)
        scale, bias, mean, var = given
        return ((scale * (x - mean) / np.sqrt(var + epsilon) + bias).astype(x.dtype),)
