"""Tables that fit the screen: columns are cut, or left out, where they may be."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

__all__ = ["Columns", "aligned", "cut", "fitted"]

GAP = "  "


@dataclass(frozen=True, slots=True)
class Columns:
    """Widths of columns, and which of them have their texts to the right."""

    widths: tuple[int, ...]
    right: frozenset[int]

    @classmethod
    def of(
        cls,
        lines: Sequence[Sequence[str]],
        right: Collection[int] = (),
        least: Mapping[int, int] | None = None,
        width: int | None = None,
    ) -> Self:
        """Wide enough for all lines; `least` are columns that may be cut, the first one first."""
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for column, minimum in (least or {}).items():
            excess = 0 if width is None else _length(widths) - width
            widths[column] -= max(0, min(excess, widths[column] - minimum))
        return cls(tuple(widths), frozenset(right))

    def line(self, cells: Sequence[str]) -> str:
        """One line of the table."""
        placed = []
        for column, (cell, width) in enumerate(zip(cells, self.widths, strict=True)):
            text = cut(cell, width)
            placed.append(text.rjust(width) if column in self.right else text.ljust(width))
        return GAP.join(placed).rstrip()


def aligned(
    lines: Sequence[Sequence[str]],
    left: int = 1,
    least: Mapping[int, int] | None = None,
    width: int | None = None,
) -> str:
    """Lines as a table: the first `left` columns to the left, the others to the right."""
    columns = Columns.of(lines, range(left, len(lines[0])), least, width)
    return "\n".join(map(columns.line, lines))


def fitted(
    lines: Sequence[Sequence[str]],
    left: int,
    least: Mapping[str, int],
    spare: Sequence[str],
    width: int,
) -> str:
    """`aligned`, with columns by the names in the first line.

    Where cutting those of `least` is not enough, those of `spare` are left out in order.
    """
    head = list(lines[0])
    kept = list(range(len(head)))
    for name in ("", *spare):
        kept = [column for column in kept if head[column] != name or not name]
        names = [head[column] for column in kept]
        numbered = {names.index(n): minimum for n, minimum in least.items() if n in names}
        table = [[cells[column] for column in kept] for cells in lines]
        if _length(Columns.of(table, (), numbered, width).widths) <= width:
            break
    return aligned(table, sum(column < left for column in kept), numbered, width)


def cut(text: str, width: int) -> str:
    """Paths lose their beginning, other texts their end."""
    if len(text) <= width:
        return text
    return f"…{text[1 - width :]}" if text.startswith("/") else f"{text[: width - 1]}…"


def _length(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)
