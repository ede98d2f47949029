"""Models of one node that is rarely right: any operator, inputs and attributes at random.

Where mutants of good models keep most of what makes sense, these have nothing of the kind: types,
ranks, numbers of inputs, values of attributes and opsets are drawn for themselves, so that what one
operator forgets to check is met soon. Half of them have the types that their operator asks for:
more of these are compiled, and run.
"""

from __future__ import annotations

import random
from math import prod
from typing import Any, Final

import onnx
from onnx import AttributeProto, TensorProto, defs, helper

from tilewright.frontend.onnx.registry import operators

__all__ = ["random_node"]

Random = random.Random

TYPES: Final = (
    *(TensorProto.FLOAT,) * 3,
    *(TensorProto.INT64, TensorProto.INT32, TensorProto.UINT8, TensorProto.INT8),
    *(TensorProto.BOOL, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.STRING),
)
NAMED: Final[dict[str, int]] = dict(TensorProto.DataType.items())
SIZES: Final = (1, 2, 3, 4, 8, 0, "n")
OPSETS: Final = (7, 13, 20, defs.onnx_opset_version())

UNDEFINED_INPUTS: Final = 6
"""Inputs of operators that onnx does not define."""

UNDEFINED: Final = {
    **dict.fromkeys(("axis", "num_heads", "kv_num_heads", "bits", "block_size", "K", "N"), "INT"),
    **dict.fromkeys(("epsilon", "scale", "alpha"), "FLOAT"),
    **dict.fromkeys(("axes", "kernel_shape", "strides", "pads", "perm"), "INTS"),
}
"""Attributes of such operators."""

VALUES: Final[dict[str, tuple[Any, ...]]] = {
    "FLOAT": (0.0, 1.0, -1.0, 1e-5, float("inf"), 1e30),
    "INT": (-(10**9), -1, 0, 1, 2, 3, 4, 8, 1 << 40),
    "STRING": ("", "linear", "SAME_UPPER", "ij,jk->ik", "none", "Relu"),
}


def random_node(rng: Random) -> onnx.ModelProto:
    """A model with one node."""
    domain, op = rng.choice(list(operators()))
    schema = _schema(op, domain)
    count = UNDEFINED_INPUTS if schema is None else len(schema.inputs)
    count = max(0, count + rng.choice((0, 0, 0, 1, -1, -2)))
    names = [f"x{k}" if rng.random() < 0.94 else "" for k in range(count)]
    fitting = _fitting_types(rng, schema, count) if rng.random() < 0.5 else {}
    inputs, weights = _values(rng, names, fitting)
    results = _results(rng, schema)
    node = helper.make_node(op, names, [result.name for result in results], domain=domain)
    node.attribute.extend(_attributes(rng, schema))
    graph = helper.make_graph([node], "node", inputs, results, weights)
    opsets = {"": rng.choice(OPSETS), "ai.onnx.ml": rng.choice((1, 3, 5)), "com.microsoft": 1}
    sets = [helper.make_opsetid(name, version) for name, version in opsets.items()]
    return helper.make_model(graph, opset_imports=sets, ir_version=9)


def _schema(op: str, domain: str) -> defs.OpSchema | None:
    try:
        return defs.get_schema(op, domain)
    except defs.SchemaError:
        return None


def _fitting_types(rng: Random, schema: defs.OpSchema | None, count: int) -> dict[int, int]:
    """A type for each input that its operator takes, the same wherever that asks for the same."""
    if schema is None or not schema.inputs:
        return {}
    allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    chosen: dict[str, int | None] = {}
    for formal in schema.inputs:
        name = rng.choice(sorted(allowed.get(formal.type_str, [formal.type_str])))
        kind = name.removeprefix("tensor(").removesuffix(")").upper()
        chosen.setdefault(formal.type_str, NAMED.get(kind))
    formals = [schema.inputs[min(k, len(schema.inputs) - 1)] for k in range(count)]
    found = {k: chosen[formal.type_str] for k, formal in enumerate(formals)}
    return {k: kind for k, kind in found.items() if kind is not None}


def _results(rng: Random, schema: defs.OpSchema | None) -> list[onnx.ValueInfoProto]:
    """One result, or as many as the operator has, at most four."""
    count = 1 if schema is None or rng.random() < 0.5 else min(schema.max_output, 4)
    types = [TensorProto.FLOAT, *(rng.choice(TYPES) for _ in range(max(count, 1) - 1))]
    return [helper.make_tensor_value_info(f"y{k}", kind, None) for k, kind in enumerate(types)]


def _values(
    rng: Random, names: list[str], fitting: dict[int, int]
) -> tuple[list[onnx.ValueInfoProto], list[onnx.TensorProto]]:
    """Inputs and weights, often of one shape, and of types that fit or often of one type."""
    usual, shape = rng.choice(TYPES), _shape(rng)
    inputs: list[onnx.ValueInfoProto] = []
    weights: list[onnx.TensorProto] = []
    for place, name in enumerate(names):
        if not name:
            continue
        own = shape if rng.random() < 0.5 else _shape(rng)
        kind = fitting.get(place) or (usual if rng.random() < 0.6 else rng.choice(TYPES))
        if rng.random() < 0.35 and "n" not in own and kind != TensorProto.STRING:
            content = [rng.choice((0, 1, 2)) for _ in range(prod(own))]
            weights.append(helper.make_tensor(name, kind, own, content))
        else:
            known = own if rng.random() < 0.95 else None
            inputs.append(helper.make_tensor_value_info(name, kind, known))
    return inputs, weights


def _shape(rng: Random) -> list[Any]:
    return [rng.choice(SIZES) for _ in range(rng.choice((0, 1, 2, 3, 4, 4, 5)))]


def _attributes(rng: Random, schema: defs.OpSchema | None) -> list[AttributeProto]:
    """About half of those that the operator has, with values of the right type."""
    kinds = UNDEFINED
    if schema is not None:
        kinds = {name: str(a.type).rpartition(".")[2] for name, a in schema.attributes.items()}
    found: list[AttributeProto] = []
    for name, kind in kinds.items():
        single = VALUES.get(kind.removesuffix("S"))
        if single is None or rng.random() < 0.5:
            continue
        several = [rng.choice(single) for _ in range(rng.choice((0, 1, 2, 3, 4)))]
        value = several if kind.endswith("S") else rng.choice(single)
        form = AttributeProto.AttributeType.Value(kind)
        found.append(helper.make_attribute(name, value, attr_type=form))
    return found
