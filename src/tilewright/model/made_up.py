"""Arrays that are made up for a kernel, where nobody has those of its model.

A `Parameter` is a parameter of a kernel's program in numbers: what a process needs that has neither
the model nor the program. Activations are stored as the model stores them, with zeros in borders;
constants are plain, to be packed as the schedule wants them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.dtypes import DTYPES, DType
from tilewright.graph.ir import Array
from tilewright.graph.sizes import evaluate_size
from tilewright.model.kernels import KernelTask
from tilewright.tensor import ir as tir
from tilewright.tensor.layout import Fuse, LayoutStep, parse_step
from tilewright.tensor.regions import sizes as program_sizes

__all__ = ["Parameter", "parameters_of", "sizes_in"]

Sizes = Mapping[tir.Var, int]


@dataclass(frozen=True)
class Parameter:
    """A parameter: its shape in memory, and the shape and layout of the value that lies there."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    is_constant: bool
    plain: tuple[int, ...] = ()
    layout: tuple[LayoutStep, ...] = ()

    def made_up(self, rng: np.random.Generator) -> Array:
        """An array as a model would store it: what surrounds an image is zero."""
        if not self.layout:
            return _values(rng, self.dtype, self.shape)
        array = _values(rng, self.dtype, self.plain)
        for step in self.layout:
            array = step.pack(array)
        return np.ascontiguousarray(array).reshape(self.shape)

    def to_data(self) -> list[Any]:
        """Plain data for JSON."""
        steps = [str(step) for step in self.layout]
        shapes = list(self.shape), list(self.plain)
        return [self.name, self.dtype.name, self.is_constant, *shapes, steps]

    @classmethod
    def from_data(cls, data: Sequence[Any]) -> Parameter:
        """The inverse of `to_data`."""
        name, dtype, is_constant, shape, plain, steps = data
        layout = tuple(map(parse_step, steps))
        return cls(name, DTYPES[dtype], tuple(shape), is_constant, tuple(plain), layout)


def parameters_of(task: KernelTask, sizes: Sizes) -> tuple[Parameter, ...]:
    """The parameters of a kernel, for sizes of the graph."""
    own = sizes_in(task, sizes)
    return tuple(
        _parameter(param, task, number, own, sizes)
        for number, param in enumerate(task.program.params)
    )


def sizes_in(task: KernelTask, sizes: Sizes) -> dict[tir.Var, int]:
    """The sizes of a kernel's program, for sizes of the graph."""
    values = (evaluate_size(size, sizes) for size in task.sizes)
    return dict(zip(program_sizes(task.program), values, strict=True))


def _parameter(
    param: tir.Buffer, task: KernelTask, number: int, own: Sizes, sizes: Sizes
) -> Parameter:
    shape = _numbers(param.shape, own)
    if param.name in task.constants:
        return Parameter(param.name, param.dtype, shape, is_constant=True)
    value = task.params[number]
    layout = tuple(_in_numbers(step, sizes) for step in value.layout)
    plain = _numbers(value.shape, sizes) if layout else ()
    about = param.name, param.dtype, shape
    return Parameter(*about, is_constant=False, plain=plain, layout=layout)


def _numbers(shape: Sequence[tir.Expr], sizes: Sizes) -> tuple[int, ...]:
    return tuple(evaluate_size(dim, sizes) for dim in shape)


def _in_numbers(step: LayoutStep, sizes: Sizes) -> LayoutStep:
    if isinstance(step, Fuse):
        return Fuse(step.dim, _numbers([tir.as_index(dim) for dim in step.sizes], sizes))
    return step


def _values(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Small numbers; integers that may be places of elements are zero, which always exists."""
    if dtype.is_bool:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype.is_float:
        return rng.uniform(-1, 1, shape).astype(dtype.numpy)
    narrow = dtype.size_bytes < 4
    return rng.integers(0, 6 if narrow else 1, shape).astype(dtype.numpy)
