"""A size of one that meets what data tell was compared with a third size before that was known.

From graphs seed 3000256.
"""

from __future__ import annotations

from fuzz.kept import array, kept, node

FOUND = kept(
    [
        node("NonZero", "x1", "v2"),
        node("Where", "x4 c3 v2", "v5"),
        node("Concat", "x8 v5", "v9", axis=0),
    ],
    opset=9,
    inputs={"x1": "FLOAT[?]", "x4": "BOOL[1,s1]", "x8": "INT64[1,s2]"},
    outputs={"v9": "INT64[?,?]"},
    constants={"c3": array([-2], "INT64", ())},
    runs=[
        {
            "x1": array([1.0], "FLOAT", (1,)),
            "x4": array([False] * 2, "BOOL", (1, 2)),
            "x8": array([5] * 2, "INT64", (1, 2)),
        },
        {
            "x1": array([1.0] * 3, "FLOAT", (3,)),
            "x4": array([False], "BOOL", (1, 1)),
            "x8": array([5] * 3, "INT64", (1, 3)),
        },
    ],
    expected=[
        [array([5, 5, 0, 0], "INT64", (2, 2))],
        [array([5, 5, 5, 0, 1, 2], "INT64", (2, 3))],
    ],
)
