"""The function of ONNX squeezes away a batch of one.

From graphs seed 600477.
"""

from __future__ import annotations

from fuzz.kept import array, kept, node

FOUND = kept(
    [
        node("AffineGrid", "x4 c5", "v6"),
        node("HardSwish", "v6", "v7"),
    ],
    opset=27,
    inputs={"x4": "FLOAT[1,2,3]"},
    outputs={"v7": "FLOAT[1,?,?,2]"},
    constants={"c5": array([1, 2, 4, 3], "INT64", (4,))},
    runs=[{"x4": array([0.0] * 6, "FLOAT", (1, 2, 3))}],
    expected=[[array([0.0] * 24, "FLOAT", (1, 4, 3, 2))]],
)
