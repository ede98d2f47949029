"""Workloads as programs of TVM, whose weights may lie as its schedules like them."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import te, topi

from benchmarks.workloads import Workload

__all__ = ["program_of", "target_of"]


def target_of(cpu: str, threads: int) -> Any:
    """The machine: LLVM's name of its processor, and how many threads may run."""
    return tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": threads})


def program_of(workload: Workload, form: str) -> Any:
    """A function of data, weights (and a bias) and the result."""
    if workload.op == "matmul":
        return _product(*workload.shape)
    return _convolution(workload, form.upper())


def _product(m: int, n: int, k: int) -> Any:
    a, b = te.placeholder((m, k), name="a"), te.placeholder((k, n), name="b")
    return te.create_prim_func([a, b, topi.nn.matmul(a, b)])


def _convolution(workload: Workload, layout: str) -> Any:
    """With a bias and a ReLU, as in all benchmarks of layers."""
    conv = workload.convolution
    assert conv is not None
    height, width = conv.space
    taps, channels, filters = conv.kernel, conv.channels, conv.filters
    if layout == "NHWC":
        data, weights, order = (1, height, width, channels), (taps, taps, channels, filters), "HWIO"
    else:
        data, weights, order = (1, channels, height, width), (filters, channels, taps, taps), "OIHW"
    x, w = te.placeholder(data, name="x"), te.placeholder(weights, name="w")
    b = te.placeholder((filters,), name="b")
    how = {"auto_scheduler_should_rewrite_layout": True}  # weights may be packed ahead
    about = conv.stride, conv.padding, 1, 1, layout, order, "float32"
    sums = topi.nn.conv(x, w, *about, **how)
    place = layout.index("C")
    zero = tvm.tirx.const(0.0, "float32")
    y = te.compute(sums.shape, lambda *i: te.max(sums[i] + b[i[place]], zero), name="y")
    return te.create_prim_func([x, w, b, y])
