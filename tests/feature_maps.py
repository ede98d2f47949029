"""A small network on pictures, with each kind of layer that has a choice of layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from tests.onnx.networks import Net
from tilewright.frontend.onnx import import_model
from tilewright.graph import Graph
from tilewright.graph.passes.pipeline import optimise
from tilewright.layouts.costs import Machine
from tilewright.layouts.forms import Form
from tilewright.layouts.sites import Settings
from tilewright.target import Target

CHANNELS = 32
SIDE = 16


def network(batch: int | str = 1) -> onnx.ModelProto:
    """A window, a depthwise one, a product for each place, a residual sum, a mean, a classifier."""
    net, around = Net(), {"pads": [1, 1, 1, 1]}
    x = net.add("Relu", net.add("Conv", "picture", net.weight(CHANNELS, 4, 3, 3), **around))
    y = net.add("Relu", net.add("Conv", x, net.weight(CHANNELS, CHANNELS, 3, 3), **around))
    y = net.add("Conv", y, net.weight(CHANNELS, 1, 3, 3), group=CHANNELS, **around)
    y = net.add("Add", x, net.add("Conv", y, net.weight(CHANNELS, CHANNELS, 1, 1)))
    mean = net.add("Flatten", net.add("GlobalAveragePool", y))
    scores = net.linear(mean, CHANNELS, 10)
    return net.model({"picture": (TensorProto.FLOAT, [batch, 4, SIDE, SIDE])}, [scores])


def picture(batch: int = 1) -> dict[str, np.ndarray[Any, Any]]:
    """An input of the network."""
    shape = (batch, 4, SIDE, SIDE)
    return {"picture": np.random.default_rng(batch).standard_normal(shape, np.float32)}


def graph(batch: int | str = 1) -> Graph:
    """The network after all passes."""
    return optimise(import_model(network(batch)).graph)


def settings(layouts: str = "auto", target: str = "x86-64-v3", threads: int = 1) -> Settings:
    """What its layouts are chosen for."""
    form = None if layouts == "auto" else Form.named(layouts)
    return Settings(Machine(Target.named(target), threads), fixed=form)
