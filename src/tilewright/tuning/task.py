"""Tasks: the distinct kernels of a model, a site with its alternatives, or a program by hand.

A model runs many kernels that are equal in structure. Each distinct one is a task, with how often
it runs; what is found for it serves every place. Where algorithm and layouts are open as well, a
task has a variant for each choice of them: a kernel of its own, with a space of its own.
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
from tilewright.schedule.recipes.recipe import Decision
from tilewright.schedule.source import DRAFT
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.regions import sizes as program_sizes
from tilewright.tensor.structural import structural_hash
from tilewright.tuning.joint_space import JointSpace, TaskSpace
from tilewright.tuning.space import KernelSpace

__all__ = ["Task", "Variant", "task_of_func", "tasks_of", "variant_of"]

FEWER_MULTIPLICATIONS: Final = 5
"""Of Winograd's algorithms beside the direct one, which is what is counted: 5.06 for F(6, 3)."""


@dataclass(frozen=True)
class Variant:
    """A kernel, and how much it has to do at the least.

    `decisions` are those of the draft: a kernel without any has nothing to tune. `name` says which
    algorithm and layouts it has, where there are several. Then `around_cycles` is what the rest of
    the graph costs more with it than with the first one (conversions, and others' second choices),
    `chosen_cycles` what the choice of layouts predicts for it, and its times count `margin` times:
    an algorithm that rounds more has to be faster.
    """

    kernel: KernelTask
    target: Target
    decisions: tuple[Decision, ...]
    name: str = ""
    flops: int = 0
    moved_bytes: int = 0
    around_cycles: float = 0.0
    chosen_cycles: float = 0.0
    margin: float = 1.0

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
    def around_ns(self) -> float:
        """`around_cycles` as time."""
        return self.around_cycles / self.target.machine.ghz

    @property
    def predicted_ns(self) -> float:
        """What the machine model predicts for the draft."""
        return (self.chosen_cycles or self.space.drafted_cycles) / self.target.machine.ghz

    @cached_property
    def constant_bytes(self) -> int:
        """Bytes of its weights."""
        total = 0
        for param in self.kernel.program.params:
            if param.name in self.kernel.constants:
                elements = 1
                for dim in param.shape:
                    elements *= tir.int_value(dim) or 1
                total += elements * param.dtype.size_bytes
        return total

    def floor_ns(self, threads: int) -> float:
        """The time that no schedule can beat: its multiply-adds at the peak, or its bytes."""
        machine = self.target.machine
        computing = self.flops / self.target.peak_gflops(cores=threads)
        all_read = threads >= self.target.cores
        moving = machine.least_stream_cycles(self.moved_bytes, threads, all_read=all_read)
        return max(computing, moving / machine.ghz)


@dataclass(frozen=True)
class Task:
    """What is searched for: the variants of a kernel, the drafted one first.

    `points` is how many ways there are to run it, where variants are a few of them.
    """

    variants: tuple[Variant, ...]
    label: str
    runs: int = 1
    points: int = 0

    @property
    def drafted(self) -> Variant:
        """The variant that is chosen without any measurement."""
        return self.variants[0]

    @property
    def target(self) -> Target:
        """The machine."""
        return self.drafted.target

    @cached_property
    def space(self) -> TaskSpace:
        """All points: of the only variant, or of all of them side by side."""
        spaces = [variant.space for variant in self.variants]
        if len(spaces) == 1:
            return spaces[0]
        around = [variant.around_cycles for variant in self.variants]
        return JointSpace(spaces, around, [v.chosen_cycles for v in self.variants])

    @property
    def size(self) -> int:
        """How many points there are: algorithms × layouts × loops, where these are open."""
        return max(self.points, self.space.size)

    @property
    def has_choice(self) -> bool:
        """Whether there is anything to decide."""
        return all(variant.decisions for variant in self.variants) and self.space.size > 1

    @property
    def recipe(self) -> str:
        """The recipe that most of its time is spent in."""
        return self.drafted.space.decisions[0].recipe.name if self.drafted.decisions else ""

    def floor_ns(self, threads: int) -> float:
        """The time that no point of any variant can beat."""
        return min(variant.floor_ns(threads) for variant in self.variants)


def tasks_of(planned: Planned, target: Target) -> list[Task]:
    """The tasks of a model, in the order in which it first runs them."""
    found: dict[str, list[KernelStep]] = {}
    for step, kernel in planned.tasks.items():
        found.setdefault(kernel.key, []).append(step)
    return [_task(planned, steps, target) for steps in found.values()]


def _task(planned: Planned, steps: list[KernelStep], target: Target) -> Task:
    nodes = steps[0].group.nodes
    label = next((node.label for node in nodes if node.label), nodes[-1].output.name)
    return Task((variant_of(planned.tasks[steps[0]], target, nodes),), label, len(steps))


def variant_of(
    kernel: KernelTask, target: Target, nodes: Sequence[Node] = (), name: str = ""
) -> Variant:
    """A kernel that computes some nodes of a graph."""
    work = flops_of(nodes), moved_bytes(nodes, kernel.params)
    sizes = dict.fromkeys(variables(work), USUAL_SIZE)
    flops, moved = (evaluate_size(amount, sizes) for amount in work)
    if any(isinstance(node.op, WinogradConv | WinogradTransposed) for node in nodes):
        flops //= FEWER_MULTIPLICATIONS
    decisions = tuple(DRAFT.schedule(kernel.workload(target)).decisions)
    return Variant(kernel, target, decisions, name, flops, moved)


def task_of_func(
    func: tir.Func, target: Target, constants: Collection[str] = (), threads: int = 1
) -> Task:
    """A tensor program as a task; parameters named in `constants` may be packed ahead."""
    params = tuple(Value(p.name, TensorType(p.dtype, tuple(p.shape))) for p in func.params)
    fixed = frozenset(constants)
    sizes = tuple(program_sizes(func))
    key = f"{structural_hash(func)}-{threads}-{','.join(sorted(fixed))}"
    kernel = KernelTask(func, params, fixed, sizes, threads, key)
    return Task((variant_of(kernel, target),), func.name)
