"""A graph becomes a program: its kernels linked into one image, weights packed, steps in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.abi import ALIGNMENT
from tilewright.graph.groups import Group, group_nodes
from tilewright.graph.ir import Array, Graph, Node, Value
from tilewright.graph.ops.host import Host
from tilewright.graph.sizes import count
from tilewright.llvm.link import link
from tilewright.model.kernels import Compiled, KernelTask, compile_tasks, task_of
from tilewright.model.memory import Storage, Touch, lifetimes, storage_of, waits
from tilewright.model.sizing import SizeTable
from tilewright.runtime import program as rt
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.printer import print_node

__all__ = ["Assembled", "HostCode", "assemble"]

SMALL_WORK = 16384
"""Elements (and multiply-adds / 8) below which a kernel is not worth a second thread."""


@dataclass(frozen=True)
class HostCode:
    """A Python function of the program, as it is stored."""

    kind: str
    payload: bytes
    title: str
    function: Callable[..., Sequence[Array]]


@dataclass(frozen=True)
class Assembled:
    """All parts of an executable model."""

    program: rt.Program
    code: bytes
    weights: Array
    functions: tuple[HostCode, ...]
    tasks: tuple[KernelTask, ...]


@dataclass
class _Step:
    """A step before buffers have numbers."""

    group: Group
    task: KernelTask | None
    outputs: tuple[Value, ...]


def assemble(
    graph: Graph,
    target: Target,
    threads: int,
    workers: int = 2,
    progress: Callable[[int, int], None] | None = None,
) -> Assembled:
    """Compile all kernels of a graph and put them together."""
    consumers = graph.consumers()
    steps: list[_Step] = []
    for group in group_nodes(graph):
        outputs = group.outputs(graph, consumers) or tuple(group.nodes[-1].outputs)
        task = None
        if not isinstance(group.nodes[0].op, Host):
            task = task_of(group, outputs, graph.constants, _threads_for(group, threads))
        else:
            outputs = group.nodes[0].outputs
        steps.append(_Step(group, task, outputs))
    tasks = [s.task for s in steps if s.task is not None]
    unique = len({t.key for t in tasks})
    done: list[KernelTask] = []

    def report(task: KernelTask) -> None:
        done.append(task)
        if progress is not None:
            progress(len(done), unique)

    compiled = compile_tasks(tasks, target, workers, report)
    return _Assembler(graph, steps, compiled).run()


def _threads_for(group: Group, threads: int) -> int:
    from tilewright.graph.ops import Contract

    work = 0
    for node in group.nodes:
        work += max(count(v.shape) for v in (*node.inputs, *node.outputs)) if node.inputs else 1
        if isinstance(node.op, Contract):
            work += count(node.inputs[0].shape) * count(node.outputs[0].shape[-1:]) // 8
    return threads if work >= SMALL_WORK else 1


class _Assembler:
    def __init__(self, graph: Graph, steps: list[_Step], compiled: dict[str, Compiled]) -> None:
        self.graph, self.steps, self.compiled = graph, steps, compiled
        self.sizes = SizeTable()
        self.storage: Storage = storage_of(graph)
        self.buffers: list[rt.Buffer] = []
        self.numbers: dict[object, int] = {}
        self.weights: list[Array] = []
        self.weight_bytes = 0
        self.functions: list[HostCode] = []
        self.segments = 1

    def run(self) -> Assembled:
        image = link([c.code for c in self.compiled.values()])
        kernels = {key: k for k, key in enumerate(self.compiled)}
        codes = tuple(self._kernel(c, image.symbols) for c in self.compiled.values())
        inputs = tuple(self._input(value) for value in self.graph.inputs)
        touches = [self._touch(step) for step in self.steps]
        waiting = waits(touches)
        lives = lifetimes(touches, waiting)
        made: list[rt.Step] = []
        places = self._step_numbers()
        outputs = self._output_roots()
        for step, meets in zip(self.steps, waiting, strict=True):
            for value in step.outputs:
                self._place(value, lives, places, outputs)
            if step.task is None:
                made += self._host(step)
            else:
                made.append(self._call(step.task, kernels, meets, step.group))
        ports = tuple(
            self._port(name, value)
            for name, value in zip(self.graph.output_names, self.graph.outputs, strict=True)
        )
        program = rt.Program(
            self.graph.name,
            inputs,
            ports,
            tuple(self.sizes.sizes),
            tuple(self.buffers),
            codes,
            tuple(made),
            self.segments,
        )
        return Assembled(
            program,
            image.code,
            self._weights(),
            tuple(self.functions),
            tuple(s.task for s in self.steps if s.task is not None),
        )

    def _step_numbers(self) -> list[int]:
        """The number of each step in the program: a host step may be followed by another one."""
        numbers, here = [], 0
        for step in self.steps:
            numbers.append(here)
            here += 2 if self._defines(step) else 1
        numbers.append(here)
        return numbers

    def _defines(self, step: _Step) -> list[tuple[tir.Var, int, int]]:
        """Sizes that only the results of a host function tell."""
        if step.task is not None:
            return []
        known = {v for i in self.graph.inputs for d in i.shape for v in _vars(d)}
        found: dict[tir.Var, tuple[tir.Var, int, int]] = {}
        for k, value in enumerate(step.outputs):
            for axis, dim in enumerate(value.shape):
                if isinstance(dim, tir.Var) and dim not in known:
                    found.setdefault(dim, (dim, k, axis))
        return list(found.values())

    def _touch(self, step: _Step) -> Touch:
        constants = self.graph.constants
        reads = tuple(
            self.storage.root(v) for v in step.group.inputs() if v not in constants
        )
        writes: tuple[object, ...] = tuple(self.storage.root(v) for v in step.outputs)
        if step.task is None:
            return Touch(reads, (*writes, "host"))
        compiled = self.compiled[step.task.key]
        if compiled.shared_bytes != 0:
            writes = (*writes, "scratch")
        return Touch(reads, writes, compiled.parallel)

    def _output_roots(self) -> set[Value]:
        """Values that are computed in the array of an output."""
        producers = self.graph.producers()
        roots = [self.storage.root(v) for v in self.graph.outputs]
        return {
            r for r in roots if r in producers and not isinstance(producers[r].op, Host)
        }

    def _place(
        self,
        value: Value,
        lives: dict[object, tuple[int, int]],
        places: list[int],
        outputs: set[Value],
    ) -> int:
        """The buffer of a value that a step writes."""
        if value in self.numbers:
            return self.numbers[value]
        node = self._producer(value)
        size = self._bytes(value)
        segment = self.sizes.segment(value.shape) if not isinstance(node.op, Host) else 0
        first, last = lives[value]
        place = rt.Place.OUTPUT if value in outputs else rt.Place.ARENA
        if isinstance(node.op, Host):
            place = rt.Place.HOST
            for dim in value.shape:
                for var in _vars(dim):
                    if not self.sizes.is_bound(var):
                        self.sizes.bind(var, self.segments)
            size, segment = self._bytes(value), self.sizes.segment(value.shape)
        return self._add(
            value,
            rt.Buffer(value.name, place, size, segment, places[first], places[last + 1] - 1),
        )

    def _producer(self, value: Value) -> Node:
        return self._producers[value]

    @property
    def _producers(self) -> dict[Value, Node]:
        if not hasattr(self, "_known_producers"):
            self._known_producers = self.graph.producers()
        return self._known_producers

    def _bytes(self, value: Value) -> rt.SizeExpr:
        unbound = [v for d in value.shape for v in _vars(d) if not self.sizes.is_bound(v)]
        return () if unbound else self.sizes.bytes_of(value)

    def _add(self, key: object, buffer: rt.Buffer) -> int:
        self.numbers[key] = len(self.buffers)
        self.buffers.append(buffer)
        return self.numbers[key]

    def _input(self, value: Value) -> rt.Port:
        for dim in value.shape:
            if isinstance(dim, tir.Var):
                self.sizes.bind(dim)
        size = self.sizes.bytes_of(value)
        self._add(value, rt.Buffer(value.name, rt.Place.INPUT, size))
        return self._port(value.name, value)

    def _port(self, name: str, value: Value) -> rt.Port:
        root = self.storage.root(value)
        if root not in self.numbers:
            assert root in self.graph.constants
            self._constant(root, self.graph.constants[root], "")
        shown = tuple(
            n if (n := tir.int_value(d)) is not None else print_node(d) for d in value.shape
        )
        return rt.Port(name, value.dtype, self.sizes.dims(value.shape), shown, self.numbers[root])

    def _kernel(self, compiled: Compiled, symbols: dict[str, int]) -> rt.KernelCode:
        known = compiled.shared_bytes is not None and compiled.local_bytes is not None
        return rt.KernelCode(
            compiled.symbol,
            symbols[compiled.symbol],
            compiled.parallel,
            compiled.shared_bytes or 0 if known else 0,
            compiled.local_bytes or 0 if known else 0,
            -1 if known else symbols[compiled.scratch_symbol],
        )

    def _call(
        self, task: KernelTask, kernels: dict[str, int], meets: bool, group: Group  # noqa: FBT001
    ) -> rt.Call:
        compiled = self.compiled[task.key]
        buffers = [
            self._param(compiled, position, value) for position, value in enumerate(task.params)
        ]
        numbers = [self.sizes.number(task.sizes[k]) for k in compiled.size_order]
        labels = dict.fromkeys(node.label for node in group.nodes if node.label)
        return rt.Call(
            kernels[task.key], tuple(buffers), tuple(numbers), meets, " ".join(labels)
        )

    def _param(self, compiled: Compiled, position: int, value: Value) -> int:
        root = self.storage.root(value)
        if value in self.graph.constants:
            packing = compiled.packings.get(position)
            form = "" if packing is None else f"{compiled.symbol}:{position}"
            array = self.graph.constants[value]
            return self._constant(value, array if packing is None else packing.pack(array), form)
        if root in self.graph.constants:
            return self._constant(root, self.graph.constants[root], "")
        return self.numbers[root]

    def _constant(self, value: Value, array: Array, form: str) -> int:
        key = (value, form)
        if key in self.numbers:
            return self.numbers[key]
        data = np.ascontiguousarray(array)
        offset = self.weight_bytes
        self.weights.append(data)
        self.weight_bytes += -(-data.nbytes // ALIGNMENT) * ALIGNMENT
        constant = rt.SizeOp.CONST
        number = self._add(
            key,
            rt.Buffer(
                value.name,
                rt.Place.WEIGHTS,
                ((constant, data.nbytes),),
                offset=((constant, offset),),
            ),
        )
        if not form:
            self.numbers.setdefault(value, number)
        return number

    def _host(self, step: _Step) -> list[rt.Step]:
        op = step.group.nodes[0].op
        assert isinstance(op, Host)
        self.functions.append(HostCode(op.kind, op.payload, op.title, op.function))
        inputs = []
        for value in step.group.nodes[0].inputs:
            root = self.storage.root(value)
            if root in self.graph.constants:
                self._constant(root, self.graph.constants[root], "")
            inputs.append(
                rt.Operand(self.numbers[root], value.dtype, self.sizes.dims(value.shape))
            )
        defined = self._defines(step)
        defines = tuple((self.sizes.bind(var, self.segments), k, axis) for var, k, axis in defined)
        outputs = tuple(self.numbers[v] for v in step.outputs)
        label = step.group.nodes[0].label
        made: list[rt.Step] = [
            rt.Host(len(self.functions) - 1, tuple(inputs), outputs, defines, label)
        ]
        if defined:
            made.append(rt.Enter(self.segments))
            self.segments += 1
        return made

    def _weights(self) -> Array:
        blob = np.zeros(self.weight_bytes, np.uint8)
        offset = 0
        for data in self.weights:
            blob[offset : offset + data.nbytes] = data.reshape(-1).view(np.uint8)
            offset += -(-data.nbytes // ALIGNMENT) * ALIGNMENT
        return blob


def _vars(dim: tir.Expr) -> list[tir.Var]:
    from tilewright.graph.sizes import variables

    return list(variables([dim]))
