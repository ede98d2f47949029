"""More operators that compute addresses from data: regions, windows, embeddings, caches, loops.

What comes out is compared where the standard says what it should be; everywhere it counts that no
other memory is touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from onnx import helper

from tests.memory.places import LENGTHS, Places, extremes
from tests.onnx.small_models import BATCH, make_model

__all__ = ["Looped", "every_region"]

ANYTHING = {"may_be_refused": True, "is_defined": False}
OWN = "com.microsoft"


def every_region() -> Iterator[Places | Looped]:
    """All cases."""
    yield from _regions()
    yield from _windows()
    for n in LENGTHS:
        yield from _embeddings(n)
        yield from _attention(n)
    for number in extremes(3, np.int64):
        if number <= 64:  # more would run, and be right
            yield Looped(int(number))
            yield Looped(int(number), windows=True)


def _regions() -> Iterator[Places]:
    for mode, ratio, transform in product(
        ("avg", "max"), (0, 2), ("half_pixel", "output_half_pixel")
    ):
        attributes = {"mode": mode, "output_height": 3, "output_width": 2, "sampling_ratio": ratio}
        attributes["coordinate_transformation_mode"] = transform
        boxes = "boxes 9 4" if ratio else "near 9 4"
        inputs = [f"data {BATCH} 2 5 6", boxes, "places 9"]
        yield Places(
            f"RoiAlign {mode} {ratio} {transform}",
            "RoiAlign",
            inputs,
            attributes,
            BATCH,
            **ANYTHING,
        )
    pooled = {"pooled_shape": [2, 3], "spatial_scale": 0.5}
    yield Places("MaxRoiPool", "MaxRoiPool", ["data 2 3 8 8", "boxes 5 5"], pooled, **ANYTHING)
    for kind, mode in product((np.int32, np.int64), ("bilinear", "nearest")):
        inputs = ["data 2 3 8 8", "grid 9 4", "places 9", np.array([4, 3], np.int32)]
        yield Places(
            f"CropAndResize {mode} {kind.__name__}", "CropAndResize", inputs,
            {"mode": mode}, 2, kind, domain=OWN, known=(3,), **ANYTHING,
        )  # fmt: skip
    for region, mode in product(range(4), ("linear", "nearest", "cubic")):
        rng = np.random.default_rng(region)
        roi = rng.choice(np.array([0, 1, -1e9, 1e30, np.inf, -np.inf, np.nan, 0.3], np.float32), 8)
        attributes = {"mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize"}
        inputs = ["data 1 2 5 6", roi, None, np.array([1, 2, 7, 9])]
        name = f"Resize {mode} of region {region}"
        yield Places(name, "Resize", inputs, attributes, known=(1, 3), **ANYTHING)
        yield Places(f"{name}, told", "Resize", inputs, attributes, known=(3,), **ANYTHING)
    boxes = ["boxes 1 9 4", "data 1 2 9"]
    for number in extremes(9, np.int64):
        inputs = [*boxes, np.array([number]), np.array([0.5], np.float32)]
        yield Places(f"NonMaxSuppression {number}", "NonMaxSuppression", inputs, **ANYTHING)


def _windows() -> Iterator[Places]:
    for n in (9, 36, 37):
        attributes = {"kernel_shape": [2, 2], "strides": [2, 2]}
        inputs = ["data 1 1 3 3", "places 1 1 3 3"]
        yield Places(f"MaxUnpool into {n}", "MaxUnpool", inputs, attributes, n, **ANYTHING)
    inputs = ["data 1 2 6 6", "data 3 2 3 3", "boxes 1 18 4 4"]
    yield Places("DeformConv", "DeformConv", inputs, {"kernel_shape": [3, 3]}, **ANYTHING)
    for mode, padding in product(("linear", "nearest", "cubic"), ("zeros", "border", "reflection")):
        attributes = {"mode": mode, "padding_mode": padding}
        inputs = [f"data {BATCH} 2 5 6", f"boxes {BATCH} 4 9 2"]
        yield Places(
            f"GridSample far {mode} {padding}", "GridSample", inputs, attributes, **ANYTHING
        )
    volume = ["data 2 2 3 4 5", "boxes 2 3 3 3 3"]
    yield Places("GridSample of volumes", "GridSample", volume, {"mode": "linear"}, **ANYTHING)


def _embeddings(n: int) -> Iterator[Places]:
    ids = ["places 2 5", "places 2 5", f"data {n} 8", "data 64 8", "data 2 8", "data 8", "data 8"]
    yield Places(
        f"EmbedLayerNormalization of {n}", "EmbedLayerNormalization", ids, {}, n, np.int32,
        domain=OWN, outputs=2, **ANYTHING,
    )  # fmt: skip
    # fmt: off
    few = ["places 2 5", "places 2 5", f"data {n} 8", f"data {n} 8", f"data {n} 8", "data 8",
           "data 8", None, "places 2 5"]
    # fmt: on
    yield Places(
        f"EmbedLayerNormalization at places of {n}",
        "EmbedLayerNormalization",
        few,
        {},
        n,
        np.int32,
        domain=OWN,
        outputs=2,
        **ANYTHING,
    )  # fmt: skip
    inputs = [f"data {n} 8", "places 3 4"]
    yield Places(f"TorchEmbedding of {n}", "TorchEmbedding", inputs, {}, n, domain=OWN, **ANYTHING)
    inputs = [f"data {n} {n}", "places 9 2"]
    yield Places(f"GatherND of {OWN} and {n}", "GatherND", inputs, {}, n, domain=OWN, **ANYTHING)
    for axis, kind in product((0, 1), (np.int32, np.int64)):
        shape = (n, 32) if axis == 0 else (32, n)
        packed = np.arange(shape[0] * shape[1], dtype=np.uint8).reshape(shape)
        scales = np.ones((n, 1) if axis == 0 else (1, n), np.float32)
        attributes = {"gather_axis": axis, "quantize_axis": 1 - axis, "block_size": 32, "bits": 8}
        yield Places(
            f"GatherBlockQuantized {axis} of {n}, {kind.__name__}", "GatherBlockQuantized",
            [packed, "places 7", scales], attributes, n, kind, domain=OWN, **ANYTHING,
        )  # fmt: skip
    inputs = [f"data 3 {n}", "places 1 6"]
    yield Places(
        f"ArrayFeatureExtractor of {n}", "ArrayFeatureExtractor", inputs, {}, n,
        domain="ai.onnx.ml", **ANYTHING,
    )  # fmt: skip


def _attention(n: int) -> Iterator[Places]:
    inputs = ["data 2 3 5 8", "places 2 5", f"data {n} 4", f"data {n} 4"]
    name = f"RotaryEmbedding of {OWN} and {n}"
    yield Places(name, "RotaryEmbedding", inputs, {}, n, domain=OWN, **ANYTHING)
    heads = {"num_heads": 2, "kv_num_heads": 1}
    # fmt: off
    cached = ["data 2 1 16", "data 2 1 8", "data 2 1 8", f"data 2 1 {n} 8", f"data 2 1 {n} 8",
              "places 2", np.array(n, np.int32)]
    # fmt: on
    for rotary in (0, 1):
        attributes = {**heads, "do_rotary": rotary}
        tables = [f"data {n} 4", f"data {n} 4"] if rotary else []
        yield Places(
            f"GroupQueryAttention {rotary} of {n}", "GroupQueryAttention", [*cached, *tables],
            attributes, n, np.int32, domain=OWN, outputs=3, **ANYTHING,
        )  # fmt: skip
    ngrams = ["places 2 6", f"data 2 {n}"]
    yield Places(
        f"NGramRepeatBlock of {n}", "NGramRepeatBlock", ngrams, {"ngram_size": 2}, n,
        domain=OWN, **ANYTHING,
    )  # fmt: skip


@dataclass(frozen=True)
class Looped:
    """A loop of so many turns, each of which reads and writes the slice of its number.

    With `windows` it collects two slices, or fewer at the end: only a turn knows how many.
    """

    turns: int
    windows: bool = False
    may_be_refused: bool = True
    is_defined: bool = True

    @property
    def name(self) -> str:
        return f"Loop of {self.turns} turns{' over windows' if self.windows else ''}"

    def models(self) -> Iterator[tuple[Any, dict[str, Any]]]:
        """The loop, its number known and not."""
        number = helper.make_tensor_value_info("i", 7, [])
        go, on = (helper.make_tensor_value_info(n, 9, []) for n in ("go", "on"))
        state = [helper.make_tensor_value_info(n, 1, [5]) for n in ("s", "t")]
        seen = helper.make_tensor_value_info("seen", 1, ["m", 5] if self.windows else [5])
        nodes = [
            helper.make_node("Identity", ["go"], ["on"]),
            helper.make_node("Gather", ["x", "i"], ["row"], axis=0),
            helper.make_node("Add", ["s", "row"], ["t"]),
            helper.make_node("Neg", ["t"], ["seen"]),
        ]
        if self.windows:
            nodes[-1:] = [
                helper.make_node("Constant", [], ["one"], value_ints=[1]),
                helper.make_node("Reshape", ["i", "one"], ["begin"]),
                helper.make_node("Add", ["begin", "one"], ["next"]),
                helper.make_node("Add", ["next", "one"], ["end"]),
                helper.make_node("Constant", [], ["first"], value_ints=[0]),
                helper.make_node("Slice", ["x", "begin", "end", "first"], ["seen"]),
            ]
        body = helper.make_graph(nodes, "body", [number, go, state[0]], [on, state[1], seen])
        loop = helper.make_node("Loop", ["n", "", "start"], ["last", "all"], body=body)
        arrays = {"x": np.ones((3, 5), np.float32), "start": np.zeros(5, np.float32)}
        turns = {"n": np.array(self.turns)}
        yield make_model([loop], {**arrays, **turns}), {**arrays, **turns}
        yield make_model([loop], arrays, turns), arrays
