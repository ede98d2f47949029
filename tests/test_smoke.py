"""The whole path in a few seconds: a program and a model, from text to results."""

from __future__ import annotations

import numpy as np
from onnx import parser

import tilewright as tw


def test_a_program_of_ten_lines_runs():
    size = 16
    A, B = tw.placeholder("A", (size, size)), tw.placeholder("B", (size, size))
    k = tw.reduce_axis(size, "k")
    C = tw.compute("C", (size, size), lambda i, j: tw.sum_over(A[i, k] * B[k, j], k))
    kernel = tw.build(tw.func("matmul", [A, B], [C]))
    a = np.arange(size * size, dtype=np.float32).reshape(size, size) / 256
    np.testing.assert_allclose(kernel(a, a.T), a @ a.T, rtol=1e-5)


def test_a_model_of_three_operators_runs_and_is_loaded_again(tmp_path):
    model = parser.parse_model("""
        <ir_version: 9, opset_import: ["" : 20]>
        small (float[n, 4] x) => (float[n, 4] y) <float[4, 4] w = {
            1.0, 0.0, 0.0, 2.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0
        }> { p = MatMul(x, w)  r = Relu(p)  y = Add(r, x) }""")
    module = tw.compile(model, cache=False)
    module.save(tmp_path / "small.tw")
    w = np.eye(4, dtype=np.float32)
    w[0, 3] = 2
    for made in (module, tw.load(tmp_path / "small.tw")):
        for n in (1, 3):
            x = np.linspace(-1, 1, 4 * n, dtype=np.float32).reshape(n, 4)
            (y,) = made.run({"x": x})
            np.testing.assert_allclose(y, np.maximum(x @ w, 0) + x, rtol=1e-6)
