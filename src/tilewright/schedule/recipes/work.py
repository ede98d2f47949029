"""What a block does for a vector of elements: instructions, and what moves to and from memory."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tilewright.dtypes import index
from tilewright.intrin.functions import EXPANSIONS
from tilewright.schedule.recipes.access_order import reads_data
from tilewright.schedule.recipes.instructions import Arithmetic, arithmetic_of
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.terms import terms
from tilewright.tensor.visit import find, free_vars, walk

__all__ = ["ASSUMED_EXTENT", "Work", "extent_or_assumed", "work_in"]

ASSUMED_EXTENT = 1024
"""What a symbolic size counts as: large enough that vectors and threads are worth their while."""


def extent_or_assumed(extent: tir.Expr) -> int:
    """A constant extent, or what a symbolic one counts as."""
    value = tir.int_value(extent)
    return ASSUMED_EXTENT if value is None else value


@dataclass(frozen=True)
class Work:
    """What one vector of elements costs, as far as the machine does not matter."""

    lanes: int
    """Of a vector of the widest element that takes part."""
    registers: int
    arithmetic: Arithmetic
    loads: int
    """Vectors that are loaded whole."""
    gathered: int
    """Vectors whose lanes are loaded one by one."""
    fixed: int
    """Elements that all lanes, and all vectors of a line, share."""
    stores: int
    scattered: int
    """Vectors whose lanes are stored one by one."""
    read_bytes: float
    """Of all buffers that are read, each once."""
    written_bytes: float
    masks: bool
    """A vector in part costs what a whole one does."""
    has_functions: bool
    """Some of the arithmetic is a function's, which lowering interleaves."""

    @property
    def instructions(self) -> int:
        """For one vector, without what all vectors share."""
        lanes = self.lanes * (self.gathered + self.scattered)
        one = self.arithmetic
        return one.operations + one.divisions + one.roots + self.loads + self.stores + lanes


def work_in(block: tir.Block, inner: tir.Var, target: Target, among: int = 1) -> Work:
    """The work of a block with vectors along one iterator, which does one of `among` things."""
    body = block.body
    stores = list(find(body, tir.Store))
    one = arithmetic_of([s.value for s in stores], fma=target.fma, folds=block.init is not None)
    sizes = {
        part.dtype.size_bytes
        for part in walk(body)
        if isinstance(part, tir.Expr) and not part.dtype.is_bool and part.dtype != index
    }
    result = {store.buffer for store in stores}
    moved = [load for load in find(body, tir.Load) if load.buffer not in result]
    ways = [_way(load.indices, inner) for load in dict.fromkeys(moved)]
    written = [_way(store.indices, inner) for store in stores if block.init is None]
    points = prod(extent_or_assumed(it.extent) for it in block.iters)
    widest = max(sizes, default=4)
    masks = target.masks(min(sizes, default=4))
    return Work(
        lanes=target.lanes(widest),
        registers=target.vector_registers,
        arithmetic=one.shared_by(among),
        loads=-(-ways.count(_WHOLE) // among),
        gathered=-(-ways.count(_APART) // among),
        fixed=ways.count(_FIXED),
        stores=written.count(_WHOLE),
        scattered=written.count(_APART),
        read_bytes=sum(_bytes_of(b, points) for b in {load.buffer for load in moved}),
        written_bytes=sum(_bytes_of(b, points) for b in result),
        masks=masks is not None and masks.is_free,
        has_functions=any(call.name in EXPANSIONS for call in find(body, tir.Call)),
    )


_FIXED, _WHOLE, _APART = range(3)


def _way(indices: tuple[tir.Expr, ...], inner: tir.Var) -> int:
    """How the lanes of a vector along an iterator lie in memory."""
    used = [inner in free_vars(index) for index in indices]
    if not any(used):
        return _FIXED
    last = indices[-1]
    while isinstance(last, tir.Min | tir.Max):  # brought inside, where it is outside
        last = last.a if inner in free_vars(last.a) else last.b
    moving = [(factor, part) for factor, part in terms(last) if inner in free_vars(part)]
    is_run = not any(used[:-1]) and moving == [(1, inner)] and not reads_data(last)
    return _WHOLE if is_run else _APART


def _bytes_of(buffer: tir.Buffer, points: int) -> float:
    """Of the elements that so many iterations can touch at most."""
    elements = prod(extent_or_assumed(size) for size in buffer.shape)
    return float(min(elements, points) * buffer.dtype.size_bytes)
