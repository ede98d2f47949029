"""Sums of quotients that are linear: `n//13*13 + n%13//7*7 + n%13%7` is `n`.

How often a tiled loop runs is a sum of nested quotients, and there is no normal form in which equal
sums are always equal terms. But each of them is quasi-linear: `f(t + period) = f(t) + step`, as is
every count of integer points over one parameter (Ehrhart's quasi-polynomials; Verdoolaege et al.,
"Counting integer points in parametric polytopes using Barvinok's rational functions", 2007). Its
values on one period are therefore all of it, and looking at them is a proof, for all integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from tilewright.lower import forms
from tilewright.lower.forms import Factors, Form
from tilewright.tensor import ir as tir

__all__ = ["QuasiLinear", "bounds_of", "function_of", "linearised"]

MAX_PERIOD: Final = 1 << 14
"""Values of a function that are looked at; tiles of registers have periods of some hundreds."""


@dataclass(frozen=True, slots=True)
class QuasiLinear:
    """A function on the integers with `f(t + period) = f(t) + step`: its values on one period."""

    step: int
    values: npt.NDArray[np.int64]

    @property
    def period(self) -> int:
        return len(self.values)

    @classmethod
    def constant(cls, value: int) -> QuasiLinear:
        return cls(0, np.full(1, value, np.int64))

    @classmethod
    def identity(cls) -> QuasiLinear:
        return cls(1, np.zeros(1, np.int64))

    def over(self, period: int) -> QuasiLinear:
        """The same function with a multiple of its period."""
        times = period // self.period
        moved = np.arange(times, dtype=np.int64)[:, None] * self.step + self.values
        return QuasiLinear(self.step * times, moved.ravel())

    def plus(self, other: QuasiLinear, factor: int) -> QuasiLinear | None:
        """`self + factor · other`; None if the period would be too long."""
        period = math.lcm(self.period, other.period)
        if period > MAX_PERIOD:
            return None
        a, b = self.over(period), other.over(period)
        return QuasiLinear(a.step + factor * b.step, a.values + factor * b.values)

    def quotient(self, divisor: int) -> QuasiLinear | None:
        """`self // divisor`; None if the period would be too long."""
        period = self.period * (divisor // math.gcd(self.step, divisor))
        if period > MAX_PERIOD:
            return None
        whole = self.over(period)
        return QuasiLinear(whole.step // divisor, whole.values // divisor)

    def positive(self) -> QuasiLinear | None:
        """`max(self, 0)`, of a function that comes and goes; None if it grows."""
        return None if self.step else QuasiLinear(0, self.values.clip(min=0))

    def line(self) -> tuple[int, int] | None:
        """(a, b) if the function is `a·t + b`."""
        a, rest = divmod(self.step, self.period)
        b = int(self.values[0])
        is_line = not rest and np.array_equal(self.values, a * np.arange(self.period) + b)
        return (a, b) if is_line else None


def linearised(form: Form, *, with_maxima: bool = False) -> Form:
    """The form with quotients of one product of sizes replaced where their sum is linear in it.

    Maxima of them, too, `with_maxima`: they are no longer recognised by what they cancel then.
    """
    total = dict(form)
    for (argument, cofactor), terms in _families(form, with_maxima=with_maxima).items():
        function = _function(terms, argument)
        if function is None or (line := function.line()) is None:
            continue
        for atom in terms:
            del total[_key(cofactor + atom)]
        a, b = line
        total = forms.plus(total, {_key(cofactor + argument): a} if a else {})
        total = forms.plus(total, {cofactor: b} if b else {})
    return total


def _families(form: Form, *, with_maxima: bool) -> dict[tuple[Factors, Factors], Form]:
    """Terms with one quotient, by the product of sizes it is of and what it is multiplied by."""
    found: dict[tuple[Factors, Factors], Form] = {}
    for key, k in form.items():
        quotients = [atom for atom in key if not isinstance(atom, tir.Var)]
        if not with_maxima and any(type(atom) is tir.Max for atom in quotients):
            continue
        if len(quotients) != 1 or len(arguments := _arguments(quotients[0])) != 1:
            continue
        cofactor = tuple(atom for atom in key if atom is not quotients[0])
        found.setdefault((arguments.pop(), cofactor), {})[(quotients[0],)] = k
    return found


def _arguments(atom: tir.Expr) -> set[Factors]:
    """Products of variables, and anything else that is no quotient by a number, inside of one."""
    match atom:
        case (
            tir.FloorDiv(a=a, b=tir.Const(value=int(c))) | tir.Max(a=a, b=tir.Const(value=int(c)))
        ) if (c > 0) is (type(atom) is tir.FloorDiv):
            inner: set[Factors] = set()
            for key in forms.form_of(a):
                match key:
                    case (tir.FloorDiv() | tir.Max() as quotient,):
                        inner |= _arguments(quotient)
                    case (_, *_):
                        inner.add(key)
            return inner
    return {(atom,)}


def _function(form: Form, argument: Factors) -> QuasiLinear | None:
    """A sum of quotients of `argument`, and of it and numbers, as a function of it."""
    total: QuasiLinear | None = QuasiLinear.constant(0)
    for key, k in form.items():
        term = _term(key, argument)
        if total is None or term is None:
            return None
        total = total.plus(term, k)
    return total


def _term(key: Factors, argument: Factors) -> QuasiLinear | None:
    if key == argument:
        return QuasiLinear.identity()
    match key:
        case ():
            return QuasiLinear.constant(1)
        case (tir.FloorDiv(a=a, b=tir.Const(value=int(c))),):
            inner = _function(forms.form_of(a), argument)
            return inner.quotient(c) if inner is not None else None
        case (tir.Max(a=a, b=tir.Const(value=0)),):
            inner = _function(forms.form_of(a), argument)
            return inner.positive() if inner is not None else None
    return None


def _key(factors: Factors) -> Factors:
    """Factors in the order of `forms.times`."""
    return tuple(sorted(factors, key=hash))


def function_of(form: Form) -> QuasiLinear | None:
    """A form of one product of sizes as a function of it; None if there are several."""
    arguments = {a for key in form if key for a in (_arguments(key[0]) if len(key) == 1 else {key})}
    return _function(form, arguments.pop()) if len(arguments) == 1 else None


def bounds_of(form: Form) -> tuple[int, int] | None:
    """The least and the greatest value of a form that comes and goes; None if it is none.

    `(n + 7) // 8 - n // 8`, the tiles that are not full, is 0 or 1.
    """
    number = forms.const_of(form)
    if number is not None:
        return number, number
    function = function_of(form)
    if function is None or function.step:
        return None
    return int(function.values.min()), int(function.values.max())
