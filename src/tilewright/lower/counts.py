"""How often something happens, as forms in the sizes of a program: iterations, lanes that are on.

Of a prefix `max(count, 0) - max(count - lanes, 0)` lanes are on. Neighbouring vectors cancel each
other's terms, and so do the iterations of a loop over tiles: what is left is all elements up to the
end, less those behind the last tile, of which there are none.
"""

from __future__ import annotations

from tilewright.dtypes import index
from tilewright.lower import forms
from tilewright.lower.forms import Factors, Form
from tilewright.lower.quasi_linear import QuasiLinear, bounds_of, function_of, linearised
from tilewright.tensor import ir as tir

__all__ = ["added_up", "at_most_once", "counted", "of_condition", "of_prefix"]
__all__ += ["repeated", "settled"]


def of_prefix(count: tir.Expr, lanes: int) -> Form:
    """Lanes of a prefix that are on."""
    whole = counted(count)
    return forms.minus(_positive(whole), _positive(forms.minus(whole, forms.constant(lanes))))


def of_condition(cond: tir.Expr) -> Form | None:
    """One where a comparison of indices holds, else zero; None if it is anything else."""
    if type(cond) not in (tir.Lt, tir.Le) or cond.a.dtype != index:  # type: ignore[attr-defined]
        return None
    more = tir.Const(type(cond) is tir.Le)
    return of_prefix(cond.b - cond.a + more, 1)  # type: ignore[attr-defined]


def _positive(form: Form) -> Form:
    """The form where it is positive, else zero."""
    number = forms.const_of(form)
    if number is not None:
        return forms.constant(max(number, 0))
    ordered = dict(sorted(form.items(), key=lambda item: hash(item[0])))  # equal ones meet
    return {(tir.Max(forms.expr_of(ordered), tir.Const(0)),): 1}


def settled(form: Form) -> Form:
    """The form without maxima whose sign is known: where all terms are together, few are left."""
    total: Form = {}
    for key, k in form.items():
        product = forms.constant(k)
        for atom in key:
            product = forms.times(product, _settled_atom(atom))
        total = forms.plus(total, product)
    return linearised(total, with_maxima=True)


def _settled_atom(atom: tir.Expr) -> Form:
    if not _maxima((atom,)):
        return {(atom,): 1}
    (form,) = _maxima((atom,))
    least, most = bounds_of(form) or (None, None)
    if most is not None and most <= 0:
        return {}
    is_positive = least is not None and least >= 0
    return form if is_positive or is_count(forms.expr_of(form)) else {(atom,): 1}


def added_up(found: Form, var: tir.Var, first: Form, end: Form) -> Form | None:
    """The sum of a form over iterations `first` … `end - 1`; None if it is not known.

    Terms that move must be those of a neighbour, with the other sign: `f(v) - f(v + 1)`.
    """
    moving = {key: k for key, k in found.items() if forms.mentions({key: k}, var)}
    fixed = {key: k for key, k in found.items() if key not in moving}
    times = forms.expr_of(forms.minus(end, first))
    least, _ = bounds_of(counted(times)) or (-1, 0)
    if least < 0 and not is_count(times):
        return None
    total = repeated(fixed, counted(times))
    following = forms.plus(forms.form_of(var), forms.constant(1))
    while moving:
        key = next((k for k in moving if _at(k, var, following) in _keys(moving)), None)
        if key is None:
            return None
        k, (other,) = moving.pop(key), _at(key, var, following)
        if moving.pop(other) != -k:
            return None
        border = forms.minus(_at(key, var, first), _at(key, var, end))
        total = forms.plus(total, border, k)
    return total


def repeated(found: Form, times: Form) -> Form:
    """`times · found`."""
    often = settled(times)
    once, rest = _if_at_all(found, often)
    is_open = any(_maxima(key) for key in often)  # terms of neighbours may cancel these
    return forms.plus(once, forms.times(rest, times if is_open else often))


def _if_at_all(found: Form, times: Form) -> tuple[Form, Form]:
    """What prefixes come to that are there once or not at all, and the other terms.

    `times · (max(x, 0) - max(x - 8, 0))` is `max(x, 0) - max(x - 8·times, 0)` then.
    """
    total, rest = Form(), dict(found)
    least, most = bounds_of(times) or (0, 2)
    if least < 0 or most > 1:
        return total, rest
    for key, k in found.items():
        for other in found:
            lanes = _distance(key, other)
            if lanes is None or lanes <= 0 or rest.get(key) != k or rest.get(other) != -k:
                continue
            (start,), others = _maxima(key), [atom for atom in key if not _maxima((atom,))]
            if function_of(forms.plus(start, times)) is None:  # rows, which are not columns
                continue
            end = _positive(counted(forms.expr_of(forms.plus(start, times, -lanes))))
            part = forms.times({tuple(others): k}, forms.minus(_positive(start), end))
            total = forms.plus(total, part)
            del rest[key], rest[other]
    return total, rest


def _maxima(key: Factors) -> list[Form]:
    """The forms of which the positive part is a factor."""
    return [forms.form_of(a.a) for a in key if type(a) is tir.Max and tir.int_value(a.b) == 0]


def _distance(key: Factors, other: Factors) -> int | None:
    """By how much the maximum in a product exceeds that in another one, if all else is equal."""
    ours, theirs = _maxima(key), _maxima(other)
    if len(ours) != 1 or len(theirs) != 1:
        return None
    rest = [atom for atom in key if not _maxima((atom,))]
    if rest != [atom for atom in other if not _maxima((atom,))]:
        return None
    return forms.const_of(forms.minus(ours[0], theirs[0]))


def _keys(form: Form) -> list[Form]:
    return [{key: 1} for key in form]


def _at(key: Factors, var: tir.Var, value: Form) -> Form:
    """A product with maxima of forms in which the variable has this value."""
    product = forms.constant(1)
    for atom in key:
        match atom:
            case tir.Max(a=a, b=tir.Const(value=0)):
                inside = forms.put(forms.form_of(a), {var: value})
                product = forms.times(product, _positive(counted(forms.expr_of(inside))))
            case _:
                product = forms.times(product, forms.put({(atom,): 1}, {var: value}))
    return product


def at_most_once(times: Form, found: Form) -> bool:
    """Whether `times` is zero or one, and zero only where `found` is zero as well."""
    once, whole = function_of(settled(times)), function_of(settled(found))
    if once is None or whole is None or once.step or whole.step:
        return False
    both = QuasiLinear.plus(once, whole, 0), QuasiLinear.plus(whole, once, 0)
    if both[0] is None or both[1] is None:
        return False
    times_values, values = both[0].values, both[1].values
    return bool(((times_values == 1) | ((times_values == 0) & (values == 0))).all())


def is_count(extent: tir.Expr) -> bool:
    """Whether an extent is plainly not negative, as sizes and variables of loops are not."""
    match extent:
        case tir.Const(value=number):
            return number >= 0
        case tir.Var():
            return True
        case tir.Add(a=a, b=b) | tir.Mul(a=a, b=b) | tir.FloorDiv(a=a, b=b) | tir.Min(a=a, b=b):
            return is_count(a) and is_count(b)
        case tir.FloorMod(b=b):
            return is_count(b)
        case tir.Max(a=a, b=b):
            return is_count(a) or is_count(b)
    return False


def counted(expr: tir.Expr) -> Form:
    """A form in which equal counts are equal: remainders are gone, quotients are reduced.

    `n//8%4` is `n//8 - n//32*4`, and `n//4*4 + n%4` is `n`.
    """
    total: Form = {}
    for key, k in forms.form_of(expr).items():
        product = forms.constant(k)
        for atom in key:
            product = forms.times(product, _atom(atom))
        total = forms.plus(total, product)
    return linearised(total)


def _atom(atom: tir.Expr) -> Form:
    match atom:
        case tir.FloorDiv(a=a, b=tir.Const(value=int(c))) if c > 0:
            return _quotient(counted(a), c)
        case tir.FloorMod(a=a, b=tir.Const(value=int(c))) if c > 0:
            whole = counted(a)
            return forms.minus(whole, forms.scaled(_quotient(whole, c), c))
    return {(atom,): 1}


def _quotient(form: Form, divisor: int) -> Form:
    """`form // divisor`, where a quotient inside of it becomes one division with it."""
    for key, k in form.items():
        match key:
            case (tir.FloorDiv(a=a, b=tir.Const(value=int(c))),) if k == 1:
                rest = {other: n for other, n in form.items() if other != key}
                return _quotient(forms.plus(counted(a), forms.scaled(rest, c)), c * divisor)
    whole = {key: k // divisor for key, k in form.items() if k // divisor}
    rest = {key: k % divisor for key, k in form.items() if k % divisor}
    if forms.const_of(rest) is not None:  # less than the divisor
        return whole
    return forms.plus(whole, {(forms.expr_of(rest) // divisor,): 1})
