"""Lowered programs run by several threads in turn, in real arenas, with every race reported.

Each thread is a generator that stops at barriers. Between two barriers the threads run one after
another, so values are right only if the program needs no more meetings than it has. Whatever the
values are, an element that one thread writes and another one touches between two barriers is a
race.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tilewright.lower import Lowered
from tilewright.tensor import ir as tir
from tilewright.tensor.evaluate import Evaluator, Memory
from tilewright.tensor.regions import outputs


class RaceError(AssertionError):
    """Two threads touch one element without meeting in between."""


def run_threaded(
    lowered: Lowered,
    arrays: Mapping[str, np.ndarray],
    sizes: Mapping[tir.Var, int],
    threads: int,
) -> dict[str, np.ndarray]:
    """Results by name, flat; `RaceError` if threads get into each other's way."""
    world = _World(lowered, arrays, sizes)
    running = [_Thread(world, number, threads) for number in range(threads)]
    pending = {thread: thread.run(lowered.func.body) for thread in running}
    with np.errstate(all="ignore"):
        while pending:
            world.touched.clear()
            done = [t for t, steps in pending.items() if next(steps, "done") == "done"]
            assert not done or len(done) == len(pending), "only some threads reach a barrier"
            for thread in done:
                del pending[thread]
    return {p.name: world.memory[p].data for p in outputs(lowered.func)}


class _World:
    """What all threads share."""

    def __init__(
        self, lowered: Lowered, arrays: Mapping[str, np.ndarray], sizes: Mapping[tir.Var, int]
    ) -> None:
        self.lowered = lowered
        self.sizes = {var: np.int64(value) for var, value in sizes.items()}
        self.memory: dict[tir.Buffer, Memory] = {}
        self.touched: dict[tuple[str, int], set[tuple[int, bool]]] = {}
        constants = self.evaluator()
        for param in lowered.func.params:
            count = int(constants.value(param.shape[0]))
            given = arrays.get(param.name)
            data = np.zeros(count, param.dtype.numpy) if given is None else given.reshape(-1).copy()
            assert data.shape == (count,)
            self.memory[param] = Memory(data, None)
        self.shared_arena = np.zeros(int(constants.value(lowered.shared_bytes)), np.uint8)
        self.local_bytes = int(constants.value(lowered.local_bytes))

    def evaluator(self) -> Evaluator:
        made = Evaluator(self.lowered.func)
        made.values.update(self.sizes)
        return made


class _Thread(Evaluator):
    def __init__(self, world: _World, number: int, count: int) -> None:
        super().__init__(world.lowered.func)
        self.world, self.number, self.count = world, number, count
        self.values.update(world.sizes)
        self.memory = dict(world.memory)
        self.arena = np.zeros(world.local_bytes, np.uint8)
        self.stores: dict[int, Any] = {}  # by identity: where each statement stores to
        self.places: dict[tir.Buffer, tuple[str, int]] = {
            p: (p.name, 0) for p in world.lowered.func.params
        }

    def _call(self, expr: tir.Call) -> Any:
        if expr.name == "thread":
            return lambda: np.int64(self.number)
        if expr.name == "threads":
            return lambda: np.int64(self.count)
        return super()._call(expr)

    def thunk(self, expr: tir.Expr) -> Any:
        return self._call(expr) if type(expr) is tir.Call else super().thunk(expr)

    def position(self, access: tir.Load | tir.Store) -> Any:
        find, buffer = super().position(access), access.buffer
        writes, size = type(access) is tir.Store, buffer.dtype.size_bytes

        def noted() -> Any:
            where = find()
            arena, offset = self.places.get(buffer, ("", 0))
            if arena:
                for index in np.atleast_1d(where[0]):
                    self.note(arena, offset + int(index) * size, writes=writes)
            return where

        return noted

    def note(self, arena: str, address: int, *, writes: bool) -> None:
        users = self.world.touched.setdefault((arena, address), set())
        users.add((self.number, writes))
        if len({number for number, _ in users}) > 1 and any(wrote for _, wrote in users):
            raise RaceError(f"{arena} at byte {address}: {sorted(users)}")

    def run(self, stmt: tir.Stmt) -> Iterator[str]:
        match stmt:
            case tir.Barrier():
                yield "meet"
            case tir.Store():
                find = self.stores.get(id(stmt))
                if find is None:
                    find = self.stores[id(stmt)] = self.position(stmt)
                value = self.value(stmt.value)
                self.memory[stmt.buffer].data[find()] = value
            case tir.Seq():
                for part in stmt.body:
                    yield from self.run(part)
            case tir.If():
                side = stmt.then if self.value(stmt.cond) else stmt.otherwise
                if side is not None:
                    yield from self.run(side)
            case tir.For():
                extent = int(self.value(stmt.extent))
                first, last = 0, extent
                if stmt.kind is tir.LoopKind.PARALLEL:
                    first = extent * self.number // self.count
                    last = extent * (self.number + 1) // self.count
                for i in range(first, last):
                    self.values[stmt.var] = np.int64(i)
                    yield from self.run(stmt.body)
            case tir.Alloc():
                self.place(stmt.buffer)
                yield from self.run(stmt.body)

    def place(self, buffer: tir.Buffer) -> None:
        """In an arena if it has an offset there, else in memory of its own."""
        lowered = self.world.lowered
        count = int(self.value(buffer.shape[0]))
        if buffer in lowered.shared or buffer in lowered.local:
            shared = buffer in lowered.shared
            arena = self.world.shared_arena if shared else self.arena
            offset = int(self.value((lowered.shared if shared else lowered.local)[buffer]))
            end = offset + count * buffer.dtype.size_bytes
            assert offset % 64 == 0, f"{buffer.name} is not aligned"
            assert end <= arena.size, f"{buffer.name} leaves its arena"
            data = arena[offset:end].view(buffer.dtype.numpy)
            if shared:
                self.places[buffer] = ("shared arena", offset)
        else:
            assert buffer not in self.world.memory
            data = np.zeros(count, buffer.dtype.numpy)
        self.memory[buffer] = Memory(data, None)
