"""Attention: known and symbolic lengths, causal, shared heads, masks, layouts of projections."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from replay.programs.program import Options, Program, Sizes, dims, name_of, of_library
from tilewright.dtypes import DTYPES
from tilewright.tensor import ir as tir
from tilewright.tensor import library
from tilewright.tensor.build import func, placeholder

__all__ = ["programs"]

ROWS: Final[tuple[tuple[Sizes, Options], ...]] = (
    ((1, 12, 128, 128, 64), {}),
    ((2, 4, 197, 197, 32), {}),
    ((1, 8, 1, 512, 64), {}),
    ((1, 8, 256, 256, 64), {"causal": True}),
    ((1, 4, 77, 77, 80), {"causal": True}),
    ((1, 8, 64, 64, 64), {"shared_heads": 2}),
    ((1, 4, 64, 96, 32), {"value_features": 48}),
    (("b", 8, "s", "s", 64), {}),
    ((1, 8, "s", "s", 64), {"causal": True}),
    ((1, 8, "q", "k", 64), {"shared_heads": 2}),
    ((1, 8, 1, "k", 64), {}),
)
"""Batch, heads, queries, keys, features."""

SCATTERED: Final = ("bshd", "bshd", "bshd", "bshd")
"""As projections store queries, keys and values."""


def programs() -> Iterator[Program]:
    """The library's, and those with masks, other layouts and narrow types."""
    for sizes, options in ROWS:
        yield of_library("attention", sizes, options=options)
    for sizes in ((1, 8, 128, 64), ("b", 8, "s", 64)):
        yield Program(name_of("masked_attention", sizes), partial(_masked, sizes))
        make = partial(_scattered, sizes, "f32")
        yield Program(name_of("scattered_attention", sizes), make)
    for dtype in ("f16", "bf16"):
        make = partial(_scattered, (1, 8, 128, 64), dtype)
        yield Program(name_of("scattered_attention", (1, 8, 128, 64), dtype), make)
    capped = partial(_masked, (1, 8, 128, 64), softcap=20.0, guard="masked")
    yield Program("masked_attention-1x8x128x64-softcap-guard", capped)


def _masked(sizes: Sizes, **options: Any) -> tir.Func:
    """Attention with a mask that is added to the scores of all heads."""
    batch, heads, length, features = dims(*sizes)
    shape = (batch, heads, length, features)
    q, k, v = (placeholder(name, shape) for name in "QKV")
    mask = placeholder("mask", (batch, 1, length, length))
    return func("attention", [q, k, v, mask], [library.attend(q, k, v, mask, **options)])


def _scattered(sizes: Sizes, dtype: str) -> tir.Func:
    """Attention over [batch, position, head, feature]."""
    batch, heads, length, features = dims(*sizes)
    shape = (batch, length, heads, features)
    q, k, v = (placeholder(name, shape, DTYPES[dtype]) for name in "QKV")
    return func("attention", [q, k, v], [library.attend(q, k, v, layouts=SCATTERED)])
