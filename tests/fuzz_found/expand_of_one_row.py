"""A symbolic size that must become a number may be one in a run.

From graphs seed 620861.
"""

from __future__ import annotations

from fuzz.kept import array, kept, node

FOUND = kept(
    [
        node("Expand", "x5 c6", "v7"),
    ],
    opset=24,
    inputs={"x5": "UINT32[n,3]"},
    outputs={"v7": "UINT32[?,?,?]"},
    constants={"c6": array([2, 8, 3], "INT64", (3,))},
    runs=[{"x5": array([0] * 3, "UINT32", (1, 3))}],
    expected=[[array([0] * 48, "UINT32", (2, 8, 3))]],
)
