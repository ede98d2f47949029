"""How well the choice of algorithms and layouts agrees with times measured on some machine.

    python -m benchmarks.predictions LAYERS.csv [--target emeraldrapids] [--layers 7x7]

Each row of the file is one convolution layer with one alternative forced, and the time of the whole
module. Nothing is run: the model of the target predicts the cycles of every alternative with the
conversions at its borders. Printed is, for each layer, Spearman's correlation of predicted and
measured times, and how fast the alternative predicted best is beside the best one measured.

Columns of the file: `layer` (`56x56 64>64 3x3 s1 p1 g1 d1`: space, channels > filters, window,
stride, padding, groups, dilation), `alternative` (`F(4; 3) nhwc+halo→nhwc`) and `best_us`.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from benchmarks.ablation import geomean
from tilewright.frontend.onnx.model import import_model
from tilewright.graph.ir import Graph
from tilewright.graph.passes.pipeline import optimise
from tilewright.layouts.choose import decide
from tilewright.layouts.costs import Machine
from tilewright.layouts.sites import Settings, Site, sites_of
from tilewright.target import Target
from tilewright.tuning.cost_model.metrics import spearman

__all__ = ["Layer", "main", "predicted"]

_LAYER = re.compile(r"(\d+)x(\d+) (\d+)>(\d+) (\d+)x(\d+) s(\d+) p(\d+) g(\d+) d(\d+)")


@dataclass(frozen=True)
class Layer:
    """A layer, with the microseconds that were measured for its alternatives."""

    name: str
    measured: dict[str, float]

    def graph(self) -> Graph:
        """Convolution, bias and ReLU; channels first at both ends."""
        found = _LAYER.fullmatch(self.name)
        if found is None:
            raise ValueError(f"no layer: {self.name!r}")
        height, width, channels, filters, down, across, stride, pad, groups, gap = map(
            int, found.groups()
        )
        pads = [pad if size > 1 else 0 for size in (down, across)]
        space = [
            (size + 2 * p - (taps - 1) * gap - 1) // stride + 1
            for size, p, taps in zip((height, width), pads, (down, across), strict=True)
        ]
        f32 = onnx.TensorProto.FLOAT
        weights = np.ones((filters, channels // groups, down, across), np.float32)
        conv = helper.make_node(
            "Conv",
            ["x", "w", "b"],
            ["sums"],
            strides=[stride] * 2,
            pads=pads * 2,
            dilations=[gap] * 2,
            group=groups,
        )
        body = helper.make_graph(
            [conv, helper.make_node("Relu", ["sums"], ["y"])],
            "layer",
            [helper.make_tensor_value_info("x", f32, (1, channels, height, width))],
            [helper.make_tensor_value_info("y", f32, (1, filters, *space))],
            [
                numpy_helper.from_array(weights, "w"),
                numpy_helper.from_array(np.ones(filters, np.float32), "b"),
            ],
        )
        opset = helper.make_opsetid("", 17)
        model = helper.make_model(body, opset_imports=[opset], ir_version=8)
        return optimise(import_model(model).graph)


def read(path: Path) -> list[Layer]:
    """The layers of a file, in order."""
    layers: dict[str, dict[str, float]] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            alternative = row["alternative"].replace(";", ",")
            layers.setdefault(row["layer"], {})[alternative] = float(row["best_us"])
    return [Layer(name, measured) for name, measured in layers.items()]


def predicted(layer: Layer, settings: Settings) -> dict[str, float]:
    """Cycles of each measured alternative, with the conversions around it."""
    graph = layer.graph()
    sites = sites_of(graph, settings)
    (at,) = [k for k, site in enumerate(sites) if site.conv is not None]
    found = {}
    for alternative in sites[at].alternatives:
        key = alternative.key(4)
        if key in layer.measured:
            alone: list[Site] = [*sites]
            alone[at] = replace(sites[at], alternatives=(alternative,))
            found[key] = decide(graph, settings, alone)[1].cost
    return found


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.predictions", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--target", default="emeraldrapids")
    parser.add_argument("--layers", default="", help="a part of the names of layers")
    parser.add_argument("--all", action="store_true", help="print every alternative")
    options = parser.parse_args(arguments)
    settings = Settings(Machine(Target.named(options.target), 1))
    shares, orders = [], []
    for layer in read(options.file):
        if options.layers not in layer.name:
            continue
        cycles = predicted(layer, settings)
        measured = {key: layer.measured[key] for key in cycles}
        chosen, best = min(cycles, key=cycles.__getitem__), min(measured, key=measured.__getitem__)
        shares.append(measured[best] / measured[chosen])
        orders.append(spearman([*cycles.values()], [*measured.values()]))
        print(f"{layer.name:34} {shares[-1]:5.2f} {orders[-1]:6.2f}  {chosen}; best {best}")
        for key in sorted(cycles, key=cycles.__getitem__) if options.all else ():
            print(f"    {key:34} {cycles[key]:10.0f} cycles {measured[key]:8.1f} us")
    print(f"chosen/best: mean {np.mean(shares):.3f}, geomean {geomean(shares):.3f}", end="; ")
    print(f"Spearman: mean {np.nanmean(orders):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
