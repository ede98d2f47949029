"""Machines known by name: instruction-set levels and processors, as rows of a table.

The figures of a core are nominal and to first order: how wide it is, not what it sustains, which is
measured (`tilewright.llvm.calibrate`). A processor that is not listed takes the row of its
instruction-set level, whose figures are deliberately modest.

Where they are from: ports, widths and latencies are those of vector instructions in the scheduling
models of LLVM, which follow the optimisation guides of Intel, AMD and Arm; cache sizes are those of
the vendors' data sheets and support pages. L3 is what common products have for each core, so it is
the least certain of all, and on a real machine the system is asked instead. Apple publishes none of
this: its row rests on measurements by others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tilewright.target.description import Cache, Core
from tilewright.target.isa import AARCH64, RISCV64, X86, Arch

__all__ = ["KNOWN", "Known", "level_of"]

KIB: Final = 1 << 10
MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Known:
    """One row: LLVM's name of the processor, its features, its core and its private caches."""

    cpu: str
    arch: Arch
    features: frozenset[str]
    core: Core
    l1: tuple[int, int]  # bytes, ways
    l2: tuple[int, int]
    l3_per_core: int = 0  # bytes; 0 where small machines often have none

    def caches(self, cores: int) -> tuple[Cache, ...]:
        """The caches to assume where the machine cannot be asked."""
        private = [
            Cache(1, self.l1[0], ways=self.l1[1]),
            Cache(2, self.l2[0], ways=self.l2[1]),
        ]
        if self.l3_per_core:
            private.append(Cache(3, self.l3_per_core * cores, ways=16, shared_by=cores))
        return tuple(private)


V1 = X86.closure(["sse2"])
V2 = V1 | X86.closure(["sse4.2", "popcnt"])
V3 = V2 | X86.closure(["avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe"])
V4 = V3 | X86.closure(["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"])
ICELAKE = V4 | X86.closure(
    ["avx512vnni", "avx512vbmi", "avx512vbmi2", "avx512ifma", "avx512bitalg", "avx512vpopcntdq"]
)
SAPPHIRE = ICELAKE | X86.closure(
    ["avx512bf16", "avx512fp16", "avxvnni", "amx-tile", "amx-int8", "amx-bf16"]
)
ARMV8 = AARCH64.closure(["neon"])
ARMV82 = ARMV8 | AARCH64.closure(["dotprod", "fullfp16", "lse", "crc", "rdm"])
NEOVERSE = ARMV82 | AARCH64.closure(["sve", "bf16", "i8mm", "fp16fml"])
RV64 = RISCV64.closure(["m", "a", "f", "d", "c"])

# FMA ports, their bytes and latency; load ports and bytes; store ports and bytes.
SSE = Core(2, 16, 5, 2, 16, 1, 16)
AVX = Core(2, 32, 5, 2, 32, 1, 32)
AVX_FAST = Core(2, 32, 4, 2, 32, 1, 32)
AVX512 = Core(2, 64, 4, 2, 64, 1, 64)
# 512-bit operations pass through the 256-bit halves of two ports, or one after the other.
AVX512_NARROW = Core(2, 32, 4, 2, 64, 1, 64)
NEON = Core(2, 16, 4, 2, 16, 1, 16)
NEON_WIDE = Core(4, 16, 4, 3, 16, 2, 16)

_L1 = (32 * KIB, 8)
_L1_48 = (48 * KIB, 12)
_L1_ARM = (64 * KIB, 4)
_SMALL_L2 = (256 * KIB, 8)
_L2_ARM = (1 * MIB, 8)  # the vendors of chips choose; 1 MiB is usual

_ROWS = (
    Known("x86-64", X86, V1, SSE, _L1, _SMALL_L2, 1 * MIB),
    Known("x86-64-v2", X86, V2, SSE, _L1, _SMALL_L2, 1 * MIB),
    Known("x86-64-v3", X86, V3, AVX, _L1, _SMALL_L2, 1 * MIB),
    Known("x86-64-v4", X86, V4, AVX512_NARROW, _L1, (1 * MIB, 16), 1 * MIB),
    Known("haswell", X86, V3, AVX, _L1, _SMALL_L2, 2 * MIB),
    Known("broadwell", X86, V3, AVX, _L1, _SMALL_L2, 2 * MIB),
    Known("skylake", X86, V3, AVX_FAST, _L1, (256 * KIB, 4), 2 * MIB),
    Known(
        "alderlake",  # its performance cores
        X86,
        V3 | {"avxvnni"},
        Core(2, 32, 4, 3, 32, 2, 32),
        _L1_48,
        (1280 * KIB, 10),
        3 * MIB,
    ),
    Known("skylake-avx512", X86, V4, AVX512, _L1, (1 * MIB, 16), 1408 * KIB),
    Known("cascadelake", X86, V4 | {"avx512vnni"}, AVX512, _L1, (1 * MIB, 16), 1408 * KIB),
    Known("icelake-client", X86, ICELAKE, AVX512_NARROW, _L1_48, (512 * KIB, 8), 2 * MIB),
    Known("icelake-server", X86, ICELAKE, AVX512, _L1_48, (1280 * KIB, 20), 1536 * KIB),
    Known("sapphirerapids", X86, SAPPHIRE, AVX512, _L1_48, (2 * MIB, 16), 1920 * KIB),
    Known("znver1", X86, V3, Core(2, 16, 5, 2, 16, 1, 16), _L1, (512 * KIB, 8), 2 * MIB),
    Known("znver2", X86, V3, AVX, _L1, (512 * KIB, 8), 4 * MIB),
    Known("znver3", X86, V3, AVX_FAST, _L1, (512 * KIB, 8), 4 * MIB),
    Known("znver4", X86, ICELAKE | {"avx512bf16"}, AVX_FAST, _L1, (1 * MIB, 8), 4 * MIB),
    Known(
        "znver5", X86, ICELAKE | {"avx512bf16", "avxvnni"}, AVX512, _L1_48, (1 * MIB, 16), 4 * MIB
    ),
    Known("aarch64", AARCH64, ARMV8, NEON, (32 * KIB, 4), (256 * KIB, 8)),
    # Their pipes are counted for 128-bit vectors, whatever the length of those of SVE.
    Known(
        "neoverse-n1", AARCH64, ARMV82, Core(2, 16, 4, 2, 16, 2, 16), _L1_ARM, _L2_ARM, 512 * KIB
    ),
    Known("neoverse-v1", AARCH64, NEOVERSE, NEON_WIDE, _L1_ARM, _L2_ARM, 512 * KIB),
    Known(
        "neoverse-n2", AARCH64, NEOVERSE, Core(2, 16, 4, 3, 16, 2, 16), _L1_ARM, _L2_ARM, 512 * KIB
    ),
    Known("neoverse-v2", AARCH64, NEOVERSE, NEON_WIDE, _L1_ARM, _L2_ARM, 1 * MIB),
    # L2: 12 MiB, shared by the four performance cores.
    Known("apple-m1", AARCH64, ARMV82, NEON_WIDE, (128 * KIB, 8), (3 * MIB, 12)),
    Known("riscv64", RISCV64, RV64, Core(1, 16, 5, 1, 16, 1, 16), (32 * KIB, 4), _SMALL_L2),
)

KNOWN: Final = {row.cpu: row for row in _ROWS}

LLVM_CPU: Final = {"aarch64": "generic", "riscv64": "generic-rv64"}
"""Where our name of a level is not LLVM's name of a processor."""


def level_of(arch: Arch, features: frozenset[str]) -> Known:
    """The highest instruction-set level that these features reach."""
    levels = ("x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64", "aarch64", "riscv64")
    rows = (KNOWN[name] for name in levels)
    lowest = {"x86_64": "x86-64"}.get(arch.name, arch.name)
    return next((r for r in rows if r.arch is arch and r.features <= features), KNOWN[lowest])
