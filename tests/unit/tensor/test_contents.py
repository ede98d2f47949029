"""Which outputs must be passed because what they held before is still seen after a call."""

from __future__ import annotations

import pytest

import tilewright as tw
from tests.unit.test_pipeline import matmul
from tilewright.schedule import Schedule
from tilewright.schedule.draft import draft
from tilewright.target import Target
from tilewright.tensor import library
from tilewright.tensor.contents import updated

ACCUMULATE = """\
def accumulate(A: f32[8, 4], B: f32[4, 6], C: f32[8, 6]):
    for i in range(8):
        for j in range(6):
            for k in range(4):
                with block("C", vi=S(8, i), vj=S(6, j), vk=R(4, k)):
                    reads(A[vi, vk], B[vk, vj])
                    writes(C[vi, vj])
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""


def one_block(size: int, written: str, of: int = 12, value: str = "X[vi]") -> str:
    return f"""\
def f(X: f32[{size}], Y: f32[{of}]):
    for i in range({size}):
        with block("Y", vi=S({size}, i)):
            Y[{written}] = {value}
"""


PARTS = """\
def parts(X: f32[4, 6], Y: f32[4, 12]):
    for i in range(4):
        for j in range(6):
            with block("left", vi=S(4, i), vj=S(6, j)):
                Y[vi, vj] = X[vi, vj]
    for k in range(4):
        for l in range(SIZE):
            with block("right", vk=S(4, k), vl=S(SIZE, l)):
                Y[vk, vl + 6] = 0.0
"""

CASES = {
    "adds to it": (ACCUMULATE, ["C"]),
    "changes it in place": (one_block(12, "vi", value="Y[vi] * 2.0 + X[vi]"), ["Y"]),
    "writes it all": (one_block(12, "vi"), []),
    "writes it backwards": (one_block(12, "11 - vi"), []),
    "writes a part": (one_block(8, "vi"), ["Y"]),
    "writes the end": (one_block(8, "vi + 4"), ["Y"]),
    "writes every second element": (one_block(6, "vi * 2"), ["Y"]),
    "writes two parts": (PARTS.replace("SIZE", "6"), []),
    "writes two parts with a gap": (PARTS.replace("SIZE", "5"), ["Y"]),
}


@pytest.mark.parametrize("case", CASES)
def test_content_matters_where_it_is_seen(case):
    text, expected = CASES[case]
    assert [param.name for param in updated(tw.parse(text))] == expected


def test_start_value_of_a_reduction_overwrites():
    assert updated(matmul()) == ()
    s = Schedule(matmul(8, 6, 4))
    s.split("r", 2)
    s.decompose_reduction("C", "r_0")
    assert updated(s.func) == ()


def test_blocks_inside_blocks():
    s = Schedule(matmul(8, 6, 4))
    s.split("i", 4)
    s.blockize("i_1")
    assert updated(s.func) == ()
    s = Schedule(tw.parse(ACCUMULATE))
    s.split("i", 4)
    s.blockize("i_1")
    assert [param.name for param in updated(s.func)] == ["C"]


def test_symbolic_sizes():
    n = tw.size("n")
    X = tw.placeholder("X", (n,))
    assert updated(tw.func("f", [X], [tw.compute("Y", (n,), lambda i: X[i])])) == ()
    assert updated(tw.func("f", [X], [tw.compute("Y", (n, n), lambda i, j: X[i] + X[j])])) == ()


@pytest.mark.parametrize(
    "program",
    [
        library.matmul(30, 34, 20),
        library.softmax(7, 40),
        library.conv2d(1, 8, 9, 9, 8, 3, padding=1),
    ],
    ids=lambda program: program.name,
)
def test_no_schedule_makes_an_output_need_its_content(program):
    assert updated(program) == ()
    assert updated(draft(program, Target.host(), 2, ()).func) == ()


def test_lowered_programs_do_not_tell():
    store = tw.parse("def f(X: f32[4], Y: f32[4]):\n    for i in range(4):\n        Y[i] = X[i]\n")
    assert updated(store) == ()
