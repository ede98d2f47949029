"""Writing graphs: operators applied to values, folded at once where the result is known.

    b = Builder("mlp")
    x = b.input("x", f32, (batch, 64))
    y = b.map(lambda v: tir.maximum(v, 0.0), b.matmul(x, b.constant(weights)))
    graph = b.graph([y])

A node whose inputs are constants becomes a constant. Integer tensors computed from shapes have
*known contents*, expressions over sizes, so that `Shape → Gather → Concat → Reshape` gives the new
shape and no node at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from tilewright.dtypes import DType, f32, f64, i64
from tilewright.graph.batches import BATCH_LETTERS, MAX_BATCH, merged_batch
from tilewright.graph.claims import Claims
from tilewright.graph.folding import (
    FREE_ELEMENTS,
    MAX_KNOWN,
    WORK_OF_SIZE,
    Purse,
    TooLarge,
    products_of,
    require_possible,
)
from tilewright.graph.followed import tidied
from tilewright.graph.ir import Array, Graph, Node, Shape, TensorType, Value, array_type
from tilewright.graph.long_sizes import LongSizes
from tilewright.graph.ops import (
    Concat,
    Contract,
    Expand,
    Map,
    Op,
    Reduce,
    Remap,
    Reshape,
    Sizes,
    Tabulate,
    Transpose,
    argument,
    axis,
    computed_as,
)
from tilewright.graph.ops.reduce import reduced_shape
from tilewright.graph.sizes import (
    as_shape,
    broadcast,
    fixed,
    length_of,
    product,
    same_shape,
    sized,
    tidy,
    variables,
)
from tilewright.graph.spread import met, stretched, stretched_batches, widened
from tilewright.tensor import ir as tir
from tilewright.tensor.build import fold_identity

if TYPE_CHECKING:
    from tilewright.graph.guards import Guards

__all__ = ["Builder"]

MAX_SYMBOLIC: Final = 256
"""Elements of a tensor whose contents are followed as expressions."""

MAX_JOINED: Final = 64
"""Tensors that one node joins: more than any network does that relies on joins in place."""


class Builder:
    """Collects nodes in order; `label` names the operator of the model that they stand for.

    What is folded is paid for from `purse`. `spreads`: sizes that meet may differ, if one is one,
    unless they are those of an operator that is `strict`, which are noted in `claims`. Conditions
    on sizes that decide what is built are noted in `guards`.
    """

    spreads = strict = False
    claims: Claims | None = None
    guards: Guards | None = None

    def __init__(self, name: str = "graph", purse: Purse | None = None) -> None:
        self.name = name
        self.label = ""
        self.inputs: list[Value] = []
        self.nodes: list[Node] = []
        self.constants: dict[Value, Array] = {}
        self._contents: dict[Value, Array] = {}
        self._fractions: dict[Value, Array] = {}
        self._long = LongSizes()
        self._names: dict[str, int] = {}
        self._shared: dict[tuple[Op, tuple[Value, ...]], tuple[Value, ...]] = {}
        self.counted: dict[Value, Value] = {}  # the numbers below one that data tells
        self.purse = purse or Purse()

    # ---- values

    def input(self, name: str, dtype: DType, shape: Iterable[int | tir.Expr]) -> Value:
        """An input of the graph."""
        value = Value(self._fresh(name), TensorType(dtype, as_shape(shape)))
        self.inputs.append(value)
        return value

    def constant(self, array: object, name: str = "c", dtype: DType | None = None) -> Value:
        """A tensor that is known now."""
        data = np.asarray(array, dtype=None if dtype is None else dtype.numpy)
        value = Value(self._fresh(name), array_type(data))
        self.constants[value] = data
        return value

    def sizes(self, values: Sequence[int | tir.Expr], dtype: DType = i64) -> Value:
        """A vector of integers that depend on sizes only."""
        contents = np.empty(len(values), dtype=object)
        contents[:] = list(as_shape(values))
        return self._with_contents(contents, dtype)

    def contents(self, value: Value) -> Array | None:
        """What a tensor holds if that is known: numbers, or expressions over sizes."""
        if value in self.constants:
            return self.constants[value]
        return self._contents.get(value)

    def integers(self, value: Value) -> list[tir.Expr] | None:
        """The elements of an integer tensor as index expressions, None if they are not known."""
        held = self.contents(value)
        if held is None or (held.dtype != object and held.dtype.kind not in "iub"):
            return None
        if held.size > MAX_KNOWN:
            return None
        return [
            tir.as_index(e) if isinstance(e, tir.Expr) else tir.Const(int(e)) for e in held.flat
        ]

    def numbers(self, value: Value) -> list[int] | None:
        """The elements of an integer tensor, None if they are not known or depend on sizes."""
        held = self.integers(value)
        found = [fixed(e) for e in held] if held is not None else [None]
        return None if None in found else [n for n in found if n is not None]

    def truth(self, condition: Value) -> bool | None:
        """Whether a condition (a tensor of one element) holds, None if only a run tells."""
        known = self.numbers(condition)
        return None if known is None else bool(known[0])

    # ---- nodes

    def add(self, op: Op, *inputs: Value) -> Value:
        """Apply an operator with one result."""
        (result,) = self.add_all(op, *inputs)
        return result

    def add_all(self, op: Op, *inputs: Value, fold: bool = True) -> tuple[Value, ...]:
        """Apply an operator: known results are folded, an equal node is used again."""
        key = (op, inputs)
        if fold and key in self._shared:
            return self._shared[key]
        results = self._folded(op, inputs) if fold else None
        if results is None:
            types = op.infer([value.type for value in inputs])
            require_possible(types)
            if fold and op.folds and all(is_empty(t) for t in types):
                return tuple(self._empty(t, op.name) for t in types)
            self._long.count(types)
            results = tuple(Value(self._fresh(op.name), t) for t in types)
            self.nodes.append(Node(op, inputs, results, self.label))
            if self.claims is not None:
                self.claims.note(op.meetings([v.type for v in inputs], types), strict=self.strict)
            if fold and len(results) == 1:
                self._follow(op, inputs, results[0])
        if fold:
            self._shared[key] = results
        return results

    def computed(self, op: Op, inputs: Sequence[Value]) -> tuple[Value, ...] | None:
        """What an operator gives of these values, if it has been applied to them."""
        return self._shared.get((op, tuple(inputs)))

    def _empty(self, kind: TensorType, name: str) -> Value:
        """Nothing, which is known whatever it would be computed from: no kernel has to mind it."""
        shape = [fixed(d) for d in kind.shape]
        return self.constant(np.zeros([d or 0 for d in shape], kind.dtype.numpy), name)

    def _follow(self, op: Op, inputs: tuple[Value, ...], result: Value) -> None:
        """Remember how a few floats are computed from sizes: they may become sizes again."""
        known = [self._followed(value) for value in inputs]
        held = [h for h in known if h is not None and h.size <= MAX_SYMBOLIC]
        if result.dtype not in (f32, f64) or len(held) < len(inputs) or not op.folds:
            return
        if not any(h.dtype == object for h in held):
            return
        try:
            (found,) = op.evaluate(held, _number)
            lengths = sum(length_of(e) for e in found.flat if isinstance(e, tir.Expr))
        # What operators cannot do with expressions, or what is too long, is data: nothing is lost.
        except (KeyError, TypeError, ValueError, AttributeError, NotImplementedError, TooLarge):
            return
        if found.dtype == object and self.purse.spends(0, WORK_OF_SIZE * lengths):
            self._fractions[result] = found

    def _followed(self, value: Value) -> Array | None:
        """What a tensor holds if that is known, as far as floats over sizes are."""
        held = self.contents(value)
        return self._fractions.get(value) if held is None else held

    def _folded(self, op: Op, inputs: tuple[Value, ...]) -> tuple[Value, ...] | None:
        held = [self._followed(value) for value in inputs]
        if not inputs or any(h is None for h in held) or isinstance(op, Sizes) or not op.folds:
            return None
        arrays = [h for h in held if h is not None]
        symbolic = any(a.dtype == object for a in arrays)
        if symbolic and max(a.size for a in arrays) > MAX_SYMBOLIC:
            return None
        types = op.infer([value.type for value in inputs])
        if symbolic and not all(t.dtype.is_integer or t.dtype.is_bool for t in types):
            return None
        read = [value.type for value in inputs]
        if not symbolic:
            work = max(products_of(op, read, types), op.unforeseen(arrays))
            if not self.purse.pays(types, read, work) or op.unforeseen(arrays) > FREE_ELEMENTS:
                return None
        try:
            found = op.evaluate(arrays, _number)
        except (KeyError, TypeError, ValueError, AttributeError, NotImplementedError, TooLarge):
            return None  # depends on a size that is not known before a call
        results: list[Value] = []
        for array, kind in zip(found, types, strict=True):
            if array.dtype == object:
                contents = tidied(array, self.purse)
                if contents is None:
                    return None
                results.append(self._with_contents(contents, kind.dtype))
            else:
                results.append(self.constant(array.astype(kind.dtype.numpy, copy=False), op.name))
        return tuple(results)

    def _with_contents(self, contents: Array, dtype: DType) -> Value:
        if all(fixed(e) is not None for e in contents.flat):
            numbers = [fixed(e) for e in contents.flat]
            return self.constant(np.array(numbers, dtype=dtype.numpy).reshape(contents.shape))
        op = Sizes(tuple(contents.flat), contents.shape, dtype)
        (value,) = self.add_all(op)
        self._contents[value] = contents
        return value

    # ---- the core operators by name

    def map(
        self,
        function: Callable[..., tir.Expr],
        *inputs: Value,
        dtype: DType | None = None,
        fold: bool = True,
    ) -> Value:
        """An elementwise function; narrow floats are computed as f32 and stored as they came."""
        args = [argument(k, computed_as(v.dtype)) for k, v in enumerate(inputs)]
        body = function(*args)
        result = dtype or body.dtype
        if dtype is None and body.dtype.is_float and inputs:
            result = next((v.dtype for v in inputs if computed_as(v.dtype) == result), result)
        return self.add_all(Map(body, len(inputs), result), *met(self, inputs), fold=fold)[0]

    def reshape(self, x: Value, shape: Iterable[int | tir.Expr]) -> Value:
        """The same elements in another shape."""
        wanted = as_shape(shape)
        return x if same_shape(x.shape, wanted) else self.add(Reshape(wanted), x)

    def transpose(self, x: Value, order: Sequence[int]) -> Value:
        """Dimensions in another order."""
        return x if list(order) == list(range(x.rank)) else self.add(Transpose(tuple(order)), x)

    def expand(self, x: Value, shape: Iterable[int | tir.Expr]) -> Value:
        """Broadcast to a shape."""
        wanted = as_shape(shape)
        x = widened(self, stretched(self, x, [wanted]), wanted)
        return x if same_shape(x.shape, wanted) else self.add(Expand(wanted), x)

    def remap(
        self,
        x: Value,
        shape: Iterable[int | tir.Expr],
        indices: Callable[..., Sequence[int | tir.Expr]],
        inside: Callable[..., tir.Expr] | None = None,
        fill: float = 0,
    ) -> Value:
        """`out[o…] = x[indices(o…)]` where `inside(o…)`, else `fill`."""
        wanted = as_shape(shape)
        axes = [axis(k) for k in range(len(wanted))]
        places = tuple(tir.as_index(i) for i in indices(*axes))
        where = tir.TRUE if inside is None else inside(*axes)
        return self.add(Remap(wanted, places, where, fill), x)

    def tabulate(
        self, shape: Iterable[int | tir.Expr], value: Callable[..., tir.Expr], dtype: DType = i64
    ) -> Value:
        """`out[o…] = value(o…)`; a constant if no size takes part."""
        wanted = as_shape(shape)
        op = Tabulate(wanted, value(*(axis(k) for k in range(len(wanted)))), dtype)
        known = {axis(k) for k in range(len(wanted))}
        is_known = sized(wanted) is not None and known >= set(variables([op.value]))
        if is_known and self.purse.pays(op.infer(()), (), 0):
            return self.constant(op.evaluate((), _number)[0], op.name)
        return self.add(op)

    def concat(self, values: Sequence[Value], along: int) -> Value:
        """Tensors one after another; many are joined in groups: each is a loop of a kernel.

        Many of symbolic sizes are copied one by one, which needs their dimension in front.
        """
        if len(values) == 1:
            return values[0]
        op = Concat(along)
        if op.is_copied([value.shape for value in values]):
            order = [along, *(d for d in range(values[0].rank) if d != along)]
            if all(fixed(dim) == 1 for dim in values[0].shape[:along]):
                return self.add(op, *values)
            joined = self.add(Concat(0), *(self.transpose(value, order) for value in values))
            return self.transpose(joined, [order.index(d) for d in range(values[0].rank)])
        if len(values) <= MAX_JOINED:
            return self.add(op, *values)
        size = -(-len(values) // -(-len(values) // MAX_JOINED))
        parts = (values[k : k + size] for k in range(0, len(values), size))
        return self.concat([self.concat(part, along) for part in parts], along)

    def reduce(
        self, fold: tir.Fold, x: Value, axes: Sequence[int], *, keepdims: bool = True
    ) -> Value:
        """A fold over some dimensions; of nothing it is the value that changes nothing."""
        if any(fixed(x.shape[k]) == 0 for k in axes):
            start = self.constant(fold_identity(fold, x.dtype).value, "start", x.dtype)
            folded = self.expand(start, reduced_shape(x.shape, axes))
        else:
            folded = self.add(Reduce(fold, tuple(axes)), x) if axes else x
        if keepdims or not axes:
            return folded
        kept = [d for position, d in enumerate(x.shape) if position not in axes]
        return self.reshape(folded, kept)

    def contract(
        self,
        left: str,
        right: str,
        result: str,
        a: Value,
        b: Value,
        dtype: DType | None = None,
        *,
        broadcasts: bool = False,
    ) -> Value:
        """A sum of products with dimensions named by letters; as `dtype`, or that of `a`.

        What is summed over has one size, unless a letter that stands for one `broadcasts`.
        """
        op = Contract(left, right, result, dtype or a.dtype)
        if self.claims is not None and not broadcasts:
            letters = {*left}.intersection(right).difference(result)
            pairs = [(a.shape[left.index(c)], b.shape[right.index(c)]) for c in letters]
            self.claims.note(pairs, strict=True)
        summed = (*zip(left, a.shape, strict=True), *zip(right, b.shape, strict=True))
        if any(fixed(dim) == 0 for letter, dim in summed if letter not in result):
            (kind,) = op.infer([a.type, b.type])
            return self.expand(self.constant(0, "zero", kind.dtype), kind.shape)
        return self.add(op, a, b)

    def matmul(self, a: Value, b: Value, dtype: DType | None = None) -> Value:
        """NumPy's `a @ b`; as `dtype`, or that of `a`.

        All rows of a stack that meets one matrix are one matrix: the product is then a plain one.
        """
        if a.rank == 1 and b.rank == 1:
            return self.contract("k", "k", "", a, b, dtype)
        if a.rank == 1:
            product_ = self.matmul(self.reshape(a, (1, *a.shape)), b, dtype)
            return self.reshape(product_, [*product_.shape[:-2], product_.shape[-1]])
        if b.rank == 1:
            product_ = self.matmul(a, self.reshape(b, (*b.shape, 1)), dtype)
            return self.reshape(product_, product_.shape[:-1])
        if b.rank == 2:
            rows = product(a.shape[:-1])
            stacked = self.reshape(a, (rows, a.shape[-1]))
            flat = self.contract("mk", "kn", "mn", stacked, b, dtype)
            return self.reshape(flat, (*a.shape[:-1], b.shape[-1]))
        a, b = stretched_batches(self, a, b)
        batch = broadcast(a.shape[:-2], b.shape[:-2])
        merged = merged_batch(a.shape[:-2], b.shape[:-2]) if len(batch) > MAX_BATCH else None
        if merged is not None:
            left, right = (
                self.reshape(x, (*dims, *x.shape[-2:]))
                for x, dims in zip((a, b), merged, strict=True)
            )
            product_ = self.matmul(left, right, dtype)
            return self.reshape(product_, (*batch, *product_.shape[-2:]))
        letters = BATCH_LETTERS[: len(batch)]
        a, b = (widened(self, x, (*batch, *x.shape[-2:])) for x in (a, b))
        own_a, a = self._batch(a, letters, batch)
        own_b, b = self._batch(b, letters, batch)
        return self.contract(f"{own_a}mk", f"{own_b}kn", f"{letters}mn", a, b, dtype)

    def _batch(self, x: Value, letters: str, batch: Shape) -> tuple[str, Value]:
        """The letters of an operand's batch dimensions, those of size one dropped."""
        own = letters[len(letters) - (x.rank - 2) :]
        wide = batch[len(batch) - (x.rank - 2) :]
        kept = [
            k
            for k, (dim, full) in enumerate(zip(x.shape[:-2], wide, strict=True))
            if fixed(dim) != 1 or fixed(full) == 1
        ]
        shape = [x.shape[k] for k in kept]
        return "".join(own[k] for k in kept), self.reshape(x, [*shape, *x.shape[-2:]])

    def graph(self, outputs: Sequence[Value], names: Sequence[str] = ()) -> Graph:
        """The finished graph, without nodes that nobody needs."""
        from tilewright.graph.passes.dead import drop_dead

        whole = Graph(
            self.name,
            tuple(self.inputs),
            tuple(outputs),
            tuple(self.nodes),
            self.constants,
            tuple(names),
            self.purse,
        )
        return drop_dead(whole)

    def _fresh(self, name: str) -> str:
        number = self._names.get(name, -1) + 1
        self._names[name] = number
        return self._fresh(f"{name}_{number}") if number else name


def _number(expr: tir.Expr) -> int:
    number = fixed(tidy(expr))
    if number is None:
        raise KeyError(str(expr))
    return number


def is_empty(kind: TensorType) -> bool:
    """Whether all sizes are known, and one of them is zero."""
    sizes = [fixed(d) for d in kind.shape]
    return 0 in sizes and None not in sizes
