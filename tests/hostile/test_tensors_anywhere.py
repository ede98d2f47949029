"""Wherever a message can hold a tensor, one whose data lie elsewhere is seen before it is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper, numpy_helper

import tilewright as tw
from tests.expect import raises_code


def tensor(name: str = "w") -> onnx.TensorProto:
    return numpy_helper.from_array(np.arange(4, dtype=np.float32), name)


def sparse(name: str = "") -> onnx.SparseTensorProto:
    places = numpy_helper.from_array(np.arange(4), "places")
    return helper.make_sparse_tensor(tensor(name), places, [4])


def inner(name: str) -> onnx.GraphProto:
    """A graph with tensors in its weights and in an attribute."""
    nodes = [
        helper.make_node("Constant", [], [f"{name}c"], value=tensor()),
        helper.make_node("Add", [f"{name}w", f"{name}c"], [f"{name}o"]),
    ]
    info = helper.make_tensor_value_info(f"{name}o", TensorProto.FLOAT, [4])
    weights = [tensor(f"{name}w"), tensor(f"{name}v")]
    graph = helper.make_graph(nodes, name, [], [info], weights)
    graph.sparse_initializer.append(sparse(f"{name}s"))
    return graph


def everywhere() -> onnx.ModelProto:
    """A model with a tensor in every place that the standard has for one."""
    branch = helper.make_node("If", ["c"], ["y"])
    for side in ("then_branch", "else_branch"):
        branch.attribute.add(name=side, ref_attr_name="body", type=AttributeProto.GRAPH)
    told = helper.make_node("Constant", [], ["k"], value=tensor())
    function = helper.make_function("own", "F", ["c"], ["y"], [told, branch], OPSETS)
    function.attribute_proto.append(helper.make_attribute("body", inner("default")))
    function.attribute_proto.append(helper.make_attribute("held", tensor()))
    nodes = [
        helper.make_node("Constant", [], ["k"], value=tensor()),
        helper.make_node("Constant", [], ["s"], sparse_value=sparse()),
        helper.make_node("F", ["c"], ["f"], domain="own"),
        helper.make_node("F", ["c"], ["g"], domain="own", body=inner("given")),
        helper.make_node("Sum", ["k", "f", "g", "w"], ["y"]),
    ]
    nodes[-1].attribute.append(helper.make_attribute("more", [tensor(), tensor()]))
    flag = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])
    graph = helper.make_graph(nodes, "everywhere", [flag], [result], [tensor()])
    graph.sparse_initializer.append(sparse("z"))
    return helper.make_model(graph, opset_imports=OPSETS, functions=[function], ir_version=10)


OPSETS = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]


def tensors_in(message: Any, path: str = "model") -> Iterator[tuple[str, onnx.TensorProto]]:
    """All tensors below a message, by the fields that it has: nobody can forget one."""
    if isinstance(message, onnx.TensorProto):
        yield path, message
        return
    for field, value in message.ListFields():
        if field.message_type is not None:
            several = value if not hasattr(value, "DESCRIPTOR") else [value]
            for number, part in enumerate(several):
                yield from tensors_in(part, f"{path}.{field.name}[{number}]")


PLACES = [path for path, _ in tensors_in(everywhere())]


def test_there_are_tensors_of_all_kinds():
    assert len(PLACES) >= 20
    for part in ("sparse_initializer", "attribute_proto", "tensors", "sparse_tensor", "indices"):
        assert any(part in path for path in PLACES), part


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("as_bytes", [True, False])
def test_data_elsewhere_are_seen(tmp_path, monkeypatch, place, as_bytes):
    """The folder of the process is not that of the model."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    model = everywhere()
    found = dict(tensors_in(model))[place]
    (tmp_path / "here" / "secret.bin").write_bytes(bytes(64))
    found.ClearField("raw_data")
    found.data_location = TensorProto.EXTERNAL
    found.external_data.add(key="location", value="secret.bin")
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    with raises_code("M002" if "sparse" in place else "M003"):
        tw.compile(model.SerializeToString() if as_bytes else tmp_path / "model.onnx", cache=False)
