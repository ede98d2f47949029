"""A sum of digits that is divided, `(i0·6 + i1) // 4`, acts as one loop."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.tensor.arith.itermap.digits import Chain, chain, read
from tilewright.tensor.arith.itermap.result import Reason, Refusal
from tilewright.tensor.arith.itermap.system import Fused, Leaf, System
from tilewright.tensor.arith.linear import Kind, Linear, constant

__all__ = ["absorb_dividend", "absorb_dividends", "dividends_in", "numbers_of"]


def absorb_dividends(system: System) -> Refusal | None:
    """Replace sums that are divided by variables, innermost first."""
    while (found := next(_divided(system), None)) is not None:
        leaf, dividend = found
        numbers = numbers_of(system, dividend)
        if not isinstance(numbers, Chain):
            # Of a sum with gaps, the quotients may still have none.
            reason = Reason.UNKNOWN if numbers is Reason.GAP else numbers
            return Refusal(reason, system.binding_of(leaf.owner), system.loops_in(leaf.form))
        absorb_dividend(system, dividend, numbers)
    return None


def _divided(system: System) -> Iterator[tuple[Leaf, Linear]]:
    for leaf, form in system.forms():
        for dividend in dividends_in(form, system.first):
            yield leaf, dividend


def dividends_in(form: Linear, first: int) -> Iterator[Linear]:
    """Sums that are divided directly in a form."""
    for atom in form.terms:
        if (atom.kind is Kind.DIV or atom.kind is Kind.MOD) and atom.depth >= first:
            single = atom.parts[0].single()
            if single is None or single[1] != 1:
                yield atom.parts[0]


def numbers_of(system: System, form: Linear) -> Chain | Reason:
    """A sum as a mixed radix number from zero."""
    digits = read(system.space, form, system.first)
    if digits is None or digits.base.terms or digits.base.const:
        return Reason.NOT_AFFINE
    return chain(system.space, digits.digits)


def absorb_dividend(system: System, dividend: Linear, numbers: Chain) -> None:
    """Replace a sum with its chain by a variable, and its loops by digits of the variable."""
    reach = numbers.reach
    group = system.group(reach, lambda v: Fused(Leaf(dividend, reach, v), constant(0)))
    system.replace(dividend, group)
    if not numbers.exact:
        return
    # The sum may be hidden: of `i·3 + j`, with j < 3, the quotient by 6 has become `i // 2`.
    for n, digit in enumerate(numbers.digits):
        atom = system.space.var(digit.source)
        if digit.reversed or isinstance(atom, int) or not digit.is_whole:
            continue
        value = system.space.floor_div(group, _number(digit.scale))
        if n + 1 < len(numbers.digits):
            value = system.space.floor_mod(value, _number(digit.extent))
        system.replace(Linear(0, {atom: 1}), value)


def _number(form: Linear) -> int | Linear:
    return form if form.terms else form.const
