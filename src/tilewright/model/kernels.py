"""Groups of nodes become kernels: tensor programs, compiled along the path of `pipeline/kernel.py`.

Equal groups share a kernel: programs are compared by structure, not by names.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from tilewright.dtypes import u8
from tilewright.graph.abstract import SizeNames, abstract_sizes
from tilewright.graph.groups import Group
from tilewright.graph.ir import Value
from tilewright.model.flattened import flattened
from tilewright.model.stored import stored_program
from tilewright.pipeline import Compiled, Observer, Pipeline
from tilewright.schedule.recipes.contraction.space import ContractionPoint
from tilewright.schedule.recipes.windows.points import WindowPoint
from tilewright.schedule.source import DRAFT, ScheduleSource, Workload
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor, func, placeholder
from tilewright.tensor.layout import Fuse
from tilewright.tensor.regions import sizes as program_sizes
from tilewright.tensor.stored import Layout
from tilewright.tensor.structural import structural_hash
from tilewright.tensor.visit import free_vars

__all__ = [
    "KernelTask",
    "compile_task",
    "name_of",
    "pipeline_of",
    "task_of",
]


@dataclass(frozen=True)
class KernelTask:
    """A kernel to be made: its program, the values behind its parameters, and its key.

    `sizes` are what the sizes of the program, in its order, are in the graph. `loops` and `points`
    are decisions that were taken already (`schedule/source.py`), and part of the key.
    """

    program: tir.Func
    params: tuple[Value, ...]
    constants: frozenset[str]
    sizes: tuple[tir.Expr, ...]
    threads: int
    key: str
    loops: ContractionPoint | WindowPoint | None = None
    points: Mapping[str, object] = field(default_factory=dict, hash=False)

    def workload(self, target: Target) -> Workload:
        """What a schedule is asked for."""
        about = self.threads, self.constants, self.loops, self.points
        return Workload(self.program, target, *about)

    def with_points(self, points: Mapping[str, object]) -> KernelTask:
        """The kernel with points for groups of its program, by their last blocks."""
        known = {**self.points, **points}
        words = [f"{block}={known[block]}" for block in sorted(known)]
        plain = self.key.partition("+")[0]
        return replace(self, points=known, key="+".join([plain, *words]))


def task_of(
    group: Group, outputs: Sequence[Value], constants: Container[Value], threads: int
) -> KernelTask:
    """The tensor program of a group."""
    inputs = group.inputs()
    nodes, flat = flattened(group.nodes)
    sizes = abstract_sizes(nodes, outputs[-1].shape)  # it runs where the last has elements
    given_in, given_out = ([flat.get(v, v) for v in side] for side in (inputs, outputs))
    names = {value: f"p{k}" for k, value in enumerate((*given_in, *given_out))}
    tensors: dict[Value, Tensor] = {
        value: placeholder(names[value], sizes.shape(value.shape), value.dtype)
        for value in given_in
    }
    stage = 0
    for node in nodes:
        given = [names.get(v, f"t{stage + k}") for k, v in enumerate(node.outputs)]
        stage += len(given)
        made = sizes.op(node.op).lower([tensors[v] for v in node.inputs], given)
        tensors.update(zip(node.outputs, made, strict=True))
    program = func("kernel", [tensors[v] for v in given_in], [tensors[v] for v in given_out])
    # A result may have another name than its value: operators on narrow types convert at the end.
    pairs = zip(program.params, (*inputs, *outputs), strict=True)
    layouts = {param.name: _abstract(v.layout, sizes) for param, v in pairs if v.layout}
    program = stored_program(program, layouts) if layouts else program
    program, carriers = _with_carriers(program, len(inputs))
    fixed = frozenset(f"p{k}" for k, v in enumerate(inputs) if v in constants)
    key = f"{structural_hash(program)}-{threads}-{','.join(sorted(fixed))}"
    plans = ContractionPoint | WindowPoint
    loops = next((n.loops for n in group.nodes if isinstance(n.loops, plans)), None)
    key = key if loops is None else f"{key}-{loops}"
    own = tuple(sizes.of(size) for size in program_sizes(program))
    params = (*inputs, *([outputs[0]] * carriers), *outputs)
    return KernelTask(program, params, fixed, own, threads, key, loops)


def _abstract(layout: Layout, sizes: SizeNames) -> Layout:
    """A layout in the sizes of a kernel."""
    return tuple(
        Fuse(step.dim, tuple(sizes.expr(tir.as_index(d)) for d in step.sizes))
        if isinstance(step, Fuse)
        else step
        for step in layout
    )


def _with_carriers(program: tir.Func, inputs: int) -> tuple[tir.Func, int]:
    """The program with a parameter for each size that is no dimension of another; how many.

    A kernel learns its sizes from the dimensions of its parameters, and the number of an iteration,
    for example, is none. Such a parameter is never read.
    """
    told = {d for p in program.params for d in p.shape if isinstance(d, tir.Var)}
    inner = sorted(free_vars(program.body), key=lambda v: v.name)
    missing = dict.fromkeys(v for v in (*program_sizes(program), *inner) if v not in told)
    carriers = [tir.Buffer(f"size{k}", (var,), u8) for k, var in enumerate(missing)]
    params = (*program.params[:inputs], *carriers, *program.params[inputs:])
    return program.with_fields(params=params), len(carriers)


def pipeline_of(
    task: KernelTask,
    target: Target,
    schedules: ScheduleSource = DRAFT,
    observers: Sequence[Observer] = (),
) -> Pipeline:
    """The path on which a task becomes a kernel."""
    about = task.threads, schedules, task.constants, observers
    return Pipeline(target, *about, loops=task.loops, points=task.points, of_model=True)


def compile_task(task: KernelTask, target: Target, schedules: ScheduleSource = DRAFT) -> Compiled:
    """The object code of one program, scheduled by a source, and its interface."""
    program = task.program.with_fields(name=name_of(task))
    return pipeline_of(task, target, schedules).compiled(program)


def name_of(task: KernelTask) -> str:
    """A name that no other kernel of an image has."""
    return f"k{blake2b(task.key.encode(), digest_size=10).hexdigest()}"
