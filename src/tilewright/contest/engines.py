"""The engines of a contest: how each opens an ONNX file and runs it in the way that suits it best.

All of them compute in float32 on the same number of threads. Inputs, and outputs where an engine
can do it, are bound once: what is timed is the model, not the handing over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from numpy.typing import NDArray

__all__ = ["ENGINES", "Runner"]

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Runner:
    """`run` is what is timed; `outputs` are the results of a run as arrays."""

    run: Callable[[], Any]
    outputs: Callable[[], list[Any]]
    version: str


def _tilewright(path: str, feeds: Arrays, threads: int) -> Runner:
    import tilewright as tw

    is_compiled = path.endswith(".tw")
    module = tw.load(path) if is_compiled else tw.compile(path, threads=threads)
    return Runner(lambda: module.run(feeds), lambda: module.run(feeds), tw.__version__)


def _onnxruntime(path: str, feeds: Arrays, threads: int) -> Runner:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, array in feeds.items():
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(array))
    for output in session.get_outputs():
        binding.bind_output(output.name, "cpu")
    return Runner(
        lambda: session.run_with_iobinding(binding),
        lambda: session.run(None, feeds),
        ort.__version__,
    )


def _openvino(path: str, feeds: Arrays, threads: int) -> Runner:
    import openvino as ov

    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
        "NUM_STREAMS": 1,
        "INFERENCE_NUM_THREADS": threads,
    }
    compiled = ov.Core().compile_model(path, "CPU", settings)
    request = compiled.create_infer_request()
    for name, array in feeds.items():
        request.set_tensor(name, ov.Tensor(array, shared_memory=True))

    def run() -> None:
        request.start_async()
        request.wait()

    def outputs() -> list[Any]:
        run()
        numbers = range(len(compiled.outputs))
        return [request.get_output_tensor(k).data.copy() for k in numbers]

    return Runner(run, outputs, ov.__version__.partition("-")[0])


def _torch(path: str, feeds: Arrays, threads: int) -> Runner:
    import torch
    from onnx2torch import convert

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    module = convert(path).eval()
    tensors = [torch.from_numpy(array) for array in feeds.values()]

    def outputs() -> list[Any]:
        found = module(*tensors)
        return [t.numpy() for t in ([found] if isinstance(found, torch.Tensor) else found)]

    return Runner(lambda: module(*tensors), outputs, torch.__version__)


def _reference(path: str, feeds: Arrays, threads: int) -> Runner:  # noqa: ARG001
    import onnx
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(path)
    run = lambda: evaluator.run(None, dict(feeds))  # noqa: E731
    return Runner(run, run, onnx.__version__)


ENGINES: Final[dict[str, Callable[[str, Arrays, int], Runner]]] = {
    "tilewright": _tilewright,
    "onnxruntime": _onnxruntime,
    "openvino": _openvino,
    "torch": _torch,
    "reference": _reference,
}
"""By name; torch reads ONNX files with the help of onnx2torch."""
