"""Special values come out as NumPy says: in vectors, in tails, folded as constants, interpreted."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import tilewright as tw
from tests.numeric.edge_values import edge_values
from tests.numeric.special_values import FLOATS, INTEGERS, RULES, Rule
from tilewright.dtypes import dtype_of
from tilewright.frontend.onnx import import_model
from tilewright.graph import interpret

SIZES = (*range(1, 41), 200)
"""Lengths: every rest of a vector, and many vectors."""

UNIT = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}

TYPES = [*FLOATS, *INTEGERS]


def rules_of(name: str) -> list[Rule]:
    return [rule for rule in RULES if name in rule.types]


def numpy_type(name: str) -> np.dtype:
    return np.dtype(helper.tensor_dtype_to_np_dtype(onnx_type(name)))


def onnx_type(name: str) -> int:
    names = {"float32": "FLOAT", "float64": "DOUBLE"}
    return int(onnx.TensorProto.DataType.Value(names.get(name, name.upper())))


def model_of(name: str, constants: tuple[np.ndarray, np.ndarray] | None = None) -> onnx.ModelProto:
    """All rules of a type as one model of two vectors, or of two constants."""
    nodes, outputs, held = [], [], []
    for number, rule in enumerate(rules_of(name)):
        inputs = ["a", "b"][: rule.operands]
        for k, value in enumerate(rule.constants):
            inputs.append(f"c{number}_{k}")
            array = np.array(value).astype(numpy_type(name))
            held.append(numpy_helper.from_array(array, inputs[-1]))
        attributes = dict(rule.attributes)
        if rule.op == "Cast":
            attributes["to"] = onnx_type(rule.to)
        nodes.append(helper.make_node(rule.op, inputs, [f"y{number}"], **attributes))
        outputs.append(
            helper.make_tensor_value_info(f"y{number}", onnx_type(rule.to or name), None)
        )
    infos = [helper.make_tensor_value_info(x, onnx_type(name), ["n"]) for x in "ab"]
    if constants is not None:
        infos = []
        held += [numpy_helper.from_array(a, x) for a, x in zip(constants, "ab", strict=True)]
    graph = helper.make_graph(nodes, f"special_{name}", infos, outputs, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def operands(name: str) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of special values."""
    values = edge_values(dtype_of(numpy_type(name)))
    return np.repeat(values, len(values)), np.tile(values, len(values))


def require(rule: Rule, name: str, found: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """What a rule gives for these operands."""
    own = [a, b][: rule.operands]
    own += [np.array(c).astype(a.dtype) for c in rule.constants]
    with np.errstate(all="ignore"):
        wanted = rule.expected(*own)
    what = f"{rule.name} of {name}"
    assert found.dtype == wanted.dtype, what
    if wanted.dtype.kind in "iub":
        wrong = found != wanted
    else:
        with np.errstate(all="ignore"):
            x, y = found.astype("f8"), wanted.astype("f8")
            unit = UNIT.get(wanted.dtype.name, 0.0)
            least = float(np.finfo(np.float32).smallest_subnormal) if name != "float64" else 0.0
            room = np.where(np.isfinite(y), rule.loose * (np.abs(y) * unit + least), 0.0)
            near = (x == y) | (np.isfinite(x) & (np.abs(x - y) <= room))
            same_sign = (np.signbit(x) == np.signbit(y)) | (rule.op in ("Max", "Min", "Relu"))
            same_sign |= (rule.op in ("Clip", "Sign")) | ((room > 0) & (x != 0))
        wrong = ~((np.isnan(x) & np.isnan(y)) | (near & same_sign))
    if rule.holds is not None:
        with np.errstate(all="ignore"):
            wrong &= rule.holds(*own)
    at = np.flatnonzero(wrong)
    text = [
        f"{[float(o.reshape(-1)[k % o.size]) for o in own]}: {found[k]}, not {wanted[k]}"
        for k in at[:4]
    ]
    assert not len(at), f"{what}: {len(at)} wrong: {'; '.join(text)}"


@pytest.fixture(scope="module", params=TYPES)
def compiled(request):
    name = request.param
    return name, tw.compile(model_of(name), cache=False, threads=1)


def test_vectors_and_tails(compiled):
    """Every pair at every place of a vector, of every length."""
    name, module = compiled
    a, b = operands(name)
    assert not module.by_reference
    starts = [0, *range(0, len(a), 37)]
    for size in SIZES:
        start = starts[size % len(starts)]
        x, y = (np.resize(np.roll(v, -start), size) for v in (a, b))
        for rule, found in zip(rules_of(name), module.run({"a": x, "b": y}), strict=True):
            require(rule, name, found, x, y)
    for rule, found in zip(rules_of(name), module.run({"a": a, "b": b}), strict=True):
        require(rule, name, found, a, b)


@pytest.mark.parametrize("name", TYPES)
def test_constants_are_folded_alike(name):
    a, b = operands(name)
    module = tw.compile(model_of(name, (a, b)), cache=False, threads=1)
    assert not module.by_reference
    for rule, found in zip(rules_of(name), module.run({}), strict=True):
        require(rule, name, found, a, b)


@pytest.mark.parametrize("name", TYPES)
def test_the_meaning_is_the_same(name):
    a, b = operands(name)
    graph = import_model(model_of(name)).graph
    for rule, found in zip(rules_of(name), interpret(graph, {"a": a, "b": b}), strict=True):
        require(rule, name, found, a, b)
