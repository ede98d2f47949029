"""Objects → one flat image that runs wherever it is mapped.

An image is code, then the constants that it reads; it is mapped readable and executable as a whole
and never written. All references are relative, so that nothing has to be patched when it is mapped,
and a file can be mapped as it is. That leaves little to link: no data that changes, no addresses
stored in memory, no symbols of others except the few of `builtins`. What does not fit is refused.

Every kernel starts on a cache line of its own, so that its speed does not depend on its neighbours.
Constants that several objects have alike are stored once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from tilewright.errors import Code, InternalError
from tilewright.llvm.builtins import BUILTINS, builtin_object
from tilewright.llvm.elf import (
    NO_DATA,
    RESERVED,
    Object,
    Relocation,
    Section,
    Symbol,
    read_object,
    refused,
)
from tilewright.llvm.relocate import FIRST, KINDS, SECOND, apply, size_bytes

__all__ = ["Image", "link"]

I133 = Code("I133", "an image cannot call `{symbol}`, which no object defines")
I134 = Code("I134", "two objects of an image define `{symbol}`")

CODE_ALIGNMENT: Final = 64
PAGE: Final = 4096
"""No section may ask for more than the least page."""

_NOTE: Final = 7
_DROPPED = (".eh_frame",)
"""Sections that only debuggers and exceptions need, which kernels do not throw."""


@dataclass(frozen=True, slots=True)
class Image:
    """Machine code that refers to nothing outside; `symbols` are the offsets of its functions."""

    code: bytes
    symbols: dict[str, int]


def link(objects: Iterable[bytes]) -> Image:
    """One image of all objects, which are for the same machine."""
    parts = [read_object(data) for data in objects]
    if not parts:
        return Image(b"", {})
    machine = parts[0].machine
    if machine not in KINDS:
        raise refused(f"there is no linker for machine {machine}")
    if any(part.machine != machine for part in parts):
        raise refused("its machine is another than that of the objects before it")
    parts += [read_object(builtin_object(name, machine)) for name in _missing(parts)]
    image, places = _lay_out(parts)
    defined = _definitions(parts, places)
    for part, where in zip(parts, places, strict=True):
        _relocate(part, where, defined, image)
    return Image(bytes(image), defined)


def _missing(parts: list[Object]) -> list[str]:
    """The builtins that are called; other symbols without a definition are found out later."""
    symbols = [symbol for part in parts for symbol in part.symbols if not symbol.is_local]
    needed = {symbol.name for symbol in symbols if symbol.section == 0}
    defined = {symbol.name for symbol in symbols if symbol.section != 0}
    return sorted(needed & BUILTINS.keys() - defined)


def _lay_out(parts: list[Object]) -> tuple[bytearray, list[dict[int, int]]]:
    """The bytes of all sections, and for each object where its sections are."""
    image = bytearray()
    places: list[dict[int, int]] = [{} for _ in parts]
    relocated = [{r.section for r in part.relocations} for part in parts]
    constants: dict[tuple[bytes, int], int] = {}
    for is_code in (True, False):
        for number, part in enumerate(parts):
            for section in _kept(part):
                if section.is_code != is_code:
                    continue
                if is_code or section.number in relocated[number]:
                    at = _append(image, section)
                else:
                    content = section.data, section.alignment
                    if content not in constants:
                        constants[content] = _append(image, section)
                    at = constants[content]
                places[number][section.number] = at
    return image, places


def _kept(part: Object) -> Iterator[Section]:
    """The sections that an image needs; refuses what it cannot have."""
    for section in part.sections:
        unneeded = section.type == _NOTE or section.name.startswith(_DROPPED)
        if not section.is_loaded or not section.size or unneeded:
            continue
        is_constant = section.name.startswith(".data.rel.ro")
        if (section.is_writable and not is_constant) or section.type == NO_DATA:
            raise refused(f"it has data that changes, `{section.name}`")
        if section.alignment > PAGE:
            raise refused(f"`{section.name}` wants {section.alignment} bytes of alignment")
        yield section


def _append(image: bytearray, section: Section) -> int:
    alignment = max(section.alignment, CODE_ALIGNMENT) if section.is_code else section.alignment
    image += bytes(-len(image) % alignment)
    at = len(image)
    image += section.data
    return at


def _definitions(parts: list[Object], places: list[dict[int, int]]) -> dict[str, int]:
    """The offsets of all global symbols."""
    defined: dict[str, int] = {}
    for part, where in zip(parts, places, strict=True):
        for symbol in part.symbols:
            if symbol.is_local or symbol.section == 0:
                continue
            if symbol.name in defined:
                raise InternalError(I134, {"symbol": symbol.name})
            defined[symbol.name] = _offset(symbol, where)
    return defined


def _offset(symbol: Symbol, where: dict[int, int]) -> int:
    if symbol.section >= RESERVED:
        raise refused(f"the symbol `{symbol.name}` is in no section")
    if symbol.section not in where:
        raise refused(f"the symbol `{symbol.name}` is in a section that is not part of an image")
    return where[symbol.section] + symbol.value


def _relocate(
    part: Object, where: dict[int, int], defined: dict[str, int], image: bytearray
) -> None:
    # Those of sections that were left out do not matter.
    found = [r for r in part.relocations if r.section in where]
    pairs = [(r.kind, *_ends(part, r, where, defined)) for r in found]
    first = {place: to for kind, place, to in pairs if kind == FIRST.get(part.machine)}
    for kind, place, to in pairs:
        if kind not in SECOND.get(part.machine, ()):
            apply(part.machine, kind, image, place, to)
        elif to in first:
            apply(part.machine, kind, image, place, first[to], base=to)
        else:
            raise refused("the second half of an address has no first one")


def _ends(
    part: Object, relocation: Relocation, where: dict[int, int], defined: dict[str, int]
) -> tuple[int, int]:
    """The place of a relocation in the image, and where it leads."""
    end = relocation.offset + size_bytes(part.machine, relocation.kind)
    if end > part.sections[relocation.section].size or relocation.symbol >= len(part.symbols):
        raise refused("a relocation leads outside of it")
    symbol = part.symbols[relocation.symbol]
    if symbol.is_local or symbol.section != 0:
        to = _offset(symbol, where)
    elif symbol.name in defined:
        to = defined[symbol.name]
    else:
        raise InternalError(I133, {"symbol": symbol.name})
    return where[relocation.section] + relocation.offset, to + relocation.addend
