"""A model whose parameters are inputs gives the bits that the same model with constants gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tilewright.model.settled import SettledModule

OPSET = 20
X_TYPE = TensorProto.FLOAT


@dataclass(frozen=True)
class Use:
    """An operator with a data input and parameters in the order of its inputs; None is left out."""

    op: str
    shape: tuple[int, ...]
    parameters: tuple[np.ndarray | None, ...]
    attributes: dict[str, object]

    def model(self, *, settled: bool) -> onnx.ModelProto:
        names = [f"p{k}" if p is not None else "" for k, p in enumerate(self.parameters)]
        node = helper.make_node(self.op, ["x", *names], ["y"], **self.attributes)
        given = {n: p for n, p in zip(names, self.parameters, strict=True) if p is not None}
        kinds = {n: helper.np_dtype_to_tensor_dtype(p.dtype) for n, p in given.items()}
        infos = [helper.make_tensor_value_info(n, kinds[n], [f"{n}_length"]) for n in given]
        weights = [numpy_helper.from_array(p, n) for n, p in given.items()]
        graph = helper.make_graph(
            [node],
            "use",
            [helper.make_tensor_value_info("x", X_TYPE, self.shape), *(infos if settled else [])],
            [helper.make_tensor_value_info("y", X_TYPE, None)],
            [] if settled else weights,
        )
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(graph, opset_imports=[opset], ir_version=9)

    def feeds(self) -> dict[str, np.ndarray]:
        pairs = enumerate(self.parameters)
        return {f"p{k}": p for k, p in pairs if p is not None}


def integers(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


shapes = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)


@st.composite
def reductions(draw) -> Use:
    shape = draw(shapes)
    rank = len(shape)
    axes = draw(st.lists(st.integers(0, rank - 1), max_size=rank, unique=True))
    signed = [a - rank if draw(st.booleans()) else a for a in axes]
    op = draw(st.sampled_from(["ReduceSum", "ReduceMax", "ReduceMean", "ReduceL2", "ReduceProd"]))
    flags = {"keepdims": draw(st.integers(0, 1)), "noop_with_empty_axes": draw(st.integers(0, 1))}
    return Use(op, shape, (integers(*signed),), flags)


@st.composite
def slices(draw) -> Use:
    shape = draw(shapes)
    rank = len(shape)
    axes = draw(st.lists(st.integers(0, rank - 1), min_size=1, max_size=rank, unique=True))
    bounds = st.lists(st.integers(-7, 7), min_size=len(axes), max_size=len(axes))
    steps = st.lists(st.integers(-2, 3).filter(bool), min_size=len(axes), max_size=len(axes))
    starts, ends = integers(*draw(bounds)), integers(*draw(bounds))
    return Use("Slice", shape, (starts, ends, integers(*axes), integers(*draw(steps))), {})


@st.composite
def reshapes(draw) -> Use:
    shape = draw(shapes)
    factors = draw(st.permutations(shape))
    cut = draw(st.integers(0, len(factors)))
    wanted = [*factors[:cut], int(np.prod(factors[cut:]))]
    if draw(st.booleans()):
        wanted[draw(st.integers(0, len(wanted) - 1))] = -1
    return Use("Reshape", shape, (integers(*wanted),), {})


@st.composite
def resizes(draw) -> Use:
    shape = (1, draw(st.integers(1, 3)), draw(st.integers(1, 6)), draw(st.integers(1, 6)))
    mode = draw(st.sampled_from(["nearest", "linear"]))
    where = draw(st.sampled_from(["half_pixel", "asymmetric", "align_corners"]))
    flags = {"mode": mode, "coordinate_transformation_mode": where}
    if draw(st.booleans()):
        sizes = integers(*shape[:2], draw(st.integers(1, 9)), draw(st.integers(1, 9)))
        return Use("Resize", shape, (None, None, sizes), flags)
    scales = [
        1.0,
        1.0,
        *draw(st.lists(st.sampled_from([0.5, 1.0, 1.5, 2.0]), min_size=2, max_size=2)),
    ]
    if min(int(d * s) for d, s in zip(shape, scales, strict=True)) < 1:
        scales = [1.0, 1.0, 2.0, 1.0]
    return Use("Resize", shape, (None, np.array(scales, np.float32)), flags)


@given(use=st.one_of(reductions(), slices(), reshapes(), resizes()), seed=st.integers(0, 9))
@settings(max_examples=40, deadline=None)
def test_parameters_as_inputs_mean_what_constants_do(use: Use, seed: int) -> None:
    x = np.random.default_rng(seed).standard_normal(use.shape, np.float32)
    module = tw.compile(use.model(settled=True), cache=False, threads=1)
    assert isinstance(module, SettledModule)
    plain = tw.compile(use.model(settled=False), cache=False, threads=1)
    (found,), (wanted,) = module.run({"x": x, **use.feeds()}), plain.run({"x": x})
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    assert found.tobytes() == wanted.tobytes()
    assert module.by_reference == plain.by_reference == ()
