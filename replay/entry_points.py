"""What a recording calls of the compiler: few functions, by name.

A recording may be of another commit, whose `tilewright` is the one that is imported. Functions are
therefore looked up when they are called, in one or several places: where one has moved, its new
place is added behind the old one, where older commits have it. What is nowhere is missing, and said
with the recording.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

__all__ = ["ENTRY_POINTS", "Missing", "entry", "missing_entries", "place_of"]

ENTRY_POINTS: Final[dict[str, tuple[str, ...]]] = {
    "target": ("tilewright.target:Target",),
    "draft": ("tilewright.schedule.draft:draft",),
    "lower": ("tilewright.lower:lower",),
    "emit": ("tilewright.llvm.emit:emit",),
    "choose_layouts": ("tilewright.model.compiler:choose_layouts",),
    "assemble": ("tilewright.model.assemble:assemble",),
    "threads": ("tilewright.schedule.recipes.context:NOMINAL_THREADS",),
    "compile_task": ("tilewright.model.kernels:compile_task",),
    # What a recording puts itself in the place of, in the modules that call it.
    "assemble.compile_tasks": (
        "tilewright.model.assemble:compile_tasks",
        "tilewright.model.compile_kernels:compile_tasks",
    ),
    "assemble.link": ("tilewright.model.assemble:link",),
    "kernels.draft": ("tilewright.model.kernels:draft", "tilewright.schedule.source:draft"),
    "kernels.lower": ("tilewright.model.kernels:lower", "tilewright.pipeline.kernel:lower_from"),
    "kernels.emit": ("tilewright.model.kernels:emit", "tilewright.llvm.emit:emit"),
    "kernels.object_of": (
        "tilewright.model.kernels:object_of",
        "tilewright.llvm.machine:object_of",
    ),
}
"""Places as `module:attribute`."""


class Missing(Exception):  # noqa: N818  (a fact about another commit, not a mistake)
    """The `tilewright` that is recorded has no such function."""


def place_of(name: str) -> tuple[Any, str]:
    """The module in which an entry point is, and its name there."""
    for place in ENTRY_POINTS[name]:
        module, _, attribute = place.partition(":")
        try:
            found = importlib.import_module(module)
        except ModuleNotFoundError:
            continue
        if hasattr(found, attribute):
            return found, attribute
    raise Missing(f"{name}: there is no {' or '.join(ENTRY_POINTS[name])}")


def entry(name: str) -> Any:
    """An entry point; `Missing` if it is in none of its places."""
    module, attribute = place_of(name)
    return getattr(module, attribute)


def missing_entries() -> list[str]:
    """What is missing, each with where it was looked for."""
    found: list[str] = []
    for name in ENTRY_POINTS:
        try:
            place_of(name)
        except Missing as problem:
            found.append(str(problem))
    return found
