"""Tensor intrinsics: what an instruction means and how it is done, both in tensor IR.

A family is a function of a few whole numbers; `f32.gemm(6,16,64)` names one member. Its *meaning*
is one store in a nest of axes, which `match.py` compares with a block; its *implementation* is any
statement on the same operands, which takes the block's place. Neither knows the program it will
be used in: operands are buffers of their own until then.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass

from tilewright.dtypes import DType
from tilewright.tensor import ir as tir
from tilewright.tensor.build import combine, make_block
from tilewright.tensor.same import always_the_same

__all__ = [
    "FAMILIES",
    "Axis",
    "Description",
    "Family",
    "Operand",
    "TensorIntrinsic",
    "fold_axis",
    "intrinsic",
    "lookup",
    "operand",
    "repeat",
    "spatial_axis",
    "update",
    "vector_load",
    "vector_store",
    "vector_sum",
]


@dataclass(frozen=True, slots=True, eq=False)
class Operand:
    """An array that the instruction works on.

    The last `dense` dimensions must lie one after another in memory.
    """

    buffer: tir.Buffer
    dense: int = 0

    def __getitem__(self, indices: object) -> tir.Load:
        return self.buffer[indices]


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """A loop of the meaning."""

    var: tir.Var
    extent: int
    kind: tir.IterKind


@dataclass(frozen=True, slots=True, eq=False)
class Meaning:
    """`store` for every point of the axes."""

    axes: tuple[Axis, ...]
    store: tir.Store


@dataclass(frozen=True, slots=True, eq=False)
class Description:
    """What the function of a family returns."""

    operands: tuple[Operand, ...]
    meaning: Meaning
    implementation: tir.Stmt


@dataclass(frozen=True, slots=True, eq=False)
class TensorIntrinsic:
    """One instruction: a member of a family."""

    name: str
    doc: str
    requires: frozenset[str]
    operands: tuple[Operand, ...]
    meaning: Meaning
    implementation: tir.Stmt

    def meaning_func(self) -> tir.Func:
        """The meaning as a program of its own, for the interpreter."""
        axes = self.meaning.axes
        loops = tuple(tir.Var(f"{axis.var.name}_loop") for axis in axes)
        iters = tuple(tir.Iter(axis.var, tir.Const(axis.extent), axis.kind) for axis in axes)
        body: tir.Stmt = make_block("meaning", iters, loops, self.meaning.store)
        for loop, it in zip(reversed(loops), reversed(iters), strict=True):
            body = tir.For(loop, it.extent, body)
        return tir.Func("meaning", tuple(o.buffer for o in self.operands), body)

    def implementation_func(self) -> tir.Func:
        """The implementation as a program of its own, to compare with the meaning."""
        params = tuple(o.buffer for o in self.operands)
        body = make_block("implementation", (), (), self.implementation)
        body = body.with_fields(notes=(("intrinsic", self.name),))
        return tir.Func("implementation", params, body)


@dataclass(frozen=True, slots=True)
class Family:
    """A registered function that describes instructions."""

    name: str
    describe: Callable[..., Description]
    parameters: tuple[str, ...]
    requires: frozenset[str]
    doc: str


FAMILIES: dict[str, Family] = {}
"""All families by name."""

Describe = Callable[..., Description]


def intrinsic(name: str, requires: frozenset[str] = frozenset()) -> Callable[[Describe], Describe]:
    """Register a family of instructions; `requires` names features of the instruction set."""

    def register(describe: Describe) -> Describe:
        parameters = tuple(inspect.signature(describe).parameters)
        doc = inspect.cleandoc(describe.__doc__ or "")
        FAMILIES[name] = Family(name, describe, parameters, requires, doc)
        return describe

    return register


_NAME = re.compile(r"([\w.]+)(?:\(([\d,\s]*)\))?$")


@always_the_same
def lookup(name: str) -> TensorIntrinsic | None:
    """The instruction with this name, for example `f32.gemm(6,16,64)`; None if there is none."""
    found = _NAME.match(name.strip())
    family = FAMILIES.get(found.group(1)) if found else None
    if found is None or family is None:
        return None
    numbers = [int(n) for n in (found.group(2) or "").split(",") if n.strip()]
    if len(numbers) != len(family.parameters) or min(numbers, default=1) < 1:
        return None
    made = family.describe(*numbers)
    return TensorIntrinsic(
        name, family.doc, family.requires, made.operands, made.meaning, made.implementation
    )


def operand(name: str, shape: tuple[int, ...], dtype: DType, *, dense: int = 0) -> Operand:
    """An operand of constant shape."""
    return Operand(tir.Buffer(name, tuple(map(tir.Const, shape)), dtype), dense)


def spatial_axis(name: str, extent: int) -> Axis:
    """An axis along which the results lie."""
    return Axis(tir.Var(name), extent, tir.IterKind.SPATIAL)


def fold_axis(name: str, extent: int) -> Axis:
    """An axis that is summed over."""
    return Axis(tir.Var(name), extent, tir.IterKind.REDUCE)


def update(
    target: tir.Load, value: tir.Expr, *axes: Axis, fold: tir.Fold | None = tir.Fold.ADD
) -> Meaning:
    """`target = fold(target, value)` over the axes; plain assignment if `fold` is None."""
    new = value if fold is None else combine(fold, target, value)
    return Meaning(axes, tir.Store(target.buffer, target.indices, new))


def repeat(body: Callable[..., tir.Stmt], **loops: int | tuple[int, tir.LoopKind]) -> tir.Stmt:
    """Loops of an implementation, outermost first: `repeat(body, x=(6, UNROLLED), y=16)`."""
    variables = [tir.Var(name) for name in loops]
    result = body(*variables)
    for var, loop in zip(reversed(variables), reversed(loops.values()), strict=True):
        extent, kind = loop if isinstance(loop, tuple) else (loop, tir.LoopKind.SERIAL)
        result = tir.For(var, tir.Const(extent), result, kind)
    return result


def vector_load(source: Operand, *indices: tir.Lift, lanes: int) -> tir.Load:
    """`lanes` elements that follow each other along the last dimension."""
    *rest, last = (tir.as_index(i) for i in indices)
    where = last if lanes == 1 else tir.Ramp(last, tir.Const(1), lanes)
    return tir.Load(source.buffer, (*rest, where))


def vector_sum(value: tir.Expr) -> tir.Expr:
    """All lanes added; a scalar is its own sum."""
    return value if value.dtype.lanes == 1 else tir.Reduce(tir.Fold.ADD, value)


def vector_store(target: Operand, *indices: tir.Lift, value: tir.Expr) -> tir.Store:
    """Put all lanes of `value` after each other along the last dimension."""
    *rest, last = (tir.as_index(i) for i in indices)
    ramp = tir.Ramp(last, tir.Const(1), value.dtype.lanes)
    return tir.Store(target.buffer, (*rest, ramp), value)
