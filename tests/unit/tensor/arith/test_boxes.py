from __future__ import annotations

from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.arith.boxes import contains, covers, merged, union
from tilewright.tensor.printer import print_node

i, n, t = tir.Var("i"), tir.Var("n"), tir.Var("t")
HERE = Analyzer({t: (n + 3) // 4, i: n})


def box(*pairs: tuple[tir.Lift, tir.Lift]) -> tuple[tir.Range, ...]:
    return tuple(tir.Range(tir.as_index(a), tir.as_index(b)) for a, b in pairs)


def text(spans: tuple[tir.Range, ...] | None) -> str:
    assert spans is not None
    return ", ".join(f"{print_node(s.start)} + {print_node(s.extent)}" for s in spans)


def test_contains_constant_boxes():
    assert contains(box((0, 8), (2, 4)), box((1, 7), (2, 4)), HERE) is True
    assert contains(box((0, 8)), box((1, 8)), HERE) is False
    assert contains(box((2, 8)), box((1, 2)), HERE) is False


def test_contains_symbolic_boxes():
    assert contains(box((0, n)), box((i, 1)), HERE) is True
    assert contains(box((0, n)), box((t * 4, tir.minimum(4, n - t * 4))), HERE) is True
    assert contains(box((0, n)), box((t * 4, 4)), HERE) is None
    assert contains(box((0, n)), box((0, n + 1)), HERE) is False


def test_union_is_the_box_around_both():
    assert text(union(box((0, 4)), box((8, 2)), HERE)) == "0 + 10"
    assert text(union(box((t * 4, 4)), box((t * 4 + 2, 4)), HERE)) == "t * 4 + 6"
    assert text(union(box((0, n)), box((i, 1)), HERE)) == "0 + n"


def test_merged_only_if_the_union_is_a_box():
    assert text(merged(box((0, 4), (0, 8)), box((4, 4), (0, 8)), HERE)) == "0 + 8, 0 + 8"
    assert text(merged(box((4, 4)), box((0, 6)), HERE)) == "0 + 8"
    assert merged(box((0, 4)), box((5, 4)), HERE) is None
    assert merged(box((0, 4), (0, 4)), box((4, 4), (4, 4)), HERE) is None


def test_covers_by_several_boxes():
    quarters = [box((a, 4), (b, 4)) for a in (0, 4) for b in (0, 4)]
    assert covers(quarters, box((0, 8), (0, 8)), HERE)
    assert covers(quarters, box((1, 7), (2, 3)), HERE)
    assert not covers(quarters[1:], box((0, 8), (0, 8)), HERE)


def test_covers_a_symbolic_extent_by_its_parts():
    parts = [box((0, n // 6 * 6)), box((n // 6 * 6, n % 6))]
    assert covers(parts, box((0, n)), HERE)
