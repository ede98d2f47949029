"""Inverting a map: the value of each loop from the values of the iterators.

A leaf that is a mixed radix number gives each of its digits back, `(value // scale) % extent`; the
digits of a loop add up to the loop. Groups are opened once their own value is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.tensor.arith.analyzer import Analyzer
from tilewright.tensor.arith.itermap.digits import Chain
from tilewright.tensor.arith.itermap.system import Fused, Leaf, System, Tiled
from tilewright.tensor.arith.rebuild import expression
from tilewright.tensor.cover import regular_size
from tilewright.tensor.ir import Const, Cover, Expr, Select, Var

__all__ = ["invert", "tile_of"]


def invert(
    system: System,
    chains: Mapping[Leaf, Chain],
    complete: Mapping[Var, int],
    values: Sequence[Expr],
    analyzer: Analyzer,
) -> dict[Var, Expr]:
    """Loops in terms of `values`; those that are not determined are left out.

    `complete` gives the number of digits of each variable whose digits are all used.
    """
    inverter = _Inverter(system, chains, analyzer)
    for leaf in system.leaves:
        if isinstance(leaf.owner, int):
            inverter.decode(leaf, values[leaf.owner])
    return inverter.solved(complete)


class _Inverter:
    def __init__(self, system: System, chains: Mapping[Leaf, Chain], analyzer: Analyzer) -> None:
        self.system, self.chains, self.analyzer = system, chains, analyzer
        self.digits: dict[Var, list[Expr]] = {}

    def decode(self, leaf: Leaf, value: Expr) -> None:
        """Note the digits that a leaf's value shows; none if its values repeat."""
        numbers = self.chains[leaf]
        if not numbers.exact:
            return
        top = len(numbers.digits) - 1
        for n, digit in enumerate(numbers.digits):
            part = value // expression(digit.scale) if n else value
            if n != top:
                part = part % expression(digit.extent)
            if digit.reversed:
                part = expression(digit.extent) - 1 - part
            self.digits.setdefault(digit.source, []).append(part * expression(digit.lower))

    def solved(self, complete: Mapping[Var, int]) -> dict[Var, Expr]:
        """Add up digits and open groups until nothing new is known."""
        values: dict[Var, Expr] = {}
        for var, digits in complete.items():
            if digits == 0:
                self.digits[var] = []
        while ready := [
            var
            for var, found in self.digits.items()
            if var not in values and complete.get(var) == len(found)
        ]:
            for var in ready:
                values[var] = self.analyzer.simplify(sum(self.digits[var], start=Const(0)))
                self._open(var, values[var])
        ranks = self.system.space.ranks
        loops = [v for v in values if v not in self.system.groups]
        return {v: values[v] for v in sorted(loops, key=ranks.__getitem__)}

    def _open(self, var: Var, value: Expr) -> None:
        group = self.system.groups.get(var)
        if isinstance(group, Fused):
            self.decode(group.leaf, value + expression(group.shift))
        elif isinstance(group, Tiled) and not group.more.terms and not group.more.const:
            tile, place = tile_of(group.cover, value)
            self.decode(group.tile, self.analyzer.simplify(tile))
            self.decode(group.inside, self.analyzer.simplify(place))


def tile_of(cover: Cover, position: Expr) -> tuple[Expr, Expr]:
    """(tile, place in it) of a position: the inverse of `start(tile) + place`."""
    step = regular_size(cover)
    if step is not None and all(size <= step for size, _ in cover.segments):
        return position // step, position % step
    pieces: list[tuple[Expr, Expr, Expr]] = []  # (end of the segment, tile, place)
    first: Expr = Const(0)
    begin: Expr = Const(0)
    for size, count in cover.segments:
        end = begin + count * size
        pieces.append((end, first + (position - begin) // size, (position - begin) % size))
        first, begin = first + count, end
    *others, (_, tile, place) = pieces
    for end, earlier_tile, earlier_place in reversed(others):
        tile = Select(position < end, earlier_tile, tile)
        place = Select(position < end, earlier_place, place)
    return tile, place
