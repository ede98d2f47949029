"""MNN: files that its converter has converted, float32 on the CPU.

How far it goes with Winograd's algorithm is a hint to it. By default it takes large tiles, which
round a lot: a result out of tolerance is a variant lost, and the next level is what competes.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any, Final

import MNN
import numpy as np
import onnx

from benchmarks.conversion import MODEL, converted
from benchmarks.engines import NOTHING, Runner, Variants
from benchmarks.kinds import AnyWorkload, feeds
from benchmarks.models.flops import load_without_weights
from benchmarks.models.workload import ModelWorkload
from benchmarks.numbers import Arrays

PEER: Final = True

RESULT: Final = "model.mnn"
CONVERT: Final = "import sys, _tools; _tools.mnnconvert(sys.argv)"
"""Its command would also send a report, if it could."""
HIGH: Final = 1
"""Of precision and of power: float32, and all that the processor has."""
RELEASE_MODE: Final = 1
WINOGRAD_LEVEL: Final = 3
"""A hint's number; 0 is without the algorithm, 3 the default, what is between takes small tiles."""

_config: dict[str, Any] = {"backend": "CPU", "precision": HIGH, "power": HIGH}


def start(threads: int) -> dict[str, str]:
    _config["numThread"] = threads
    return {"MNN": MNN.version()}


def variants(workload: AnyWorkload) -> Variants:
    """Both of its interfaces; models only by the one that has control flow and other sizes."""
    if not workload.path:
        return NOTHING
    if isinstance(workload, ModelWorkload):
        return {f"module-{level}": partial(_module, workload, level) for level in (3, 1)}
    return {
        f"{name}-{level}": partial(build, workload, level)
        for name, build in (("session", _session), ("module", _module))
        for level in (3, 1, 0)
    }


def _session(workload: AnyWorkload, level: int, arrays: Arrays) -> Runner:
    net = MNN.Interpreter(_converted(workload))
    net.setSessionMode(RELEASE_MODE)
    net.setSessionHint(WINOGRAD_LEVEL, level)
    session = net.createSession(_config)
    x, order = arrays["x"], MNN.Tensor_DimensionType_Caffe
    given = MNN.Tensor(x.shape, MNN.Halide_Type_Float, x, order)
    taken, made = net.getSessionInput(session, "x"), net.getSessionOutput(session, "y")

    def run() -> None:
        taken.copyFrom(given)  # its memory is used for other values in the course of a run
        net.runSession(session)

    return Runner(run, lambda: _shaped([made.getNumpyData()], _outputs(workload)))


def _module(workload: AnyWorkload, level: int, arrays: Arrays) -> Runner:
    runtime = MNN.nn.create_runtime_manager((_config,))
    runtime.set_mode(RELEASE_MODE)
    runtime.set_hint(WINOGRAD_LEVEL, level)
    given, shapes = feeds(workload, arrays), _outputs(workload)
    module = MNN.nn.load_module_from_file(
        _converted(workload),
        list(given),
        list(shapes),
        runtime_manager=runtime,
    )
    variables = [_variable(array) for array in given.values()]
    results: list[Any] = []

    def run(_kept: Any = runtime) -> None:
        results[:] = module.onForward(variables)

    def output() -> list[Any]:
        if not results:
            raise RuntimeError("MNN gave no result")
        return _shaped([variable.read() for variable in results], shapes)

    return Runner(run, output)


def _variable(array: Any) -> Any:
    """An input with its value; integers as MNN has them."""
    is_integer = array.dtype.kind == "i"
    dtype = MNN.expr.int if is_integer else MNN.expr.float
    variable = MNN.expr.placeholder(list(array.shape), MNN.expr.NCHW, dtype)
    variable.write(array.astype(np.int32) if is_integer else array)
    return variable


def _converted(workload: AnyWorkload) -> str:
    options = ["-f", "ONNX", "--modelFile", MODEL, "--MNNModel", RESULT, "--bizCode", "benchmark"]

    def command(folder: Path) -> list[str]:
        if workload.op == "conv3d":
            _add_end(folder / MODEL)
        return [sys.executable, "-c", CONVERT, *options]

    return str(converted(workload.path, f"mnn-{MNN.version()}", command, [RESULT]) / RESULT)


def _add_end(path: Path) -> None:
    """A node behind the activation: where that is the end, the converter loses a conv3d with it."""
    model = onnx.load(path)
    model.graph.node[-1].output[0] = "before"
    model.graph.node.append(onnx.helper.make_node("Identity", ["before"], ["y"]))
    path.unlink()
    onnx.save(model, path)


def _outputs(workload: AnyWorkload) -> dict[str, tuple[int, ...]]:
    """Shapes of the outputs by name, as the file has them; unknown extents are zero."""
    outputs = load_without_weights(Path(workload.path)).graph.output
    return {o.name: tuple(d.dim_value for d in o.type.tensor_type.shape.dim) for o in outputs}


def _shaped(results: list[Any], shapes: dict[str, tuple[int, ...]]) -> list[Any]:
    """Copies of the results; those of one-dimensional convolutions have a dimension too many."""
    pairs = zip(results, shapes.values(), strict=True)
    return [np.array(r).reshape(s if np.prod(s) == r.size else r.shape) for r, s in pairs]
