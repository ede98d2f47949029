"""Axes of charts in SVG: places of values, round numbers for ticks, grids with their labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.report.markup import Markup, element, joined

__all__ = ["Axis", "Frame", "path_of", "ticks"]


@dataclass(frozen=True)
class Axis:
    """Values from `low` to `high`, at pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def at(self, value: float) -> float:
        """The pixel of a value; what lies beyond is at the border."""
        low, high, own = self.low, self.high, min(max(value, self.low), self.high)
        if self.is_log:
            low, high, own = map(math.log, (low, high, own))
        span = (own - low) / (high - low) if high > low else 0.0
        return self.start + span * (self.end - self.start)

    @property
    def ticks(self) -> list[float]:
        """Round numbers, about as many as have room."""
        if self.is_log:
            return _powers(self.low, self.high)
        return ticks(self.low, self.high, max(2, int(abs(self.end - self.start) // 60)))


@dataclass(frozen=True)
class Frame:
    """The two axes of a chart, and what is written at them."""

    width: int
    height: int
    x: Axis
    y: Axis
    x_title: str
    y_title: str
    x_text: Callable[[float], str] = "{:g}".format
    y_text: Callable[[float], str] = "{:g}".format

    def grid(self) -> Markup:
        """Lines and their labels."""
        parts = []
        bottom, left = self.y.start, self.x.start
        for value in self.y.ticks:
            at = self.y.at(value)
            parts.append(_line(left, at, self.x.end, at, "grid"))
            parts.append(_text(self.y_text(value), left - 6, at + 4, "tick end"))
        for value in self.x.ticks:
            at = self.x.at(value)
            parts.append(_line(at, bottom, at, bottom + 4, "axis"))
            parts.append(_text(self.x_text(value), at, bottom + 18, "tick middle"))
        parts.append(_line(left, bottom, self.x.end, bottom, "axis"))
        parts.append(_text(self.x_title, self.x.end, bottom + 36, "tick end"))
        parts.append(_text(self.y_title, 2, self.y.end - 10, "tick"))
        return joined(*parts)

    def chart(self, label: str, *content: Markup, class_: str = "chart") -> Markup:
        """The whole chart, with the name that readers of screens hear."""
        return element(
            "svg",
            *content,
            viewBox=f"0 0 {self.width} {self.height}",
            width=self.width,
            height=self.height,
            role="img",
            aria_label=label,
            class_=class_,
        )


def path_of(points: Sequence[tuple[float, float]], *, is_stepped: bool = False) -> str:
    """The data of a path through points; stepped, it goes right first."""
    (x, y), *rest = points
    words = [f"M{x:.1f} {y:.1f}"]
    for to_x, to_y in rest:
        words.append(f"H{to_x:.1f}" if is_stepped else f"L{to_x:.1f} {to_y:.1f}")
        if is_stepped and abs(to_y - y) > 0.05:
            words.append(f"V{to_y:.1f}")
            y = to_y
    return "".join(words)


def ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers between two values, at most so many and one."""
    span = high - low
    if span <= 0:
        return [low]
    raw = span / most
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * k for k in (1, 2, 2.5, 5, 10) if unit * k >= raw)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]


def _powers(low: float, high: float) -> list[float]:
    """Powers of ten; with few of them, also 2 and 5 times as much."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    inside = sum(low <= 10.0**power <= high for power in powers)
    factors = (1, 2, 5) if inside <= 2 else (1,)
    found = (factor * 10.0**power for power in powers for factor in factors)
    return [value for value in found if low * 0.999 <= value <= high * 1.001]


def _line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def _text(text: str, x: float, y: float, class_: str) -> Markup:
    return element("text", text, x=x, y=y, class_=class_)
