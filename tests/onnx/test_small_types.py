"""Types of at most eight bits in models: as ports, as constants, quantised, moved, and as bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tests.expect import raises_code
from tests.onnx.small_models import BATCH, check, check_node, make_model, one_node
from tilewright.dtypes import DTYPES, DType, f8e8m0
from tilewright.frontend.onnx import import_model
from tilewright.frontend.onnx.registry import Unknown
from tilewright.graph.ir import Array
from tilewright.model.info import element_type, type_name

SMALL = [dtype for dtype in DTYPES.values() if dtype.is_small]
QUANTIZED = [dtype for dtype in SMALL if dtype != f8e8m0]
SHAPE = (BATCH, 6)


def codes(rng: np.random.Generator, dtype: DType, *shape: int) -> Array:
    """Any values of a type, NaN included."""
    return rng.integers(0, 1 << dtype.bits, shape, dtype=np.uint8).view(dtype.numpy)


def numbers(rng: np.random.Generator, dtype: DType, *shape: int) -> Array:
    """Values without NaN."""
    found = codes(rng, dtype, *shape)
    wide = found.astype(np.float32)
    return np.where(np.isfinite(wide), wide, 1).astype(dtype.numpy)


@pytest.mark.parametrize("dtype", QUANTIZED, ids=str)
@pytest.mark.parametrize("form", ["tensor", "axis", "blocks"])
def test_quantize_and_back(rng: np.random.Generator, dtype: DType, form: str) -> None:
    x = rng.normal(0, 20, SHAPE).astype("f4")
    x[0, :4] = [1e6, -1e6, 0, -0.0]
    shape: dict[str, tuple[int, ...]] = {"tensor": (), "axis": (6,), "blocks": (BATCH, 3)}
    scale = rng.uniform(0.2, 3, shape[form]).astype("f4")
    attributes: dict[str, Any] = {"axis": 1, "block_size": 2} if form == "blocks" else {}
    zero = np.zeros(shape[form], dtype.numpy)
    if dtype.is_integer:  # for float8 the reference accepts no other
        zero = numbers(rng, dtype, *shape[form])
    options = {"opset": 25, "attributes": attributes, "compiled": form != "axis"}
    check_node("QuantizeLinear", [x, scale, zero], **options)
    if dtype.is_float and dtype.bits != 6:  # the reference has no words for these
        check_node("DequantizeLinear", [numbers(rng, dtype, *SHAPE), scale], **options)
    if dtype.is_integer:
        check_node("DequantizeLinear", [codes(rng, dtype, *SHAPE), scale, zero], **options)


@pytest.mark.parametrize("dtype", QUANTIZED, ids=str)
def test_quantized_type_by_attribute(rng: np.random.Generator, dtype: DType) -> None:
    x = (rng.normal(0, 20, SHAPE) * 100).astype("f4")
    for saturate in (0, 1) if dtype.is_float else (1,):
        attributes = {"output_dtype": element_type(dtype), "saturate": saturate}
        check_node("QuantizeLinear", [x, np.float32(0.7)], opset=25, attributes=attributes)


def test_scales_are_no_type_to_quantize_to() -> None:
    """The standard does not have it: the reference implementation is asked, and refuses."""
    attributes = {"output_dtype": TensorProto.FLOAT8E8M0}
    model, _ = one_node("QuantizeLinear", [np.ones(3, "f4"), np.float32(1)], attributes=attributes)
    (node,) = import_model(model).by_reference
    assert "f8e8m0" in node.reason


@pytest.mark.parametrize("source", DTYPES.values(), ids=str)
def test_bits_stay_what_they_are(source: DType) -> None:
    """All types of a width, and all NaN: nothing is widened on the way."""
    bits = 8 if source.is_bool else source.bits
    values = np.arange(1 << min(bits, 12), dtype=np.uint64)
    patterns = values << (bits - 12) if bits > 12 else values
    kind = np.dtype(f"u{source.size_bytes}")
    x = (patterns % 2 if source.is_bool else patterns).astype(kind).view(source.numpy)
    same = [t for t in DTYPES.values() if (8 if t.is_bool else t.bits) == bits]
    nodes = [helper.make_node("BitCast", ["x"], [to.name], to=element_type(to)) for to in same]
    model = make_model(nodes, {"x": x}, opset=26)
    module = tw.compile(model, cache=False)
    assert not module.by_reference
    found = module.run({"x": x})
    held = tw.compile(make_model(nodes, {}, {"x": x}, opset=26), cache=False).run({})
    for to, native, folded in zip(same, found, held, strict=True):
        wanted = (x.view(kind) != 0).tobytes() if to.is_bool else x.tobytes()
        assert native.dtype == folded.dtype == to.numpy
        assert native.tobytes() == wanted, to
        assert folded.tobytes() == wanted, to


def test_bits_of_another_width_are_not_ours() -> None:
    """ONNX has no meaning for it either: its inference gives the result no shape."""
    attributes = {"to": TensorProto.INT4}
    model, _ = one_node("BitCast", [np.ones(3, "f4")], opset=26, attributes=attributes)
    with pytest.raises(Unknown, match="BitCast"):
        import_model(model)


def moves() -> list[onnx.NodeProto]:
    """Everything that only moves, each as an output of its own."""
    make = helper.make_node
    return [
        make("Identity", ["x"], ["same"]),
        make("Reshape", ["x", "flat"], ["line"]),
        make("Transpose", ["x"], ["turned"]),
        make("Concat", ["x", "held"], ["joined"], axis=1),
        make("Slice", ["x", "from", "to"], ["part"]),
        make("Gather", ["x", "places"], ["taken"], axis=1),
        make("Unsqueeze", ["x", "axes"], ["longer"]),
        make("Expand", ["longer", "wide"], ["repeated"]),
        make("Where", ["mask", "x", "held"], ["either"]),
        make("Pad", ["x", "pads"], ["padded"]),
    ]


@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_values_move_as_they_are(rng: np.random.Generator, dtype: DType) -> None:
    x, held = codes(rng, dtype, *SHAPE), codes(rng, dtype, *SHAPE)
    constants = {
        "flat": np.array([-1]), "from": np.array([1]), "to": np.array([5]), "held": held,
        "places": np.array([3, 0]), "axes": np.array([1]), "wide": np.array([BATCH, 2, 6]),
        "mask": rng.integers(0, 2, SHAPE).astype(bool), "pads": np.array([0, 1, 0, 1]),
    }  # fmt: skip
    nodes = moves()
    module = tw.compile(make_model(nodes, {"x": x}, constants), cache=False)
    assert not module.by_reference
    found = dict(zip((n.output[0] for n in nodes), module.run({"x": x}), strict=True))
    wanted = {
        "same": x,
        "line": x.reshape(-1),
        "turned": x.T,
        "joined": np.concatenate([x, held], 1),
        "part": x[1:5],
        "taken": x[:, [3, 0]],
        "longer": x[:, None],
        "repeated": np.broadcast_to(x[:, None], (BATCH, 2, 6)),
    }
    for name, array in wanted.items():
        assert found[name].tobytes() == array.tobytes(), name
    chosen = np.where(constants["mask"], x, held)
    np.testing.assert_array_equal(found["either"].astype("f4"), chosen.astype("f4"))
    np.testing.assert_array_equal(found["padded"][:, 1:-1].astype("f4"), x.astype("f4"))
    border = np.zeros((), "f4").astype(dtype.numpy).astype("f4")
    np.testing.assert_array_equal(found["padded"][:, ::7].astype("f4"), np.full((7, 2), border))


@pytest.mark.parametrize("dtype", SMALL, ids=str)
@pytest.mark.parametrize("raw", [True, False], ids=["raw", "typed"])
def test_initializers_are_unpacked(rng: np.random.Generator, dtype: DType, raw: bool) -> None:
    held = numbers(rng, dtype, 3, 5)  # 15 elements do not fill their last byte
    tensor = numpy_helper.from_array(held, "held")
    if not raw:
        values = held.astype("f4").ravel().tolist()
        tensor = helper.make_tensor("held", element_type(dtype), held.shape, values)
    node = helper.make_node("Cast", ["held"], ["y"], to=TensorProto.FLOAT)
    model = make_model([node], {})
    model.graph.initializer.append(tensor)
    (found,) = tw.compile(model, cache=False).run({})
    np.testing.assert_array_equal(found, held.astype("f4"))


def scaled(dtype: DType) -> onnx.ModelProto:
    """A weight of a small type, a data input of it, and the product of both as such a type."""
    nodes = [
        helper.make_node("Cast", ["x"], ["a"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["w"], ["b"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["a", "b"], ["c"]),
        helper.make_node("Cast", ["c"], ["y"], to=element_type(dtype)),
    ]
    kind = element_type(dtype)
    weight = numpy_helper.from_array(np.eye(6).astype(dtype.numpy), "w")
    graph = helper.make_graph(
        nodes,
        "scaled",
        [helper.make_tensor_value_info("x", kind, ["n", 6])],
        [helper.make_tensor_value_info("y", kind, ["n", 6])],
        [weight],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)])


@pytest.mark.parametrize("dtype", QUANTIZED, ids=str)
def test_small_types_are_ports(rng: np.random.Generator, dtype: DType, tmp_path: Path) -> None:
    """Compiled, stored, loaded, and as a session."""
    x, model = numbers(rng, dtype, 4, 6), scaled(dtype)
    module = tw.compile(model, cache=False)
    path = tmp_path / "model.tw"
    module.save(path)
    session = tw.InferenceSession(model.SerializeToString())
    (info,), (result,) = session.get_inputs(), session.get_outputs()
    assert info.type == result.type == type_name(dtype)
    assert module.inputs[0].dtype == dtype
    for run in (module.run, tw.load(path).run, lambda feeds: session.run(None, feeds)):
        (y,) = run({"x": x})
        assert y.dtype == dtype.numpy
        np.testing.assert_array_equal(y.astype("f4"), x.astype("f4"))
    out = np.zeros_like(x)
    module.run_into({"x": x}, {"y": out})
    np.testing.assert_array_equal(out.astype("f4"), x.astype("f4"))


def test_bytes_are_no_small_floats() -> None:
    module = tw.compile(scaled(DTYPES["f8e5m2"]), cache=False)
    for kind in (np.uint8, "V1"):
        hint = "pass `array.view(ml_dtypes.float8_e5m2)`"
        with raises_code("C003", text=hint):
            module.run({"x": np.zeros((2, 6), np.uint8).view(kind)})
    with raises_code("C003", text="array.astype(ml_dtypes.float8_e5m2)"):
        module.run({"x": np.zeros((2, 6), np.float32)})
    with raises_code("C003", text="f8e4m3fn"):
        module.run({"x": np.zeros((2, 6), ml_dtypes.float8_e4m3fn)})


@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_nothing_and_one_element(dtype: DType) -> None:
    for shape in ((), (0, 3), (1,)):
        x = np.ones(shape, dtype.numpy)
        to = {"to": TensorProto.FLOAT16}
        check_node("Cast", [x], expected=[np.ones(shape, "f2")], attributes=to, opset=25)
        back = {"to": element_type(dtype)}
        half = np.full(shape, 1, "f2")
        check_node("Cast", [half], expected=[x], attributes=back, opset=25)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_casts_like_a_tensor(rng: np.random.Generator, dtype: DType) -> None:
    """From all types, through the numbers that they mean; the least scale stands for zero."""
    x = rng.integers(0, 2, SHAPE).astype("f4").astype(dtype.numpy)
    likes = {f"like_{to.name}": np.zeros((), to.numpy) for to in SMALL}
    nodes = [helper.make_node("CastLike", ["x", f"like_{to.name}"], [to.name]) for to in SMALL]
    wide = x.astype("f4")
    expected = [wide.astype(to.numpy) for to in SMALL if to != f8e8m0]
    scales = np.where(wide == 0, 2.0**-127, wide).astype("f4").astype(f8e8m0.numpy)
    expected.insert(SMALL.index(f8e8m0), scales)
    check(make_model(nodes, {"x": x}, likes, opset=25), {"x": x}, expected)
