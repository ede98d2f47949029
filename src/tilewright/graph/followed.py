"""What a tensor holds that a model computes from sizes, in canonical form: integers only."""

from __future__ import annotations

import numpy as np

from tilewright.dtypes import i64
from tilewright.graph.folding import WORK_OF_SIZE, Purse, TooLarge
from tilewright.graph.fractions import compared, whole_part
from tilewright.graph.ir import Array
from tilewright.graph.sizes import length_of, tidy
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import rewrite, walk

__all__ = ["tidied"]


def tidied(array: Array, purse: Purse) -> Array | None:
    """Elements in canonical form as index expressions.

    None if one is not integer arithmetic, too long, or not paid for: such a tensor is data like
    any other.
    """
    result = np.empty(array.shape, dtype=object)
    for place in np.ndindex(*array.shape):
        element: object = array.item(place)
        if not isinstance(element, tir.Expr):
            result[place] = tir.Const(int(element))  # type: ignore[call-overload]
            continue
        try:
            if not purse.spends(0, WORK_OF_SIZE * length_of(element) ** 2):
                return None
            plain = _without_casts(element)
            simple = None if plain is None else tidy(plain)
        except TooLarge:
            return None
        if simple is None:
            return None
        # a condition that is certain is a number, too
        result[place] = tir.Const(int(simple.value)) if isinstance(simple, tir.Const) else simple
    return result


def _without_casts(expr: tir.Expr) -> tir.Expr | None:
    """Conversions between integers dropped, and fractions made whole.

    None if other floats take part, data is read, or something is computed that sizes are not.
    """

    def change(part: object) -> tir.Expr | None:
        if isinstance(part, tir.Cast) and part.dtype.is_integer and part.value.dtype.is_integer:
            return _without_casts(part.value)
        if isinstance(part, tir.Cast) and part.dtype.is_integer and part.value.dtype.is_float:
            whole = whole_part(part.value)
            return None if whole is None else _without_casts(whole)
        if isinstance(part, tir.Cast) and part.dtype.is_integer and part.value.dtype.is_bool:
            return tir.Select(part.value, tir.Const(1), tir.Const(0))
        if isinstance(part, tir.Compare) and part.a.dtype.is_float:
            plain = compared(part)
            return None if plain is None else _without_casts(plain)
        if isinstance(part, tir.Const) and part.dtype.is_integer and part.dtype != i64:
            return tir.Const(int(part.value))
        return None

    plain = rewrite(expr, change)
    for part in walk(plain):
        if isinstance(part, tir.Load | tir.Call | tir.ShiftLeft | tir.ShiftRight):
            return None
        if (
            isinstance(part, tir.BitAnd | tir.BitOr | tir.BitXor | tir.Not)
            and part.dtype.is_integer
        ):
            return None
        if isinstance(part, tir.Expr) and part.dtype.is_float:
            return None
    return plain
