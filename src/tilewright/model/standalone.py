"""One kernel of a model alone: built, run and timed outside of the model that it belongs to.

It is a program of one step, and runs the way that models do: what it takes here is what it takes
there, but for what lies in the caches. Its arrays are those that its program names, made up where
nobody has them: activations in the layout in which the model stores them (with zeros in borders),
constants plain, and packed as the schedule wants them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from tilewright.dtypes import dtype_of
from tilewright.graph.ir import Array
from tilewright.graph.sizes import evaluate_size, variables
from tilewright.llvm.link import link
from tilewright.model.kernels import KernelTask, compile_task
from tilewright.model.made_up import parameters_of, sizes_in
from tilewright.pipeline import Compiled, code_of
from tilewright.runtime import program as rt
from tilewright.runtime.arrays import empty
from tilewright.runtime.executable import Executable
from tilewright.runtime.image import Image
from tilewright.runtime.sizes import constant
from tilewright.schedule.source import DRAFT, ScheduleSource
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.packing import Packing
from tilewright.tensor.regions import sizes as program_sizes

__all__ = ["USUAL_SIZE", "Standalone", "sizes_of", "standalone"]

USUAL_SIZE: Final = 64
"""A symbolic size of which nobody says anything; kernels are planned for as much."""

Sizes = Mapping[tir.Var, int]


@dataclass(frozen=True)
class Standalone:
    """A kernel that can be called; `sizes` are those of the graph, by which shapes are known."""

    task: KernelTask
    compiled: Compiled
    executable: Executable
    sizes: Sizes

    @property
    def program_sizes(self) -> dict[tir.Var, int]:
        """The sizes of the tensor program, as the interpreter takes them."""
        return sizes_in(self.task, self.sizes)

    def arrays(self, seed: int = 0) -> dict[str, Array]:
        """Arrays for all inputs of the program, made up."""
        rng, params = np.random.default_rng(seed), parameters_of(self.task, self.sizes)
        written = self.compiled.interface.outputs
        return {p.name: p.made_up(rng) for k, p in enumerate(params) if k not in written}

    def run(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """The results of the program by name, stored as the model stores them."""
        results = self.executable.run(self._packed(arrays))
        ports = self.executable.program.outputs
        return {port.name: array for port, array in zip(ports, results, strict=True)}

    def times_ns(self, arrays: Mapping[str, Array], runs: int = 10) -> list[int]:
        """How long the kernel took in each of some runs, calls and packing not included."""
        feeds = self._packed(arrays)
        self.executable.run(feeds)
        profiles = (self.executable.profile(feeds) for _ in range(runs))
        return [sum(event.time_ns for event in profile.events) for profile in profiles]

    def _packed(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """The arrays as the kernel reads them, on addresses that models have."""
        interface, names = self.compiled.interface, [p.name for p in self.task.program.params]
        found: dict[str, Array] = {}
        for k, numbers in enumerate(interface.sources):
            name, *guests = (names[number] for number in numbers)
            if name in arrays:
                packing, array = interface.packings.get(k), arrays[name]
                packed = packing.pack(array, *(arrays[g] for g in guests)) if packing else array
                found[name] = _aligned(packed)
        return found


def standalone(
    task: KernelTask,
    target: Target,
    sizes: Mapping[str, int] | None = None,
    threads: int = 1,
    schedules: ScheduleSource = DRAFT,
) -> Standalone:
    """Build one kernel; `sizes` gives symbolic sizes of the graph by name."""
    target.require_runs_on(Target.host())
    compiled = compile_task(task, target, schedules)
    known = sizes_of(task, sizes or {})
    image = link([compiled.code])
    program = _program(task, compiled, image.symbols, known)
    executable = Executable(program, Image.from_bytes(image.code), threads=threads)
    return Standalone(task, compiled, executable, known)


def sizes_of(task: KernelTask, given: Mapping[str, int]) -> dict[tir.Var, int]:
    """All sizes of the graph that a kernel depends on: those given by name, others as usual."""
    shapes = [dim for value in task.params for dim in value.shape]
    return {var: given.get(var.name, USUAL_SIZE) for var in variables([*task.sizes, *shapes])}


def _program(
    task: KernelTask, compiled: Compiled, symbols: Mapping[str, int], sizes: Sizes
) -> rt.Program:
    """A program that calls the kernel once, for these sizes."""
    interface, own = compiled.interface, program_sizes(task.program)
    values = [evaluate_size(size, sizes) for size in task.sizes]
    known = dict(zip(own, values, strict=True))
    buffers: list[rt.Buffer] = []
    ports: dict[rt.Place, list[rt.Port]] = {rt.Place.INPUT: [], rt.Place.OUTPUT: []}
    params = [task.program.params[first] for first, *_ in interface.sources]
    for number, (param, spec) in enumerate(zip(params, interface.params, strict=True)):
        shape = _stored_shape(_shape(param, known), interface.packings.get(number))
        place = rt.Place.OUTPUT if spec.is_output else rt.Place.INPUT
        size_bytes = int(np.prod(shape, dtype=np.int64)) * param.dtype.size_bytes
        buffers.append(rt.Buffer(param.name, place, constant(size_bytes)))
        ports[place].append(rt.Port(param.name, param.dtype, shape, shape, number))
    return rt.Program(
        interface.name,
        tuple(ports[rt.Place.INPUT]),
        tuple(ports[rt.Place.OUTPUT]),
        tuple(rt.Size(v.name, constant(n)) for v, n in zip(own, values, strict=True)),
        tuple(buffers),
        (code_of(interface, symbols),),
        (rt.Call(0, tuple(range(len(buffers))), interface.size_order, label=interface.name),),
    )


def _shape(param: tir.Buffer, sizes: Sizes) -> tuple[int, ...]:
    return tuple(evaluate_size(dim, sizes) for dim in param.shape)


def _stored_shape(shape: tuple[int, ...], packing: Packing | None) -> tuple[int, ...]:
    for step in () if packing is None else packing.steps:
        shape = tuple(int(dim) for dim in step.shape(shape))
    return shape


def _aligned(array: Array) -> Array:
    """A copy on an address that the memory of models has."""
    copy = empty(array.shape, dtype_of(array.dtype))
    copy[...] = array
    return copy
