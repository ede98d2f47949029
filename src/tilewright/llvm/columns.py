"""Strided vectors side by side: whole rows are loaded, and shuffles turn them into columns.

    y[0:8] = x[0, 64, 128, …]     8 rows x[0:8], x[64:72], … are loaded once; three rounds of
    y[8:16] = x[1, 65, 129, …]    shuffles among them make all 8 columns
    …

Statements that are unrolled beside each other often read such columns: a transpose does nothing
else. One by one each column takes as many loads as it has elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilewright.llvm.addresses import Address
from tilewright.llvm.memory import shuffled
from tilewright.llvm.writer import Value, Writer

__all__ = ["Column", "column_of", "columns_of", "turned"]

Column = tuple[object, tuple[str, ...], tuple[int, ...], int]
"""A buffer, where the lanes begin, how far they are behind the first one, the first's offset."""

# Lanes that the cheapest shuffles of most machines exchange with each other.
_NEAR_BYTES = 16


def column_of(buffer: object, lanes: Sequence[Address]) -> Column:
    """What tells one column from another."""
    first = lanes[0].offset_bytes
    bases = tuple(at.base.text for at in lanes)
    return buffer, bases, tuple(at.offset_bytes - first for at in lanes), first


def columns_of(wanted: Iterable[tuple[Column, int]]) -> dict[Column, int]:
    """For columns of whole tiles the offset of the first column of their tile.

    Columns come with the size of an element; a tile has as many as they have lanes.
    """
    alike: dict[tuple[object, ...], set[int]] = {}
    sizes: dict[tuple[object, ...], int] = {}
    for column, size in wanted:
        alike.setdefault(column[:3], set()).add(column[3])
        sizes[column[:3]] = size
    found: dict[Column, int] = {}
    for key, offsets in alike.items():
        buffer, bases, behind = key
        assert isinstance(bases, tuple)
        assert isinstance(behind, tuple)
        size, count = sizes[key], len(bases)
        start: int | None = None
        for offset in sorted(offsets):
            if start is not None and offset < start + count * size:
                continue
            tile = [offset + n * size for n in range(count)]
            if offsets.issuperset(tile):
                start = offset
                found.update({(buffer, bases, behind, at): offset for at in tile})
    return found


def turned(w: Writer, rows: Sequence[Value], size: int) -> list[Value]:
    """The columns of a square tile whose rows these are; elements have `size` bytes."""
    count = len(rows)
    near = max(1, min(count, _NEAR_BYTES // size))
    values = list(rows)
    # held[i][lane] is the (row, column) that vector i has in a lane.
    held = [[(row, lane) for lane in range(count)] for row in range(count)]
    step = 1
    while step < count:
        masks = _interleaved(count, near, step) if step < near else _exchanged(count, step)
        for i in (i for i in range(count) if not i & step):
            pair, places = (values[i], values[i + step]), held[i] + held[i + step]
            for target, mask in zip((i, i + step), masks, strict=True):
                values[target] = shuffled(w, *pair, mask)
                held[target] = [places[lane] for lane in mask]
        step *= 2
    columns = {held[i][0][1]: values[i] for i in range(count)}
    return [columns[n] for n in range(count)]


def _interleaved(count: int, near: int, step: int) -> tuple[list[int], list[int]]:
    """Runs of `step` lanes of both vectors by turns: of the lower, and of the upper half of each
    stretch of near lanes.
    """
    masks: tuple[list[int], list[int]] = ([], [])
    for half, mask in enumerate(masks):
        for stretch in range(0, count, near):
            begin = stretch + half * near // 2
            for run in range(begin, begin + near // 2, step):
                mask += [*range(run, run + step), *range(count + run, count + run + step)]
    return masks


def _exchanged(count: int, step: int) -> tuple[list[int], list[int]]:
    """The runs of `step` lanes with even numbers of both vectors, and those with odd ones."""
    masks: tuple[list[int], list[int]] = ([], [])
    for half, mask in enumerate(masks):
        for run in range(half * step, count, 2 * step):
            mask += [*range(run, run + step), *range(count + run, count + run + step)]
    return masks
