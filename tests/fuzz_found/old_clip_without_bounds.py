"""Before opset 11, bounds that are left out are the ends of f32.

From graphs seed 4000368.
"""

from __future__ import annotations

from fuzz.kept import array, kept, node

FOUND = kept(
    [
        node("Clip", "x11", "v25"),
    ],
    opset=9,
    inputs={"x11": "DOUBLE[3,1,8]"},
    outputs={"v25": "DOUBLE[?,?,?]"},
    constants={},
    runs=[
        {
            "x11": array(
                [
                    2.0,
                    -0.0,
                    1.0,
                    2.0,
                    -1.0,
                    1.0,
                    -0.0,
                    0.0,
                    2.0,
                    4.0,
                    4.0,
                    -0.0,
                    2.0,
                    2.0,
                    -1.0,
                    0.0,
                    1.0,
                    1.0,
                    -0.0,
                    1.0,
                    -2.0,
                    3.0,
                    1.0,
                    float("-inf"),
                ],
                "DOUBLE",
                (3, 1, 8),
            )
        }
    ],
    expected=[
        [
            array(
                [
                    2.0,
                    -0.0,
                    1.0,
                    2.0,
                    -1.0,
                    1.0,
                    -0.0,
                    0.0,
                    2.0,
                    4.0,
                    4.0,
                    -0.0,
                    2.0,
                    2.0,
                    -1.0,
                    0.0,
                    1.0,
                    1.0,
                    -0.0,
                    1.0,
                    -2.0,
                    3.0,
                    1.0,
                    -3.4028234663852886e38,
                ],
                "DOUBLE",
                (3, 1, 8),
            )
        ]
    ],
)
