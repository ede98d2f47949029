"""A loop without a condition, which may end early, made no iteration.

From graphs seed 600065.
"""

from __future__ import annotations

from fuzz.kept import array, graph, kept, node

FOUND = kept(
    [
        node(
            "Loop",
            "c11 - v7",
            "v21 v22",
            body=graph(
                [
                    node("Abs", "b14", "b16"),
                    node("Add", "b16 x15", "b17"),
                    node("Less", "b12 c20", "b18"),
                    node("Identity", "b17", "b19"),
                ],
                {"b12": "INT64[]", "b13": "BOOL[]", "b14": "INT64"},
                {"b18": "BOOL[]", "b17": "INT64", "b19": "INT64"},
            ),
        ),
    ],
    opset=14,
    inputs={"x15": "INT64[1,1]", "v7": "INT64[1,1]"},
    outputs={"v21": "INT64[?,?]"},
    constants={"c11": array([2], "INT64", ()), "c20": array([0], "INT64", ())},
    runs=[{"x15": array([0], "INT64", (1, 1)), "v7": array([0], "INT64", (1, 1))}],
    expected=[[array([0], "INT64", (1, 1))]],
)
