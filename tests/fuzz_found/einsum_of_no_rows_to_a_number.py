"""A sum over two sizes was what lay in memory, if the first one is zero.

From graphs seed 1000313.
"""

from __future__ import annotations

from fuzz.kept import array, kept, node

FOUND = kept(
    [
        node("Einsum", "x7 x8", "v9", equation="ij,ij->"),
    ],
    opset=13,
    inputs={"x7": "FLOAT[s2,5]", "x8": "FLOAT[s2,?]"},
    outputs={"v9": "FLOAT[]"},
    constants={},
    runs=[
        {
            "x7": array([1.0] * 5, "FLOAT", (1, 5)),
            "x8": array([1.0] * 5, "FLOAT", (1, 5)),
        },
        {"x7": array([], "FLOAT", (0, 5)), "x8": array([], "FLOAT", (0, 5))},
    ],
    expected=[[array([5.0], "FLOAT", ())], [array([0.0], "FLOAT", ())]],
)
