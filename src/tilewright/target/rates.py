"""Parts of the machine model that are lists: levels of memory, multiply-adds by type and width,
tensor instructions.

A tensor instruction is described where it is used (`tilewright.intrin`); what it costs stands here,
under the same name: how many products one of them makes, how often one can start, and what must
happen before the first one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tilewright.target.description import Target

__all__ = ["INSTRUCTIONS", "InstructionRate", "Level", "TensorInstruction", "VectorRate"]
__all__ += ["instruction_rates", "vector_rates"]

TYPE_BYTES: Final = {"f16": 2, "f32": 4, "f64": 8}
_HALF_ARITHMETIC: Final = frozenset({"avx512fp16", "fullfp16", "zvfh"})
"""Features that bring multiply-adds of f16; elsewhere these are converted first."""

_WIDTHS: Final = (16, 32, 64)


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

    def beside(self, other: Level, part: float) -> Level:
        """The level as a stream sees it of which another level delivers a part."""
        own = 1 - part
        return replace(
            self,
            read=1 / (own / self.read + part / other.read),
            read_all=1 / (own / self.read_all + part / other.read_all),
            exposed=own * self.exposed + part * other.exposed,
        )


@dataclass(frozen=True, slots=True)
class VectorRate:
    """Multiply-adds of one type in vectors of one width."""

    dtype: str
    vector_bytes: int
    per_cycle: float
    """Vectors that one core starts per cycle."""
    latency: float
    """Cycles until the sum can be used."""

    @property
    def name(self) -> str:
        """Type and lanes: `f32x16`."""
        return f"{self.dtype}x{self.vector_bytes // TYPE_BYTES[self.dtype]}"


@dataclass(frozen=True, slots=True)
class InstructionRate:
    """A tensor instruction: rows × columns sums grow by `reduce` products each."""

    name: str
    rows: int
    columns: int
    reduce: int
    per_cycle: float
    """Instructions that one core starts per cycle, operands in registers."""
    latency: float
    """Cycles from sums to the next sums."""
    setup_cycles: float
    """Before the first one of a kernel, and after the last: a state that must be set."""

    @property
    def products(self) -> int:
        """Products of one instruction."""
        return self.rows * self.columns * self.reduce


@dataclass(frozen=True, slots=True)
class TensorInstruction:
    """A row of the table: what a processor needs for it, its shape, and typical costs.

    `ports` is how many multiply-adds of full vectors it counts for: it starts as often as these,
    divided by this, unless `cycles` says otherwise.
    """

    arch: str
    feature: str
    shape: tuple[int, int, int]
    vector_bytes: int
    ports: float = 1.0
    latency: float = 4.0
    cycles: float = 0.0
    setup_cycles: float = 0.0


INSTRUCTIONS: Final = {
    "x86.avx2.dot2": TensorInstruction("x86_64", "avx2", (1, 8, 2), 32, 1.5, 1),
    "x86.avx2.dot4": TensorInstruction("x86_64", "avx2", (1, 8, 4), 32, 4.0, 1),
    "x86.avx512bw.dot2": TensorInstruction("x86_64", "avx512bw", (1, 16, 2), 64, 1.5, 1),
    # Pairs of products of u8 and i8, added with saturation to i16 (VPMADDUBSW).
    "x86.avx2.dot2_i16": TensorInstruction("x86_64", "avx2", (1, 16, 2), 32, 1.5, 1),
    "x86.avxvnni.dot4": TensorInstruction("x86_64", "avxvnni", (1, 8, 4), 32, latency=5),
    "x86.avx512vnni.dot4": TensorInstruction("x86_64", "avx512vnni", (1, 16, 4), 64, latency=5),
    "x86.avx512bf16.dot2": TensorInstruction("x86_64", "avx512bf16", (1, 16, 2), 64, 2.0, 6),
    # A tile product takes 16 cycles, and its result comes after 52; tiles are set and released.
    "x86.amx.i8": TensorInstruction("x86_64", "amx-int8", (16, 16, 64), 64, 1, 52, 16, 200),
    "x86.amx.bf16": TensorInstruction("x86_64", "amx-bf16", (16, 16, 32), 64, 1, 52, 16, 200),
    "x86.amx.f16": TensorInstruction("x86_64", "amx-fp16", (16, 16, 32), 64, 1, 52, 16, 200),
    "arm.dotprod.sdot": TensorInstruction("aarch64", "dotprod", (1, 4, 4), 16, latency=3),
    "arm.dotprod.udot": TensorInstruction("aarch64", "dotprod", (1, 4, 4), 16, latency=3),
    "arm.i8mm.usdot": TensorInstruction("aarch64", "i8mm", (1, 4, 4), 16, latency=3),
    "arm.i8mm.mmla": TensorInstruction("aarch64", "i8mm", (2, 2, 8), 16, latency=3),
    "arm.bf16.dot2": TensorInstruction("aarch64", "bf16", (1, 4, 2), 16, latency=5),
    "arm.bf16.mmla": TensorInstruction("aarch64", "bf16", (2, 2, 4), 16, latency=6),
}
"""By name; those of two and more instructions count as one, with its whole implementation."""


def vector_rates(target: Target) -> tuple[VectorRate, ...]:
    """Nominal multiply-adds: a vector that is wider than a port takes several turns."""
    core = target.core
    widths = [w for w in _WIDTHS if w <= target.vector_bytes] or [target.vector_bytes]
    types = [t for t in TYPE_BYTES if t != "f16" or target.features & _HALF_ARITHMETIC]
    return tuple(
        VectorRate(
            dtype, width, core.fma_ports * min(1.0, core.fma_bytes / width), core.fma_latency
        )
        for dtype in types
        for width in widths
        if width >= TYPE_BYTES[dtype]
    )


def instruction_rates(target: Target) -> tuple[InstructionRate, ...]:
    """Nominal costs of every tensor instruction that a target has."""
    ports, wide = target.core.fma_ports, target.core.fma_bytes
    return tuple(
        InstructionRate(
            name,
            *row.shape,
            1 / row.cycles if row.cycles else ports * min(1.0, wide / row.vector_bytes) / row.ports,
            row.latency,
            row.setup_cycles,
        )
        for name, row in INSTRUCTIONS.items()
        if row.arch == target.arch and row.feature in target.features
    )
