"""Convolutions and pooling of every mode against the ONNX reference implementation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

import tilewright
from tests.onnx.small_models import BATCH, check_node, close, make_model, one_node, run
from tilewright.frontend.onnx import import_model
from tilewright.graph import interpret
from tilewright.graph.ops.window import Conv, ConvTranspose, Pool
from tilewright.graph.sizes import as_shape, same_shape

MODES = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")


@st.composite
def geometries(draw: st.DrawFn, *, pools: bool = False) -> tuple[list[int], dict[str, object]]:
    """Sizes of space, and attributes of windows that fit into it."""
    rank = draw(st.integers(1, 3))
    some = lambda low, high: [draw(st.integers(low, high)) for _ in range(rank)]  # noqa: E731
    kernel, strides, dilations = some(1, 3), some(1, 3), some(1, 2)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    space = [r + draw(st.integers(0, 4)) for r in reach]
    attributes: dict[str, object] = {"strides": strides, "dilations": dilations}
    mode = draw(st.sampled_from(MODES if not pools else ("NOTSET", "VALID")))
    if mode == "NOTSET":
        attributes["pads"] = [draw(st.integers(0, r - 1)) for r in (*reach, *reach)]
    else:
        attributes["auto_pad"] = mode
    attributes["kernel_shape"] = kernel
    return space, attributes


@given(geometry=geometries(), groups=st.integers(1, 2), seed=st.integers(0, 99), bias=st.booleans())
def test_conv(geometry, groups, seed, bias):
    space, attributes = geometry
    rng = np.random.default_rng(seed)
    kernel = attributes["kernel_shape"]
    x = rng.standard_normal((2, 2 * groups, *space)).astype(np.float32)
    w = rng.standard_normal((3 * groups, 2, *kernel)).astype(np.float32)
    c = rng.standard_normal(3 * groups).astype(np.float32) if bias else None
    if seed % 2:
        del attributes["kernel_shape"]  # the weights say it
    attributes["group"] = groups
    if not _reference_is_right(attributes, kernel):
        attributes.pop("auto_pad", None)
    check_node("Conv", [x, w, c], known=[1], attributes=attributes)


def _reference_is_right(attributes, kernel):
    """It pads for the kernel without its gaps, and never cuts."""
    if not str(attributes.get("auto_pad", "")).startswith("SAME"):
        return True
    fits = all(k >= s for k, s in zip(kernel, attributes["strides"], strict=True))
    return fits and set(attributes["dilations"]) == {1}


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel", [1, 2, 3])
def test_same_borders_over_symbolic_sizes(mode, stride, kernel):
    """One graph serves every size: what it gives for 7 is what a fixed one gives."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 2, BATCH, BATCH)).astype(np.float32)
    w = rng.standard_normal((3, 2, kernel, kernel)).astype(np.float32)
    options = {"auto_pad": mode, "strides": [stride, stride]}
    symbolic, _ = one_node("Conv", [x, w], known=[1], attributes=options)
    graph = import_model(symbolic).graph
    for size in (BATCH, 10, 11, 12):
        data = rng.standard_normal((1, 2, size, size)).astype(np.float32)
        count = -(-size // stride)
        total = max((count - 1) * stride + kernel - size, 0)
        begin = total // 2 if mode == "SAME_UPPER" else total - total // 2
        wide = np.zeros((1, 2, size + total, size + total), np.float32)
        wide[:, :, begin : begin + size, begin : begin + size] = data
        plain, _ = one_node("Conv", [wide, w], known=[1], attributes={"strides": [stride] * 2})
        (found,) = interpret(graph, {"in0": data})
        (wanted,) = run(plain, {"in0": wide})
        assert found.shape[2] == count
        close(found, wanted[:, :, :count, :count])


@given(geometry=geometries(), seed=st.integers(0, 99))
def test_conv_transpose(geometry, seed):
    space, attributes = geometry
    attributes.pop("auto_pad", None)
    rng = np.random.default_rng(seed)
    rank = len(space)
    attributes["output_padding"] = [int(rng.integers(0, s)) for s in attributes["strides"]]
    sides = zip(
        attributes["strides"], attributes["kernel_shape"], attributes["dilations"], strict=True
    )
    whole = [(n - 1) * s + (k - 1) * d + 1 for n, (s, k, d) in zip(space, sides, strict=True)]
    pads = attributes.get("pads", [0] * 2 * rank)
    if min(w - pads[d] - pads[d + rank] for d, w in enumerate(whole)) < 1:
        attributes["pads"] = [0] * 2 * rank
    x = rng.standard_normal((2, 3, *space)).astype(np.float32)
    w = rng.standard_normal((3, 2, *attributes["kernel_shape"])).astype(np.float32)
    check_node("ConvTranspose", [x, w, np.ones(2, np.float32)], known=[1], attributes=attributes)


@given(
    kernel=st.tuples(st.integers(5, 9), st.integers(5, 9)),
    strides=st.tuples(st.integers(4, 7), st.integers(5, 8)),
    pads=st.lists(st.integers(0, 4), min_size=4, max_size=4),
    groups=st.integers(1, 2),
    gap=st.integers(1, 3),
)
def test_conv_transpose_of_many_uneven_steps(kernel, strides, pads, groups, gap):
    """More steps than kernels are made for have zeros behind their windows, and one kernel."""
    rng = np.random.default_rng(sum(kernel))
    x = rng.standard_normal((1, 2, 3, 2)).astype(np.float32)
    w = rng.standard_normal((2, 2 // groups, *kernel)).astype(np.float32)
    options = {"strides": list(strides), "pads": pads, "group": groups, "output_padding": [1, 0]}
    options["dilations"] = [1, gap]
    check_node("ConvTranspose", [x, w], known=[1], attributes=options)


def test_conv_transpose_in_groups_is_one_for_each_group():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((1, 4, 5, 5)).astype(np.float32)
    w = rng.standard_normal((4, 3, 2, 2)).astype(np.float32)
    options = {"strides": [2, 2]}
    parts = []
    for half in (slice(0, 2), slice(2, 4)):
        model, feeds = one_node(
            "ConvTranspose", [x[:, half], w[half]], known=[1], attributes=options
        )
        parts += run(model, feeds)
    grouped = {**options, "group": 2}
    check_node(
        "ConvTranspose", [x, w], known=[1], attributes=grouped, expected=[np.concatenate(parts, 1)]
    )


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
def test_conv_transpose_makes_the_wanted_shape(mode):
    rng = np.random.default_rng(2)
    x = rng.standard_normal((1, 2, 4, 5)).astype(np.float32)
    w = rng.standard_normal((2, 3, 3, 3)).astype(np.float32)
    options = {"strides": [2, 2], "auto_pad": mode, "output_shape": [8, 10]}
    check_node("ConvTranspose", [x, w], known=[1], attributes=options)


@given(
    geometry=geometries(pools=True),
    seed=st.integers(0, 99),
    ceil=st.booleans(),
    op=st.sampled_from(["MaxPool", "AveragePool", "LpPool"]),
)
def test_pools(geometry, seed, ceil, op):
    space, attributes = geometry
    x = np.random.default_rng(seed).standard_normal((2, 3, *space)).astype(np.float32)
    expected = [_pooled(op, x, attributes, ceil=ceil, include=bool(seed % 2))]
    attributes["ceil_mode"] = int(ceil)
    if op == "AveragePool":
        attributes["count_include_pad"] = seed % 2
    if op == "LpPool":
        attributes["p"] = 2
    check_node(op, [x], attributes=attributes, expected=expected)


def _pooled(op, x, attributes, *, ceil, include):
    """Window by window."""
    kernel, strides, gaps = (attributes[k] for k in ("kernel_shape", "strides", "dilations"))
    rank = len(kernel)
    pads = attributes.get("pads", [0] * 2 * rank)
    counts = []
    for d in range(rank):
        free = x.shape[2 + d] + pads[d] + pads[rank + d] - ((kernel[d] - 1) * gaps[d] + 1)
        count = (-(-free // strides[d]) if ceil else free // strides[d]) + 1
        if ceil and (count - 1) * strides[d] >= x.shape[2 + d] + pads[d]:
            count -= 1
        counts.append(count)
    y = np.zeros((*x.shape[:2], *counts), np.float32)
    for place in np.ndindex(*counts):
        inside, counted = [], 0
        for r in np.ndindex(*kernel):
            at = [
                p * s + i * g - b
                for p, s, i, g, b in zip(place, strides, r, gaps, pads, strict=False)
            ]
            limits = [(n, pads[rank + d]) for d, n in enumerate(x.shape[2:])]
            if all(0 <= a < n for a, (n, _) in zip(at, limits, strict=True)):
                inside.append(x[(slice(None), slice(None), *at)])
            counted += all(a < n + e for a, (n, e) in zip(at, limits, strict=True))
        stack = np.stack(inside)
        if op == "MaxPool":
            y[(slice(None), slice(None), *place)] = stack.max(0)
        elif op == "AveragePool":
            y[(slice(None), slice(None), *place)] = stack.sum(0) / (
                counted if include else len(stack)
            )
        else:
            y[(slice(None), slice(None), *place)] = np.sqrt((stack**2).sum(0))
    return y


@pytest.mark.parametrize("include", [0, 1])
@pytest.mark.parametrize("ceil", [0, 1])
def test_averages_over_symbolic_sizes(include, ceil):
    options = {
        "kernel_shape": [3, 3],
        "strides": [2, 2],
        "pads": [1, 1, 1, 1],
        "ceil_mode": ceil,
        "count_include_pad": include,
    }
    x = np.random.default_rng(3).standard_normal((1, 2, BATCH, BATCH)).astype(np.float32)
    graph = import_model(one_node("AveragePool", [x], attributes=options)[0]).graph
    for size in (BATCH, 8, 9):
        data = np.random.default_rng(size).standard_normal((1, 2, size, size)).astype(np.float32)
        plain = {**options, "dilations": [1, 1]}
        expected = _pooled("AveragePool", data, plain, ceil=bool(ceil), include=bool(include))
        (found,) = interpret(graph, {"in0": data})
        close(found, expected)


@pytest.mark.parametrize("op", ["GlobalMaxPool", "GlobalAveragePool"])
@pytest.mark.parametrize("dtype", ["f4", "f2"])
def test_global_pools(op, dtype):
    x = np.random.default_rng(4).standard_normal((2, 3, 5, BATCH)).astype(dtype)
    check_node(op, [x])


def test_global_sums_of_narrow_floats_do_not_overflow():
    x = np.full((1, 1, 64, 64), 100.0, np.float16)
    check_node("GlobalAveragePool", [x], expected=[np.full((1, 1, 1, 1), 100.0, np.float16)])


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("op", ["Conv", "ConvInteger", "AveragePool", "LpPool"])
def test_windows_without_a_place_give_nothing(op, stride):
    """Whether the size is known or symbolic."""
    kind = np.uint8 if op == "ConvInteger" else np.float32
    weights = [np.ones((8, 8, 3, 3), kind)] if op.startswith("Conv") else []
    attributes = {"kernel_shape": [3, 3], "strides": [stride, stride]}
    few = np.ones((2, 8, 2, 5), kind)
    for height in (2, BATCH):
        options = {"known": [1] if weights else [], "attributes": attributes}
        model, _ = one_node(op, [np.ones((2, 8, height, 5), kind), *weights], **options)
        (found,) = tilewright.compile(model, cache=False, threads=1).run({"in0": few})
        assert found.shape == (2, 8, 0, {1: 3, 2: 2}[stride])


def test_channels_are_last_inside_and_the_bias_is_added_there():
    x, w = np.ones((1, 2, 4, 4), np.float32), np.ones((3, 2, 3, 3), np.float32)
    model, _ = one_node("Conv", [x, w, np.ones(3, np.float32)], known=[1, 2])
    names = [node.op.name for node in import_model(model).graph.nodes]
    assert names == ["transpose", "conv", "map", "transpose"]


@pytest.mark.parametrize("zero", [0, 3])
def test_integer_convolutions_are_exact(zero):
    rng = np.random.default_rng(5)
    x = rng.integers(0, 255, (1, 2, 5, 5)).astype(np.uint8)
    w = rng.integers(0, 255, (3, 2, 2, 2)).astype(np.uint8)
    check_node("ConvInteger", [x, w, np.uint8(zero), np.uint8(zero + 1)], known=[1, 3])


def test_quantised_convolution_with_a_scale_for_each_filter():
    rng = np.random.default_rng(6)
    x = rng.integers(0, 255, (1, 2, 5, 5)).astype(np.uint8)
    w = rng.integers(-100, 100, (3, 2, 2, 2)).astype(np.int8)
    scales = np.array([0.01, 0.02, 0.05], np.float32)
    inputs = [x, np.float32(0.1), np.uint8(7), w, scales, np.zeros(3, np.int8)]
    inputs += [np.float32(0.5), np.uint8(120), np.array([5, -7, 9], np.int32)]
    check_node("QLinearConv", inputs, known=[3, 4, 5])


@pytest.mark.parametrize(
    "op",
    [
        Conv((1,), (1,), (1, 1), 1, None),
        ConvTranspose((2,), (1,), (0, 0), (0,), 1, None),
        Pool(None, (2,), (1,), (1,), (0, 0)),
    ],
    ids=lambda op: op.name,
)
def test_equal_windows_are_equal_operators(op):
    import dataclasses

    assert dataclasses.replace(op) == op
    assert hash(dataclasses.replace(op)) == hash(op)
    assert dataclasses.replace(op, strides=(5,)) != op


def test_maximum_of_a_border_never_wins():
    x = np.full((1, 1, 2, 2), -9.0, np.float32)
    options = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    check_node(
        "MaxPool", [x], attributes=options, expected=[np.full((1, 1, 2, 2), -9.0, np.float32)]
    )


def test_what_is_cut_out_of_windows_keeps_a_simple_size():
    """A slice of other dimensions leaves the number of windows as it is, whatever it is made of."""
    x, w = np.ones((1, 1, BATCH), np.float32), np.ones((4, 1, 3), np.float32)
    ends = {"starts": np.array([1, 0]), "ends": np.array([3, 2**40]), "axes": np.array([1, 2])}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["y"], strides=[2]),
        helper.make_node("Slice", ["y", *ends], ["z"]),
    ]
    graph = import_model(make_model(nodes, {"x": x}, {"w": w, **ends})).graph
    whole, part = graph.outputs
    assert same_shape(part.shape, as_shape([whole.shape[0], 2, whole.shape[2]]))
    (_, found) = interpret(graph, {"x": np.ones((1, 1, 12), np.float32)})
    assert found.shape == (1, 2, 5)


@given(geometry=geometries(pools=True), seed=st.integers(0, 99), columns=st.integers(0, 1))
def test_places_of_maxima_point_at_them(geometry, seed, columns):
    space, attributes = geometry
    attributes["storage_order"] = columns
    x = np.random.default_rng(seed).permutation(6 * int(np.prod(space))).astype(np.float32)
    x = x.reshape(2, 3, *space)
    model, feeds = one_node("MaxPool", [x], outputs=2, attributes=attributes)
    values, places = run(model, feeds)
    assert places.dtype == np.int64
    backward = (0, 1, *range(len(space) + 1, 1, -1))
    flat = (x.transpose(backward) if columns else x).reshape(-1)
    np.testing.assert_array_equal(flat[places], values)


@given(
    geometry=geometries(pools=True),
    seed=st.integers(0, 99),
    least=st.sampled_from([np.uint8(0), np.int8(-128), np.float32("-inf"), np.float16("-inf")]),
)
def test_places_of_maxima_are_not_in_the_border(geometry, seed, least):
    """Elements may be as little as what stands around them."""
    space, attributes = geometry
    few = np.array([least, least, 1], least.dtype)
    x = np.random.default_rng(seed).choice(few, (2, 3, *space))

    def pooled(array):
        model, feeds = one_node("MaxPool", [array], outputs=2, attributes=attributes)
        return run(model, feeds)

    values, places = pooled(x)
    has_elements = pooled(np.ones_like(x))[0] == 1
    np.testing.assert_array_equal(x.reshape(-1)[places[has_elements]], values[has_elements])
    assert (places[has_elements] >= 0).all()
