"""wrong: onnxruntime: output 0 of run 0: np.int64(-1) instead of np.int64(0) at (0, 0, 0, 0,
0), 8 of 16 elements differ; reference: output 0 of run 0: np.int64(-1) instead of
np.int64(0) at (0, 0, 0, 0, 0), 8 of 16 elements differ

From graphs seed 40004968.
"""

from __future__ import annotations

from fuzz.kept import array, kept, node

FOUND = kept(
    [
        node(
            "MaxPool",
            "x16",
            "v17 v18",
            dilations=[2, 1, 1],
            kernel_shape=[2, 1, 3],
            pads=[0, 0, 1, 1, 0, 1],
        ),
    ],
    opset=18,
    inputs={"x16": "UINT8[2,2,2,2,2]"},
    outputs={"v18": "INT64[?,?,?,?,?]"},
    constants={},
    runs=[{"x16": array([0] * 32, "UINT8", (2, 2, 2, 2, 2))}],
    expected=[
        [
            array(
                [0, 0, 2, 2, 8, 8, 10, 10, 16, 16, 18, 18, 24, 24, 26, 26], "INT64", (2, 2, 1, 2, 2)
            )
        ]
    ],
)
