"""Operators that move elements: reshapes, transposes, slices, pads, joins."""

from __future__ import annotations

from typing import Final

import numpy as np
from onnx import TensorProto

from fuzz.case import Array
from fuzz.grow import Growth, Value, require
from fuzz.rules.ranks import squeeze_all, view_by_sizes
from fuzz.rules.reductions import axes_of, axis_of
from fuzz.values import INTEGERS, numpy_type, random_array

__all__ = ["RULES"]

ASKS: Final = ("Greater", "Less", "GreaterOrEqual", "Equal", "Max", "Min")
"""What a model may want to know of sizes."""


def reshape(g: Growth, op: str) -> None:
    """Neighbouring axes are joined or cut; 0 keeps an axis, -1 is what remains."""
    if g.ones and g.draw.random() < 0.5:
        view_by_sizes(g, op)
        return
    x = g.pick(g.types(op))
    kind = g.draw.choice(("flat", "join", "same", "cut", "ones"))
    shape: list[int] = [0] * x.rank
    if kind == "flat":
        shape = [-1]
    elif kind == "ones":
        shape = [*shape, 1] if x.rank < 5 else shape
    elif kind == "join":
        require(x.rank >= 2)
        at = g.draw.randrange(x.rank - 1)
        shape = [0] * at + [-1] + [x.shape[k] for k in range(at + 2, x.rank)]
    elif kind == "cut":
        require(x.rank and x.rank < 5)
        at = g.draw.randrange(x.rank)
        factors = [d for d in range(1, x.shape[at] + 1) if x.shape[at] % d == 0]
        require(factors)
        shape = (
            [0] * at + [g.draw.choice(factors), -1] + [x.shape[k] for k in range(at + 1, x.rank)]
        )
    require(x.all(lambda a: a.size) or kind == "same", "-1 of nothing")
    g.add(op, [x, g.told(shape)])


def transpose(g: Growth, op: str) -> None:
    x = g.pick(g.types(op), low=1)
    order = g.draw.sample(range(x.rank), x.rank)
    g.add(op, [x], perm=order if g.draw.random() < 0.85 else None)


def squeeze(g: Growth, op: str) -> None:
    if g.ones and g.draw.random() < 0.7:
        squeeze_all(g, op)
        return
    x = g.pick(g.types(op), low=1)
    ones = [k for k in range(x.rank) if {a.shape[k] for a in x.arrays} == {1}]
    axes = g.draw.sample(ones, g.draw.randint(1, len(ones))) if ones else []
    require(axes or op != "Squeeze", "nothing to squeeze")
    if g.opset < 13:
        g.add(op, [x], axes=sorted(axes))
    else:
        g.add(op, [x, g.parameter(np.array(axes, np.int64))])


def unsqueeze(g: Growth, op: str) -> None:
    x = g.pick(g.types(op), high=3)
    rank = x.rank + g.draw.randint(1, 2)
    axes = g.draw.sample(range(rank), rank - x.rank)
    if g.opset >= 11:
        axes = [a - rank if g.draw.random() < 0.3 else a for a in axes]
    if g.opset < 13:
        g.add(op, [x], axes=axes)
    else:
        g.add(op, [x, g.parameter(np.array(axes, np.int64))])


def flatten(g: Growth, op: str) -> None:
    x = g.pick(g.types(op), low=1)
    g.add(op, [x], axis=g.draw.randint(0, x.rank) if g.draw.random() < 0.8 else None)


def concat(g: Growth, op: str) -> None:
    x = g.pick(g.types(op), low=1)
    axis = axis_of(g, x)
    parts = [x]
    for _ in range(g.draw.randint(0, 3)):
        if g.draw.random() < 0.5:
            parts.append(g.like(x))
        else:
            dims = g.dims_of(x)
            dims[axis] = g.draw.choice((0, 1, 2, 3, 5))
            parts.append(g.new(x.type, dims))
    g.draw.shuffle(parts)
    g.add(op, parts, axis=axis)


def split(g: Growth, op: str) -> None:
    x = g.pick(g.types(op), low=1)
    axis = axis_of(g, x)
    require(len({a.shape[axis] for a in x.arrays}) == 1, "parts of a size that varies")
    size = x.shape[axis]
    count = g.draw.randint(1, min(4, max(1, size)))
    if g.opset >= 18 and g.draw.random() < 0.4:
        g.add(op, [x], count, axis=axis, num_outputs=count)
        return
    if g.opset < 18 and size % count == 0 and g.draw.random() < 0.4:
        g.add(op, [x], count, axis=axis)
        return
    cuts = sorted(g.draw.randint(0, size) for _ in range(count - 1))
    parts = np.diff([0, *cuts, size])
    if g.opset < 13:
        require(parts.all())
        g.add(op, [x], count, axis=axis, split=[int(p) for p in parts])
    else:
        g.add(op, [x, g.parameter(parts.astype(np.int64))], count, axis=axis)


def slice_(g: Growth, op: str) -> None:
    """Ends beyond the array, from behind, and steps backwards."""
    x = g.pick(g.types(op), low=1)
    axes = axes_of(g, x, low=1)
    starts, ends, steps = [], [], []
    for axis in axes:
        size = x.shape[axis]
        step = g.draw.choice((1, 1, 1, 2, 3, -1, -2)) if g.opset >= 10 else 1
        a, b = sorted((g.draw.randint(0, size), g.draw.randint(0, size)))
        start, end = (a, b) if step > 0 else (b, a - 1 if a else -(2**40))
        if g.draw.random() < 0.3 and start < size:
            start -= size
        if g.draw.random() < 0.2 and step > 0:
            end = g.draw.choice((2**31 - 1, 2**63 - 1, size + 5))
        starts.append(start)
        ends.append(end)
        steps.append(step)
    if g.opset < 10:
        g.add(op, [x], axes=axes, starts=starts, ends=ends)
        return
    kind = np.int32 if g.draw.random() < 0.2 and max(map(abs, ends)) < 2**31 else np.int64
    lists = [starts, ends, axes, steps]
    if axes == list(range(len(axes))) and set(steps) == {1} and g.draw.random() < 0.4:
        lists = lists[:2]
    g.add(op, [x, *(g.parameter(np.array(v, kind)) for v in lists)])


def pad(g: Growth, op: str) -> None:
    """All modes; negative pads cut."""
    x = g.pick(g.types(op), low=1)
    modes = ["constant", "constant", "reflect", "edge"] + (["wrap"] if g.opset >= 19 else [])
    mode = g.draw.choice(modes)
    sizes = [min(a.shape[k] for a in x.arrays) for k in range(x.rank)]
    pads = []
    for side in range(2 * x.rank):
        size = sizes[side % x.rank]
        high = 3 if mode == "constant" else 2 if mode == "edge" else min(2, size - 1)
        low = -1 if mode == "constant" and size > 2 and g.draw.random() < 0.2 else 0
        pads.append(g.draw.randint(low, max(low, high)) if g.draw.random() < 0.6 else 0)
    require(mode == "constant" or min(sizes), "nothing to repeat")
    if g.opset < 11:
        value = g.draw.choice((None, 1.5)) if mode == "constant" else None
        g.add(op, [x], pads=pads, mode=mode, value=value)
        return
    given = [g.told(pads)]
    if mode == "constant" and g.draw.random() < 0.5:
        given.append(g.parameter(random_array(g.draw, x.type, ())))
    g.add(op, [x, *given], mode=mode)


def expand(g: Growth, op: str) -> None:
    x = g.pick(g.types(op), high=4)
    if g.aliases and g.draw.random() < 0.5:
        g.add(op, [x, *g.add("Shape", [g.broadcast(x)])])
        return
    shape = [g.draw.choice((1, 2, 3)) if d == 1 else g.draw.choice((1, d)) for d in x.shape]
    if g.draw.random() < 0.4:
        shape = [g.draw.choice((1, 2, 3)), *shape]
    g.add(op, [x, g.told(shape)])


def tile(g: Growth, op: str) -> None:
    x = g.pick(g.types(op), low=1, high=4)
    counts = [g.draw.choice((1, 1, 2, 3, 0 if g.draw.random() < 0.1 else 1)) for _ in x.shape]
    g.add(op, [x, g.told(counts)])


def blocks(g: Growth, op: str) -> None:
    """`DepthToSpace` and `SpaceToDepth` need sizes that can be divided."""
    b, base = g.draw.choice((2, 3)), [g.draw.choice((1, 2)), g.draw.choice((1, 2, 3)), 2, 3]
    dims = [base[0], base[1] * b * b, *base[2:]] if op == "DepthToSpace" else [*base[:2], 2 * b, b]
    x = g.new(g.choose_type(g.types(op)), dims)
    mode = g.draw.choice(("DCR", "CRD")) if op == "DepthToSpace" and g.opset >= 11 else None
    g.add(op, [x], blocksize=b, mode=mode)


def shape(g: Growth, op: str) -> None:
    """Sizes, also of what may have no elements left, and now and then a question about them."""
    x = _chosen_part(g) if g.draw.random() < 0.3 else g.pick(g.types(op))
    attributes = {}
    if op == "Shape" and g.opset >= 15 and g.draw.random() < 0.5:
        attributes = {n: g.draw.randint(-x.rank - 1, x.rank + 1) for n in ("start", "end")}
        attributes = {n: v for n, v in attributes.items() if g.draw.random() < 0.7}
    (sizes,) = g.add(op, [x], **attributes)
    asks = [ask for ask in ASKS if TensorProto.INT64 in g.types(ask)]
    if asks and g.draw.random() < 0.5:
        edge = g.parameter(np.array(g.draw.choice((0, 0, 1, 1, 2)), np.int64))
        g.add(g.draw.choice(asks), [sizes, edge] if g.draw.random() < 0.7 else [edge, sizes])


def _chosen_part(g: Growth) -> Value:
    """Elements that only a run chooses: in some runs all, or none."""
    x = g.pick(g.types("Compress"), low=1)
    require(len({a.shape for a in x.arrays}) == 1, "a mask has one length in all runs")
    chance = g.draw.choice((0.0, 0.5, 1.0))

    def mask(shape: tuple[int, ...]) -> Array:
        return np.array([g.draw.random() < chance for _ in range(shape[0])], np.bool_)

    chosen = g.new(TensorProto.BOOL, [x.shape[0]], make=mask, constant=0.0)
    return g.add("Compress", [x, chosen], axis=0)[0]


def computed(g: Growth, sizes: Value) -> Value:
    """Sizes as they are, or as exporters compute others from them: with floats, or with signs."""
    kind = g.draw.choice(("as they are", "floats", "signs"))
    if kind == "floats":
        wide = g.add("Cast", [sizes], to=TensorProto.FLOAT)[0]
        by = g.parameter(np.array(g.draw.choice((0.5, 0.6, 1.5, 2.0, 0.3)), np.float32))
        scaled = g.add("Mul", [wide, by])[0]
        rounded = g.add(g.draw.choice(("Floor", "Ceil")), [scaled])[0]
        return g.add("Cast", [rounded], to=TensorProto.INT64)[0]
    if kind == "signs":
        by = g.parameter(np.array(g.draw.choice((2, 3, -2)), np.int64))
        less = g.add("Neg", [sizes])[0]
        found = g.add("Div", [less, by])[0]
        return g.add("Abs", [found])[0]
    return sizes


def constant_of_shape(g: Growth, op: str) -> None:
    import onnx

    kind = g.choose_type([t for t in g.types(op, "T2") if t != TensorProto.STRING])
    value = onnx.numpy_helper.from_array(random_array(g.draw, kind, (1,)))
    if g.draw.random() < 0.4:
        x = g.pick(g.types("Shape"), high=4)
        sizes = computed(g, g.add("Shape", [x])[0])
    else:
        dims = [d if isinstance(d, int) else 2 for d in g.dims(0, 4)]
        sizes = g.parameter(np.array(dims, np.int64))
    g.add(op, [sizes], value=value if g.draw.random() < 0.8 else None)


def eye_like(g: Growth, op: str) -> None:
    x = g.pick(g.types(op), low=2, high=2)
    kinds = [t for t in g.types(op, "T2") if t != TensorProto.STRING]
    kind = g.choose_type(kinds) if g.draw.random() < 0.5 else None
    g.add(op, [x], k=g.draw.randint(-2, 2), dtype=kind)


def range_(g: Growth, op: str) -> None:
    dtype = numpy_type(g.choose_type(g.types(op)))
    step = g.draw.choice((1, 2, 3, -1, -2))
    numbers = (g.draw.randint(-3, 5), g.draw.randint(-3, 9), step)
    g.add(op, [g.parameter(np.array(n).astype(dtype)) for n in numbers])


def trilu(g: Growth, op: str) -> None:
    x = g.pick(g.types(op), low=2)
    k = g.parameter(np.array(g.draw.randint(-3, 3), np.int64)) if g.draw.random() < 0.7 else None
    g.add(op, [x, k], upper=g.draw.randint(0, 1))


def reverse_sequence(g: Growth, op: str) -> None:
    x = g.pick(g.types(op), low=2)
    time, batch = g.draw.choice(((0, 1), (1, 0)))
    sizes = [min(a.shape[k] for a in x.arrays) for k in (time, batch)]
    require(all(sizes) and len({a.shape[batch] for a in x.arrays}) == 1)
    lengths = [g.draw.randint(1, sizes[0]) for _ in range(sizes[1])]
    g.add(op, [x, g.parameter(np.array(lengths, np.int64))], time_axis=time, batch_axis=batch)


def one_hot(g: Growth, op: str) -> None:
    depth = g.draw.randint(1, 6)
    kind = g.choose_type([t for t in g.types(op, 0) if t in INTEGERS])
    low = -depth if g.opset >= 11 and numpy_type(kind).kind == "i" else 0

    def numbers(s: tuple[int, ...]) -> np.ndarray:
        drawn = [g.draw.randint(low, depth - 1) for _ in range(int(np.prod(s)))]
        return np.array(drawn).astype(numpy_type(kind)).reshape(s)

    indices = g.new(kind, g.dims(0 if g.opset >= 11 else 1, 3), make=numbers)
    values = random_array(g.draw, g.choose_type(g.types(op, 2)), (2,))
    axis = g.draw.randint(-indices.rank - 1, indices.rank) if g.opset >= 11 else -1
    given = [g.parameter(np.array(depth, np.int64)), g.parameter(values)]
    g.add(op, [indices, *given], axis=axis)


def dropout(g: Growth, op: str) -> None:
    """Without training nothing is dropped."""
    x = g.pick(g.types(op))
    g.add(op, [x], [True, g.opset >= 10 and g.draw.random() < 0.3])


def center_crop_pad(g: Growth, op: str) -> None:
    x = g.pick(g.types(op), low=1, high=4)
    axes = axes_of(g, x, low=1)
    sizes = [g.draw.randint(1, 8) for _ in axes]
    g.add(op, [x, g.parameter(np.array(sizes, np.int64))], axes=axes)


RULES: Final = {
    "CenterCropPad": center_crop_pad,
    "Concat": concat,
    "ConstantOfShape": constant_of_shape,
    "DepthToSpace": blocks,
    "Dropout": dropout,
    "Expand": expand,
    "EyeLike": eye_like,
    "Flatten": flatten,
    "OneHot": one_hot,
    "Pad": pad,
    "Range": range_,
    "Reshape": reshape,
    "ReverseSequence": reverse_sequence,
    "Shape": shape,
    "Size": shape,
    "Slice": slice_,
    "SpaceToDepth": blocks,
    "Split": split,
    "Squeeze": squeeze,
    "Tile": tile,
    "Transpose": transpose,
    "Trilu": trilu,
    "Unsqueeze": unsqueeze,
}
