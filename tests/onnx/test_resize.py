"""Resizing and sampling images against the ONNX reference, and as native code."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import parser

import tilewright
from tests.onnx.beside_ort import IR_VERSION, assert_alike, beside, onnxruntime_results
from tests.onnx.small_models import BATCH, check, check_node, one_node
from tilewright.errors import ModelError
from tilewright.graph.ir import Array

RNG = np.random.default_rng(6)
COORDINATES = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]
COORDINATES += ["half_pixel_symmetric"]
ROUNDING = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]


def image(height: int, width: int, dtype: str = "f4") -> Array:
    return (
        np.random.default_rng(height * 100 + width).normal(size=(1, 2, height, width)).astype(dtype)
    )


def resize(
    x: Array, scales: tuple[float, ...] = (), sizes: tuple[int, ...] = (), **attributes: object
) -> None:
    """Scales or sizes of the last dimensions; the others stay."""
    lead = x.ndim - len(scales or sizes)
    given = np.array([1.0] * lead + list(scales), np.float32) if scales else None
    wanted = np.array([*x.shape[:lead], *sizes], np.int64) if sizes else None
    known = [2] if scales else [3]
    inputs = [x, None, given, wanted][: 3 if scales else 4]
    check_node("Resize", inputs, known=known, attributes=attributes, compiled=True)


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("rounding", ROUNDING)
def test_nearest(coordinates: str, rounding: str) -> None:
    names = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
    resize(image(4, 5), scales=(2.0, 3.0), **names)
    resize(image(4, 6), scales=(0.75, 1.75), **names)
    resize(image(3, 4), sizes=(7, 3), **names)


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_interpolated(coordinates: str, mode: str) -> None:
    names = {"coordinate_transformation_mode": coordinates, "mode": mode}
    resize(image(4, 5), scales=(2.0, 0.5), **names)
    resize(image(5, 6), sizes=(4, 9), **names)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("exclude", [0, 1])
def test_antialias(mode: str, exclude: int) -> None:
    resize(image(9, 8), sizes=(4, 12), mode=mode, antialias=1, exclude_outside=exclude)


def test_cubic_without_what_is_outside() -> None:
    names = {"mode": "cubic", "cubic_coeff_a": -0.5, "exclude_outside": 1}
    resize(image(4, 5), scales=(1.7, 0.8), **names)


@pytest.mark.parametrize("dtype", ["f8", "f2"])
def test_other_types(dtype: str) -> None:
    resize(image(4, 5, dtype), scales=(2.0, 0.5), mode="linear")  # exact weights
    resize(image(4, 5, dtype), scales=(2.0, 2.0), mode="nearest")


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8"])
@pytest.mark.parametrize("how", [{"mode": "cubic"}, {"mode": "linear", "antialias": 1}])
def test_integers_are_rounded_and_stay_in_range(dtype: str, how: dict[str, object]) -> None:
    """Beside a jump from one end of a type to the other, a cubic lies beyond both."""
    ends = np.array([np.iinfo(dtype).min, min(np.iinfo(dtype).max, 1 << 40)], dtype)
    x = np.concatenate([np.tile(ends, 8), RNG.integers(0, 100, 16).astype(dtype)])
    resize(x.reshape(1, 2, 4, 4), scales=(2.0, 0.5), **how)


def test_neighbours_of_integers_are_cut_off_as_in_onnxruntime() -> None:
    for dtype in (np.uint8, np.int8, np.int32):
        x = RNG.integers(0, 100, (1, 2, 4, 5)).astype(dtype)
        inputs = [x, None, np.float32([1, 1, 2, 2])]
        kind = [onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))]
        beside("Resize", inputs, kind, domain="", known=[2], version=18, mode="linear")


def test_corners_of_a_length_that_is_no_whole_number() -> None:
    """Half of three is one and a half: coordinates are those of the exact length (onnx #2462)."""
    corners = {"coordinate_transformation_mode": "align_corners"}
    for mode in ("nearest", "linear", "cubic"):
        resize(image(4, 7), scales=(0.6, 1.3), mode=mode, **corners)
        resize(image(3, 5), scales=(0.5, 0.7), mode=mode, **corners)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_a_single_element_is_one_whatever_the_exact_length(mode: str) -> None:
    """0.6 of three elements are one: onnxruntime and the text agree, the reference does not."""
    words = {"coordinate_transformation_mode": "pytorch_half_pixel", "mode": mode}
    inputs = [image(3, 3), None, np.float32([1, 1, 0.6, 0.6])]
    beside("Resize", inputs, domain="", known=[2], version=18, **words)


def test_symbolic_sizes() -> None:
    x = RNG.normal(size=(2, 3, BATCH, BATCH)).astype(np.float32)
    for scales in ((2.0, 2.0), (0.5, 1.5)):
        resize(x, scales=scales, mode="nearest", coordinate_transformation_mode="asymmetric")
        resize(x, scales=scales, mode="linear")
    resize(x, sizes=(10, 4), mode="linear", coordinate_transformation_mode="align_corners")
    resize(x, sizes=(14, 28), mode="cubic", coordinate_transformation_mode="pytorch_half_pixel")


@pytest.mark.parametrize("opset", [11, 12])
@pytest.mark.parametrize("rounding", ROUNDING)
def test_half_pixels_that_begin_at_zero(opset: int, rounding: str) -> None:
    words = {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": rounding}
    for scales in ((2.0, 3.0), (0.75, 1.75)):
        factors = np.float32([1, 1, *scales])
        inputs = [image(4, 13), np.zeros(0, np.float32), factors]
        beside("Resize", inputs, domain="", known=[1, 2], version=opset, standard=opset, **words)


@pytest.mark.parametrize(
    ("attribute", "word"),
    [
        ("coordinate_transformation_mode", "half_pixels"),
        ("nearest_mode", "round"),
        ("mode", "bilinear"),
    ],
)
def test_words_without_a_meaning_are_refused(attribute: str, word: str) -> None:
    scales = np.float32([1, 1, 2, 2])
    model, _ = one_node(
        "Resize", [image(4, 5), None, scales], known=[2], attributes={attribute: word}
    )
    with pytest.raises(ModelError, match=f"`{attribute}` is `{word}`, none of"):
        tilewright.compile(model, cache=False)


def test_some_axes_and_aspect_ratio() -> None:
    x = image(4, 6)
    sizes = np.array([8, 9], np.int64)
    for policy in ("not_larger", "not_smaller", "stretch"):
        attributes = {"axes": [3, 2], "keep_aspect_ratio_policy": policy}
        check_node("Resize", [x, None, None, sizes], known=[3], attributes=attributes)


def test_a_part_of_the_image() -> None:
    roi = np.float32([0, 0, 0.4, -0.2, 1, 1, 0.8, 1.3])
    sizes = np.array([1, 2, 3, 5], np.int64)
    for mode in ("nearest", "linear"):
        attributes = {
            "mode": mode,
            "coordinate_transformation_mode": "tf_crop_and_resize",
            "extrapolation_value": 10.0,
        }
        options = {"known": [1, 3], "attributes": attributes, "compiled": True}
        check_node("Resize", [image(4, 4), roi, None, sizes], **options)


def test_upsample() -> None:
    x, scales = image(2, 3), np.float32([1, 1, 2, 3])
    expected = [x.repeat(2, axis=2).repeat(3, axis=3)]
    check_node("Upsample", [x, scales], known=[1], opset=9, expected=expected)
    attributes = {"scales": [1.0, 1.0, 2.0, 3.0]}
    check_node("Upsample", [x], opset=8, attributes=attributes, expected=expected)
    check_node("Resize", [x, scales], known=[1], opset=10, expected=expected)


SAMPLED = [("linear", 0), ("linear", 1), ("nearest", 0), ("nearest", 1), ("cubic", 0)]


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize(
    ("mode", "corners"), [*SAMPLED, pytest.param("cubic", 1, marks=pytest.mark.slow)]
)
def test_grid_sample(mode: str, padding: str, corners: int) -> None:
    grid = RNG.uniform(-1.6, 1.6, (1, 3, 4, 2)).astype(np.float32)
    attributes = {"mode": mode, "padding_mode": padding, "align_corners": corners}
    # Of four neighbours outside and inside the reference takes the border alone, as no engine does.
    model, feeds = one_node("GridSample", [image(4, 5), grid], attributes=attributes)
    alone = mode == "cubic" and padding == "border"
    model.ir_version = IR_VERSION
    expected = onnxruntime_results(model, feeds) if alone else None
    check(model, feeds, expected, compiled=True)


@pytest.mark.parametrize("corners", [0, 1])
def test_cubic_samples_far_outside_are_those_of_the_border(corners: int) -> None:
    far = np.array([-np.inf, -1e30, -3, 3, 1e30, np.inf], np.float32)
    grid = np.stack([far, np.zeros(6, np.float32)], -1).reshape(1, 1, 6, 2)
    x = np.broadcast_to(np.arange(5, dtype=np.float32), (1, 1, 3, 5)).copy()
    attributes = {"mode": "cubic", "padding_mode": "border", "align_corners": corners}
    expected = [np.array([0, 0, 0, 4, 4, 4], np.float32).reshape(1, 1, 1, 6)]
    check_node("GridSample", [x, grid], attributes=attributes, expected=expected, compiled=True)


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample_of_truths(mode: str, padding: str) -> None:
    """Interpolated ones are true if any of those that count is."""
    own = np.random.default_rng(3)  # weights of elements are nearly zero for some places
    grid = own.uniform(-1.6, 1.6, (1, 3, 4, 2)).astype(np.float32)
    attributes = {"mode": mode, "padding_mode": padding}
    truths = own.random((1, 2, 4, 5)) > 0.5
    check_node("GridSample", [truths, grid], attributes=attributes, compiled=True)


def test_grid_sample_of_a_volume() -> None:
    x = RNG.normal(size=(2, 1, 3, 4, 5)).astype(np.float32)
    grid = RNG.uniform(-1.2, 1.2, (2, 2, 3, 2, 3)).astype(np.float32)
    check_node("GridSample", [x, grid], attributes={"mode": "linear"}, compiled=True)


BOXES = """
    <ir_version: 9, opset_import: ["" : 17]>
    g (float[n, c, h, w] x, float[k, 4] boxes, int64[k] numbers) => (float[k, m, c, 5, 7] y) {
        yes = Constant <value = bool {1}> ()
        zero = Constant <value_ints = [0]> ()
        one = Constant <value_ints = [1]> ()
        two = Constant <value_ints = [2]> ()
        four = Constant <value_ints = [4]> ()
        size = Constant <value_ints = [5, 7]> ()
        whole = Constant <value_floats = [0.0, 0.0]> ()
        edges = Constant <value_floats = [1.0, 1.0]> ()
        dims = Shape(boxes)
        count = Gather(dims, zero)
        turns = Squeeze(count)
        y = Loop(turns, yes) <body = b (int64 i, bool c) => (bool go, float[p, q, r, s] part) {
            go = Identity(c)
            begin = Unsqueeze(i, zero)
            end = Add(begin, one)
            number = Slice(numbers, begin, end, zero)
            behind = Add(number, one)
            picture = Slice(x, number, behind, zero)
            box = Slice(boxes, begin, end, zero)
            flat = Reshape(box, four)
            starts = Slice(flat, zero, two)
            ends = Slice(flat, two, four)
            roi = Concat <axis = 0> (whole, starts, edges, ends)
            shape = Shape <end = 2> (picture)
            sizes = Concat <axis = 0> (shape, size)
            part = Resize <mode = "MODE", coordinate_transformation_mode = "tf_crop_and_resize",
                extrapolation_value = 3.0> (picture, roi, "", sizes) }>
    }"""


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_parts_of_images_that_boxes_tell(mode: str) -> None:
    """Each turn takes a picture whose number is data, and resizes a part of it that data tells.

    Ends that lie on the last pixel are inside: a place beside it would be extrapolated.
    """
    model = parser.parse_model(BOXES.replace("MODE", mode))
    module = tilewright.compile(model, cache=False)
    assert not module.by_reference
    ends = RNG.uniform(0, 1, (9, 2, 2)).astype(np.float32)
    boxes = np.concatenate([np.sort(ends, axis=1).reshape(9, 4), 1.4 * ends.reshape(9, 4) - 0.2])
    boxes[::3, 2:] = 1.0
    boxes = boxes.astype(np.float32)
    for shape, count in (((3, 2, 12, 15), 18), ((1, 3, 9, 8), 5), ((2, 1, 1, 6), 1)):
        x = RNG.standard_normal(shape).astype(np.float32)
        numbers = RNG.integers(0, shape[0], count)
        feeds = {"x": x, "boxes": boxes[:count], "numbers": numbers}
        for found, wanted in zip(module.run(feeds), onnxruntime_results(model, feeds), strict=True):
            assert_alike(found, wanted)
