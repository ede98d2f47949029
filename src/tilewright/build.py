"""`build`: a tensor program in, a callable on arrays out."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.pipeline import Pipeline
from tilewright.runtime import Kernel, default_threads
from tilewright.schedule import Trace
from tilewright.target import Target
from tilewright.tensor import ir as tir

__all__ = ["build"]


def build(
    func: tir.Func,
    target: str | Target = "host",
    threads: int | None = None,
    trace: Trace | str | None = None,
    constants: Mapping[str, object] | None = None,
) -> Kernel:
    """Compile a program for this machine.

    `trace` is its schedule: a `Trace`, "draft" (the analytic draft, also for None) or "none".
    Parameters in `constants` are fixed to the given arrays, packed once into the layout that the
    schedule wants, and no longer passed. `kernel.report` says what the stages took.
    """
    machine = Target.named(target) if isinstance(target, str) else target
    constants = constants or {}
    pipeline = Pipeline(
        machine,
        threads=default_threads() if threads is None else threads,
        trace="draft" if trace is None else trace,
        constants=constants,
    )
    kernel = pipeline.run(func).value
    assert isinstance(kernel, Kernel)
    return kernel.bind(**constants) if constants else kernel
