"""Control flow: `If` and `Loop`, whose branches and bodies are graphs.

What a graph inside reads from outside is an input of the operator and of that graph; constants are
constants of both. Size variables of the outside may stand in shapes inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from tilewright.graph.interpret import interpret
from tilewright.graph.ir import Array, Graph, TensorType
from tilewright.graph.ops.op import Op, SizeOf
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor

__all__ = ["If", "Loop"]


@dataclass(frozen=True)
class If(Op):
    """`then` or `otherwise` of the inputs behind the first, which is a condition (a single bool).

    Both graphs have the same inputs and as many outputs. A dimension in which their outputs differ
    is a size variable of its own in `results`; only a run tells it.
    """

    folds = False  # how much work it is, nothing tells before it is done

    then: Graph
    otherwise: Graph
    results: tuple[TensorType, ...]

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        return self.results

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        condition, *given = arrays
        taken = self.then if bool(condition) else self.otherwise
        feeds = {v.name: a for v, a in zip(taken.inputs, given, strict=True)}
        return interpret(taken, feeds, outer=size_of)

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> NoReturn:
        raise NotImplementedError("a branch is steps of a program, not a kernel")

    def attributes(self) -> dict[str, object]:
        return {
            "then": f"{len(self.then.nodes)} nodes",
            "else": f"{len(self.otherwise.nodes)} nodes",
        }


@dataclass(frozen=True)
class Loop(Op):
    """`body` again and again, at most as often as the first input (i64) says.

    Inputs: limit, condition (bool; no iteration if false), carried values, captured values.
    `body`: (carried…, captured…) → (condition if `tested`, carried…, collected…). Results: the
    carried values after the last iteration, then the collected ones of all iterations, stacked
    along a new first dimension. `counter` is a size variable inside of the body: 1 in the first
    iteration, then 2, …. A loop that is not `tested` runs to its limit. A dimension of a carried
    value that iterations change is a size variable of its own, in the body and in `results`.
    So is one of a collected value that only the body knows: it is the same in every iteration, and
    without any it is as `empty` says, which has the sizes of each collected value (or nothing, for
    zeros).
    """

    folds = False  # likewise; it may never end

    body: Graph
    counter: tir.Var
    carried: int
    tested: bool
    results: tuple[TensorType, ...]
    empty: tuple[tuple[int, ...], ...] = ()

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        return self.results

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        limit, condition, *given = arrays
        carried, captured = list(given[: self.carried]), given[self.carried :]
        collected: list[list[Array]] = [[] for _ in self.results[self.carried :]]
        steps, goes_on = 0, bool(condition)
        while goes_on and steps < int(limit):
            steps += 1
            pairs = zip(self.body.inputs, (*carried, *captured), strict=True)
            feeds = {value.name: array for value, array in pairs}
            found = interpret(self.body, feeds, outer=self._sizes_at(steps, size_of))
            if self.tested:
                goes_on, found = bool(found[0]), found[1:]
            carried = found[: self.carried]
            for parts, part in zip(collected, found[self.carried :], strict=True):
                parts.append(part)
        every = zip(collected, self.results[self.carried :], self.without_any(), strict=True)
        return [*carried, *(_stack(*each, size_of) for each in every)]

    def without_any(self) -> list[tuple[int, ...]]:
        """Sizes of the collected values that only an iteration tells, if there is none."""
        kinds = self.results[self.carried :]
        return list(self.empty) or [(0,) * (kind.rank - 1) for kind in kinds]

    def _sizes_at(self, step: int, size_of: SizeOf) -> SizeOf:
        return lambda dim: step if dim is self.counter else size_of(dim)

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> NoReturn:
        raise NotImplementedError("a loop is steps of a program, not a kernel")

    def attributes(self) -> dict[str, object]:
        shown: dict[str, object] = {
            "body": f"{len(self.body.nodes)} nodes",
            "carried": self.carried,
        }
        return shown | {"counter": self.counter, "tested": self.tested}


def _stack(
    parts: list[Array], kind: TensorType, without: tuple[int, ...], size_of: SizeOf
) -> Array:
    if parts:
        return np.stack(parts)
    dims = (_size_or(n, d, size_of) for d, n in zip(kind.shape[1:], without, strict=True))
    return np.zeros((0, *dims), kind.dtype.numpy)


def _size_or(number: int, dim: tir.Expr, size_of: SizeOf) -> int:
    """A dimension, or the number if only an iteration tells it, and there was none."""
    try:
        return size_of(dim)
    except KeyError:
        return number
