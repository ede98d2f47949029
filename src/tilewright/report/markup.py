"""Elements of HTML and SVG as text. Whatever is not `Markup` is escaped: names are of strangers."""

from __future__ import annotations

from html import escape
from typing import Final

from tilewright.shown import visible

__all__ = ["Child", "Markup", "element", "joined", "number"]

_EMPTY: Final = frozenset({"meta", "link", "line", "circle", "rect", "path", "br"})
"""Elements without content."""


class Markup(str):
    """A text that is markup already, made by `element`."""

    __slots__ = ()


Child = str | int | float | None
"""Content of an element: a text, a number, markup, or nothing."""


def element(name: str, /, *children: Child, **attributes: Child) -> Markup:
    """An element. Of attributes, `class_` is `class`, and other underscores are hyphens."""
    words = [name]
    for key, value in attributes.items():
        if value is not None:
            text = number(value) if isinstance(value, float) else visible(str(value))
            words.append(f'{key.rstrip("_").replace("_", "-")}="{escape(text)}"')
    if name in _EMPTY and not children:
        return Markup(f"<{' '.join(words)}/>")
    return Markup(f"<{' '.join(words)}>{joined(*children)}</{name}>")


def joined(*children: Child) -> Markup:
    """Contents one after the other."""
    return Markup("".join(map(_content, children)))


def _content(child: Child) -> str:
    if child is None:
        return ""
    return child if isinstance(child, Markup) else escape(visible(str(child)))


def number(value: float) -> str:
    """A coordinate, as short as it may be."""
    return f"{value:.1f}".rstrip("0").rstrip(".") if value % 1 else f"{value:.0f}"
