"""A sum over nothing was what lay in memory, if only the second factor said that it is empty.

From graphs seed 5002068.
"""

from __future__ import annotations

from fuzz.kept import array, kept, node

FOUND = kept(
    [
        node("NonMaxSuppression", "c1 c2 p3 c4 c5", "v6"),
        node("Gemm", "v6 c11", "v12", transA=1),
    ],
    opset=15,
    inputs={
        "p3": "INT64[]",
        "c1": "FLOAT[2,1,4]",
        "c2": "FLOAT[2,2,1]",
        "c4": "FLOAT[]",
        "c5": "FLOAT[]",
    },
    outputs={"v12": "INT64[?,?]"},
    constants={"c11": array([], "INT64", (0, 4))},
    runs=[
        {
            "p3": array([2], "INT64", ()),
            "c1": array([0.0] * 8, "FLOAT", (2, 1, 4)),
            "c2": array([0.0] * 4, "FLOAT", (2, 2, 1)),
            "c4": array([0.0], "FLOAT", ()),
            "c5": array([0.0], "FLOAT", ()),
        }
    ],
    expected=[[array([0] * 12, "INT64", (3, 4))]],
)
