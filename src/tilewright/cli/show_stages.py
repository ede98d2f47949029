"""`tilewright show MODEL --until STAGE`: a model, or its kernels, at any stage of the path."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tilewright.cli.output import say, say_json
from tilewright.cli.progress import ProgressLine
from tilewright.cli.show_kernel import kernel_title, measured, measured_text
from tilewright.cli.writing import stage_writer
from tilewright.errors import Code, UserError
from tilewright.model.compiler import Compiling
from tilewright.model.kernels import KernelTask, pipeline_of
from tilewright.model.listing import labels_of
from tilewright.pipeline import KERNEL_STAGES, MODEL_STAGES, Artefact, ModelPipeline, Report
from tilewright.pipeline.model import PlannedModel
from tilewright.pipeline.stage import stage_named
from tilewright.schedule.points import decision_data, decision_text

if TYPE_CHECKING:
    from tilewright.frontend.onnx.settled import Settled
    from tilewright.model.kernel_plan import Planned
    from tilewright.model.sources import Source
    from tilewright.schedule.recipes.recipe import Decision

__all__ = ["is_about_kernels", "is_about_stages", "model_at_stage", "print_kernels"]
__all__ += ["print_stage", "print_times"]

_COMMENT = {"llvm": ";"}
"""How a comment begins at a stage that does not know `#`: what is printed can be read again."""

K047 = Code("K047", "`{model}` has no kernel `{kernel}`")


def is_about_stages(arguments: argparse.Namespace) -> bool:
    """Whether a stage of the path is asked for, and not what runs at its end."""
    asked = arguments.until, arguments.folder, arguments.kernel
    return arguments.measure or any(wish is not None for wish in asked)


def is_about_kernels(arguments: argparse.Namespace) -> bool:
    """Whether that is a stage of single kernels; K001 if there is none of the name."""
    if arguments.until is None:
        return arguments.measure or arguments.kernel is not None
    stage = stage_named(arguments.until, (*MODEL_STAGES, *KERNEL_STAGES))
    return stage in KERNEL_STAGES


def model_at_stage(
    source: Source, how: Compiling, settled: Settled | None, arguments: argparse.Namespace
) -> tuple[Artefact, Report]:
    """What a model is at the stage that was asked for; with kernels, at that of its plan."""
    until = "plan" if is_about_kernels(arguments) else arguments.until or "link"
    observers = [stage_writer(arguments.folder, MODEL_STAGES)] if arguments.folder else []
    with ProgressLine() as progress:
        path = ModelPipeline(how, progress.compiling, settled, observers)
        return path.run(source, until), path.report


def print_stage(artefact: Artefact, report: Report, arguments: argparse.Namespace) -> int:
    """The text of a stage, unless it is in a file now."""
    text = None if arguments.folder else artefact.text
    if arguments.json:
        times = {"time_s": report.seconds} if arguments.times else {}
        say_json({"stage": artefact.stage, "text": text, **times})
        return 0
    if text is not None:
        say(text)
    if arguments.times:
        say(f"\n{report}")
    return 0


def print_kernels(model: PlannedModel, how: Compiling, arguments: argparse.Namespace) -> int:
    """Kernels of a model at a stage of their own path."""
    planned, until = model.planned, arguments.until or "scheduled"
    every = labels_of(planned)
    kernels = []
    for number, task in _wanted(planned, arguments.kernel).items():
        labels = list(every[number])
        text, decisions = _text(number, task, how, until, arguments)
        facts = [decision_data(own, how.target.machine) for own in decisions]
        kernels.append({"kernel": number, "labels": labels, "decisions": facts, "text": text})
        if not arguments.json and text is not None:
            notes = [decision_text(own, how.target.machine) for own in decisions]
            lines = [kernel_title(number, labels), *("\n".join(notes).splitlines())]
            mark = _COMMENT.get(until, "#")
            say("".join(f"{mark} {line}\n" for line in lines) + f"{text}\n")
    if arguments.json:
        say_json({"stage": until, "kernels": kernels})
    return 0


def print_times(model: PlannedModel, how: Compiling, arguments: argparse.Namespace) -> int:
    """How long kernels of a model take, each alone."""
    planned, kernels = model.planned, []
    every = labels_of(planned)
    for number in _wanted(planned, arguments.kernel):
        facts = measured(planned, number, every[number], how, arguments)
        kernels.append(facts)
        if not arguments.json:
            say(f"{measured_text(facts)}\n")
    if arguments.json:
        say_json({"kernels": kernels})
    return 0


def _text(
    number: int, task: KernelTask, how: Compiling, until: str, arguments: argparse.Namespace
) -> tuple[str | None, tuple[Decision, ...]]:
    """A kernel at a stage (None if it is in a file now), and what was decided for its groups."""
    folder = arguments.folder
    observers = [stage_writer(folder / f"kernel_{number}", KERNEL_STAGES)] if folder else []
    path = pipeline_of(task, how.target, how.schedules, observers)
    artefact = path.run(task.program.with_fields(name=f"kernel_{number}"), until)
    return None if folder else artefact.text, path.report.decisions


def _wanted(planned: Planned, wanted: int | None) -> dict[int, KernelTask]:
    """The kernels by number; all of them, or the one that is wanted."""
    numbered = dict(enumerate(planned.kernels))
    if wanted is None:
        return numbered
    if wanted not in numbered:
        facts = {"model": planned.graph.name, "kernel": wanted}
        raise UserError(K047, facts, hint=f"kernels have the numbers 0 to {len(numbered) - 1}")
    return {wanted: numbered[wanted]}
