"""Kernels under the roofs of the machine: what they reach, before and after, and what limits them.

The x axis is how many operations there are for each byte that a kernel reads or writes at least
once, the y axis how many it does in a second. A kernel is below the bandwidth of the memory that
its data come from, and below the peak of multiply-adds. Winograd counts as the direct convolution
that it stands for, and may be above.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.report.axes import Axis, Frame, path_of
from tilewright.report.data import Report, Roofs
from tilewright.report.kernels import Kernel
from tilewright.report.markup import Markup, element

__all__ = ["roofline_chart", "with_operations"]

NEAR = 15.0
"""Pixels between labels below which the later one is left out."""
TEXT_HEIGHT = 13.0
ROOM = 190.0
"""Pixels of a line on which the name and the rate of a level stand."""
PLACES = (0.04, 0.5)
"""Where on their lines names of levels stand, by turns: neighbours are close to each other."""


def with_operations(report: Report) -> list[Kernel]:
    """Kernels that have multiply-adds: others have no place under these roofs."""
    return [kernel for kernel in report.measured if kernel.flops and kernel.moved_bytes]


def roofline_chart(report: Report, width: int, height: int) -> Markup:
    """Hollow dots are drafts, full ones the best records."""
    kernels = with_operations(report)
    frame = _frame(report.roofs, kernels, width, height)
    parts = [frame.grid(), *_roofs(report.roofs, frame)]
    parts += [_kernel(report, kernel, frame) for kernel in reversed(kernels)]
    parts += _labels(kernels, frame)
    return frame.chart("operations for each byte against operations in a second", *parts)


def _frame(roofs: Roofs, kernels: Sequence[Kernel], width: int, height: int) -> Frame:
    intensities = [kernel.flops / kernel.moved_bytes for kernel in kernels]
    ridges = [roofs.gflops / rate for _, rate in roofs.bandwidths]
    rates = [kernel.flops / time for kernel in kernels for time in _times(kernel)]
    low, high = min([*intensities, *ridges]) / 2, max([*intensities, *ridges]) * 2
    top = max([*rates, roofs.gflops]) * 1.6
    least = min([*rates, roofs.bandwidths[-1][1] * low * 2])
    return Frame(
        width,
        height,
        Axis(low, high, 48, width - 12, is_log=True),
        Axis(max(least / 2, top / 1e5), top, height - 42, 30, is_log=True),
        "operations for each byte",
        "GFLOP/s",
    )


def _times(kernel: Kernel) -> tuple[float, float]:
    return kernel.drafted_ns, kernel.best_ns


def _roofs(roofs: Roofs, frame: Frame) -> list[Markup]:
    """The peak, and the bandwidth of each level up to where it meets the peak."""
    x, y, peak = frame.x, frame.y, roofs.gflops
    first = max(x.low, peak / max(rate for _, rate in roofs.bandwidths))
    line = path_of([(x.at(first), y.at(peak)), (x.end, y.at(peak))])
    parts = [element("path", d=line, class_="roof")]
    height = y.at(peak) - 6
    parts.append(element("text", f"{peak:.0f} GFLOP/s", x=x.end, y=height, class_="tick end"))
    for place, (name, rate) in enumerate(roofs.bandwidths):
        begin, end = max(x.low, y.low / rate), peak / rate
        if begin >= end:
            continue
        points = [(x.at(begin), y.at(begin * rate)), (x.at(end), y.at(peak))]
        parts.append(element("path", d=path_of(points), class_="roof"))
        has_room = math.dist(*points) >= ROOM
        text = f"{name} {rate:.0f} GB/s" if has_room else name
        parts.append(_along(points, PLACES[place % 2], text))
    return parts


def _along(points: Sequence[tuple[float, float]], part: float, text: str) -> Markup:
    """A text on a line, so far from its begin."""
    (x, y), (to_x, to_y) = points
    x, y = x + part * (to_x - x), y + part * (to_y - y)
    angle = math.degrees(math.atan2(to_y - y, to_x - x))
    turned = f"rotate({angle:.1f} {x:.1f} {y:.1f})"
    return element("text", text, x=x, y=y + 4, transform=turned, class_="halo")


def _kernel(report: Report, kernel: Kernel, frame: Frame) -> Markup:
    """From what it was to what it is; the larger, the more of the time it takes."""
    x = frame.x.at(kernel.flops / kernel.moved_bytes)
    before, after = (frame.y.at(kernel.flops / time) for time in _times(kernel))
    radius = 3.0 + 7.0 * report.share(kernel) ** 0.5
    rates = " → ".join(f"{kernel.flops / time:.0f}" for time in _times(kernel))
    title = element("title", f"{kernel.number}: {kernel.label}, {rates} GFLOP/s")
    return element(
        "g",
        title,
        element("line", x1=x, y1=before, x2=x, y2=after, class_="moved"),
        element("circle", cx=x, cy=before, r=radius, class_="before"),
        element("circle", cx=x, cy=after, r=radius, class_="after"),
    )


def _labels(kernels: Sequence[Kernel], frame: Frame) -> list[Markup]:
    """Numbers of kernels, those that take longest first, where they do not hide each other."""
    placed: list[tuple[float, float]] = []
    parts = []
    for kernel in kernels:
        x = frame.x.at(kernel.flops / kernel.moved_bytes) + 11
        y = frame.y.at(kernel.flops / kernel.best_ns) + 4
        if all(abs(x - a) >= NEAR or abs(y - b) >= TEXT_HEIGHT for a, b in placed):
            placed.append((x, y))
            parts.append(element("text", kernel.number, x=x, y=y, class_="name"))
    return parts
