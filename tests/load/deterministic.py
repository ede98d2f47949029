"""Models whose results are hashed: equal bits for an equal artefact and number of threads.

python -m tests.load.deterministic model.tw 2 feeds.npz     # prints a hash for each of ten runs
"""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tests.load.work import TALL, feeds, model
from tests.unit.model.test_concurrency import MAKERS, feeds_of

__all__ = ["MODELS", "digest", "hashes"]

Feeds = dict[str, np.ndarray]
REPEATS = 10


def one_node(
    op: str,
    arrays: list[np.ndarray],
    dims: list[list[object]],
    outputs: int = 1,
    **attributes: object,
) -> tuple[onnx.ModelProto, Feeds]:
    names = [f"in{k}" for k in range(len(arrays))]
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), shape)
        for name, a, shape in zip(names, arrays, dims, strict=True)
    ]
    results = [f"out{k}" for k in range(outputs)]
    node = helper.make_node(op, names, results, **attributes)
    graph = helper.make_graph([node], op, infos, [onnx.ValueInfoProto(name=n) for n in results])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    return made, dict(zip(names, arrays, strict=True))


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def scattered() -> tuple[onnx.ModelProto, Feeds]:
    """Sums of many updates of few elements: their order is that of the updates."""
    places = np.random.default_rng(1).integers(0, 7, (5000, 1))
    arrays = [normal(7, 16), places, normal(5000, 16)]
    return one_node("ScatterND", arrays, [["n", 16], ["m", 1], ["m", 16]], reduction="add")


def scattered_elements() -> tuple[onnx.ModelProto, Feeds]:
    places = np.random.default_rng(2).integers(0, 5, (3000, 8))
    arrays = [normal(5, 8), places, normal(3000, 8)]
    dims: list[list[object]] = [["n", 8], ["m", 8], ["m", 8]]
    return one_node("ScatterElements", arrays, dims, axis=0, reduction="mul")


def summed() -> tuple[onnx.ModelProto, Feeds]:
    axes = numpy_helper.from_array(np.array([0, 1]), "axes")
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)
    info = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "m"])]
    graph = helper.make_graph([node], "summed", info, [onnx.ValueInfoProto(name="y")], [axes])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    return made, {"x": normal(1000, 333)}


def multiplied() -> tuple[onnx.ModelProto, Feeds]:
    return one_node("MatMul", [normal(65, 700), normal(700, 129)], [["n", 700], [700, "m"]])


def softmaxed() -> tuple[onnx.ModelProto, Feeds]:
    return one_node("Softmax", [normal(300, 1001)], [["n", "m"]], axis=1)


def ordered() -> tuple[onnx.ModelProto, Feeds]:
    k = np.array([50])
    x = np.round(normal(64, 400))  # many equal elements
    return one_node("TopK", [x, k], [["n", "m"], [1]], outputs=2, axis=1)


def normalised() -> tuple[onnx.ModelProto, Feeds]:
    arrays = [normal(200, 768), normal(768), normal(767)[:1].repeat(768)]
    return one_node("LayerNormalization", arrays, [["n", 768], [768], [768]], axis=1)


def _small(name: str) -> tuple[onnx.ModelProto, Feeds]:
    return MAKERS[name](), feeds_of(name, np.random.default_rng(9))[1]


MODELS: dict[str, Callable[[], tuple[onnx.ModelProto, Feeds]]] = {
    "layers": lambda: (model(), feeds(TALL)),
    "pictures": lambda: _small("pictures"),
    "words": lambda: _small("words"),
    "steps": lambda: _small("steps"),
    "scattered": scattered,
    "scattered elements": scattered_elements,
    "summed": summed,
    "multiplied": multiplied,
    "softmaxed": softmaxed,
    "ordered": ordered,
    "normalised": normalised,
}


def digest(arrays: list[np.ndarray]) -> str:
    hashed = hashlib.sha256()
    for array in arrays:
        hashed.update(np.ascontiguousarray(array).tobytes())
    return hashed.hexdigest()


def hashes(module: tw.Module, given: Feeds) -> list[str]:
    """Of runs while two other threads keep running the same."""
    stop = threading.Event()
    others: list[str] = []

    def keep_running() -> None:
        while not stop.is_set():
            others.append(digest(module.run(given)))

    busy = [threading.Thread(target=keep_running) for _ in range(2)]
    for one in busy:
        one.start()
    found = [digest(module.run(given)) for _ in range(REPEATS)]
    stop.set()
    for one in busy:
        one.join()
    return [*found, *others]


def main(path: str, threads: str, arrays: str) -> None:
    given = dict(np.load(arrays).items())
    module = tw.load(path, threads=int(threads))
    found = [digest(module.run(given)), *hashes(module, given)]
    sys.stdout.write("\n".join(sorted(set(found))))


if __name__ == "__main__":
    main(*sys.argv[1:])
