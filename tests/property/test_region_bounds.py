"""The box of `region_bounds` holds every value that an index takes, at every outer point."""

from __future__ import annotations

from hypothesis import given, note
from hypothesis import strategies as st

from tests.property.index_expressions import NoTile, evaluate, expression_from, scopes
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.arith.boxes import contains, union
from tilewright.tensor.arith.sweep import region_bounds
from tilewright.tensor.printer import print_node

PER_EXAMPLE = 10


@given(scope=scopes(), data=st.data())
def test_swept_box_holds_every_value(scope, data):
    loops = list(scope.extents.items())
    outer = dict(loops[: data.draw(st.integers(0, len(loops) - 1))])
    inner = loops[len(outer) :]
    points = scope.points(data.draw(st.integers(0, 99)))
    seed, constant = data.draw(st.integers(0, 1 << 20)), data.draw(st.booleans())
    for number in range(PER_EXAMPLE):
        index = expression_from(scope, seed + number, 1 + number % 3)
        note(f"{print_node(index)} over {', '.join(v.name for v, _ in inner)}")
        analyzer = Analyzer(outer)
        (span,) = region_bounds((index,), inner, analyzer, constant_extents=constant)
        if span is None:
            continue
        note(f"is {print_node(span.start)} + {print_node(span.extent)}")
        for values in points:
            try:
                value = evaluate(index, values)
                first, length = evaluate(span.start, values), evaluate(span.extent, values)
            except NoTile:
                continue
            assert first <= value < first + length


@given(scope=scopes(), data=st.data())
def test_hull_contains_both_boxes(scope, data):
    loops = list(scope.extents.items())
    inner = loops[1:]
    analyzer = Analyzer(dict(loops[:1]))
    seed = data.draw(st.integers(0, 1 << 20))
    for number in range(PER_EXAMPLE):
        indices = [expression_from(scope, seed + 2 * number + n, 2) for n in range(2)]
        a, b = (region_bounds((index,), inner, analyzer) for index in indices)
        if a[0] is not None and b[0] is not None:
            around = union(a, b, analyzer)
            assert contains(around, a, analyzer) is not False
            assert contains(around, b, analyzer) is not False
