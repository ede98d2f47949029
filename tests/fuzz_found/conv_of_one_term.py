"""Looking for what a sum of one term is made of never ended.

From graphs seed 1000119.
"""

from __future__ import annotations

from fuzz.kept import array, kept, node

FOUND = kept(
    [
        node("Conv", "x4 c5 c6", "v7", group=3),
    ],
    opset=18,
    inputs={"x4": "FLOAT[1,3,6]", "c6": "FLOAT[3]"},
    outputs={"v7": "FLOAT[?,?,?]"},
    constants={"c5": array([0.0] * 3, "FLOAT", (3, 1, 1))},
    runs=[{"x4": array([0.0] * 18, "FLOAT", (1, 3, 6)), "c6": array([0.0] * 3, "FLOAT", (3,))}],
    expected=[[array([0.0] * 18, "FLOAT", (1, 3, 6))]],
)
