"""Matrix products: square, odd, thin, tall, symbolic, narrow types, epilogues, batches, vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from replay.programs.program import Options, Program, Sizes, of_library

__all__ = ["programs"]

MATMUL: Final[tuple[Sizes, ...]] = (
    (1, 1, 1), (3, 5, 7), (16, 16, 16), (64, 64, 64), (96, 80, 72), (128, 128, 128),
    (127, 129, 131), (257, 255, 64), (256, 256, 256), (384, 384, 384), (1024, 1024, 256),
    (1, 512, 512), (2, 1000, 512), (4, 64, 2048), (7, 33, 500), (512, 1, 512), (512, 3, 512),
    (1000, 8, 64), (3136, 64, 64), (64, 3136, 27), (32, 32, 4096), (8, 8, 10000), (49, 512, 512),
    ("m", 64, 64), ("m", 512, 512), (64, "n", 64), (64, 64, "k"), ("m", "n", "k"), ("m", 1, 64),
)  # fmt: skip
"""Rows, columns, and how many products are summed up."""

EPILOGUES: Final[tuple[Sizes, ...]] = ((128, 128, 128), (127, 129, 131), ("m", 256, 256))

TURNED: Final[Options] = {"transpose_b": True}
BIASED: Final[Options] = {"bias": True, "relu": True}

TYPES: Final = ("f64", "f16", "bf16", "i8", "u8", "i32")

BATCHED: Final[tuple[Sizes, ...]] = (
    (1, 64, 64, 64), (8, 32, 32, 32), (12, 128, 64, 128), (16, 7, 9, 11), (100, 1, 64, 64),
    ("b", 64, 64, 64), (8, "m", 64, 64), (8, "m", "m", 64), ("b", "m", "n", "k"),
)  # fmt: skip

VECTORS: Final[tuple[Sizes, ...]] = (
    (64, 64), (1000, 512), (37, 4099), (4096, 16), ("m", 512), (512, "k"), ("m", "k"),
)  # fmt: skip

OUTER: Final[tuple[Sizes, ...]] = ((64, 64), (3, 1000), ("m", "n"))


def programs() -> Iterator[Program]:
    """All products; where the sizes of B are known, it is a constant, too."""
    for sizes in MATMUL:
        yield of_library("matmul", sizes)
        if isinstance(sizes[1], int) and isinstance(sizes[2], int):
            yield of_library("matmul", sizes, constants=("B",))
    for sizes in EPILOGUES:
        yield of_library("matmul", sizes, options=TURNED)
        yield of_library("matmul", sizes, constants=("B",), options=TURNED)
        yield of_library("matmul", sizes, options=BIASED)
        yield of_library("matmul", sizes, constants=("B", "D"), options=BIASED)
    for dtype in TYPES:
        yield of_library("matmul", (64, 96, 128), dtype)
        yield of_library("matmul", ("m", 96, 128), dtype, constants=("B",))
    for sizes in BATCHED:
        yield of_library("batched_matmul", sizes)
    for dtype in ("f16", "i8"):
        yield of_library("batched_matmul", (8, 32, 48, 64), dtype)
    for sizes in VECTORS:
        yield of_library("matvec", sizes)
    for dtype in ("bf16", "f64"):
        yield of_library("matvec", (1000, 512), dtype)
    for sizes in OUTER:
        yield of_library("outer_product", sizes)
