"""wrong: onnxruntime: output 0 of run 0: np.float64(316.2277660168379) instead of
np.float64(316.2277700111307) at (0, 0, 0, 0), 1 of 1 elements differ; reference: output 0
of run 0: np.float64(316.2277660168379) instead of np.float64(316.2277700111307) at (0, 0,
0, 0), 1 of 1 elements differ

From graphs seed 600520.
"""

from __future__ import annotations

from fuzz.case import Setting
from fuzz.kept import array, function, graph, kept, node, tensor  # noqa: F401

FOUND = kept(
    [
        node('BatchNormalization', 'x4 c5 c6 c7 c8', 'v9'),
    ],
    opset=26,
    inputs={'x4': 'DOUBLE[1,1,1,1]', 'c5': 'DOUBLE[1]', 'c6': 'DOUBLE[1]', 'c7': 'DOUBLE[1]', 'c8': 'DOUBLE[1]'},
    outputs={'v9': 'DOUBLE[?,?,?,?]'},
    constants={},
    runs=[{'x4': array([1.0], 'DOUBLE', (1, 1, 1, 1)), 'c5': array([1.0], 'DOUBLE', (1,)), 'c6': array([0.0], 'DOUBLE', (1,)), 'c7': array([0.0], 'DOUBLE', (1,)), 'c8': array([0.0], 'DOUBLE', (1,))}],
    expected=[[array([316.2277700111307], 'DOUBLE', (1, 1, 1, 1))]],
)
