import pytest

from tests.expect import raises_code
from tests.lowering import AVX2, lowered
from tests.programs import matmul
from tilewright.lower import LOWERING, STAGES, lower, lower_from, passes
from tilewright.lower.context import Context
from tilewright.schedule import Schedule
from tilewright.tensor import ir as tir
from tilewright.tensor.verify import Level, verify


def register_tile(m: int = 14, n: int = 20, k: int = 3) -> tir.Func:
    """A matmul in tiles of 6×16 with accumulators in registers and packed columns."""
    s = Schedule(matmul(m, n, k))
    out = s.cache_write("C", "register")
    packed = s.cache_read("C", "B")
    i, j, r = s.loops("C")
    i0, i1 = s.split(i, 6)
    j0, j1 = s.split(j, 16)
    s.reorder(j0, i0, r, i1, j1)
    s.reverse_compute_at(out, i0)
    s.compute_at(packed, j0)
    s.vectorize(s.loops(packed)[-1])
    s.decompose_reduction("C", r)
    for block in s.blocks():
        if block != packed:
            *_, row, column = s.loops(block)
            s.unroll(row)
            s.vectorize(column)
    s.parallel(j0)
    return s.func


def test_register_tile_of_a_matmul(golden):
    made = lowered(register_tile())
    assert made.remarks == ()
    assert golden == made.func


def test_stages_have_the_names_of_the_passes():
    assert tuple(step.__name__ for step in LOWERING) == STAGES


def test_observer_sees_every_stage():
    seen = []
    made = lower(matmul(), AVX2, lambda stage, func, seconds: seen.append((stage, func, seconds)))
    assert [stage for stage, _, _ in seen] == list(STAGES)
    assert seen[-1][1] is made.func
    assert all(seconds >= 0 for _, _, seconds in seen)


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_can_be_resumed_from(stage):
    func, states = register_tile(), {}
    before = func
    made = lower(func, AVX2, lambda name, after, _: states.setdefault(name, after))
    for name in STAGES:
        if name == stage:
            break
        before = states[name]
    assert str(lower_from(stage, before, AVX2).func) == str(made.func)


def test_lowered_programs_are_left_alone():
    made = lowered(register_tile(12, 16)).func
    verify(made, Level.LOWERED)
    for step in LOWERING:
        assert step(made, Context(AVX2)) is made


def test_unknown_stage_is_refused():
    with raises_code("I021", text="stages in order: lower_blocks, "):
        lower_from("nowhere", matmul(), AVX2)


def test_a_pass_that_fails_is_named(monkeypatch):
    def broken(func: tir.Func, context: Context) -> tir.Func:
        raise IndexError(f"{func.name} on {context.target.name}")

    monkeypatch.setattr(passes, "LOWERING", (*LOWERING[:3], broken))
    with raises_code("I020", text="IndexError", facts={"stage": "broken"}):
        lower(matmul(), AVX2)


def test_sizes_come_in_the_order_of_the_parameters():
    m, n = tir.Var("m"), tir.Var("n")
    made = lowered(matmul(m, n, 3))
    assert made.sizes == (m, n)
