"""Random programs on arrays of two to five dimensions, and random layout steps that fit them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from hypothesis import strategies as st

from tilewright.dtypes import i32
from tilewright.errors import UserError
from tilewright.schedule import Schedule, Step
from tilewright.tensor import ir as tir
from tilewright.tensor.build import (
    Tensor,
    compute,
    func,
    max_over,
    placeholder,
    reduce_axis,
    select,
    sum_over,
)
from tilewright.tensor.layout import Pad, StoreAt, Unfold

MAX_ELEMENTS = 1500  # of one buffer: the interpreter visits them one by one


@st.composite
def layout_programs(draw: st.DrawFn, rank: int) -> tir.Func:
    """One to three blocks on arrays of this rank: windows, padding, sums, products, movement."""
    largest = {2: 12, 3: 7, 4: 5, 5: 3}[rank]
    shape = tuple(draw(st.integers(1, largest)) for _ in range(rank))
    first = placeholder("X", shape, i32)
    second = placeholder("Z", shape[1:], i32)
    last = compute("A", shape, lambda *i: first[i] * 2 + second[i[1:]])
    if draw(st.booleans()):
        last = first
    for number in range(draw(st.integers(1, 2))):
        last = draw(st.sampled_from(_KINDS))(draw, f"B{number}", last)
    inputs = [first, second] if _uses(last, second) else [first]
    return func("program", inputs, [last])


def _uses(tensor: Tensor, wanted: Tensor) -> bool:
    return tensor is wanted or any(_uses(t, wanted) for t in tensor.inputs)


def _sizes(tensor: Tensor) -> list[int]:
    return [int(tir.int_value(d) or 0) for d in tensor.shape]


def _window(draw: st.DrawFn, name: str, x: Tensor) -> Tensor:
    """A sum over a window that moves by a stride along one dimension."""
    sizes = _sizes(x)
    dim = draw(st.integers(0, len(sizes) - 1))
    width = draw(st.integers(1, min(3, sizes[dim])))
    stride = draw(st.integers(1, 2))
    r = reduce_axis(width, "r")
    out = [(s - width) // stride + 1 if d == dim else s for d, s in enumerate(sizes)]
    return compute(
        name, out, lambda *i: sum_over(x[(*i[:dim], i[dim] * stride + r, *i[dim + 1 :])], r)
    )


def _padded(draw: st.DrawFn, name: str, x: Tensor) -> Tensor:
    """The array with zeros around one dimension, chosen by a test."""
    sizes = _sizes(x)
    dim, lead = draw(st.integers(0, len(sizes) - 1)), draw(st.integers(0, 2))
    tail = draw(st.integers(0, 2))
    out = [s + lead + tail if d == dim else s for d, s in enumerate(sizes)]

    def value(*i: tir.Expr) -> tir.Expr:
        at = i[dim] - lead
        clamped = tir.maximum(tir.minimum(at, sizes[dim] - 1), 0)
        inside = (at >= 0) & (at < sizes[dim])
        return select(inside, x[(*i[:dim], clamped, *i[dim + 1 :])], tir.const(0, i32))

    return compute(name, out, value)


def _folded(draw: st.DrawFn, name: str, x: Tensor) -> Tensor:
    dim = draw(st.integers(0, len(x.shape) - 1))
    k = reduce_axis(x.shape[dim], "k")
    fold = draw(st.sampled_from([sum_over, max_over]))
    out = [s for d, s in enumerate(x.shape) if d != dim]
    return compute(name, out, lambda *i: fold(x[(*i[:dim], k, *i[dim:])], k))


def _moved(draw: st.DrawFn, name: str, x: Tensor) -> Tensor:
    order = draw(st.permutations(range(len(x.shape))))
    back = [order.index(d) for d in range(len(order))]
    return compute(name, [x.shape[d] for d in order], lambda *i: x[tuple(i[d] for d in back)] + 1)


def _changed(draw: st.DrawFn, name: str, x: Tensor) -> Tensor:
    c = draw(st.integers(-3, 3))
    return compute(name, x.shape, lambda *i: tir.maximum(x[i], c) * 3)


_KINDS = (_window, _padded, _folded, _moved, _changed)


@st.composite
def layout_steps(draw: st.DrawFn, program: tir.Func, *, unit_tiles: bool = True) -> Step:
    """A step that looks legal; some are refused all the same.

    Without `unit_tiles`, nothing is unfolded to a single tile or to tiles of one element.
    """
    buffers = [*program.params, *_allocated(program)]
    buffer = draw(st.sampled_from(buffers))
    undo = _UNDO.get(type(buffer.layout[-1])) if buffer.layout else None
    if undo is not None and draw(st.integers(0, 3)) == 0:
        return Step.of(undo, buffer=buffer.name)
    make = draw(st.sampled_from([_split, _reorder, _fuse, _pad, _unfold, _unfold, _store_at]))
    step = make(draw, buffer, buffers)
    if step is None or (make is _unfold and not unit_tiles and _has_unit_tiles(step, buffer)):
        return _reorder(draw, buffer, buffers)
    return step


def _has_unit_tiles(step: Step, buffer: tir.Buffer) -> bool:
    args = dict(step.args)
    return args["tile"] in (1, _shape(buffer)[args["dim"]])


_UNDO = {Pad: "layout_unpad", Unfold: "layout_fold", StoreAt: "layout_decouple"}

Buffers = Sequence[tir.Buffer]


def _allocated(program: tir.Func) -> list[tir.Buffer]:
    found, body = [], program.body
    while isinstance(body, tir.Alloc):
        found.append(body.buffer)
        body = body.body
    return found


def _shape(buffer: tir.Buffer) -> list[int]:
    return [int(tir.int_value(d) or 0) for d in buffer.shape]


def _split(draw: st.DrawFn, buffer: tir.Buffer, _: Buffers) -> Step | None:
    if not buffer.shape:
        return None
    dim = draw(st.integers(0, len(buffer.shape) - 1))
    size = _shape(buffer)[dim]
    factor = draw(st.sampled_from([f for f in range(1, size + 1) if size % f == 0]))
    return Step.of("layout_split", buffer=buffer.name, dim=dim, factor=factor)


def _reorder(draw: st.DrawFn, buffer: tir.Buffer, _: Buffers) -> Step:
    order = tuple(draw(st.permutations(range(len(buffer.shape)))))
    return Step.of("layout_reorder", buffer=buffer.name, order=order)


def _fuse(draw: st.DrawFn, buffer: tir.Buffer, _: Buffers) -> Step | None:
    rank = len(buffer.shape)
    if rank < 2:
        return None
    dim = draw(st.integers(0, rank - 2))
    count = draw(st.integers(2, min(3, rank - dim)))
    return Step.of("layout_fuse", buffer=buffer.name, dim=dim, count=count)


def _pad(draw: st.DrawFn, buffer: tir.Buffer, _: Buffers) -> Step | None:
    if not buffer.shape:
        return None
    dim = draw(st.integers(0, len(buffer.shape) - 1))
    before, after = draw(st.integers(0, 2)), draw(st.integers(0, 2))
    grown = prod(_shape(buffer)) // _shape(buffer)[dim] * (_shape(buffer)[dim] + before + after)
    if before + after == 0 or grown > MAX_ELEMENTS:
        return None
    return Step.of("layout_pad", buffer=buffer.name, dim=dim, before=before, after=after)


def _unfold(draw: st.DrawFn, buffer: tir.Buffer, _: Buffers) -> Step | None:
    if not buffer.shape:
        return None
    dim = draw(st.integers(0, len(buffer.shape) - 1))
    size = _shape(buffer)[dim]
    tile = draw(st.integers(1, size))
    stride = draw(st.integers(1, tile))
    tiles = -(-(size - tile) // stride) + 1
    if prod(_shape(buffer)) // size * tiles * tile > MAX_ELEMENTS:
        return None
    return Step.of("layout_unfold", buffer=buffer.name, dim=dim, tile=tile, stride=stride)


def _store_at(draw: st.DrawFn, buffer: tir.Buffer, buffers: Buffers) -> Step | None:
    others = [b.name for b in buffers if b is not buffer]
    if not others or not buffer.shape:
        return None
    dim = draw(st.integers(0, len(buffer.shape) - 1))
    other = draw(st.sampled_from(others))
    return Step.of("layout_store_at", buffer=buffer.name, other=other, dim=dim)


def apply_layout_steps(
    draw: Callable[[st.SearchStrategy[Step]], Step],
    schedule: Schedule,
    count: int,
    *,
    unit_tiles: bool = True,
) -> list[tuple[Step, ...]]:
    """Draw and apply steps; for each accepted one, the steps that undo it (empty if it is one)."""
    undoing: list[tuple[Step, ...]] = []
    for _ in range(count):
        step = draw(layout_steps(schedule.func, unit_tiles=unit_tiles))
        back = undo(schedule, step)
        try:
            schedule.apply(step)
        except UserError as error:
            str(error)  # rendering must not fail either
        else:
            undoing.append(back)
    return undoing


def undo(schedule: Schedule, step: Step) -> tuple[Step, ...]:
    """The steps that take a step back, given the schedule before it."""
    args = dict(step.args)
    name = args["buffer"]
    match step.primitive:
        case "layout_split":
            return (Step.of("layout_fuse", buffer=name, dim=args["dim"]),)
        case "layout_fuse":
            first, count = args["dim"], args["count"]
            sizes = _shape(schedule.buffer(name))[first : first + count]
            return tuple(
                Step.of("layout_split", buffer=name, dim=first, factor=size)
                for size in reversed(sizes[1:])
            )
        case "layout_reorder":
            order = args["order"]
            back = tuple(order.index(d) for d in range(len(order)))
            return (Step.of("layout_reorder", buffer=name, order=back),)
        case "layout_pad":
            return (Step.of("layout_unpad", buffer=name),)
        case "layout_unfold":
            return (Step.of("layout_fold", buffer=name),)
        case "layout_store_at":
            return (Step.of("layout_decouple", buffer=name),)
    return ()
