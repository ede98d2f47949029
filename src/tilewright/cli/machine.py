"""The machine model as a table for people: figures, units, where they are from, what they mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

from tilewright.target import Level, MachineModel
from tilewright.target.machine import PARTS

__all__ = ["machine_table"]

_ROWS: Final = {
    "ghz": ("GHz", "at which a chain of additions runs"),
    "fma_per_cycle": ("per cycle", "multiply-adds of full vectors"),
    "fma_latency": ("cycles", "until a multiply-add can be used"),
    "element_loads": ("per cycle", "loads of single elements"),
    "vector_loads": ("per cycle", "loads of full vectors"),
    "vector_stores": ("per cycle", "stores of full vectors"),
    "shuffles": ("per cycle", "vectors of lanes of two others"),
    "page_bytes": ("bytes", "page"),
    "conflict_cycles": ("cycles", "by lines beyond the ways, squared"),
    "fetched_exposed": ("of the time", "of fetched streams that is not hidden"),
    "refill_exposed": ("of the time", "of refills from L2 that is not hidden"),
    "near_share": ("of L2", "that operands may fill"),
    "kept_share": ("of half L3", "that streams beyond it find again"),
    "scattered": ("times", "the time of streams: short rows"),
    "tile_cycles": ("cycles", "to start and leave a register tile"),
    "barrier_cycles": ("cycles", "of work that threads are woken for"),
    "step_cycles": ("cycles", "to call a kernel"),
    "spare_share": ("of work", "counted although memory hides it"),
}


def machine_table(model: MachineModel) -> Iterator[str]:
    """Lines of at most 80 columns; an `m` marks what was measured, the rest is nominal."""
    yield f"machine model: {model.source} (digest {model.digest}; m: measured)"
    for name, (unit, meaning) in _ROWS.items():
        mark = _mark(model, name)
        yield f"  {name:<16}{getattr(model, name):>9.4g}{mark} {unit:<13}{meaning}"
    yield "  level     share     ways  read by one    of all each    not hidden"
    yield from (_level(model, level) for level in model.levels)
    yield "  multiply-adds     vectors/cycle   latency (cycles)"
    for vector in model.vectors:
        yield f"    {vector.name:<20}{_rate(model, vector.name)}"
    if model.instructions:
        yield "  tensor instruction     per cycle   latency  products  set-up (cycles)"
    for each in model.instructions:
        rest = f"{each.products:>8}{each.setup_cycles:>9.4g}"
        yield f"    {each.name:<20}{_rate(model, each.name)}{rest}"
    for part in PARTS:
        yield f"  {part}: cycles, bytes per cycle, and factors"
        for name, value in asdict(getattr(model, part)).items():
            yield f"    {name:<22}{value:>9.4g}{_mark(model, f'{part}.{name}')}".rstrip()


def _mark(model: MachineModel, name: str) -> str:
    return " m" if name in model.measured else "  "


def _rate(model: MachineModel, name: str) -> str:
    figures = (f"{name}.per_cycle", f"{name}.latency")
    return "".join(f"{model.figure(f):>9.3g}{_mark(model, f)}" for f in figures)


def _level(model: MachineModel, level: Level) -> str:
    size = f"{level.size_bytes >> 10} KiB" if level.size_bytes else "-"
    read, every, hidden = (
        f"{getattr(level, figure):>{width}.3g}{unit}{_mark(model, f'{level.name}.{figure}')}"
        for figure, width, unit in (
            ("read", 6, " B/cycle"),
            ("read_all", 6, " B/cycle"),
            ("exposed", 7, ""),
        )
    )
    return f"  {level.name:<6}{size:>11}{level.ways:>6} {read}{every}{hidden}".rstrip()
