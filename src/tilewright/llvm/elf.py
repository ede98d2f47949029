"""Reading relocatable ELF objects: sections, symbols and relocations, as LLVM writes them.

Only 64-bit little-endian objects with explicit addends are read, which is what all our targets
have. Nothing is believed: a number that leads outside of the object is an error, not an exception.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tilewright.errors import Code, InternalError

__all__ = ["AARCH64", "RISCV64", "X86_64", "Object", "Relocation", "Section", "Symbol"]
__all__ += ["read_object"]

I130 = Code("I130", "an object file cannot be linked: {problem}")

X86_64: Final = 62
AARCH64: Final = 183
RISCV64: Final = 243

RELOCATABLE: Final = 1
SYMBOL_TABLE, EXPLICIT_ADDENDS, NO_DATA, IMPLICIT_ADDENDS = 2, 4, 8, 9
LOCAL: Final = 0
RESERVED: Final = 0xFF00
"""Section numbers from here on are not sections."""

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QIIq")


@dataclass(frozen=True, slots=True)
class Section:
    """A section; `number` is what symbols call it. `data` is empty where there is none in file."""

    number: int
    name: str
    type: int
    is_loaded: bool
    is_writable: bool
    is_code: bool
    alignment: int
    size: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Symbol:
    """A place in a section, or (`section` is 0) in another object."""

    name: str
    section: int
    value: int
    is_local: bool


@dataclass(frozen=True, slots=True)
class Relocation:
    """What depends on addresses: at `offset` of `section`, on that of `symbol` plus `addend`."""

    section: int
    offset: int
    kind: int
    symbol: int
    addend: int


@dataclass(frozen=True, slots=True)
class Object:
    """A relocatable object for one `machine`."""

    machine: int
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    relocations: tuple[Relocation, ...]


def refused(problem: str) -> InternalError:
    """The error for an object that cannot be used."""
    return InternalError(I130, {"problem": problem})


def read_object(data: bytes) -> Object:
    """The content of an object file."""
    try:
        return _read(data)
    except (struct.error, IndexError, ValueError) as problem:
        raise refused(f"it is damaged ({problem})") from None


def _read(data: bytes) -> Object:
    magic, kind, machine, *rest = _HEADER.unpack_from(data)
    table, entry_bytes, count, names = rest[3], rest[8], rest[9], rest[10]
    if magic[:6] != b"\x7fELF\x02\x01" or kind != RELOCATABLE:
        raise refused("it is no relocatable 64-bit ELF object")
    if entry_bytes != _SECTION.size:
        raise refused("its table of sections has another form")
    rows = [_SECTION.unpack_from(data, table + n * entry_bytes) for n in range(count)]
    title = _part(data, rows[names])
    sections = tuple(_section(data, number, row, title) for number, row in enumerate(rows))
    if any(section.type == IMPLICIT_ADDENDS for section in sections):
        raise refused("its relocations have no addends of their own")
    return Object(
        machine,
        sections,
        tuple(_symbols(data, rows)),
        tuple(_relocations(data, rows)),
    )


def _section(data: bytes, number: int, row: tuple[int, ...], title: bytes) -> Section:
    name, kind, flags, _, _, size, _, _, alignment, _ = row
    alignment = max(1, alignment)
    if alignment & (alignment - 1):
        raise ValueError("an alignment is no power of two")
    return Section(
        number,
        _text(title, name),
        kind,
        is_writable=bool(flags & 1),
        is_loaded=bool(flags & 2),
        is_code=bool(flags & 4),
        alignment=alignment,
        size=size,
        data=_part(data, row),
    )


def _symbols(data: bytes, rows: list[tuple[int, ...]]) -> Iterator[Symbol]:
    for row in rows:
        if row[1] != SYMBOL_TABLE:
            continue
        names = _part(data, rows[row[6]])
        for name, info, _, section, value, _ in _SYMBOL.iter_unpack(_part(data, row)):
            yield Symbol(_text(names, name), section, value, info >> 4 == LOCAL)


def _relocations(data: bytes, rows: list[tuple[int, ...]]) -> Iterator[Relocation]:
    for row in rows:
        if row[1] == EXPLICIT_ADDENDS:
            for offset, kind, symbol, addend in _RELOCATION.iter_unpack(_part(data, row)):
                yield Relocation(row[7], offset, kind, symbol, addend)


def _part(data: bytes, row: tuple[int, ...]) -> bytes:
    """The bytes of a section."""
    kind, offset, size = row[1], row[4], row[5]
    if kind == NO_DATA:
        return b""
    if offset + size > len(data):
        raise ValueError("a section ends behind the file")
    return data[offset : offset + size]


def _text(names: bytes, start: int) -> str:
    return names[start : names.index(b"\0", start)].decode("ascii", "replace")
