"""Arrays that another thread changes while a model reads them: results are any, memory is kept."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

SCRIPT = """
    import sys, threading, time
    import numpy as np
    from onnx import TensorProto, helper
    import tilewright as tw
    from tilewright.runtime import _native
    from tilewright.runtime.arrays import empty
    from tilewright.dtypes import i64

    node = helper.make_node({op!r}, {inputs!r}, {outputs!r}, **{attributes!r})
    x = helper.make_tensor_value_info("x", TensorProto.INT64, ["n"])
    results = [helper.make_tensor_value_info(n, TensorProto.INT64, None) for n in {outputs!r}]
    count = helper.make_tensor("k", TensorProto.INT64, [1], [{size}])
    graph = helper.make_graph([node], "race", [x], results, [count])
    sets = [helper.make_opsetid("", 20)]
    module = tw.compile(helper.make_model(graph, opset_imports=sets, ir_version=9), threads=1)

    _native.guard_memory(1)
    array, order = empty(({size},), i64), np.arange({size})
    array[...] = order

    def change():
        while True:
            array[...] = 0
            array[...] = order

    threading.Thread(target=change, daemon=True).start()
    end = time.monotonic() + 2
    while time.monotonic() < end:
        module.run({{"x": array}})
    print("still here")
"""


@pytest.mark.parametrize(
    ("op", "inputs", "outputs", "attributes"),
    [
        ("Unique", ["x"], ["y", "i", "j", "c"], {}),
        ("TopK", ["x", "k"], ["y", "i"], {}),
        ("NonZero", ["x"], ["y"], {}),
    ],
)
def test_memory_is_kept(op, inputs, outputs, attributes):
    script = SCRIPT.format(
        op=op, inputs=inputs, outputs=outputs, attributes=attributes, size=20_000
    )
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.strip() == "still here", done.stderr[-2000:]
