"""refused: ModelError: M004: `reduced` cannot run: 2 nodes are in the way nodes: Split (opset
20), 2 nodes: IndexError: tuple index out of range `r11` in `v6/theta_3d.then_branch` of
r1_: f32[3] `r21` in `v6/theta_3d.then_branch` of r2_: f32[3] hint: export the model again,
or replace these nodes; `onnx.checker` may say more

From graphs seed 600477.
"""

from __future__ import annotations

from fuzz.case import Setting
from fuzz.kept import array, function, graph, kept, node, tensor  # noqa: F401

FOUND = kept(
    [
        node('AffineGrid', 'x4 c5', 'v6'),
        node('HardSwish', 'v6', 'v7'),
    ],
    opset=27,
    inputs={'x4': 'FLOAT[1,2,3]'},
    outputs={'v7': 'FLOAT[1,?,?,2]'},
    constants={'c5': array([1, 2, 4, 3], 'INT64', (4,))},
    runs=[{'x4': array([0.0] * 6, 'FLOAT', (1, 2, 3))}],
    expected=[[array([0.0] * 24, 'FLOAT', (1, 4, 3, 2))]],
)
