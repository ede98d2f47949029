"""Graphs as text: one line for each input, constant and node."""

from __future__ import annotations

from tilewright.graph.ir import Graph
from tilewright.shown import shown

__all__ = ["print_graph"]


def print_graph(graph: Graph) -> str:
    """The listing of a graph; it is for people, nothing parses it."""
    lines = [f"graph {shown(graph.name)}"]
    lines += [f"  input    {value}" for value in graph.inputs]
    for value, array in graph.constants.items():
        content = f" = {array.item()}" if array.size == 1 else ""
        lines.append(f"  constant {value}{content}")
    for node in graph.nodes:
        results = ", ".join(map(str, node.outputs))
        inputs = ", ".join(shown(value.name) for value in node.inputs)
        label = f"  # {shown(node.label)}" if node.label else ""
        lines.append(f"  {results} = {node.op} {inputs}{label}")
    pairs = zip(graph.output_names, graph.outputs, strict=True)
    lines += [f"  output   {shown(name)} = {shown(value.name)}" for name, value in pairs]
    return "\n".join(lines)
