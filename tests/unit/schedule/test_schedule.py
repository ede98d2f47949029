"""The facade: names are handles, methods come from the registry, arguments are checked."""

import pytest

from tests.expect import raises_code
from tests.programs import matmul, matmul_relu, vector_add
from tilewright.schedule import PRIMITIVES, Schedule
from tilewright.schedule.handles import Namer, fresh, names_of, uniquely_named
from tilewright.tensor import ir as tir
from tilewright.tensor.build import compute, func, placeholder, size
from tilewright.tensor.parser import parse


def test_methods_come_from_the_registry():
    schedule = Schedule(vector_add())
    assert set(PRIMITIVES) <= set(dir(schedule))
    assert schedule.split.__doc__ == PRIMITIVES["split"].doc
    with pytest.raises(AttributeError, match="no primitive or attribute `bind`"):
        _ = schedule.bind


def test_lookups():
    schedule = Schedule(matmul_relu())
    assert schedule.blocks() == ("C", "D")
    assert schedule.loops("C") == ("i", "j", "k")
    assert schedule.block("D").name == "D"
    assert schedule.loop("x").var.name == "x"
    assert schedule.buffer("A").name == "A"


def test_methods_reject_wrong_arguments():
    schedule = Schedule(vector_add())
    with pytest.raises(TypeError, match="unknown argument `factor`"):
        schedule.split("i", factor=4)
    with pytest.raises(TypeError, match="too many arguments"):
        schedule.unroll("i", "j")
    with raises_code("S002", text="`help(s.split)`"):
        schedule.split("i")


def test_names_are_made_unique():
    a = placeholder("A", (4,))
    b = compute("B", (4,), lambda i: a[i] + 1.0)
    c = compute("B", (4,), lambda i: b[i] * 2.0)
    d = compute("C", (4,), lambda i: c[i] - 1.0)
    schedule = Schedule(func("chain", [a], [d]))
    assert schedule.blocks() == ("B", "B_1", "C")
    assert schedule.loops("B_1") == ("i_1",)
    assert set(names_of(schedule.func).buffers) == {"A", "B", "B_1", "C"}


def test_loops_do_not_take_the_names_of_sizes():
    n = size("i")
    a = placeholder("A", (n,))
    schedule = Schedule(func("f", [a], [compute("B", (n,), lambda i: a[i] + 1.0)]))
    assert schedule.loops("B") == ("i_1",)
    schedule.split("i_1", 4)
    assert schedule.loops("B") == ("i_1_0", "i_1_1")


def test_unique_programs_stay_as_they_are():
    program = matmul()
    assert uniquely_named(program) is program


def test_fresh_names_count_up():
    program = matmul()
    assert fresh(program, "x") == "x"
    assert fresh(program, "i") == "i_1"
    assert fresh(program, "i", "i_1") == "i_2"
    namer = Namer(program)
    assert [namer("i"), namer("i"), namer("y"), namer("y")] == ["i_1", "i_2", "y", "y_1"]


def test_names_know_blocks_inside_blocks():
    schedule = Schedule(matmul(4, 4, 4))
    schedule.split("i", 2)
    schedule.split("k", 2)
    schedule.reorder("i_0", "k_0", "i_1", "j", "k_1")
    schedule.blockize("i_1")
    assert set(schedule.blocks()) == {"C_tile", "C", "C_init"}


def test_errors_name_the_step_and_mark_the_program(golden):
    schedule = Schedule(vector_add(32))
    with raises_code("S102") as caught:
        schedule.split("i", [(6, 5)])
    assert golden == str(caught.value)


def test_empty_loops_can_be_split():
    schedule = Schedule(vector_add(0))
    schedule.split("i", 4)
    assert schedule.loop("i_0").extent == tir.Const(0)


def test_names_of_loops_are_those_of_the_printed_program():
    """A loop called like a buffer is printed under another name: its handle is that name."""
    a = placeholder("A", (8,))
    b = compute("i", (8,), lambda i: a[i] * 2.0)
    schedule = Schedule(func("twice", [a], [compute("C", (8,), lambda A: b[A])]))  # noqa: N803
    for block in schedule.blocks():
        for loop in schedule.loops(block):
            assert f"for {loop} in range(8):" in str(schedule.func)


ILL_FORMED = {
    "V002": "C[vi] = A[i]",
    "V006": "C[vi] = A[vi, vi]",
    "V008": "C[vi] = A[vi] + f64(1.0)",
    "V011": "C[vi] = select(vi, A[vi], 0.0)",
    "V012": "C[vi] = vi",
}


@pytest.mark.parametrize("code", ILL_FORMED)
def test_a_program_that_is_not_well_formed_is_refused_at_once(code):
    text = f"""
    def f(A: f32[8], C: f32[8]):
        for i in range(8):
            with block("C", vi=S(8, i)):
                {ILL_FORMED[code]}
    """
    with raises_code(code):
        Schedule(parse(text))


def test_a_copy_has_remarks_of_its_own():
    first = Schedule(matmul(4, 4, 4))
    first.remarks.append("not scheduled")
    other = first.copy()
    other.remarks.append("nor this")
    assert (first.remarks, other.remarks) == (["not scheduled"], ["not scheduled", "nor this"])
