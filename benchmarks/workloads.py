"""What is measured, as data: one `Workload` per row of the result table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from benchmarks.convolutions import CONVOLUTIONS, FAMILIES, OPS, TAGS, Convolution

__all__ = ["CHAIN", "WORKLOADS", "Workload", "select"]

CHAIN: Final = (("mul", "s"), ("add", "b"), ("relu", ""), ("sub", "x"), ("sigmoid", ""))
"""The chain of five elementwise ops: each is applied to the value so far and the named operand.

`x` is the input, `s` and `b` are rows. In one line: sigmoid(relu(x·s + b) - x).
"""


@dataclass(frozen=True, slots=True)
class Workload:
    """One op on one shape.

    `matmul` has shape (M, N, K) and a constant B; `batched` (batch, M, N, K) and no constant;
    the row-wise ops (rows, columns); `attention` (batch, heads, queries, keys, features);
    convolutions are what `Convolution` says. `trace` applies a schedule and has no arrays.
    """

    group: str
    op: str
    shape: tuple[int, ...]
    path: str = ""
    """The ONNX file of a convolution, once it is written."""

    @property
    def name(self) -> str:
        """Unique in its group: `matmul 128x768x768`, `conv2d 7x512x512x3x1x1 (C12)`."""
        if self.op == "batched":
            batch, *each = self.shape
            return f"batched {batch}x({'x'.join(map(str, each))})"
        tag = TAGS.get((self.op, self.shape))
        return f"{self.op} {'x'.join(map(str, self.shape))}" + (f" ({tag})" if tag else "")

    @property
    def families(self) -> tuple[str, ...]:
        """Where this convolution is from; empty for everything else."""
        layer = (self.op, self.shape)
        return tuple(name for name, layers in FAMILIES.items() if layer in layers)

    @property
    def convolution(self) -> Convolution | None:
        """The workload in the words of a convolution, if it is one."""
        return Convolution.of(self.op, self.shape) if self.op in OPS else None

    @property
    def result_shape(self) -> tuple[int, ...]:
        """Shape of the one output."""
        if self.convolution is not None:
            return self.convolution.result_shape
        if self.op in {"matmul", "batched"}:
            return self.shape[:-1]
        if self.op == "attention":
            *before, _, features = self.shape
            return (*before, features)
        return self.shape

    @property
    def flops(self) -> int:
        """Multiply-adds count twice; 0 where the figure says nothing."""
        if self.convolution is not None:
            return self.convolution.flops
        return 2 * math.prod(self.shape) if self.op in {"matmul", "batched"} else 0

    @property
    def bytes(self) -> int:
        """Bytes that must be read and written at least."""
        if self.convolution is not None:
            return self.convolution.bytes
        match self.op:
            case "matmul" | "batched":
                *batch, m, n, k = self.shape
                return 4 * math.prod(batch) * (m * n + m * k + k * n)
            case "attention":
                items, heads, queries, keys, features = self.shape
                return 4 * 2 * items * heads * features * (queries + keys)
            case "trace":
                return 0
            case _:
                return 4 * 2 * math.prod(self.shape)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(**{**data, "shape": tuple(data["shape"])})


MATMULS: Final = (
    (128, 768, 768),
    (128, 3072, 768),
    (128, 768, 3072),
    (384, 1024, 1024),
    (512, 512, 512),
    (1024, 1024, 1024),
    (16, 2304, 768),
    (80, 2304, 768),
    (1, 1000, 2048),
    (1, 4096, 4096),
    (49, 512, 2048),
    (196, 256, 1024),
    (3136, 64, 64),
    (197, 3072, 768),
    (77, 512, 512),
    (333, 777, 555),
)
BATCHED: Final = ((192, 128, 64, 128), (192, 77, 77, 64))
ROWWISE_OPS: Final = ("softmax", "layernorm", "gelu", "chain")
ROWWISE_SHAPES: Final = ((128, 3072), (4096, 768))
COMPILED: Final = ((128, 768, 768), (1024, 1024, 1024), (1, 4096, 4096), (333, 777, 555))

WORKLOADS: Final = (
    *(Workload("matmul", "matmul", shape) for shape in MATMULS),
    *(Workload("matmul", "batched", shape) for shape in BATCHED),
    *(Workload("rowwise", op, shape) for op in ROWWISE_OPS for shape in ROWWISE_SHAPES),
    *(Workload("conv", op, shape) for op, shape in CONVOLUTIONS),
    *(Workload("compile", "matmul", shape) for shape in COMPILED),
    Workload("compile", "trace", (30,)),
)


def select(groups: Sequence[str], pattern: str) -> Iterator[Workload]:
    """The workloads of these groups whose name contains `pattern`."""
    return (w for w in WORKLOADS if w.group in groups and pattern in w.name)
