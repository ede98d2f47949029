"""Results below the least normal number were zero.

From graphs seed 1001709.
"""

from __future__ import annotations

from fuzz.kept import array, kept, node

FOUND = kept(
    [
        node("Softplus", "x1", "v2"),
        node("Cast", "v2", "v3", to=9),
    ],
    opset=21,
    inputs={"x1": "FLOAT[1,6]"},
    outputs={"v3": "BOOL[?,?]"},
    constants={},
    runs=[{"x1": array([0.0, -0.0, -2426150.0, -0.0, -0.0, -95.0], "FLOAT", (1, 6))}],
    expected=[[array([True, True, False, True, True, True], "BOOL", (1, 6))]],
)
