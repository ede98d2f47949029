"""Ranks and axes that sizes decide: what is one, or zero, in a run makes another graph of a model.

Each model is compiled once and runs with all combinations of its sizes; shapes and values are those
of the reference implementation, or of onnxruntime where the reference is known to be wrong.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

import tilewright
from tests.expect import raises_code
from tests.onnx.beside_ort import assert_alike, onnxruntime_results
from tests.onnx.test_broadcast_sizes import check, parsed
from tilewright.errors import TilewrightError, TilewrightWarning
from tilewright.graph.ir import Array

MODELS = {
    "one size": "g (float[n, 4] x) => (float a) { a = Squeeze(x) }",
    "two sizes": "g (float[n, 1, m] x) => (float a) { b = Squeeze(x) a = Relu(b) }",
    "sizes of one name": "g (float[n, n] x) => (float a) { a = Squeeze(x) }",
    "what follows": """g (float[n, 3] x) => (float a) {
        b = Squeeze(x)
        c = Sigmoid(b)
        d = Slice(c, zero, one, zero)
        e = Slice(c, one, most, zero)
        a = Concat<axis = 0>(e, d)
    }""",
    "twice": """g (float[n, 1, m] x) => (float a, float b) {
        a = Squeeze(x)
        c = Unsqueeze(a, zero)
        d = Add(c, a)
        b = Squeeze(d)
    }""",
    "a size of another": """g (float[n, 2] x) => (float a) {
        b = Slice(x, one, most, zero)
        a = Squeeze(b)
    }""",
    "the last row": """g (float[n, 2] x) => (float a) {
        b = Slice(x, minus, most, zero)
        a = Squeeze(b)
    }""",
    "a size that data tell": """g (float[n] x) => (float a, float c) {
        i = NonZero(x)
        j = Squeeze(i)
        a = Cast<to = 1>(j)
        c = Gather(x, j)
    }""",
    "a branch": """g (float[n, 2] x, bool c) => (float a) {
        a = If(c) <
            then_branch = t () => (float u) { s = Squeeze(x) u = ReduceSum<keepdims = 0>(s, zero) },
            else_branch = e () => (float v) { w = Neg(x) v = ReduceSum<keepdims = 0>(w, zero) }>
    }""",
    "squeezed if it is one": """g (float[n, 4] x) => (float a) {
        s = Shape<start = 0, end = 1>(x)
        c = Equal(s, one)
        b = If(c) <
            then_branch = t () => (float u) { u = Squeeze(x, zero) },
            else_branch = e () => (float v) { v = Identity(x) }>
        a = Relu(b)
    }""",
    "an axis that a size chooses": """g (float[n, 4] x) => (float a) {
        s = Shape<start = 0, end = 1>(x)
        c = Equal(s, one)
        k = Where(c, zero, one)
        a = ReduceSum<keepdims = 0>(x, k)
    }""",
    "a scan": """g (float[3, n] x) => (float a) {
        a = Scan<num_scan_inputs = 1, body = l (float[n] y) => (float s) { s = Squeeze(y) }>(x)
    }""",
    "no shape of zero": """g (float[n, m] x) => (float a) {
        s = Shape<start = 0, end = 1>(x)
        t = Shape<start = 1, end = 2>(x)
        v = Concat<axis = 0>(t, s)
        a = Reshape<allowzero = 1>(x, v)
    }""",
}


@pytest.mark.parametrize("name", MODELS)
def test_every_combination(name: str) -> None:
    check(parsed(MODELS[name]))


@pytest.mark.parametrize("opset", [1, 11, 13, 21, 23])
def test_every_opset(opset: int) -> None:
    text = f'<ir_version: 8, opset_import: ["" : {opset}]> '
    model = parser.parse_model(text + "g (float[n, m, 2] x) => (float[a] y) { y = Squeeze(x) }")
    module = tilewright.compile(model, cache=False, threads=1)
    for n, m in ((1, 1), (1, 3), (3, 1), (2, 3)):
        x = np.arange(n * m * 2, dtype=np.float32).reshape(n, m, 2)
        (y,) = module.run({"x": x})
        assert np.array_equal(y, x.squeeze()), (n, m)
        assert y.shape == x.squeeze().shape


def test_inside_of_a_function() -> None:
    model = parser.parse_model("""<ir_version: 9, opset_import: ["" : 20, "own" : 1]>
        g (float[n, 4] x, float[m, 4] z) => (float[a] y, float[b] u) {
            y = own.drop(x)
            u = own.drop(z)
        }
        <domain: "own", opset_import: ["" : 20]> drop (x) => (y) { y = Squeeze(x) }
    """)
    check(model)


def compared(model: onnx.ModelProto, *every: dict[str, Array]) -> tilewright.Module:
    pytest.importorskip("onnxruntime")
    module = tilewright.compile(model, cache=False, threads=1)
    for feeds in every:
        results = onnxruntime_results(model, feeds)
        for found, wanted in zip(module.run(feeds), results, strict=True):
            assert found.shape == wanted.shape
            assert_alike(found, wanted)
    return module


def test_scales_and_zero_points_of_one_element_are_for_all() -> None:
    model = parser.parse_model("""<ir_version: 9, opset_import: ["" : 20]>
        g (float[2, 3] x, float[n] s, uint8[m] p) => (uint8[2, 3] y, float[2, 3] z) {
            y = QuantizeLinear(x, s, p)
            z = DequantizeLinear(y, s, p)
        }""")
    x = np.linspace(0, 5, 6, dtype=np.float32).reshape(2, 3)
    scales, zeros = np.array([0.25, 0.5, 1], np.float32), np.array([3, 4, 5], np.uint8)
    compared(model, *({"x": x, "s": scales[:n], "p": zeros[:n]} for n in (3, 1)))


def test_a_transform_of_real_or_of_complex_numbers() -> None:
    check(parsed("g (float[2, n, c] x) => (float a) { a = DFT(x) }"), (1, 2))


def test_a_loop() -> None:
    """The reference joins what turns give, instead of stacking it."""
    model = parsed("""g (float[n, 2] x) => (float[a] y) {
        y = Loop(two, true) <
            body = l (int64 i, bool c) => (bool d, float s) {
                d = Identity(c)
                s = Squeeze(x)
            }>
    }""")
    compared(model, *({"x": np.ones((n, 2), np.float32)} for n in (0, 1, 3)))


def test_a_size_of_zero_beside_minus_one_keeps_a_dimension() -> None:
    """`Reshape` to [m, -1]: in a run in which m is zero that 0 means the size that is there."""
    model = parsed("""g (float[n, m] x) => (float[a, b] y) {
        s = Shape<start = 1, end = 2>(x)
        v = Concat<axis = 0>(s, minus)
        y = Reshape(x, v)
    }""")
    shapes = ((4, 3), (4, 0), (1, 3), (3, 1))
    compared(model, *({"x": np.ones(shape, np.float32)} for shape in shapes))


def test_a_size_of_minus_one_is_what_remains() -> None:
    model = parsed("""g (float[n, 6] x) => (float[a, b] y) {
        s = Shape<start = 0, end = 1>(x)
        k = Sub(s, one)
        l = Sub(k, one)
        v = Concat<axis = 0>(l, one)
        y = Reshape(x, v)
    }""")
    compared(model, {"x": np.ones((1, 6), np.float32)})


def test_a_loop_whose_turns_differ_runs_by_reference() -> None:
    """A row, then two rows: no graph has both ranks of what is squeezed."""
    model = parsed("""g (float[n, 2] x, int64 turns) => (float a) {
        a = Loop(turns, true) <
            body = l (int64 i, bool c) => (bool d, float s) {
                d = Identity(c)
                j = Unsqueeze(i, zero)
                k = Add(j, one)
                r = Slice(x, zero, k, zero)
                q = Squeeze(r)
                s = ReduceSum<keepdims = 0>(q)
            }>
    }""")
    module = tilewright.compile(model, cache=False, threads=1)
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TilewrightWarning)
        (y,) = module.run({"x": x, "turns": np.array(3)})
    assert np.array_equal(y, [1, 6, 15])


BY_DATA = """g (float[n, 4] x, bool c) => (float[n, 4] a) {
    a = If(c) <
        then_branch = t () => (float u) { u = ReduceSum<keepdims = 0>(x, zero) },
        else_branch = e () => (float v) { v = Identity(x) }>
}"""


def test_a_model_that_is_made_for_a_batch_of_one() -> None:
    """With more rows there is no graph: that says nothing about the one that there is."""
    model = parsed("g (float[n, 4] x) => (float a) { b = Squeeze(x) a = Transpose<perm = [0]>(b) }")
    module = tilewright.compile(model, cache=False, threads=1)
    assert module.run({"x": np.ones((1, 4), np.float32)})[0].shape == (4,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TilewrightWarning)
        for _ in range(2):
            with pytest.raises(TilewrightError):
                module.run({"x": np.ones((3, 4), np.float32)})


def test_a_model_that_is_made_for_no_size_is_refused() -> None:
    model = parsed("g (float[n, 4, 4] x) => (float a) { b = Squeeze(x) a = Flatten<axis = 9>(b) }")
    with raises_code("M004"):
        tilewright.compile(model, cache=False)


def test_a_rank_that_data_decide_is_what_it_is() -> None:
    model = parser.parse_model(f'<ir_version: 9, opset_import: ["" : 20]>\n{BY_DATA}')
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0]), "zero"))
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TilewrightWarning)
        module = tilewright.compile(model, cache=False, threads=1)
        for condition, wanted in ((False, x), (True, x.sum(0)), (False, x)):
            (a,) = module.run({"x": x, "c": np.array(condition)})
            assert np.array_equal(a, wanted)
            assert a.shape == wanted.shape


ONE_SIZE = MODELS["one size"]


def test_all_ways_to_run() -> None:
    model = parsed(ONE_SIZE)
    model.graph.output[0].type.tensor_type.shape.dim.add().dim_param = "n"
    model.graph.output[0].type.tensor_type.shape.dim.add().dim_value = 4
    session = tilewright.InferenceSession(model.SerializeToString())
    module = session.module
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    for rows in (x, x[:1], x[:0]):
        wanted = rows.squeeze() if len(rows) == 1 else rows
        for (found,) in (
            session.run(None, {"x": rows}),
            module.run_profiled({"x": rows})[0],
            module.run_async({"x": rows}).result(),
        ):
            assert found.shape == wanted.shape
            assert np.array_equal(found, wanted)
    into = np.zeros(4, np.float32)
    module.run_into({"x": x[:1]}, {"a": into})
    assert np.array_equal(into, x[0])


def test_a_compiled_file_says_for_which_runs_it_is(tmp_path: Any) -> None:
    path = tmp_path / "one.tw"
    tilewright.compile(parsed(ONE_SIZE), cache=False).save(path)
    loaded = tilewright.load(path)
    x = np.ones((2, 4), np.float32)
    assert loaded.run({"x": x})[0].shape == (2, 4)
    with raises_code("C025", text="`n == 1` is true"):
        loaded.run({"x": x[:1]})


def test_a_file_for_a_size_of_one(tmp_path: Any) -> None:
    """What the hint of C025 says."""
    options = tilewright.SessionOptions()
    options.add_free_dimension_override_by_name("n", 1)
    options.optimized_model_filepath = str(tmp_path / "one.tw")
    tilewright.InferenceSession(parsed(ONE_SIZE).SerializeToString(), options)
    (y,) = tilewright.load(tmp_path / "one.tw").run({"x": np.ones((1, 4), np.float32)})
    assert y.shape == (4,)


def test_dims_are_fixed_when_a_model_is_compiled(tmp_path: Any) -> None:
    """Of the same model one file for sizes of one, and one for others."""
    path = tmp_path / "one.tw"
    tilewright.compile(parsed(ONE_SIZE), cache=tmp_path, dims={"n": 1}).save(path)
    loaded = tilewright.load(path)
    assert loaded.inputs[0].shape == (1, 4)
    assert loaded.run({"x": np.ones((1, 4), np.float32)})[0].shape == (4,)
    with raises_code("C005"):
        loaded.run({"x": np.ones((2, 4), np.float32)})
    again = tilewright.compile(parsed(ONE_SIZE), cache=tmp_path)  # is another entry of the cache
    assert again.inputs[0].shape == ("n", 4)


@pytest.mark.parametrize(
    ("dims", "text"),
    [
        ({"m": 1}, "symbolic dimensions of the model: `n`"),
        ({"n": -1}, "-1 for `n`"),
        ({"n": 1.5}, "1.5 for `n`"),
        ({"n": True}, "True for `n`"),
    ],
)
def test_dims_that_cannot_be_fixed(dims: Any, text: str) -> None:
    with raises_code("K020", text=text):
        tilewright.compile(parsed(ONE_SIZE), cache=False, dims=dims)


def test_versions_are_few() -> None:
    """One for each set of sizes that are one, whatever the others are."""
    module = check(parsed(MODELS["two sizes"]), (1, 2, 3))
    assert module.spreading is not None
    assert len(module.spreading._versions._made) == 3
    assert check(parsed(MODELS["the last row"]), (1, 2, 3)).spreading is not None


def test_axes_that_are_given_need_no_version() -> None:
    module = check(parsed("g (float[n, 1, 2] x) => (float a) { a = Squeeze(x, one) }"))
    assert module.spreading is None
