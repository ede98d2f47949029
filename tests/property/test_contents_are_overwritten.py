"""An output that is said to be overwritten is: the interpreter finds no element without a value."""

from __future__ import annotations

from hypothesis import event, given, note, reject
from hypothesis import strategies as st

import tilewright as tw
from tilewright.errors import ProgramError
from tilewright.schedule import Schedule
from tilewright.tensor.contents import updated
from tilewright.testing.steps import apply_steps

LOOPS = ("split", "reorder", "fuse", "blockize", "decompose_reduction", "layout_pad")


@st.composite
def scatters(draw: st.DrawFn) -> tw.Func:
    """One to three blocks that write parts of Y by index maps, or add to what is there."""
    size = draw(st.integers(1, 10), label="elements of Y")
    text = f"def scatter(Y: i32[{size}]):\n"
    for number in range(draw(st.integers(1, 3), label="blocks")):
        extent = draw(st.integers(1, size))
        factor = draw(st.sampled_from([1, 1, 1, -1, 2]))
        reach = abs(factor) * (extent - 1)
        if reach >= size:
            factor, reach = 1, extent - 1
        first = draw(st.integers(0, size - 1 - reach)) + (reach if factor < 0 else 0)
        at = f"v{number} * {factor} + {first}"
        value = draw(st.sampled_from([f"i32(v{number})", f"i32(v{number})", f"Y[{at}] + 1"]))
        text += f"    for i{number} in range({extent}):\n"
        text += f'        with block("B{number}", v{number}=S({extent}, i{number})):\n'
        text += f"            Y[{at}] = {value}\n"
    return tw.parse(text)


@given(func=scatters(), data=st.data())
def test_outputs_are_overwritten(func: tw.Func, data: st.DataObject):
    try:
        schedule = Schedule(func)
    except ProgramError:
        reject()
    apply_steps(data.draw, schedule, data.draw(st.integers(0, 3), label="steps"), LOOPS)
    note(str(schedule.func))
    for program in (func, schedule.func):
        if updated(program):
            event("has old content")
            continue
        event("is overwritten")
        tw.interpret(program, {})  # raises if an element is read or left without a value
