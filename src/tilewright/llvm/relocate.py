"""What a relocation writes, by machine: the fields of instructions that depend on addresses.

All of them are relative to the place where they stand, so that an image runs wherever it is mapped.
AArch64 addresses in two steps, the 4 KiB page and the byte in it: the second is right only if the
image starts at the border of such a page, which every mapping does. RISC-V does so, too, with parts
of a distance: the second instruction says where the first one is (`SECOND`), which the distance
counts from. Its linkers may shorten code; LLVM only asks for that with the feature `relax`.

Names and numbers are those of the ABI supplements "System V, AMD64", "ELF for the Arm 64-bit
Architecture" and "RISC-V ELF psABI".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from tilewright.errors import Code, InternalError
from tilewright.llvm.elf import AARCH64, RISCV64, X86_64

__all__ = ["FIRST", "KINDS", "SECOND", "apply", "size_bytes"]

I131 = Code("I131", "an object needs a relocation of kind {kind}, which an image cannot have")
I132 = Code("I132", "the relocation {kind} does not reach from {place} to {to}")

Field = Callable[[int], int]
"""The bits that a value has in an instruction."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A relocation of 32 bits: `value(target, place)`, cut to `bits`, goes where `field` says.

    The value is signed unless it is an `unsigned` part of an address; its last `zeros` bits must
    be zero and are not stored.
    """

    name: str
    value: Callable[[int, int], int]
    bits: int
    field: Field
    zeros: int = 0
    unsigned: bool = False


def _distance(target: int, place: int) -> int:
    return target - place


def _page_distance(target: int, place: int) -> int:
    return (target >> 12) - (place >> 12)


def _in_page(target: int, _: int) -> int:
    return target & 0xFFF


def _upper(target: int, place: int) -> int:
    """The distance without its low 12 bits, which are signed: rounded to the nearest."""
    return (target - place + 0x800) >> 12


def _lower(target: int, place: int) -> int:
    return (target - place) & 0xFFF


def _whole(value: int) -> int:
    return value


def _split(value: int) -> int:
    """The immediate of `adr` and `adrp`: two low bits at 29, the others at 5."""
    return (value & 3) << 29 | (value >> 2) << 5


def _stored(value: int) -> int:
    """The immediate of a RISC-V store: five low bits at 7, the others at 25."""
    return (value & 31) << 7 | (value >> 5) << 25


def _at(bit: int) -> Field:
    return lambda value: value << bit


def _in_page_kind(name: str, zeros: int) -> Kind:
    return Kind(name, _in_page, 12 - zeros, _at(10), zeros, unsigned=True)


KINDS: Final[Mapping[int, Mapping[int, Kind]]] = {
    X86_64: {
        2: Kind("R_X86_64_PC32", _distance, 32, _whole),
        4: Kind("R_X86_64_PLT32", _distance, 32, _whole),
    },
    AARCH64: {
        261: Kind("R_AARCH64_PREL32", _distance, 32, _whole),
        274: Kind("R_AARCH64_ADR_PREL_LO21", _distance, 21, _split),
        275: Kind("R_AARCH64_ADR_PREL_PG_HI21", _page_distance, 21, _split),
        277: _in_page_kind("R_AARCH64_ADD_ABS_LO12_NC", 0),
        278: _in_page_kind("R_AARCH64_LDST8_ABS_LO12_NC", 0),
        280: Kind("R_AARCH64_CONDBR19", _distance, 19, _at(5), 2),
        282: Kind("R_AARCH64_JUMP26", _distance, 26, _at(0), 2),
        283: Kind("R_AARCH64_CALL26", _distance, 26, _at(0), 2),
        284: _in_page_kind("R_AARCH64_LDST16_ABS_LO12_NC", 1),
        285: _in_page_kind("R_AARCH64_LDST32_ABS_LO12_NC", 2),
        286: _in_page_kind("R_AARCH64_LDST64_ABS_LO12_NC", 3),
        299: _in_page_kind("R_AARCH64_LDST128_ABS_LO12_NC", 4),
    },
    RISCV64: {
        23: Kind("R_RISCV_PCREL_HI20", _upper, 20, _at(12)),
        24: Kind("R_RISCV_PCREL_LO12_I", _lower, 12, _at(20), unsigned=True),
        25: Kind("R_RISCV_PCREL_LO12_S", _lower, 12, _stored, unsigned=True),
    },
}
"""The relocations that position-independent code without a table of addresses needs."""

SEQUENCES: Final[Mapping[tuple[int, int], tuple[int, ...]]] = {
    (RISCV64, 18): (23, 24),  # R_RISCV_CALL: `auipc` and `jalr`
    (RISCV64, 19): (23, 24),  # R_RISCV_CALL_PLT
}
"""Relocations of several instructions, one behind the other, that share a distance."""

FIRST: Final = {RISCV64: 23}
SECOND: Final = {RISCV64: (24, 25)}
"""Relocations whose symbol is the place of the `FIRST` one, which knows where they lead."""

REFUSED: Final = {
    (X86_64, 1): "R_X86_64_64, an absolute address",
    (X86_64, 9): "R_X86_64_GOTPCREL, a table of addresses",
    (X86_64, 10): "R_X86_64_32, an absolute address",
    (X86_64, 11): "R_X86_64_32S, an absolute address",
    (X86_64, 41): "R_X86_64_GOTPCRELX, a table of addresses",
    (X86_64, 42): "R_X86_64_REX_GOTPCRELX, a table of addresses",
    (AARCH64, 257): "R_AARCH64_ABS64, an absolute address",
    (AARCH64, 258): "R_AARCH64_ABS32, an absolute address",
    (AARCH64, 311): "R_AARCH64_ADR_GOT_PAGE, a table of addresses",
    (AARCH64, 312): "R_AARCH64_LD64_GOT_LO12_NC, a table of addresses",
    (RISCV64, 1): "R_RISCV_32, an absolute address",
    (RISCV64, 2): "R_RISCV_64, an absolute address",
    (RISCV64, 20): "R_RISCV_GOT_HI20, a table of addresses",
}
"""Names of those that are likely to be met by mistake."""


def size_bytes(machine: int, kind: int) -> int:
    """How many bytes a relocation changes."""
    return 4 * len(SEQUENCES.get((machine, kind), (kind,)))


def apply(
    machine: int, kind: int, image: bytearray, place: int, target: int, base: int | None = None
) -> None:
    """Let the bytes at `place` refer to `target`, both counted from the start of the image.

    Distances count from the place, or from `base`.
    """
    origin = place if base is None else base
    for number, part in enumerate(SEQUENCES.get((machine, kind), (kind,))):
        row = KINDS[machine].get(part)
        if row is None:
            raise InternalError(I131, {"kind": REFUSED.get((machine, kind), str(kind))})
        _write(row, image, place + 4 * number, target, origin)


def _write(row: Kind, image: bytearray, place: int, target: int, origin: int) -> None:
    value = row.value(target, origin)
    if not _fits(row, value):
        raise InternalError(I132, {"kind": row.name, "place": place, "to": target})
    mask = (1 << row.bits) - 1
    word = int.from_bytes(image[place : place + 4], "little")
    word = word & ~row.field(mask) | row.field(value >> row.zeros & mask)
    image[place : place + 4] = word.to_bytes(4, "little")


def _fits(kind: Kind, value: int) -> bool:
    if value & ((1 << kind.zeros) - 1):
        return False
    stored = value >> kind.zeros
    if kind.unsigned:
        return 0 <= stored < 1 << kind.bits
    return -(1 << kind.bits - 1) <= stored < 1 << kind.bits - 1
