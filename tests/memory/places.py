"""Operators that compute addresses from data, with places from everywhere.

Indices come from the ends of the integers, from around the ends of a dimension and from where 32
bits end; coordinates are infinities, NaN and huge numbers. What comes out is what the graph means
(a place outside is the nearest one inside) or an error of ours, with every guard.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from tests.onnx.small_models import BATCH, one_node

__all__ = ["Places", "every_place"]

LENGTHS = (1, BATCH, 33)
"""Of the dimension that is indexed; the second one is symbolic."""


@dataclass(frozen=True)
class Places:
    """A node; an input that is a string says what is drawn for it: `places 4 5`, `grid 2 3 2`."""

    name: str
    op: str
    inputs: Sequence[Any]
    attributes: dict[str, Any] = field(default_factory=dict)
    length: int = 1
    kind: type = np.int64
    opset: int = 22
    domain: str = ""
    known: tuple[int, ...] = ()
    outputs: int = 1
    may_be_refused: bool = False
    is_defined: bool = True
    """Not where huge coordinates are folded back, nor where NumPy, which is the meaning, differs
    from ONNX: a slice that starts in front of the tensor and steps back has one element in ONNX."""

    def models(self) -> Iterator[tuple[Any, dict[str, Any]]]:
        """The node with drawn inputs."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        arrays = [self._drawn(rng, value) for value in self.inputs]
        yield one_node(
            self.op,
            arrays,
            attributes=self.attributes,
            opset=self.opset,
            domain=self.domain,
            known=self.known,
            outputs=self.outputs,
        )

    def _drawn(self, rng: np.random.Generator, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        what, *dims = value.split()
        shape = tuple(map(int, dims))
        if what == "places":
            return rng.choice(extremes(self.length, self.kind), shape)
        if what == "grid":
            values = [0.0, -1.0, 1.0, 0.3, -2.5, 1e10, -1e30, np.inf, -np.inf, np.nan]
            return rng.choice(np.array(values, np.float32), shape)
        if what == "near":  # where the size of a region says how long its run takes
            values = [0.0, 1.0, 2.5, 7.0, -3.0, 40.0, -500.0, 1e3]
            return rng.choice(np.array(values, np.float32), shape)
        if what == "boxes":  # regions inside, outside, turned around, huge and of nothing
            values = [0.0, 1.0, 2.5, 7.0, -3.0, 1e3, 1e9, -1e10, 3e38, -3e38, np.inf, np.nan]
            return rng.choice(np.array(values, np.float32), shape)
        assert what == "data"
        return rng.standard_normal(shape).astype(np.float32)


def extremes(length: int, kind: type) -> np.ndarray:
    """Integers around a dimension and at the ends of their type."""
    info = np.iinfo(kind)
    near = [-length - 1, -length, -1, 0, length - 1, length, length + 1, 63, 64]
    far = [2**31 - 1, 2**31, 2**32, 2**32 + 1, -(2**31), -(2**32), 2**40, 2**62, -(2**62)]
    ends = [info.min, info.min + 1, info.max - 1, info.max]
    return np.array([n for n in (*near, *far, *ends) if info.min <= n <= info.max], kind)


def every_place() -> Iterator[Places]:
    """All cases."""
    for n, kind in product(LENGTHS, (np.int32, np.int64)):
        yield from _gathers(n, kind)
        yield from _scatters(n, kind)
    for n in LENGTHS:
        yield from _others(n)
    yield from _grids()
    yield from _numbers()


def _gathers(n: int, kind: type) -> Iterator[Places]:
    def case(op: str, what: str, inputs: Sequence[Any], **attributes: Any) -> Places:
        return Places(f"{op} {what} of {n}, {kind.__name__}", op, inputs, attributes, n, kind)

    for rows in (1, BATCH, 40):
        yield case("Gather", f"{rows} rows", [f"data {n} 5", f"places {rows}"], axis=0)
        yield case("Gather", f"{rows} columns", [f"data 3 {n}", f"places {rows} 2"], axis=1)
        yield case("GatherElements", f"{rows} rows", [f"data {n} 3", f"places {rows} 3"], axis=0)
        yield case("GatherElements", f"{rows} columns", [f"data 3 {n}", f"places 3 {rows}"], axis=1)
    if kind is np.int64:
        yield case("GatherND", "elements", [f"data {n} {n}", "places 9 2"])
        yield case("GatherND", "slices", [f"data {n} {n} 6", "places 9 1"])
        yield case("GatherND", "batches", [f"data 4 {n} 6", "places 4 9 1"], batch_dims=1)


def _scatters(n: int, kind: type) -> Iterator[Places]:
    def case(op: str, what: str, inputs: Sequence[Any], **attributes: Any) -> Places:
        return Places(f"{op} {what} of {n}, {kind.__name__}", op, inputs, attributes, n, kind)

    for reduction in ("none", "add", "max"):
        for rows in (1, BATCH, 40):
            inputs = [f"data {n} 3", f"places {rows} 3", f"data {rows} 3"]
            what = f"{rows} rows, {reduction}"
            yield case("ScatterElements", what, inputs, axis=0, reduction=reduction)
        if kind is np.int64:
            inputs = [f"data {n} {n}", "places 9 2", "data 9"]
            yield case("ScatterND", f"elements, {reduction}", inputs, reduction=reduction)
            inputs = [f"data {n} 6", "places 9 1", "data 9 6"]
            yield case("ScatterND", f"slices, {reduction}", inputs, reduction=reduction)


def _others(n: int) -> Iterator[Places]:
    for mode in ("linear", "circular"):
        inputs = [f"data 4 {n} 3", "data 4 1 3", "places 4"]
        name = f"TensorScatter {mode} of {n}"
        yield Places(name, "TensorScatter", inputs, {"axis": 1, "mode": mode}, n, opset=24)
    inputs = [f"data {n} 4", "places 4"]
    along = {"time_axis": 0, "batch_axis": 1}
    yield Places(f"ReverseSequence of {n}", "ReverseSequence", inputs, along, n)
    inputs = ["places 6", np.array([n]), np.array([0.0, 1.0], np.float32)]
    yield Places(f"OneHot of {n}", "OneHot", inputs, {}, n, known=(1,))
    condition = np.arange(3 * n) % 3 == 0
    yield Places(f"Compress of {n}", "Compress", [f"data {n} 4", condition], {"axis": 0}, n)
    inputs = ["data 2 3 5 8", f"data {n} 4", f"data {n} 4", "places 2 5"]
    yield Places(f"RotaryEmbedding of {n}", "RotaryEmbedding", inputs, {}, n, opset=23)


def _grids() -> Iterator[Places]:
    modes = product(("linear", "nearest", "cubic"), ("zeros", "border", "reflection"), (0, 1))
    for mode, padding, corners in modes:
        attributes = {"mode": mode, "padding_mode": padding, "align_corners": corners}
        name = f"GridSample {mode} {padding} {corners}"
        inputs = [f"data {BATCH} 2 5 6", f"grid {BATCH} 4 9 2"]
        is_defined = padding != "reflection"
        yield Places(name, "GridSample", inputs, attributes, is_defined=is_defined)


def _numbers() -> Iterator[Places]:
    """Single numbers that say how much, or where."""
    for number in extremes(5, np.int64):
        one, alone = np.array([number]), np.array(number)

        def case(op: str, *inputs: Any, number: int = number, outputs: int = 1) -> Places:
            name = f"{op} with {number}"
            is_back = len(inputs) == 5
            options = {"outputs": outputs, "may_be_refused": True, "is_defined": not is_back}
            return Places(name, op, inputs, **options)

        yield case("Slice", "data 7 5", one, np.array([2**62]), np.array([1]))
        yield case("Slice", "data 7 5", np.array([0]), one, np.array([1]))
        yield case("Slice", "data 7 5", one, np.array([-(2**62)]), np.array([1]), np.array([-1]))
        yield case("Trilu", "data 7 5", alone)
        if abs(int(number)) <= 64:  # more would be made, and be right
            yield case("TopK", "data 7 5", one, outputs=2)
            yield case("Pad", "data 7 5", np.array([0, int(number), 0, 0]))
            yield case("Range", np.array(0), alone, np.array(1))
            yield case("Tile", "data 7 5", np.array([1, int(number)]))
