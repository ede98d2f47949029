"""Because of a loop that may end early, all of the model ran by reference.

From graphs seed 620398.
"""

from __future__ import annotations

from fuzz.kept import array, graph, kept, node

FOUND = kept(
    [
        node("GridSample", "v8 x10", "v11", mode="bilinear"),
        node(
            "Loop",
            "c25 c34 x24",
            "v35 v36",
            body=graph(
                [
                    node("Abs", "b28", "b30"),
                    node("Less", "b26 c33", "b31"),
                    node("Identity", "b30", "b32"),
                ],
                {"b26": "INT64[]", "b27": "BOOL[]", "b28": "FLOAT"},
                {"b31": "BOOL[]", "b30": "FLOAT", "b32": "FLOAT"},
            ),
        ),
    ],
    opset=16,
    inputs={
        "x10": "FLOAT[1,1,1,2]",
        "x24": "FLOAT[1,1,2]",
        "c33": "INT64[]",
        "v8": "FLOAT[1,1,1,2]",
    },
    outputs={"v11": "FLOAT[?,?,?,?]", "v35": "FLOAT[?,?,?]", "v36": "FLOAT[?,?,?,?]"},
    constants={"c25": array([3], "INT64", ()), "c34": array([True], "BOOL", ())},
    runs=[
        {
            "x10": array([0.0] * 2, "FLOAT", (1, 1, 1, 2)),
            "x24": array([0.0] * 2, "FLOAT", (1, 1, 2)),
            "c33": array([2], "INT64", ()),
            "v8": array([0.0] * 2, "FLOAT", (1, 1, 1, 2)),
        }
    ],
    expected=[
        [
            array([0.0], "FLOAT", (1, 1, 1, 1)),
            array([0.0] * 2, "FLOAT", (1, 1, 2)),
            array([0.0] * 6, "FLOAT", (3, 1, 1, 2)),
        ]
    ],
)
