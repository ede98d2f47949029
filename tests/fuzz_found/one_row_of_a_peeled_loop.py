"""Rows that only iterations tell the shape of were refused if the first iteration was the last.

From graphs seed 9133.
"""

from __future__ import annotations

from fuzz.kept import array, graph, kept, node

FOUND = kept(
    [
        node(
            "Loop",
            "c3 p18 x11 x2",
            "v19 v20 v21",
            body=graph(
                [
                    node("Mul", "b6 b7", "b8"),
                    node("Sigmoid", "b8", "b9"),
                    node("Floor", "b9", "b10"),
                    node("Add", "b10 x2", "b12"),
                    node("Less", "b4 c14", "b13"),
                    node("Identity", "b7", "b17"),
                    node("Compress", "b12 x16", "b15", axis=0),
                ],
                {"b4": "INT64[]", "b5": "BOOL[]", "b6": "FLOAT", "b7": "FLOAT"},
                {"b13": "BOOL[]", "b12": "FLOAT", "b17": "FLOAT", "b15": "FLOAT"},
            ),
        ),
    ],
    opset=14,
    inputs={"x2": "FLOAT[1,1,1]", "x11": "FLOAT[]", "x16": "BOOL[1]", "p18": "BOOL[]"},
    outputs={"v21": "FLOAT[?,?,?,?]"},
    constants={"c3": array([3], "INT64", ()), "c14": array([0], "INT64", ())},
    runs=[
        {
            "x2": array([0.0], "FLOAT", (1, 1, 1)),
            "x11": array([0.0], "FLOAT", ()),
            "x16": array([True], "BOOL", (1,)),
            "p18": array([True], "BOOL", ()),
        }
    ],
    expected=[[array([0.0], "FLOAT", (1, 1, 1, 1))]],
)
