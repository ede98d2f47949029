"""Models in which every name is a forgery: it ends lines, steers a terminal, turns text around.

`readable` is what any text about such a model must be.
"""

from __future__ import annotations

import onnx
from onnx import helper

LINE = "M999: a forged line"
EVIL = f"\x1b]0;title\x07\x1b[31m\u202ekcab\u2028\x85\r\n{LINE}\n{LINE}"
LONG = "L" * 300


def forged(name: str) -> str:
    """A name that is a forgery; nothing stays nothing."""
    return f"{name}{EVIL}{LONG}" if name else ""


def forge(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model with all its names forged; operators stay what they are."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    own = {(f.domain, f.name) for f in made.functions}
    made.producer_name, made.domain, made.doc_string = map(forged, ("tool", "author", "text"))
    helper.set_model_props(made, {forged("key"): forged("value")})
    _graph(made.graph, own)
    for domain in {domain for domain, _ in own}:
        made.opset_import.append(helper.make_opsetid(forged(domain), 1))
    for function in made.functions:
        function.name, function.domain = forged(function.name), forged(function.domain)
        for names in (function.input, function.output, function.attribute):
            names[:] = map(forged, names)
        _nodes(function.node, own)
    return made


def _graph(graph: onnx.GraphProto, own: set[tuple[str, str]]) -> None:
    graph.name, graph.doc_string = forged(graph.name), forged("text")
    for info in (*graph.input, *graph.output, *graph.value_info):
        info.name, info.doc_string = forged(info.name), forged("text")
        for dim in info.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_param = forged(dim.dim_param)
    for tensor in graph.initializer:
        tensor.name = forged(tensor.name)
    _nodes(graph.node, own)


def _nodes(nodes: object, own: set[tuple[str, str]]) -> None:
    for node in nodes:  # type: ignore[attr-defined]
        node.name, node.doc_string = forged(node.name or "node"), forged("text")
        node.input[:] = map(forged, node.input)
        node.output[:] = map(forged, node.output)
        if (node.domain, node.op_type) in own:
            node.op_type, node.domain = forged(node.op_type), forged(node.domain)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _graph(attribute.g, own)


def require_readable(text: str, *, longest: int | None = 120) -> None:
    """Nothing of a forgery works in a text: its lines are ours, and all characters can be seen."""
    hidden = {c for c in text if c != "\n" and not c.isprintable()}
    assert not hidden, f"{hidden} in {text!r}"
    lines = [line.strip().upper() for line in text.splitlines()]  # some words are lowered
    assert not any(line.startswith("M999") for line in lines), text
    assert longest is None or "L" * (longest + 1) not in text.upper(), text
