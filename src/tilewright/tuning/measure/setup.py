"""What a measuring process is told of a job: its arrays and sizes in numbers, and how to run it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from tilewright.graph.sizes import evaluate_size
from tilewright.model.made_up import Parameter, parameters_of, sizes_in
from tilewright.model.standalone import sizes_of
from tilewright.tensor import ir as tir
from tilewright.tensor.regions import blocks
from tilewright.tuning.measure.trial import Job

__all__ = ["Setup", "iterations_of", "setup_of", "wants_plain"]

MOST_ITERATIONS: Final = 300_000_000
"""Of a program that is run as it is written: below a second, at about three nanoseconds each."""


@dataclass(frozen=True)
class Setup:
    """The arrays of a kernel, its sizes in order, and the length of its longest sum."""

    params: tuple[Parameter, ...]
    sizes: tuple[int, ...]
    threads: int
    cold_bytes: int
    terms: int

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "params": [param.to_data() for param in self.params],
            "sizes": list(self.sizes),
            "threads": self.threads,
            "cold_bytes": self.cold_bytes,
            "terms": self.terms,
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Setup:
        """The inverse of `to_data`."""
        params = tuple(Parameter.from_data(param) for param in data["params"])
        rest = data["threads"], data["cold_bytes"], data["terms"]
        return cls(params, tuple(data["sizes"]), *rest)


def setup_of(job: Job) -> Setup:
    """The setup of a job, for its sizes; those that nobody gives are as usual."""
    known = sizes_of(job.task, job.sizes)
    own = sizes_in(job.task, known)
    params = parameters_of(job.task, known)
    terms = max((_extent(block, own, reduced=True) for block in _blocks(job)), default=1)
    return Setup(params, tuple(own.values()), job.threads, job.cold_bytes, terms)


def iterations_of(job: Job) -> int:
    """How often bodies of blocks run in the program as it is written."""
    own = sizes_in(job.task, sizes_of(job.task, job.sizes))
    return sum(_extent(block, own, reduced=False) for block in _blocks(job))


def wants_plain(job: Job) -> bool:
    """Whether results are compared with those of the program as it is written.

    It shares no schedule, no vectors and no tiles with candidates, and takes about the time of a
    breath. A larger one would take minutes: there, the drafted kernel says what is right.
    """
    return iterations_of(job) <= MOST_ITERATIONS


def _blocks(job: Job) -> list[tir.Block]:
    return list(blocks(job.task.program.body))


def _extent(block: tir.Block, sizes: Mapping[tir.Var, int], *, reduced: bool) -> int:
    iters = [i for i in block.iters if not reduced or i.kind is tir.IterKind.REDUCE]
    return prod(evaluate_size(i.extent, sizes) for i in iters)
