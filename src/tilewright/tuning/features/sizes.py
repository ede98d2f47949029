"""The numbers in the shape of a recipe, under names that depend on its class alone.

Shapes are frozen dataclasses of numbers, of other such classes, and of tuples of these. A tuple of
unknown length is its length with sums over its elements; for a tuple of numbers, their product.
What may be missing is a number below zero, and a part that may be missing is left out.
"""

from __future__ import annotations

import types
from dataclasses import fields, is_dataclass
from functools import lru_cache
from math import prod
from typing import Any, Union, get_args, get_origin, get_type_hints

from tilewright.tuning.features.scaling import signed_log2

__all__ = ["sizes_of"]

_NUMBERS = (int, float, bool)


@lru_cache(maxsize=4096)
def sizes_of(shape: object) -> tuple[tuple[str, float], ...]:
    """Names and scaled numbers of a shape."""
    return tuple(_pooled(type(shape), [shape], "").items())


@lru_cache(maxsize=256)
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _pooled(hint: Any, values: list[Any], name: str) -> dict[str, float]:
    """Numbers of several values of one kind together."""
    if hint in _NUMBERS:
        return {name: signed_log2(sum(values))}
    if isinstance(hint, type) and is_dataclass(hint):
        found: dict[str, float] = {}
        for field in fields(hint):
            own = [getattr(value, field.name) for value in values]
            found |= _pooled(_hints(hint)[field.name], own, _inside(name, field.name))
        return found
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if not any(kind in _NUMBERS for kind in inner):
            return {}
        return {name: signed_log2(sum(-1 if value is None else value for value in values))}
    if origin is tuple and inner[-1] is Ellipsis:
        return _sequence(inner[0], [element for value in values for element in value], name)
    if origin is tuple:
        parts = [_pooled(h, [v[k] for v in values], f"{name}{k}") for k, h in enumerate(inner)]
        return {key: value for part in parts for key, value in part.items()}
    return {}


def _sequence(hint: Any, elements: list[Any], name: str) -> dict[str, float]:
    count = {f"{name}_count": signed_log2(len(elements))}
    if hint in _NUMBERS:
        return count | {f"{name}_product": signed_log2(prod(map(float, elements)))}
    return count | _pooled(hint, elements, name)


def _inside(name: str, field: str) -> str:
    return f"{name}.{field}" if name else field
