"""What a machine costs: the one value that every cost of the compiler asks.

Rates are per cycle of one core, times in cycles, sizes in bytes. A model has one of three sources,
each better than the one before:

* nominal: from the table of processors (`known.py`) and what is typical of its kind (this module);
* calibrated: measured by small programs on the machine at hand (`tilewright.calibration`);
* fitted: corrected by tuning records.

A recipe or the choice of layouts has no number of its own that a machine could change: what a
figure means stands here, beside its unit. The model is part of the key of everything that is
compiled (`digest`).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

from tilewright.errors import Code, TargetError
from tilewright.target.costs import (
    AttentionCosts,
    ConvolutionCosts,
    CopyCosts,
    InstructionCosts,
    LoopCosts,
    TransformCosts,
    WindowCosts,
)

if TYPE_CHECKING:
    from tilewright.target.description import Target

__all__ = ["PARTS", "Level", "MachineModel", "nominal", "unusable_model"]

T010 = Code("T010", "a machine model cannot be used: {problem}")

PARTS: Final = {
    "attention": AttentionCosts,
    "transforms": TransformCosts,
    "convolutions": ConvolutionCosts,
    "windows": WindowCosts,
    "copies": CopyCosts,
    "instructions": InstructionCosts,
    "loops": LoopCosts,
}

NOMINAL, CALIBRATED, FITTED = "nominal", "calibrated", "fitted"
SOURCES: Final = (NOMINAL, CALIBRATED, FITTED)


@dataclass(frozen=True, slots=True)
class Level:
    """A level of memory as one core sees it."""

    name: str
    size_bytes: int
    """What one core may count on when all of them are busy; 0 for main memory, which has no end."""
    ways: int
    line_bytes: int
    read: float
    """Bytes per cycle that one core reads, alone."""
    read_all: float
    """The same while all cores do so: what remains for each of them."""
    exposed: float
    """Part of the time of a stream that arithmetic does not hide, prefetching by hardware
    included."""


@dataclass(frozen=True)
class MachineModel:
    """Rates, latencies and overheads of one core, and what threads pay to work together."""

    source: str
    ghz: float
    fma_per_cycle: float
    """Full vectors of f32 multiply-adds."""
    fma_latency: float
    element_loads: float
    """Loads per cycle of single elements, broadcast to a vector."""
    vector_loads: float
    """Loads per cycle of full vectors from the first cache."""
    vector_stores: float
    levels: tuple[Level, ...]
    """From the first cache to main memory, which is the last."""
    page_bytes: int
    conflict_cycles: float
    """Lines of one set of the first cache, in turns: each step costs this times the square of their
    number beyond the ways."""
    fetched_exposed: float
    """As `Level.exposed`, of what the program asks for ahead of time."""
    refill_exposed: float
    """As `Level.exposed`, of what every register tile reads again from the second cache."""
    near_share: float
    """Part of the second cache that operands may fill: results and code live there, too."""
    scattered: float
    """How much slower than a stream short rows far apart are updated in memory."""
    tile_cycles: float
    """To start and leave the loop of a register tile: a mispredicted branch, addresses."""
    barrier_cycles: float
    """Work of one thread from which on waking others pays."""
    spare_share: float
    """Weight of arithmetic that memory hides: of two points that wait alike, the idler is
    better."""
    attention: AttentionCosts = field(default_factory=AttentionCosts)
    transforms: TransformCosts = field(default_factory=TransformCosts)
    convolutions: ConvolutionCosts = field(default_factory=ConvolutionCosts)
    windows: WindowCosts = field(default_factory=WindowCosts)
    copies: CopyCosts = field(default_factory=CopyCosts)
    instructions: InstructionCosts = field(default_factory=InstructionCosts)
    loops: LoopCosts = field(default_factory=LoopCosts)

    @property
    def memory(self) -> Level:
        """Main memory."""
        return self.levels[-1]

    def level(self, number: int) -> Level:
        """The cache of this level; main memory stands in for one that does not exist."""
        return self.levels[min(number, len(self.levels)) - 1]

    def home_of(self, size_bytes: float) -> Level:
        """The fastest level that holds so much, beside as much of something else."""
        caches = self.levels[:-1]
        return next((c for c in caches if size_bytes <= 0.5 * c.size_bytes), self.memory)

    def conflicts(self, pitch_bytes: int, most: int) -> list[float]:
        """Cycles of a step that reads one element of each of 0, 1, … `most` rows so far apart.

        Rows whose distance is a multiple of the size of a way share one set of the first cache, and
        others a few: what the ways do not hold comes from the second cache, again in every step.
        A distance of 0 is not known, and taken to do no harm.
        """
        if not pitch_bytes:
            return [0.0] * (most + 1)
        first = self.levels[0]
        sets = max(1, first.size_bytes // (first.line_bytes * first.ways))
        counts: dict[int, int] = {}
        cycles, found = 0.0, [0.0]
        for row in range(most):
            place = row * pitch_bytes // first.line_bytes % sets
            beyond = max(0, counts.get(place, 0) - first.ways)
            counts[place] = counts.get(place, 0) + 1
            more = max(0, counts[place] - first.ways)
            cycles += self.conflict_cycles * (more**2 - beyond**2)
            found.append(cycles)
        return found

    @cached_property
    def digest(self) -> str:
        """16 hex digits that equal models share."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`; T010 on anything else."""
        try:
            values = {f.name: data[f.name] for f in fields(cls)}
            values["levels"] = tuple(Level(**item) for item in data["levels"])
            values |= {name: kind(**data[name]) for name, kind in PARTS.items()}
        except (KeyError, TypeError) as problem:
            missing = f"no entry {problem}" if isinstance(problem, KeyError) else problem
            raise unusable_model(missing) from None
        model = cls(**values)
        model._require_sensible()
        return model

    def _require_sensible(self) -> None:
        if self.source not in SOURCES:
            raise unusable_model(f"its source is {self.source!r}, none of {', '.join(SOURCES)}")
        if len(self.levels) < 2:
            raise unusable_model("it has no cache, or no memory")
        numbers = {f.name: getattr(self, f.name) for f in fields(self)}
        del numbers["source"], numbers["levels"]
        for part in PARTS:
            own = asdict(numbers.pop(part))
            numbers |= {f"{part} {name}": value for name, value in own.items()}
        for level in self.levels:
            own = asdict(level)
            del own["name"], own["size_bytes"]
            numbers |= {f"{level.name} {name}": value for name, value in own.items()}
        may_be_zero = {"exposed", "refill_exposed", "fetched_exposed", "conflict_cycles"}
        for name, value in numbers.items():
            least = 0.0 if name.rpartition(" ")[2] in may_be_zero else 1e-9
            if type(value) not in (int, float) or not least <= value < math.inf:
                raise unusable_model(f"{name} is {value!r}")


def nominal(target: Target) -> MachineModel:
    """The model of a machine of which nothing was measured.

    Ports and caches are those of its row. What they do not say is typical: bytes per cycle of each
    level, how much of a stream prefetching hides, what a mispredicted branch costs.
    """
    core, vector = target.core, target.vector_bytes
    slots = max(1.0, vector / core.load_bytes)  # a port that is narrower takes several turns
    levels = tuple(
        Level(
            f"L{cache.level}",
            cache.share_bytes,
            cache.ways,
            cache.line_bytes,
            *_NOMINAL_READ[min(cache.level, 3)],
            _NOMINAL_EXPOSED[min(cache.level, 3)],
        )
        for cache in target.caches
    )
    line = target.cache(1).line_bytes
    memory = Level("DRAM", 0, 1, line, *_NOMINAL_READ[4], _NOMINAL_EXPOSED[4])
    return MachineModel(
        source=NOMINAL,
        ghz=target.frequency_ghz,
        fma_per_cycle=target.fma_per_cycle,
        fma_latency=core.fma_latency,
        element_loads=core.load_ports,
        vector_loads=core.load_ports / slots,
        vector_stores=core.store_ports / max(1.0, vector / core.store_bytes),
        levels=(*levels, memory),
        page_bytes=4096,
        conflict_cycles=0.3,
        fetched_exposed=0.1,
        refill_exposed=0.03,
        near_share=0.7,
        scattered=6.0,
        tile_cycles=24.0,
        barrier_cycles=15_000.0,
        spare_share=0.02,
        instructions=_instructions(target),
    )


def _instructions(target: Target) -> InstructionCosts:
    """Wide vectors pass through a divider in several turns, and through narrow ports as well."""
    usual, turns = InstructionCosts(), target.vector_bytes / 32
    return replace(
        usual,
        divide_cycles=usual.divide_cycles * turns,
        root_cycles=usual.root_cycles * turns,
        shuffle_half=max(0.5, min(1.0, target.core.fma_bytes / target.vector_bytes)),
    )


# Bytes per cycle of one core alone and of each of all, by level; 4 is main memory.
_NOMINAL_READ: Final = {1: (64.0, 64.0), 2: (24.0, 24.0), 3: (12.0, 12.0), 4: (6.0, 6.0)}
_NOMINAL_EXPOSED: Final = {1: 0.0, 2: 0.05, 3: 0.12, 4: 0.5}


def unusable_model(problem: object) -> TargetError:
    """T010, for what cannot be read or cannot be."""
    hint = "start from what `tilewright doctor --machine --json` writes, and change single entries"
    return TargetError(T010, {"problem": str(problem)}, hint=hint)
