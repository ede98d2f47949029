"""The rest of a division was wrong where the quotient has more than 53 bits.

From graphs seed 610208.
"""

from __future__ import annotations

from fuzz.kept import array, kept, node

FOUND = kept(
    [
        node("Mod", "x9 x16", "v17"),
    ],
    opset=23,
    inputs={"x9": "DOUBLE[2,1]", "x16": "DOUBLE[2,1]"},
    outputs={"v17": "DOUBLE[?,?]"},
    constants={},
    runs=[
        {
            "x9": array([-2776412.0, 2148290210807.0], "DOUBLE", (2, 1)),
            "x16": array([-3276423210022.4707, 5.806217244679583e-07], "DOUBLE", (2, 1)),
        }
    ],
    expected=[[array([-2776412.0, 5.326277744109586e-07], "DOUBLE", (2, 1))]],
)
