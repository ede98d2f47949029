"""Branches and loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
import onnx

from tilewright.errors import GraphError
from tilewright.frontend.onnx.node import OnnxNode, normal_axis
from tilewright.frontend.onnx.registry import MODEL_PROBLEMS, Declined, Unknown, onnx_op
from tilewright.frontend.onnx.scope import Grown, Item, Stacked, Tensors
from tilewright.graph import Builder, TensorType, Value
from tilewright.graph.guards import holds
from tilewright.graph.loops import G040, G041, Outside, Turn, Way, branch, loop, peeled
from tilewright.graph.nested import Inner, hidden_sizes, only_visible
from tilewright.graph.ops.host import FAIL, Host, failing
from tilewright.graph.sizes import fixed, tidy
from tilewright.shown import quoted
from tilewright.tensor import ir as tir

__all__ = ["Following", "RanksDiffer"]

MAX_WALKED: Final = 1024
"""Nodes that the iterations of a loop over sequences may have together."""

Following = Callable[[Builder, Outside, Sequence[Item]], Sequence[Item]]
"""Imports the rest of a graph with a builder, behind the results of a node."""

Items = Callable[[Builder, Outside], Sequence[Item]]
"""One of two ways to the results of a node."""


@onnx_op("If")
def if_(b: Builder, node: OnnxNode, condition: Value) -> Sequence[Item]:
    """One of two graphs; a condition that is known now leaves only one of them."""
    ways = node.graph("then_branch"), node.graph("else_branch")
    known = b.truth(condition)
    if known is not None:
        return node.build(ways[0] if known else ways[1], b, lambda v: v, [])

    def way(graph: onnx.GraphProto) -> Items:
        return lambda inner, outside: node.build(graph, inner, outside, [])

    return _branched(b, node, condition, way(ways[0]), way(ways[1]))


def _branched(
    b: Builder, node: OnnxNode, condition: Value, then: Items, otherwise: Items
) -> Sequence[Item]:
    """The results of one of two ways; of different ranks, they are a matter of the importer."""

    def plain(way: Items) -> Way:
        return lambda inner, outside: tensors(way(inner, outside))

    try:
        return branch(b, condition, plain(then), plain(otherwise))
    except GraphError as problem:
        if problem.code is not G041:
            raise
    raise RanksDiffer(b, node, condition, (then, otherwise))


class RanksDiffer(Exception):  # noqa: N818  (a signal to the importer, not an error)
    """The branches of a condition give tensors of different ranks: nothing can follow both."""

    def __init__(
        self, b: Builder, node: OnnxNode, condition: Value, ways: tuple[Items, Items]
    ) -> None:
        super().__init__(node.label)
        self.b, self.node, self.condition, self.ways = b, node, condition, ways

    def split(self, following: Following) -> Sequence[Item]:
        """The condition with what follows in each branch; where it cannot follow, a run fails."""
        ways = [self._followed(way, following) for way in self.ways]
        kinds: list[list[TensorType]] = []
        problems: list[str] = []
        for number, way in enumerate(ways):
            try:
                scratch = Inner(self.b, "trial")
                scratch.assume(self.condition, holds=number == 0)
                kinds.append([only_visible(v.type, self.b) for v in way(scratch, scratch.capture)])
            except (Unknown, Declined, GraphError, *MODEL_PROBLEMS) as problem:
                # these are ranks for which the model was not made
                problems.append(
                    f"{quoted(self.node.label)} took a branch that cannot go on: {problem}"
                )
                failed = number
        if len(problems) == 2:
            raise Unknown(problems[0])
        if problems:
            ways[failed] = lambda inner, _: fails(inner, problems[0], kinds[0])
        try:
            return branch(self.b, self.condition, *ways)
        except GraphError as problem:  # the ranks differ even at the end of this graph
            return self._decided(following, problem)

    def _decided(self, following: Following, problem: GraphError) -> Sequence[Item]:
        """One branch with what follows, if sizes choose it: a guard decides."""
        told = self.b.integers(self.condition)
        if told is None:
            raise Unknown(problem.summary())
        is_first = holds(self.b, told[0], "the condition")
        way = self.ways[0 if is_first else 1]
        return following(self.b, lambda v: v, way(self.b, lambda v: v))

    @staticmethod
    def _followed(way: Items, following: Following) -> Way:
        return lambda inner, outside: tensors(following(inner, outside, way(inner, outside)))


def fails(b: Builder, message: str, kinds: Sequence[TensorType]) -> list[Value]:
    """Results that no run gets: it ends with the message instead."""
    op = Host(FAIL, message.encode(), "fail", tuple(kinds), failing(message))
    return list(b.add_all(op, fold=False))


@onnx_op("Loop", sequences=True)
def loop_(
    b: Builder, node: OnnxNode, limit: Value | None, condition: Value | None, *carried: Item
) -> Sequence[Item]:
    """A body again and again, as long as it says so and at most as often as the limit."""
    if any(not isinstance(item, Value) for item in carried):
        try:
            return _walked(b, node, limit, condition, carried)
        except Unknown:
            if not _only_appends(node.graph("body"), carried):
                raise
            return _growing(b, node, limit, condition, carried)
    graph = node.graph("body")
    initial = tensors(carried)
    handed = _handed_on(graph, len(initial))
    states = [v for k, v in enumerate(initial) if k not in handed]

    def body(inner: Builder, step: Value, values: Sequence[Value], outside: Outside) -> Turn:
        always, left = inner.constant(np.bool_(1)), iter(values)
        own = [outside(v) if k in handed else next(left) for k, v in enumerate(initial)]
        found = tensors(node.build(graph, inner, outside, [step, always, *own]))
        after, collected = found[1 : 1 + len(own)], found[1 + len(own) :]
        changed = [v for k, v in enumerate(after) if k not in handed]
        return Turn(changed, collected, found[0], _declared(graph, collected))

    def arranged(results: Sequence[Value], outside: Outside) -> list[Value]:
        last = iter(results[: len(states)])
        own = [outside(v) if k in handed else next(last) for k, v in enumerate(initial)]
        return [*own, *results[len(states) :]]

    try:
        return arranged(_looped(b, node, body, limit, states, condition), lambda v: v)
    except GraphError as problem:
        if problem.code is not G041:
            raise
    first = peeled(b, body, limit, states, condition)
    then, otherwise = (
        lambda inner, outside, way=way: arranged(way(inner, outside), outside)
        for way in (first.then, first.otherwise)
    )
    raise RanksDiffer(b, node, first.condition, (then, otherwise))


def _handed_on(graph: onnx.GraphProto, count: int) -> set[int]:
    """Which of the carried values a body gives back as they came: these are values of the outside.

    Exporters carry the weights of a loop and the length of what it reads.
    """
    same = {node.output[0]: node.input[0] for node in graph.node if _is_identity(node)}
    pairs = zip(graph.input[2 : 2 + count], graph.output[1 : 1 + count], strict=False)
    return {k for k, (own, after) in enumerate(pairs) if _origin(after.name, same) == own.name}


def _is_identity(node: onnx.NodeProto) -> bool:
    return node.op_type == "Identity" and not node.domain and len(node.input) == 1


def _origin(name: str, same: Mapping[str, str]) -> str:
    """Where a value comes from, through nodes that do nothing."""
    seen = set[str]()
    while name in same and name not in seen:
        seen.add(name)
        name = same[name]
    return name


def _declared(graph: onnx.GraphProto, collected: Sequence[Value]) -> list[list[int]]:
    """The sizes that a body declares of what it collects; zero for those that it does not."""
    declared = graph.output[len(graph.output) - len(collected) :]
    sizes = [[max(d.dim_value, 0) for d in info.type.tensor_type.shape.dim] for info in declared]
    pairs = zip(sizes, collected, strict=True)
    return [dims if len(dims) == value.rank else [0] * value.rank for dims, value in pairs]


def _walked(
    b: Builder,
    node: OnnxNode,
    limit: Value | None,
    condition: Value | None,
    carried: Sequence[Item],
) -> Sequence[Item]:
    """A loop over sequences, one iteration after another: in each, their lengths are known."""
    graph = node.graph("body")
    goes_on, rows = bool(_told(b, condition, 1)), list[list[Value]]()
    while goes_on and len(rows) < _told(b, limit, MAX_WALKED + 1):
        if len(rows) * len(graph.node) >= MAX_WALKED:
            raise Unknown("a long loop over sequences")
        begin = [b.constant(np.int64(len(rows))), b.constant(np.bool_(1))]
        found = node.build(graph, b, lambda v: v, [*begin, *carried])
        goes_on = bool(_told(b, found[0], 1))
        carried = found[1 : 1 + len(carried)]
        rows.append([b.reshape(v, (1, *v.shape)) for v in tensors(found[1 + len(carried) :])])
    columns = list(zip(*rows, strict=True))
    if len(columns) < len(graph.output) - 1 - len(carried):
        raise Unknown("a loop over sequences that collects nothing")
    return [*carried, *(b.concat(column, 0) for column in columns)]


def _only_appends(graph: onnx.GraphProto, carried: Sequence[Item]) -> bool:
    """Whether the nodes of a body do nothing else with the sequences that it is given."""
    pairs = zip(graph.input[2:], carried, strict=True)
    names = {info.name for info, item in pairs if not isinstance(item, Value)}
    readers = [node for node in graph.node if names & set(node.input)]
    return all(node.op_type == "SequenceInsert" and len(node.input) == 2 for node in readers)


def _growing(
    b: Builder,
    node: OnnxNode,
    limit: Value | None,
    condition: Value | None,
    carried: Sequence[Item],
) -> Sequence[Item]:
    """A loop whose iterations do nothing with sequences but to append: these are collected.

    Elements must have one shape, whatever the iteration.
    """
    graph, initial = node.graph("body"), [v for v in carried if isinstance(v, Value)]
    sequences = [v for v in carried if isinstance(v, Tensors | Stacked)]
    if len(initial) + len(sequences) < len(carried):
        raise Unknown("control flow over sequences")

    def body(inner: Builder, step: Value, values: Sequence[Value], outside: Outside) -> Turn:
        left = iter(values)
        own = [next(left) if isinstance(v, Value) else Grown() for v in carried]
        found = node.build(graph, inner, outside, [step, inner.constant(np.bool_(1)), *own])
        after = found[1 : 1 + len(own)]
        pairs = list(zip(own, after, strict=True))
        kept = tensors([new for old, new in pairs if isinstance(old, Value)])
        grown = [_appended(inner, new) for old, new in pairs if isinstance(old, Grown)]
        collected = tensors(found[1 + len(own) :])
        empty = [*([0] * v.rank for v in grown), *_declared(graph, collected)]
        return Turn(kept, [*grown, *collected], tensors(found[:1])[0], empty)

    results = _looped(b, node, body, limit, initial, condition)
    last, rest = iter(results[: len(initial)]), results[len(initial) :]
    stacks = iter([_extended(b, v, x) for v, x in zip(sequences, rest, strict=False)])
    after = [next(last) if isinstance(v, Value) else next(stacks) for v in carried]
    return [*after, *rest[len(sequences) :]]


def _appended(b: Builder, item: Item) -> Value:
    """What an iteration appends, stacked."""
    if not isinstance(item, Grown) or not item.items:
        raise Unknown("a loop over sequences that appends nothing")
    first = item.items[0]
    hidden = hidden_sizes(first.shape, b.outer) if isinstance(b, Inner) else ()
    if hidden or any(v.type != first.type for v in item.items):
        raise Unknown("a loop appends elements of different shapes to a sequence")
    return b.concat([b.reshape(v, (1, *v.shape)) for v in item.items], 0)


def _extended(b: Builder, before: Tensors | Stacked, turns: Value) -> Stacked:
    """A sequence and, behind it, what each iteration has appended."""
    count = tidy(turns.shape[0] * turns.shape[1])
    added = b.reshape(turns, (count, *turns.shape[2:]))
    if isinstance(before, Stacked):
        parts = [before.stack, added]
    else:
        parts = [*(b.reshape(v, (1, *v.shape)) for v in before.items), added]
    if any(p.dtype != added.dtype or p.shape[1:] != added.shape[1:] for p in parts):
        raise Unknown("a loop appends elements of different shapes to a sequence")
    return Stacked(b.concat(parts, 0))


def _told(b: Builder, value: Item, default: int) -> int:
    """The number that a loop over sequences must know."""
    known = [default] if value is None else b.numbers(tensors([value])[0])
    if known is None:
        raise Unknown("how often a loop over sequences runs depends on data")
    return known[0]


def _looped(
    b: Builder,
    node: OnnxNode,
    body: Callable[..., Turn],
    limit: Value | None,
    carried: Sequence[Value],
    condition: Value | None = None,
) -> list[Value]:
    try:
        return loop(b, body, limit, carried, condition)
    except GraphError as problem:
        if problem.code is not G040:
            raise
        node.decline(str(problem))


@onnx_op("Scan")
def scan(b: Builder, node: OnnxNode, *inputs: Value | None) -> Sequence[Value]:
    """A body for each element of tensors along an axis, forwards or backwards."""
    if node.opset < 9:
        return _batched_scan(b, node, *inputs)
    values = tensors(inputs)
    count = _walked_along(node, values)
    states, scanned = values[: len(values) - count], values[len(values) - count :]
    results = len(node.graph("body").output) - len(states)
    axes = node.ints("scan_input_axes") or [0] * count
    axes = [normal_axis(a, x.rank) for a, x in zip(axes, scanned, strict=True)]
    backward = node.ints("scan_input_directions") or [0] * count
    found = _scanned(b, node, states, list(zip(scanned, axes, backward, strict=True)))
    stacked = found[len(states) :]
    out_axes = node.ints("scan_output_axes") or [0] * results
    reverse = node.ints("scan_output_directions") or [0] * results
    arranged = [
        _arranged(b, x, normal_axis(axis, x.rank), bool(back))
        for x, axis, back in zip(stacked, out_axes, reverse, strict=True)
    ]
    return [*found[: len(states)], *arranged]


def _walked_along(node: OnnxNode, values: Sequence[Value]) -> int:
    """How many of the inputs, the last ones, have an element for each iteration."""
    count = node.int("num_scan_inputs")
    if not 1 <= count <= len(values):
        raise ValueError(f"it walks along {count} of {len(values)} inputs")
    return count


def _batched_scan(
    b: Builder, node: OnnxNode, lengths: Value | None, *inputs: Value | None
) -> Sequence[Value]:
    """Before opset 9 there is a batch in front of all inputs, and the axis is the one behind it."""
    if lengths is not None:
        node.decline("sequences of different lengths")
    values = tensors(inputs)
    count = _walked_along(node, values)
    backward = node.ints("directions") or [0] * count

    def body(inner: Builder, step: Value, _: Sequence[Value], outside: Outside) -> Turn:
        place = _place(inner, step)
        parts = [_part(inner, outside(x), 0, place) for x in values]
        states, scanned = parts[: len(parts) - count], parts[len(parts) - count :]
        sides = [(x, 0, back) for x, back in zip(scanned, backward, strict=True)]
        return Turn([], _scanned(inner, node, states, sides, outside))

    return _looped(b, node, body, b.sizes([values[0].shape[0]]), [])


def _scanned(
    b: Builder,
    node: OnnxNode,
    states: Sequence[Value],
    scanned: Sequence[tuple[Value, int, int]],
    around: Outside = lambda v: v,
) -> list[Value]:
    """The last states, then all results stacked; tensors come with their axis and direction."""
    graph = node.graph("body")
    first, first_axis, _ = scanned[0]

    def body(inner: Builder, step: Value, values: Sequence[Value], outside: Outside) -> Turn:
        place = _place(inner, step)
        parts = [
            _part(inner, outside(x), axis, x.shape[axis] - 1 - place if back else place)
            for x, axis, back in scanned
        ]
        reach = lambda v: outside(around(v))  # noqa: E731
        found = tensors(node.build(graph, inner, reach, [*values, *parts]))
        collected = found[len(values) :]
        return Turn(found[: len(values)], collected, empty=_declared(graph, collected))

    return _looped(b, node, body, b.sizes([first.shape[first_axis]]), states)


def _place(b: Builder, step: Value) -> tir.Expr:
    """The number of an iteration as an expression."""
    known = b.integers(step)
    assert known is not None, "iterations have numbers that are known inside"
    return known[0]


def _part(b: Builder, x: Value, axis: int, place: tir.Expr) -> Value:
    """One element along an axis."""
    shape = [d for k, d in enumerate(x.shape) if k != axis]
    return b.remap(x, shape, lambda *o: [*o[:axis], place, *o[axis:]])


def _arranged(b: Builder, x: Value, axis: int, backward: bool) -> Value:  # noqa: FBT001
    """Stacked elements along their axis, in order."""
    length = x.shape[0]
    if backward and fixed(length) != 1:
        x = b.remap(x, x.shape, lambda first, *o: [length - 1 - first, *o])
    return b.transpose(x, [*range(1, axis + 1), 0, *range(axis + 1, x.rank)])


def tensors(items: Sequence[Item]) -> list[Value]:
    """Items that must be single values."""
    found: list[Value] = []
    for item in items:
        if not isinstance(item, Value):
            raise Unknown("control flow over sequences")
        found.append(item)
    return found
