"""The shape of a broadcast result was that of equal sizes, if nobody read its elements.

From graphs seed 4000060.
"""

from __future__ import annotations

from fuzz.kept import array, kept, node

FOUND = kept(
    [
        node("Where", "x3 x1 x2", "v4"),
        node("Shape", "v4", "v6"),
    ],
    opset=20,
    inputs={"x1": "INT8[n,s1,s2]", "x2": "INT8[n,s4]", "x3": "BOOL[s2,n,n]"},
    outputs={"v6": "INT64[?]"},
    constants={},
    runs=[
        {
            "x1": array([0], "INT8", (1, 1, 1)),
            "x2": array([0] * 2, "INT8", (1, 2)),
            "x3": array([True], "BOOL", (1, 1, 1)),
        }
    ],
    expected=[[array([1, 1, 2], "INT64", (3,))]],
)
