"""The result of lowering: what code generation needs to know besides the program itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.tensor import ir as tir

__all__ = ["Lowered"]


@dataclass(frozen=True, slots=True)
class Lowered:
    """A program of flat loops, and where its buffers live.

    Offsets are in bytes from the start of the arena that all threads share, or of the one that each
    thread has to itself; buffers in neither are on the stack. Sizes and offsets depend on nothing
    but `sizes`, the symbolic sizes in the order of the kernel's arguments. A program that is not
    `parallel` is meant for one thread.
    """

    func: tir.Func
    shared: Mapping[tir.Buffer, tir.Expr]
    local: Mapping[tir.Buffer, tir.Expr]
    shared_bytes: tir.Expr
    local_bytes: tir.Expr
    sizes: tuple[tir.Var, ...]
    parallel: bool = False
    remarks: tuple[str, ...] = ()
