"""Parts, joins, borders and repetitions against the ONNX reference or NumPy, and as native code."""

from __future__ import annotations

import warnings

import numpy as np
import onnx
import pytest

import tilewright
from tests.onnx.small_models import BATCH, check_node, one_node
from tilewright.frontend.onnx import import_model
from tilewright.frontend.onnx.movement import span
from tilewright.graph import interpret
from tilewright.graph.ir import Array
from tilewright.graph.sizes import evaluate_size, tidy
from tilewright.tensor import ir as tir

X = np.random.default_rng(0).normal(size=(BATCH, 5, 6)).astype(np.float32)
LARGE = 2**63 - 1


def ints(*values: int) -> Array:
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("dtype", ["f4", "f2", "i4", "?"])
def test_concat(axis: int, dtype: str) -> None:
    parts = [X, np.take(X, [1, 2], axis), np.take(X, [], axis)]
    check_node("Concat", [p.astype(dtype) for p in parts], attributes={"axis": axis}, compiled=True)


def test_split_by_sizes() -> None:
    check_node("Split", [X, ints(2, 0, 4)], known=[1], outputs=3, attributes={"axis": 2})
    options = {"outputs": 2, "opset": 11, "attributes": {"axis": 1, "split": [1, 4]}}
    check_node("Split", [X], **options, expected=[X[:, :1], X[:, 1:]], compiled=True)


@pytest.mark.parametrize(("axis", "parts"), [(0, 2), (1, 2), (2, 4), (2, 3)])
def test_split_as_even_as_can_be(axis: int, parts: int) -> None:
    attributes = {"axis": axis, "num_outputs": parts}
    check_node("Split", [X], outputs=parts, attributes=attributes, compiled=True)


SLICES = [
    ((0, 1), (2, 4), (1, 2), (1, 1)),
    ((1,), (-1,), (0,), (2,)),
    ((-3,), (LARGE,), (0,), (1,)),
    ((-1,), (-LARGE - 1,), (0,), (-1,)),
    ((100,), (-100,), (2,), (-2,)),
    ((3, 20), (1, 30), (1, 2), (1, 1)),
    ((-100,), (3,), (0,), (1,)),
    ((1,), (LARGE,), (-1,), (3,)),
]


@pytest.mark.parametrize(("starts", "ends", "axes", "steps"), SLICES)
def test_slice(
    starts: tuple[int, ...], ends: tuple[int, ...], axes: tuple[int, ...], steps: tuple[int, ...]
) -> None:
    given = [ints(*values) for values in (starts, ends, axes, steps)]
    nothing = any(s >= 20 for s in starts) and steps[0] > 0
    check_node("Slice", [X, *given], known=[1, 2, 3, 4], compiled=not nothing)


def test_slice_by_attributes() -> None:
    attributes = {"starts": [0, -2], "ends": [3, LARGE], "axes": [0, 2]}
    check_node("Slice", [X], opset=9, attributes=attributes, expected=[X[:3, :, -2:]])


@pytest.mark.parametrize("step", [1, 3, -1, -2])
def test_data_tells_from_where_to_where(step: int) -> None:
    """One module for all of them: nothing is compiled again."""
    model, feeds = one_node("Slice", [X, ints(0), ints(1), ints(1), ints(step)], known=[3, 4])
    graph = import_model(model).graph
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module = tilewright.compile(model, threads=1, cache=False)
    start, end = list(feeds)[1:]
    for first in (-LARGE, -9, -5, -2, 0, 1, 4, 5, 9, LARGE):
        for last in (-LARGE, -6, -5, -1, 0, 2, 5, LARGE):
            given = {**feeds, start: ints(first), end: ints(last)}
            held = max(first, -5) if step < 0 else first  # not before the first element
            expected = X[:, held:last:step]
            for found in (module.run(given)[0], interpret(graph, given)[0]):
                np.testing.assert_array_equal(found, expected, err_msg=f"{first}:{last}")


def test_data_tells_the_ends_of_some_axes_only() -> None:
    """Several axes, integers of 32 bits, and what follows from the sizes of the result."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]>
        g (float[n, 5, 6] x, int32 k) => (float[p, q, 6] y, int64[3] s) {
            axis = Constant <value_ints = [0]> ()
            zero = Constant <value = int32[1] {0}> ()
            minus = Constant <value = int32[1] {-1}> ()
            v = Unsqueeze (k, axis)
            starts = Concat <axis = 0> (zero, v)
            ends = Concat <axis = 0> (v, minus)
            y = Slice (x, starts, ends)
            s = Shape (y) }"""
    )
    module = tilewright.compile(model, threads=1, cache=False)
    assert module.by_reference == ()
    for k in (0, 1, 2, 4, -1):
        found, shape = module.run({"x": X, "k": np.array(k, np.int32)})
        np.testing.assert_array_equal(found, X[0:k, k:-1])
        assert tuple(shape) == found.shape


@pytest.mark.parametrize("step", [1, 2, 3, -1, -2, -4])
def test_spans_of_a_symbolic_dimension_are_those_of_numpy(step: int) -> None:
    n = tir.Var("n")
    for start in (-9, -3, -1, 0, 1, 4, 9, LARGE):
        for end in (-LARGE, -8, -2, 0, 1, 5, 9, LARGE):
            first, length = span(n, tir.Const(start), tir.Const(end), step)
            for size in (1, 2, 3, 5, 8):
                places = list(range(size))[slice(start, end, step)]
                if step < 0 and start < -size:
                    places = places or list(range(0, max(end + size * (end < 0), -1), step))
                assert evaluate_size(length, {n: size}) == len(places), (start, end, size)
                if places:
                    assert evaluate_size(first, {n: size}) == places[0], (start, end, size)


def test_common_spans_stay_simple() -> None:
    n, huge = tir.Var("n"), tir.Const(LARGE)
    assert span(n, tir.Const(0), huge, 1) == (tir.Const(0), n)
    one_or_none, rest = tidy(tir.minimum(tir.Const(1), n)), tidy(tir.maximum(n - 1, 0))
    assert span(n, tir.Const(0), tir.Const(1), 1) == (tir.Const(0), one_or_none)
    assert span(n, tir.Const(1), huge, 1) == (tir.Const(1), rest)
    assert span(n, tir.Const(-1), huge, 1) == (rest, one_or_none)
    assert span(n, tir.Const(0), tir.Const(-1), 1) == (tir.Const(0), rest)
    assert span(n, tir.Const(0), n, 1) == (tir.Const(0), n)
    assert span(n * 2, n, huge, 1) == (n, n)
    assert span(n, huge, tir.Const(-LARGE), -1) == (tidy(n - 1), n)


MODES = ["constant", "edge", "reflect", "wrap"]


@pytest.mark.parametrize("mode", MODES)
def test_pad(mode: str) -> None:
    amounts = (0, 1, 2, 3, 0, 4)
    widths = [(0, 3), (1, 0), (2, 4)]
    more = {"constant_values": 1.5} if mode == "constant" else {}
    expected = [np.pad(X, widths, mode=mode, **more)]
    value = np.float32(1.5) if mode == "constant" else None
    options = {"attributes": {"mode": mode}, "expected": expected, "compiled": True}
    check_node("Pad", [X, ints(*amounts), value], known=[1], **options)


@pytest.mark.parametrize("mode", MODES)
def test_pad_with_less_than_nothing(mode: str) -> None:
    padded = np.pad(X[:, 1:, :-2], [(0, 0), (0, 2), (3, 0)], mode=mode)
    options = {"attributes": {"mode": mode}, "expected": [padded], "compiled": True}
    check_node("Pad", [X, ints(-1, 3, 2, -2), None, ints(1, 2)], known=[1, 3], **options)


def test_pad_wider_than_the_tensor() -> None:
    for mode in ("reflect", "wrap"):
        for narrow in (X[:, :, :1], X[:, :, :2], X[:, :, :3]):
            expected = [np.pad(narrow, [(0, 0), (0, 0), (7, 9)], mode=mode)]
            given = [narrow, ints(7, 9), None, ints(2)]
            check_node("Pad", given, known=[1, 3], attributes={"mode": mode}, expected=expected)


def test_pad_by_attributes() -> None:
    attributes = {"pads": [0, 0, 1, 0, 2, 0], "value": -1.0}
    expected = [np.pad(X, [(0, 0), (0, 2), (1, 0)], constant_values=-1.0)]
    check_node("Pad", [X], opset=10, attributes=attributes, expected=expected)


def test_pad_with_integers() -> None:
    numbers = np.arange(6).reshape(2, 3)
    value = np.int64(2**53 + 1)
    expected = [np.pad(numbers, [(1, 0), (0, 1)], constant_values=value)]
    given = [numbers, ints(1, 0, 0, 1), value]
    check_node("Pad", given, known=[1, 2], expected=expected, compiled=True)


@pytest.mark.parametrize(
    "shape", [(7, 5, 6), (4, 2, 3), (3, 3, 1), (9, 8, 12), (10, 2, 7), (8, 0, 6)]
)
def test_center_crop_pad(shape: tuple[int, ...]) -> None:
    check_node("CenterCropPad", [X, ints(*shape)], known=[1], compiled=True)
    options = {"attributes": {"axes": [-1, 0]}, "known": [1], "compiled": True}
    check_node("CenterCropPad", [X, ints(*shape[:2])], **options)


@pytest.mark.parametrize("repeats", [(1, 1, 1), (2, 1, 3), (1, 4, 1), (3, 2, 2)])
def test_tile(repeats: tuple[int, ...]) -> None:
    check_node("Tile", [X, ints(*repeats)], known=[1], compiled=True)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space(mode: str) -> None:
    x = np.random.default_rng(1).normal(size=(BATCH, 8, 3, 5)).astype(np.float32)
    attributes = {"blocksize": 2, "mode": mode}
    check_node("DepthToSpace", [x], attributes=attributes, compiled=True)


def test_space_to_depth() -> None:
    x = np.random.default_rng(1).normal(size=(BATCH, 3, 4, 6)).astype(np.float32)
    check_node("SpaceToDepth", [x], attributes={"blocksize": 2}, compiled=True)


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [None, 0, 1, -2, 9, -9])
def test_trilu(upper: int, k: int | None) -> None:
    diagonal = None if k is None else np.array(k)
    for known in [] if k is None else [1], []:  # as a constant, and as data
        check_node("Trilu", [X, diagonal], known=known, attributes={"upper": upper}, compiled=True)


@pytest.mark.parametrize(
    "attributes",
    [{}, {"strides": [2, 2]}, {"dilations": [1, 2]}, {"pads": [1, 0, 1, 2], "strides": [1, 2]}],
)
def test_col2im(attributes: dict[str, list[int]]) -> None:
    image, block = (5, 6), (2, 3)
    step = attributes.get("strides", [1, 1])
    spread = attributes.get("dilations", [1, 1])
    pads = attributes.get("pads", [0, 0, 0, 0])
    count = 1
    for k in range(2):
        reach = spread[k] * (block[k] - 1) + 1
        count *= (image[k] + pads[k] + pads[k + 2] - reach) // step[k] + 1
    x = np.random.default_rng(2).normal(size=(BATCH, 2 * 6, count)).astype(np.float32)
    given = [x, ints(*image), ints(*block)]
    check_node("Col2Im", given, known=[1, 2], attributes=attributes, compiled=True)
