"""Machines known by name: instruction-set levels and processors, as rows of a table.

The figures of a core are nominal and to first order: how wide it is, not what it sustains, which is
measured (`tilewright.calibration`). A processor that is not listed takes the row of the same
vendor whose features fit best (`closest`): a new generation resembles the last one more than it
resembles its instruction-set level, whose figures are deliberately modest.

Where they are from: ports, widths and latencies are those of vector instructions in the scheduling
models of LLVM, which follow the optimisation guides of Intel, AMD and Arm; cache sizes are those of
the vendors' data sheets and support pages. L3 is what common products have for each core, so it is
the least certain of all, and on a real machine the system is asked instead. Apple publishes none of
this: its rows rest on measurements by others. Of processors with two kinds of cores the fast kind
is described.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tilewright.target.description import Cache, Core
from tilewright.target.isa import AARCH64, RISCV64, X86, Arch

__all__ = ["KNOWN", "Known", "closest", "find", "level_of"]

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
    vendor: str = ""  # empty for an instruction-set level

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
CASCADE = V4 | {"avx512vnni"}
ICELAKE = V4 | X86.closure(
    ["avx512vnni", "avx512vbmi", "avx512vbmi2", "avx512ifma", "avx512bitalg", "avx512vpopcntdq"]
)
ZEN4 = ICELAKE | {"avx512bf16"}
SAPPHIRE = ICELAKE | X86.closure(
    ["avx512bf16", "avx512fp16", "avxvnni", "amx-tile", "amx-int8", "amx-bf16"]
)
GRANITE = SAPPHIRE | {"amx-fp16"}
ALDER = V3 | {"avxvnni"}
SIERRA = ALDER | {"avxifma", "avxneconvert", "avxvnniint8"}
LUNAR = SIERRA | {"avxvnniint16"}
ARMV8 = AARCH64.closure(["neon"])
ARMV8_CRC = ARMV8 | {"crc"}
ARMV82 = ARMV8_CRC | AARCH64.closure(["dotprod", "fullfp16", "lse", "rdm"])
ARMV84 = ARMV82 | AARCH64.closure(["fp16fml"])
ARMV86 = ARMV84 | AARCH64.closure(["bf16", "i8mm"])
NEOVERSE = ARMV86 | AARCH64.closure(["sve"])
ARMV9 = NEOVERSE | AARCH64.closure(["sve2"])
RV64 = RISCV64.closure(["m", "a", "f", "d", "c"])

# FMA ports, their bytes and latency; load ports and bytes; store ports and bytes.
SSE = Core(2, 16, 5, 2, 16, 1, 16)
AVX = Core(2, 32, 5, 2, 32, 1, 32)
AVX_FAST = Core(2, 32, 4, 2, 32, 1, 32)
GOLDEN_COVE = Core(2, 32, 4, 3, 32, 2, 32)
GRACEMONT = Core(2, 16, 6, 2, 16, 2, 16)  # the efficient cores pass 256 bits in two halves
SKYMONT = Core(4, 16, 4, 3, 16, 2, 16)
AVX512 = Core(2, 64, 4, 2, 64, 1, 64)
# 512-bit operations pass through the 256-bit halves of two ports, or one after the other.
AVX512_NARROW = Core(2, 32, 4, 2, 64, 1, 64)
NEON = Core(2, 16, 4, 2, 16, 1, 16)
NEON_IN_ORDER = Core(1, 16, 8, 1, 8, 1, 8)  # a 128-bit load takes two cycles
NEON_SINGLE = Core(1, 16, 7, 1, 16, 1, 16)
NEON_DUAL = Core(2, 16, 4, 2, 16, 2, 16)
NEON_DUAL_3 = Core(2, 16, 4, 3, 16, 2, 16)
NEON_WIDE = Core(4, 16, 4, 3, 16, 2, 16)

_L1 = (32 * KIB, 8)
_L1_48 = (48 * KIB, 12)
_L1_ARM = (64 * KIB, 4)
_L1_APPLE = (128 * KIB, 8)
_SMALL_L2 = (256 * KIB, 8)
_L2_ARM = (1 * MIB, 8)  # the vendors of chips choose; 1 MiB is usual for servers
_L2_PHONE = (512 * KIB, 8)

_LEVELS = (
    Known("x86-64", X86, V1, SSE, _L1, _SMALL_L2, 1 * MIB),
    Known("x86-64-v2", X86, V2, SSE, _L1, _SMALL_L2, 1 * MIB),
    Known("x86-64-v3", X86, V3, AVX, _L1, _SMALL_L2, 1 * MIB),
    Known("x86-64-v4", X86, V4, AVX512_NARROW, _L1, (1 * MIB, 16), 1 * MIB),
    Known("aarch64", AARCH64, ARMV8, NEON, (32 * KIB, 4), (256 * KIB, 8)),
    Known("riscv64", RISCV64, RV64, Core(1, 16, 5, 1, 16, 1, 16), (32 * KIB, 4), _SMALL_L2),
)
"""Lowest first, for each architecture."""

_INTEL = (
    Known("haswell", X86, V3, AVX, _L1, _SMALL_L2, 2 * MIB),
    Known("broadwell", X86, V3, AVX, _L1, _SMALL_L2, 2 * MIB),
    Known("skylake", X86, V3, AVX_FAST, _L1, (256 * KIB, 4), 2 * MIB),
    Known("gracemont", X86, ALDER, GRACEMONT, _L1, (512 * KIB, 16), 1 * MIB),
    Known("alderlake", X86, ALDER, GOLDEN_COVE, _L1_48, (1280 * KIB, 10), 3 * MIB),
    Known("sierraforest", X86, SIERRA, GRACEMONT, _L1, (1 * MIB, 16), 768 * KIB),
    Known("clearwaterforest", X86, LUNAR, SKYMONT, _L1, (1 * MIB, 16), 2 * MIB),
    Known("arrowlake", X86, SIERRA, GOLDEN_COVE, _L1_48, (3 * MIB, 12), 3 * MIB),
    Known("arrowlake-s", X86, LUNAR, GOLDEN_COVE, _L1_48, (3 * MIB, 12), 3 * MIB),
    Known("lunarlake", X86, LUNAR, GOLDEN_COVE, _L1_48, (2560 * KIB, 10), 3 * MIB),
    Known("skylake-avx512", X86, V4, AVX512, _L1, (1 * MIB, 16), 1408 * KIB),
    Known("cascadelake", X86, CASCADE, AVX512, _L1, (1 * MIB, 16), 1408 * KIB),
    Known("icelake-client", X86, ICELAKE, AVX512_NARROW, _L1_48, (512 * KIB, 8), 2 * MIB),
    Known("icelake-server", X86, ICELAKE, AVX512, _L1_48, (1280 * KIB, 20), 1536 * KIB),
    Known("sapphirerapids", X86, SAPPHIRE, AVX512, _L1_48, (2 * MIB, 16), 1920 * KIB),
    Known("emeraldrapids", X86, SAPPHIRE, AVX512, _L1_48, (2 * MIB, 16), 5 * MIB),
    Known("graniterapids", X86, GRANITE, AVX512, _L1_48, (2 * MIB, 16), 4 * MIB),
)
_AMD = (
    Known("znver1", X86, V3, Core(2, 16, 5, 2, 16, 1, 16), _L1, (512 * KIB, 8), 2 * MIB),
    Known("znver2", X86, V3, AVX, _L1, (512 * KIB, 8), 4 * MIB),
    Known("znver3", X86, V3, AVX_FAST, _L1, (512 * KIB, 8), 4 * MIB),
    Known("znver4", X86, ZEN4, AVX_FAST, _L1, (1 * MIB, 8), 4 * MIB),
    Known("znver5", X86, ZEN4 | {"avxvnni"}, AVX512, _L1_48, (1 * MIB, 16), 4 * MIB),
)
# Pipes are counted for 128-bit vectors, whatever the length of those of SVE.
_ARM = (
    Known("cortex-a53", AARCH64, ARMV8_CRC, NEON_IN_ORDER, (32 * KIB, 4), (128 * KIB, 16)),
    Known("cortex-a55", AARCH64, ARMV82, NEON_IN_ORDER, (32 * KIB, 4), (128 * KIB, 4), 256 * KIB),
    Known("cortex-a72", AARCH64, ARMV8_CRC, NEON_SINGLE, (32 * KIB, 2), (256 * KIB, 16)),
    Known("cortex-a76", AARCH64, ARMV82, NEON_DUAL, _L1_ARM, _L2_PHONE, 512 * KIB),
    Known("cortex-a78", AARCH64, ARMV82, NEON_DUAL_3, _L1_ARM, _L2_PHONE, 1 * MIB),
    Known("cortex-a710", AARCH64, ARMV9, NEON_DUAL_3, _L1_ARM, _L2_PHONE, 1 * MIB),
    Known("cortex-x1", AARCH64, ARMV82, NEON_WIDE, _L1_ARM, _L2_ARM, 1 * MIB),
    Known("cortex-x2", AARCH64, ARMV9, NEON_WIDE, _L1_ARM, _L2_ARM, 1 * MIB),
    Known("cortex-x3", AARCH64, ARMV9, NEON_WIDE, _L1_ARM, _L2_ARM, 1 * MIB),
    Known("cortex-x4", AARCH64, ARMV9, NEON_WIDE, _L1_ARM, (2 * MIB, 8), 1536 * KIB),
    Known(
        "cortex-x925", AARCH64, ARMV9, Core(6, 16, 4, 4, 16, 2, 16), _L1_ARM, (2 * MIB, 8), 2 * MIB
    ),
    Known("neoverse-n1", AARCH64, ARMV82, NEON_DUAL, _L1_ARM, _L2_ARM, 512 * KIB),
    Known("neoverse-v1", AARCH64, NEOVERSE, NEON_WIDE, _L1_ARM, _L2_ARM, 512 * KIB),
    Known("neoverse-n2", AARCH64, ARMV9, NEON_DUAL_3, _L1_ARM, _L2_ARM, 512 * KIB),
    Known("neoverse-v2", AARCH64, ARMV9, NEON_WIDE, _L1_ARM, (2 * MIB, 8), 1 * MIB),
)
# L2 is shared by the performance cores of a cluster: 12 MiB by four of M1, 16 MiB since.
_APPLE = (
    Known("apple-m1", AARCH64, ARMV84, NEON_WIDE, _L1_APPLE, (3 * MIB, 12)),
    Known("apple-m2", AARCH64, ARMV86, NEON_WIDE, _L1_APPLE, (4 * MIB, 16)),
    Known("apple-m3", AARCH64, ARMV86, NEON_WIDE, _L1_APPLE, (4 * MIB, 16)),
    Known("apple-m4", AARCH64, ARMV86, NEON_WIDE, _L1_APPLE, (4 * MIB, 16)),
)

_VENDORS = {"": _LEVELS, "intel": _INTEL, "amd": _AMD, "arm": _ARM, "apple": _APPLE}

KNOWN: Final = {
    row.cpu: replace(row, vendor=vendor) for vendor, rows in _VENDORS.items() for row in rows
}
"""Rows by name; of each vendor the older ones first."""

LLVM_CPU: Final = {
    "aarch64": "generic",
    "riscv64": "generic-rv64",
    "graviton2": "neoverse-n1",
    "graviton3": "neoverse-v1",
    "graviton4": "neoverse-v2",
}
"""Where our name of a level or a product is not LLVM's name of a processor."""

SAME_CORE: Final = {
    "raptorlake": "alderlake",
    "meteorlake": "alderlake",
    "grandridge": "sierraforest",
    "pantherlake": "lunarlake",
    "cooperlake": "cascadelake",
    "tigerlake": "icelake-client",
    "rocketlake": "icelake-client",
    "graniterapids-d": "graniterapids",
    "cortex-a73": "cortex-a72",
    "cortex-a75": "cortex-a76",
    "cortex-a77": "cortex-a76",
    "cortex-x1c": "cortex-x1",
    "cortex-a715": "cortex-a710",
    "cortex-a720": "cortex-a710",
    "neoverse-n3": "neoverse-n2",
    "neoverse-v3": "neoverse-v2",
    "grace": "neoverse-v2",
    **{name: cpu for name, cpu in LLVM_CPU.items() if name.startswith("graviton")},
}
"""Processors and products whose core is, to first order, that of a row."""


def find(cpu: str) -> Known | None:
    """The row of a processor or product, by its own name or that of one with the same core."""
    return KNOWN.get(SAME_CORE.get(cpu, cpu))


def level_of(arch: Arch, features: frozenset[str]) -> Known:
    """The highest instruction-set level that these features reach."""
    rows = [KNOWN[row.cpu] for row in _LEVELS if row.arch is arch]
    return next((row for row in reversed(rows) if row.features <= features), rows[0])


def closest(arch: Arch, features: frozenset[str], vendor: str, without: str = "") -> Known:
    """The row of this vendor whose features differ least, the newest of equal ones.

    An unknown vendor has no row but that of the instruction-set level. One row may be left out.
    """
    level = level_of(arch, features)
    rows = [row for row in KNOWN.values() if row.arch is arch and vendor and row.vendor == vendor]
    rows = [row for row in rows if row.cpu != without]
    relevant = features & arch.needs.keys()
    return min(reversed(rows), key=lambda row: len(row.features ^ relevant), default=level)
