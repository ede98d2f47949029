"""OpenVINO: compiled with the latency hint and float32 precision, tensors set once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
import openvino as ov
from openvino import opset13 as ops

from benchmarks.engines import Builder, Runner, Variants, empty
from benchmarks.kinds import AnyWorkload, feeds
from benchmarks.numbers import EPSILON, Arrays
from benchmarks.workloads import CHAIN

PEER: Final = True

_core = ov.Core()
_config: dict[str, Any] = {
    "PERFORMANCE_HINT": "LATENCY",
    "INFERENCE_PRECISION_HINT": "f32",
    "NUM_STREAMS": 1,
}


def start(threads: int) -> dict[str, str]:
    _config["INFERENCE_NUM_THREADS"] = threads
    return {"openvino": ov.__version__}


def variants(workload: AnyWorkload) -> Variants:
    if workload.path:
        return {"async": partial(_build_file, workload)}
    graphs = _GRAPHS.get(workload.op, {})
    ways = {"infer": _infer, "async": _async}
    if workload.group == "compile":  # the ways differ in the call alone
        return {name: _builder(graph, _infer) for name, graph in graphs.items()}
    return {
        f"{name}-{way}": _builder(graph, call)
        for name, graph in graphs.items()
        for way, call in ways.items()
    }


def _builder(graph: Callable[[Arrays], Any], call: Callable[[Any], Any]) -> Builder:
    def build(arrays: Arrays) -> Runner:
        node, parameters = graph(arrays)
        model = ov.Model([node], [parameter for parameter, _ in parameters], "benchmark")
        request = _core.compile_model(model, "CPU", _config).create_infer_request()
        for i, (_, array) in enumerate(parameters):
            request.set_input_tensor(i, ov.Tensor(array, shared_memory=True))
        out = empty(*node.output(0).get_shape())
        request.set_output_tensor(0, ov.Tensor(out, shared_memory=True))
        return Runner(call(request), lambda: out)

    return build


def _build_file(workload: AnyWorkload, arrays: Arrays) -> Runner:
    compiled = _core.compile_model(workload.path, "CPU", _config)
    request = compiled.create_infer_request()
    for name, array in feeds(workload, arrays).items():
        request.set_tensor(name, ov.Tensor(array, shared_memory=True))
    outputs = range(len(compiled.outputs))
    return Runner(
        _async(request), lambda: [request.get_output_tensor(i).data.copy() for i in outputs]
    )


def _infer(request: Any) -> Callable[[], Any]:
    return partial(request.infer)


def _async(request: Any) -> Callable[[], Any]:
    """Less work in Python for each call than `infer`, which looks at inputs and outputs."""

    def run() -> None:
        request.start_async()
        request.wait()

    return run


def _parameter(array: Any) -> Any:
    return ops.parameter(list(array.shape), np.float32)


def _matmul(arrays: Arrays) -> Any:
    a = _parameter(arrays["a"])
    return ops.matmul(a, ops.constant(arrays["b"]), transpose_a=False, transpose_b=False), [
        (a, arrays["a"])
    ]


def _matmul_transposed(arrays: Arrays) -> Any:
    a = _parameter(arrays["a"])
    weight = ops.constant(np.ascontiguousarray(arrays["b"].T))
    return ops.matmul(a, weight, transpose_a=False, transpose_b=True), [(a, arrays["a"])]


def _batched(arrays: Arrays) -> Any:
    a, b = _parameter(arrays["a"]), _parameter(arrays["b"])
    product = ops.matmul(a, b, transpose_a=False, transpose_b=False)
    return product, [(a, arrays["a"]), (b, arrays["b"])]


def _softmax(arrays: Arrays) -> Any:
    x = _parameter(arrays["x"])
    return ops.softmax(x, -1), [(x, arrays["x"])]


def _layernorm(arrays: Arrays) -> Any:
    x = _parameter(arrays["x"])
    axes = ops.constant(np.array([-1]))
    normal = ops.mvn(x, axes, normalize_variance=True, eps=EPSILON, eps_mode="inside_sqrt")
    scaled = ops.multiply(normal, ops.constant(arrays["s"]))
    return ops.add(scaled, ops.constant(arrays["b"])), [(x, arrays["x"])]


def _gelu(arrays: Arrays) -> Any:
    x = _parameter(arrays["x"])
    return ops.gelu(x, "erf"), [(x, arrays["x"])]


def _chain(arrays: Arrays) -> Any:
    x = _parameter(arrays["x"])
    operands = {"x": x, "s": ops.constant(arrays["s"]), "b": ops.constant(arrays["b"])}
    makers = {"mul": ops.multiply, "add": ops.add, "sub": ops.subtract}
    makers |= {"relu": ops.relu, "sigmoid": ops.sigmoid}
    value = x
    for op, operand in CHAIN:
        value = makers[op](value, operands[operand]) if operand else makers[op](value)
    return value, [(x, arrays["x"])]


_GRAPHS: dict[str, dict[str, Any]] = {
    "matmul": {"plain": _matmul, "transposed": _matmul_transposed},
    "batched": {"plain": _batched},
    "softmax": {"plain": _softmax},
    "layernorm": {"plain": _layernorm},
    "gelu": {"plain": _gelu},
    "chain": {"plain": _chain},
}
