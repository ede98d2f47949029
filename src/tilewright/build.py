"""`build`: a tensor program in, a callable on arrays out."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.calibration.model import with_machine_model
from tilewright.errors import Code, UserError
from tilewright.pipeline import Pipeline
from tilewright.runtime import Kernel, default_threads
from tilewright.schedule import Schedule, Trace
from tilewright.schedule.source import ScheduleSource
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.packing import passed
from tilewright.tensor.regions import outputs

__all__ = ["build"]

K005 = Code("K005", "`build` cannot use {found} as {argument}")
K006 = Code("K006", "`{param}` of `{program}` cannot be constant")


def build(
    func: tir.Func,
    target: str | Target = "host",
    threads: int | None = None,
    trace: Trace | str | ScheduleSource | None = None,
    constants: Mapping[str, object] | None = None,
) -> Kernel:
    """Compile a program for this machine.

    `trace` is its schedule: a `Trace`, "draft" (the analytic draft, also for None), "none", or a
    `ScheduleSource` that is asked for one.
    Parameters in `constants` are fixed to the given arrays, packed once into the layout that the
    schedule wants, and no longer passed. `kernel.report` says what the stages took.
    """
    machine = Target.named(target) if isinstance(target, str) else target
    constants = constants or {}
    _require_kinds(func, machine)
    machine = with_machine_model(machine)
    _require_inputs(func, constants)
    pipeline = Pipeline(
        machine,
        threads=default_threads() if threads is None else threads,
        trace="draft" if trace is None else trace,
        constants=constants,
    )
    kernel = pipeline.run(func).value
    assert isinstance(kernel, Kernel)
    return kernel.bind(**constants) if constants else kernel


def _require_kinds(func: object, target: object) -> None:
    if not isinstance(func, tir.Func):
        hint = 'name its inputs and outputs: `tw.func("name", inputs, [result])`'
        if isinstance(func, Schedule):
            hint = "give the program, and `trace=schedule.trace`"
        facts = {"argument": "a program", "found": f"a value of type {type(func).__name__}"}
        raise UserError(K005, facts, hint=hint)
    if not isinstance(target, Target):
        facts = {"argument": "a target", "found": f"a value of type {type(target).__name__}"}
        raise UserError(K005, facts, hint='give a `Target`, or a name such as "host"')


def _require_inputs(func: tir.Func, constants: Mapping[str, object]) -> None:
    written = {param.name for param in outputs(func)}
    inputs = [owner.name for owner in passed(func.params) if owner.name not in written]
    for name in constants:
        if name not in inputs:
            reason = "the program writes it" if name in written else "there is no such parameter"
            facts = {"param": name, "program": func.name, "reason": reason}
            raise UserError(K006, facts, hint=f"inputs are: {', '.join(inputs) or 'none'}")
