"""Resizing by sizes and scales that are data: one compilation for all of them, no fallback.

onnxruntime and the ONNX reference differ from each other in places (a length that is no whole
number, a result of one element, a scale that leaves a length as it is): each result is that of one
of them.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import tilewright as tw
from tests.expect import raises_code
from tests.onnx.beside_ort import onnxruntime_results

COORDINATES = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]
COORDINATES += ["half_pixel_symmetric"]
ROUNDING = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]

NEAREST = [
    {"mode": "nearest", "coordinate_transformation_mode": c, "nearest_mode": r}
    for c, r in product(COORDINATES, ROUNDING)
]
SPACE = {"axes": [2, 3]}
LINEAR = [{"mode": "linear", "coordinate_transformation_mode": c, **SPACE} for c in COORDINATES]
CUBIC = [
    {"mode": "cubic", "coordinate_transformation_mode": c, "exclude_outside": k % 2, **SPACE}
    for k, c in enumerate(COORDINATES)
]
SMOOTH = {"antialias": 1}
KEPT = [
    {"mode": mode, "axes": [3, 2], "keep_aspect_ratio_policy": policy, "antialias": smooth}
    for mode, smooth in (("nearest", 0), ("linear", 0), ("cubic", 1))
    for policy in ("stretch", "not_larger", "not_smaller")
]


def resized(ways: Sequence[Mapping[str, Any]], by: str, count: int = 4) -> ModelProto:
    """A node for each way; sizes or scales are the greatest of any number of rows."""
    kind = TensorProto.INT64 if by == "sizes" else TensorProto.FLOAT
    given = ["x", "", "", "told"] if by == "sizes" else ["x", "", "told"]
    nodes = [helper.make_node("ReduceMax", ["rows", "first"], ["told"], keepdims=0)]
    nodes += [helper.make_node("Resize", given, [f"y{k}"], **way) for k, way in enumerate(ways)]
    return _model(nodes, kind, count, len(ways), 19)


def _model(nodes: Any, kind: int, count: int, results: int, opset: int) -> ModelProto:
    graph = helper.make_graph(
        nodes,
        "resized",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "c", "h", "w"]),
            helper.make_tensor_value_info("rows", kind, ["many", count]),
        ],
        [helper.make_tensor_value_info(f"y{k}", TensorProto.FLOAT, None) for k in range(results)],
        [numpy_helper.from_array(np.array([0]), "first")],
    )
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


@functools.cache
def compiled(name: str) -> tw.Module:
    module = tw.compile(MODELS[name][0], cache=False, threads=1)
    assert not module.by_reference
    assert not module.settled
    return module


SIZES = [((1, 2, 4, 5), (7, 3)), ((2, 1, 9, 6), (4, 12)), ((1, 1, 1, 8), (3, 1))]
SIZES += [((1, 3, 6, 6), (6, 6))]
SCALES = [((1, 2, 4, 5), (2, 0.6)), ((2, 1, 9, 6), (0.5, 1.7)), ((1, 1, 1, 8), (3, 0.2))]
SCALES += [((1, 1, 10, 10), (1.05, 1))]
MODELS = {
    "nearest by sizes": (
        resized(NEAREST, "sizes"),
        [(shape, (*shape[:2], *sizes)) for shape, sizes in SIZES] + [((1, 1, 2, 3), (2, 3, 4, 6))],
    ),
    "nearest by scales": (
        resized(NEAREST, "scales"),
        [(shape, (1, 1, *scales)) for shape, scales in SCALES] + [((1, 1, 2, 3), (2, 3, 2, 2))],
    ),
    "linear by sizes": (resized([*LINEAR, LINEAR[0] | SMOOTH], "sizes", 2), SIZES),
    "linear by scales": (resized([*LINEAR[::2], LINEAR[1] | SMOOTH], "scales", 2), SCALES),
    "cubic by sizes": (resized([*CUBIC[1::2], CUBIC[2] | SMOOTH], "sizes", 2), SIZES),
    "cubic by scales": (resized([*CUBIC[::2], CUBIC[3] | SMOOTH], "scales", 2), SCALES),
    "aspect": (
        resized(KEPT, "sizes", 2),
        [((1, 2, 4, 6), (8, 9)), ((1, 2, 4, 6), (3, 2)), ((2, 2, 5, 7), (5, 7))],
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_whatever_data_says(name: str) -> None:
    model, cases = MODELS[name]
    module = compiled(name)
    for shape, wanted in cases:
        x = np.random.default_rng(len(name)).standard_normal(shape).astype(np.float32)
        rows = np.array([wanted, np.array(wanted) / 2])
        feeds = {"x": x, "rows": rows.astype(kind_of(name))}
        found, first = module.run(feeds), onnxruntime_results(model, feeds)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            second = ReferenceEvaluator(model).run(None, feeds)
        for k, results in enumerate(zip(found, first, second, strict=True)):
            y, *right = results
            assert any(alike(y, other) for other in right), (model.graph.node[k + 1], shape, wanted)


def kind_of(name: str) -> type:
    return np.float32 if name.endswith("scales") else np.int64


def alike(found: np.ndarray, wanted: np.ndarray) -> bool:
    return found.shape == wanted.shape and np.allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "shape", "wanted"),
    [
        ("nearest by sizes", (1, 1, 2, 3), (1, 1, -1, 3)),
        ("nearest by sizes", (1, 1, 2, 3), (1, 1, 2**62, 3)),
        ("nearest by sizes", (1, 1, 0, 3), (1, 1, 2, 3)),
        ("linear by scales", (1, 1, 2, 3), (-1.0, 1)),
        ("linear by scales", (1, 1, 2, 3), (np.nan, 1)),
        ("linear by scales", (1, 1, 2, 3), (np.inf, 1)),
        ("aspect", (1, 1, 2, 3), (-4, -5)),
    ],
)
def test_what_makes_no_sense_is_refused(name: str, shape: Any, wanted: Any) -> None:
    module = compiled(name)
    with raises_code("C025"):
        module.run({"x": np.ones(shape, np.float32), "rows": np.array([wanted], kind_of(name))})


@pytest.mark.parametrize(("op", "opset"), [("Upsample", 9), ("Resize", 10)])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_scales_as_they_were_before_opset_11(op: str, opset: int, mode: str) -> None:
    nodes = [
        helper.make_node("ReduceMax", ["rows"], ["told"], keepdims=0, axes=[0]),
        helper.make_node(op, ["x", "told"], ["y0"], mode=mode),
    ]
    model = _model(nodes, TensorProto.FLOAT, 4, 1, opset)
    del model.graph.initializer[:]
    module = tw.compile(model, cache=False, threads=1)
    assert not module.by_reference
    x = np.random.default_rng(1).standard_normal((1, 2, 4, 6)).astype(np.float32)
    for scales in ((1, 1, 2, 3), (1, 1, 1, 1), (1, 1, 1.5, 2)):
        feeds = {"x": x, "rows": np.array([scales], np.float32)}
        assert alike(module.run(feeds)[0], onnxruntime_results(model, feeds)[0])
