"""Parts of the page: markup that escapes, axes with round numbers, lines between rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.layouts.show import ConversionRow, SiteRow
from tilewright.report.axes import Axis, path_of, ticks
from tilewright.report.chain import MOST_LANES, _edges
from tilewright.report.markup import Markup, element


def site(number, *reads):
    names = ("conv",), "conv 3×3", "direct", "nhwc", "nhwc", f"v{number}", "f32", ("1",)
    return SiteRow(number, reads, *names, 1.0, 1.0, is_view=False)


def test_texts_are_escaped_and_markup_is_not():
    inner = element("b", "<&>", class_='"')
    assert inner == '<b class="&quot;">&lt;&amp;&gt;</b>'
    assert element("p", inner, None, 3) == f"<p>{inner}3</p>"
    assert element("line", x1=1.0, y1=2.25, stroke_width=None) == '<line x1="1" y1="2.2"/>'
    assert isinstance(inner, Markup)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(2, 12))
def test_ticks_are_few_and_inside(low, span, most):
    found = ticks(low, low + span, most)
    slack = 1e-6 * (abs(low) + span)
    assert len(found) <= most + 1
    assert all(low - slack <= value <= low + span + slack for value in found)
    assert found == sorted(found)


def test_axes_place_values_and_keep_them_inside():
    axis = Axis(1, 100, 0, 200, is_log=True)
    assert [axis.at(v) for v in (1, 10, 100, 1000)] == pytest.approx([0, 100, 200, 200])
    assert axis.ticks == [1, 10, 100]
    assert Axis(1, 20, 0, 200, is_log=True).ticks == [1, 2, 5, 10, 20]
    assert Axis(5, 5, 0, 200).at(5) == 0
    assert Axis(0, 1, 100, 0).at(0.25) == 75


def test_steps_go_right_before_they_go_down():
    assert path_of([(0, 9), (5, 9), (7, 3)], is_stepped=True) == "M0.0 9.0H5.0H7.0V3.0"
    assert path_of([(0, 9), (7, 3)]) == "M0.0 9.0L7.0 3.0"


def test_values_that_are_read_later_have_lanes_of_their_own():
    edges = _edges([site(0, "x"), site(1, 0), site(2, 1, 0), site(3, 2, 0)])
    found = {(edge.start, edge.end): edge.lane for edge in edges}
    assert {pair for pair, lane in found.items() if lane < 0} == {(0, 1), (1, 2), (2, 3)}
    assert sorted(lane for lane in found.values() if lane >= 0) == [0, 1]


def test_a_lane_is_used_again_when_it_is_free():
    edges = _edges([site(0), site(1, 0), site(2, 1, 0), site(3, 2), site(4, 3, 2)])
    assert [edge.lane for edge in edges if edge.lane >= 0] == [0, 0]


def test_lanes_are_not_without_end():
    first = [site(k) for k in range(20)]
    last = site(20, *range(20))
    lanes = [edge.lane for edge in _edges([*first, last]) if edge.lane >= 0]
    assert sorted(lanes) == list(range(MOST_LANES))


def test_a_conversion_stands_between_writer_and_readers():
    row = ConversionRow("v0", ("1",), "nhwc", "nchw", 0, (1, 2), "it reads nchw only", 5.0)
    edges = _edges([site(0), row, site(1, 0), site(2, 0, 1)])
    assert {(edge.start, edge.end) for edge in edges} == {(0, 1), (1, 2), (1, 3), (2, 3)}
