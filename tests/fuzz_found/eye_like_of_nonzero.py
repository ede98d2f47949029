"""Of a result only the size was read, and what tells it was dropped.

From graphs seed 500246.
"""

from __future__ import annotations

from fuzz.kept import array, kept, node

FOUND = kept(
    [
        node("NonZero", "v3", "v6"),
        node("EyeLike", "v6", "v7", dtype=6),
    ],
    opset=15,
    inputs={"v3": "BOOL[1,1,1]"},
    outputs={"v7": "INT32[?,?]"},
    constants={},
    runs=[{"v3": array([True], "BOOL", (1, 1, 1))}],
    expected=[[array([1, 0, 0], "INT32", (3, 1))]],
)
