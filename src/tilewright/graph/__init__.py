"""The graph level: a small set of operators on tensors with symbolic shapes."""

from tilewright.graph.builder import Builder
from tilewright.graph.interpret import interpret
from tilewright.graph.ir import Graph, Node, Shape, TensorType, Value
from tilewright.graph.verify import verify_graph

__all__ = ["Builder", "Graph", "Node", "Shape", "TensorType", "Value", "interpret", "verify_graph"]
