"""A product over a size that was broadcast said that it is as long as what it had met.

From graphs seed 4000440.
"""

from __future__ import annotations

from fuzz.kept import array, kept, node

FOUND = kept(
    [
        node("Where", "x28 x27 x17", "v29"),
        node("Gemm", "v29 x30 x31", "v32"),
    ],
    opset=12,
    inputs={
        "x17": "FLOAT[s2,n]",
        "x27": "FLOAT[m,s4]",
        "x28": "BOOL[s5]",
        "x30": "FLOAT[n,s5]",
        "x31": "FLOAT[]",
    },
    outputs={"v32": "FLOAT[?,?]"},
    constants={},
    runs=[
        {
            "x17": array([2.0, 3.0], "FLOAT", (1, 2)),
            "x27": array([0.0], "FLOAT", (1, 1)),
            "x28": array([False], "BOOL", (1,)),
            "x30": array([1.0, 1.0], "FLOAT", (2, 1)),
            "x31": array([4.0], "FLOAT", ()),
        }
    ],
    expected=[[array([9.0], "FLOAT", (1, 1))]],
)
