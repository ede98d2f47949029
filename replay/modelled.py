"""A model up to the text of its kernels: the graph with its layouts, its steps, each kernel.

The compiler makes the kernels itself; its calls of `draft`, `lower` and `emit` are watched, and
neither LLVM nor the linker runs. So a kernel is recorded with the threads, constants and loops that
the model gives it, and the steps with the memory that the kernels ask for.
"""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

import onnx

from replay.entry_points import Missing, entry, place_of
from replay.folder import Stages
from replay.stages import add_failure, lowered_text, scheduled_texts

__all__ = ["model_stages"]

OWN_NAME: Final = re.compile(r"\bk[0-9a-f]{20}")
"""The name of a kernel is a hash of its program: one that differs would make all texts differ."""

SIZE_OP: Final = re.compile(r"<SizeOp\.(\w+): \d+>")


def model_stages(make: Callable[[], onnx.ModelProto], target: Any) -> dict[str, Stages]:
    """The stages of a model (under an empty name), and of its kernels by what they give."""
    stages: Stages = {}
    kernels = _Kernels(target)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nodes by reference are in the graph
        try:
            chosen = entry("choose_layouts")(make(), target, None, lambda _: None)
            if hasattr(chosen, "choice"):
                stages["graph"] = str(chosen.choice.graph)
                stages["steps"] = _steps_text(_assembled(chosen, target, kernels).program)
            else:
                stages["graph"] = f"not compiled: {type(chosen).__name__}"
        except Missing:
            pass  # said once for the whole recording
        except Exception as problem:  # noqa: BLE001  (whatever it is, it is recorded)
            add_failure(stages, problem, ("graph", "steps"))
    return {"": stages, **kernels.stages}


def _assembled(chosen: Any, target: Any, kernels: _Kernels) -> Any:
    """The model with kernels that have no code."""
    checks = {name: getattr(chosen, name) for name in ("equal", "guards") if hasattr(chosen, name)}
    if hasattr(chosen.choice, "groups"):
        checks["groups"] = chosen.choice.groups
    with _replaced(
        {
            "assemble.compile_tasks": kernels.compile_tasks,
            "assemble.link": lambda _: SimpleNamespace(code=b"", symbols=defaultdict(int)),
            "kernels.draft": kernels.watching("kernels.draft", scheduled_texts),
            "kernels.lower": kernels.watching("kernels.lower", _lowered),
            "kernels.emit": kernels.watching("kernels.emit", _emitted),
            "kernels.object_of": lambda *_: b"",
        }
    ):
        return entry("assemble")(chosen.choice.graph, target, entry("threads"), **checks)


@contextmanager
def _replaced(functions: dict[str, Callable[..., Any]]) -> Iterator[None]:
    with ExitStack() as stack:
        for name, function in functions.items():
            stack.enter_context(patch.object(*place_of(name), function))
        yield


class _Kernels:
    """Kernels in the making, one after another: what was seen of each."""

    def __init__(self, target: Any) -> None:
        self.target = target
        self.stages: dict[str, Stages] = {}
        self.current: Stages = {}

    def compile_tasks(self, tasks: Sequence[Any], *_: Any) -> dict[str, Any]:
        """Stands for the function of that name, which compiles several at once."""
        unique = {task.key: task for task in tasks}
        return {key: self._compiled(task) for key, task in unique.items()}

    def _compiled(self, task: Any) -> Any:
        self.current = self.stages.setdefault(self._name(task), {})
        try:
            return entry("compile_task")(task, self.target)
        except Exception as problem:
            add_failure(self.current, problem)
            raise

    def _name(self, task: Any) -> str:
        """Kernels are called after their last result, which is stable; a number tells equals."""
        name = str(task.params[-1].name)
        same = sum(known == name or known.startswith(f"{name}#") for known in self.stages)
        return f"{name}#{same + 1}" if same else name

    def watching(self, name: str, told: Callable[[Any], Stages]) -> Callable[..., Any]:
        """The function behind an entry point, with its results recorded."""
        function = entry(name)

        def watched(*args: Any, **options: Any) -> Any:
            made = function(*args, **options)
            seen = told(made)
            self.current |= {stage: OWN_NAME.sub("kernel", text) for stage, text in seen.items()}
            return made

        return watched


def _lowered(lowered: Any) -> Stages:
    return {"lowered": lowered_text(lowered)}


def _emitted(text: str) -> Stages:
    return {"llvm": text}


def _steps_text(program: Any) -> str:
    """A program of the runtime: sizes, buffers, kernels and steps, each in a line."""
    lines = [f"{program.name}, segments {program.segments}"]
    for part in ("inputs", "outputs", "sizes", "buffers", "kernels", "steps"):
        lines.append(f"{part}:")
        lines += [f"  {number}: {row}" for number, row in enumerate(getattr(program, part))]
    return SIZE_OP.sub(r"\1", OWN_NAME.sub("kernel", "\n".join(lines)))
