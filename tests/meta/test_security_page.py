"""SECURITY.md names every limit of the frontend, and every limit that it names has that value."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from tilewright.frontend.onnx import limits

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")

ROW = re.compile(r"^\|[^|]+\| ([\d,]+) \| `([\w.]+)` \|$", re.MULTILINE)
TEXT = re.compile(r"([\d,]+) bytes\s+\(`([\w.]+\.[A-Z_]+)`")


def named() -> dict[str, int]:
    """Limits of the page by their places in the package."""
    found = ROW.findall(PAGE) + TEXT.findall(PAGE)
    return {place: int(number.replace(",", "")) for number, place in found}


def test_every_limit_of_the_frontend_is_on_the_page():
    prefix = "frontend.onnx.limits"
    wanted = {f"{prefix}.{name}" for name in limits.__all__ if name.isupper()}
    assert wanted == {place for place in named() if place.startswith(f"{prefix}.")}


def test_limits_have_the_values_that_the_page_says():
    for place, number in named().items():
        module, _, name = place.rpartition(".")
        assert getattr(importlib.import_module(f"tilewright.{module}"), name) == number, place


def test_nothing_that_looks_like_a_limit_is_overlooked():
    """A row whose number cannot be read would not be compared."""
    places = re.findall(r"`((?:frontend|graph|model|runtime|options)\.[\w.]+\.?[A-Z_]{4,})`", PAGE)
    assert sorted(places) == sorted(named())
