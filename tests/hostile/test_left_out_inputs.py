"""Inputs that a node leaves out: an operator does without them, or refuses the model.

Whatever the opset: before its own, an operator that some exporters write early has the inputs that
it has there.
"""

from __future__ import annotations

import itertools
import warnings

import onnx
import pytest
from onnx import TensorProto, defs, helper

import tilewright as tw
from tilewright.errors import ModelError
from tilewright.frontend.onnx import import_model
from tilewright.frontend.onnx.registry import HANDLERS, Unknown

OPSETS = (7, 20, defs.onnx_opset_version())
INPUTS = 6
"""Of operators of which nothing says how many they have."""

OPERATORS = sorted(HANDLERS)


def inputs_of(op: str, domain: str) -> list[bool]:
    """For each input whether the operator needs it; of others than those of onnx nobody says."""
    try:
        schema = defs.get_schema(op, domain)
    except defs.SchemaError:
        return [False] * INPUTS
    return [i.option == defs.OpSchema.FormalParameterOption.Single for i in schema.inputs]


def node(op: str, domain: str, opset: int, given: list[str], rank: int) -> onnx.ModelProto:
    """A model of one node with inputs of one type and shape."""
    shape = [2, 4, 4, 4][:rank]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in given if n]
    made = helper.make_node(op, given, ["y"], domain=domain)
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([made], "m", values, [result])
    sets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
    sets.append(helper.make_opsetid("com.microsoft", 1))
    return helper.make_model(graph, opset_imports=sets, ir_version=9)


def is_refused(model: onnx.ModelProto) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tw.TilewrightWarning)
        try:
            import_model(model)
        except (ModelError, Unknown):
            return True
    return False


@pytest.mark.parametrize(("domain", "op"), OPERATORS, ids=[f"{d}.{op}" for d, op in OPERATORS])
def test_an_input_that_is_missing_is_refused_or_not_needed(domain, op):
    needed = inputs_of(op, domain)
    for opset, rank, missing in itertools.product(OPSETS, (2, 4), range(len(needed))):
        given = [f"x{k}" if k != missing else "" for k in range(len(needed))]
        refused = is_refused(node(op, domain, opset, given, rank))
        assert refused or not needed[missing], (opset, missing)
