from __future__ import annotations

import pytest

from tilewright.dtypes import i32, i64
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.arith.sweep import region_bounds
from tilewright.tensor.cover import count, of, size, start, uniform
from tilewright.tensor.printer import print_node

i, j, k, n, t, x = (tir.Var(name) for name in "ijkntx")
BLOCK = of((6, 20), (4, 2))  # 128
EVEN = uniform(128, 6)
SYMBOLIC = uniform(n, 6)


def swept(index, inner, outer=None, **options) -> str:
    (span,) = region_bounds((index,), inner, Analyzer(outer or {}), **options)
    return f"{print_node(span.start)} + {print_node(span.extent)}"


CASES = {
    "window": (t * 4 + x, [(x, 6)], {t: 8}, "t * 4 + 6"),
    "reversed": (7 - x, [(x, 8)], {}, "0 + 8"),
    "both vary": (t * 4 + x, [(t, 8), (x, 6)], {}, "0 + 34"),
    "strided": (t * 8 + x * 2, [(x, 4)], {t: 8}, "t * 8 + 7"),
    "quotient in one block": ((t * 4 + x) // 8, [(x, 4)], {t: 8}, "t // 2 + 1"),
    "remainder in one block": ((t * 4 + x) % 8, [(x, 4)], {t: 8}, "t % 2 * 4 + 4"),
    "remainder that wraps": ((t * 6 + x) % 4, [(x, 6)], {t: 8}, "0 + 4"),
    "digits": (x // 4 * 16 + x % 4, [(x, 32)], {}, "0 + 116"),
    "symbolic stride": (i * n + x, [(x, n)], {i: 4}, "i * n + n"),
    "all of a matrix": (i * n + x, [(i, 4), (x, n)], {}, "0 + n * 4"),
    "clamped": (tir.minimum(t * 4 + x, n - 1), [(x, 4)], {t: (n + 3) // 4}, None),
    "tile": (start(BLOCK, t) + j, [(j, size(BLOCK, t))], {t: 22}, None),
    "all tiles": (start(BLOCK, t) + j, [(t, 22), (j, size(BLOCK, t))], {}, "0 + 128"),
    "some tiles": (start(BLOCK, t) + j, [(t, 21), (j, size(BLOCK, t))], {}, "0 + 124"),
    "regular tile": (t * 6 + j, [(j, size(EVEN, t))], {t: 22}, None),
    "all regular tiles": (t * 6 + j, [(t, 22), (j, size(EVEN, t))], {}, "0 + 128"),
    "all symbolic tiles": (
        start(SYMBOLIC, t) + j,
        [(t, count(SYMBOLIC)), (j, size(SYMBOLIC, t))],
        {},
        "0 + n",
    ),
    "stencil on a tile": (
        start(BLOCK, t) * 2 + j * 2 + k,
        [(j, size(BLOCK, t)), (k, 3)],
        {t: 22},
        None,
    ),
}
LONG = {
    "clamped": "t * 4 + min(4, n - t * 4)",
    "tile": "tile_start(cover((6, 20), (4, 2)), t) + tile_size(cover((6, 20), (4, 2)), t)",
    "regular tile": "t * 6 + tile_size(cover((6, 21), (2, 1)), t)",
    "stencil on a tile": (
        "tile_start(cover((6, 20), (4, 2)), t) * 2 + tile_size(cover((6, 20), (4, 2)), t) * 2 + 1"
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_region_bounds(name):
    index, inner, outer, expected = CASES[name]
    assert swept(index, inner, outer) == (expected or LONG[name])


def test_constant_extents_are_the_largest():
    tile = start(BLOCK, t) + j
    inner = [(j, size(BLOCK, t))]
    assert swept(tile, inner, {t: 22}, constant_extents=True).endswith(" + 6")
    blocks = (t * 6 + x) // 4
    assert swept(blocks, [(x, 7)], {t: 8}, constant_extents=True) == "t * 3 // 2 + 3"
    assert swept(i, [(i, n)], {}, constant_extents=True) == "0 + n"


def test_what_depends_on_data_is_not_known():
    table = tir.Buffer("A", (tir.Const(8),), i64)
    spans = region_bounds((table[x], x), [(x, 8)], Analyzer({}))
    assert spans[0] is None
    assert spans[1] == tir.Range(tir.Const(0), tir.Const(8))
    narrow = tir.Buffer("B", (tir.Const(8),), i32)
    assert region_bounds((narrow[x].to(i64) + 1,), [(x, 8)], Analyzer({})) == (None,)
    still = narrow[t].to(i64)  # data, but the same in all steps
    assert region_bounds((still + x,), [(x, 8)], Analyzer({})) == (tir.Range(still, tir.Const(8)),)


def test_what_nothing_bounds_is_not_known():
    assert region_bounds((i * x,), [(x, 8)], Analyzer({})) == (None,)
