"""Blocks that are moved, copied and inlined keep what the program means.

The steps are aimed: loops are cut first, then producers go to loops of their consumers and the
other way round, so that most are accepted and halos, covers, reductions and symbolic sizes meet.
"""

from __future__ import annotations

import numpy as np
from hypothesis import event, given, note
from hypothesis import strategies as st

from tests.packing import packed_run
from tilewright.dtypes import i32
from tilewright.errors import UserError
from tilewright.schedule import Schedule, Step
from tilewright.schedule.handles import Names, names_of
from tilewright.schedule.nests import loops_around
from tilewright.tensor import ir as tir
from tilewright.tensor.interpret import interpret
from tilewright.testing.steps import applicable_steps
from tilewright.testing.strategies import programs


@given(program=programs(max_blocks=4, dtypes=(i32,)), data=st.data())
def test_moves_preserve_meaning(program, data):
    schedule = Schedule(program.func)
    for _ in range(data.draw(st.integers(2, 8))):
        step = data.draw(moving_steps(schedule))
        try:
            schedule.apply(step)
        except UserError as error:
            str(error)  # rendering must not fail either
            event(f"{step.primitive} refused: {error.code.id}")
        else:
            event(f"{step.primitive} accepted")
    note(schedule.trace.as_python())
    note(str(schedule.func))
    inputs = program.draw_inputs(data)
    expected = interpret(program.func, inputs, program.sizes)
    found = packed_run(program.func, schedule.func, inputs, program.sizes)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


@st.composite
def moving_steps(draw: st.DrawFn, schedule: Schedule) -> Step:
    """A step that moves, copies or inlines a block, or cuts and orders loops in between."""
    names = names_of(schedule.func)
    pairs = _pairs(names)
    kinds = ["loops", "loops", "copy", "layout", "inline"]
    if pairs:
        kinds += ["compute_at", "reverse_compute_at"] * 3
    match draw(st.sampled_from(kinds)):
        case "compute_at":
            producer, consumer = draw(st.sampled_from(pairs))
            return _to_loop(draw, names, "compute_at", producer, consumer)
        case "reverse_compute_at":
            producer, consumer = draw(st.sampled_from(pairs))
            return _to_loop(draw, names, "reverse_compute_at", consumer, producer)
        case "copy":
            copies = ("cache_read", "cache_write", "reindex")
            return draw(applicable_steps(schedule, copies))
        case "inline":
            return draw(applicable_steps(schedule, ("compute_inline", "reverse_compute_inline")))
        case "layout":
            return draw(_layout(names))
    return draw(applicable_steps(schedule, ("split", "split", "fuse", "reorder", "rfactor")))


def _pairs(names: Names) -> list[tuple[str, str]]:
    """Every producer with each of its consumers, by name."""
    blocks = names.blocks.values()
    return [
        (producer.name, consumer.name)
        for producer in blocks
        for consumer in blocks
        if consumer is not producer
        and {w.buffer for w in producer.writes} & {r.buffer for r in consumer.reads}
    ]


def _to_loop(draw: st.DrawFn, names: Names, primitive: str, block: str, target: str) -> Step:
    loops = loops_around(names.func, names.block(target))
    loop = draw(st.sampled_from(loops)).var.name if loops else next(iter(names.loops), "none")
    return Step.of(primitive, block=block, loop=loop)


@st.composite
def _layout(draw: st.DrawFn, names: Names) -> Step:
    """Another layout for some buffer of a known size."""
    buffer = draw(st.sampled_from(list(names.buffers.values())))
    known = [(d, n) for d, s in enumerate(buffer.shape) if (n := tir.int_value(s))]
    if not known:
        return Step.of("layout_reorder", buffer=buffer.name, order=tuple(range(len(buffer.shape))))
    dim, size = draw(st.sampled_from(known))
    match draw(st.sampled_from(["split", "pad", "fuse", "reorder"])):
        case "split":
            factor = draw(st.sampled_from([f for f in range(1, size + 1) if size % f == 0]))
            return Step.of("layout_split", buffer=buffer.name, dim=dim, factor=factor)
        case "pad":
            return Step.of("layout_pad", buffer=buffer.name, dim=dim, before=1, after=1)
        case "fuse" if dim + 1 < len(buffer.shape):
            return Step.of("layout_fuse", buffer=buffer.name, dim=dim)
    order = tuple(draw(st.permutations(range(len(buffer.shape)))))
    return Step.of("layout_reorder", buffer=buffer.name, order=order)
