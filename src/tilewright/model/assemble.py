"""A graph becomes a program, in three stages: its steps, its kernels, and all of it put together.

Kernels are linked into one image, weights packed, memory planned, steps numbered.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from tilewright.graph.groups import Group
from tilewright.graph.guards import Guard
from tilewright.graph.ir import Array, Graph, Meeting, Value
from tilewright.graph.ops.host import Host
from tilewright.graph.sizes import dims_equal, product, variables
from tilewright.llvm.link import link
from tilewright.model import steps as planned
from tilewright.model.compile_kernels import Count, Kernels, compile_kernels
from tilewright.model.kernel_plan import plan_kernels
from tilewright.model.kernel_store import KernelStore
from tilewright.model.kernels import KernelTask
from tilewright.model.memory import Touch, lifetimes, stretched, waits
from tilewright.model.sharing import Pair, overwritten
from tilewright.model.sizing import SizeTable
from tilewright.model.weights import Weights
from tilewright.model.work import flops_of, moved_bytes
from tilewright.pipeline import code_of
from tilewright.runtime import program as rt
from tilewright.runtime.expansion import Expansion
from tilewright.runtime.sizes import constant
from tilewright.schedule.source import DRAFT, ScheduleSource
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.packing import Packing
from tilewright.tensor.printer import print_node

__all__ = ["Assembled", "HostCode", "assemble", "link_program"]


@dataclass(frozen=True)
class HostCode:
    """A Python function of the program, as it is stored."""

    kind: str
    payload: bytes
    title: str
    function: Callable[..., Sequence[Array]]


@dataclass(frozen=True)
class Assembled:
    """All parts of an executable model; `constants` are what its weights are made of.

    With an `expansion`, they are what is stored, and the program has those that it makes of them.
    """

    program: rt.Program
    code: bytes
    constants: Weights
    functions: tuple[HostCode, ...]
    tasks: tuple[KernelTask, ...]
    expansion: Expansion | None = None

    @functools.cached_property
    def weights(self) -> Array:
        """The constants as they are stored, packed when they are asked for."""
        return self.constants.blob()

    def __str__(self) -> str:
        from tilewright.model.listing import program_text

        return program_text(self)


def assemble(
    graph: Graph,
    target: Target,
    threads: int,
    store: KernelStore | None = None,
    progress: Count | None = None,
    *,
    in_place: bool = True,
    equal: Collection[Meeting] = (),
    guards: Sequence[Guard] = (),
    schedules: ScheduleSource = DRAFT,
    groups: Sequence[Group] | None = None,
) -> Assembled:
    """Plan a graph, compile its kernels and link them: three stages in one."""
    planned = plan_kernels(graph, threads, groups)
    kernels = compile_kernels(planned, target, store, progress, schedules)
    return link_program(kernels, in_place=in_place, equal=equal, guards=guards)


def link_program(
    kernels: Kernels,
    *,
    in_place: bool = True,
    equal: Collection[Meeting] = (),
    guards: Sequence[Guard] = (),
) -> Assembled:
    """One image of all kernels, and the program that calls them.

    `in_place`: results are written over inputs that are not needed any more, where that is allowed.
    `equal`: sizes that are never broadcast where they meet. `guards`: what the graph relies on.
    """
    checks = frozenset(equal), guards
    return _Assembler(kernels, checks, in_place=in_place).run()


class _Assembler:
    """Numbers for sizes, buffers, kernels and steps."""

    def __init__(
        self,
        kernels: Kernels,
        checks: tuple[frozenset[Meeting], Sequence[Guard]],
        *,
        in_place: bool,
    ) -> None:
        made, compiled = kernels.planned, kernels.compiled
        self.graph, self.plan, self.tasks, self.compiled = (
            made.graph,
            made.plan,
            made.tasks,
            compiled,
        )
        self.in_place, (self.equal, self.guards) = in_place, checks
        self.interfaces = {key: kernel.interface for key, kernel in self.compiled.items()}
        self.kernels = {key: k for k, key in enumerate(self.compiled)}
        self.sizes = SizeTable(self.plan.segments)
        self.buffers: list[rt.Buffer] = []
        self.numbers: dict[object, int] = {}
        self.weights = Weights()
        self.functions: list[HostCode] = []
        self.made_by_host = {
            value
            for step in self.plan.steps
            if isinstance(step, planned.HostStep)
            for value in step.node.outputs
        }
        self.results = {self.plan.root(value) for value in self.graph.outputs}
        self.wholes = {self.plan.whole(part)[0] for part in self.plan.parts}

    def run(self) -> Assembled:
        image = link([c.code for c in self.compiled.values()])
        codes = tuple(code_of(i, image.symbols) for i in self.interfaces.values())
        inputs = tuple(self._input(value) for value in self.graph.inputs)
        for var in self.plan.segments:
            self.sizes.bind(var)
        for var, meaning in self.plan.named.items():
            self.sizes.define(var, meaning)
        self._require_assumptions()
        steps = [s for s in self.plan.steps if not isinstance(s, planned.Label)]
        places = self._label_places()
        touches = [self._touch(step) for step in steps]
        ranges = [(places[a], places[b] - 1) for a, b in self.plan.loops]
        wishes = {k: self._wishes(step) for k, step in enumerate(steps)} if self.in_place else {}
        shared = overwritten(touches, ranges, wishes)
        touches = [touch.renamed(shared) for touch in touches]
        waiting = waits(touches)
        lives = stretched(lifetimes(touches, waiting), ranges)
        self._place_all(lives)
        self._place_shared(shared)
        made = [
            self._step(step, places, wait=wait) for step, wait in zip(steps, waiting, strict=True)
        ]
        outputs = tuple(
            self._port(name, value)
            for name, value in zip(self.graph.output_names, self.graph.outputs, strict=True)
        )
        program = rt.Program(
            self.graph.name,
            inputs,
            outputs,
            tuple(self.sizes.sizes),
            tuple(self.buffers),
            codes,
            tuple(made),
            self.plan.segment_count,
        )
        every = tuple(self.tasks.values())
        return Assembled(program, image.code, self.weights, tuple(self.functions), every)

    def _require_assumptions(self) -> None:
        """What kernels rely on is checked before they run; guards are, before anything else."""
        for guard in self.guards:
            self.sizes.require_guard(guard)
        for node, segment in self.plan.nodes:
            types = [v.type for v in node.inputs], [v.type for v in node.outputs]
            for a, b in node.op.assumptions(*types):
                self.sizes.require_equal(a, b, segment)
            for a, b in node.op.meetings(*types):
                or_one = frozenset((a, b)) not in self.equal
                self.sizes.require_equal(a, b, segment, or_one=or_one)
            for a, b, shape in node.op.limits(*types):
                self.sizes.require_at_most(a, b, shape, segment)
        for own, first, segment in self.plan.alike:
            self.sizes.require_alike(own, first, segment)

    # ---- steps

    def _label_places(self) -> dict[planned.Label, int]:
        places: dict[planned.Label, int] = {}
        here = 0
        for step in self.plan.steps:
            if isinstance(step, planned.Label):
                places[step] = here
            else:
                here += 1
        return places

    def _touch(self, step: planned.PlanStep) -> Touch:
        match step:
            case planned.KernelStep():
                kernel = self.interfaces[self.tasks[step].key]
                reads = self._storages(step.group.inputs())
                writes = self._storages(step.outputs)
                if kernel.shared_bytes != 0:
                    writes = (*writes, "scratch")
                return Touch(reads, writes, parallel=kernel.parallel)
            case planned.HostStep():
                reads = self._storages(step.node.inputs)
                return Touch(reads, self._storages(step.node.outputs), meets=True)
            case planned.Enter():
                return Touch(self._storages([v for _, v in step.read]), (), meets=True)
            case planned.Branch(unless=Value() as value):
                return Touch(self._storages([value]), (), meets=True)
        return Touch((), (), meets=True)

    def _storages(self, values: Sequence[Value]) -> tuple[object, ...]:
        """The memory behind values; constants are none."""
        wholes = [self.plan.whole(v)[0] for v in values if v not in self.plan.constants]
        return tuple(w for w in wholes if w not in self.plan.constants)

    def _wishes(self, step: planned.PlanStep) -> list[Pair]:
        """What the results of a step may be written over, as far as the step is concerned."""
        if not isinstance(step, planned.KernelStep):
            return []
        task = self.tasks[step]
        allowed = set(self.interfaces[task.key].in_place)
        own = [task.params[number] for number, *_ in self.interfaces[task.key].sources]
        memory = [next(iter(self._storages([value])), None) for value in own]
        found: list[Pair] = []
        for x, y in sorted(allowed):
            source, result = memory[x], memory[y]
            reading = [k for k, other in enumerate(memory) if other is source]
            if all((k, y) in allowed for k in reading) and self._may_share(source, result):
                found.append((source, result))
        return found

    def _may_share(self, source: object, result: object) -> bool:
        """Whether one value is a temporary of the size of another, whose memory is known before."""
        if not isinstance(source, Value) or not isinstance(result, Value):
            return False
        if source in self.results or source in self.numbers or source in self.made_by_host:
            return False
        if source in self.wholes or result in self.wholes:
            return False
        if self._segment(result) > self._segment(source):
            return False
        return source.dtype.size_bytes == result.dtype.size_bytes and dims_equal(
            product(source.stored_shape), product(result.stored_shape)
        )

    def _step(
        self,
        step: planned.PlanStep,
        places: dict[planned.Label, int],
        *,
        wait: bool,
    ) -> rt.Step:
        match step:
            case planned.KernelStep():
                return self._call(step, wait=wait)
            case planned.HostStep():
                return self._host(step)
            case planned.Enter(segment=segment, read=read):
                found = ((self.sizes.number(s), self._buffer(v), 0) for s, v in read)
                return rt.Enter(segment, tuple(found))
            case planned.Assign(size=size, value=value):
                return rt.Assign(self.sizes.number(size), self.sizes.postfix(value))
            case planned.Branch(to=label, unless=None):
                return rt.Jump(places[label])
            case planned.Branch(to=label, unless=Value() as value):
                return rt.Jump(places[label], self._buffer(value))
            case planned.Branch(to=label, unless=tir.Expr() as condition):
                return rt.Jump(places[label], condition=self.sizes.postfix(condition))
        raise AssertionError(f"no step for {step}")

    def _call(self, step: planned.KernelStep, *, wait: bool) -> rt.Call:
        task, group = self.tasks[step], step.group
        interface = self.interfaces[task.key]
        packings = interface.packings
        buffers = [
            self._param(packings.get(k), *(task.params[number] for number in numbers))
            for k, numbers in enumerate(interface.sources)
        ]
        numbers = [self.sizes.number(task.sizes[k], step.segment) for k in interface.size_order]
        labels = dict.fromkeys(node.label for node in group.nodes if node.label)
        kernel = self.kernels[task.key]
        flops = self.sizes.postfix(flops_of(group.nodes))
        moved = self.sizes.postfix(moved_bytes(group.nodes, task.params))
        label = " ".join(labels)
        return rt.Call(kernel, tuple(buffers), tuple(numbers), wait, label, flops, moved)

    def _host(self, step: planned.HostStep) -> rt.Step:
        op = step.node.op
        assert isinstance(op, Host)
        self.functions.append(HostCode(op.kind, op.payload, op.title, op.function))
        inputs, outputs = (
            tuple(
                rt.Operand(self._buffer(v), v.dtype, self.sizes.dims(v.shape, step.segment))
                for v in values
            )
            for values in (step.node.inputs, step.node.outputs)
        )
        defines = tuple((self.sizes.number(var), k, axis) for var, k, axis in step.defines)
        number = len(self.functions) - 1
        return rt.Host(number, inputs, outputs, defines, step.node.label)

    # ---- buffers

    def _input(self, value: Value) -> rt.Port:
        for var in variables(value.shape):
            self.sizes.bind(var)
        self._add(value, rt.Buffer(value.name, rt.Place.INPUT, self.sizes.bytes_of(value)))
        return self._port(value.name, value)

    def _place_all(self, lives: dict[object, tuple[int, int]]) -> None:
        """Buffers for everything that steps write."""
        for what, (first, last) in lives.items():
            if not isinstance(what, Value) or what in self.numbers:
                continue
            self.sizes.require_shape(what.shape, self._segment(what))
            place = rt.Place.ARENA
            if what in self.made_by_host:
                place = rt.Place.HOST
            elif what in self.results:
                place = rt.Place.OUTPUT
            size = self.sizes.bytes_of(what)
            buffer = rt.Buffer(what.name, place, size, self._segment(what), first, last)
            self._add(what, buffer)
        for slot in self.plan.parts:
            whole, offset = self.plan.whole(slot)
            parent = self.numbers[whole]
            self._add(
                slot,
                rt.Buffer(
                    slot.name,
                    rt.Place.PART,
                    self.sizes.bytes_of(slot),
                    max(self.sizes.segment([*slot.shape, offset]), self._segment(whole)),
                    parent=parent,
                    offset=self.sizes.postfix(offset),
                ),
            )

    def _segment(self, value: Value) -> int:
        """When a value can have memory."""
        return self.sizes.segment(value.shape, self.plan.homes.get(value, 0))

    def _place_shared(self, shared: Mapping[object, object]) -> None:
        """Buffers for what lives in the memory of a later result."""
        for source, result in shared.items():
            assert isinstance(source, Value)
            self.sizes.require_shape(source.shape, self._segment(source))
            buffer = rt.Buffer(
                source.name,
                rt.Place.PART,
                self.sizes.bytes_of(source),
                self._segment(source),
                parent=self.numbers[result],
                offset=constant(0),
            )
            self._add(source, buffer)

    def _buffer(self, value: Value) -> int:
        """The buffer in which a value is, as it is."""
        if value in self.plan.constants:
            return self._constant(value)
        root = self.plan.root(value)
        if root in self.plan.constants:
            return self._constant(root)
        return self.numbers[root]

    def _param(self, packing: Packing | None, value: Value, *guests: Value) -> int:
        """The buffer of a kernel's parameter; constants are packed as the kernel wants them."""
        if packing is None or value not in self.plan.constants:
            return self._buffer(value)
        return self._constant(value, packing, guests)

    def _constant(
        self, value: Value, packing: Packing | None = None, guests: Sequence[Value] = ()
    ) -> int:
        constants = self.plan.constants
        place = self.weights.place(constants[value], packing, [constants[g] for g in guests])
        if place not in self.numbers:
            offset, size = place
            where = constant(offset)
            self._add(place, rt.Buffer(value.name, rt.Place.WEIGHTS, constant(size), offset=where))
        return self.numbers[place]

    def _add(self, key: object, buffer: rt.Buffer) -> int:
        self.numbers[key] = len(self.buffers)
        self.buffers.append(buffer)
        return self.numbers[key]

    def _port(self, name: str, value: Value) -> rt.Port:
        shown = tuple(
            number if (number := tir.int_value(d)) is not None else print_node(d)
            for d in value.stored_shape
        )
        dims = self.sizes.dims(value.stored_shape)
        return rt.Port(name, value.dtype, dims, shown, self._buffer(value))
