"""What a graph computes, as a key: operators, types and who reads whom.

Names of values and what weights hold do not matter: models that were trained otherwise take the
same time.
"""

from __future__ import annotations

from dataclasses import fields
from hashlib import blake2b

from tilewright.graph.ir import Graph, Value
from tilewright.graph.ops import Op

__all__ = ["graph_key"]


def graph_key(graph: Graph) -> str:
    """32 hexadecimal digits."""
    return blake2b("\n".join(_lines(graph)).encode(), digest_size=16).hexdigest()


def _lines(graph: Graph) -> list[str]:
    read = [v for node in graph.nodes for v in node.inputs]
    given = [*graph.inputs, *(v for v in dict.fromkeys(read) if v in graph.constants)]
    number: dict[Value, int] = {}
    found = []
    for value in given:
        number[value] = len(number)
        found.append(f"{'constant' if value in graph.constants else 'input'} {value.type}")
    for node in graph.nodes:
        # A branch or a body reads values of the graph around it by themselves.
        reads = " ".join(str(number.get(v, v.name)) for v in node.inputs)
        for value in node.outputs:
            number[value] = len(number)
        kinds = ", ".join(str(value.type) for value in node.outputs)
        found.append(f"{_text(node.op)} ({reads}): {kinds}")
    results = " ".join(str(number.get(v, v.name)) for v in graph.outputs)
    return [*found, f"results {results}"]


def _text(op: Op) -> str:
    """An operator with all that it says; the graphs in it by their keys."""
    inner = (getattr(op, own.name) for own in fields(op))
    graphs = [graph_key(part) for part in inner if isinstance(part, Graph)]
    return " ".join([type(op).__name__, str(op), *graphs])
