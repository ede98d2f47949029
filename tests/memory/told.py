"""Shapes and scales that data tells, of numbers from everywhere: a result, or an error of ours."""

from __future__ import annotations

import zlib

import numpy as np

from tests.memory.guarded import chosen, in_pages, say
from tests.onnx.test_resize_by_data import MODELS, kind_of
from tests.onnx.test_told_shapes import RIGHT, compiled, numbered
from tilewright.errors import CallError

__all__ = ["told"]

NUMBERS = np.array([*range(-7, 9), 2**31, 2**40, 2**62, 2**63 - 1, -(2**62), -(2**63)])
SCALES = np.array([0.0, -0.0, 1e-30, 0.3, 1.0, 1.0000001, 2.5, 40.0, -1.0, 1e30, np.inf, np.nan])
CASES = {**RIGHT, **{f"Resize, {name}": case for name, case in MODELS.items()}}
EACH = 60


def told(pattern: str) -> int:
    """Operators by name: `Pad`, or `/3` for every third; how many runs gave a result."""
    return sum(_runs(name) for name in chosen(pattern, [(name, name) for name in CASES]))


def _runs(name: str) -> int:
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    model, cases = CASES[name]
    kind = kind_of(name)
    numbers = SCALES if kind is np.float32 else NUMBERS
    module, results = compiled(model), 0
    for k in range(EACH):
        shape, right = cases[k % len(cases)]
        others = rng.choice(numbers, len(right))
        wanted = np.where(rng.random(len(right)) < 0.5, right, others)
        if _is_large(name, wanted):
            continue
        say(f"{name} of {shape} by {wanted}")
        feeds = {"x": in_pages(numbered(shape)), "rows": in_pages(wanted[None].astype(kind))}
        try:
            module.run(feeds)
            results += 1
        except CallError:
            pass
    return results


def _is_large(name: str, wanted: np.ndarray) -> bool:
    """Results that would be possible, and take gigabytes."""
    large = 2**40 if name.startswith("Resize") else 2**31
    return not name.startswith("Reshape") and bool(((wanted >= 2**31) & (wanted <= large)).any())
