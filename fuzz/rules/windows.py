"""Convolutions, pooling, resizing and sampling of images of one to three dimensions."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from onnx import TensorProto

from fuzz.case import Array
from fuzz.grow import Dim, Growth, Value, require
from fuzz.rules.products import scale, zero_point
from fuzz.values import numpy_type, random_array

__all__ = ["RULES", "image"]


def image(
    g: Growth,
    types: tuple[int, ...],
    *,
    channels: int | None = None,
    space: tuple[int, int] = (1, 3),
) -> Value:
    """An earlier value that can be an image, or a new one."""
    low, high = space[0] + 2, space[1] + 2
    if channels is None and g.draw.random() < 0.5:
        return g.pick(types, low=low, high=high, where=lambda v: v.all(lambda a: a.size))
    rank = g.draw.choice([r for r in (1, 2, 2, 2, 3) if space[0] <= r <= space[1]])
    size = {1: (4, 7, 12, 17), 2: (3, 5, 8, 9), 3: (3, 4, 5)}[rank]
    dims: list[Dim] = [g.draw.choice((1, 2)), channels or g.draw.choice((1, 2, 3, 4, 8))]
    dims += [g.draw.choice(size) for _ in range(rank)]
    for k in (0, *range(2, rank + 2)):
        if g.sizes and g.draw.random() < 0.25:
            dims[k] = g.draw.choice(sorted(g.sizes))
    made = g.new(g.choose_type(types), dims, constant=0)
    require(made.all(lambda a: a.size), "an empty image")
    return made


def _window(g: Growth, x: Value, *, dilated: bool = True) -> dict[str, Any]:
    """Kernel, strides, pads and gaps; a window fits into the smallest image without padding."""
    rank = x.rank - 2
    sizes = [min(a.shape[k + 2] for a in x.arrays) for k in range(rank)]
    kernel = [g.draw.randint(1, min(4, s)) for s in sizes]
    found: dict[str, Any] = {"kernel_shape": kernel}
    if g.draw.random() < 0.5:
        found["strides"] = [g.draw.randint(1, 3) for _ in range(rank)]
    if dilated and g.draw.random() < 0.25:
        gaps = [g.draw.randint(1, 2) for _ in range(rank)]
        found["dilations"] = [
            1 if gap * (k - 1) >= s else gap for gap, k, s in zip(gaps, kernel, sizes, strict=True)
        ]
    kind = g.draw.random()
    if kind < 0.4:
        found["pads"] = [g.draw.randint(0, k - 1) for k in (*kernel, *kernel)]
    elif kind < 0.6 and "dilations" not in found:
        found["auto_pad"] = g.draw.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))
    return found


def conv(g: Growth, op: str) -> None:
    """Of finite numbers: algorithms differ in what a NaN or an infinity reaches."""
    x = image(g, g.types(op))
    window, channels = _window(g, x), x.shape[1]
    require(isinstance(g.dims_of(x)[1], int), "a number of channels that varies")
    group = g.draw.choice([k for k in (1, 1, 2, channels) if channels % k == 0])
    made = group * g.draw.choice((1, 2, 3))
    kernel = window["kernel_shape"]
    shape = [channels, made // group] if op == "ConvTranspose" else [made, channels // group]
    if op == "ConvTranspose":
        window.pop("auto_pad", None)
        if "strides" in window and g.draw.random() < 0.3:
            window["output_padding"] = [g.draw.randrange(s) for s in window["strides"]]
    weights = g.new(x.type, [*shape, *kernel], constant=0.8)
    require(all(v.all(_is_finite) for v in (x, weights)), "not finite")
    bias = g.new(x.type, [made], constant=0.8) if g.draw.random() < 0.5 else None
    if g.draw.random() < 0.4:
        del window["kernel_shape"]
    g.add(op, [x, weights, bias], group=group, **window)


def _is_finite(array: Array) -> bool:
    return bool(np.isfinite(array.astype(np.float64)).all())


def conv_integer(g: Growth, op: str) -> None:
    kinds = [TensorProto.UINT8, g.draw.choice((TensorProto.INT8, TensorProto.UINT8))]
    channels = g.draw.choice((1, 2, 4))
    x = image(g, (kinds[0],), channels=channels, space=(2, 2))
    window = _window(g, x)
    made, kernel = g.draw.choice((1, 2, 3)), window["kernel_shape"]
    weights = g.new(kinds[1], [made, channels, *kernel], constant=0.8)
    if op == "ConvInteger":
        points = [zero_point(g, t) if g.draw.random() < 0.5 else None for t in kinds[:1]]
        g.add(op, [x, weights, *points], **window)
        return
    bias = g.new(TensorProto.INT32, [made]) if g.draw.random() < 0.5 else None
    point, each = zero_point(g, kinds[1]), scale(g)
    out = zero_point(g, TensorProto.UINT8)
    given = [x, scale(g), zero_point(g, kinds[0]), weights, each, point, scale(g), out, bias]
    g.add(op, given, **window)


def pool(g: Growth, op: str) -> None:
    """Windows that see nothing but padding are left out: pads are below the kernel.

    The greatest value of a window with NaN is NaN in tilewright, as in NumPy; oracles skip it.
    """
    x = image(g, g.types(op))
    require(x.all(lambda a: not np.isnan(a.astype(np.float64)).any()), "NaN in a window")
    has_gaps = {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}[op] <= g.opset
    window = _window(g, x, dilated=has_gaps)
    if g.opset >= {"MaxPool": 10, "AveragePool": 10, "LpPool": 18}[op] and "auto_pad" not in window:
        window["ceil_mode"] = g.draw.choice((0, 0, 1))
    if op == "AveragePool" and g.draw.random() < 0.5:
        window["count_include_pad"] = g.draw.randint(0, 1)
    if op == "LpPool":
        window["p"] = g.draw.choice((1, 2, 3))
    wants = op == "MaxPool" and g.opset >= 8 and g.draw.random() < 0.25
    g.add(op, [x], 2 if wants else 1, **window)


def global_pool(g: Growth, op: str) -> None:
    attributes = {"p": g.draw.choice((1, 2, 3))} if op == "GlobalLpPool" else {}
    x = image(g, g.types(op))
    require(x.all(lambda a: not np.isnan(a.astype(np.float64)).any()), "NaN in a window")
    g.add(op, [x], **attributes)


def lrn(g: Growth, op: str) -> None:
    x = image(g, g.types(op), space=(2, 2))
    require(x.all(lambda a: np.abs(a.astype(np.float64)).max() < 1e4), "sums lose all digits")
    g.add(op, [x], size=g.draw.choice((1, 3, 5)), alpha=0.01, beta=0.7, bias=1.5)


def resize(g: Growth, op: str) -> None:
    """By scales or sizes; coordinates and rounding as the opset knows them."""
    require(g.opset >= 10)
    x = image(g, tuple(t for t in g.types(op) if t != TensorProto.STRING), space=(1, 2))
    require(x.all(_is_finite), "zero times infinity")
    linear = x.rank <= 4 and x.dtype.kind == "f"
    mode = g.draw.choice(
        ["nearest", *(["linear"] if linear else []), *(["cubic"] if linear and x.rank == 4 else [])]
    )
    if g.opset == 10:
        mode = g.draw.choice(("nearest", "linear")) if linear else "nearest"
        factors = [1.0, 1.0, *(g.draw.choice((0.5, 1.0, 2.0, 3.0)) for _ in range(x.rank - 2))]
        g.add(op, [x, g.parameter(np.array(factors, np.float32))], mode=mode)
        return
    if g.opset >= 13 and g.runs == 1 and x.rank == 4 and mode != "cubic" and g.draw.random() < 0.3:
        _resized_part(g, op, x, mode)
        return
    attributes: dict[str, Any] = {"mode": mode}
    ways = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]
    ways += ["half_pixel_symmetric"] if g.opset >= 19 else []
    attributes["coordinate_transformation_mode"] = g.draw.choice(ways)
    if mode == "nearest":
        ways = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
        attributes["nearest_mode"] = g.draw.choice(ways)
    if mode == "cubic":
        attributes["cubic_coeff_a"] = g.draw.choice((-0.5, -0.75))
        attributes["exclude_outside"] = g.draw.randint(0, 1)
    if g.opset >= 18 and mode != "nearest" and g.draw.random() < 0.3:
        attributes["antialias"] = 1
    roi = g.parameter(np.zeros(0, np.float32), always_constant=True) if g.opset < 13 else None
    if g.draw.random() < 0.5:
        factors = [
            1.0,
            1.0,
            *(g.draw.choice((0.5, 0.6, 1.0, 1.5, 2.0, 3.0)) for _ in range(x.rank - 2)),
        ]
        g.add(op, [x, roi, g.parameter(np.array(factors, np.float32))], **attributes)
        return
    require(g.runs == 1, "sizes of the batch vary")
    sizes = [*x.shape[:2], *(g.draw.randint(1, 9) for _ in range(x.rank - 2))]
    if g.opset >= 18 and g.draw.random() < 0.3:  # only what grows or shrinks is named
        sizes = sizes[2:]
        attributes["axes"] = list(range(2, x.rank))
        kept = ("stretch", "not_larger", "not_smaller")
        attributes["keep_aspect_ratio_policy"] = g.draw.choice(kept)
    none = g.parameter(np.zeros(0, np.float32), always_constant=True) if g.opset < 13 else None
    g.add(op, [x, roi, none, g.parameter(np.array(sizes, np.int64))], **attributes)


def _resized_part(g: Growth, op: str, x: Value, mode: str) -> None:
    """A part of a picture, which the model or the caller says: ends in eighths, also outside."""
    starts = [0, 0, *(g.draw.randint(-1, 4) / 8 for _ in range(2))]
    ends = [1, 1, *(g.draw.randint(5, 9) / 8 for _ in range(2))]
    sizes = [*x.shape[:2], *(g.draw.randint(1, 9) for _ in range(2))]
    part = g.parameter(np.array([*starts, *ends], np.float32))
    wanted = g.parameter(np.array(sizes, np.int64))
    beyond = {"extrapolation_value": g.draw.choice((0.0, 3.0))}
    ways = {"mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize"}
    g.add(op, [x, part, None, wanted], **ways, **beyond)


def upsample(g: Growth, op: str) -> None:
    x = image(g, tuple(t for t in g.types(op) if t != TensorProto.STRING), space=(2, 2))
    factors = [1.0, 1.0, *(g.draw.choice((1.0, 2.0, 3.0)) for _ in range(x.rank - 2))]
    mode = g.draw.choice(("nearest", "linear")) if x.dtype.kind == "f" else "nearest"
    require(mode == "nearest" or x.all(_is_finite), "zero times infinity")
    if g.opset < 9:
        g.add(op, [x], scales=factors, mode=mode)
    else:
        g.add(op, [x, g.parameter(np.array(factors, np.float32))], mode=mode)


def grid_sample(g: Growth, op: str) -> None:
    kinds = tuple(t for t in g.types(op) if t in {TensorProto.FLOAT, TensorProto.DOUBLE})
    x = image(g, kinds, space=(2, 2))
    batch, grid = g.dims_of(x)[0], [g.draw.randint(1, 5), g.draw.randint(1, 5)]

    def places(shape: tuple[int, ...]) -> np.ndarray:
        rng = np.random.default_rng(g.draw.getrandbits(63))
        return rng.uniform(-1.3, 1.3, shape).astype(np.float32)

    require(x.all(_is_finite), "zero times infinity")
    points = g.new(TensorProto.FLOAT, [batch, *grid, 2], make=places)
    names = ("bilinear", "nearest", "bicubic") if g.opset < 20 else ("linear", "nearest", "cubic")
    g.add(
        op, [x, points], mode=g.draw.choice(names), align_corners=g.draw.randint(0, 1),
        padding_mode=g.draw.choice(("zeros", "border", "reflection")),
    )  # fmt: skip


def col2im(g: Growth, op: str) -> None:
    size = [g.draw.randint(3, 6) for _ in range(2)]
    block = [g.draw.randint(1, 3) for _ in range(2)]
    channels = g.draw.randint(1, 3)
    count = int(np.prod([s - b + 1 for s, b in zip(size, block, strict=True)]))
    kind = g.choose_type([t for t in g.types(op) if numpy_type(t).kind == "f"])
    x = g.new(kind, [g.draw.randint(1, 2), channels * int(np.prod(block)), count])
    given = [g.parameter(np.array(v, np.int64)) for v in (size, block)]
    g.add(op, [x, *given])


def roi_align(g: Growth, op: str) -> None:
    kind = g.choose_type([t for t in g.types(op) if t in {TensorProto.FLOAT, TensorProto.DOUBLE}])
    x = g.new(kind, [2, g.draw.randint(1, 3), 6, 7])
    require(x.all(_is_finite), "zero times infinity")
    count = g.draw.randint(1, 4)
    rng = np.random.default_rng(g.draw.getrandbits(63))
    corners = rng.uniform(0, 4, (count, 2))
    rois = np.concatenate([corners, corners + rng.uniform(0.5, 3, (count, 2))], 1)
    boxes = g.new(kind, [count, 4], make=lambda _: rois.astype(numpy_type(kind)))
    batch = g.new(TensorProto.INT64, [count], make=lambda s: rng.integers(0, 2, s))
    ways = (
        {"coordinate_transformation_mode": g.draw.choice(("half_pixel", "output_half_pixel"))}
        if g.opset >= 16
        else {}
    )
    g.add(
        op,
        [x, boxes, batch],
        mode=g.draw.choice(("avg", "max")),
        output_height=g.draw.randint(1, 3),
        output_width=g.draw.randint(1, 3),
        sampling_ratio=g.draw.choice((0, 1, 2)),
        spatial_scale=g.draw.choice((0.5, 1.0)),
        **ways,
    )


def affine_grid(g: Growth, op: str) -> None:
    kind = g.choose_type([t for t in g.types(op) if numpy_type(t).kind == "f"])
    batch, space = g.draw.randint(1, 2), g.draw.choice((2, 3))
    theta = g.new(kind, [batch, space, space + 1], make=lambda s: random_array(g.draw, kind, s))
    sizes = [batch, 2, *(g.draw.randint(2, 5) for _ in range(space))]
    g.add(op, [theta, g.parameter(np.array(sizes, np.int64))], align_corners=g.draw.randint(0, 1))


RULES: Final = {
    **dict.fromkeys(("Conv", "ConvTranspose"), conv),
    **dict.fromkeys(("ConvInteger", "QLinearConv"), conv_integer),
    **dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), pool),
    **dict.fromkeys(("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"), global_pool),
    "AffineGrid": affine_grid,
    "Col2Im": col2im,
    "GridSample": grid_sample,
    "LRN": lrn,
    "Resize": resize,
    "RoiAlign": roi_align,
    "Upsample": upsample,
}
