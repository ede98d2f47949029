"""The steps of a graph, and the tensor program of each kernel that they call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.graph.groups import Group
from tilewright.graph.ir import Graph
from tilewright.graph.ops import Contract
from tilewright.graph.sizes import count
from tilewright.model.kernels import KernelTask, task_of
from tilewright.model.plan import plan_graph
from tilewright.model.steps import KernelStep, Plan

__all__ = ["Planned", "plan_kernels"]

SMALL_WORK = 32768
"""Elements (or eighths of multiply-adds) below which a kernel is not worth a second thread."""


@dataclass(frozen=True)
class Planned:
    """The steps of a graph, and the kernel that each of them needs."""

    graph: Graph
    plan: Plan
    tasks: Mapping[KernelStep, KernelTask]

    @property
    def kernels(self) -> list[KernelTask]:
        """The distinct kernels, in the order of their numbers."""
        return list({task.key: task for task in self.tasks.values()}.values())

    def __str__(self) -> str:
        from tilewright.model.listing import plan_text

        return plan_text(self)


def plan_kernels(graph: Graph, threads: int, groups: Sequence[Group] | None = None) -> Planned:
    """The steps of a graph, and the tensor programs of its kernels: of `groups`, if given."""
    plan = plan_graph(graph, groups)
    tasks = {
        step: task_of(step.group, step.outputs, plan.constants, _threads_for(step.group, threads))
        for step in plan.steps
        if isinstance(step, KernelStep)
    }
    return Planned(graph, plan, tasks)


def _threads_for(group: Group, threads: int) -> int:
    work = 0
    for node in group.nodes:
        work += max((count(v.shape) for v in (*node.inputs, *node.outputs)), default=1)
        if isinstance(node.op, Contract):
            work += count(node.inputs[0].shape) * count(node.outputs[0].shape[-1:]) // 8
    return threads if work >= SMALL_WORK else 1
