from tests.expect import raises_code
from tests.programs import assert_same_meaning, matmul_relu
from tilewright.schedule import Schedule
from tilewright.tensor import ir as tir


def test_set_scope_of_an_intermediate_buffer(golden, rng):
    program = matmul_relu()
    schedule = Schedule(program)
    schedule.set_scope("C", "register")
    assert schedule.buffer("C").scope is tir.Scope.REGISTER
    assert golden == schedule.func
    assert_same_meaning(schedule, program, rng)


def test_set_scope_to_what_it_is_changes_nothing():
    schedule = Schedule(matmul_relu())
    before = schedule.func
    schedule.set_scope("C", "memory")
    assert schedule.func is before


def test_set_scope_rejects_parameters():
    with raises_code("S270", text="cache_write"):
        Schedule(matmul_relu()).set_scope("D", "register")


def test_set_scope_rejects_an_unknown_scope():
    with raises_code("S215", text="`memory` or `register`"):
        Schedule(matmul_relu()).set_scope("C", "shared")
