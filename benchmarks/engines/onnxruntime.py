"""ONNX Runtime: files, or one-node models (B as an initializer); inputs and outputs bound once."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

from benchmarks.engines import NOTHING, Runner, Variants, empty
from benchmarks.kinds import AnyWorkload, feeds
from benchmarks.models.workload import ModelWorkload
from benchmarks.numbers import EPSILON, Arrays, inputs
from benchmarks.workloads import CHAIN, Workload

PEER: Final = True

_options = ort.SessionOptions()


def start(threads: int) -> dict[str, str]:
    _options.intra_op_num_threads = threads
    _options.inter_op_num_threads = 1
    _options.log_severity_level = 3
    _options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    return {"onnxruntime": ort.__version__, "onnx": onnx.__version__}


def variants(workload: AnyWorkload) -> Variants:
    if workload.path or not isinstance(workload, Workload):
        return {"bound": partial(_build_file, workload)}
    if workload.op not in _NODES:
        return NOTHING
    return {"bound": partial(_build, workload)}


def _build(workload: Workload, arrays: Arrays) -> Runner:
    out = empty(*workload.result_shape)
    session = _session(_model(workload))
    binding = session.io_binding()
    for name in _input_names(workload):
        array = arrays[name]
        binding.bind_input(name, "cpu", 0, np.float32, array.shape, array.ctypes.data)
    binding.bind_output("y", "cpu", 0, np.float32, out.shape, out.ctypes.data)
    return Runner(partial(session.run_with_iobinding, binding), lambda: out)


def _build_file(workload: AnyWorkload, arrays: Arrays) -> Runner:
    session = _session(workload.path)
    binding = session.io_binding()
    for name, array in feeds(workload, arrays).items():
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(array))
    names = [output.name for output in session.get_outputs()]
    for name in names:
        binding.bind_output(name, "cpu")
    session.run_with_iobinding(binding)
    values = binding.get_outputs()  # memory for the outputs: their shapes are known from now on
    for name, value in zip(names, values, strict=True):
        binding.bind_ortvalue_output(name, value)
    run = partial(session.run_with_iobinding, binding)
    return Runner(run, lambda: [value.numpy() for value in values])


def open_model(workload: ModelWorkload, arrays: Arrays, _scratch: str) -> Callable[[], Any]:
    """The way of a user: a session, and calls with arrays."""
    return partial(_session(workload.path).run, None, arrays)


def _session(model: str | bytes) -> Any:
    return ort.InferenceSession(model, _options, providers=["CPUExecutionProvider"])


def _input_names(workload: Workload) -> tuple[str, ...]:
    return ("a", "b") if workload.op == "batched" else ("a",) if workload.op == "matmul" else ("x",)


@lru_cache(maxsize=1)  # making the model is no part of what `compile` times
def _model(workload: Workload) -> bytes:
    """What is not an input is an initializer."""
    arrays, names, f32 = inputs(workload), _input_names(workload), onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        _NODES[workload.op](),
        "benchmark",
        [helper.make_tensor_value_info(name, f32, arrays[name].shape) for name in names],
        [helper.make_tensor_value_info("y", f32, workload.result_shape)],
        [numpy_helper.from_array(arrays[name], name) for name in arrays if name not in names],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    return bytes(model.SerializeToString())


def _chain() -> list[Any]:
    ops = {"mul": "Mul", "add": "Add", "sub": "Sub", "relu": "Relu", "sigmoid": "Sigmoid"}
    nodes, value = [], "x"
    for i, (op, operand) in enumerate(CHAIN):
        result = "y" if i == len(CHAIN) - 1 else f"t{i}"
        nodes.append(helper.make_node(ops[op], [value, *filter(None, [operand])], [result]))
        value = result
    return nodes


_NODES: dict[str, Any] = {
    "matmul": lambda: [helper.make_node("MatMul", ["a", "b"], ["y"])],
    "batched": lambda: [helper.make_node("MatMul", ["a", "b"], ["y"])],
    "softmax": lambda: [helper.make_node("Softmax", ["x"], ["y"], axis=-1)],
    "layernorm": lambda: [
        helper.make_node("LayerNormalization", ["x", "s", "b"], ["y"], axis=-1, epsilon=EPSILON)
    ],
    "gelu": lambda: [helper.make_node("Gelu", ["x"], ["y"])],
    "chain": _chain,
}
