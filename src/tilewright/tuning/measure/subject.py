"""A kernel that is run many times: one native call runs it several times in a row, and times each.

Its program has a step for each run. What a run takes is what lies between the beginnings of two
steps: on several threads that includes waiting for the slowest. Memory of results is given like
that of data, so that no run waits for new pages, and all subjects of a job write to the same place.

Constants lie in so many copies that as many bytes pass through the caches between two uses of one
as the job asks for (`caches.py`); runs take them in turns.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Final

import numpy as np

from tilewright.dtypes import DType, u8
from tilewright.graph.ir import Array
from tilewright.llvm.link import link
from tilewright.pipeline import Compiled, code_of
from tilewright.runtime import program as rt
from tilewright.runtime.arrays import empty
from tilewright.runtime.executable import Executable
from tilewright.runtime.image import Image
from tilewright.runtime.sizes import constant
from tilewright.tuning.measure.setup import Setup

__all__ = ["Room", "Subject"]

MOST_COPIES: Final = 2048
"""Of constants; those of a few bytes each are never all driven out."""
POISON: Final = 0xFF
"""Bytes of results before a kernel runs: NaN, -1, and whatever else no kernel means."""
LINE: Final = 64


class Room:
    """Memory for constants, kept from one candidate to the next."""

    def __init__(self) -> None:
        self._memory: Array = empty((0,), u8)

    def of(self, size_bytes: int) -> Array:
        """So many bytes, which are those that it gave before."""
        if self._memory.size < size_bytes:
            self._memory = empty((0,), u8)  # given back first: both may be too much
            self._memory = empty((size_bytes,), u8)
        return self._memory[:size_bytes]


@dataclass(frozen=True)
class _Constant:
    """A packed constant: the number of its parameter, and its place among the others."""

    number: int
    array: Array
    offset: int


class Subject:
    """A kernel with its arrays; `calls` runs in a row."""

    def __init__(
        self,
        kernel: Compiled,
        setup: Setup,
        arrays: Mapping[str, Array],
        room: Room,
        calls: int = 1,
    ) -> None:
        self.kernel, self.setup, self.calls = kernel, setup, calls
        self._arrays, self._sources = arrays, kernel.interface.sources
        self._params = [setup.params[own] for own, *_ in self._sources]  # those that its code has
        constants, own_bytes = self._packed()
        self._copies = 1
        if constants and setup.cold_bytes:
            self._copies = min(MOST_COPIES, 1 + ceil(setup.cold_bytes / max(1, own_bytes)))
        shapes = {c.number: c.array.shape for c in constants}
        image = link([kernel.code])
        program = self._program(image.symbols, shapes)
        code = Image.from_bytes(image.code)
        self._executable = Executable(program, code, threads=setup.threads)
        self._feeds = self._fed(constants, own_bytes, room.of(own_bytes * self._copies))
        self._turn = 0

    @property
    def results(self) -> dict[str, Array]:
        """The memory of its results; the next run of any subject of the job writes there."""
        pairs = zip(self._params, self.kernel.interface.params, strict=True)
        return {p.name: self._arrays[p.name] for p, spec in pairs if spec.is_output}

    def computed(self) -> dict[str, Array]:
        """Results of runs that found none before them."""
        updated = {spec.name for spec in self.kernel.interface.params if spec.is_updated}
        for name, array in self.results.items():
            array.reshape(-1).view(np.uint8)[...] = 0 if name in updated else POISON
        self.turn_ns()
        return self.results

    def turn_ns(self) -> float:
        """Nanoseconds of a run, the median of a row of them."""
        feeds = self._feeds[self._turn % len(self._feeds)]
        self._turn += 1
        begin = time.perf_counter_ns()
        answer = self._executable._try_profile(feeds)  # noqa: SLF001  (`run` makes new arrays)
        end = time.perf_counter_ns()
        if answer is None:
            raise SystemError("arrays that were made for a kernel do not fit it")
        rows = np.frombuffer(answer[1], np.int64).reshape(-1, 3)
        if self.calls > 1:
            return float(np.median(np.diff(rows[:, 1])))
        # The first thread's time is all of it, unless there are others that it does not wait for.
        return float(rows[0, 2] - rows[0, 1]) if self.setup.threads == 1 else float(end - begin)

    def _packed(self) -> tuple[list[_Constant], int]:
        """Constants as the kernel reads them, and how many bytes one copy of all takes."""
        packings = self.kernel.interface.packings
        found: list[_Constant] = []
        size_bytes = 0
        for number, sources in enumerate(self._sources):
            param, *guests = (self.setup.params[source] for source in sources)
            if param.is_constant:
                array, packing = self._arrays[param.name], packings.get(number)
                if packing is not None:
                    array = packing.pack(array, *(self._arrays[g.name] for g in guests))
                found.append(_Constant(number, array, size_bytes))
                size_bytes += -(-array.nbytes // LINE) * LINE
        return found, size_bytes

    def _program(
        self, symbols: Mapping[str, int], shapes: Mapping[int, tuple[int, ...]]
    ) -> rt.Program:
        interface = self.kernel.interface
        buffers: list[rt.Buffer] = []
        ports: list[rt.Port] = []

        def port(name: str, dtype: DType, shape: tuple[int, ...]) -> int:
            size_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.size_bytes
            ports.append(rt.Port(name, dtype, shape, shape, len(buffers)))
            buffers.append(rt.Buffer(name, rt.Place.INPUT, constant(size_bytes)))
            return len(buffers) - 1

        places: dict[tuple[int, int], int] = {}  # of a parameter in a call
        for number, param in enumerate(self._params):
            shape = shapes.get(number, param.shape)
            for call in range(self._rows(number, shapes)):
                places[number, call] = port(_name(param.name, call), param.dtype, shape)
        count = range(len(self._params))
        steps = [
            rt.Call(0, tuple(places.get((k, call), places[k, 0]) for k in count), order, label=name)
            for order, name in ((interface.size_order, interface.name),)
            for call in range(self.calls)
        ]
        sizes = tuple(rt.Size(f"s{k}", constant(n)) for k, n in enumerate(self.setup.sizes))
        code = (code_of(interface, symbols),)
        return rt.Program(
            interface.name, tuple(ports), (), sizes, tuple(buffers), code, tuple(steps)
        )

    def _rows(self, number: int, constants: Mapping[int, object]) -> int:
        """How many arrays of a parameter a row of runs has."""
        return self.calls if number in constants and self._copies > 1 else 1

    def _fed(
        self, constants: Sequence[_Constant], own_bytes: int, memory: Array
    ) -> list[dict[str, Any]]:
        """Arrays for rows of runs that follow each other; constants move on to the next copy."""
        for copy in range(self._copies):
            for own in constants:
                _part(memory, copy * own_bytes, own)[...] = own.array
        names = {own.number: self._params[own.number].name for own in constants}
        shared = {_name(p.name, 0): self._arrays[p.name] for p in self._params if not p.is_constant}
        rows = 1 if self._copies == 1 else ceil(self._copies / self.calls)
        fed: list[dict[str, Any]] = []
        for row in range(rows):
            feeds = dict(shared)
            for call in range(self.calls if self._copies > 1 else 1):
                start = (row * self.calls + call) % self._copies * own_bytes
                for own in constants:
                    feeds[_name(names[own.number], call)] = _part(memory, start, own)
            fed.append(feeds)
        return fed


def _name(param: str, call: int) -> str:
    return f"{param}.{call}"


def _part(memory: Array, start: int, own: _Constant) -> Array:
    """Where a constant lies in a copy that starts here."""
    begin = start + own.offset
    part = memory[begin : begin + own.array.nbytes]
    return part.view(own.array.dtype).reshape(own.array.shape)
