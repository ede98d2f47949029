"""Instruction sets as tables: what a feature needs, and what vectors it brings.

Features carry LLVM's names. Only those that change what code is generated are listed; a host may
report more, and they are passed through. Adding an instruction set means adding rows here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

__all__ = ["ARCHES", "Arch", "Masks"]


class Masks(NamedTuple):
    """A feature by which vectors of elements of so many bytes and more are accessed in part.

    It is free if a store under a mask costs no more than one without.
    """

    feature: str
    least_bytes: int
    is_free: bool = True


@dataclass(frozen=True, slots=True)
class Arch:
    """One architecture. `needs` maps each feature to the ones that it directly stands on."""

    name: str
    triple: str
    needs: Mapping[str, tuple[str, ...]]
    vectors: tuple[tuple[str, int, int], ...]
    """(feature, vector bytes, vector registers), widest first; the first one present counts."""
    scalar: tuple[int, int]
    """(bytes, registers) of the floating-point registers when there are no vectors."""
    fma: frozenset[str]
    """Features that bring a fused multiply-add."""
    masks: tuple[Masks, ...]
    """Ways to load and store a vector in part; the first one that serves counts."""
    kernel_names: Mapping[str, str]
    """The Linux kernel's name of a feature, where it differs from LLVM's."""

    def closure(self, features: Iterable[str]) -> frozenset[str]:
        """The features with everything that they stand on."""
        found: set[str] = set()
        todo = list(features)
        while todo:
            feature = todo.pop()
            if feature not in found:
                found.add(feature)
                todo += self.needs.get(feature, ())
        return frozenset(found)

    def without(self, features: frozenset[str], removed: str) -> frozenset[str]:
        """The features less one of them and all that stand on it."""
        return frozenset(f for f in features if removed not in self.closure([f]))

    def vector_shape(self, features: frozenset[str]) -> tuple[int, int]:
        """(bytes, registers) of the widest vectors."""
        found = (shape for feature, *shape in self.vectors if feature in features)
        size, registers = next(found, self.scalar)
        return size, registers

    def masks_of(self, features: frozenset[str], element_bytes: int) -> Masks | None:
        """How vectors of elements of this size are accessed in part; None if not at all."""
        found = (m for m in self.masks if m.feature in features and element_bytes >= m.least_bytes)
        return next(found, None)

    def has_fma(self, features: frozenset[str]) -> bool:
        return not self.fma.isdisjoint(features)


def _chain(*features: str) -> dict[str, tuple[str, ...]]:
    """Each feature needs the one before it."""
    pairs = zip(features, ("", *features), strict=False)
    return {feature: (before,) if before else () for feature, before in pairs}


def _all_need(base: str, *features: str) -> dict[str, tuple[str, ...]]:
    return dict.fromkeys(features, (base,))


X86: Final = Arch(
    name="x86_64",
    triple="x86_64-unknown-linux-gnu",
    needs={
        **_chain("sse", "sse2", "sse3", "ssse3", "sse4.1", "sse4.2", "avx", "avx2"),
        **_all_need("avx", "fma", "f16c"),
        **_all_need("avx2", "avxvnni", "avxvnniint8", "avxvnniint16", "avxifma", "avxneconvert"),
        "avx512f": ("avx2", "fma", "f16c"),
        **_all_need("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
        **_all_need("avx512f", "avx512ifma", "avx512vnni", "avx512vpopcntdq"),
        **_all_need("avx512bw", "avx512bf16", "avx512bitalg", "avx512vbmi", "avx512vbmi2"),
        "avx512fp16": ("avx512bw", "avx512dq", "avx512vl"),
        **_all_need("amx-tile", "amx-bf16", "amx-fp16", "amx-int8"),
        **_all_need("sse2", "aes", "gfni", "pclmul", "sha"),
        "vaes": ("avx2", "aes"),
        "vpclmulqdq": ("avx", "pclmul"),
        **dict.fromkeys(("amx-tile", "bmi", "bmi2", "lzcnt", "movbe", "popcnt", "prfchw"), ()),
    },
    vectors=(("avx512f", 64, 32), ("avx", 32, 16), ("sse2", 16, 16)),
    scalar=(16, 16),
    fma=frozenset({"fma", "avx512f"}),
    # `vmaskmov` of AVX loads as fast as any load, but Zen takes a dozen cycles and more to store.
    masks=(Masks("avx512bw", 1), Masks("avx512f", 4), Masks("avx", 4, is_free=False)),
    kernel_names={
        "sse3": "pni",
        "sse4.1": "sse4_1",
        "sse4.2": "sse4_2",
        "lzcnt": "abm",
        "bmi": "bmi1",
        "pclmul": "pclmulqdq",
        "prfchw": "3dnowprefetch",
        "sha": "sha_ni",
        "avxvnni": "avx_vnni",
        "avxvnniint8": "avx_vnni_int8",
        "avxvnniint16": "avx_vnni_int16",
        "avxifma": "avx_ifma",
        "avxneconvert": "avx_ne_convert",
        "amx-tile": "amx_tile",
        "amx-bf16": "amx_bf16",
        "amx-fp16": "amx_fp16",
        "amx-int8": "amx_int8",
        **{
            f"avx512{tail}": f"avx512_{tail}"
            for tail in ("bf16", "bitalg", "fp16", "vbmi2", "vnni", "vpopcntdq")
        },
    },
)

AARCH64: Final = Arch(
    name="aarch64",
    triple="aarch64-unknown-linux-gnu",
    needs={
        **_chain("fp-armv8", "neon"),
        **_all_need("neon", "dotprod", "i8mm", "bf16", "aes", "sha2", "rdm"),
        **_chain("fp-armv8", "fullfp16"),
        "fp16fml": ("fullfp16", "neon"),
        "sve": ("neon", "fullfp16"),
        **_all_need("sve", "sve2", "f32mm"),
        **dict.fromkeys(("crc", "lse"), ()),
    },
    # Scalable vectors are counted at their least width, which every implementation has.
    vectors=(("neon", 16, 32),),
    scalar=(8, 32),
    fma=frozenset({"fp-armv8"}),
    masks=(),  # vectors are those of NEON, whatever SVE could do
    kernel_names={
        "fp-armv8": "fp",
        "neon": "asimd",
        "dotprod": "asimddp",
        "fullfp16": "asimdhp",
        "fp16fml": "asimdfhm",
        "rdm": "asimdrdm",
        "crc": "crc32",
        "lse": "atomics",
        "f32mm": "svef32mm",
    },
)

RISCV64: Final = Arch(
    name="riscv64",
    triple="riscv64-unknown-linux-gnu",
    needs={
        **_chain("f", "d"),
        **_all_need("d", "v"),
        **_all_need("v", "zvl256b", "zvfhmin", "zvfh"),
        "zvl512b": ("zvl256b",),
        "zfhmin": ("f",),
        **dict.fromkeys(("m", "a", "c", "zba", "zbb", "zbs"), ()),
    },
    vectors=(("zvl512b", 64, 32), ("zvl256b", 32, 32), ("v", 16, 32)),
    scalar=(8, 32),
    fma=frozenset({"f", "d"}),
    masks=(Masks("v", 1),),
    kernel_names={},
)

ARCHES: Final = {arch.name: arch for arch in (X86, AARCH64, RISCV64)}
"""Architectures by the first part of their triple."""
