"""Sizes without a name, of different inputs, were one size where a model has no graph.

From graphs seed 1000539.
"""

from __future__ import annotations

from fuzz.kept import array, kept, node

FOUND = kept(
    [
        node("GatherND", "v29 x30", "v31"),
        node("Neg", "x32", "v33"),
        node("Neg", "x12", "v34"),
    ],
    opset=16,
    inputs={
        "x12": "FLOAT[?]",
        "x30": "INT64[1,s7,s11]",
        "x32": "FLOAT[?]",
        "v29": "FLOAT[1]",
    },
    outputs={"v31": "FLOAT[?,?]", "v33": "FLOAT[?]", "v34": "FLOAT[?]"},
    constants={},
    runs=[
        {
            "x12": array([1.0], "FLOAT", (1,)),
            "x30": array([0], "INT64", (1, 1, 1)),
            "x32": array([0.0] * 2, "FLOAT", (2,)),
            "v29": array([0.0], "FLOAT", (1,)),
        }
    ],
    expected=[
        [
            array([0.0], "FLOAT", (1, 1)),
            array([0.0] * 2, "FLOAT", (2,)),
            array([-1.0], "FLOAT", (1,)),
        ]
    ],
)
