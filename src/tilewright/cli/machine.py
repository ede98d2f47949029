"""The machine model as a table for people: figures, units, and what they mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

from tilewright.target import Level, MachineModel
from tilewright.target.machine import PARTS

__all__ = ["machine_table"]

_ROWS: Final = {
    "ghz": ("GHz", "at which a chain of additions runs"),
    "fma_per_cycle": ("vectors/cycle", "multiply-adds"),
    "fma_latency": ("cycles", "until a multiply-add can be used"),
    "element_loads": ("per cycle", "loads of single elements"),
    "vector_loads": ("per cycle", "loads of full vectors"),
    "vector_stores": ("per cycle", "stores of full vectors"),
    "page_bytes": ("bytes", "page"),
    "conflict_cycles": ("cycles", "by lines beyond the ways, squared"),
    "fetched_exposed": ("of the time", "that prefetched streams are not hidden"),
    "refill_exposed": ("of the time", "of refills from L2 that is not hidden"),
    "near_share": ("of L2", "that operands may fill"),
    "scattered": ("times", "the time of streams: short rows"),
    "tile_cycles": ("cycles", "to start and leave a register tile"),
    "barrier_cycles": ("cycles", "of work that threads are woken for"),
    "spare_share": ("of work", "counted although memory hides it"),
}


def machine_table(model: MachineModel) -> Iterator[str]:
    """Lines of at most 80 columns."""
    yield f"machine model: {model.source} (digest {model.digest})"
    for name, (unit, meaning) in _ROWS.items():
        yield f"  {name:<16}{getattr(model, name):>9.4g} {unit:<13} {meaning}"
    yield "  level     share     ways  read by one   of all each   not hidden"
    yield from map(_level, model.levels)
    for part in PARTS:
        yield f"  {part}: cycles, bytes per cycle, and factors"
        for name, value in asdict(getattr(model, part)).items():
            yield f"    {name:<22}{value:>9.4g}"


def _level(level: Level) -> str:
    size = f"{level.size_bytes >> 10} KiB" if level.size_bytes else "-"
    rates = f"{level.read:>7.3g} B/cycle{level.read_all:>7.3g} B/cycle"
    return f"  {level.name:<6}{size:>11}{level.ways:>7}{rates}{level.exposed:>9.3g}"
