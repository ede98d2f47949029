"""The `Analyzer`: what can be said about index expressions while some variables are in scope.

    a = Analyzer({i: n, j: 4})          # 0 ≤ i < n, 0 ≤ j < 4, in binding order
    a.simplify((i * 4 + j) // 4)        # i
    a.bounds(j * 2 + 1)                 # Interval(1, 7)
    a.prove(i * 4 + j < n * 4)          # True; None means that it is not known

Indices are mathematical integers: arithmetic of the index dtype is assumed not to overflow. A
variable that an extent mentions and nothing binds is a size of the program and at least 1; any
other unbound variable may have any value. All facts hold where the variables have values, so
inside a loop over `range(n)`. Answers are deterministic, and `simplify` returns the same object
where there is nothing to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from tilewright.dtypes import index
from tilewright.tensor.arith import div_mod, symbolic_div
from tilewright.tensor.arith.compare import decide, facts_of, simplify_compare
from tilewright.tensor.arith.examples import Example, examples
from tilewright.tensor.arith.fold import fold
from tilewright.tensor.arith.interval import Interval
from tilewright.tensor.arith.linear import Atom, Kind, Linear, high, low
from tilewright.tensor.arith.linearize import atomic, linearize
from tilewright.tensor.arith.nonneg import STEPS, never_negative
from tilewright.tensor.arith.rebuild import expression, same_tree
from tilewright.tensor.arith.space import NotAffine, Space
from tilewright.tensor.ir import (
    BitAnd,
    BitOr,
    Buffer,
    Compare,
    Const,
    Eq,
    Expr,
    FloorDiv,
    FloorMod,
    Not,
    Var,
)
from tilewright.tensor.node import Node
from tilewright.tensor.visit import map_children

__all__ = ["Analyzer"]


class Analyzer(Space):
    """Simplifies and proves, given `0 ≤ var < extent` for each bound variable."""

    __slots__ = ("_assumed", "_examples", "_linears", "_nonneg", "_searching", "_simplified")

    def __init__(self, extents: Mapping[Var, Expr | int] | None = None) -> None:
        super().__init__(extents or {})
        # Keyed by id, with the expression kept alive: most queries come once per object, and a
        # structural hash costs more than the answer. What is equal meets in the interned atoms.
        self._linears: dict[int, tuple[Expr, Linear]] = {}
        self._simplified: dict[int, tuple[Expr, Expr]] = {}
        self._nonneg: dict[object, bool] = {}
        self._assumed: tuple[Expr, ...] = ()
        self._examples: tuple[Example, ...] | None = None
        self._searching = False

    def bind(self, var: Var, extent: Expr | int) -> Analyzer:
        """A new analyzer that also knows `0 ≤ var < extent`."""
        made = Analyzer({**self.extents, var: extent})
        made._take(self._assumed)
        return made

    def assume(self, *conds: Expr) -> Analyzer:
        """A new analyzer for where `conds` also hold; parts it cannot use are ignored."""
        made = Analyzer(self.extents)
        made._take((*self._assumed, *conds))
        return made

    def _take(self, conds: tuple[Expr, ...]) -> None:
        self._assumed = conds
        for cond in conds:
            self.facts.extend(facts_of(self, cond))
        for fact in self.facts:
            if len(fact.terms) == 1:
                ((atom, k),) = fact.terms.items()
                _tighten(atom, k, fact.const)
        self._linears.clear()
        self._nonneg.clear()
        self._examples = None

    def simplify(self, expr: Expr) -> Expr:
        """An equal expression in canonical form; the same object if it is that already."""
        if type(expr) is Const:
            return expr
        found = self._simplified.get(id(expr))
        if found is not None:
            return found[1]
        kind = type(expr)
        if (kind is FloorDiv or kind is FloorMod) and self._is_digit(expr):  # type: ignore[arg-type]
            return expr
        result = self._once(expr)
        if result is not expr:
            if result.dtype != index:
                result = self.simplify(result)
            self._simplified[id(result)] = (result, result)
        self._simplified[id(expr)] = (expr, result)
        return result

    def _is_digit(self, expr: FloorDiv | FloorMod) -> bool:
        """A quotient or remainder of a loop that is longer than the divisor is simple as it is."""
        if type(expr.a) is not Var or type(expr.b) is not Const or self.facts:
            return False
        extent = self.extents.get(expr.a)
        size = extent.value if type(extent) is Const else extent
        return isinstance(size, int) and 1 < int(expr.b.value) < size

    def _once(self, expr: Expr) -> Expr:
        """Index arithmetic in full; of anything else, the parts and then one step at the root."""
        dtype = expr.dtype
        try:
            if dtype is index or dtype == index:
                result = expression(self.linear(expr), expr)
                return expr if result is not expr and same_tree(result, expr) else result
            if isinstance(expr, Compare) and expr.a.dtype == index:
                return simplify_compare(self, expr)
        except NotAffine:
            pass
        if isinstance(expr, Var):
            return expr
        return fold(map_children(expr, self._part))

    def _part(self, part: Node) -> Node:
        if isinstance(part, Buffer):
            return part
        if isinstance(part, Expr):
            return self.simplify(part)
        return map_children(part, self._part)

    def bounds(self, expr: Expr) -> Interval:
        """Constant ends of the range of an index expression, as tight as intervals allow."""
        try:
            form = self.linear(expr)
        except NotAffine:
            return Interval(None, None)
        return Interval(low(form.const, form.terms), high(form.const, form.terms))

    def prove(self, cond: Expr) -> bool | None:
        """True or False if `cond` has that value everywhere in scope, None if that is not known."""
        if type(cond) is Const:
            return bool(cond.value)
        if isinstance(cond, BitAnd | BitOr):
            return self._prove_joined(cond)
        if type(cond) is Not:
            inner = self.prove(cond.value)
            return None if inner is None else not inner
        if isinstance(cond, Compare) and cond.a.dtype == index:
            try:
                return decide(self, type(cond), self.linear(cond.a), self.linear(cond.b))
            except NotAffine:
                pass
        result = self.simplify(cond)
        return bool(result.value) if type(result) is Const else None

    def _prove_joined(self, cond: BitAnd | BitOr) -> bool | None:
        settles = type(cond) is BitOr
        first = self.prove(cond.a)
        if first is settles:
            return settles
        second = self.prove(cond.b)
        if second is settles:
            return settles
        return None if first is None or second is None else not settles

    def prove_equal(self, a: Expr, b: Expr) -> bool | None:
        """Whether two expressions are always equal (True), never (False), or not known (None)."""
        if a is b:
            return True
        if a.dtype == index and b.dtype == index:
            try:
                return decide(self, Eq, self.linear(a), self.linear(b))
            except NotAffine:
                pass
        return True if same_tree(self.simplify(a), self.simplify(b)) else None

    def divisor(self, expr: Expr) -> int:
        """A number that always divides an index expression; 0 if the expression is zero."""
        try:
            form = self.linear(expr)
        except NotAffine:
            return 1
        return gcd(form.const, *[k * self._factor(atom) for atom, k in form.terms.items()])

    def residue(self, expr: Expr) -> tuple[int, int]:
        """(m, r) such that an index expression is always r modulo m; (1, 0) if nothing is known.

        A constant c is (0, c).
        """
        try:
            form = self.linear(expr)
        except NotAffine:
            return 1, 0
        modulus = gcd(*[k * self._factor(atom) for atom, k in form.terms.items()])
        return modulus, form.const % modulus if modulus else form.const

    def _factor(self, atom: Atom) -> int:
        if atom.kind is Kind.START or atom.kind is Kind.SIZE:
            return int(atom.parts[0].factor)
        return 1

    def linear(self, expr: Expr) -> Linear:
        found = self._linears.get(id(expr))
        if found is None:
            # What is kept must not depend on how far some search had come.
            state, self._searching = self._searching, False
            try:
                found = self._linears[id(expr)] = (expr, linearize(self, expr))
            finally:
                self._searching = state
        return found[1]

    def atomic(self, expr: Expr) -> Linear:
        found = self._linears.get(id(expr))
        if found is None:
            found = self._linears[id(expr)] = (expr, atomic(self, expr))
        return found[1]

    def floor_div(self, x: Linear, divisor: int | Linear) -> Linear:
        if isinstance(divisor, int):
            return div_mod.floor_div(self, x, divisor)
        return symbolic_div.divide(self, x, divisor)

    def floor_mod(self, x: Linear, divisor: int | Linear) -> Linear:
        if isinstance(divisor, int):
            return div_mod.floor_mod(self, x, divisor)
        return symbolic_div.modulo(self, x, divisor)

    def never_negative(self, form: Linear) -> bool:
        least = low(form.const, form.terms)
        if least is not None and least >= 0:
            return True
        if not form.terms:
            return False
        most = high(form.const, form.terms)
        if most is not None and most < 0:
            return False
        if self._searching:
            return never_negative(self, form)  # part of that search; its answer is not kept
        key = form.key()
        found = self._nonneg.get(key)
        if found is None:
            found = self._nonneg[key] = not self._is_refuted(form) and self._searched(form)
        return found

    def tells_from_zero(self, form: Linear) -> bool:
        return any(example.tells_from_zero(form) for example in self._tried())

    def _is_refuted(self, form: Linear) -> bool:
        """Whether the form is negative somewhere, so that there is no proof to look for."""
        return any(example.refutes(form) for example in self._tried())

    def _tried(self) -> tuple[Example, ...]:
        if self._examples is None:
            self._examples = examples(self)
        return self._examples

    def _searched(self, form: Linear) -> bool:
        self._searching, self.steps = True, STEPS
        try:
            return never_negative(self, form)
        finally:
            self._searching = False


def _tighten(atom: Atom, k: int, const: int) -> None:
    """Use `k·atom + const ≥ 0` for the atom's own bounds; nothing is built on it yet."""
    if k > 0:
        least = -(const // k)
        atom.lo = least if atom.lo is None else max(atom.lo, least)
    else:
        most = const // -k
        atom.hi = most if atom.hi is None else min(atom.hi, most)
