"""An attribute that is left out was 1e-5 instead of the f32 next to it.

From graphs seed 600520.
"""

from __future__ import annotations

from fuzz.kept import array, kept, node

FOUND = kept(
    [
        node("BatchNormalization", "x4 c5 c6 c7 c8", "v9"),
    ],
    opset=26,
    inputs={
        "x4": "DOUBLE[1,1,1,1]",
        "c5": "DOUBLE[1]",
        "c6": "DOUBLE[1]",
        "c7": "DOUBLE[1]",
        "c8": "DOUBLE[1]",
    },
    outputs={"v9": "DOUBLE[?,?,?,?]"},
    constants={},
    runs=[
        {
            "x4": array([1.0], "DOUBLE", (1, 1, 1, 1)),
            "c5": array([1.0], "DOUBLE", (1,)),
            "c6": array([0.0], "DOUBLE", (1,)),
            "c7": array([0.0], "DOUBLE", (1,)),
            "c8": array([0.0], "DOUBLE", (1,)),
        }
    ],
    expected=[[array([316.2277700111307], "DOUBLE", (1, 1, 1, 1))]],
)
