"""Tuning curves: the best so far over trials, for the whole model and for each kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tilewright.report.axes import Axis, Frame, path_of
from tilewright.report.data import Report
from tilewright.report.kernels import Kernel, searches
from tilewright.report.markup import Markup, element, joined
from tilewright.shown import time_text

__all__ = ["corners", "curves_chart", "kernel_chart"]

COLOURS: Final = 6
"""Colours of the page for searches (`style.py`)."""
MOST_DOTS: Final = 400
SLOWEST: Final = 1.6
"""Trials that take more times as long as the draft lie at the upper border."""


def curves_chart(report: Report, width: int, height: int) -> Markup:
    """The time of all kernels over trials, a line for each search, and the draft."""
    curves = report.curves
    low = min(min(curve) for curve in curves.values())
    spare = (report.before_ns - low) * 0.12 or report.before_ns * 0.05
    most = max(len(curve) - 1 for curve in curves.values())
    frame = Frame(
        width,
        height,
        Axis(0, max(1, most), 64, width - 12),
        Axis(low - spare, report.before_ns + spare, height - 42, 30),
        "measured trials",
        "all kernels of a run",
        y_text=lambda value: time_text(value / 1e9),
    )
    at = frame.y.at(report.before_ns)
    parts = [frame.grid(), element("line", x1=64, y1=at, x2=width - 12, y2=at, class_="draft")]
    parts.append(element("text", "draft", x=width - 14, y=at - 6, class_="tick end"))
    for place, (by, curve) in enumerate(curves.items()):
        shown = corners(curve)
        points = [(frame.x.at(x), frame.y.at(value)) for x, value in shown]
        title = element("title", f"{by}: {time_text(curve[-1] / 1e9)}")
        line = path_of(points, is_stepped=True)
        parts.append(element("path", title, d=line, class_=f"curve s{place % COLOURS}"))
    label = f"time of all kernels over trials, from {time_text(report.before_ns / 1e9)}"
    return frame.chart(label, *parts)


def corners(curve: Sequence[float]) -> list[tuple[int, float]]:
    """Where a curve changes, and its end: all else is straight."""
    kept = [k for k, value in enumerate(curve) if k == 0 or value != curve[k - 1]]
    return [(k, curve[k]) for k in dict.fromkeys([*kept, len(curve) - 1])]


def kernel_chart(kernel: Kernel, order: Sequence[str], width: int = 300) -> Markup:
    """Every trial of a kernel as a dot by its ratio to the draft, and the best so far as lines."""
    height = 128
    ratios = [t.ratio for t in kernel.trials if t.ratio is not None]
    low = min([*ratios, 1.0])
    frame = Frame(
        width,
        height,
        Axis(0, max(1, len(kernel.trials)), 34, width - 6),
        Axis(max(0.0, low - 0.08), SLOWEST, height - 22, 10),
        "",
        "",
    )
    parts = [_small_grid(frame, len(kernel.trials))]
    dots, failed = _dots(kernel, frame)
    if dots:
        parts.append(element("path", d=dots, class_="dots"))
    if failed:
        parts.append(element("path", d=failed, class_="failed"))
    for by in searches([kernel]):
        points = _best(kernel, by, frame)
        line = path_of(points, is_stepped=True)
        parts.append(element("path", d=line, class_=f"curve s{order.index(by) % COLOURS}"))
    label = f"trials of kernel {kernel.number} by their time over that of the draft"
    return frame.chart(label, *parts, class_="small")


def _small_grid(frame: Frame, trials: int) -> Markup:
    """The time of the draft and parts of it, and the number of trials."""
    parts = []
    for value in (0.25, 0.5, 0.75, 1.0, 1.5):
        if value >= frame.y.low:
            at = frame.y.at(value)
            class_ = "draft" if value == 1.0 else "grid"
            parts.append(element("line", x1=34, y1=at, x2=frame.x.end, y2=at, class_=class_))
            parts.append(element("text", f"{value:g}", x=30, y=at + 4, class_="tick end"))
    below = frame.height - 6
    note = element("text", f"{trials} trials", x=frame.x.end, y=below, class_="tick end")
    return joined(*parts, note)


def _dots(kernel: Kernel, frame: Frame) -> tuple[str, str]:
    """Paths of dots for measured trials, and of strokes for failures."""
    every = max(1, len(kernel.trials) // MOST_DOTS)
    dots, failed = [], []
    for place, trial in enumerate(kernel.trials):
        if place % every:
            continue
        x = frame.x.at(place + 1)
        if trial.ratio is None:
            failed.append(f"M{x:.1f} {frame.y.start:.1f}v-5")
        else:
            dots.append(f"M{x:.1f} {frame.y.at(trial.ratio):.1f}h0")
    return "".join(dots), "".join(failed)


def _best(kernel: Kernel, by: str, frame: Frame) -> list[tuple[float, float]]:
    """The best so far of one search, at the places of its trials."""
    least, points = 1.0, [(frame.x.at(0), frame.y.at(1.0))]
    for place, trial in enumerate(kernel.trials):
        if trial.ratio is not None and trial.by == by and trial.ratio < least:
            least = trial.ratio
            points.append((frame.x.at(place + 1), frame.y.at(least)))
    return [*points, (frame.x.end, frame.y.at(least))]
