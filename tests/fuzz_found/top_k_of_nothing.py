"""refused: ProgramError: V104: block `p1_order` reads a part of `p1_order` that is not ready
there region: p1_order[vr0, 0:0] because: the blocks inside do not write all of it def
k54be697c6415111e268c(p0: u16[1, 0], p1: i64[1, 0]): p1_keys = alloc(u16[1, 0]) p1_order =
alloc(i32[1, 0]) for i0 in range(1): for i1 in range(0): with block("p1_keys", vi0=S(1,
i0), vi1=S(0, i1)): reads(p0[vi0, vi1]) writes(p1_ke

From graphs seed 600292.
"""

from __future__ import annotations

from fuzz.case import Setting
from fuzz.kept import array, function, graph, kept, node, tensor  # noqa: F401

FOUND = kept(
    [
        node('TopK', 'x4 c5', 'v6 v7'),
    ],
    opset=21,
    inputs={'x4': 'UINT16[1,0]'},
    outputs={'v6': 'UINT16[?,?]'},
    constants={'c5': array([0], 'INT64', (1,))},
    runs=[{'x4': array([], 'UINT16', (1, 0))}],
    expected=[[array([], 'UINT16', (1, 0))]],
)
