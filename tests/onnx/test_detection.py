"""Boxes: suppression and alignment against onnxruntime and the reference, and degenerate inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import tilewright
from tests.expect import raises_code
from tests.onnx.native_nodes import check_native, native, ort
from tests.onnx.small_models import BATCH, one_node
from tilewright.graph.ir import Array

RNG = np.random.default_rng(11)


def boxes_of(batch: int, count: int, *, centred: bool, coarse: bool) -> Array:
    """Boxes that overlap often; `coarse` ones are often equal, or without area."""
    low, size = RNG.uniform(0, 40, (batch, count, 2)), RNG.uniform(1, 30, (batch, count, 2))
    if coarse:
        low, size = low // 10 * 10, size // 10 * 10
    corners = np.concatenate([low, size if centred else low + size], -1)
    if not centred:  # corners in any order
        corners = np.where(RNG.random((batch, count, 1)) < 0.5, corners, corners[..., [2, 3, 0, 1]])
    return corners.astype(np.float32)


@pytest.mark.parametrize(
    ("batch", "classes", "count", "most", "least"),
    [
        (1, 1, 60, 20, 0.3),
        (2, 3, BATCH, 3, None),
        (1, 4, 33, 1000, 0.5),
        (BATCH, 2, 9, 2, 0.1),
        (1, 1, BATCH, 5, 2.0),
        (2, 1, 12, 0, 0.0),
    ],
)
def test_suppression(batch: int, classes: int, count: int, most: int, least: float | None) -> None:
    """Scores are equal often: earlier boxes are better then."""
    for centred in (False, True):
        boxes = boxes_of(batch, count, centred=centred, coarse=centred)
        scores = (RNG.integers(0, 11, (batch, classes, count)) / 10).astype(np.float32)
        limits = [np.array([most]), np.array([0.4], np.float32)]
        limits += [] if least is None else [np.array([least], np.float32)]
        options: dict[str, Any] = {"attributes": {"center_point_box": int(centred)}}
        options["known"] = range(2, 2 + len(limits)) if centred else ()
        inputs = [boxes, scores, *limits]
        expected = ort("NonMaxSuppression", inputs, **options)
        check_native("NonMaxSuppression", inputs, expected, **options)


def _name_dimensions(model: onnx.ModelProto) -> None:
    """Batch, classes and boxes are sizes of their own."""
    for info, names in zip(model.graph.input, ("b n", "b c n"), strict=True):
        for dim, name in zip(info.type.tensor_type.shape.dim, names.split(), strict=False):
            dim.dim_param = name


@pytest.mark.parametrize("shape", [(1, 2, 0), (0, 2, 3), (1, 0, 3)])
@pytest.mark.parametrize("symbolic", [False, True])
def test_suppression_of_no_boxes(shape: tuple[int, int, int], symbolic: bool) -> None:
    batch, _, count = shape
    full = (BATCH, BATCH, BATCH) if symbolic else shape
    arrays = [np.zeros((full[0], full[2], 4), np.float32), np.zeros(full, np.float32)]
    limits = [np.array([3]), np.array([0.5], np.float32), np.array([0.1], np.float32)]
    model, _ = one_node("NonMaxSuppression", [*arrays, *limits], known=[2, 3, 4])
    if symbolic:
        _name_dimensions(model)
    feeds = {"in0": np.zeros((batch, count, 4), np.float32), "in1": np.zeros(shape, np.float32)}
    module = tilewright.compile(model, cache=False, threads=1)
    assert not module.by_reference
    assert module.run(feeds)[0].shape == (0, 3)


def test_suppression_without_a_limit_keeps_nothing() -> None:
    inputs = [np.ones((1, 5, 4), np.float32), np.ones((1, 2, 5), np.float32)]
    (found,) = native("NonMaxSuppression", inputs)
    assert found.shape == (0, 3)


def test_suppression_of_boxes_that_are_not_numbers() -> None:
    """They overlap nothing, and are all kept."""
    boxes = np.full((1, 4, 4), np.nan, np.float32)
    scores = np.array([[[0.1, 0.4, 0.3, 0.2]]], np.float32)
    (found,) = native(
        "NonMaxSuppression", [boxes, scores, np.array([9]), np.array([0.0], np.float32)]
    )
    assert found[:, 2].tolist() == [1, 2, 3, 0]


def regions(count: int, extent: float, dtype: str = "f4") -> Array:
    """Boxes inside, across the border and outside of an image; some turn around."""
    low = RNG.uniform(-6, extent, (count, 2))
    return np.concatenate([low, low + RNG.uniform(-2, extent, (count, 2))], 1).astype(dtype)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 3])
@pytest.mark.parametrize(
    ("shape", "half"),
    [
        ((2, 3, 5, 6), "half_pixel"),
        ((BATCH, 9, BATCH, 8), "output_half_pixel"),
        ((1, 1, 1, 1), "half_pixel"),
    ],
)
def test_align(mode: str, ratio: int, shape: tuple[int, ...], half: str) -> None:
    """Fixed and varying numbers of points, and both conventions of coordinates."""
    x = RNG.normal(size=shape).astype(np.float32)
    rois = regions(BATCH, 2.0 * shape[2])
    images = RNG.integers(0, shape[0], BATCH)
    attributes: dict[str, Any] = {"mode": mode, "sampling_ratio": ratio, "spatial_scale": 0.5}
    attributes |= {"output_height": 2, "output_width": 3, "coordinate_transformation_mode": half}
    check_native("RoiAlign", [x, rois, images], attributes=attributes, scale=4)


def test_align_as_onnxruntime_does() -> None:
    x = RNG.normal(size=(2, 20, 12, 10)).astype(np.float32)
    inputs = [x, regions(30, 12), RNG.integers(0, 2, 30)]
    options: dict[str, Any] = {"opset": 16, "attributes": {"output_height": 3, "output_width": 3}}
    check_native("RoiAlign", inputs, ort("RoiAlign", inputs, **options), threads=2, **options)


@pytest.mark.parametrize("dtype", ["f8", "f2"])
def test_align_of_other_types(dtype: str) -> None:
    x = RNG.normal(size=(2, 5, 6, 6)).astype(dtype)
    rois = np.array([[0, 0, 4, 4], [1, 2, 5, 3]], dtype)
    attributes = {"output_height": 2, "output_width": 2, "sampling_ratio": 2}
    check_native("RoiAlign", [x, rois, np.array([1, 0])], attributes=attributes)


def test_align_stays_inside_of_what_there_is() -> None:
    """Images that do not exist, and boxes that are no numbers or have no end."""
    x = RNG.normal(size=(2, 3, 5, 5)).astype(np.float32)
    options: dict[str, Any] = {"attributes": {"output_height": 2, "output_width": 2}}
    rois = np.array([[0, 0, 4, 4]] * 3, np.float32)
    (found,) = native("RoiAlign", [x, rois, np.array([-(2**62), 99, 1])], **options)
    np.testing.assert_array_equal(found[1], found[2])  # the nearest image
    (first,) = native("RoiAlign", [x, rois[:1], np.array([0])], **options)
    np.testing.assert_array_equal(found[0], first[0])
    endless = np.array([[np.nan, 0, 4, 4], [0, 0, -np.inf, 1], [3, 3, 1, 1]], np.float32)
    (found,) = native("RoiAlign", [x, endless, np.zeros(3, np.int64)], **options)
    np.testing.assert_array_equal(found[[0, 2]], 0)
    assert np.isfinite(found[1]).all()


def test_boxes_larger_than_images() -> None:
    """Most of their points are zero, and need not be looked at one by one."""
    x = RNG.normal(size=(1, 3, 5, 5)).astype(np.float32)
    options: dict[str, Any] = {"attributes": {"output_height": 2, "output_width": 3}, "opset": 16}
    rois = np.array([[-400, -3, 500, 4], [1, 2, 900, 700], [-90, -90, -50, -60]], np.float32)
    inputs = [x, rois, np.zeros(3, np.int64)]
    check_native("RoiAlign", inputs, ort("RoiAlign", inputs, **options), **options)
    vast = np.array([[-1e9, -1e9, 1e9, 1e9], [0, 0, 3e38, 3e38]], np.float32)
    (found,) = native("RoiAlign", [x, vast, np.zeros(2, np.int64)], **options)
    np.testing.assert_allclose(found, 0, atol=1e-9)


def test_align_asks_for_as_many_images_as_boxes() -> None:
    x = np.zeros((1, 1, 4, 4), np.float32)
    model, feeds = one_node("RoiAlign", [x, regions(BATCH, 4), np.zeros(BATCH, np.int64)])
    model.graph.input[2].type.tensor_type.shape.dim[0].dim_param = "m"
    module = tilewright.compile(model, cache=False, threads=1)
    module.run(feeds)
    with raises_code("C025"):
        module.run({**feeds, "in2": np.zeros(BATCH + 1, np.int64)})


def test_no_boxes_to_align() -> None:
    x = np.zeros((1, 2, 4, 4), np.float32)
    model, feeds = one_node("RoiAlign", [x, regions(BATCH, 4), np.zeros(BATCH, np.int64)])
    module = tilewright.compile(model, cache=False, threads=1)
    empty = {**feeds, "in1": np.zeros((0, 4), np.float32), "in2": np.zeros(0, np.int64)}
    assert module.run(empty)[0].shape == (0, 2, 1, 1)


@pytest.mark.parametrize(("cells", "scale"), [((2, 3), 1.0), ((4, 1), 0.25), ((7, 5), 2.0)])
def test_pools_of_boxes(cells: tuple[int, int], scale: float) -> None:
    """Boxes that lie inside, reach out of the image, have no area, or lie outside of it."""
    x = RNG.normal(0, 1, (BATCH, 3, 9, 14)).astype(np.float32)
    low = RNG.uniform(-6, 12, (17, 2)) / scale
    high = low + RNG.uniform(-3, 12, (17, 2)) / scale
    images = RNG.integers(0, BATCH, (17, 1))
    rois = np.concatenate([images, low, high], 1).astype(np.float32)
    attributes = {"pooled_shape": cells, "spatial_scale": scale}
    options: dict[str, Any] = {"attributes": attributes, "opset": 21}  # as new as onnxruntime knows
    expected = ort("MaxRoiPool", [x, rois], **options)
    check_native("MaxRoiPool", [x, rois], expected, **options)


def test_a_pool_of_a_box_in_no_image_stays_in_memory() -> None:
    x = np.ones((2, 1, 4, 4), np.float32)
    rois = np.array([[1e9, 0, 0, 3, 3], [-7, 0, 0, 3, 3], [1, -9e9, -9e9, 9e9, 9e9]], np.float32)
    (found,) = native("MaxRoiPool", [x, rois], attributes={"pooled_shape": (2, 2)})
    assert found.shape == (3, 1, 2, 2)
