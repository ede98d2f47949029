"""Layout steps: how the physical shape of a buffer comes from its logical shape.

Each step maps shapes, indices and NumPy arrays forward (`shape`, `index`, `pack`) and shapes and
arrays back (`before`, `unpack`); a buffer's `layout` is the list of its steps in order. A dimension
is a number or a symbolic expression; expressions work here through their operators alone, because
`expr.py` imports this module.

Physical memory always holds exactly `pack(logical)`: padding is zero, and every copy that `Unfold`
makes is equal to its original. Readers may rely on it, writers must keep it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.tensor.node import Node, node

__all__ = [
    "STEPS",
    "Fuse",
    "LayoutStep",
    "Pad",
    "Reorder",
    "Split",
    "StoreAt",
    "Unfold",
    "appended",
    "logical_shape",
    "parse_step",
    "word_of",
]

Array = np.ndarray[Any, np.dtype[Any]]
Dim = Any  # an int or an index expression
Dims = tuple[Dim, ...]


class LayoutStep(Node):
    """One change of a buffer's layout; subclasses give the new shape and the map of indices."""

    __slots__ = ()

    def shape(self, shape: Dims) -> Dims:
        """The shape after the step."""
        raise NotImplementedError

    def before(self, shape: Dims) -> Dims:
        """The shape before the step, from the one after it."""
        raise NotImplementedError

    def index(self, indices: Dims) -> Dims:
        """Where the element at these indices is found after the step."""
        raise NotImplementedError

    def pack(self, array: Array) -> Array:
        """The array after the step; a view where that is possible."""
        raise NotImplementedError

    def unpack(self, array: Array) -> Array:
        """The array before the step."""
        raise NotImplementedError

    def __str__(self) -> str:
        values = [_text(getattr(self, name)) for name in self.fields]
        return f"{word_of(type(self))}({', '.join(values)})"


@node
class Split(LayoutStep):
    """Dimension `dim` of size n becomes two: n / factor, and factor. The factor divides n."""

    dim: int
    factor: int

    def shape(self, shape: Dims) -> Dims:
        size = shape[self.dim]
        return (*shape[: self.dim], size // self.factor, self.factor, *shape[self.dim + 1 :])

    def before(self, shape: Dims) -> Dims:
        return (*shape[: self.dim], shape[self.dim] * self.factor, *shape[self.dim + 2 :])

    def index(self, indices: Dims) -> Dims:
        at, d = indices[self.dim], self.dim
        return (*indices[:d], at // self.factor, at % self.factor, *indices[d + 1 :])

    def pack(self, array: Array) -> Array:
        return array.reshape(self.shape(array.shape))

    def unpack(self, array: Array) -> Array:
        return array.reshape(self.before(array.shape))


@node
class Reorder(LayoutStep):
    """Dimension `d` afterwards is dimension `order[d]` before, as in `numpy.transpose`."""

    order: tuple[int, ...]

    def shape(self, shape: Dims) -> Dims:
        return tuple([shape[d] for d in self.order])

    def before(self, shape: Dims) -> Dims:
        return self.inverse().shape(shape)

    def index(self, indices: Dims) -> Dims:
        return tuple([indices[d] for d in self.order])

    def inverse(self) -> Reorder:
        """The order that undoes this one."""
        return Reorder(tuple(sorted(range(len(self.order)), key=self.order.__getitem__)))

    def pack(self, array: Array) -> Array:
        return array.transpose(self.order)

    def unpack(self, array: Array) -> Array:
        return array.transpose(self.inverse().order)


@node
class Fuse(LayoutStep):
    """Dimensions from `dim` on, of these `sizes`, become one, the last one running fastest."""

    dim: int
    sizes: tuple[Dim, ...]

    def shape(self, shape: Dims) -> Dims:
        end = self.dim + len(self.sizes)
        return (*shape[: self.dim], _product(shape[self.dim : end]), *shape[end:])

    def before(self, shape: Dims) -> Dims:
        return (*shape[: self.dim], *self.sizes, *shape[self.dim + 1 :])

    def index(self, indices: Dims) -> Dims:
        end = self.dim + len(self.sizes)
        at = indices[self.dim]
        for step, size in zip(indices[self.dim + 1 : end], self.sizes[1:], strict=True):
            at = at * size + step
        return (*indices[: self.dim], at, *indices[end:])

    def pack(self, array: Array) -> Array:
        return array.reshape(self.shape(array.shape))

    def unpack(self, array: Array) -> Array:
        return array.reshape(self.before(array.shape))


@node
class Unfold(LayoutStep):
    """Dimension `dim` of size `extent` is stored as tiles of size `tile`, one every `stride`.

    Tiles overlap where `stride < tile`: then elements have copies. What a tile holds beyond the
    extent is zero.
    """

    dim: int
    tile: int
    stride: int
    extent: int

    @property
    def tiles(self) -> int:
        """The number of tiles."""
        return -(-(self.extent - self.tile) // self.stride) + 1

    def shape(self, shape: Dims) -> Dims:
        return (*shape[: self.dim], self.tiles, self.tile, *shape[self.dim + 1 :])

    def before(self, shape: Dims) -> Dims:
        return (*shape[: self.dim], self.extent, *shape[self.dim + 2 :])

    def index(self, indices: Dims) -> Dims:
        """The copy in the last tile that begins at or before the element."""
        at, d = indices[self.dim], self.dim
        tile = at // self.stride
        if (self.extent - 1) // self.stride >= self.tiles:
            tile = _least(tile, self.tiles - 1)
        return (*indices[:d], tile, at - tile * self.stride, *indices[d + 1 :])

    def pack(self, array: Array) -> Array:
        beyond = (self.tiles - 1) * self.stride + self.tile - self.extent
        whole = _padded(array, self.dim, 0, beyond)
        view = np.lib.stride_tricks.sliding_window_view(whole, self.tile, axis=self.dim)
        apart = (slice(None),) * self.dim + (slice(None, None, self.stride),)
        return np.moveaxis(view[apart], -1, self.dim + 1)

    def unpack(self, array: Array) -> Array:
        at = np.arange(self.extent)
        tile = np.minimum(at // self.stride, self.tiles - 1)
        where = (slice(None),) * self.dim + (tile, at - tile * self.stride)
        return array[where]


@node
class Pad(LayoutStep):
    """Dimension `dim` has `lead` zeros before and `tail` zeros after its elements."""

    dim: int
    lead: int
    tail: int

    def shape(self, shape: Dims) -> Dims:
        return _replaced(shape, self.dim, shape[self.dim] + (self.lead + self.tail))

    def before(self, shape: Dims) -> Dims:
        return _replaced(shape, self.dim, shape[self.dim] - (self.lead + self.tail))

    def index(self, indices: Dims) -> Dims:
        return _replaced(indices, self.dim, indices[self.dim] + self.lead)

    def pack(self, array: Array) -> Array:
        return _padded(array, self.dim, self.lead, self.tail)

    def unpack(self, array: Array) -> Array:
        inside = slice(self.lead, array.shape[self.dim] - self.tail)
        return array[(slice(None),) * self.dim + (inside,)]


@node
class StoreAt(LayoutStep):
    """Another buffer's elements follow along `dim`, so that one stream brings both.

    `name`, `size` (its physical shape) and `layout` describe that buffer. It has the dimensions of
    its host, or all but `dim`. `place` is where it stood among the allocations or, counting other
    guests, the parameters: there callers still pass its array.
    """

    dim: int
    name: str
    size: tuple[Dim, ...]
    layout: tuple[LayoutStep, ...] = ()
    place: int = 0

    def rows(self, rank: int) -> Dim:
        """How far the guest reaches along `dim` in a host of this rank."""
        return self.size[self.dim] if len(self.size) == rank else 1

    def shape(self, shape: Dims) -> Dims:
        return _replaced(shape, self.dim, shape[self.dim] + self.rows(len(shape)))

    def before(self, shape: Dims) -> Dims:
        return _replaced(shape, self.dim, shape[self.dim] - self.rows(len(shape)))

    def index(self, indices: Dims) -> Dims:
        return indices

    def guest_index(self, indices: Dims, host: Dims) -> Dims:
        """Where an element of the guest is found in a host that had the shape `host`."""
        if len(indices) == len(host):
            return _replaced(indices, self.dim, indices[self.dim] + host[self.dim])
        return (*indices[: self.dim], host[self.dim], *indices[self.dim :])

    def pack_with(self, array: Array, guest: Array) -> Array:
        """Host and guest (both already packed) together."""
        wide = guest if guest.ndim == array.ndim else np.expand_dims(guest, self.dim)
        return np.concatenate((array, wide), axis=self.dim)

    def unpack(self, array: Array) -> Array:
        rows = int(self.rows(array.ndim))
        return array[(slice(None),) * self.dim + (slice(0, array.shape[self.dim] - rows),)]

    def unpack_guest(self, array: Array) -> Array:
        """The guest alone, still packed."""
        rows = int(self.rows(array.ndim))
        part = array[(slice(None),) * self.dim + (slice(array.shape[self.dim] - rows, None),)]
        return part if len(self.size) == array.ndim else part.squeeze(self.dim)


STEPS: dict[str, type[LayoutStep]] = {
    kind.__name__: kind for kind in (Split, Reorder, Fuse, Unfold, Pad, StoreAt)
}
"""All kinds of steps by class name."""


def logical_shape(shape: Dims, layout: Sequence[LayoutStep]) -> Dims:
    """The shape before all steps of a layout."""
    for step in reversed(layout):
        shape = step.before(shape)
    return shape


def appended(layout: tuple[LayoutStep, ...], step: LayoutStep) -> tuple[LayoutStep, ...]:
    """The layout with one more step; a step that undoes the last one takes it away instead."""
    if not layout:
        return () if _is_identity(step) else (step,)
    last, rest = layout[-1], layout[:-1]
    match last, step:
        case Split(), Fuse() if step.dim == last.dim and len(step.sizes) == 2:
            return rest
        case Fuse(), Split() if step.dim == last.dim and last.sizes[-1] == step.factor:
            inner = last.sizes[:-1]
            return rest if len(inner) == 1 else (*rest, Fuse(last.dim, inner))
        case Reorder(), Reorder():
            return appended(rest, Reorder(tuple([last.order[d] for d in step.order])))
    return layout if _is_identity(step) else (*layout, step)


def _is_identity(step: LayoutStep) -> bool:
    return isinstance(step, Reorder) and step.order == tuple(range(len(step.order)))


def parse_step(text: str, resolve: Callable[[str], object] | None = None) -> LayoutStep:
    """The inverse of `str(step)`; `resolve` gives the expression for a symbolic size's text."""
    step = _step(ast.parse(text, mode="eval").body, resolve)
    if not isinstance(step, LayoutStep):
        raise ValueError(f"`{text}` is not a layout step")  # noqa: TRY004 (a text, not a type)
    return step


def word_of(kind: type[LayoutStep]) -> str:
    """The word for a kind of step in texts: `store_at` for `StoreAt`."""
    return "store_at" if kind is StoreAt else kind.__name__.lower()


_BY_WORD = {word_of(kind): kind for kind in STEPS.values()}


def _step(tree: ast.expr, resolve: Callable[[str], object] | None) -> Any:
    match tree:
        case ast.Call(func=ast.Name(id=word), args=args) if word in _BY_WORD:
            return _BY_WORD[word](*[_step(a, resolve) for a in args])
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return tuple([_step(p, resolve) for p in parts])
        case ast.Constant(value=value):
            return value
    text = ast.unparse(tree)
    if resolve is None:
        raise ValueError(f"`{text}` is not part of a layout step")
    return resolve(text)


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, LayoutStep):
        return str(value)
    return str(getattr(value, "name", None) or repr(value))


def _replaced(values: Dims, position: int, new: Dim) -> Dims:
    return (*values[:position], new, *values[position + 1 :])


def _product(sizes: Dims) -> Dim:
    result = sizes[0]
    for size in sizes[1:]:
        result = result * size
    return result


def _least(a: Dim, b: int) -> Dim:
    if isinstance(a, int):
        return min(a, b)
    from tilewright.tensor.expr import minimum  # that module imports this one

    return minimum(a, b)


def _padded(array: Array, dim: int, lead: int, tail: int) -> Array:
    widths = [(0, 0)] * array.ndim
    widths[dim] = (lead, tail)
    return np.pad(array, widths) if lead or tail else array
