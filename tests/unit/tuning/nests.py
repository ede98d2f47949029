"""Small lowered programs whose features are counted by hand."""

from __future__ import annotations

from tilewright.target import Target
from tilewright.tensor.parser import parse
from tilewright.tuning.features.nests import Program, program_of

__all__ = ["AVX2", "PRODUCT", "TILED", "columns", "nest"]

AVX2 = Target.named("x86-64-v3")

PRODUCT = """
def product(A: f32[32], B: f32[128], C: f32[64]):
    for i in range(4):
        for k in range(8):
            for j in vectorized(16):
                C[i * 16 + j] = C[i * 16 + j] + A[i * 8 + k] * B[k * 16 + j]
"""
"""4 × 16 sums of 8 products; every operand lies as its loops run."""

TILED = """
def tiled(A: f32[32], B: f32[160], C: f32[80]):
    for n in parallel(1):
        T = alloc(f32[80], "register")
        for i in unrolled(4):
            for j in vectorized(20):
                T[i * 20 + j] = 0.0
        for k in range(8):
            for i_1 in unrolled(4):
                for j_1 in vectorized(20):
                    T[i_1 * 20 + j_1] = T[i_1 * 20 + j_1] + A[i_1 * 8 + k] * B[k * 20 + j_1]
        for i_2 in unrolled(4):
            for j_2 in vectorized(20):
                C[i_2 * 20 + j_2] = T[i_2 * 20 + j_2]
"""
"""A register tile of four rows and twenty columns."""


def nest(text: str) -> Program:
    """The statements of a text."""
    return program_of(parse(text))


def columns(names: tuple[str, ...], row: object) -> dict[str, float]:
    """A row by the names of its columns."""
    return dict(zip(names, row, strict=True))  # type: ignore[call-overload, no-any-return]
