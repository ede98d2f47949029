"""Writing tensor programs by hand: each `compute` is one block over the shape of its result.

    A, B = placeholder("A", (m, k)), placeholder("B", (k, n))
    r = reduce_axis(k, "r")
    C = compute("C", (m, n), lambda i, j: sum_over(A[i, r] * B[r, j], r))
    matmul = func("matmul", [A, B], [C])

`f16`, `bf16` and smaller types are storage types: a value read from such a buffer is widened (to
`f32`, small integers to `i8`), and narrowed again when it is stored.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tilewright.dtypes import DType, f32, index
from tilewright.tensor import ir as tir
from tilewright.tensor.regions import block_regions
from tilewright.tensor.visit import rewrite, walk

__all__ = [
    "Axis",
    "Tensor",
    "call",
    "compute",
    "func",
    "max_over",
    "min_over",
    "placeholder",
    "product_over",
    "reduce_axis",
    "select",
    "seq",
    "size",
    "sum_over",
]

Shape = Sequence[int | tir.Expr]


class Axis(tir.Var):
    """A reduction axis: a variable that knows its extent."""

    __slots__ = ("extent",)
    extent: tir.Expr


@dataclass(frozen=True, eq=False)
class Tensor:
    """A buffer together with the block that computes it; placeholders have none."""

    buffer: tir.Buffer
    nest: tir.Stmt | None = None
    inputs: tuple[Tensor, ...] = ()

    @property
    def shape(self) -> tuple[tir.Expr, ...]:
        return self.buffer.shape

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype

    def __getitem__(self, indices: object) -> tir.Expr:
        _reads.tensors.append(self)
        load = self.buffer[indices]
        if len(load.indices) != len(self.buffer.shape):
            found, rank = len(load.indices), len(self.buffer.shape)
            raise IndexError(f"`{self.buffer.name}` has {rank} dimensions, found {found} indices")
        return load.to(self.dtype.computed)

    def stored(self, indices: Sequence[tir.Expr]) -> tir.Load:
        """An element as it is stored, not widened."""
        _reads.tensors.append(self)
        return tir.Load(self.buffer, tuple(indices))


class _Reads(threading.local):
    """Tensors that this thread has read since its current `compute` began: they become inputs."""

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []


_reads = _Reads()


@dataclass(frozen=True)
class Reduction:
    """A fold of `value` over `axes`, as returned by `sum_over` and its siblings."""

    fold: tir.Fold
    value: tir.Expr
    axes: tuple[Axis, ...]


def size(name: str) -> tir.Var:
    """A symbolic dimension: its value comes from the arrays of each call."""
    return tir.Var(name, index)


def placeholder(name: str, shape: Shape, dtype: DType = f32) -> Tensor:
    """An input."""
    return Tensor(tir.Buffer(name, tuple(tir.as_index(d) for d in shape), dtype))


def reduce_axis(extent: int | tir.Expr, name: str = "k") -> Axis:
    """An axis to fold over; used in one `compute`."""
    axis = Axis(name, index)
    object.__getattribute__(Axis, "extent").__set__(axis, tir.as_index(extent))
    return axis


def sum_over(value: tir.Expr, *axes: Axis) -> Reduction:
    """Σ value."""
    return Reduction(tir.Fold.ADD, value, axes)


def product_over(value: tir.Expr, *axes: Axis) -> Reduction:
    """Π value."""
    return Reduction(tir.Fold.MUL, value, axes)


def max_over(value: tir.Expr, *axes: Axis) -> Reduction:
    """The greatest value."""
    return Reduction(tir.Fold.MAX, value, axes)


def min_over(value: tir.Expr, *axes: Axis) -> Reduction:
    """The least value."""
    return Reduction(tir.Fold.MIN, value, axes)


def select(cond: tir.Expr, if_true: tir.Lift, if_false: tir.Lift) -> tir.Expr:
    """`if_true` where `cond`, else `if_false`."""
    like = if_true if isinstance(if_true, tir.Expr) else if_false
    dtype = like.dtype if isinstance(like, tir.Expr) else f32
    return tir.Select(cond, tir.as_expr(if_true, dtype), tir.as_expr(if_false, dtype))


def call(name: str, *args: tir.Lift) -> tir.Expr:
    """A math function, for example `call("exp", x)` or `call("pow", x, 0.5)`."""
    dtype = next((a.dtype for a in args if isinstance(a, tir.Expr)), f32)
    return tir.Call(name, tuple(tir.as_expr(a, dtype) for a in args), dtype)


def compute(
    name: str,
    shape: Shape,
    value: Callable[..., tir.Expr | Reduction],
    dtype: DType | None = None,
) -> Tensor:
    """The tensor whose element at (i, j, …) is `value(i, j, …)`."""
    extents = tuple(tir.as_index(d) for d in shape)
    letters = _axis_names(value, len(extents))
    loops = [tir.Var(letter) for letter in letters]
    iters = [tir.Iter(tir.Var(f"v{loop.name}"), e) for loop, e in zip(loops, extents, strict=True)]
    _reads.tensors.clear()
    result = value(*(i.var for i in iters))
    inputs = tuple(dict.fromkeys(_reads.tensors))
    if not isinstance(result, Reduction):
        result = tir.as_expr(result, dtype or f32)
    element = result.value.dtype if isinstance(result, Reduction) else result.dtype
    buffer = tir.Buffer(name, extents, dtype or element)
    where = tuple(i.var for i in iters)
    if isinstance(result, Reduction):
        body, init = _reduction_body(buffer, where, result)
        for axis in result.axes:
            loops.append(tir.Var(axis.name))
            iters.append(tir.Iter(tir.Var(f"v{axis.name}"), axis.extent, tir.IterKind.REDUCE))
        renamed = {a: i.var for a, i in zip(result.axes, iters[len(extents) :], strict=True)}
        body = rewrite(body, lambda n: renamed.get(n) if isinstance(n, Axis) else None)
    else:
        body, init = tir.Store(buffer, where, result.to(buffer.dtype)), None
    stray = [n.name for n in walk(body) if isinstance(n, Axis)]
    if stray:
        raise ValueError(f"`{name}` uses the reduction axis `{stray[0]}` outside of a reduction")
    nest: tir.Stmt = make_block(name, tuple(iters), tuple(loops), body, init)
    for loop, it in zip(reversed(loops), reversed(iters), strict=True):
        nest = tir.For(loop, it.extent, nest)
    return Tensor(buffer, nest, inputs)


def make_block(
    name: str,
    iters: tuple[tir.Iter, ...],
    bindings: tuple[tir.Expr, ...],
    body: tir.Stmt,
    init: tir.Stmt | None = None,
    predicate: tir.Expr = tir.TRUE,
) -> tir.Block:
    """A block whose read and write regions follow from its body."""
    reads, writes = block_regions(iters, body, init)
    return tir.Block(name, iters, bindings, reads, writes, body, init, predicate)


def _axis_names(value: Callable[..., object], rank: int) -> list[str]:
    names = list(inspect.signature(value).parameters)
    varied = any(
        p.kind is inspect.Parameter.VAR_POSITIONAL
        for p in inspect.signature(value).parameters.values()
    )
    return [f"i{d}" for d in range(rank)] if varied or len(names) != rank else names


_FOLDS: dict[tir.Fold, Callable[[tir.Expr, tir.Expr], tir.Expr]] = {
    tir.Fold.ADD: tir.Add,
    tir.Fold.MUL: tir.Mul,
    tir.Fold.MIN: tir.Min,
    tir.Fold.MAX: tir.Max,
}


def fold_identity(fold: tir.Fold, dtype: DType) -> tir.Const:
    """The value that changes nothing when folded in."""
    values = {
        tir.Fold.ADD: 0,
        tir.Fold.MUL: 1,
        tir.Fold.MIN: dtype.max_value,
        tir.Fold.MAX: dtype.min_value,
    }
    return tir.const(values[fold], dtype)


def combine(fold: tir.Fold, a: tir.Expr, b: tir.Expr) -> tir.Expr:
    """One step of a fold."""
    return _FOLDS[fold](a, b)


def _reduction_body(
    buffer: tir.Buffer, where: tuple[tir.Expr, ...], reduction: Reduction
) -> tuple[tir.Stmt, tir.Stmt]:
    value = reduction.value.to(buffer.dtype)
    update = combine(reduction.fold, tir.Load(buffer, where), value)
    init = tir.Store(buffer, where, fold_identity(reduction.fold, buffer.dtype))
    return tir.Store(buffer, where, update), init


def seq(*parts: tir.Stmt) -> tir.Stmt:
    """Statements one after another, flattened; a single one stands for itself."""
    flat: list[tir.Stmt] = []
    for part in parts:
        flat.extend(part.body if isinstance(part, tir.Seq) else (part,))
    return flat[0] if len(flat) == 1 else tir.Seq(tuple(flat))


def func(name: str, inputs: Iterable[Tensor], outputs: Iterable[Tensor]) -> tir.Func:
    """A program with `inputs` then `outputs` as parameters; what lies between is allocated."""
    inputs, outputs = list(inputs), list(outputs)
    order: list[Tensor] = []

    def visit(tensor: Tensor) -> None:
        if tensor in order or tensor.nest is None:
            return
        for needed in tensor.inputs:
            visit(needed)
        order.append(tensor)

    for tensor in outputs:
        visit(tensor)
    given = {t for t in inputs if t.nest is None}
    missing = [t for o in order for t in o.inputs if t.nest is None and t not in given]
    if missing:
        raise ValueError(
            f"`{missing[0].buffer.name}` is read but is not among the inputs of `{name}`"
        )
    body = seq(*(t.nest for t in order if t.nest is not None))
    for tensor in reversed(order):
        if tensor not in outputs:
            body = tir.Alloc(tensor.buffer, body)
    return tir.Func(name, tuple(t.buffer for t in (*inputs, *outputs)), body)
