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
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import Code, TargetError
from tilewright.target.costs import (
    ArithmeticCosts,
    AttentionCosts,
    ContractionCosts,
    ConvolutionCosts,
    CopyCosts,
    LoopCosts,
    TransformCosts,
    WindowCosts,
)
from tilewright.target.rates import (
    InstructionRate,
    Level,
    VectorRate,
    instruction_rates,
    vector_rates,
)

if TYPE_CHECKING:
    from tilewright.target.description import Target

__all__ = ["PARTS", "Level", "MachineModel", "nominal", "unusable_model"]

T010 = Code("T010", "a machine model cannot be used: {problem}")

PARTS: Final = {
    "attention": AttentionCosts,
    "contractions": ContractionCosts,
    "transforms": TransformCosts,
    "convolutions": ConvolutionCosts,
    "windows": WindowCosts,
    "copies": CopyCosts,
    "arithmetic": ArithmeticCosts,
    "loops": LoopCosts,
}

NOMINAL, CALIBRATED, FITTED = "nominal", "calibrated", "fitted"
SOURCES: Final = (NOMINAL, CALIBRATED, FITTED)


_WORDS: Final = {"name", "dtype", "size_bytes"}
_MAY_BE_ZERO: Final = {"exposed", "refill_exposed", "fetched_exposed", "conflict_cycles"} | {
    "setup_cycles",
    "kept_share",
}


LISTS: Final = {"levels": Level, "vectors": VectorRate, "instructions": InstructionRate}
"""Parts of which there are several, each with a name."""


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
    shuffles: float
    """Per cycle: full vectors made of the lanes of two others."""
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
    kept_share: float
    """Part of half of the last cache in which a stream that is longer finds again what it read a
    turn ago: none where what was used least recently goes first."""
    scattered: float
    """How much slower than a stream short rows far apart are updated in memory."""
    tile_cycles: float
    """To start and leave the loop of a register tile: a mispredicted branch, addresses."""
    barrier_cycles: float
    """Work of one thread from which on waking others pays: threads meet twice, and read what
    another one has written."""
    step_cycles: float
    """To call a kernel: what a step of a model costs beside its work, on one thread."""
    spare_share: float
    """Weight of arithmetic that memory hides: of two points that wait alike, the idler is
    better."""
    vectors: tuple[VectorRate, ...] = ()
    """Multiply-adds by type and width."""
    instructions: tuple[InstructionRate, ...] = ()
    """Tensor instructions that there are."""
    measured: tuple[str, ...] = ()
    """Names of the figures that are not nominal: `fma_latency`, `L2.read`, `f32x8.per_cycle`."""
    attention: AttentionCosts = field(default_factory=AttentionCosts)
    contractions: ContractionCosts = field(default_factory=ContractionCosts)
    transforms: TransformCosts = field(default_factory=TransformCosts)
    convolutions: ConvolutionCosts = field(default_factory=ConvolutionCosts)
    windows: WindowCosts = field(default_factory=WindowCosts)
    copies: CopyCosts = field(default_factory=CopyCosts)
    arithmetic: ArithmeticCosts = field(default_factory=ArithmeticCosts)
    loops: LoopCosts = field(default_factory=LoopCosts)

    @property
    def memory(self) -> Level:
        """Main memory."""
        return self.levels[-1]

    def level(self, number: int) -> Level:
        """The cache of this level; main memory stands in for one that does not exist."""
        return self.levels[min(number, len(self.levels)) - 1]

    def home_of(self, size_bytes: float) -> Level:
        """The fastest level that holds so much, beside as much of something else.

        Of what exceeds all caches, the last one may still hold a part.
        """
        *caches, memory = self.levels
        for cache in caches:
            if size_bytes <= 0.5 * cache.size_bytes:
                return cache
        held = self.kept_share * 0.5 * caches[-1].size_bytes
        return memory.beside(caches[-1], held / size_bytes) if held else memory

    def least_stream_cycles(
        self, moved_bytes: float, threads: int = 1, *, all_read: bool = False
    ) -> float:
        """Below what so many bytes take: the nearest caches are full of them.

        `all_read`: these threads are all that the machine has. What a kernel reads was most often
        written just before. `home_of` is what it has to expect.
        """
        left, held, cycles = moved_bytes / threads, 0.0, 0.0
        for level in self.levels:
            part = left if level is self.memory else min(left, max(0.0, level.size_bytes - held))
            cycles += part / (level.read_all if all_read else level.read)
            left, held = left - part, max(held, level.size_bytes)
        return cycles

    def vector(self, dtype: str, vector_bytes: int) -> VectorRate | None:
        """Multiply-adds of a type in vectors of a width; None where there are none."""
        found = (v for v in self.vectors if (v.dtype, v.vector_bytes) == (dtype, vector_bytes))
        return next(found, None)

    @cached_property
    def half_width(self) -> float:
        """Part of the cycles of a full vector that one of half the width takes.

        Ports narrower than vectors take halves one after the other, shuffles like multiply-adds.
        """
        rates = sorted((v.vector_bytes, v.per_cycle) for v in self.vectors if v.dtype == "f32")
        halves = [whole / half for (_, half), (_, whole) in pairwise(rates)]
        return max(0.5, min(1.0, halves[-1])) if halves else 1.0

    def instruction(self, name: str) -> InstructionRate | None:
        """What a tensor instruction costs; None where it does not exist."""
        return next((i for i in self.instructions if i.name == name), None)

    def shared_by(self, threads: int) -> MachineModel:
        """The machine as each of so many threads sees it: others read at the same time."""
        return self if threads <= 1 else self._shared

    @cached_property
    def _shared(self) -> MachineModel:
        levels = tuple(replace(level, read=level.read_all) for level in self.levels)
        return replace(self, levels=levels)

    def conflicts(self, pitch_bytes: int, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Cycles of a step that reads one element of each of so many rows, so far apart.

        Rows whose distance is a multiple of the size of a way share one set of the first cache, and
        others a few: what the ways do not hold comes from the second cache, again in every step.
        A distance of 0 is not known, and taken to do no harm. More rows than two such caches have
        lines cost no more.
        """
        if not pitch_bytes or not rows.size:
            return np.zeros(rows.shape)
        first = self.levels[0]
        sets = max(1, first.size_bytes // (first.line_bytes * first.ways))
        most = min(int(rows.max()), 2 * sets * first.ways)
        return self._conflicts(pitch_bytes, most, sets)[np.minimum(rows, most)]

    def _conflicts(self, pitch_bytes: int, most: int, sets: int) -> NDArray[np.float64]:
        """The same for 0, 1, … `most` rows."""
        first = self.levels[0]
        places = np.arange(most) * (pitch_bytes % (sets * first.line_bytes)) // first.line_bytes
        order = np.argsort(places % sets, kind="stable")
        ordered = (places % sets)[order]
        before = np.empty(most, np.int64)  # rows in the set of each row, when it comes
        before[order] = np.arange(most) - np.searchsorted(ordered, ordered)
        beyond = np.maximum(0, np.stack([before, before + 1]) - first.ways) ** 2
        return np.concatenate([[0.0], self.conflict_cycles * np.cumsum(beyond[1] - beyond[0])])

    def usable(self, number: int, pitch_bytes: int, run_bytes: int) -> float:
        """The part of a cache that holds runs of so many bytes, so far apart.

        Runs whose distance is a multiple of a power of two meet in few sets.
        """
        level = self.level(number)
        sets = level.size_bytes // (level.line_bytes * level.ways)
        if not pitch_bytes or pitch_bytes % level.line_bytes or sets < 2:
            return 1.0
        places = sets // math.gcd(pitch_bytes // level.line_bytes, sets)
        return min(1.0, places * math.ceil(run_bytes / level.line_bytes) / sets)

    @cached_property
    def digest(self) -> str:
        """16 hex digits that equal models share."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def figure(self, name: str) -> float:
        """The figure of this name: `fma_latency`, `L2.read`, `transforms.serial`."""
        owner, _, own = name.rpartition(".")
        return float(getattr(self._owner(owner), own))

    def with_figures(self, values: Mapping[str, float], source: str) -> Self:
        """The same with other figures, which were measured."""
        changes: dict[str, dict[str, float]] = {}
        for name, value in values.items():
            owner, _, own = name.rpartition(".")
            changes.setdefault(owner, {})[own] = value
        new: dict[str, Any] = {**changes.pop("", {})}
        new |= {n: replace(self._owner(n), **changes.pop(n)) for n in PARTS if n in changes}
        for group in ("levels", "vectors", "instructions"):
            items = getattr(self, group)
            new[group] = tuple(replace(item, **changes.get(item.name, {})) for item in items)
        return replace(self, **new, source=source, measured=tuple(sorted(values)))

    def _owner(self, name: str) -> Any:
        """What has figures under this name: the model, a part, a level, an instruction."""
        if not name or name in PARTS:
            return getattr(self, name) if name else self
        items: list[Any] = [*self.levels, *self.vectors, *self.instructions]
        return next(item for item in items if item.name == name)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`; T010 on anything else."""
        try:
            values = {f.name: data[f.name] for f in fields(cls)}
            for name, item_kind in LISTS.items():
                values[name] = tuple(item_kind(**item) for item in data[name])
            values["measured"] = tuple(map(str, data["measured"]))
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
        del numbers["source"], numbers["measured"]
        for part in PARTS:
            own = asdict(numbers.pop(part))
            numbers |= {f"{part} {name}": value for name, value in own.items()}
        for group in LISTS:
            for item in numbers.pop(group):
                own = {n: v for n, v in asdict(item).items() if n not in _WORDS}
                numbers |= {f"{item.name} {name}": value for name, value in own.items()}
        for name, value in numbers.items():
            least = 0.0 if name.rpartition(" ")[2] in _MAY_BE_ZERO else 1e-9
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
        shuffles=max(0.5, target.fma_per_cycle / 2),
        levels=(*levels, memory),
        page_bytes=4096,
        conflict_cycles=0.3,
        fetched_exposed=0.1,
        refill_exposed=0.03,
        near_share=0.7,
        kept_share=0.0,
        scattered=6.0,
        tile_cycles=24.0,
        barrier_cycles=15_000.0,
        step_cycles=60.0,
        spare_share=0.02,
        vectors=vector_rates(target),
        instructions=instruction_rates(target),
        arithmetic=_arithmetic(target),
    )


def _arithmetic(target: Target) -> ArithmeticCosts:
    """Wide vectors pass through a divider in several turns, and through narrow ports as well."""
    usual, turns = ArithmeticCosts(), target.vector_bytes / 32
    return replace(
        usual,
        divide_cycles=usual.divide_cycles * turns,
        root_cycles=usual.root_cycles * turns,
    )


# Bytes per cycle of one core alone and of each of all, by level; 4 is main memory.
_NOMINAL_READ: Final = {1: (64.0, 64.0), 2: (24.0, 24.0), 3: (12.0, 12.0), 4: (6.0, 6.0)}
_NOMINAL_EXPOSED: Final = {1: 0.0, 2: 0.05, 3: 0.12, 4: 0.5}


def unusable_model(problem: object) -> TargetError:
    """T010, for what cannot be read or cannot be."""
    hint = "start from what `tilewright doctor --machine --json` writes, and change single entries"
    return TargetError(T010, {"problem": str(problem)}, hint=hint)
