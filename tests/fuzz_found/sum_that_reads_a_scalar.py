"""The schedule of a sum looked at the first index of a scalar parameter.

From graphs seed 1000607.
"""

from __future__ import annotations

from fuzz.kept import array, kept, node

FOUND = kept(
    [
        node("HammingWindow", "p1", "v2"),
        node("ReduceLogSum", "v2 c3", "v4"),
    ],
    opset=18,
    inputs={"p1": "INT64[]"},
    outputs={"v4": "FLOAT[1]"},
    constants={"c3": array([], "INT64", (0,))},
    runs=[{"p1": array([7], "INT64", ())}],
    expected=[[array([1.3361445665359497], "FLOAT", (1,))]],
)
