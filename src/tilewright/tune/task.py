"""Tasks: the distinct kernels of a model, or a tensor program by hand.

A model runs many kernels that are equal in structure. Each distinct one is a task, with how often
it runs; what is found for it serves every place.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from tilewright.graph.ir import Node, TensorType, Value
from tilewright.graph.ops.winograd import WinogradConv, WinogradTransposed
from tilewright.graph.sizes import evaluate_size, variables
from tilewright.model.kernel_plan import Planned
from tilewright.model.kernels import KernelTask, name_of
from tilewright.model.standalone import USUAL_SIZE
from tilewright.model.steps import KernelStep
from tilewright.model.work import flops_of, moved_bytes
from tilewright.records.record import workload_key
from tilewright.schedule.points import decided_cycles
from tilewright.schedule.recipes.recipe import Decision
from tilewright.schedule.source import DRAFT
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.regions import sizes as program_sizes
from tilewright.tensor.structural import structural_hash
from tilewright.tune.space import KernelSpace

__all__ = ["Task", "task_of_func", "task_of_kernel", "tasks_of"]

FEWER_MULTIPLICATIONS: Final = 5
"""Of Winograd's algorithms beside the direct one, which is what is counted: 5.06 for F(6, 3)."""


@dataclass(frozen=True)
class Task:
    """A kernel, how often the model runs it, and how much it has to do at the least.

    `decisions` are those of the draft: a kernel without any has nothing to tune.
    """

    kernel: KernelTask
    target: Target
    label: str
    runs: int
    decisions: tuple[Decision, ...]
    flops: int = 0
    moved_bytes: int = 0
    constant_bytes: int = 0

    @cached_property
    def space(self) -> KernelSpace:
        """Everything that can be decided about it."""
        return KernelSpace(self.decisions, self.target)

    @cached_property
    def workload(self) -> str:
        """What its records are found by."""
        return workload_key(self.kernel.workload(self.target))

    @property
    def symbol(self) -> str:
        """What the kernel is called in profiles."""
        return name_of(self.kernel)

    @property
    def recipe(self) -> str:
        """The recipe that most of its time is spent in."""
        return self.space.decisions[0].recipe.name if self.decisions else ""

    @property
    def predicted_ns(self) -> float:
        """What the machine model predicts for the draft."""
        machine = self.target.machine
        return sum(decided_cycles(d, machine) for d in self.decisions) / machine.ghz

    def floor_ns(self, threads: int) -> float:
        """The time that no schedule can beat: its multiply-adds at the peak, or its bytes."""
        machine = self.target.machine
        computing = self.flops / self.target.peak_gflops(cores=threads)
        home = machine.home_of(self.moved_bytes)
        return max(computing, self.moved_bytes / (home.read * machine.ghz * threads))


def tasks_of(planned: Planned, target: Target) -> list[Task]:
    """The tasks of a model, in the order in which it first runs them."""
    found: dict[str, list[KernelStep]] = {}
    for step, kernel in planned.tasks.items():
        found.setdefault(kernel.key, []).append(step)
    return [_task(planned, steps, target) for steps in found.values()]


def _task(planned: Planned, steps: list[KernelStep], target: Target) -> Task:
    nodes = steps[0].group.nodes
    label = next((node.label for node in nodes if node.label), nodes[-1].output.name)
    return task_of_kernel(planned.tasks[steps[0]], target, nodes, label, len(steps))


def task_of_kernel(
    kernel: KernelTask, target: Target, nodes: Sequence[Node], label: str, runs: int = 1
) -> Task:
    """A kernel that computes some nodes of a graph, as a task."""
    work = flops_of(nodes), moved_bytes(nodes, kernel.params)
    sizes = dict.fromkeys(variables(work), USUAL_SIZE)
    flops, moved = (evaluate_size(amount, sizes) for amount in work)
    if any(isinstance(node.op, WinogradConv | WinogradTransposed) for node in nodes):
        flops //= FEWER_MULTIPLICATIONS
    decisions = tuple(DRAFT.schedule(kernel.workload(target)).decisions)
    constant = _constant_bytes(kernel)
    return Task(kernel, target, label, runs, decisions, flops, moved, constant)


def task_of_func(
    func: tir.Func, target: Target, constants: Collection[str] = (), threads: int = 1
) -> Task:
    """A tensor program as a task; parameters named in `constants` may be packed ahead."""
    params = tuple(Value(p.name, TensorType(p.dtype, tuple(p.shape))) for p in func.params)
    fixed = frozenset(constants)
    sizes = tuple(program_sizes(func))
    key = f"{structural_hash(func)}-{threads}-{','.join(sorted(fixed))}"
    kernel = KernelTask(func, params, fixed, sizes, threads, key)
    decisions = tuple(DRAFT.schedule(kernel.workload(target)).decisions)
    return Task(kernel, target, func.name, 1, decisions, constant_bytes=_constant_bytes(kernel))


def _constant_bytes(kernel: KernelTask) -> int:
    total = 0
    for param in kernel.program.params:
        if param.name in kernel.constants:
            elements = 1
            for dim in param.shape:
                elements *= tir.int_value(dim) or 1
            total += elements * param.dtype.size_bytes
    return total
