"""Any sequence of layout steps keeps what a program means, and their inverses restore it.

One case is one random sequence of up to six steps on one random program. The quick profile runs 20
of each kind and rank, the long one 2,000: with four ranks, 8,000 sequences keep their meaning and
8,000 are taken back.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, event, given, note
from hypothesis import strategies as st

from tests.packing import packed_run
from tests.property.layout_steps import apply_layout_steps, layout_programs
from tilewright.errors import UserError
from tilewright.schedule import Schedule
from tilewright.schedule.accesses import Change, Ranges
from tilewright.schedule.relayout import with_change
from tilewright.tensor import ir as tir
from tilewright.tensor.build import make_block
from tilewright.tensor.interpret import interpret
from tilewright.tensor.layout import parse_step
from tilewright.tensor.packing import packing_of
from tilewright.tensor.structural import structural_equal
from tilewright.testing import assert_same
from tilewright.testing.inputs import random_inputs

RANKS = (2, 3, 4, 5)
INVERSES = {"layout_unpad", "layout_fold", "layout_decouple"}


@pytest.mark.parametrize("rank", RANKS)
@given(data=st.data())
def test_layouts_preserve_meaning(rank, data):
    """Packed inputs give packed outputs, whose padding and copies are as packing makes them."""
    program = data.draw(layout_programs(rank))
    schedule = Schedule(program)
    undoing = apply_layout_steps(data.draw, schedule, data.draw(st.integers(1, 6)))
    event(f"{len(undoing)} steps accepted")
    note(schedule.trace.as_python())
    note(str(schedule.func))
    inputs = random_inputs(program, np.random.default_rng(data.draw(st.integers(0, 999))))
    expected = interpret(program, inputs)
    found = packed_run(program, schedule.func, inputs)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.parametrize("rank", RANKS)
@given(data=st.data())
def test_inverses_restore_the_program(rank, data):
    """Undoing all steps in reverse order gives a structurally equal program.

    Single tiles are left out: fused with another dimension of size one, nothing tells them apart.
    """
    schedule = Schedule(data.draw(layout_programs(rank)))
    start = schedule.func
    count = data.draw(st.integers(1, 6))
    undoing = apply_layout_steps(data.draw, schedule, count, unit_tiles=False)
    assume(all(undoing))  # a step that is itself an inverse is tested by the other property
    trail = f"{start}\n{schedule.trace.as_python()}\n{schedule.func}"
    note(trail)
    try:
        for steps in reversed(undoing):
            for step in steps:
                schedule.apply(step)
    except UserError as error:
        if error.code.id != "S307":
            raise
        event("relies on zeros")  # a test that the zeros replaced does not come back
        return
    note(str(schedule.func))
    found, expected = (with_change(p, _Simplified()) for p in (schedule.func, start))
    if structural_equal(found, expected):
        event("restored")
        return
    # The way through the last of overlapping tiles leaves an index that is equal, but not found
    # to be: the interface is as before, and so is the meaning.
    assert "Unfold" in trail
    event("equal")
    assert [(p.shape, p.layout) for p in found.params] == [
        (p.shape, p.layout) for p in expected.params
    ]
    inputs = random_inputs(start, np.random.default_rng(0))
    assert_same(interpret(schedule.func, inputs), interpret(start, inputs))


class _Simplified(Change):
    """All indices and tests in canonical form: an iterator of extent one is zero, and so on."""

    def touches(self, block: tir.Block) -> bool:
        del block
        return True

    def expr(self, expr: tir.Expr, ranges: Ranges) -> tir.Expr | None:
        if isinstance(expr, tir.Load):
            return tir.Load(expr.buffer, tuple(map(ranges.analyzer.simplify, expr.indices)))
        if isinstance(expr, tir.Select):
            cond = ranges.analyzer.simplify(expr.cond)
            if isinstance(cond, tir.Const):
                return expr.if_true if cond.value else expr.if_false
            return tir.Select(cond, expr.if_true, expr.if_false)
        return None

    def store(self, store: tir.Store, ranges: Ranges) -> tir.Store:
        indices = tuple(map(ranges.analyzer.simplify, store.indices))
        return tir.Store(store.buffer, indices, store.value)


@pytest.mark.parametrize("rank", RANKS)
@given(data=st.data())
def test_index_map_agrees_with_packing(rank, data):
    """`LayoutStep.index` finds each element where `pack` has put it, and `unpack` takes it back."""
    shape = tuple(data.draw(st.integers(1, 6 - rank // 2)) for _ in range(rank))
    buffer = tir.Buffer("X", tuple(map(tir.Const, shape)), tir.Const(0).dtype)
    other = tir.Buffer("Y", (), tir.Const(0).dtype)
    store = tir.Store(other, (), tir.Load(buffer, tuple(map(tir.Const, (0,) * rank))))
    block = make_block("Y", (), (), store)
    schedule = Schedule(tir.Func("f", (buffer, other), block))
    apply_layout_steps(data.draw, schedule, data.draw(st.integers(1, 6)))
    packed_buffer = schedule.func.params[0]
    packing = packing_of(packed_buffer)
    assume(packing is not None and not packing.guests)
    for step in packing.steps:
        assert parse_step(str(step)) == step
    assert packing.logical_shape == shape
    array = np.arange(1, 1 + int(np.prod(shape))).reshape(shape)
    packed = packing.pack(array)
    assert packed.shape == packing.physical_shape
    np.testing.assert_array_equal(packing.unpack(packed), array)
    for where in np.ndindex(shape):
        at = where
        for step in packing.steps:
            at = step.index(at)
        assert packed[at] == array[where]
