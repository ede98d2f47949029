"""A kernel without elements had lost a size that its loops still had.

From graphs seed 610095.
"""

from __future__ import annotations

from fuzz.kept import array, kept, node

FOUND = kept(
    [
        node("TopK", "x4 c23", "v24 v25", axis=-4),
    ],
    opset=18,
    inputs={"x4": "FLOAT[0,1,1,n]", "c23": "INT64[1]"},
    outputs={"v24": "FLOAT[?,?,?,?]"},
    constants={},
    runs=[{"x4": array([], "FLOAT", (0, 1, 1, 1)), "c23": array([0], "INT64", (1,))}],
    expected=[[array([], "FLOAT", (0, 1, 1, 1))]],
)
