"""The classifiers in onnx's own test data, whose weights are constants made by nodes.

As they are (`light-…`) they ask a compiler to fold those nodes, and every class is as likely as the
next: a result says little. Each has a twin with seeded weights in place of the constants, which
is the one that competes.
"""

from __future__ import annotations

import math
from typing import Any, Final

from benchmarks.models.spec import Input, Model, Packaged, image

__all__ = ["MODELS", "fill_weights"]


def fill_weights(model: Any) -> None:
    """Seeded initializers for all weights: those that nodes make, and the few that are there."""
    import numpy as np
    from onnx import numpy_helper

    graph, users = model.graph, _users(model.graph)
    read = [item for item in graph.initializer if item.name in users]
    given = {item.name: numpy_helper.to_array(item) for item in read}
    makers = [node for node in graph.node if node.op_type == "ConstantOfShape"]
    shapes = {node.output[0]: tuple(given.pop(node.input[0]).tolist()) for node in makers}
    shapes |= {name: array.shape for name, array in given.items() if array.dtype == np.float32}
    for node in makers:
        graph.node.remove(node)
    rng = np.random.default_rng(1234)
    arrays = given | {n: _weights(rng, s, users[n]).astype("f4") for n, s in shapes.items()}
    graph.ClearField("initializer")
    graph.initializer.extend(numpy_helper.from_array(a, name) for name, a in arrays.items())


def _users(graph: Any) -> dict[str, tuple[str, int]]:
    """The operator that reads each name, and as which of its inputs; added dimensions are none."""
    users: dict[str, tuple[str, int]] = {}
    for node in reversed(graph.node):
        for position, name in enumerate(node.input):
            next_user = users.get(node.output[0], ("", 0))
            match node.op_type, next_user[0]:
                case "Unsqueeze", _:
                    users[name] = next_user
                case "BatchNormalization", "Sum":
                    users[name] = ("last of a branch", position)
                case op, _:
                    users[name] = (op, position)
    return users


def _weights(rng: Any, shape: tuple[int, ...], user: tuple[str, int]) -> Any:
    """Weights that keep the size of values from layer to layer."""
    match user:
        case ("BatchNormalization", 1 | 4) | ("Mul", _):
            return rng.uniform(0.5, 1.5, shape)
        case ("last of a branch", 1):  # what branches add up must not double from block to block
            return rng.uniform(0.1, 0.3, shape)
        case ("last of a branch", 4):
            return rng.uniform(0.5, 1.5, shape)
        case ("Conv", 1):
            gain = 1 if shape[1] == 1 else 2  # no rectifier in front of a depthwise one
            return rng.standard_normal(shape) * math.sqrt(gain / math.prod(shape[1:]))
        case ("Gemm", 1):
            return rng.standard_normal(shape) / math.sqrt(max(shape))
    return 0.05 * rng.standard_normal(shape)


FILES: Final = {
    "squeezenet": "data_0",
    "shufflenet": "gpu_0/data_0",
    "bvlc_alexnet": "data_0",
    "zfnet512": "gpu_0/data_0",
    "inception_v1": "data_0",
    "inception_v2": "data_0",
    "densenet121": "data_0",
    "resnet50": "gpu_0/data_0",
    "vgg19": "data_0",
}


def _model(file: str, given: str, *, filled: bool) -> Model:
    name = file.replace("_", "-")
    path = f"backend/test/data/light/light_{file}.onnx"
    return Model(
        f"filled-{name}" if filled else f"light-{name}",
        "filled" if filled else "light",
        Packaged("onnx", path, fill_weights if filled else None),
        (Input(given, (1, 3, 224, 224), image),),
        ({},),
        competes=filled,
    )


MODELS: Final = tuple(
    _model(file, given, filled=filled) for filled in (False, True) for file, given in FILES.items()
)
