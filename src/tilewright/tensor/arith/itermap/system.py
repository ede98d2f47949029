"""The bindings as a system of forms in which groups of loops are replaced by single variables.

Every group (a tile with its inside, a guarded sum, a sum that is divided) becomes a variable of
its own, the forms it was made of become leaves beside the bindings, and what remains are sums of
digits. The map is bijective exactly if every leaf is a mixed radix number of its extent and every
variable, loop or group, has all of its digits in the leaves exactly once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.tensor.arith.analyzer import Analyzer
from tilewright.tensor.arith.linear import Atom, Kind, Linear, plus
from tilewright.tensor.arith.rebuild import expression
from tilewright.tensor.ir import Cover, Expr, Var

__all__ = ["Fused", "Group", "Leaf", "System", "Tiled", "contains", "variables"]


@dataclass(eq=False)
class Leaf:
    """A form that must fill `[0, extent)`; it belongs to a binding (by position) or to a group."""

    form: Linear
    extent: Linear
    owner: int | Var


@dataclass(frozen=True)
class Fused:
    """A group whose value is that of its leaf less `shift`."""

    leaf: Leaf
    shift: Linear


@dataclass(frozen=True)
class Tiled:
    """A group whose value is the start of a tile plus the place in it.

    `more` is how much longer than the tile the inside is: 0, or the overlap of windows.
    """

    cover: Cover
    tile: Leaf
    inside: Leaf
    more: Linear


Group = Fused | Tiled


@dataclass
class System:
    """Leaves over loops and groups, whose variables have ranks from `first` on.

    `guards` are forms that the predicate keeps ≥ 0.
    """

    space: Analyzer
    first: int
    leaves: list[Leaf] = field(default_factory=list)
    guards: list[Linear] = field(default_factory=list)
    groups: dict[Var, Group] = field(default_factory=dict)

    @staticmethod
    def over(outer: Mapping[Var, Expr | int], loops: Sequence[tuple[Var, Expr]]) -> System:
        """An empty system for these loops inside of `outer`."""
        return System(Analyzer({**outer, **dict(loops)}), len(outer))

    def group(self, extent: Linear, make: Callable[[Var], Group]) -> Linear:
        """A new variable with this extent, as a form; its leaves join the system."""
        var, space = Var(f"g{len(self.groups)}"), self.space
        space.ranks[var] = len(space.ranks)
        space.extents[var] = expression(extent)
        group = self.groups[var] = make(var)
        self.leaves += (group.leaf,) if isinstance(group, Fused) else (group.tile, group.inside)
        return space.linear(var)

    def replace(self, old: Linear, new: Linear) -> bool:
        """Replace multiples of a sum in every form, also inside of divisions; was there any?

        The leaves of the newest group, which define what is replaced, stay as they are, and so do
        those of the groups inside of it: nothing may be defined by itself.
        """
        fixed = self._below(next(reversed(self.groups)))

        def change(form: Linear) -> Linear:
            k = contains(form, old)
            if k:
                return plus(plus(form, old, -k), new, k)
            return self._regathered(form, old, new)

        found = False
        for leaf in self.leaves:
            if leaf.owner not in fixed:
                form = self.rewritten(leaf.form, change)
                found |= form is not leaf.form
                leaf.form = form
        self.guards = [self.rewritten(guard, change) for guard in self.guards]
        return found

    def _regathered(self, form: Linear, old: Linear, new: Linear) -> Linear:
        """Replace a sum of which multiples of a divisor have left its digits.

        `2·i + j // 4` holds `8·i + j`: it is `(8·i + j) // 4`; so do `j % 4` and `j // 2 % 2`.
        """
        for atom, k in form.terms.items():
            digit = _digit_of(atom)
            if digit is None or len(old.terms) == 1:
                continue
            x, by, modulus = digit
            out = {a: q for a, q in old.terms.items() if a not in x.terms}
            inside = {a: q for a, q in old.terms.items() if a in x.terms}
            if not out or not inside or any(q % (by * (modulus or 1)) for q in out.values()):
                continue
            if any(x.terms[a] != q for a, q in inside.items()):
                continue
            rest = plus(form, Linear(0, {atom: k}), -1)
            whole = plus(plus(x, Linear(old.const, inside), -1), new)
            quotient = self.space.floor_div(whole, by)
            if modulus is not None:
                return plus(rest, self.space.floor_mod(quotient, modulus), k)
            if all(form.terms.get(a) == k * q // by for a, q in out.items()):
                rest = plus(rest, Linear(0, {a: k * q // by for a, q in out.items()}), -1)
                return plus(rest, quotient, k)
        return form

    def rewritten(self, form: Linear, change: Callable[[Linear], Linear]) -> Linear:
        """`form` with `change` applied to dividends inside of it, then to itself."""
        result = form
        for atom, k in form.terms.items():
            if atom.kind is Kind.DIV or atom.kind is Kind.MOD:
                inner, by = atom.parts
                new = self.rewritten(inner, change)
                if new is not inner:
                    divide = self.space.floor_div if atom.kind is Kind.DIV else self.space.floor_mod
                    result = plus(plus(result, Linear(0, {atom: k}), -1), divide(new, by), k)
        return change(result)

    def forms(self) -> Iterator[tuple[Leaf, Linear]]:
        """Every form of every leaf, dividends before what they are in."""
        for leaf in self.leaves:
            for form in _inside(leaf.form):
                yield leaf, form

    def binding_of(self, owner: int | Var) -> int | None:
        """The binding that a leaf belongs to, through the groups around it."""
        seen: set[Var] = set()
        while isinstance(owner, Var) and owner not in seen:
            seen.add(owner)
            users = (leaf for leaf in self.leaves if owner in variables(leaf.form))
            owner = next((leaf.owner for leaf in users), owner)
        return None if isinstance(owner, Var) else owner

    def loops_in(self, *forms: Linear) -> tuple[Var, ...]:
        """The loops that forms depend on, through groups too, in loop order."""
        found: set[Var] = set()
        for form in forms:
            for var in variables(form):
                found |= self._below(var)
        ranks = self.space.ranks
        own = [v for v in found if v not in self.groups and ranks.get(v, -1) >= self.first]
        return tuple(sorted(own, key=ranks.__getitem__))

    def _below(self, var: Var) -> set[Var]:
        """A variable and all that it is made of."""
        found: set[Var] = set()
        left = [var]
        while left:
            var = left.pop()
            if var not in found:
                found.add(var)
                match self.groups.get(var):
                    case Fused(leaf=leaf):
                        left += variables(leaf.form)
                    case Tiled(tile=tile, inside=inside):
                        left += variables(tile.form) + variables(inside.form)
        return found


def _digit_of(atom: Atom) -> tuple[Linear, int, int | None] | None:
    """(x, c, d) of `x // c % d`; d is None for a mere quotient."""
    if atom.kind is not Kind.DIV and atom.kind is not Kind.MOD:
        return None
    x, by = atom.parts
    if not isinstance(by, int):
        return None
    if atom.kind is Kind.DIV:
        return x, by, None
    single = x.single()
    if single is not None and single[1] == 1 and single[0].kind is Kind.DIV:
        inner, lower = single[0].parts
        if isinstance(lower, int):
            return inner, lower, by
    return x, 1, by


def _inside(form: Linear) -> Iterator[Linear]:
    for atom in form.terms:
        if atom.kind is Kind.DIV or atom.kind is Kind.MOD:
            yield from _inside(atom.parts[0])
    yield form


def variables(form: Linear) -> list[Var]:
    """The variables in a form, also inside of its atoms; some may occur twice."""
    found: list[Var] = []
    for atom in form.terms:
        if isinstance(atom.expr, Var):
            found.append(atom.expr)
            continue
        for part in atom.parts:
            if isinstance(part, Linear):
                found += variables(part)
            elif atom.kind is Kind.PRODUCT:
                found += variables(Linear(0, {part: 1}))
    return found


def contains(form: Linear, part: Linear) -> int:
    """The factor with which `form` holds every term of `part`; 0 if there is none."""
    for atom, q in part.terms.items():
        k, rest = divmod(form.terms.get(atom, 0), q)
        if rest or k == 0:
            return 0
        return k if all(form.terms.get(a) == k * p for a, p in part.terms.items()) else 0
    return 0
