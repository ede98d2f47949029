"""Squares of integers were added up in the type of the integers.

From graphs seed 7001903.
"""

from __future__ import annotations

from fuzz.kept import array, kept, node

FOUND = kept(
    [
        node("ReduceL2", "v6 c12", "v13"),
    ],
    opset=19,
    inputs={"c12": "INT64[0]", "v6": "INT32[3,1]"},
    outputs={"v13": "INT32[?,?]"},
    constants={},
    runs=[
        {
            "c12": array([], "INT64", (0,)),
            "v6": array([11096, -38783, -28388], "INT32", (3, 1)),
        }
    ],
    expected=[[array([49326], "INT32", (1, 1))]],
)
