"""Places of values in a sorted table: a decision tree whose tests are the table's elements.

One walk from the root to a leaf halves what is left at every step. As a chain of gathers the same
thing would be a kernel for every step, or one with places of places of places.
"""

from __future__ import annotations

import numpy as np

from tilewright.dtypes import i64
from tilewright.graph import Builder, Value
from tilewright.graph.ir import Array
from tilewright.graph.ops.descend import ABOVE, Descend
from tilewright.graph.sizes import product
from tilewright.tensor import ir as tir

__all__ = ["looked_up"]


def looked_up(b: Builder, values: Value, table: Array) -> Value:
    """How many elements of the table are less than each value, but at most the last place (i64).

    The table is sorted, of the type of the values, and not empty. It takes as many steps as its
    length has bits.
    """
    count = len(table)
    nodes = np.zeros((2 * count + 1, 4), np.int32)
    nodes[: count + 1, 1] = nodes[: count + 1, 2] = np.arange(count + 1)  # leaves: they are places
    nodes[count + 1 :, 3] = ABOVE

    def node_of(first: Array, last: Array) -> Array:
        """That with the test which halves the places from `first` to `last`; or the only one."""
        return np.where(first == last, first, count + 1 + (first + last) // 2)

    first, last, depth = np.array([0]), np.array([count]), 0
    while len(first):
        middle = (first + last) // 2
        nodes[count + 1 + middle, 1] = node_of(first, middle)
        nodes[count + 1 + middle, 2] = node_of(middle + 1, last)
        first, last = np.concatenate([first, middle + 1]), np.concatenate([middle, last])
        first, last, depth = first[first < last], last[first < last], depth + 1
    limits = np.concatenate([np.zeros(count + 1, table.dtype), table])
    root = np.array([node_of(np.array(0), np.array(count))], np.int32)
    tables = [b.constant(nodes, "nodes"), b.constant(limits, "limits"), b.constant(root, "root")]
    rows = b.reshape(values, (product(values.shape), 1))
    found = b.add(Descend((1,) * depth, 1, ABOVE), rows, *tables)
    places = b.map(lambda p: tir.minimum(p.to(i64), count - 1), found, dtype=i64)
    return b.reshape(places, values.shape)
