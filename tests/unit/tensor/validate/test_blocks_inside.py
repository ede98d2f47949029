"""Blocks inside of blocks: what a block's signature says must be true of its body."""

from __future__ import annotations

import pytest

from tests.expect import raises_code
from tilewright.tensor import ir as tir
from tilewright.tensor.parser import parse
from tilewright.tensor.validate import ValidationCache, validate
from tilewright.tensor.verify import verify
from tilewright.tensor.visit import find_block, replace_node


def tiles(*inside: str, before: str = "", start: str = "") -> str:
    """Two tiles of four, with these lines inside; then B copies T."""
    lines = ["def f(A: f32[8], B: f32[8], C: f32[8]):", "    T = alloc(f32[8])"]
    if before:
        lines += [
            "    for p in range(8):",
            '        with block("P", v=S(8, p)):',
            f"            {before}",
        ]
    lines += ["    for t in range(2):", '        with block("tile", vt=S(2, t)):']
    if start:
        lines += ["            with init():", f"                {start}"]
    lines += ["            " + line for line in inside]
    lines += [
        "    for c in range(8):",
        '        with block("B", v=S(8, c)):',
        "            B[v] = T[v]",
    ]
    return "\n".join(lines)


def four(name: str, statement: str, binding: str = "vt * 4 + {name}") -> tuple[str, ...]:
    loop = f"{name.lower()}_"
    return (
        f"for {loop} in range(4):",
        f'    with block("{name}", v=S(8, {binding.format(name=loop)})):',
        f"        {statement}",
    )


LEGAL = {
    "writes its tile": tiles(*four("W", "T[v] = A[v]")),
    "starts and updates its tile": tiles(
        *four("W", "T[v] = 0.0"), *four("U", "T[v] = T[v] + A[v]")
    ),
    "updates what was started before": tiles(*four("U", "T[v] = T[v] + A[v]"), before="T[v] = 0.0"),
    "reads what it wrote before": tiles(
        *four("W", "T[v] = A[v]"), *four("R", "C[v] = T[v // 4 * 4 + 3 - v % 4]")
    ),
    "even and odd": tiles(
        "for i in range(2):",
        '    with block("E", v=S(4, vt * 2 + i)):',
        "        T[v * 2] = A[v]",
        "for j in range(2):",
        '    with block("O", v=S(4, vt * 2 + j)):',
        "        T[v * 2 + 1] = A[v]",
        *four("W", "T[v] = A[v]"),
    ),
}

ILLEGAL = {
    "updates what nothing started": ("V104", tiles(*four("U", "T[v] = T[v] + A[v]"))),
    "updates before it starts": (
        "V104",
        tiles(*four("U", "T[v] = T[v] + A[v]"), *four("W", "T[v] = 0.0"), before="T[v] = 0.0"),
    ),
    "reads what other tiles write": (
        "V110",
        tiles(*four("W", "T[v] = T[7 - v]"), before="T[v] = 0.0"),
    ),
    "reads the other tile": (
        "V104",
        tiles(*four("W", "T[v] = A[v]"), *four("R", "C[v] = T[7 - v]")),
    ),
    "reads scratch that nothing writes": (
        "V104",
        tiles("S = alloc(f32[8])", *four("W", "T[v] = S[v]")),
    ),
    "reads scratch of which half is written": (
        "V104",
        tiles(
            "S = alloc(f32[8])",
            "for i in range(4):",
            '    with block("E", v=S(4, i)):',
            "        S[v * 2] = A[v]",
            *four("W", "T[v] = S[v]"),
        ),
    ),
}


@pytest.mark.parametrize("what", LEGAL)
def test_bodies_that_do_what_the_block_says(what):
    validate(verify(parse(LEGAL[what])))


@pytest.mark.parametrize("what", ILLEGAL)
def test_bodies_that_do_not(what):
    code, text = ILLEGAL[what]
    func = verify(parse(text))
    with raises_code(code) as caught:
        validate(func)
    assert "# <- " in str(caught.value)


STORES = """
def f(A: f32[8], B: f32[8]):
    T = alloc(f32[8])
    for t in range(2):
        with block("tile", vt=S(2, t)):
            for j in range({count}):
                {store}
    for c in range(8):
        with block("B", v=S(8, c)):
            B[v] = T[v]
"""


def test_loops_of_stores_that_fill_a_tile():
    validate(verify(parse(STORES.format(count=4, store="T[vt * 4 + j] = A[vt * 4 + j]"))))


@pytest.mark.parametrize(
    ("count", "store"),
    [
        (2, "T[vt * 4 + j * 2] = A[j]"),  # every second element of what the signature says
        (4, "T[vt * 4 + j] = T[vt * 4 + j] + A[j]"),  # nothing has prepared it
    ],
)
def test_loops_of_stores_that_do_not(count, store):
    with raises_code("V104"):
        validate(verify(parse(STORES.format(count=count, store=store))))


BOTH = """
def f(A: f32[8], B: f32[8], C: f32[8]):
    T = alloc(f32[8])
    for t in range(2):
        with block("tile", vt=S(2, t)):
            for i in range(4):
                with block("W", v=S(8, vt * 4 + i)):
                    C[v] = A[v]
            for j in range(4):
                T[vt * 4 + j] = {value}
    for c in range(8):
        with block("B", v=S(8, c)):
            B[v] = T[v]
"""


def test_blocks_beside_stores():
    validate(verify(parse(BOTH.format(value="A[vt * 4 + j]"))))
    with raises_code("V104", facts={"because": "nothing writes it"}):
        validate(verify(parse(BOTH.format(value="T[vt * 4 + j] + 1.0"))))


def test_what_a_condition_decides_is_not_written():
    func = parse(LEGAL["writes its tile"])
    loop = find_block(func, "tile").body
    guarded = tir.If(loop.var < 2, loop.body)
    with raises_code("V104", facts={"because": "the blocks inside do not write all of it"}):
        validate(verify(replace_node(func, loop.body, guarded)))


REDUCTION = """
def f(A: f32[8, 4], B: f32[8]):
    for t in range(2):
        for k in range(4):
            with block("tile", vt=S(2, t), vk=R(4, k)):
                with init():
                    for i in range({start}):
                        with block("I", v=S(8, vt * 4 + i)):
                            B[v] = 0.0
                for j in range(4):
                    with block("U", v=S(8, vt * 4 + j), w=R(4, vk)):
                        B[v] = B[v] + A[v, w]
"""


def test_start_value_of_a_tile():
    validate(verify(parse(REDUCTION.format(start=4))))


def test_sums_are_read_when_they_are_complete():
    text = REDUCTION.format(start=4).replace("B: f32[8]", "B: f32[8], C: f32[8]")
    text += """
                for l in range(4):
                    with block("R", v=S(8, vt * 4 + l)):
                        C[v] = B[v]
"""
    with raises_code("V104", facts={"because": "its sum over loop `vk` is not complete"}):
        validate(verify(parse(text)))


def test_start_value_of_a_part_of_a_tile():
    func = parse(REDUCTION.format(start=3))
    tile = find_block(func, "tile")
    assert tile is not None
    whole = tir.Region(tile.writes[-1].buffer, tile.writes[-1].ranges)
    func = replace_node(func, tile, tile.with_fields(writes=(whole,)))
    with raises_code("V104", facts={"because": "the start value is not written to all of it"}):
        validate(func)


def test_a_body_is_looked_at_once(monkeypatch):
    """Bindings of a block may change; what is inside of it is known already."""
    func = parse(LEGAL["writes its tile"])
    cache = ValidationCache()
    validate(func, cache)
    tile = find_block(func, "tile")
    assert tile is not None
    asked: list[object] = []
    once = type(cache.maps).once

    def counting(self, question, about, answer):
        def called():
            asked.append(question)
            return answer()

        return once(self, question, about, called)

    monkeypatch.setattr(type(cache.maps), "once", counting)
    moved = tile.with_fields(bindings=(1 - tile.bindings[0],))
    validate(replace_node(func, tile, moved), cache)
    assert any(question[0] == "mapped" for question in asked)
    assert not any(question[0] == "inside" for question in asked)
