"""The core operators: a small set, in terms of which every operator of a model is written."""

from tilewright.graph.ops.contract import Contract
from tilewright.graph.ops.gather import Gather, picked
from tilewright.graph.ops.map import Map, argument
from tilewright.graph.ops.movement import Concat, Expand, Remap, Reshape, Spread, Transpose, axis
from tilewright.graph.ops.op import Op, computed_as
from tilewright.graph.ops.reduce import ArgReduce, Reduce
from tilewright.graph.ops.scan import Cumulate
from tilewright.graph.ops.size_tensor import Sizes
from tilewright.graph.ops.tabulate import Tabulate

__all__ = ["ArgReduce", "Concat", "Contract", "Cumulate", "Expand", "Gather", "Map", "Op", "Reduce"]
__all__ += ["Remap", "Reshape", "Sizes", "Spread", "Tabulate", "Transpose"]
__all__ += ["argument", "axis", "computed_as", "picked"]
