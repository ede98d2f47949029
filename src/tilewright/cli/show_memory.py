"""`tilewright show MODEL --memory`: weights, code, and which buffers share the arena."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from tilewright.cli.models import bytes_text
from tilewright.cli.output import screen_width
from tilewright.cli.table import fitted
from tilewright.model.module import Module
from tilewright.runtime.program import Place, Program
from tilewright.runtime.sizes import constant, evaluate
from tilewright.shown import shown

__all__ = ["memory_facts", "memory_text"]

LARGEST: Final = 10
"""Buffers that are listed."""


def memory_facts(module: Module, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """What a model holds after a run with these arrays; bytes are numbers."""
    program = module.executable.program
    sizes = _sizes(program, feeds)
    buffers: list[dict[str, Any]] = []
    overwritten: list[dict[str, Any]] = []
    for buffer in program.buffers:
        size = evaluate(buffer.bytes, sizes) if buffer.segment == 0 else None
        facts: dict[str, Any] = {"name": buffer.name, "size_bytes": size}
        if buffer.place is Place.ARENA:
            buffers.append({**facts, "steps": [buffer.first, buffer.last]})
        elif buffer.place is Place.PART and buffer.offset == constant(0):
            parent = program.buffers[buffer.parent].name
            overwritten.append({**facts, "in_place_of": parent})
    total = sum(b["size_bytes"] or 0 for b in (*buffers, *overwritten))
    return {
        **asdict(module.memory()),
        "without_reuse_bytes": total,
        "buffers": buffers,
        "overwritten": overwritten,
    }


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


def memory_text(facts: Mapping[str, Any]) -> str:
    """Sums, and the largest buffers with what is written over them."""
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
    if overwritten:
        lines.insert(3, f"{'':<9}{len(overwritten)} of them overwritten in place")
    largest = sorted(facts["buffers"], key=lambda b: -(b["size_bytes"] or 0))[:LARGEST]
    rows = [["buffer", "size", "steps", "written over"]]
    for buffer in largest:
        size = "?" if buffer["size_bytes"] is None else bytes_text(buffer["size_bytes"])
        steps = f"{buffer['steps'][0]}–{buffer['steps'][1]}"
        below = [o["name"] for o in overwritten if o["in_place_of"] == buffer["name"]]
        rows.append([shown(buffer["name"]), size, steps, _listed(below)])
    least = {"written over": 12, "buffer": 16}
    table = [fitted(rows, 1, least, [], screen_width())] if largest else []
    return "\n".join(["memory", *lines, *table])


def _listed(names: list[str], most: int = 3) -> str:
    """The first few of some names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(shown, names[:most])) + more
