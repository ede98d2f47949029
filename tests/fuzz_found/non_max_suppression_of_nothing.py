"""No score is high enough, which is known at once: places in an empty list were refused.

From graphs seed 610524.
"""

from __future__ import annotations

from fuzz.kept import array, kept, node

FOUND = kept(
    [
        node("NonMaxSuppression", "p3 c4 c5 c6 c7", "v8"),
    ],
    opset=15,
    inputs={"p3": "FLOAT[1,1,4]", "c6": "FLOAT[]"},
    outputs={"v8": "INT64[0,?]"},
    constants={
        "c4": array([0.0], "FLOAT", (1, 1, 1)),
        "c5": array([2], "INT64", ()),
        "c7": array([0.0], "FLOAT", ()),
    },
    runs=[{"p3": array([0.0] * 4, "FLOAT", (1, 1, 4)), "c6": array([0.0], "FLOAT", ())}],
    expected=[[array([], "INT64", (0, 3))]],
)
