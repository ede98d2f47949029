"""Sorting rows without elements was refused: nothing writes what is not there.

From graphs seed 600292.
"""

from __future__ import annotations

from fuzz.kept import array, kept, node

FOUND = kept(
    [
        node("TopK", "x4 c5", "v6 v7"),
    ],
    opset=21,
    inputs={"x4": "UINT16[1,0]"},
    outputs={"v6": "UINT16[?,?]"},
    constants={"c5": array([0], "INT64", (1,))},
    runs=[{"x4": array([], "UINT16", (1, 0))}],
    expected=[[array([], "UINT16", (1, 0))]],
)
