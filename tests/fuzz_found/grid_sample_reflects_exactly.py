"""A place beside the border lost digits on its way to the other side and back.

From graphs seed 1001180, made small by hand.
"""

from __future__ import annotations

from fuzz.kept import array, kept, node

FOUND = kept(
    [
        node("GridSample", "x g", "y", mode="linear", padding_mode="reflection"),
    ],
    opset=20,
    inputs={"x": "FLOAT[1,1,17,1]", "g": "FLOAT[1,1,1,2]"},
    outputs={"y": "FLOAT[1,1,1,1]"},
    runs=[
        {
            "x": array([0.0, 1.7, -2.3, *[0.0] * 14], "FLOAT", (1, 1, 17, 1)),
            "g": array([0.0, -1.2264975309371948], "FLOAT", (1, 1, 1, 2)),
        }
    ],
    expected=[[array([-0.0009160041809082031], "FLOAT", (1, 1, 1, 1))]],
)
