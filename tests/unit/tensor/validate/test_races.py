"""Iterations that run at once: none may write or read what another one writes."""

from __future__ import annotations

import pytest

from tests.expect import raises_code
from tilewright.tensor.parser import parse
from tilewright.tensor.validate import validate
from tilewright.tensor.verify import verify


def at_once(first: str, second: str, *, kind: str = "parallel", after: str = "T[v]") -> str:
    """T is filled; then two blocks `binding: statement` in one loop; then C copies T."""
    lines = [
        "def f(A: f32[8], B: f32[8], C: f32[8]):",
        "    T = alloc(f32[8])",
        "    for o in range(1):",
        "        for p in range(8):",
        '            with block("X", v=S(8, p)):',
        "                T[v] = A[v]",
        f"        for i in {kind}(8):",
    ]
    for name, part in (("P", first), ("Q", second)):
        binding, _, statement = part.partition(": ")
        lines += [
            f'            with block("{name}", v=S(8, {binding})):',
            f"                {statement}",
        ]
    lines += [
        "    for c in range(8):",
        '        with block("C", v=S(8, c)):',
        f"            C[v] = {after}",
    ]
    return "\n".join(lines)


LEGAL = {
    "each writes and reads its own": at_once("i: T[v] = A[v]", "i: B[v] = T[v]"),
    "each writes and updates its own": at_once("i: T[v] = A[v]", "i: T[v] = T[v] + A[v]"),
    "both in reverse": at_once("7 - i: T[v] = A[v]", "7 - i: B[v] = T[v]"),
    "lanes of their own": at_once("i: T[v] = A[v]", "i: B[v] = T[v]", kind="vectorized"),
    "two stores of one block": """
        def f(A: f32[8], B: f32[16]):
            for i in parallel(8):
                with block("E", v=S(8, i)):
                    B[v * 2] = A[v]
                with block("O", v=S(8, 7 - i)):
                    B[v * 2 + 1] = A[v]
        """,
    "windows in a loop further out": """
        def f(A: f32[8], B: f32[6, 3]):
            T = alloc(f32[8])
            for t in range(6):
                for w in parallel(3):
                    with block("T", v=S(8, t + w)):
                        T[v] = A[v]
                for r in range(3):
                    with block("B", vt=S(6, t), vr=S(3, r)):
                        B[vt, vr] = T[vt + vr]
        """,
    "a loop of one iteration inside of lanes": """
        def f(A: f32[8], B: f32[8]):
            T = alloc(f32[8])
            for i in vectorized(8):
                for o in range(1):
                    with block("T", v=S(8, i + o)):
                        T[v] = A[v]
                with block("B", v=S(8, i)):
                    B[v] = T[v]
        """,
}

ILLEGAL = {
    "writes of two blocks": ("V103", at_once("i: T[v] = A[v]", "7 - i: T[v] = B[v]")),
    "writes and updates": ("V103", at_once("i: T[v] = A[v]", "7 - i: T[v] = T[v] + A[v]")),
    "writes and reads": ("V103", at_once("i: T[v] = A[v]", "i: B[v] = T[7 - v]")),
    "reads that come first": ("V104", at_once("i: B[v] = T[7 - v]", "i: T[v] = A[v]")),
    "lanes that read others": (
        "V106",
        at_once("i: T[v] = A[v]", "i: B[v] = T[7 - v]", kind="vectorized"),
    ),
    "lanes that write to others": (
        "V106",
        at_once("i: T[v] = A[v]", "7 - i: T[v] = B[v]", kind="vectorized"),
    ),
    "even ones and halves": (
        "V103",
        """
        def f(A: f32[8], B: f32[16]):
            for i in parallel(8):
                with block("E", v=S(8, i)):
                    B[v * 2] = A[v]
                with block("O", v=S(8, i)):
                    B[v + 8] = A[v]
        """,
    ),
    "windows": (
        "V103",
        """
        def f(A: f32[8], B: f32[6, 3]):
            T = alloc(f32[8])
            for t in parallel(6):
                for w in range(3):
                    with block("T", v=S(8, t + w)):
                        T[v] = A[v]
                for r in range(3):
                    with block("B", vt=S(6, t), vr=S(3, r)):
                        B[vt, vr] = T[vt + vr]
            for o in range(1):
                with block("Z", v=S(1, o)):
                    A[v] = T[v]
        """,
    ),
}


@pytest.mark.parametrize("what", LEGAL)
def test_iterations_that_do_not_meet(what):
    validate(verify(parse(LEGAL[what])))


@pytest.mark.parametrize("what", ILLEGAL)
def test_iterations_that_meet(what):
    code, text = ILLEGAL[what]
    func = verify(parse(text))
    with raises_code(code) as caught:
        validate(func)
    assert "# <- " in str(caught.value)


def test_error_says_who_reads():
    with raises_code("V103", facts={"buffer": "T", "read by": "Q"}):
        validate(parse(ILLEGAL["writes and reads"][1]))
