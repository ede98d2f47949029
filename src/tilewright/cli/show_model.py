"""`tilewright show MODEL`: its graph, layouts, kernels with times and limits, and memory."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from tilewright.calibration import with_machine_model
from tilewright.cli.models import is_compiled, require_file
from tilewright.cli.output import line, paragraph, say, say_json, screen_width
from tilewright.cli.progress import ProgressLine
from tilewright.cli.show_kernel import described
from tilewright.cli.show_kernels import arranged, kernel_rows, kernels_text, measured_host
from tilewright.cli.show_layouts import layouts_text
from tilewright.cli.show_memory import memory_facts, memory_text
from tilewright.cli.show_stages import (
    is_about_kernels,
    is_about_stages,
    model_at_stage,
    print_kernels,
    print_stage,
    print_times,
)
from tilewright.cli.writing import require_writable, written_file
from tilewright.errors import Code, UserError
from tilewright.feeds.first_run import FirstRun, first_run
from tilewright.feeds.inputs import values_of
from tilewright.layouts.show import Overview, overview
from tilewright.model.compilation import Chosen, Compilation, NotCompiled, Unsettled
from tilewright.model.compile_arguments import schedules_of
from tilewright.model.compiler import (
    ACCURACIES,
    AUTO,
    Compiling,
    choose_layouts,
    compile_parts,
    require_layouts,
)
from tilewright.model.info import TensorInfo
from tilewright.model.limits import Limits, step_times
from tilewright.model.module import Module, load_module
from tilewright.model.settled import SettledModule, settled_values
from tilewright.pipeline.model import PlannedModel
from tilewright.runtime import default_threads
from tilewright.runtime.cache import default_caches
from tilewright.runtime.profile import Profile
from tilewright.shown import counted, shown
from tilewright.target import Target
from tilewright.unsupported import Unsupported

if TYPE_CHECKING:
    import onnx

    from tilewright.frontend.onnx.settled import Settled
    from tilewright.model.sources import Source

__all__ = ["show_model"]

K046 = Code("K046", "`{model}` cannot show {what}: {reason}")

PROFILE_SECONDS: Final = 1.0
MIN_PROFILES: Final = 3
MAX_PROFILES: Final = 50

Made = TypeVar("Made", Chosen, Compilation)


def show_model(arguments: argparse.Namespace) -> int:
    """Print what was asked for; without a wish, kernels and memory."""
    path = Path(arguments.program)
    require_file(path)
    source: str | Path | onnx.ModelProto = path
    _trace_file(arguments)
    if is_compiled(path):
        module = load_module(path, threads=arguments.threads)
        if not isinstance(module, SettledModule):
            if is_about_stages(arguments):
                raise _unknown(module.name, "its stages")
            return _Shown(module, None, arguments).print()
        source = module.source.model
    given = values_of(arguments.settle)
    source, settled = settled_values(source, given) if given else (source, None)
    # As `tw.compile` does: what is shown is what is compiled.
    target, threads = with_machine_model(Target.named(arguments.target)), arguments.threads
    layouts = arguments.layouts or AUTO
    require_layouts(layouts)
    if _is_about_layouts_alone(arguments):
        with ProgressLine() as progress:
            chosen = choose_layouts(
                source, target, threads, progress.compiling, layouts=layouts, settled=settled
            )
        if isinstance(chosen, Unsettled):
            return _print_unsettled(chosen, arguments)
        return _print_layouts(_compiled(chosen, path), arguments)
    caches = None if arguments.no_cache else default_caches()
    schedules = schedules_of(arguments.database, target, threads)
    if is_about_stages(arguments):
        how = Compiling(target, threads, ACCURACIES[0], layouts, caches, schedules=schedules)
        return _print_stages(source, how, settled, arguments)
    with ProgressLine() as progress:
        parts = compile_parts(
            source,
            target,
            threads,
            caches,
            progress.compiling,
            layouts=layouts,
            settled=settled,
            schedules=schedules,
        )
    if isinstance(parts, Unsettled):
        return _print_unsettled(parts, arguments)
    made = _compiled(parts, path)
    target.require_runs_on(Target.host())
    return _Shown(made.module(), made, arguments).print()


def _print_stages(
    source: Source, how: Compiling, settled: Settled | None, arguments: argparse.Namespace
) -> int:
    """A stage of the model, or of its kernels."""
    artefact, report = model_at_stage(source, how, settled, arguments)
    value = artefact.value
    if isinstance(value, Unsettled):
        return _print_unsettled(value, arguments)
    if isinstance(value, NotCompiled):
        raise _without_kernels(value, Path(arguments.program))
    if not is_about_kernels(arguments):
        return print_stage(artefact, report, arguments)
    assert isinstance(value, PlannedModel)
    show = print_times if arguments.measure else print_kernels
    return show(value, how, arguments)


def _compiled(made: Made | NotCompiled, path: Path) -> Made:
    """What has kernels; an error for a model without."""
    if isinstance(made, NotCompiled):
        raise _without_kernels(made, path)
    return made


def _without_kernels(made: NotCompiled, path: Path) -> UserError:
    reason = f"it runs by reference as a whole, because {made.model.reason}"
    facts = {"model": path.name, "what": "its kernels", "reason": reason}
    return UserError(K046, facts, hint="run it as it is")


def _unknown(model: str, what: str) -> UserError:
    reason = "a compiled model holds kernels, not operators"
    return UserError(
        K046, {"model": model, "what": what, "reason": reason}, hint="show the ONNX file"
    )


def _print_unsettled(made: Unsettled, arguments: argparse.Namespace) -> int:
    """What is known of a model before the values of some inputs are."""
    module = made.module()
    head = {
        "name": module.name,
        "threads": module.threads,
        "inputs": [info.to_dict() for info in module.inputs],
        "outputs": [info.to_dict() for info in module.outputs],
        "settled": list(module.settled),
        "by_reference": [],
    }
    if arguments.json:
        say_json({"model": head})
    else:
        say(_head_text(head, ()))
    return 0


def _is_about_layouts_alone(arguments: argparse.Namespace) -> bool:
    """Whether no kernel has to be compiled for what is asked."""
    more = (arguments.graph, arguments.kernels, arguments.memory, arguments.until is not None)
    return arguments.layouts is not None and arguments.trace == "draft" and not any(more)


def _print_layouts(chosen: Chosen, arguments: argparse.Namespace) -> int:
    """Layouts, for whatever machine: nothing is compiled or run."""
    graph = chosen.graph
    pairs = zip(graph.output_names, graph.outputs, strict=True)
    head = {
        "name": graph.name,
        "threads": arguments.threads or default_threads(),
        "inputs": [described(value.name, value).to_dict() for value in graph.inputs],
        "outputs": [described(name, value).to_dict() for name, value in pairs],
        "by_reference": [node.to_dict() for node in chosen.about.by_reference],
    }
    layouts = _overview(chosen)
    if arguments.json:
        say_json({"model": head, "layouts": layouts.to_dict()})
    else:
        text = _head_text(head, chosen.about.by_reference)
        say(f"{text}\n\n{layouts_text(layouts, screen_width())}")
    return 0


def _overview(chosen: Chosen) -> Overview:
    choice = chosen.choice
    return overview(chosen.graph, chosen.settings, choice.sites, exact=choice.exact)


def _head_text(head: Mapping[str, Any], by_reference: Iterable[Unsupported]) -> str:
    lines = [f"{shown(head['name'])}, {counted(head['threads'], 'thread')}"]
    for kind in ("input", "output"):
        infos = map(TensorInfo.from_dict, head[f"{kind}s"])
        lines += [paragraph(line(info), f"  {kind:<6}  ", " " * 10) for info in infos]
    if "shapes" in head:
        shapes = ", ".join(f"{shown(name)} {shape}" for name, shape in head["shapes"].items())
        lines.append(paragraph(shapes, "  shown for ", " " * 4))
    if head.get("about_sizes"):
        lines.append(paragraph(head["about_sizes"], "  ", " " * 4))
    for name in map(shown, head.get("settled", ())):
        text = f"settled `{name}`: compiled for each value; give one with `--settle {name}=…`"
        lines.append(paragraph(text, "  ", " " * 4))
    lines += [paragraph(node, "  by reference: ", " " * 4) for node in by_reference]
    return "\n".join(lines)


class _Shown:
    """One model, its parts made when they are asked for."""

    def __init__(
        self, module: Module, made: Compilation | None, arguments: argparse.Namespace
    ) -> None:
        self.module, self.made, self.arguments = module, made, arguments
        self.program = module.executable.program

    @cached_property
    def first(self) -> FirstRun:
        """A run, which says for which sizes there are times and memory."""
        given = self.arguments
        return first_run(self.module, given.input, given.size, given.seed)

    def print(self) -> int:
        """Everything that was asked for, as text or as JSON."""
        parts = ("graph", "layouts", "kernels", "memory")
        wishes = {name: bool(getattr(self.arguments, name)) for name in parts}
        if not any(wishes.values()):
            wishes |= {"kernels": True, "memory": True}
        trace = _trace_file(self.arguments)
        is_run = wishes["kernels"] or wishes["memory"] or trace is not None
        facts: dict[str, Any] = {"model": self._head(is_run=is_run)}
        texts = [_head_text(facts["model"], self.module.by_reference)]
        if wishes["graph"]:
            facts["graph"] = str(self._compilation("its graph").graph)
            texts.append(facts["graph"])
        if wishes["layouts"]:
            layouts = _overview(self._compilation("its layouts").chosen)
            facts["layouts"] = layouts.to_dict()
            texts.append(layouts_text(layouts, screen_width()))
        if wishes["kernels"] or trace is not None:
            profiles = self._profiles()
            if trace is not None:
                _write_trace(trace, profiles[-1])
        if wishes["kernels"]:
            text, found = self._kernels(profiles)
            facts |= found
            texts.append(text)
        if wishes["memory"]:
            facts["memory"] = memory_facts(self.module, self.first.feeds)
            texts.append(memory_text(facts["memory"]))
        if self.arguments.json:
            say_json(facts)
        else:
            say("\n\n".join(texts))
        return 0

    def _head(self, *, is_run: bool) -> dict[str, Any]:
        head = {
            "name": self.module.name,
            "threads": self.module.threads,
            "inputs": [info.to_dict() for info in self.module.inputs],
            "outputs": [info.to_dict() for info in self.module.outputs],
            "by_reference": [node.to_dict() for node in self.module.by_reference],
        }
        if not is_run:
            return head
        shapes = {name: list(np.shape(array)) for name, array in self.first.feeds.items()}
        return {**head, "shapes": shapes, **self.first.facts(), "about_sizes": self.first.text}

    def _compilation(self, what: str) -> Compilation:
        if self.made is None:
            raise _unknown(self.module.name, what)
        return self.made

    def _profiles(self) -> list[Profile]:
        feeds = self.first.feeds
        end = time.monotonic() + PROFILE_SECONDS
        profiles: list[Profile] = []
        while len(profiles) < MIN_PROFILES or (
            time.monotonic() < end and len(profiles) < MAX_PROFILES
        ):
            profiles.append(self.module.profile(feeds))
        return profiles

    def _kernels(self, profiles: list[Profile]) -> tuple[str, dict[str, Any]]:
        with ProgressLine() as progress:
            progress.say("measuring the machine")
            limits = Limits(measured_host(), self.module.threads)
        every = kernel_rows(self.program, step_times(self.program, profiles), limits)
        asked = self.arguments
        rows = arranged(every, asked.by, asked.sort, asked.top)
        statistic = {"statistic": "median", "runs": len(profiles)}
        total = sum(row["time_s"] for row in every)
        facts = {"profile": {**statistic, "time_s": total}, "kernels": rows}
        return kernels_text(every, rows, asked.by, len(profiles)), facts


def _trace_file(arguments: argparse.Namespace) -> Path | None:
    """Where a Chrome trace goes, if one is wanted; refused at once if no file can be there."""
    if arguments.trace in {"draft", "none"}:
        return None
    path = Path(arguments.trace)
    require_writable(path)
    return path


def _write_trace(path: Path, profile: Profile) -> None:
    with written_file(path) as file:
        file.write(json.dumps(profile.chrome_trace()).encode())
