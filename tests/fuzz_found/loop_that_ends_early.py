"""What a loop that may end early collects was joined instead of stacked.

From graphs seed 500076.
"""

from __future__ import annotations

from fuzz.kept import array, graph, kept, node

FOUND = kept(
    [
        node(
            "Loop",
            "c4 p14 v3",
            "v15 v16",
            body=graph(
                [
                    node("Floor", "b7", "b9"),
                    node("Add", "b9 x8", "b10"),
                    node("Less", "b5 c13", "b11"),
                    node("Identity", "b10", "b12"),
                ],
                {"b5": "INT64[]", "b6": "BOOL[]", "b7": "FLOAT"},
                {"b11": "BOOL[]", "b10": "FLOAT", "b12": "FLOAT"},
            ),
        ),
    ],
    opset=18,
    inputs={"x8": "FLOAT[1,1]", "p14": "BOOL[]", "v3": "FLOAT[1,1]"},
    outputs={"v16": "FLOAT[?,?,?]"},
    constants={"c4": array([4], "INT64", ()), "c13": array([2], "INT64", ())},
    runs=[
        {
            "x8": array([0.0], "FLOAT", (1, 1)),
            "p14": array([True], "BOOL", ()),
            "v3": array([0.0], "FLOAT", (1, 1)),
        }
    ],
    expected=[[array([0.0] * 3, "FLOAT", (3, 1, 1))]],
)
