"""Shapes that data tells, of numbers from everywhere: a result, or an error of ours."""

from __future__ import annotations

import zlib

import numpy as np

from tests.memory.guarded import chosen, in_pages, say
from tests.onnx.test_told_shapes import RIGHT, compiled, numbered
from tilewright.errors import CallError

__all__ = ["told"]

NUMBERS = np.array([*range(-7, 9), 2**31, 2**40, 2**62, 2**63 - 1, -(2**62), -(2**63)])
EACH = 60


def told(pattern: str) -> int:
    """Operators by name: `Pad`, or `/3` for every third; how many runs gave a result."""
    return sum(_runs(name) for name in chosen(pattern, [(name, name) for name in RIGHT]))


def _runs(name: str) -> int:
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    model, cases = RIGHT[name]
    module, results = compiled(model), 0
    for k in range(EACH):
        shape, right = cases[k % len(cases)]
        others = rng.choice(NUMBERS, len(right))
        wanted = np.where(rng.random(len(right)) < 0.5, right, others)
        if _is_large(name, wanted):
            continue
        say(f"{name} of {shape} by {wanted}")
        feeds = {"x": in_pages(numbered(shape)), "rows": in_pages(wanted[None])}
        try:
            module.run(feeds)
            results += 1
        except CallError:
            pass
    return results


def _is_large(name: str, wanted: np.ndarray) -> bool:
    """Results that would be possible, and take gigabytes."""
    return not name.startswith("Reshape") and bool((wanted == 2**31).any())
