"""Random tensor programs for Hypothesis: small, well formed, and of every structure that matters.

A program has one to three blocks (more by request), each elementwise, a broadcast, a reduction, a
stencil, a product or a movement of earlier results, so that chains, diamonds and several outputs
appear. Extents are small and include one and primes; some are symbolic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

from tilewright.dtypes import DType, f32, i32
from tilewright.tensor import ir as tir
from tilewright.tensor import printer
from tilewright.tensor.build import (
    Tensor,
    compute,
    func,
    max_over,
    min_over,
    placeholder,
    reduce_axis,
    select,
    size,
    sum_over,
)
from tilewright.testing.inputs import random_inputs

__all__ = ["EXTENTS", "Program", "programs"]

EXTENTS = (1, 2, 3, 4, 5, 6, 7, 8, 11, 12)
MAX_POINTS = 700  # iterations of one block: the interpreter visits them one by one

Dim = int | tir.Var
Draw = Callable[[st.SearchStrategy[int]], int]


@dataclass(frozen=True)
class Program:
    """A random program, with a value for each of its symbolic sizes."""

    func: tir.Func
    sizes: dict[tir.Var, int]

    def draw_inputs(self, data: st.DataObject) -> dict[str, np.ndarray]:
        """Arrays for the inputs; only their seed is drawn, so that failures shrink fast."""
        return self.inputs(data.draw(st.integers(0, 2**16), label="seed of the inputs"))

    def inputs(self, seed: int) -> dict[str, np.ndarray]:
        """Arrays for the inputs, made from a seed."""
        return random_inputs(self.func, np.random.default_rng(seed), self.sizes)

    def __repr__(self) -> str:
        values = ", ".join(f"{var.name} = {value}" for var, value in self.sizes.items())
        return printer.print_func(self.func) + (f"\n# {values}" if values else "")


@st.composite
def programs(
    draw: st.DrawFn,
    *,
    max_blocks: int = 3,
    dtypes: Sequence[DType] = (i32, f32),
    symbolic: bool = True,
) -> Program:
    """Random programs of one to `max_blocks` blocks."""
    maker = _Maker(draw, draw(st.sampled_from(dtypes)), symbolic=symbolic)
    for number in range(draw(st.integers(1, max_blocks))):
        maker.block(f"T{number}")
    return maker.program()


@dataclass
class _Maker:
    """Grows a program; `tensors` are the results so far, and the inputs."""

    draw: st.DrawFn
    dtype: DType
    symbolic: bool = field(kw_only=True)
    tensors: list[Tensor] = field(default_factory=list)
    inputs: list[Tensor] = field(default_factory=list)
    used: set[int] = field(default_factory=set)
    sizes: dict[tir.Var, int] = field(default_factory=dict)

    def program(self) -> Program:
        """The program whose outputs are all results that nothing else reads."""
        results = [t for t in self.tensors if t.nest is not None and id(t) not in self.used]
        known = {d for t in (*self.inputs, *results) for d in t.shape}
        sizes = {var: value for var, value in self.sizes.items() if var in known}
        return Program(func("program", self.inputs, results), sizes)

    def choose(self, options: Sequence[str]) -> str:
        return self.draw(st.sampled_from(options))

    def value_of(self, dim: tir.Expr) -> int:
        number = tir.int_value(dim)
        return self.sizes[dim] if number is None else number  # type: ignore[index]

    def points(self, dims: Sequence[tir.Expr]) -> int:
        return int(np.prod([self.value_of(d) for d in dims], dtype=np.int64))

    def extent(self) -> tir.Expr:
        """A new dimension: a number, or (rarely) a symbolic size with a value."""
        value = self.draw(st.sampled_from(EXTENTS))
        if self.symbolic and self.draw(st.integers(0, 5)) == 5:
            var = size(f"n{len(self.sizes)}")
            self.sizes[var] = value
            return var
        return tir.Const(value)

    def input(self, shape: Sequence[tir.Expr]) -> Tensor:
        tensor = placeholder(f"X{len(self.inputs)}", shape, self.dtype)
        self.inputs.append(tensor)
        self.tensors.append(tensor)
        return tensor

    def source(self) -> Tensor:
        """An earlier tensor, or a new input."""
        choice = self.draw(st.integers(0, len(self.tensors)))
        if choice < len(self.tensors):
            return self.read(self.tensors[-1 - choice])
        rank = self.draw(st.integers(1, 3))
        shape = [self.extent() for _ in range(rank)]
        while self.points(shape) > MAX_POINTS:
            shape.pop()
        return self.read(self.input(shape))

    def read(self, tensor: Tensor) -> Tensor:
        self.used.add(id(tensor))
        return tensor

    def partner(self, shape: Sequence[tir.Expr]) -> Tensor:
        """A tensor of this shape: an earlier one if there is one (which makes diamonds)."""
        fitting = [t for t in self.tensors if list(t.shape) == list(shape)]
        choice = self.draw(st.integers(0, len(fitting)))
        return self.read(fitting[choice] if choice < len(fitting) else self.input(shape))

    def block(self, name: str) -> None:
        """Add one block of a random kind."""
        source = self.source()
        rank = len(source.shape)
        kinds = ["elementwise", "binary", "masked"]
        kinds += ["reduction", "broadcast"] if rank >= 1 else []
        kinds += ["transpose"] if rank >= 2 else []
        kinds += ["stencil"] if any((tir.int_value(d) or 0) >= 2 for d in source.shape) else []
        kinds += ["product"] if rank == 2 else []
        result = getattr(self, f"_{self.choose(kinds)}")(name, source)
        self.tensors.append(result)

    def literal(self) -> tir.Expr:
        return tir.const(self.draw(st.integers(-3, 3)), self.dtype)

    def _elementwise(self, name: str, x: Tensor) -> Tensor:
        kind, c = self.choose(["scale", "shift", "clip", "square", "negate"]), self.literal()
        rules: dict[str, Callable[[tir.Expr], tir.Expr]] = {
            "scale": lambda v: v * c,
            "shift": lambda v: v + c,
            "clip": lambda v: tir.maximum(v, c),
            "square": lambda v: v * v,
            "negate": lambda v: -v,
        }
        return compute(name, x.shape, lambda *i: rules[kind](x[i]))

    def _binary(self, name: str, x: Tensor) -> Tensor:
        y = self.partner(x.shape)
        kind = self.choose(["add", "sub", "mul", "min"])
        rules: dict[str, Callable[[tir.Expr, tir.Expr], tir.Expr]] = {
            "add": lambda a, b: a + b,
            "sub": lambda a, b: a - b,
            "mul": lambda a, b: a * b,
            "min": tir.minimum,
        }
        return compute(name, x.shape, lambda *i: rules[kind](x[i], y[i]))

    def _masked(self, name: str, x: Tensor) -> Tensor:
        """A select on the first index; 0 elsewhere."""
        if not x.shape:
            return self._elementwise(name, x)
        period = self.draw(st.integers(2, 4))
        return compute(name, x.shape, lambda *i: select((i[0] % period).eq(0), x[i], 0))

    def _broadcast(self, name: str, x: Tensor) -> Tensor:
        y = self.partner(x.shape[-1:])
        return compute(name, x.shape, lambda *i: x[i] + y[i[-1]])

    def _transpose(self, name: str, x: Tensor) -> Tensor:
        order = self.draw(st.permutations(range(len(x.shape))))
        back = [order.index(d) for d in range(len(order))]
        shape = [x.shape[d] for d in order]
        return compute(name, shape, lambda *i: x[tuple(i[d] for d in back)])

    def _stencil(self, name: str, x: Tensor) -> Tensor:
        long = [d for d, e in enumerate(x.shape) if (tir.int_value(e) or 0) >= 2]
        at = self.draw(st.sampled_from(long))
        shape = [e - 1 if d == at else e for d, e in enumerate(x.shape)]
        return compute(
            name,
            shape,
            lambda *i: x[i] + x[tuple(v + 1 if d == at else v for d, v in enumerate(i))],
        )

    def _reduction(self, name: str, x: Tensor) -> Tensor:
        at = self.draw(st.integers(0, len(x.shape) - 1))
        k = reduce_axis(x.shape[at], "k")
        fold = {"sum": sum_over, "max": max_over, "min": min_over}[
            self.choose(["sum", "max", "min"])
        ]
        shape = [e for d, e in enumerate(x.shape) if d != at]
        return compute(name, shape, lambda *i: fold(x[(*i[:at], k, *i[at:])], k))

    def _product(self, name: str, x: Tensor) -> Tensor:
        columns = self.extent()
        if self.points((*x.shape, columns)) > MAX_POINTS:
            columns = tir.Const(2)
        y = self.partner((x.shape[1], columns))
        k = reduce_axis(x.shape[1], "k")
        return compute(name, (x.shape[0], columns), lambda i, j: sum_over(x[i, k] * y[k, j], k))
