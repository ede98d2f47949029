"""Programs that are not well formed are refused by name of the place, whoever wrote them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.expect import raises_code
from tests.models import Code, Draft
from tilewright.dtypes import DType, Kind, f32, i64
from tilewright.runtime.executable import Executable
from tilewright.runtime.program import (
    Assign,
    Buffer,
    Enter,
    Host,
    Jump,
    Operand,
    Place,
    Port,
    Program,
    Size,
    SizeOp,
)
from tilewright.runtime.sizes import constant
from tilewright.runtime.verify import MAX_DEPTH, verify


def sample() -> Program:
    d = Draft("sample", segments=2)
    d.input("x", ["n"])
    d.size("m", segment=1)
    d.size("twice", (*d.of("n"), (SizeOp.CONST, 2), (SizeOp.MUL, 0)))
    d.temporary("t", ["n"], 0, 1)
    d.temporary("count", [1], 0, 1, i64)
    d.buffer("h", Place.HOST, ["n"])
    d.buffer("part", Place.PART, ["n"], parent=d.at("t"), offset=constant(0))
    d.output("y", ["n"])
    d.kernel("add", 64)
    d.call("add", "x x t", "n")
    d.steps.append(Enter(1, ((d.number("m"), d.at("count"), 0),)))
    d.steps.append(Host(0, (Operand(d.at("x"), f32, (-1,)),), (Operand(d.at("h"), f32, (-1,)),)))
    d.steps.append(Jump(4, d.at("count")))
    d.steps.append(Assign(d.number("m"), d.of("n")))
    d.steps.append(Jump(6, condition=d.of("m")))
    return d.program()


def test_sample_is_well_formed():
    verify(sample())
    verify(Program("empty", (), (), (), (), (), ()))


def at(items: tuple, number: int, **changes: object) -> tuple:
    return (*items[:number], replace(items[number], **changes), *items[number + 1 :])


def change(field: str, number: int, **changes: object) -> Program:
    program = sample()
    return replace(program, **{field: at(getattr(program, field), number, **changes)})


SIZE, ADD = (SizeOp.SIZE, 0), (SizeOp.ADD, 0)
ONE = constant(1)
WRONG = {
    "segments": (replace(sample(), segments=0), "segments must be"),
    "too many segments": (replace(sample(), segments=1 << 40), "segments must be"),
    "segment of a size": (change("sizes", 0, segment=2), "sizes[0].segment"),
    "size before itself": (change("sizes", 2, value=((SizeOp.SIZE, 2),)), "sizes[2].value"),
    "size of a later segment": (change("sizes", 2, value=((SizeOp.SIZE, 1),)), "known by then"),
    "nobody tells": (change("sizes", 2, value=None), "sizes[2] must be told by something"),
    "empty expression": (change("buffers", 0, bytes=()), "buffers[0].bytes must be an expression"),
    "two values": (change("buffers", 0, bytes=(SIZE, SIZE)), "an expression with one value"),
    "no values": (change("buffers", 0, bytes=(SIZE, ADD)), "in postfix order"),
    "select": (change("buffers", 0, bytes=(SIZE, SIZE, (SizeOp.SELECT, 0))), "in postfix order"),
    "not": (change("buffers", 0, bytes=((SizeOp.NOT, 0),)), "in postfix order"),
    "deep": (
        change("buffers", 0, bytes=(SIZE,) * (MAX_DEPTH + 1) + (ADD,) * MAX_DEPTH),
        f"of depth {MAX_DEPTH} at most",
    ),
    "wide": (change("buffers", 0, bytes=constant(1 << 63)), "buffers[0].bytes must be between"),
    "unknown size": (change("buffers", 0, bytes=((SizeOp.SIZE, 3),)), "buffers[0].bytes must be"),
    "segment of a buffer": (change("buffers", 1, segment=-1), "buffers[1].segment"),
    "lives after the end": (change("buffers", 1, last=6), "buffers[1].last"),
    "dies before it lives": (change("buffers", 1, first=2), "buffers[1].first"),
    "part of nothing": (change("buffers", 4, parent=-1), "buffers[4].parent"),
    "part of itself": (change("buffers", 4, parent=4), "nested less than 64 times"),
    "part of something later": (change("buffers", 1, segment=1), "buffers[4].parent must be of"),
    "part without offset": (change("buffers", 4, offset=()), "buffers[4].offset"),
    "input of a later segment": (change("buffers", 0, segment=1), "buffers[0].segment must be 0"),
    "input without port": (replace(sample(), inputs=()), "inputs must be one for each"),
    "input elsewhere": (change("inputs", 0, buffer=1), "inputs must be one for each"),
    "same names": (
        replace(sample(), outputs=(sample().outputs[0],) * 2),
        "outputs must be called by different names",
    ),
    "port of nothing": (change("outputs", 0, buffer=9), "outputs[0].buffer"),
    "dimension of nothing": (change("outputs", 0, dims=(-4,)), "outputs[0].dims"),
    "unknown type": (change("outputs", 0, dtype=DType(Kind.FLOAT, 8)), "outputs[0].dtype"),
    "type of lanes": (change("outputs", 0, dtype=f32.vector(4)), "outputs[0].dtype"),
    "rank": (change("outputs", 0, dims=(1,) * 65, shown=(1,) * 65), "64 dimensions at most"),
    "shown": (change("outputs", 0, shown=()), "outputs[0].shown"),
    "input that is told later": (change("inputs", 0, dims=(-2,)), "inputs[0].dims"),
    "entry": (change("kernels", 0, entry=-1), "kernels[0].entry"),
    "scratch": (change("kernels", 0, scratch=-2), "kernels[0].scratch"),
    "shared": (change("kernels", 0, shared_bytes=-1), "kernels[0].shared_bytes"),
    "local": (change("kernels", 0, local_bytes=1 << 63), "kernels[0].local_bytes"),
    "no kernel": (change("steps", 0, kernel=1), "steps[0].kernel"),
    "no buffer": (change("steps", 0, buffers=(0, 6)), "steps[0].buffers"),
    "no size": (change("steps", 0, sizes=(3,)), "steps[0].sizes"),
    "flops": (change("steps", 0, flops=(ADD,)), "steps[0].flops"),
    "moved bytes": (change("steps", 0, moved_bytes=(ADD,)), "steps[0].moved_bytes"),
    "enter the first segment": (change("steps", 1, segment=0), "steps[1].segment"),
    "read a computed size": (change("steps", 1, read=((2, 2, 0),)), "steps[1].read"),
    "read an input's size": (change("steps", 1, read=((0, 2, 0),)), "steps[1].read"),
    "read from nowhere": (change("steps", 1, read=((1, 9, 0),)), "steps[1].read"),
    "read before the start": (change("steps", 1, read=((1, 2, -1),)), "steps[1].read"),
    "function": (change("steps", 2, function=-1), "steps[2].function"),
    "operand": (change("steps", 2, inputs=(Operand(9, f32, ()),)), "steps[2].inputs"),
    "result": (
        change("steps", 2, outputs=(Operand(1, f32, (-1,)),)),
        "steps[2].outputs must be buffers of the host",
    ),
    "defines": (change("steps", 2, defines=((1, 1, 0),)), "steps[2].defines"),
    "defines an axis": (change("steps", 2, defines=((1, 0, -1),)), "steps[2].defines"),
    "jump": (change("steps", 3, to=7), "steps[3].to"),
    "two conditions": (change("steps", 3, condition=ONE), "steps[3].unless must be -1"),
    "computed condition": (change("steps", 5, condition=(ADD,)), "steps[5].condition"),
    "assigned value": (change("steps", 4, value=()), "steps[4].value"),
    "assigned size": (change("steps", 4, size=9), "steps[4].size"),
    "assigned input": (change("steps", 4, size=0), "steps[4].size must be a size that steps tell"),
    "condition": (change("steps", 3, unless=6), "steps[3].unless"),
}


@pytest.mark.parametrize("case", WRONG)
def test_verify_rejects(case):
    program, text = WRONG[case]
    with raises_code("A201", text=text):
        verify(program)


def test_sizes_that_an_entered_segment_does_not_own():
    program = replace(sample(), segments=3)
    program = replace(program, steps=at(program.steps, 1, segment=2))
    with raises_code("A201", text="a size of the segment that is entered"):
        verify(program)


def test_parts_in_a_circle():
    parts = [Buffer("a", Place.PART, ONE, parent=1, offset=ONE)]
    parts += [Buffer("b", Place.PART, ONE, parent=0, offset=ONE)]
    with raises_code("A201", text="buffers[0].parent must be nested less than 64 times"):
        verify(Program("circle", (), (), (), tuple(parts), (), ()))


def test_executables_are_verified():
    port = Port("y", f32, (), (), 3)
    with raises_code("A201", text="the program `wrong` is not well formed"):
        Executable(Program("wrong", (), (port,), (Size("n", ONE),), (), (), ()), Code())
