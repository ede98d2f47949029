"""Operators that move elements and compute nothing.

`Reshape`, `Transpose` and `Expand` keep their names because passes move and cancel them; every
other movement whose places are known without data (slices, padding, flips, tiling,
nearest-neighbour resizing, depth-to-space, …) is a `Remap`: an index expression for each dimension
of the source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tilewright.errors import Code, GraphError
from tilewright.graph.folding import require_small
from tilewright.graph.ir import Array, Shape, TensorType
from tilewright.graph.ops.ends import ends, require_limits
from tilewright.graph.ops.map import broadcast_index, broadcast_meetings, evaluate_expr
from tilewright.graph.ops.op import Limit, Op, Role, SizeOf, computed_as
from tilewright.graph.sizes import as_shape, dims_equal, fixed, never_exceeds, product, total
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.build import Tensor, compute, seq
from tilewright.tensor.printer import print_node
from tilewright.tensor.same import always_the_same
from tilewright.tensor.visit import substitute

__all__ = ["Concat", "Expand", "Remap", "Reshape", "Spread", "Transpose", "axis"]

G010 = Code("G010", "{elements} elements do not fill the shape [{shape}]")
G011 = Code("G011", "tensors that are joined along axis {axis} differ in dimension {dimension}")


@always_the_same
def axis(position: int) -> tir.Var:
    """The variable of an output dimension in a `Remap`; always the same one."""
    return tir.Var(f"o{position}")


@dataclass(frozen=True)
class Reshape(Op):
    """The same elements in order, with another shape. Between kernels it costs nothing."""

    role = Role.VIEW

    shape: Shape

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        (source,) = inputs
        before, after = product(source.shape), product(self.shape)
        if fixed(before) is not None and fixed(after) is not None and fixed(before) != fixed(after):
            shown = ", ".join(map(print_node, self.shape))
            hint = "give a shape with as many elements"
            raise GraphError(G010, {"elements": print_node(before), "shape": shown}, hint=hint)
        return [TensorType(source.dtype, self.shape)]

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        return [np.reshape(arrays[0], [size_of(d) for d in self.shape])]

    def assumptions(
        self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]
    ) -> Iterator[tuple[tir.Expr, tir.Expr]]:
        yield product(inputs[0].shape), product(self.shape)

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        (source,) = inputs

        parts = _parts(source.shape, self.shape)

        def element(*indices: tir.Expr) -> tir.Expr:
            places: list[tir.Expr] = []
            for before, after in parts:
                flat: tir.Expr = tir.Const(0)
                for dim, index in zip(self.shape[after], indices[after], strict=True):
                    flat = flat * dim + index
                places += _digits(flat, source.shape[before])
            return source[tuple(places)]

        return [_copied(names[0], self.shape, element, source)]


def _parts(before: Shape, after: Shape) -> list[tuple[slice, slice]]:
    """Stretches of dimensions that hold the same elements, as short as they can be told apart.

    `[n, s, 768]` as `[n, s, 12, 64]` keeps two dimensions and cuts only the third.
    """
    parts: list[tuple[slice, slice]] = []
    first, start = 0, 0
    for end in range(1, len(after) + 1):
        taken = product(after[start:end])
        last = next(
            (
                k
                for k in range(first, len(before) + 1)
                if dims_equal(product(before[first:k]), taken)
            ),
            None,
        )
        if last is not None and end < len(after):
            parts.append((slice(first, last), slice(start, end)))
            first, start = last, end
    return [*parts, (slice(first, len(before)), slice(start, len(after)))]


def _digits(flat: tir.Expr, shape: Sequence[tir.Expr]) -> tuple[tir.Expr, ...]:
    """The place of the element with this number in row-major order."""
    result: list[tir.Expr] = [tir.Const(0)] * len(shape)
    several = [k for k, dim in enumerate(shape) if fixed(dim) != 1]
    for k in reversed(several):
        result[k] = flat if k == several[0] else flat % shape[k]
        flat = flat // shape[k]
    return tuple(result)


def _copied(name: str, shape: Shape, element: object, source: Tensor) -> Tensor:
    """A stage that stores elements of `source` as they are."""
    stage: Tensor = compute(
        name,
        shape,
        lambda *i: element(*i).to(source.dtype),  # type: ignore[operator]
        source.dtype,
    )
    return stage


@dataclass(frozen=True)
class Transpose(Op):
    """Dimension `d` of the result is dimension `order[d]` of the source."""

    role = Role.MOVE

    order: tuple[int, ...]

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        (source,) = inputs
        if sorted(self.order) != list(range(source.rank)):
            raise ValueError(f"{list(self.order)} is no order of {source.rank} dimensions")
        return [TensorType(source.dtype, tuple(source.shape[d] for d in self.order))]

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        return [np.transpose(arrays[0], self.order)]

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        (source,) = inputs
        shape = tuple(source.shape[d] for d in self.order)

        def element(*indices: tir.Expr) -> tir.Expr:
            return source[tuple(indices[self.order.index(d)] for d in range(len(self.order)))]

        return [_copied(names[0], shape, element, source)]


@dataclass(frozen=True)
class Expand(Op):
    """Broadcast to a shape: dimensions of size one are repeated, missing ones added in front."""

    role = Role.MOVE

    shape: Shape

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        return [TensorType(inputs[0].dtype, self.shape)]

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        return [np.array(np.broadcast_to(arrays[0], [size_of(d) for d in self.shape]))]

    def meetings(
        self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]
    ) -> Iterator[tuple[tir.Expr, tir.Expr]]:
        yield from broadcast_meetings(inputs[0].shape, self.shape)

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        (source,) = inputs

        def element(*indices: tir.Expr) -> tir.Expr:
            return source[broadcast_index(source.shape, indices)]

        return [_copied(names[0], self.shape, element, source)]


@dataclass(frozen=True)
class Spread:
    """Dimensions of one element or none, and what they are repeated to.

    There must be an element if there is any in the result, also if other dimensions are empty. That
    is checked before anything runs: kernels know nothing of it, so it hides its expressions.
    """

    pairs: tuple[tuple[tir.Expr, tir.Expr], ...] = ()


@dataclass(frozen=True)
class Remap(Op):
    """`out[o0, o1, …] = in[indices] if inside else fill`; `indices` are expressions over `axis(k)`.

    Where `inside` does not hold the indices may lie anywhere; elsewhere they are inside.
    """

    role = Role.MOVE

    shape: Shape
    indices: tuple[tir.Expr, ...]
    inside: tir.Expr = tir.TRUE
    fill: float | bool = 0
    spread: Spread = Spread()

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        result = [TensorType(inputs[0].dtype, self.shape)]
        require_small((*self.indices, self.inside))
        require_limits(self.limits(inputs, result))
        return result

    def limits(
        self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]
    ) -> Iterator[Limit]:
        if self.inside != tir.TRUE:
            return
        for place, dim in zip(self.indices, inputs[0].shape, strict=True):
            found = ends(place, self._extents)
            if found is None:  # brought inside, where there is an element to be brought to
                yield tir.Const(1), dim, self.shape
            else:
                yield tir.Const(0), found[0], self.shape
                yield as_shape([found[1] + 1])[0], dim, self.shape

    def meetings(
        self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]
    ) -> Iterator[tuple[tir.Expr, tir.Expr]]:
        yield from ((product(pair), pair[1]) for pair in self.spread.pairs)

    def doubtful(self, source: Shape) -> Shape:
        """Dimensions of a source that may be zero although there is a result: all of it is `fill`.

        Both sides of a select are evaluated, and a source without elements has no place that an
        index could be brought to: no kernel may read one.
        """
        if self.inside == tir.TRUE or any(fixed(d) == 0 for d in source):
            return ()
        return tuple(d for d in source if not never_exceeds(tir.Const(1), d, self.shape))

    @property
    def _extents(self) -> dict[tir.Var, tir.Expr]:
        return {axis(k): d for k, d in enumerate(self.shape)}

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        (source,) = arrays
        shape = tuple(size_of(d) for d in self.shape)
        if 0 in shape:
            return [np.zeros(shape, source.dtype)]
        grid = np.ogrid[tuple(slice(0, d) for d in shape)]
        bound: dict[tir.Var, object] = {axis(k): g for k, g in enumerate(grid)}
        places = [evaluate_expr(i, bound, size_of) for i in self.indices]
        inside = np.broadcast_to(evaluate_expr(self.inside, bound, size_of), shape)
        if 0 in source.shape:
            taken = np.zeros(shape, source.dtype)
        else:
            limits = [np.clip(p, 0, d - 1) for p, d in zip(places, source.shape, strict=True)]
            taken = np.broadcast_to(source[tuple(limits)], shape)
        if source.dtype == object:
            return [np.where(inside, taken, np.full(shape, int(self.fill), dtype=object))]
        fill = np.asarray(self.fill).astype(source.dtype)
        return [np.where(inside, taken, fill).astype(source.dtype)]

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        (source,) = inputs
        always = self.inside == tir.TRUE
        within = [
            self._is_within(i, dim) for i, dim in zip(self.indices, source.shape, strict=True)
        ]
        fill = tir.const(self.fill, computed_as(source.dtype))

        def element(*indices: tir.Expr) -> tir.Expr:
            values = {axis(k): i for k, i in enumerate(indices)}
            places = [substitute(i, values) for i in self.indices]
            held = [
                i if safe else tir.maximum(tir.minimum(i, dim - 1), 0)
                for i, dim, safe in zip(places, source.shape, within, strict=True)
            ]
            taken = source[tuple(held)]
            return taken if always else tir.Select(substitute(self.inside, values), taken, fill)

        if any(fixed(dim) == 0 for dim in source.shape):  # nothing is inside of nothing
            return [_copied(names[0], self.shape, lambda *_: fill, source)]
        return [_copied(names[0], self.shape, element, source)]

    def _is_within(self, index: tir.Expr, dim: tir.Expr) -> bool:
        """Whether an index needs no help to stay inside, wherever `inside` and `limits` hold."""
        if self.inside == tir.TRUE and ends(index, self._extents) is not None:
            return True
        if self.inside != tir.TRUE:
            own = self._extents.get(index) if isinstance(index, tir.Var) else None
            return own is not None and never_exceeds(own, dim, self.shape)
        analyzer = Analyzer(self._extents).assume(tir.Const(1) <= dim)
        return analyzer.prove((tir.Const(0) <= index) & (index < dim)) is True

    def attributes(self) -> dict[str, object]:
        shown: dict[str, object] = {"shape": self.shape, "indices": self.indices}
        if self.inside != tir.TRUE:
            shown |= {"inside": self.inside, "fill": self.fill}
        return shown | ({"spread": self.spread.pairs} if self.spread.pairs else {})


MAX_SYMBOLIC: Final = 16
"""Tensors of symbolic sizes that one kernel joins: more than the levels of any detector."""


@dataclass(frozen=True)
class Concat(Op):
    """Tensors one after another along a dimension."""

    linear = True

    axis: int

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        first = inputs[0]
        for source in inputs:
            for d, (a, b) in enumerate(zip(first.shape, source.shape, strict=True)):
                both = fixed(a) is not None and fixed(b) is not None
                if d != self.axis and both and not dims_equal(a, b):
                    hint = "make them equal in all other dimensions"
                    raise GraphError(G011, {"axis": self.axis, "dimension": d}, hint=hint)
        shape = [*first.shape]
        for d in range(len(shape)):  # a number says more than a symbol that must equal it
            known = next((s.shape[d] for s in inputs if fixed(s.shape[d]) is not None), shape[d])
            shape[d] = known
        shape[self.axis] = total([source.shape[self.axis] for source in inputs])
        return [TensorType(first.dtype, as_shape(shape))]

    def is_copied(self, shapes: Sequence[Shape]) -> bool:
        """Whether each tensor is copied to its place by a kernel of its own.

        In a kernel for many of symbolic sizes every place would be a sum of all those before it.
        """
        return len(shapes) > MAX_SYMBOLIC and any(fixed(s[self.axis]) is None for s in shapes)

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        return [np.concatenate(list(arrays), self.axis)]

    def assumptions(
        self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]
    ) -> Iterator[tuple[tir.Expr, tir.Expr]]:
        for source in inputs:
            pairs = zip(source.shape, outputs[0].shape, strict=True)
            yield from (pair for d, pair in enumerate(pairs) if d != self.axis)

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        types = [TensorType(t.dtype, t.shape) for t in inputs]
        (result,) = self.infer(types)
        buffer = tir.Buffer(names[0], result.shape, result.dtype)
        parts: list[tir.Stmt] = []
        offset: tir.Expr = tir.Const(0)
        for number, source in enumerate(inputs):
            parts.append(_piece(f"{names[0]}_{number}", buffer, source, self.axis, offset))
            offset = as_shape([offset + source.shape[self.axis]])[0]
        return [Tensor(buffer, seq(*parts), tuple(dict.fromkeys(inputs)))]


def _piece(name: str, buffer: tir.Buffer, source: Tensor, where: int, offset: tir.Expr) -> tir.Stmt:
    """Loops that copy `source` into `buffer` from `offset` on."""
    from tilewright.tensor.build import make_block

    loops = [tir.Var(f"i{d}") for d in range(len(source.shape))]
    iters = tuple(tir.Iter(tir.Var(f"vi{d}"), extent) for d, extent in enumerate(source.shape))
    place = [it.var for it in iters]
    target: list[tir.Expr] = list(place)
    target[where] = place[where] + offset
    store = tir.Store(buffer, tuple(target), tir.Load(source.buffer, tuple(place)))
    nest: tir.Stmt = make_block(name, iters, tuple(loops), store)
    for loop, it in zip(reversed(loops), reversed(iters), strict=True):
        nest = tir.For(loop, it.extent, nest)
    return nest
