"""Rows of NaN were taken for rows of which every key is masked, and became zero.

From graphs seed 620770.
"""

from __future__ import annotations

from fuzz.kept import array, kept, node

FOUND = kept(
    [
        node("Attention", "c6 x7 x8 x9", "v10"),
    ],
    opset=23,
    inputs={
        "x7": "FLOAT16[1,2,2,1]",
        "x8": "FLOAT16[1,2,2,1]",
        "x9": "FLOAT16[2,2]",
        "c6": "FLOAT16[1,2,2,1]",
    },
    outputs={"v10": "FLOAT16[1,2,2,1]"},
    constants={},
    runs=[
        {
            "x7": array([0.0] * 4, "FLOAT16", (1, 2, 2, 1)),
            "x8": array([0.0] * 4, "FLOAT16", (1, 2, 2, 1)),
            "x9": array([0.0] * 4, "FLOAT16", (2, 2)),
            "c6": array([-1.0, -1.0, -0.0, float("-inf")], "FLOAT16", (1, 2, 2, 1)),
        }
    ],
    expected=[[array([0.0, 0.0, 0.0, float("nan")], "FLOAT16", (1, 2, 2, 1))]],
)
