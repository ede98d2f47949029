"""What a loop carries from one iteration to the next: memory that is written again.

Sizes that iterations change are known when one begins, like its number. The memory of what is
carried has sizes of its own, those of the next iteration: it is placed anew at the end of each,
when all that the iteration has made is still where it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.graph.ir import TensorType, Value
from tilewright.model.steps import Assign, Enter, Plan
from tilewright.tensor import ir as tir

__all__ = ["States"]


@dataclass(frozen=True)
class States:
    """The memory of each carried value of a loop.

    `sizes` has, for the sizes that iterations change, those of the memory, and `segment` is the one
    in which these are known.
    """

    memory: Sequence[Value]
    sizes: dict[tir.Var, tir.Var]
    segment: int
    label: str

    @classmethod
    def of(cls, plan: Plan, values: Sequence[Value], starts: Sequence[Value], label: str) -> States:
        """Before a loop: the memory of `values`, inputs of its body, has what it is given."""
        dims = (d for value in values for d in value.shape)
        changing = (d for d in dims if isinstance(d, tir.Var) and plan.is_unknown(d))
        sizes = {dim: tir.Var(f"{dim.name}_held") for dim in changing}
        segment = plan.new_segment(*sizes.values()) if sizes else 0
        states = cls([_held(plan, value, sizes) for value in values], sizes, segment, label)
        states._become(plan, starts)
        return states

    def enter(self, plan: Plan, counter: tir.Var) -> int:
        """Begin an iteration; the segment in which its sizes are known."""
        inside = plan.new_segment(counter, *self.sizes)
        plan.steps += [Assign(dim, held) for dim, held in self.sizes.items()]
        plan.steps.append(Enter(inside))
        return inside

    def next(self, plan: Plan, sources: Sequence[Value]) -> None:
        """End an iteration, which gives these."""
        fresh = [self.apart(plan, source) for source in sources]
        self._become(plan, fresh)

    def apart(self, plan: Plan, value: Value) -> Value:
        """A value, or a copy of it if its memory is about to change."""
        if plan.root(value) not in self.memory:
            return value
        moved = Value(f"{value.name}_old", value.type)
        plan.copy(value, moved, self.label)
        return moved

    def end(self, plan: Plan, results: Sequence[Value]) -> None:
        """Behind the loop: its results are what is carried, or copies if that was moved about."""
        told: dict[tir.Var, tir.Expr] = {}
        for held, result in zip(self.memory, results, strict=True):
            pairs = zip(result.shape, held.shape, strict=True)
            told.update((d, own) for d, own in pairs if isinstance(d, tir.Var) and d is not own)
        if told:
            plan.steps += [Assign(dim, own) for dim, own in told.items()]
            plan.steps.append(Enter(plan.new_segment(*told)))
        for held, result in zip(self.memory, results, strict=True):
            if held.shape == result.shape:
                plan.roots[result] = held
            else:
                plan.copy(_alias(plan, held, result.type), result, self.label)

    def _become(self, plan: Plan, sources: Sequence[Value]) -> None:
        """Copy to the memory, which gets the sizes of what is copied."""
        own = set(self.sizes.values())
        for held, source in zip(self.memory, sources, strict=True):
            pairs = zip(held.shape, source.shape, strict=True)
            plan.steps += [Assign(d, n) for d, n in pairs if isinstance(d, tir.Var) and d in own]
        if own:
            plan.steps.append(Enter(self.segment))
        for held, source in zip(self.memory, sources, strict=True):
            is_moved = any(dim in own for dim in held.shape if isinstance(dim, tir.Var))
            copied = _alias(plan, source, held.type) if is_moved else source
            plan.copy(copied, held, self.label)


def _held(plan: Plan, value: Value, sizes: dict[tir.Var, tir.Var]) -> Value:
    """The memory of an input of a body: itself, unless iterations change its sizes."""
    dims = tuple(sizes.get(d, d) if isinstance(d, tir.Var) else d for d in value.shape)
    if dims == value.shape:
        return value
    held = Value(f"{value.name}_held", TensorType(value.dtype, dims))
    plan.roots[value] = held
    return held


def _alias(plan: Plan, value: Value, kind: TensorType) -> Value:
    """A value under other names of its sizes."""
    alias = Value(f"{value.name}_again", kind)
    plan.stand_for(alias, value)
    return alias
