"""Random valid models: a seed gives the same case wherever the packages are the same."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

import numpy as np
import onnx
from onnx import defs, helper, numpy_helper

from fuzz.aliases import drawn
from fuzz.case import Case, Setting
from fuzz.grow import DOMAINS, IR_VERSION, Growth, Value, imports, tensor_of
from fuzz.ones import COMMON, runs_with_ones
from fuzz.rules import RULES
from fuzz.rules.contrib import RULES as CONTRIB
from fuzz.rules.sequences import TEXTS
from fuzz.stepwise import free_names

__all__ = ["OLDEST", "generate", "operators_of"]

OLDEST: Final = 7
NODES: Final = (1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6, 12)
ALIASES: Final = 0.2
"""The share of graphs with aliases among those with symbolic sizes (`fuzz/aliases.py`)."""

FLAVOURS: Final = ("plain",) * 15 + ("wide",) * 2 + ("special",) * 3
MEETING: Final = (
    "Add", "Sub", "Mul", "Div", "Pow", "Mod", "Max", "Min", "Mean", "Sum", "PRelu", "Where", "Less",
    "Equal", "And", "Expand", "MatMul", "Gemm", "Einsum", "LayerNormalization", "Concat", "If",
    "Loop", "Scan", "Slice", "Shape", "Transpose", "Reshape", "ReduceSum", "NonZero", "Compress",
)  # fmt: skip
"""Where sizes meet, and what makes other ones of them: half of the nodes in graphs with aliases."""

NAMED_PARTS: Final = 20
"""How often a graph is drawn again because it has fewer symbolic sizes than it is made for."""

LAYOUTS: Final = ("auto",) * 7 + ("nhwc", "nchw", "nchw8c")
ATTEMPTS: Final = 12


def operators_of(opset: int) -> list[str]:
    """The operators with a rule that an opset has."""
    found = []
    for op in sorted(RULES):
        if op.rpartition(".")[0] in DOMAINS:  # of which the onnx package knows no schemas
            found.append(op)
            continue
        try:
            schema = defs.get_schema(op, opset, "")
        except defs.SchemaError:
            continue
        if not schema.deprecated:
            found.append(op)
    return found


def generate(
    seed: int,
    ops: Sequence[str] | None = None,
    opset: int | None = None,
    part: int = 0,
    *,
    aliases: bool = False,
    ones: bool = False,
) -> Case:
    """A case; `ops` names the operators it may have, besides those that help them.

    With `aliases` it has sizes of several names in any case, otherwise now and then. With `ones`
    every size with a name is one in a run, and all of them are in another.
    """
    draw = random.Random(f"{seed}/{part}")
    chosen = draw.randint(OLDEST, defs.onnx_opset_version()) if opset is None else opset
    g = _start(draw, chosen, aliases=aliases, ones=ones)
    known = [op for op in operators_of(chosen) if op in ops] if ops else _mixed(g)
    family = (*(COMMON if ones else ()), *(MEETING if g.aliases else ()))
    common = [op for op in family if op in known]
    for _ in range(draw.choice(NODES) if known else 0):
        for _ in range(ATTEMPTS):
            op = draw.choice(common if common and draw.random() < 0.5 else known)
            if g.attempt(RULES[op], op):
                break
    fewest = 2 if g.aliases else int(ones)
    plain = part < NAMED_PARTS and len(_symbols(g)) < fewest
    mixed = any(len({a.ndim for a in v.arrays}) > 1 for v in g.values)
    if not g.nodes or plain or (mixed and not ones):
        if part > 50:
            raise ValueError(f"no model of {ops} at opset {opset}: {g.rejected[-1:]}")
        return generate(seed, ops, opset, part + 1, aliases=aliases, ones=ones)
    threads = 2 if draw.random() < 0.3 else 1
    accuracy = "strict" if draw.random() < 0.2 else "default"
    setting = Setting(accuracy, threads, draw.choice(LAYOUTS))
    model = _finish(g)
    names = [i.name for i in model.graph.input]
    known_inputs = {value.name: value for value, _ in g.inputs}
    runs = [{n: known_inputs[n].arrays[r] for n in names} for r in range(g.runs)]
    return Case(model, runs if names else runs[:1], setting, f"graphs seed {seed}")


def _symbols(g: Growth) -> set[tuple[str, int] | str]:
    """The sizes of inputs that are no numbers; each one without a name is one of its own."""
    read = {name for node in g.nodes for name in (*node.input, *free_names(node))}
    inputs = [(v.name, dims) for v, dims in g.inputs if v.name in read]
    return {
        (name, k) if dim is None else dim
        for name, dims in inputs
        for k, dim in enumerate(dims)
        if not isinstance(dim, int)
    }


def _mixed(g: Growth) -> list[str]:
    """Operators of one graph: those of texts in some, because a model with texts is not compiled.

    What stands beside them runs by value then, which is another way through tilewright. Sums of
    sizes over many orders of magnitude need an oracle in 64 bits, and `CONTRIB` has but one.
    """
    g.has_texts = g.draw.random() < 0.25
    left_out = {*(() if g.has_texts else TEXTS), *(CONTRIB if g.flavour == "wide" else ())}
    return [op for op in operators_of(g.opset) if op not in left_out]


def _start(draw: random.Random, opset: int, *, aliases: bool, ones: bool) -> Growth:
    runs, sizes = 1, {}
    if ones:
        sizes = runs_with_ones(draw, ("n", "m", "k")[: draw.choice((1, 2, 2, 3))])
        runs = len(next(iter(sizes.values())))
    elif aliases or draw.random() < 0.45:
        aliases = aliases or draw.random() < ALIASES
        runs = draw.choice((3, 4) if aliases else (2, 3))
        for name in ("n", "m")[: draw.choice((1, 1, 2))]:
            sizes[name] = drawn(draw, runs, aliases=aliases)
    return Growth(draw, opset, sizes, runs, draw.choice(FLAVOURS), aliases=aliases, ones=ones)


def _finish(g: Growth) -> onnx.ModelProto:
    """The model: what nobody reads is an output, and a few other values are, too."""
    read = {name for node in g.nodes for name in (*node.input, *free_names(node))}
    made = {name for node in g.nodes for name in node.output if name}
    outputs = [
        v for v in g.values if v.name in made and (v.name not in read or g.draw.random() < 0.15)
    ]
    inputs = [(v, dims) for v, dims in g.inputs if v.name in read]
    constants = [v for v in g.constants if v.name in read]
    storable = g.types("Constant", "T")
    as_nodes = [v for v in constants if v.type in storable and g.draw.random() < 0.15]
    nodes = [
        helper.make_node("Constant", [], [v.name], value=numpy_helper.from_array(v.arrays[0]))
        for v in as_nodes
    ] + g.nodes
    functions: list[onnx.FunctionProto] = []
    if g.draw.random() < 0.12:
        functions = _with_function(g, nodes)
    graph = helper.make_graph(
        nodes,
        "random",
        [helper.make_tensor_value_info(v.name, v.type, dims) for v, dims in inputs],
        [_output(g, v) for v in outputs],
        [tensor_of(v) for v in constants if v not in as_nodes],
    )
    foreign = {name for node in g.nodes if node.domain in DOMAINS for name in node.output}
    known = {v.name for v in outputs}
    graph.value_info.extend(_output(g, v) for v in g.values if v.name in foreign - known)
    versions = imports(g.opset, g.nodes)
    versions += [helper.make_opsetid("local", 1)] if functions else []
    return helper.make_model(
        graph, opset_imports=versions, ir_version=IR_VERSION, functions=functions
    )


def _output(g: Growth, value: Value) -> onnx.ValueInfoProto:
    """The checker wants a rank; sizes are told now and then, as far as all runs agree."""
    if len({a.ndim for a in value.arrays}) > 1:  # what the first run has, of sizes that it has not
        return helper.make_tensor_value_info(value.name, value.type, [None] * value.rank)
    sizes = np.array([a.shape for a in value.arrays]).reshape(len(value.arrays), -1)
    shape = [int(s[0]) if (s == s[0]).all() else None for s in sizes.T]
    tells = g.draw.random() < 0.5 and g.runs == 1 and not _counts(g)
    shape = [s if tells and g.draw.random() < 0.8 else None for s in shape]
    return helper.make_tensor_value_info(value.name, value.type, shape)


def _counts(g: Growth) -> bool:
    """Whether sizes may depend on values: with other inputs the shapes would be wrong."""
    late = {"NonZero", "Unique", "Compress", "Loop", "Scan"}
    return any(node.op_type in late for node in g.nodes)


def _needs_context(g: Growth, node: onnx.NodeProto) -> bool:
    """Whether a node reads names around it, or types that the reference does not know there."""
    bodies = any(a.type in {a.GRAPH, a.GRAPHS} for a in node.attribute)
    return bodies or (not node.domain and g.schema(node.op_type).has_context_dependent_function)


def _with_function(g: Growth, nodes: list[onnx.NodeProto]) -> list[onnx.FunctionProto]:
    """Put one node into a local function that is called in its place."""
    places = [k for k, node in enumerate(nodes) if node.input and not _needs_context(g, node)]
    if not places:
        return []
    at = g.draw.choice(places)
    node = nodes[at]
    inputs = list(dict.fromkeys(n for n in node.input if n))
    outputs = [n for n in node.output if n]
    function = helper.make_function(
        "local", "Local", inputs, outputs, [node], imports(g.opset, [node])
    )
    nodes[at] = helper.make_node("Local", inputs, outputs, domain="local")
    return [function]
