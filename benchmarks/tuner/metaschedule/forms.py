"""In which layouts TVM is given a workload: arrays on their way there and back, in NumPy.

It may have its data as it likes, channels first or last, and nothing of that counts: arrays are
brought into these layouts once, before anything is timed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.numbers import Arrays
from benchmarks.workloads import Workload

__all__ = ["FORMS", "WEIGHTS", "Form", "forms_of"]

Array = NDArray[Any]
Order = tuple[int, ...]

WEIGHTS: Final = 1
"""The place of the weights among the parameters of all programs: they may be packed ahead."""


@dataclass(frozen=True)
class Form:
    """A layout by name: axes of data and of weights in their order, and those of the result back.

    Without axes, arrays stay as they are.
    """

    name: str
    inputs: tuple[str, ...]
    data: Order = ()
    weights: Order = ()
    result: Order = ()

    def given(self, arrays: Arrays) -> list[Array]:
        """The arrays of a program in the order of its parameters."""
        orders = (self.data, self.weights)
        turned = [_turned(arrays[n], o) for n, o in zip(self.inputs, orders, strict=False)]
        return turned + [arrays[name] for name in self.inputs[len(orders) :]]

    def taken(self, result: Array) -> Array:
        """The result as the workload has it."""
        return _turned(result, self.result)


def _turned(array: Array, order: Order) -> Array:
    return np.ascontiguousarray(array.transpose(order) if order else array)


FORMS: Final = {
    form.name: form
    for form in (
        Form("product", ("a", "b")),
        Form("nchw", ("x", "w", "b")),
        Form("nhwc", ("x", "w", "b"), (0, 2, 3, 1), (2, 3, 1, 0), (0, 3, 1, 2)),
    )
}


def forms_of(workload: Workload) -> tuple[str, ...]:
    """The forms that a workload is tried in."""
    if workload.op == "matmul":
        return ("product",)
    if workload.op == "conv2d":
        return ("nhwc", "nchw")
    raise ValueError(f"no program of TVM for {workload.name}")
