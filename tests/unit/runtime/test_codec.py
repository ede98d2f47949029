"""Programs as JSON: the way there and back, and every kind of damage."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json

import pytest

from tests.expect import raises_code
from tests.models import Draft, product
from tilewright.dtypes import boolean, f32, i64
from tilewright.errors import ArtefactError
from tilewright.runtime.codec import VERSION, from_json, to_json
from tilewright.runtime.program import (
    Assign,
    Call,
    Enter,
    Host,
    Jump,
    Operand,
    Place,
    Program,
    SizeOp,
)
from tilewright.runtime.sizes import constant


def everything() -> Program:
    """A program with every place, every kind of step and an expression of every field."""
    d = Draft("everything", segments=2)
    d.input("x", ["n", 4])
    d.size("half", (*d.of("n"), (SizeOp.CONST, 2), (SizeOp.FLOORDIV, 0)))
    d.size("m", segment=1)
    d.size("told", segment=1)
    d.buffer("w", Place.WEIGHTS, [4], offset=constant(128))
    d.temporary("count", [1], 0, 4, i64)
    d.temporary("flag", [1], 0, 4, boolean)
    d.buffer("part", Place.PART, [1], i64, parent=d.at("count"), offset=constant(0))
    d.buffer("h", Place.HOST, ["told"], segment=1)
    d.output("y", ["m", "told"], segment=1)
    d.kernel("add", 4096, shared_bytes=64, local_bytes=32)
    d.kernel("sum", 8192, parallel=False, scratch=12288)
    work = product(8, d.of("n"))
    d.steps += [
        Call(0, (0, 1), (0, 1), wait=False, label="Add_1, Relu_2", flops=work, moved_bytes=work),
        Jump(4, d.at("flag")),
        Host(
            0,
            (Operand(0, f32, (-1, 4)),),
            (Operand(d.at("h"), f32, (-4,)),),
            ((3, 0, 0),),
            "fallback",
        ),
        Enter(1, ((2, d.at("part"), 0),)),
        Assign(2, constant(7)),
        Jump(6, condition=d.of("n")),
    ]
    return d.program()


def test_programs_come_back_as_they_were():
    program = everything()
    text = json.dumps(to_json(program))
    assert from_json(json.loads(text)) == program
    assert json.loads(text)["version"] == VERSION


def test_text_of_a_program(golden):
    """A change of this text is a change of the format: raise `VERSION`."""
    data = to_json(everything())
    lines = [f"{name}: {json.dumps(value)}" for name, value in data.items()]
    assert golden == "\n".join(lines)


def changed(path: str, value: object) -> object:
    """The JSON of `everything` with one value replaced, such as `sizes.1.1` = None."""
    data = copy.deepcopy(to_json(everything()))
    *way, last = [int(key) if key.isdigit() else key for key in path.split(".")]
    place = data
    for key in way:
        place = place[key]
    place[last] = value
    return data


WRONG_FORM = {
    "no dictionary": [1, 2],
    "name": changed("name", 5),
    "sizes": changed("sizes", {}),
    "size": changed("sizes.1", "n"),
    "short size": changed("sizes.1", ["n"]),
    "expression": changed("sizes.1.1", [1]),
    "operand": changed("sizes.1.1", [0, 2.0]),
    "operation": changed("sizes.1.1", [99, 0]),
    "bool for int": changed("segments", True),
    "int for bool": changed("steps.0.4", 1),
    "float for int": changed("buffers.0.3", 0.0),
    "text for int": changed("buffers.0.3", "0"),
    "none for int": changed("buffers.0.3", None),
    "place": changed("buffers.0.1", "attic"),
    "place of another type": changed("buffers.0.1", ["input"]),
    "dtype": changed("inputs.0.1", "f99"),
    "dtype of another type": changed("inputs.0.1", ["f32"]),
    "shown": changed("inputs.0.3", [None, 4]),
    "kind of step": changed("steps.0.0", "fly"),
    "kind of another type": changed("steps.0.0", ["call"]),
    "empty step": changed("steps.0", []),
    "long step": changed("steps.5", ["jump", 5, -1, [], 0]),
    "triple": changed("steps.3.2", [[2, 4]]),
    "unknown member": {**to_json(everything()), "more": 1},
    "missing member": {k: v for k, v in to_json(everything()).items() if k != "steps"},
}


@pytest.mark.parametrize("case", WRONG_FORM)
def test_reading_rejects_another_form(case, golden):
    with raises_code("A202") as caught:
        from_json(WRONG_FORM[case])
    assert golden == caught.value


@pytest.mark.parametrize("version", [0, VERSION + 1, None, "1", True, 1.0])
def test_reading_rejects_another_version(version):
    with raises_code("A203", facts={"found": version, "expected": VERSION}):
        from_json({**to_json(everything()), "version": version})


def test_what_is_read_is_verified():
    with raises_code("A201", text="steps[1].to must be between 0 and 6"):
        from_json(changed("steps.1.1", 7))


def _places(data: object, path: tuple[object, ...] = ()):
    yield path
    items = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    for key, value in items:
        yield from _places(value, (*path, key))


PLACES = [path for path in _places(to_json(everything())) if path and path != ("version",)]
BAD = [None, True, -1, 1 << 80, -(1 << 80), 1.5, "x", [], [[]], {}, [1, 2, 3], "f32", 7]


def test_damage_of_every_place_is_an_error_or_another_program():
    """Whatever replaces whatever: the answer is a program or one of our errors."""
    accepted = 0
    for path in PLACES:
        for value in BAD:
            data = to_json(everything())
            place = data
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = value
            with contextlib.suppress(ArtefactError):
                assert isinstance(from_json(data), Program)
                accepted += 1
    assert 0 < accepted < len(PLACES) * len(BAD) // 2


def test_every_class_of_the_contract_is_in_the_sample():
    """A new kind of step or place must be added above."""
    program = everything()
    assert {type(step) for step in program.steps} == {Call, Jump, Assign, Enter, Host}
    assert {buffer.place for buffer in program.buffers} == set(Place)
    filled = [f.name for f in dataclasses.fields(Call) if getattr(program.steps[0], f.name) != ()]
    assert len(filled) == len(dataclasses.fields(Call))
