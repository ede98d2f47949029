"""Sizes that are negative, huge or do not fit: an error of the model or of the call, at once."""

from __future__ import annotations

import contextlib
import time
import warnings
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

import tilewright as tw
from tests.expect import raises_code
from tests.hostile.long_sizes import bordered, enlarged, joined_at_once, joined_one_by_one
from tests.hostile.texts import HEAD, compiled
from tests.small import make
from tilewright.errors import CallError, ModelError
from tilewright.frontend.onnx.registry import HANDLERS


def test_negative_dimensions_of_what_runs_by_reference_are_not_known():
    text = "m (string[n] x, float[2] v) => (string[n] y) { y = StringConcat (x, x) }"
    model = parser.parse_model(HEAD + text)
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_value = -(2**31)
    with pytest.warns(tw.TilewrightWarning):
        assert compiled(model).inputs[1].name == "v"


def test_negative_dimensions_of_inputs_are_unknown():
    """As other runtimes take them: some exporters write -1 for any size."""
    model = make([helper.make_node("Neg", ["x"], ["y"])], [("x", [-1, 4])], [("y", [-1, 4])])
    x = np.ones((3, 4), np.float32)
    (found,) = compiled(model).run({"x": x})  # type: ignore[attr-defined]
    assert np.array_equal(found, -x)


@pytest.mark.parametrize("dims", [[2**40, 2**40], [2**62, 4]])
def test_inputs_that_no_memory_holds(dims):
    model = make([helper.make_node("Neg", ["x"], ["y"])], [("x", dims)], [("y", dims)])
    with raises_code("M002", text="fits into memory"):
        compiled(model)


@pytest.mark.parametrize("size", [10**12, 2**44])
def test_a_result_for_which_there_is_no_memory_is_an_error_of_the_call(size):
    expand = helper.make_node("Expand", ["x", "shape"], ["y"])
    model = make([expand], [("x", [1])], [("y", [size])], {"shape": np.array([size])})
    module = compiled(model)
    with pytest.raises(CallError, match=r"C026|C025"):
        module.run({"x": np.ones(1, np.float32)})  # type: ignore[attr-defined]


def test_a_result_whose_size_data_tell_is_an_error_of_the_call():
    nodes = [helper.make_node("ConstantOfShape", ["s"], ["y"])]
    model = make(nodes, [("s", [2])], [("y", ["n", "m"])], kind=TensorProto.INT64)
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
    module = compiled(model)
    for sizes in ([2**40, 2**40], [2**62, 2**62], [-5, 3], [2**35, 2**9]):
        with pytest.raises(CallError, match="C0"):
            module.run({"s": np.array(sizes)})  # type: ignore[attr-defined]
    (found,) = module.run({"s": np.array([2, 3])})  # type: ignore[attr-defined]
    assert np.array_equal(found, np.zeros((2, 3), np.float32))


@pytest.mark.parametrize("scale", [0.37, 1.4142135, 1e-43])
def test_a_symbolic_size_is_scaled_by_any_number(scale):
    """One that is no quotient of small numbers was an error of ours."""
    text = "m (float[1,1,h,w] x) => (float[1,1,a,b] y) { y = Resize (x, , s) }"
    model = parser.parse_model(HEAD + text)
    scales = np.array([1, 1, scale, 1], np.float32)
    model.graph.initializer.append(numpy_helper.from_array(scales, "s"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = compiled(model)
    if scale > 1e-3:
        x = np.zeros((1, 1, 100, 3), np.float32)
        (found,) = module.run({"x": x})  # type: ignore[attr-defined]
        assert found.shape == (1, 1, int(np.floor(np.float32(100) * np.float32(scale))), 3)


def test_a_reduction_of_billions_is_compiled_at_once():
    """All ways to cut it in pieces were tried: ten seconds, and more for more."""
    text = "m (float[n, 4294967296] x, float[4294967296, 4] w) => (float[n, 4] y)"
    model = parser.parse_model(HEAD + text + " { y = MatMul (x, w) }")
    start = time.process_time()
    compiled(model)
    assert time.process_time() - start < 5.0


def test_a_transposed_convolution_of_huge_strides_is_compiled_at_once():
    """Each step of a stride was looked at, and would have been a kernel."""
    text = """m (float[1,2,h,w] x) => (float[1,2,a,b] y) {
        y = ConvTranspose <strides = [2, 1000000000], group = 2> (x, k)
    }"""
    model = parser.parse_model(HEAD + text)
    kernel = np.ones((2, 1, 3, 3), np.float32)
    model.graph.initializer.append(numpy_helper.from_array(kernel, "k"))
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled(model)
    assert time.process_time() - start < 5.0


@pytest.mark.parametrize("op", ["Range", "HannWindow", "ConstantOfShape", "Tile", "Pad", "If"])
def test_a_vector_where_one_number_is_read_is_an_error_of_the_call(op):
    """That a length was read from no memory was an error of the artefact."""
    texts = {
        "Range": "m (int64[k] s) => (int64[q] y) { y = Range (s, s, s) }",
        "HannWindow": "m (int64[k] s) => (float[q] y) { y = HannWindow (s) }",
        "ConstantOfShape": "m (int64[k] s) => (float[q] y) { y = ConstantOfShape (s) }",
        "Tile": "m (int64[2] x, int64[k] s) => (int64[q] y) { y = Tile (x, s) }",
        "Pad": "m (int64[2] x, int64[k] s) => (int64[q] y) { y = Pad (x, s) }",
        "If": """m (int64[2] x, int64[k] s) => (int64[q] y) { c = Cast <to = 9> (s) y = If (c) <
            then_branch = t () => (int64[q] a) { a = Neg (x) },
            else_branch = e () => (int64[q] b) { b = Abs (x) }> }""",
    }
    model = parser.parse_model(HEAD + texts[op])
    try:
        module = tw.compile(model, cache=False, threads=1)
    except ModelError:
        return
    for length in range(4):
        feeds = {"x": np.ones(2, np.int64), "s": np.ones(length, np.int64)}
        with contextlib.suppress(CallError, ModelError):  # one is compiled for its values
            module.run({i.name: feeds[i.name] for i in module.inputs})


def test_more_bytes_than_can_be_counted_whatever_is_given():
    """Sizes that are symbolic escape the limits of known ones, and met a check of artefacts."""
    model = make(
        [
            helper.make_node("Expand", ["x", "a"], ["y"]),
            helper.make_node("Tile", ["y", "b"], ["z"]),
        ],
        [("x", ["n", 1])],
        [("z", ["m", "k"])],
        {"a": np.array([1, 2**40]), "b": np.array([2**40, 1])},
    )
    with pytest.raises(ModelError, match=r"M00[45]"):
        compiled(model)


def test_a_size_that_does_not_fit_into_64_bits_is_told_as_too_large():
    from tilewright.model.exhaustion import told_as_too_large
    from tilewright.model.sizing import SizeTable
    from tilewright.tensor import ir as tir

    with raises_code("M005", text="more bytes"), told_as_too_large("m"):
        SizeTable.postfix(SizeTable.__new__(SizeTable), tir.Const(1 << 70))


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("gap", [1 << 39, 1 << 61])
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_borders_that_no_memory_holds(op, gap, rank):
    """What is left of their size modulo 2⁶⁴ would be a few bytes."""
    dims = ", ".join("hwd"[:rank])
    each = f"kernel_shape = {[3] * rank}, dilations = {[gap] * rank}, pads = {[gap] * 2 * rank}"
    text = f"m (float[1, 1, {dims}] x) => (float[1, 1, {dims}] y) {{ y = {op} <{each}> (x) }}"
    with pytest.raises((CallError, ModelError)) as caught:
        tw.compile(parser.parse_model(HEAD + text), cache=False, threads=1).run(
            {"x": np.ones((1, 1) + (5,) * rank, np.float32)}
        )
    assert caught.value.code.id in ("C025", "C026", "M004", "M005")


LONG = np.empty((2**60, 0), np.float32)  # without an element, and NumPy counts its rows
TWICE = [
    "y = Concat <axis = 0> (x, x)",
    "z = Concat <axis = 0> (x, x) y = Neg (z)",
    "z = Concat <axis = 0> (x, x) y = Transpose (z)",
    "z = Concat <axis = 0> (x, x) w = Unique <axis = 1> (z) y = Identity (w)",
]


@pytest.mark.filterwarnings("ignore::tilewright.errors.TilewrightWarning")
@pytest.mark.parametrize("text", TWICE)
def test_empty_results_that_no_array_can_be(text, monkeypatch):
    """NumPy multiplies all extents but zeros, and has an end."""
    monkeypatch.delitem(HANDLERS, ("", "Unique"))  # then it runs by reference, on an array
    model = parser.parse_model(f"{HEAD}m (float[n, k] x) => (float[a, b] y) {{ {text} }}")
    module: Any = compiled(model)
    for run in (module.run, module.run_profiled, lambda feeds: module.run_async(feeds).result()):
        with raises_code("C025", text="would read" if "Unique" in text else "more bytes"):
            run({"x": LONG})
    if "Unique" not in text:
        (y,) = module.run({"x": LONG[: 2**59]})
        assert sorted(y.shape) == [0, 2**60]


@pytest.mark.parametrize("make_model", [joined_at_once, joined_one_by_one])
def test_tensors_of_very_many_sizes_are_joined_in_order(make_model):
    """Among them empty ones; sums of sizes are long, and sorted by their names."""
    module = compiled(make_model(90))
    parts = [np.arange(k % 4, dtype=np.float32) + k for k in range(90)]
    (found,) = module.run({f"x{k}": part for k, part in enumerate(parts)})  # type: ignore[attr-defined]
    assert np.array_equal(found, np.concatenate(parts))


@pytest.mark.parametrize(("count", "outer"), [(1000, ()), (120, ("m",))])
def test_very_many_sizes_in_one_join(count, outer):
    rng = np.random.default_rng(4)
    rows = [2] * len(outer)
    parts = [rng.standard_normal((*rows, k % 3)).astype(np.float32) for k in range(count)]
    module = compiled(joined_at_once(count, *outer))
    (found,) = module.run({f"x{k}": part for k, part in enumerate(parts)})  # type: ignore[attr-defined]
    assert np.array_equal(found, np.concatenate(parts, len(outer)))


@pytest.mark.parametrize("mode", ["constant", "edge"])
@pytest.mark.parametrize("shape", [(1, 2, 1, 3, 1, 2, 1, 1, 2), (2, 1, 1, 1, 3, 1, 1, 1, 1, 1, 2)])
def test_borders_along_some_of_many_dimensions(mode, shape):
    rank = len(shape)
    rng = np.random.default_rng(rank)
    pads = rng.integers(0, 3, 2 * rank)
    pads[:3] = pads[rank : rank + 3] = 0
    x = rng.standard_normal(shape).astype(np.float32)
    node = helper.make_node("Pad", ["x", "p"], ["y"], mode=mode)
    dims = [f"n{k}" for k in range(rank)]
    module = compiled(make([node], [("x", dims)], [("y", ["q"] * rank)], {"p": pads}))
    (found,) = module.run({"x": x})  # type: ignore[attr-defined]
    widths = list(zip(pads[:rank], pads[rank:], strict=True))
    assert np.array_equal(found, np.pad(x, widths, mode=mode))


def test_a_border_around_nothing_of_many_dimensions():
    x = np.empty((1, 0, *[1] * 7), np.float32)
    (found,) = compiled(bordered(9)).run({"x": x})  # type: ignore[attr-defined]
    assert np.array_equal(found, np.zeros([size + 2 for size in x.shape], np.float32))


def test_means_along_many_dimensions():
    x = np.random.default_rng(5).standard_normal((2, 3, *[1] * 7)).astype(np.float32)
    (found,) = compiled(enlarged(9)).run({"x": x})  # type: ignore[attr-defined]
    small = helper.make_node("Resize", ["x", "", "s"], ["y"], mode="linear")
    plain = make([small], [("x", [2, 3])], [("y", [4, 6])], {"s": np.full(2, 2, np.float32)})
    (expected,) = compiled(plain).run({"x": x.reshape(2, 3)})  # type: ignore[attr-defined]
    assert np.allclose(found, np.broadcast_to(expected.reshape(4, 6, *[1] * 7), found.shape))


@pytest.mark.parametrize("others", [(2, 1, 3, 1, 2, 1, 1, 2), (2, 3, 1, 2, 1, 2, 3, 1), (1, 2)])
def test_products_along_many_dimensions(others):
    rng = np.random.default_rng(6)
    x = rng.standard_normal((2, 1, 3, 1, 2, 1, 1, 2, 3, 4)).astype(np.float32)
    w = rng.standard_normal((*others, 4, 2)).astype(np.float32)
    shapes = [("x", list(x.shape)), ("w", list(w.shape))]
    model = make([helper.make_node("MatMul", ["x", "w"], ["y"])], shapes, [("y", ["q"] * 10)])
    (found,) = compiled(model).run({"x": x, "w": w})  # type: ignore[attr-defined]
    assert np.allclose(found, x @ w, atol=1e-4)


def test_products_along_many_dimensions_that_do_not_fit():
    """As many elements, along other dimensions."""
    dims = [[f"{name}{k}" for k in range(8)] for name in "nk"]
    shapes = [("x", [*dims[0], 2, 2]), ("w", [*dims[1], 2, 2])]
    model = make([helper.make_node("MatMul", ["x", "w"], ["y"])], shapes, [("y", ["q"] * 10)])
    x, w = np.ones((2, 3, *[1] * 6, 2, 2), np.float32), np.ones((3, 2, *[1] * 6, 2, 2), np.float32)
    with raises_code("C025"):
        compiled(model).run({"x": x, "w": w})  # type: ignore[attr-defined]
