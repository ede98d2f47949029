"""`tilewright show MODEL --kernel N --measure`: the time of one kernel, outside of its model."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from tilewright.cli.models import time_text
from tilewright.cli.output import paragraph
from tilewright.feeds.inputs import Wanted
from tilewright.feeds.size_rules import SizeRules
from tilewright.graph.ir import Value
from tilewright.graph.sizes import evaluate_size, variables
from tilewright.model.info import TensorInfo, type_name
from tilewright.model.standalone import USUAL_SIZE, Standalone, standalone
from tilewright.model.work import flops_of, moved_bytes
from tilewright.runtime import default_threads
from tilewright.shown import counted, shown
from tilewright.tensor import ir as tir
from tilewright.tensor.printer import print_node

if TYPE_CHECKING:
    from tilewright.model.compiler import Compiling
    from tilewright.model.kernel_plan import Planned
    from tilewright.model.kernels import KernelTask

__all__ = ["described", "kernel_title", "measured", "measured_text"]

MOST_LABELS: Final = 3
RUNS: Final = 50
LONG_NS: Final = 20_000_000
FEW_RUNS: Final = 5
"""Runs of a kernel that takes long."""


def measured(
    planned: Planned,
    number: int,
    labels: Sequence[str],
    how: Compiling,
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    """Build a kernel alone, run it on arrays that are made up, and tell how long it takes."""
    task, threads = planned.kernels[number], arguments.threads or default_threads()
    sizes = _sizes(planned.graph.inputs, arguments.size)
    kernel = standalone(task, how.target, sizes, threads, how.schedules)
    facts = {"kernel": number, "labels": list(labels), "threads": threads}
    return facts | _times(kernel, arguments.seed) | _work(planned, task, kernel.sizes)


def _sizes(inputs: Sequence[Value], given: Sequence[str]) -> dict[str, int]:
    """Sizes of the inputs of a graph by name: those that are given, and usual ones."""
    infos = [described(value.name, value) for value in inputs]
    wanted, rules = Wanted.of(infos, [], given), SizeRules.of(infos)
    chosen = rules.chosen(rules.named(wanted.sizes))
    return {rules.labels[k]: size for k, size in chosen.items() if k in rules.labels}


def kernel_title(number: int, labels: Sequence[str]) -> str:
    """A line that names a kernel by what it computes first."""
    more = f" and {len(labels) - MOST_LABELS} more" if len(labels) > MOST_LABELS else ""
    return f"kernel {number}: {', '.join(map(shown, labels[:MOST_LABELS]))}{more}"


def described(name: str, value: Value) -> TensorInfo:
    """An input or output of a graph, as of a compiled model."""
    numbers = [(tir.int_value(dim), dim) for dim in value.shape]
    shape = tuple(print_node(dim) if number is None else number for number, dim in numbers)
    return TensorInfo(name, value.dtype, shape, type_name(value.dtype))


def _times(kernel: Standalone, seed: int) -> dict[str, Any]:
    arrays = kernel.arrays(seed)
    (first,) = kernel.times_ns(arrays, 1)
    times = kernel.times_ns(arrays, FEW_RUNS if first > LONG_NS else RUNS)
    return {
        "sizes": {var.name: size for var, size in kernel.sizes.items()},
        "runs": len(times),
        "time_s": median(times) / 1e9,
        "best_s": min(times) / 1e9,
    }


def _work(planned: Planned, task: KernelTask, sizes: Mapping[tir.Var, int]) -> dict[str, int]:
    """Multiply-adds of the nodes that the kernel computes, and bytes that it reads and writes."""
    step = next(step for step, own in planned.tasks.items() if own is task)
    nodes = step.group.nodes
    work = {"flops": flops_of(nodes), "moved_bytes": moved_bytes(nodes, task.params)}
    every = dict.fromkeys(variables(work.values()), USUAL_SIZE) | dict(sizes)
    return {name: evaluate_size(expr, every) for name, expr in work.items()}


def measured_text(facts: Mapping[str, Any]) -> str:
    """The same for people."""
    seconds, rates = facts["time_s"] or 1e-9, []
    if facts["flops"]:
        rates.append(f"{facts['flops'] / seconds / 1e9:.1f} GFLOP/s")
    rates.append(f"{facts['moved_bytes'] / seconds / 1e9:.1f} GB/s")
    sizes = ", ".join(f"{shown(name)} = {size}" for name, size in facts["sizes"].items())
    about = f"{counted(facts['threads'], 'thread')}, median of {facts['runs']} runs"
    times = f"{time_text(facts['time_s'])} alone (best {time_text(facts['best_s'])})"
    lines = ["# " + kernel_title(facts["kernel"], facts["labels"])]
    lines.append(f"{times}, {', '.join(rates)}; {about}")
    if sizes:
        lines.append(paragraph(f"for {sizes} (--size NAME=N for others)"))
    return "\n".join(lines)
