"""The path of a tensor program to a kernel, as an ordered table of named stages.

    program → scheduled → lower_blocks → … → expand_math → llvm → object → kernel
                                                            └──→ assembly

Every stage leaves an artefact that can be looked at, written to a file, edited, and resumed from:

    pipeline = Pipeline(Target.host())
    text = pipeline.run(func, until="llvm").text
    kernel = pipeline.resume("llvm", edited_text).value

`tw.build` asks it for a callable, the kernels of a model (`model/kernels.py`) are what `compiled`
gives: object code with its interface. Both become the same thing then: a function of a linked
image, described by a `KernelCode` (`code_of`), which the threads of the runtime enter.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tilewright.errors import Code, InternalError, TilewrightError, UserError
from tilewright.intrin.features import require_features, require_functions
from tilewright.lower import LOWERING, Lowered, lower_from
from tilewright.lower import STAGES as LOWERING_STAGES
from tilewright.lower.context import Context
from tilewright.lower.in_place import in_place
from tilewright.lower.plan_storage import plan_storage
from tilewright.pipeline.stage import Artefact, Observer, Reached, Report, Stage, stage_named
from tilewright.runtime import Kernel
from tilewright.runtime.image import Image
from tilewright.runtime.pool import require_threads
from tilewright.runtime.program import KernelCode
from tilewright.schedule import Trace
from tilewright.schedule.source import ScheduleSource, Workload, source_of
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.contents import require_elements, updated
from tilewright.tensor.parser import parse
from tilewright.tensor.validate import validate
from tilewright.tensor.verify import Level, verify

if TYPE_CHECKING:
    from tilewright.llvm.interface import Interface
    from tilewright.schedule.recipes.contraction.space import ContractionPoint
    from tilewright.schedule.recipes.windows.points import WindowPoint

__all__ = ["KERNEL_STAGES", "Compiled", "Pipeline", "code_of"]

K002 = Code("K002", "the stage `{until}` cannot be made from the text of `{stage}`")
I120 = Code("I120", "the stage `{stage}` failed: {problem}")


def _lowering() -> tuple[Stage, ...]:
    sources = ("scheduled", *LOWERING_STAGES)
    return tuple(
        Stage(step.__name__, source, ".tir", (step.__doc__ or "").partition("\n")[0])
        for step, source in zip(LOWERING, sources, strict=False)
    )


KERNEL_STAGES: Final = (
    Stage("program", "", ".tir", "tensor program as written"),
    Stage("scheduled", "program", ".tir", "tensor program after the steps of its trace"),
    *_lowering(),
    Stage("llvm", LOWERING_STAGES[-1], ".ll", "LLVM IR"),
    Stage("assembly", "llvm", ".s", "machine code as text"),
    Stage("object", "llvm", ".o", "machine code as an object file"),
    Stage("kernel", "object", "", "a callable on arrays, in this process"),
)
"""All stages in order."""


@dataclass(frozen=True)
class Compiled:
    """A kernel as object code, what its callers must know of it, and what could not be granted."""

    code: bytes
    interface: Interface
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Known:
    """A program that runs along the path, as far as later stages ask for it."""

    program: tir.Func
    scheduled: tir.Func
    updated: frozenset[str] = frozenset()


class Pipeline:
    """Runs programs along the path for one target.

    `trace` is the schedule: a `Trace`, "draft" (the analytic draft), "none", or whatever else knows
    one (`schedule/source.py`). `constants` names the parameters whose arrays are known ahead, so
    that their layout may be chosen. `loops` are those of a contraction or a window, if they are
    settled, `points` those of groups by their last block. A kernel `of_model` is called with memory
    instead of arrays: only constants are packed for it, and its results may be written over inputs
    where the program allows it.
    """

    def __init__(
        self,
        target: Target,
        threads: int = 1,
        trace: Trace | str | ScheduleSource = "draft",
        constants: Iterable[str] = (),
        observers: Sequence[Observer] = (),
        *,
        loops: ContractionPoint | WindowPoint | None = None,
        points: Mapping[str, object] | None = None,
        of_model: bool = False,
    ) -> None:
        source = source_of(trace)
        require_threads(threads)
        self.target, self.threads, self.source = target, threads, source
        self.constants, self.observers = frozenset(constants), tuple(observers)
        self.loops, self.points, self.of_model = loops, points or {}, of_model
        self.report = Report()
        self._known: _Known | None = None
        self._interface: Interface | None = None

    def run(self, func: tir.Func, until: str = "kernel") -> Artefact:
        """The artefact of stage `until` of a program."""
        return self._follow(Artefact("program", func), until)

    def compiled(self, func: tir.Func) -> Compiled:
        """Object code of a program, to be linked, with its interface."""
        code = self.run(func, until="object").value
        assert isinstance(code, bytes)
        assert self._interface is not None
        return Compiled(code, self._interface, self.report.remarks)

    def resume(self, stage: str, text: str, until: str = "kernel") -> Artefact:
        """The artefact of stage `until`, from the text of an earlier stage, edited or not."""
        named = stage_named(stage, KERNEL_STAGES)
        if not named.is_resumable:
            hint = "resume from the text of a tensor program or of LLVM IR"
            raise UserError(K002, {"stage": stage, "until": until}, hint=hint)
        start = _read_program(stage, text) if named.suffix == ".tir" else _read_llvm(text)
        return self._follow(Artefact(stage, start), until)

    def _follow(self, start: Artefact, until: str) -> Artefact:
        if not _leads_to(start.stage, stage_named(until, KERNEL_STAGES)):
            hint = "stages in order: " + ", ".join(stage.name for stage in KERNEL_STAGES)
            raise UserError(K002, {"stage": start.stage, "until": until}, hint=hint)
        self.report, self._interface = Report(), None
        try:
            self._walk(start, until)
        except Reached as reached:
            return reached.artefact
        raise AssertionError("a path ends at the stage that was asked for")

    def _walk(self, start: Artefact, until: str) -> None:
        """Make artefacts from `start` on; `_made` ends it."""
        self._made(start, until)
        value, stage = start.value, start.stage
        if isinstance(value, tir.Func):
            program = value
            if stage == "program":
                value = self._timed("scheduled", until, self._schedule, value)
                stage = "scheduled"
            if stage == "scheduled":
                names = frozenset(param.name for param in updated(program))
                self._known = _Known(program, value, names)
                require_elements(program)
                require_features(value, self.target)
                require_functions(value)
            value = self._timed("llvm", until, self._emit, *self._lower(stage, value, until))
        assert isinstance(value, str)
        if until == "assembly":
            self._timed("assembly", until, self._assembly, value)
        interface = self._callable(value) if until == "kernel" else None
        code = self._timed("object", until, self._object, value)
        self._timed("kernel", until, self._kernel, interface, code)

    def _made(self, artefact: Artefact, until: str) -> None:
        for observer in self.observers:
            observer(artefact)
        if artefact.stage == until:
            raise Reached(artefact)

    def _timed(self, stage: str, until: str, make: Callable[..., Any], *args: object) -> Any:
        begin = time.perf_counter()
        try:
            value = make(*args)
        except (TilewrightError, RecursionError, MemoryError):
            raise  # the last two say that a program is too large, which is nobody's mistake
        except Exception as problem:
            facts = {"stage": stage, "problem": repr(problem)}
            program = next((a for a in args if isinstance(a, tir.Func)), None)
            raise InternalError(I120, facts, program=program) from problem
        self.report.seconds[stage] = time.perf_counter() - begin
        self._made(Artefact(stage, value), until)
        return value

    def _schedule(self, func: tir.Func) -> tir.Func:
        about = self.target, self.threads, self.constants, self.loops, self.points
        schedule = self.source.schedule(Workload(func, *about))
        self.report.trace = schedule.trace
        self.report.decisions = tuple(schedule.decisions)
        self.report.remarks = tuple(schedule.remarks)
        return schedule.func

    def _lower(self, stage: str, func: tir.Func, until: str) -> tuple[tir.Func, Lowered]:
        """The program that goes into the lowering, and its lowered form."""

        def observe(name: str, made: tir.Func, seconds: float) -> None:
            self.report.seconds[name] = seconds
            self._made(Artefact(name, made), until)

        done = LOWERING_STAGES.index(stage) + 1 if stage in LOWERING_STAGES else 0
        rest = LOWERING_STAGES[done:]
        if rest:
            lowered = lower_from(rest[0], func, self.target, observe)
        else:
            lowered = plan_storage(func, Context(self.target))
        self.report.remarks += lowered.remarks
        return func, lowered

    def _seen_by_callers(self, func: tir.Func) -> _Known:
        """Flat programs have lost the shapes of their parameters: those of the last run fit."""
        known = self._known
        if known is None or [p.name for p in known.scheduled.params] != [
            p.name for p in func.params
        ]:
            return _Known(func, func)
        return known

    def _emit(self, func: tir.Func, lowered: Lowered) -> str:
        from tilewright.llvm.emit import emit
        from tilewright.llvm.interface import Interface

        known = self._seen_by_callers(func)
        pairs = in_place(lowered.func) if self.of_model else ()
        packed = self.constants if self.of_model else None
        about = known.updated, packed, pairs
        interface = Interface.of(known.program, known.scheduled, lowered, *about)
        self._interface = interface
        shared = {number for pair in pairs for number in pair}
        return interface.as_comment() + emit(lowered, self.target, shared)

    def _assembly(self, text: str) -> str:
        from tilewright.llvm.machine import assembly_of

        return assembly_of(text, self.target)

    def _object(self, text: str) -> bytes:
        from tilewright.llvm.machine import object_of

        return object_of(text, self.target)

    def _callable(self, text: str) -> Interface:
        """The interface of a kernel that can be called with arrays, on this machine."""
        from tilewright.llvm.interface import Interface

        interface = Interface.of_text(text)
        interface.require_callable()
        self.target.require_runs_on(Target.host())
        return interface

    def _kernel(self, interface: Interface, code: bytes) -> Kernel:
        from tilewright.llvm.link import link

        linked = link([code])
        image, about = Image.from_bytes(linked.code), (interface.params, interface.size_names)
        made = code_of(interface, linked.symbols)
        return Kernel.of_code(image, made, *about, interface.name, self.threads, self.report)


def code_of(interface: Interface, symbols: Mapping[str, int]) -> KernelCode:
    """A kernel as it is called; `symbols` says where functions are in the image."""
    known = interface.has_known_scratch
    return KernelCode(
        interface.symbol,
        symbols[interface.symbol],
        interface.parallel,
        interface.shared_bytes or 0 if known else 0,
        interface.local_bytes or 0 if known else 0,
        -1 if known else symbols[interface.scratch_symbol],
    )


def _read_program(stage: str, text: str) -> tir.Func:
    """The program of a stage from its text, which may have been edited: checked like a new one."""
    func = parse(text)
    if stage in LOWERING_STAGES:
        return verify(func, Level.LOWERED if stage == LOWERING_STAGES[-1] else Level.LOOPS)
    validate(verify(func))
    return func


def _read_llvm(text: str) -> str:
    from tilewright.llvm.machine import require_accepted

    require_accepted(text)
    return text


def _leads_to(start: str, until: Stage) -> bool:
    """Is `until` the stage `start`, or made from it?"""
    if start == until.name:
        return True
    return bool(until.source) and _leads_to(start, stage_named(until.source, KERNEL_STAGES))
