"""The stages of one kernel as texts: trace, scheduled program, flat loops, LLVM.

Nothing here compiles machine code. What raises an error instead has that as its text: which error
a program ends in is a part of what the compiler does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from replay.entry_points import Missing, entry
from replay.folder import Stages

__all__ = ["KERNEL_STAGES", "STAGES", "add_failure", "kernel_stages", "lowered_text"]
__all__ += ["scheduled_texts"]

KERNEL_STAGES: Final = ("trace", "scheduled", "lowered", "llvm")
STAGES: Final = ("program", "graph", "steps", *KERNEL_STAGES)
"""All stages in order: that of a program that cannot be built, those of models, of kernels."""


def kernel_stages(
    func: Any,
    target: Any,
    threads: int,
    constants: Iterable[str],
    known: dict[str, Stages],
) -> Stages:
    """The stages of a program; `known` keeps the later ones by the text of the scheduled program.

    Schedules for one and for eight threads are often equal, and lowering takes most of the time.
    """
    stages: Stages = {}
    try:
        schedule = entry("draft")(func, target, threads, constants)
        stages |= scheduled_texts(schedule)
        if stages["scheduled"] not in known:
            known[stages["scheduled"]] = _lowered_stages(schedule.func, target)
        stages |= known[stages["scheduled"]]
    except Missing:
        pass  # said once for the whole recording
    except Exception as problem:  # noqa: BLE001  (whatever it is, it is recorded)
        add_failure(stages, problem)
    return stages


def _lowered_stages(scheduled: Any, target: Any) -> Stages:
    later: Stages = {}
    try:
        lowered = entry("lower")(scheduled, target)
        later["lowered"] = lowered_text(lowered)
        later["llvm"] = entry("emit")(lowered, target)
    except Missing:
        pass
    except Exception as problem:  # noqa: BLE001
        add_failure(later, problem, KERNEL_STAGES[2:])
    return later


def scheduled_texts(schedule: Any) -> Stages:
    """The trace with remarks, and the program that it makes."""
    remarks = [f"# {remark}" for remark in schedule.remarks]
    trace = "\n".join([schedule.trace.as_python(), *remarks])
    return {"trace": trace, "scheduled": str(schedule.func)}


def lowered_text(lowered: Any) -> str:
    """Flat loops, and what code generation is told besides."""
    places: Mapping[str, Any] = {"shared": lowered.shared, "local": lowered.local}
    lines = [
        f"# {kind} {buffer.name} at {offset}"
        for kind, offsets in places.items()
        for buffer, offset in offsets.items()
    ]
    lines.append(f"# shared bytes {lowered.shared_bytes}, local bytes {lowered.local_bytes}")
    lines.append(f"# sizes {[size.name for size in lowered.sizes]}, parallel {lowered.parallel}")
    lines += [f"# {remark}" for remark in lowered.remarks]
    return "\n".join([*lines, str(lowered.func)])


def add_failure(
    stages: Stages, problem: BaseException, order: tuple[str, ...] = KERNEL_STAGES
) -> None:
    """An error as the text of the stage that it took the place of: its type and code.

    Errors without a code say more: nothing else tells them apart.
    """
    code = getattr(getattr(problem, "code", None), "id", None)
    kind = type(problem).__name__
    text = f"raised {kind} {code}" if code else f"raised {kind}: {problem}"
    stages[next((s for s in order if s not in stages), order[-1])] = text
