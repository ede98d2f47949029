"""The quotient was not rounded to the type of the scale, as it is since opset 23.

From graphs seed 2000030.
"""

from __future__ import annotations

from fuzz.kept import array, function, kept, node

FOUND = kept(
    [
        node("Local", "x10 c12 c11", "v13", domain="local"),
    ],
    opset=28,
    inputs={"x10": "BFLOAT16[2,2,2,2,2]", "c12": "BFLOAT16[2]"},
    outputs={"v13": "INT8[?,?,?,?,?]"},
    constants={"c11": array([4, 5], "INT8", (2,))},
    runs=[
        {
            "x10": array(
                [
                    -0.0,
                    2.0,
                    1.0,
                    3.0,
                    -2.0,
                    3.0,
                    0.0,
                    4.0,
                    4.0,
                    -1.0,
                    -1.0,
                    -2.0,
                    2.0,
                    2.0,
                    4.0,
                    -3.0,
                    2.0,
                    -2.0,
                    3.0,
                    -3.0,
                    0.0,
                    -2.0,
                    1.0,
                    -3.0,
                    -2.0,
                    -0.0,
                    -2.0,
                    3.0,
                    -1.0,
                    2.0,
                    -2.0,
                    -1.0,
                ],
                "BFLOAT16",
                (2, 2, 2, 2, 2),
            ),
            "c12": array([0.267578125, 0.0283203125], "BFLOAT16", (2,)),
        }
    ],
    functions=[
        function(
            "local",
            "Local",
            ["x10", "c12", "c11"],
            ["v13"],
            [node("QuantizeLinear", "x10 c12 c11", "v13", axis=3)],
            [("", 28)],
        )
    ],
)
