"""Integers were rounded to f32.

From graphs seed 8003524.
"""

from __future__ import annotations

from fuzz.kept import array, kept, node

FOUND = kept(
    [
        node("Shrink", "x1", "v2"),
    ],
    opset=28,
    inputs={"x1": "INT64[1,1]"},
    outputs={"v2": "INT64[1,1]"},
    constants={},
    runs=[{"x1": array([-865895360863586712], "INT64", (1, 1))}],
    expected=[[array([-865895360863586688], "INT64", (1, 1))]],
)
