"""Instructions that multiply and add, as the contraction recipe sees them.

An instruction of a GEMM kind adds `steps` products to each of `rows` × `columns` sums. Which of its
axes are which follows from the operands that they index, as the iterators of a contraction get
their roles; that it computes what a block does is asked of `match.unified`. No name is compared,
neither of an operator nor of an instruction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.dtypes import DType, i32
from tilewright.intrin.intrinsic import TensorIntrinsic, lookup
from tilewright.intrin.match import Mismatch, unified
from tilewright.target import Target
from tilewright.target.rates import InstructionRate
from tilewright.tensor import ir as tir
from tilewright.tensor.same import always_the_same
from tilewright.tensor.visit import find, free_vars

__all__ = ["ProductInstruction", "integer_gain", "integer_pairs", "product_instruction"]
__all__ += ["product_instructions"]


@dataclass(frozen=True, slots=True)
class ProductInstruction:
    """Sums of one instruction, and how many products each grows by."""

    name: str
    rows: int
    columns: int
    steps: int


def product_instructions(
    store: tir.Stmt, left: tir.Load, right: tir.Load, target: Target
) -> tuple[ProductInstruction, ...]:
    """Instructions of a target that compute what the body of a contraction does."""
    names = (rate.name for rate in target.machine.instructions)
    found = (_fitting(name, store, left, right) for name in names)
    return tuple(one for one in found if one is not None)


@always_the_same
def product_instruction(name: str) -> ProductInstruction | None:
    """The instruction of a GEMM kind with this name; None if there is none."""
    chosen = lookup(name)
    return None if chosen is None else _as_product(chosen)


def integer_pairs(target: Target) -> frozenset[tuple[DType, DType]]:
    """Types of integers that instructions of a target multiply into sums of i32."""
    return frozenset((x, w) for _, (x, w) in _integer_instructions(target))


def integer_gain(target: Target) -> float:
    """How many times as many products of small integers a core makes as of f32."""
    rates = [rate.per_cycle * rate.products for rate, _ in _integer_instructions(target)]
    return max(rates, default=0.0) / (target.machine.fma_per_cycle * target.lanes(4))


def _integer_instructions(
    target: Target,
) -> Iterator[tuple[InstructionRate, tuple[DType, DType]]]:
    """Those that are described, with the types of their operands."""
    for rate in target.machine.instructions:
        chosen = lookup(rate.name)
        if chosen is not None and len(chosen.operands) == 3:
            x, w, sums = (operand.buffer.dtype for operand in chosen.operands)
            if sums == i32:
                yield rate, (x, w)


def _fitting(
    name: str, store: tir.Stmt, left: tir.Load, right: tir.Load
) -> ProductInstruction | None:
    chosen, found = lookup(name), product_instruction(name)
    if chosen is None or found is None or type(store) is not tir.Store:
        return None
    first, second, _ = chosen.operands
    wanted = {(first.buffer, left.buffer), (second.buffer, right.buffer)}
    for accesses in unified(chosen.meaning.store, store):
        if not isinstance(accesses, Mismatch):
            pairs = {(operand, buffer) for operand, _, buffer, _ in accesses}
            if wanted <= pairs:
                return found
    return None


def _as_product(chosen: TensorIntrinsic) -> ProductInstruction | None:
    """Extents by role: a row indexes the first operand and the sums, a column the second one."""
    if len(chosen.operands) != 3:
        return None
    left, right, sums = (operand.buffer for operand in chosen.operands)
    store = chosen.meaning.store
    moved = {load.buffer: _moving(load) for load in find(store.value, tir.Load)}
    if store.buffer is not sums or set(moved) != {left, right, sums}:
        return None
    extents = {"rows": 1, "columns": 1, "steps": 1}
    roles = {
        (True, False, True): "rows",
        (False, True, True): "columns",
        (True, True, False): "steps",
    }
    for axis in chosen.meaning.axes:
        role = roles.get(
            (axis.var in moved[left], axis.var in moved[right], axis.var in moved[sums])
        )
        if role is None:
            return None
        extents[role] *= axis.extent
    return ProductInstruction(chosen.name, **extents)


def _moving(load: tir.Load) -> frozenset[tir.Var]:
    return frozenset().union(*(free_vars(index) for index in load.indices))
