"""Models of one node as native code, whole: sizes that data tells, loops and all.

Dimensions of size `BATCH` are symbolic; no node may run by reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tilewright
from tests.onnx.beside_ort import onnxruntime_results
from tests.onnx.small_models import one_node
from tilewright.graph.ir import Array

__all__ = ["check_native", "native", "ort"]

TOLERANCE = {2: 4e-3, 4: 2e-5, 8: 1e-12}
"""By the bytes of an element; absolute where results are near zero."""


def native(op: str, inputs: Sequence[object], threads: int = 1, **options: Any) -> list[Array]:
    """The results of native code."""
    model, feeds = one_node(op, inputs, **options)
    module = tilewright.compile(model, cache=False, threads=threads)
    assert not module.by_reference, module.by_reference
    return list(module.run(feeds))


def ort(op: str, inputs: Sequence[object], **options: Any) -> list[Array]:
    """The results of onnxruntime."""
    model, feeds = one_node(op, inputs, **options)
    model.ir_version = 10
    return [np.asarray(a) for a in onnxruntime_results(model, feeds)]


def reference(op: str, inputs: Sequence[object], **options: Any) -> list[Array]:
    """The results of ONNX's reference implementation."""
    from onnx.reference import ReferenceEvaluator

    model, feeds = one_node(op, inputs, **options)
    with np.errstate(all="ignore"):
        return [np.asarray(a) for a in ReferenceEvaluator(model).run(None, feeds)]


def check_native(
    op: str,
    inputs: Sequence[object],
    expected: Sequence[Array] | None = None,
    *,
    scale: float = 1.0,
    **options: Any,
) -> None:
    """As expected, or as the reference says; errors of floats may grow with `scale`."""
    found = native(op, inputs, **options)
    wanted = reference(op, inputs, **options) if expected is None else expected
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if b.dtype.kind in "iub":
            np.testing.assert_array_equal(a, b)
            continue
        close = TOLERANCE[b.dtype.itemsize] * scale
        wide = a.astype(np.float64), b.astype(np.float64)
        np.testing.assert_allclose(*wide, rtol=close, atol=close)
