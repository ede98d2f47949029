"""What a program means, at every level: slow, obvious, one element at a time, in NumPy's numbers.

Integers wrap, division by zero gives 0, `min` and `max` hand NaN on, `f16` and `bf16` round when
they are stored. Reading an element that nothing has written, or any access outside of a buffer, is
an error and never a value. Parallel loops run in order, or shuffled by a seed so that races show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from tilewright.dtypes import dtype_of
from tilewright.errors import Code, ProgramError
from tilewright.tensor import ir as tir
from tilewright.tensor.evaluate import Evaluator, Memory
from tilewright.tensor.regions import outputs, sizes
from tilewright.tensor.visit import children

__all__ = ["interpret"]

V200 = Code("V200", "the array for `{param}` does not fit")
V203 = Code("V203", "iterator `{iterator}` of block `{block}` leaves its domain")
V204 = Code("V204", "the output `{param}` is not written everywhere")
V205 = Code("V205", "the size `{size}` is not known")

Arrays = Mapping[str, Any] | Sequence[Any]


def interpret(
    func: tir.Func,
    arrays: Arrays,
    sizes_given: Mapping[tir.Var, int] | None = None,
    *,
    seed: int | None = None,
) -> dict[str, np.ndarray]:
    """Run `func` and return the arrays of the parameters that it writes, by name.

    `arrays` holds values by parameter name, or in the order of the parameters; outputs may be left
    out, and those that are given keep their content where nothing is written. Inputs stay as they
    are. Symbolic sizes come from the arrays' shapes, others from `sizes_given`.
    """
    given = _by_param(func, arrays)
    machine = _Machine(func, seed)
    values = _sizes_of(given) | dict(sizes_given or {})
    machine.values.update({var: np.int64(value) for var, value in values.items()})
    with np.errstate(all="ignore"):
        for param in func.params:
            machine.memory[param] = _parameter(machine, param, given.get(param))
        machine.run(func.body)
    return {p.name: _result(func, p, machine.memory[p], given.get(p)) for p in outputs(func)}


def _by_param(func: tir.Func, arrays: Arrays) -> dict[tir.Buffer, np.ndarray]:
    if not isinstance(arrays, Mapping):
        if len(arrays) > len(func.params):
            facts = {"param": func.name, "expected": len(func.params), "found": len(arrays)}
            raise ProgramError(V200, facts, hint="give at most one array for each parameter")
        return {p: np.asarray(a) for p, a in zip(func.params, arrays, strict=False)}
    known = {p.name: p for p in func.params}
    unknown = [name for name in arrays if name not in known]
    if unknown:
        facts = {"param": unknown[0], "expected": ", ".join(known)}
        raise ProgramError(V200, facts, hint="name the arrays like the parameters")
    return {known[name]: np.asarray(a) for name, a in arrays.items()}


def _sizes_of(given: Mapping[tir.Buffer, np.ndarray]) -> dict[tir.Var, int]:
    found: dict[tir.Var, int] = {}
    for param, array in given.items():
        if array.ndim == len(param.shape):
            for dim, length in zip(param.shape, array.shape, strict=True):
                if isinstance(dim, tir.Var):
                    found.setdefault(dim, length)
    return found


def _parameter(machine: _Machine, param: tir.Buffer, array: np.ndarray | None) -> Memory:
    """The memory of a parameter: a copy of its array, or undefined elements."""
    for var in sizes(tir.Func("", (param,), tir.Seq(()))):
        if var not in machine.values:
            hint = "give the array that has it as a dimension, or `sizes_given`"
            raise ProgramError(V205, {"size": var.name}, hint=hint, program=machine.func)
    shape = machine.shape(param)
    if array is None:
        if param not in outputs(machine.func):
            facts = {"param": param.name, "expected": "an array", "found": "none"}
            raise ProgramError(V200, facts, hint="give an array for every input")
        return Memory.undefined(shape, param.dtype)
    if len(shape) == 1 and array.ndim != 1:
        array = array.reshape(-1)  # lowered programs see flat buffers
    found = (array.shape, array.dtype)
    if found != (shape, param.dtype.numpy):
        facts = {
            "param": param.name,
            "expected": f"{param.dtype.name}{list(shape)}",
            "found": f"{_type_name(array)}{list(array.shape)}",
        }
        hint = "pass an array of this type and shape: nothing is converted"
        raise ProgramError(V200, facts, program=machine.func, marks={"parameter": param}, hint=hint)
    return Memory(array.copy(), None)


def _type_name(array: np.ndarray) -> str:
    try:
        return dtype_of(array.dtype).name
    except TypeError:  # no element type of ours
        return str(array.dtype)


def _result(
    func: tir.Func, param: tir.Buffer, memory: Memory, array: np.ndarray | None
) -> np.ndarray:
    if not memory.is_defined():
        missing = memory.first_undefined()
        hint = "give an array for it if the rest is meant to stay as it is"
        facts = {"param": param.name, "first element without value": missing}
        raise ProgramError(V204, facts, program=func, marks={"output": param}, hint=hint)
    return memory.data if array is None else memory.data.reshape(array.shape)


class _Machine(Evaluator):
    """Runs statements; expressions are evaluated by the base class."""

    def __init__(self, func: tir.Func, seed: int | None) -> None:
        super().__init__(func)
        self._stores: dict[int, tuple[Any, Any, bool]] = {}
        self.shuffle = None if seed is None else np.random.default_rng(seed)

    def shape(self, buffer: tir.Buffer) -> tuple[int, ...]:
        return tuple(int(self.value(d)) for d in buffer.shape)

    def run(self, stmt: tir.Stmt) -> None:
        _RUN[type(stmt)](self, stmt)

    def loop(self, loop: tir.For) -> None:
        order: Any = range(int(self.value(loop.extent)))
        if self.shuffle is not None and loop.kind is tir.LoopKind.PARALLEL:
            order = self.shuffle.permutation(len(order))
        for number in order:
            self.values[loop.var] = np.int64(number)
            self.run(loop.body)

    def block(self, block: tir.Block) -> None:
        if not self.value(block.predicate):
            return
        at = [self.value(b) for b in block.bindings]
        for it, position in zip(block.iters, at, strict=True):
            self.values[it.var] = position
            if not 0 <= position < self.value(it.extent):
                facts = {"iterator": it.var.name, "found": int(position)}
                facts |= {"expected": f"0 <= value < {self.value(it.extent)}", "block": block.name}
                hint = "let the loops stay inside of the domain, or guard the block with `where(…)`"
                raise ProgramError(V203, facts, program=self.func, marks={"here": block}, hint=hint)
        reduced = zip(block.iters, at, strict=True)
        first = all(p == 0 for it, p in reduced if it.kind is tir.IterKind.REDUCE)
        if block.init is not None and first:
            self.run(block.init)
        self.run(block.body)

    def store(self, store: tir.Store) -> None:
        memory = self.memory[store.buffer]
        position, evaluate, is_prefix = self._store_parts(store)
        where, value = position(), evaluate()
        if is_prefix:
            value = value[: len(where[0])]
        memory.data[where] = value
        if memory.defined is not None:
            memory.defined[where] = True

    def _store_parts(self, store: tir.Store) -> tuple[Any, Any, bool]:
        parts = self._stores.get(id(store))
        if parts is None:
            is_prefix = any(type(i) is tir.Prefix for i in store.indices)
            parts = (self.position(store), self.thunk(store.value), is_prefix)
            self._stores[id(store)] = parts
        return parts

    def alloc(self, alloc: tir.Alloc) -> None:
        self.memory[alloc.buffer] = Memory.undefined(self.shape(alloc.buffer), alloc.buffer.dtype)
        self.run(alloc.body)
        del self.memory[alloc.buffer]

    def condition(self, stmt: tir.If) -> None:
        if self.value(stmt.cond):
            self.run(stmt.then)
        elif stmt.otherwise is not None:
            self.run(stmt.otherwise)

    def nothing(self, stmt: tir.Stmt) -> None:
        """Threads that meet, and wishes, change no value."""

    def each(self, stmt: tir.Stmt) -> None:
        for part in children(stmt):
            self.run(part)  # type: ignore[arg-type]  # children of `Seq` are statements


_RUN: Final[dict[type[tir.Stmt], Any]] = {
    tir.For: _Machine.loop,
    tir.Block: _Machine.block,
    tir.Store: _Machine.store,
    tir.Alloc: _Machine.alloc,
    tir.If: _Machine.condition,
    tir.Seq: _Machine.each,
    tir.Barrier: _Machine.nothing,
    tir.Prefetch: _Machine.nothing,
}
