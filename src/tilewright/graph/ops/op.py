"""What an operator of the core set must say: types, meaning, and tensor program.

An operator is a frozen value: its attributes are its fields, equal operators compare equal. `infer`
gives the types of its results, `evaluate` its meaning in NumPy (the definition, also used to fold
constants), `lower` the stages of a tensor program that compute it.
"""

from __future__ import annotations

import abc
import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import ClassVar

from tilewright.dtypes import DType
from tilewright.graph.ir import Array, Shape, TensorType
from tilewright.shown import shown
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor
from tilewright.tensor.printer import print_node

__all__ = ["Limit", "Op", "Role", "SizeOf", "computed_as"]

SizeOf = Callable[[tir.Expr], int]
"""The value of a dimension for the sizes of this run."""

Limit = tuple[tir.Expr, tir.Expr, Shape]
"""(a, b, shape): a must not exceed b where a tensor of this shape has elements."""


def computed_as(dtype: DType) -> DType:
    """The type in which values of a type are computed: narrow ones are storage only."""
    return dtype.computed


class Role(enum.Enum):
    """How an operator may share a kernel with its neighbours."""

    MAP = "map"  # each element from the elements at its own place
    MOVE = "move"  # each element from elements at other places
    REDUCE = "reduce"  # a fold of one tensor
    ANCHOR = "anchor"  # heavy work; maps of its result run in registers
    VIEW = "view"  # nothing to do: the same memory with another shape
    WEIGHTS = "weights"  # of constants: done before a model runs
    ALONE = "alone"  # a kernel of its own


@dataclass(frozen=True)
class Op(abc.ABC):
    """An operator of the core set."""

    role: ClassVar[Role] = Role.ALONE
    folds: ClassVar[bool] = True
    """Whether it may be computed while a model is compiled, if its inputs are known."""
    linear: ClassVar[bool] = False
    """Whether it costs about as much as reading its inputs, though it is a kernel of its own."""

    @property
    def name(self) -> str:
        """Its name in listings."""
        return type(self).__name__.lower()

    @abc.abstractmethod
    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        """The types of the results; a `GraphError` if the inputs do not fit."""

    @abc.abstractmethod
    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        """The results in NumPy."""

    def slices(self, arrays: Sequence[Array], size_of: SizeOf) -> Iterator[Array]:
        """The only result along its first dimension, in as many pieces as its making allows."""
        (made,) = self.evaluate(arrays, size_of)
        yield made

    def unforeseen(self, arrays: Sequence[Array]) -> int:
        """Elements that `evaluate` makes of these arrays, where the types of results hide it."""
        return 0

    @abc.abstractmethod
    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        """The results as stages of a tensor program; `names` are for their buffers."""

    def assumptions(
        self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]
    ) -> Iterator[tuple[tir.Expr, tir.Expr]]:
        """Dimensions that must be equal when the model runs, because the lowering relies on it."""
        yield from ()

    def meetings(
        self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]
    ) -> Iterator[tuple[tir.Expr, tir.Expr]]:
        """More of these, which would be broadcast if one of them were known to be one."""
        yield from ()

    def limits(
        self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]
    ) -> Iterator[Limit]:
        """What must hold when the model runs, so that the lowering stays inside of tensors."""
        yield from ()

    def attributes(self) -> dict[str, object]:
        """What a listing shows beside the name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __str__(self) -> str:
        listed = ", ".join(f"{key}={_text(value)}" for key, value in self.attributes().items())
        return f"{self.name}({listed})" if listed else self.name


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, str):  # it may be a name of the model
        return shown(value)
    if isinstance(value, tir.Expr):
        return print_node(value)
    return getattr(value, "name", None) or str(value)
