"""Tensor programs: build, print, parse, check and interpret them.

    A, B = placeholder("A", (m, k)), placeholder("B", (k, n))
    r = reduce_axis(k, "r")
    C = compute("C", (m, n), lambda i, j: sum_over(A[i, r] * B[r, j], r))
    matmul = func("matmul", [A, B], [C])

The nodes are in `tilewright.tensor.ir`, ready programs in `tilewright.tensor.library`.
"""

from tilewright.tensor.build import (
    Tensor,
    call,
    compute,
    func,
    max_over,
    min_over,
    placeholder,
    product_over,
    reduce_axis,
    select,
    size,
    sum_over,
)
from tilewright.tensor.interpret import interpret
from tilewright.tensor.ir import Func
from tilewright.tensor.parser import parse
from tilewright.tensor.printer import print_func, print_node
from tilewright.tensor.structural import structural_equal, structural_hash
from tilewright.tensor.validate import ValidationCache, validate
from tilewright.tensor.verify import Level, verify

__all__ = [
    "Func",
    "Level",
    "Tensor",
    "ValidationCache",
    "call",
    "compute",
    "func",
    "interpret",
    "max_over",
    "min_over",
    "parse",
    "placeholder",
    "print_func",
    "print_node",
    "product_over",
    "reduce_axis",
    "select",
    "size",
    "structural_equal",
    "structural_hash",
    "sum_over",
    "validate",
    "verify",
]
