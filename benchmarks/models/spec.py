"""What a benchmark model is, as data: its inputs, its sizes, and how its ONNX file comes to be.

Nothing here needs torch or onnx: making a file imports what it needs, when it is called. Inputs are
seeded by the names of model and input, so that every process makes the same arrays.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["EXPORTERS", "Arrays", "Dim", "Exported", "Fill", "Input", "Model", "Packaged", "Sizes"]
__all__ += ["image", "mask", "normal", "tokens", "value", "zeros"]

Arrays = dict[str, NDArray[Any]]
Sizes = Mapping[str, int]
Dim = int | str
"""A number, the name of a size, or a sum of both (`past+1`)."""
Fill = Callable[[np.random.Generator, tuple[int, ...]], NDArray[Any]]

EXPORTERS: Final = ("dynamo", "script")


@dataclass(frozen=True, slots=True)
class Input:
    """A named input; `fill` makes an array of a shape."""

    name: str
    dims: tuple[Dim, ...]
    fill: Fill

    @property
    def size_names(self) -> set[str]:
        """The sizes that its dimensions speak of."""
        words = re.findall(r"[a-z_]+", " ".join(d for d in self.dims if isinstance(d, str)))
        return set(words)

    def shape(self, sizes: Sizes) -> tuple[int, ...]:
        """Its dimensions as numbers."""
        return tuple(_evaluate(dim, sizes) for dim in self.dims)


@dataclass(frozen=True, slots=True)
class Exported:
    """A torch module that an exporter turns into a file; its weights come from a seed."""

    module: Callable[[], Any]
    outputs: tuple[str, ...]
    exporters: tuple[str, ...] = EXPORTERS
    """The first one is the default; the others work as well."""


@dataclass(frozen=True, slots=True)
class Packaged:
    """A file that an installed package brings along; `edit` changes the loaded model."""

    package: str
    file: str
    edit: Callable[[Any], None] | None = None
    takes_numbers: bool = True
    """Whether its dimensions can be fixed: a branch never taken may not fit these numbers."""

    def find(self) -> Path:
        """Where it is; ImportError without the package."""
        from importlib.util import find_spec

        found = find_spec(self.package)
        if found is None or found.origin is None:
            raise ImportError(f"no module named {self.package!r}")
        return Path(found.origin).parent / self.file


@dataclass(frozen=True, slots=True)
class Model:
    """A model; the first of its `sizes` is what the fixed file is made for.

    `dynamic` names the sizes that stay open in the dynamic file; none: there is no such file.
    `tolerance` is the largest accepted deviation relative to the largest value of an output.
    """

    name: str
    family: str
    source: Exported | Packaged
    inputs: tuple[Input, ...]
    sizes: tuple[Sizes, ...]
    dynamic: tuple[str, ...] = ()
    tolerance: float = 1e-4
    streams_weights: bool = False
    """Each run reads every weight once and does little else: memory is its limit."""
    competes: bool = True
    """Is measured when no names are given; otherwise it is there for those who ask for it."""

    @property
    def exporters(self) -> tuple[str, ...]:
        """The exporters that can make it; none for a packaged file."""
        return self.source.exporters if isinstance(self.source, Exported) else ()

    def shapes(self, sizes: Sizes) -> dict[str, tuple[int, ...]]:
        """Shapes of the inputs, in order."""
        return {given.name: given.shape(sizes) for given in self.inputs}

    def arrays(self, sizes: Sizes) -> Arrays:
        """The inputs for these sizes, the same in every process."""
        return {
            given.name: given.fill(
                np.random.default_rng(zlib.crc32(f"{self.name}/{given.name}".encode())),
                given.shape(sizes),
            )
            for given in self.inputs
        }

    def module(self) -> Any:
        """The torch module in evaluation mode; None for a packaged file."""
        return self.source.module() if isinstance(self.source, Exported) else None


def _evaluate(dim: Dim, sizes: Sizes) -> int:
    if isinstance(dim, int):
        return dim
    return sum(int(term) if term.isdigit() else sizes[term] for term in dim.split("+"))


def normal(scale: float = 1.0) -> Fill:
    """Normally distributed float32."""
    return lambda rng, shape: (scale * rng.standard_normal(shape)).astype("f4")


image: Final = normal()
"""Pixels after the usual normalisation."""


def tokens(vocabulary: int) -> Fill:
    """Token numbers below `vocabulary`."""
    return lambda rng, shape: rng.integers(0, vocabulary, shape, dtype="i8")


def mask(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[Any]:
    """Ones, then zeros in the last eighth of every row but the first: padded shorter texts."""
    del rng
    rows = np.ones(shape, "i8")
    rows[1:, shape[-1] - shape[-1] // 8 :] = 0
    return rows


def zeros(dtype: str = "f4") -> Fill:
    """Zeros of a type, such as a state before the first step."""
    return lambda _, shape: np.zeros(shape, dtype)


def value(number: int, dtype: str = "i8") -> Fill:
    """The same number everywhere."""
    return lambda _, shape: np.full(shape, number, dtype)
