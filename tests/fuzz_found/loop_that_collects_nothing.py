"""Parts of a buffer without elements were placed before it.

From graphs seed 1000443.
"""

from __future__ import annotations

from fuzz.kept import array, graph, kept, node

FOUND = kept(
    [
        node(
            "Loop",
            "c2 c12 x1",
            "v13 v14",
            body=graph(
                [
                    node("Relu", "b5", "b7"),
                    node("Tanh", "b7", "b8"),
                    node("Less", "b3 c11", "b9"),
                    node("Identity", "b8", "b10"),
                ],
                {"b3": "INT64[]", "b4": "BOOL[]", "b5": "FLOAT"},
                {"b9": "BOOL[]", "b8": "FLOAT", "b10": "FLOAT"},
            ),
        ),
    ],
    opset=13,
    inputs={"x1": "FLOAT[0]", "c11": "INT64[]"},
    outputs={"v14": "FLOAT[?,?]"},
    constants={"c2": array([1], "INT64", ()), "c12": array([True], "BOOL", ())},
    runs=[{"x1": array([], "FLOAT", (0,)), "c11": array([0], "INT64", ())}],
    expected=[[array([], "FLOAT", (1, 0))]],
)
