"""`tilewright show MODEL`: its graph, layouts, kernels with times and limits, and memory."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tilewright.cli.inputs import arrays_for, values_of
from tilewright.cli.models import aligned, bytes_text, require_file, time_text
from tilewright.cli.output import line, say, say_json
from tilewright.cli.progress import ProgressLine
from tilewright.cli.show_layouts import layouts_text
from tilewright.errors import Code, UserError
from tilewright.layouts.show import Overview, overview
from tilewright.llvm.calibrate import FmaPeak, Team, calibrated
from tilewright.llvm.probes import compile_probes
from tilewright.model.compiler import (
    AUTO,
    Chosen,
    Compilation,
    NotCompiled,
    Unsettled,
    choose_layouts,
    compile_parts,
    require_layouts,
)
from tilewright.model.exhaustion import told_as_too_large
from tilewright.model.kernels import KernelTask
from tilewright.model.limits import Limits, StepTime, step_times
from tilewright.model.module import Module, load_module
from tilewright.model.settled import SettledModule, settled_values
from tilewright.pipeline import Pipeline
from tilewright.runtime import default_threads
from tilewright.runtime.cache import default_caches
from tilewright.runtime.profile import Profile
from tilewright.runtime.program import Place, Program
from tilewright.runtime.sizes import constant, evaluate
from tilewright.shown import in_line, shown
from tilewright.target import Rate, Target
from tilewright.unsupported import Unsupported

if TYPE_CHECKING:
    import onnx

__all__ = ["show_model"]

K046 = Code("K046", "`{model}` cannot show {what}: {reason}")
K047 = Code("K047", "`{model}` has no kernel `{kernel}`")

PROFILE_SECONDS: Final = 1.0
MIN_PROFILES: Final = 3
MAX_PROFILES: Final = 50
LABEL_WIDTH: Final = 48

Made = TypeVar("Made", Chosen, Compilation)


def show_model(arguments: argparse.Namespace) -> int:
    """Print what was asked for; without a wish, kernels and memory."""
    path = Path(arguments.program)
    require_file(path)
    source: str | Path | onnx.ModelProto = path
    if path.suffix == ".tw":
        module = load_module(path, threads=arguments.threads)
        if not isinstance(module, SettledModule):
            return _Shown(module, None, arguments).print()
        source = module.source.model
    given = values_of(arguments.settle)
    source, settled = settled_values(source, given) if given else (source, None)
    target, threads = Target.named(arguments.target), arguments.threads
    layouts = arguments.layouts or AUTO
    require_layouts(layouts)
    if _is_about_layouts_alone(arguments):
        with ProgressLine() as progress, told_as_too_large(path):
            chosen = choose_layouts(
                source, target, threads, progress.compiling, layouts=layouts, settled=settled
            )
        if isinstance(chosen, Unsettled):
            return _print_unsettled(chosen, arguments)
        return _print_layouts(_compiled(chosen, path), arguments)
    caches = None if arguments.no_cache else default_caches()
    with ProgressLine() as progress:
        parts = compile_parts(
            source, target, threads, caches, progress.compiling, layouts=layouts, settled=settled
        )
    if isinstance(parts, Unsettled):
        return _print_unsettled(parts, arguments)
    made = _compiled(parts, path)
    if arguments.until is not None:
        return _print_stages(made, target, arguments)
    target.require_runs_on(Target.host())
    return _Shown(made.module(), made, arguments).print()


def _compiled(made: Made | NotCompiled, path: Path) -> Made:
    """What has kernels; an error for a model without."""
    if isinstance(made, NotCompiled):
        reason = f"it runs by reference as a whole, because {made.model.reason}"
        facts = {"model": path.name, "what": "its kernels", "reason": reason}
        raise UserError(K046, facts, hint="run it as it is")
    return made


def _print_unsettled(made: Unsettled, arguments: argparse.Namespace) -> int:
    """What is known of a model before the values of some inputs are."""
    module = made.module()
    head = {
        "name": module.name,
        "threads": module.threads,
        "inputs": [info.exact for info in module.inputs],
        "outputs": [info.exact for info in module.outputs],
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
        "inputs": [f"{value.name}: {value.type}" for value in graph.inputs],
        "outputs": [f"{name}: {value.type}" for name, value in pairs],
        "by_reference": [node.to_dict() for node in chosen.by_reference],
    }
    layouts = _overview(chosen)
    if arguments.json:
        say_json({"model": head, "layouts": layouts.to_dict()})
    else:
        say(f"{_head_text(head, chosen.by_reference)}\n\n{layouts_text(layouts)}")
    return 0


def _overview(chosen: Chosen) -> Overview:
    choice = chosen.choice
    return overview(chosen.graph, chosen.settings, choice.sites, exact=choice.exact)


def _head_text(head: Mapping[str, Any], by_reference: Iterable[Unsupported]) -> str:
    lines = [f"{shown(head['name'])}, {head['threads']} threads"]
    lines += [f"  input   {line(text)}" for text in head["inputs"]]
    lines += [f"  output  {line(text)}" for text in head["outputs"]]
    if "shapes" in head:
        shapes = ", ".join(f"{shown(name)} {shape}" for name, shape in head["shapes"].items())
        lines.append(f"  shown for {shapes}")
    for name in map(shown, head.get("settled", ())):
        lines.append(
            f"  settled `{name}`: compiled for each value; give one with `--settle {name}=…`"
        )
    lines += [f"  by reference: {node}" for node in by_reference]
    return "\n".join(lines)


def _print_stages(made: Compilation, target: Target, arguments: argparse.Namespace) -> int:
    """Kernels of a model at a stage of the path."""
    for number, task in _chosen(made, arguments.kernel).items():
        pipeline = Pipeline(target, threads=task.threads, constants=sorted(task.constants))
        program = task.program.with_fields(name=f"kernel_{number}")
        text = pipeline.run(program, arguments.until).text
        labels = ", ".join(map(shown, _labels(made.made.program, number)))
        say(f"# kernel {number}: {labels}\n{text}\n")
    return 0


def _chosen(made: Compilation, wanted: int | None) -> dict[int, KernelTask]:
    """The tasks of kernels by number; all of them, or the one that is wanted."""
    unique = {task.key: task for task in made.made.tasks}
    numbered = dict(enumerate(unique.values()))
    if wanted is None:
        return numbered
    if wanted not in numbered:
        facts = {"model": made.made.program.name, "kernel": wanted}
        raise UserError(K047, facts, hint=f"kernels have the numbers 0 to {len(numbered) - 1}")
    return {wanted: numbered[wanted]}


def _labels(program: Program, kernel: int) -> list[str]:
    found = [getattr(s, "label", "") for s in program.steps if getattr(s, "kernel", -1) == kernel]
    return list(dict.fromkeys(label for label in found if label))


class _Shown:
    """One model, its parts made when they are asked for."""

    def __init__(
        self, module: Module, made: Compilation | None, arguments: argparse.Namespace
    ) -> None:
        self.module, self.made, self.arguments = module, made, arguments
        self.program = module.executable.program
        self.feeds = arrays_for(module.inputs, arguments.input, arguments.size, arguments.seed)

    def print(self) -> int:
        """Everything that was asked for, as text or as JSON."""
        parts = ("graph", "layouts", "kernels", "memory")
        wishes = {name: bool(getattr(self.arguments, name)) for name in parts}
        if not any(wishes.values()):
            wishes |= {"kernels": True, "memory": True}
        facts: dict[str, Any] = {"model": self._head()}
        texts = [_head_text(facts["model"], self.module.by_reference)]
        if wishes["graph"]:
            facts["graph"] = str(self._compilation("its graph").graph)
            texts.append(facts["graph"])
        if wishes["layouts"]:
            layouts = _overview(self._compilation("its layouts").chosen)
            facts["layouts"] = layouts.to_dict()
            texts.append(layouts_text(layouts))
        if wishes["kernels"] or self.arguments.trace != "draft":
            profiles = self._profiles()
            self._write_trace(profiles[-1])
        if wishes["kernels"]:
            facts["kernels"] = self._kernels(profiles)
            texts.append(_kernels_text(facts["kernels"]))
        if wishes["memory"]:
            facts["memory"] = self._memory()
            texts.append(_memory_text(facts["memory"]))
        if self.arguments.json:
            say_json(facts)
        else:
            say("\n\n".join(texts))
        return 0

    def _head(self) -> dict[str, Any]:
        return {
            "name": self.module.name,
            "threads": self.module.threads,
            "inputs": [info.exact for info in self.module.inputs],
            "outputs": [info.exact for info in self.module.outputs],
            "shapes": {name: list(array.shape) for name, array in self.feeds.items()},
            "by_reference": [node.to_dict() for node in self.module.by_reference],
        }

    def _compilation(self, what: str) -> Compilation:
        if self.made is None:
            reason = "a compiled model holds kernels, not operators"
            facts = {"model": self.module.name, "what": what, "reason": reason}
            raise UserError(K046, facts, hint="show the ONNX file")
        return self.made

    def _profiles(self) -> list[Profile]:
        self.module.run(self.feeds)
        end = time.monotonic() + PROFILE_SECONDS
        profiles: list[Profile] = []
        while len(profiles) < MIN_PROFILES or (
            time.monotonic() < end and len(profiles) < MAX_PROFILES
        ):
            profiles.append(self.module.profile(self.feeds))
        return profiles

    def _write_trace(self, profile: Profile) -> None:
        if self.arguments.trace not in {"draft", "none"}:
            text = json.dumps(profile.chrome_trace())
            Path(self.arguments.trace).write_text(text, encoding="utf-8")

    def _kernels(self, profiles: list[Profile]) -> list[dict[str, Any]]:
        with ProgressLine() as progress:
            progress.say("measuring the machine")
            limits = Limits(_measured(), self.module.threads)
        return [self._row(step, limits) for step in step_times(self.program, profiles)]

    def _row(self, step: StepTime, limits: Limits) -> dict[str, Any]:
        row = asdict(step)
        row["parallel"] = step.parallel and self.module.threads > 1
        row["kernel"] = getattr(self.program.steps[step.step], "kernel", step.kernel)
        if step.flops or step.moved_bytes:
            limit = limits.of(step.flops, step.moved_bytes, parallel=step.parallel)
            share = limit.seconds / step.seconds if step.seconds else None
            row |= {"limit": limit.what, "share_of_limit": share}
        return row

    def _memory(self) -> dict[str, Any]:
        self.module.run(self.feeds)
        use = self.module.memory()
        sizes = _sizes(self.program, self.feeds)
        buffers: list[dict[str, Any]] = []
        overwritten: list[dict[str, Any]] = []
        for buffer in self.program.buffers:
            size = evaluate(buffer.bytes, sizes) if buffer.segment == 0 else None
            facts: dict[str, Any] = {"name": buffer.name, "bytes": size}
            if buffer.place is Place.ARENA:
                buffers.append({**facts, "steps": [buffer.first, buffer.last]})
            elif buffer.place is Place.PART and buffer.offset == constant(0):
                parent = self.program.buffers[buffer.parent].name
                overwritten.append({**facts, "in_place_of": parent})
        total = sum(b["bytes"] or 0 for b in (*buffers, *overwritten))
        return {
            **asdict(use),
            "without_reuse_bytes": total,
            "buffers": buffers,
            "overwritten": overwritten,
        }


def _measured() -> Target:
    """This machine with its rates; the arithmetic is measured again, as of now."""
    target = calibrated(Target.host())
    assert target.measured is not None
    known, probes = target.measured.fma_gflops, compile_probes(target)
    with Team(1) as one, Team(target.cores) as all_:
        now = [FmaPeak(target, probes, team).best() for team in (one, all_)]
    rate = Rate(max(known.one, now[0]), max(known.all, now[1]))
    return target.with_measured(replace(target.measured, fma_gflops=rate))


def _sizes(program: Program, feeds: Mapping[str, Any]) -> list[int]:
    """The sizes that inputs tell; those that only a run tells are zero."""
    sizes = [0] * len(program.sizes)
    for port in program.inputs:
        for dim, extent in zip(port.dims, feeds[port.name].shape, strict=True):
            if dim < 0:
                sizes[-1 - dim] = extent
    for number, size in enumerate(program.sizes):
        if size.value is not None and size.segment == 0:
            sizes[number] = evaluate(size.value, sizes)
    return sizes


def _kernels_text(rows: list[dict[str, Any]]) -> str:
    total = sum(row["seconds"] for row in rows) or 1.0
    lines = [["step", "kernel", "operators", "time", "of all", "GFLOP/s", "GB/s", "of limit", ""]]
    for row in rows:
        seconds = row["seconds"] or 1e-9
        share = row.get("share_of_limit")
        label = in_line(row["label"]) + (f" ×{row['times']}" if row["times"] > 1 else "")
        lines.append(
            [
                str(row["step"]),
                str(row["kernel"]),
                label if len(label) <= LABEL_WIDTH else f"{label[: LABEL_WIDTH - 1]}…",
                time_text(row["seconds"]),
                f"{seconds / total:.1%}",
                f"{row['flops'] / seconds / 1e9:.1f}" if row["flops"] else "-",
                f"{row['moved_bytes'] / seconds / 1e9:.1f}" if row["moved_bytes"] else "-",
                "-" if share is None else f"{share:.0%}",
                row.get("limit", ""),
            ]
        )
    flops = sum(row["flops"] for row in rows)
    known = [(row["share_of_limit"], row["seconds"]) for row in rows if row.get("share_of_limit")]
    best = sum(share * seconds for share, seconds in known)
    end = f"all: {time_text(total)}, {flops / 1e9:.3g} GFLOP, {flops / total / 1e9:.1f} GFLOP/s"
    return f"{aligned(lines, left=3)}\n{end}, {best / total:.0%} of the limit"


def _listed(names: list[str], most: int = 3) -> str:
    """The first few of some names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(shown, names[:most])) + more


def _memory_text(facts: dict[str, Any]) -> str:
    parts = {
        "weights": facts["weights_bytes"],
        "code": facts["image_bytes"],
        "arena": facts["arena_bytes"],
        "scratch": facts["scratch_bytes"],
    }
    lines = [f"{name:<9}{bytes_text(count)}" for name, count in parts.items()]
    whole = bytes_text(facts["without_reuse_bytes"])
    overwritten = facts["overwritten"]
    count = len(facts["buffers"]) + len(overwritten)
    lines[2] += f" for {count} buffers of {whole} altogether"
    lines[2] += f", {len(overwritten)} of them overwritten in place" if overwritten else ""
    largest = sorted(facts["buffers"], key=lambda b: -(b["bytes"] or 0))[:10]
    rows = [["buffer", "bytes", "steps", "written over"]]
    for buffer in largest:
        size = "?" if buffer["bytes"] is None else bytes_text(buffer["bytes"])
        steps = f"{buffer['steps'][0]}–{buffer['steps'][1]}"
        below = [o["name"] for o in overwritten if o["in_place_of"] == buffer["name"]]
        rows.append([shown(buffer["name"]), size, steps, _listed(below)])
    return "\n".join(["memory", *lines, *([aligned(rows)] if largest else [])])
