from itertools import pairwise

from tests.lowering import AVX2
from tilewright.lower.context import Context
from tilewright.lower.lowered import Lowered
from tilewright.lower.place_threads import place_threads
from tilewright.lower.plan_storage import plan_storage
from tilewright.tensor import ir as tir
from tilewright.tensor.parser import parse


def planned(text: str) -> Lowered:
    context = Context(AVX2)
    return plan_storage(place_threads(parse(text), context), context)


def offsets(plan: Lowered) -> tuple[dict[str, object], dict[str, object]]:
    """Offsets of the shared and the local arena by name; numbers where they are."""
    return tuple(
        {b.name: tir.int_value(o) if tir.int_value(o) is not None else o for b, o in part.items()}
        for part in (plan.shared, plan.local)
    )


def chain(count: int, size: str = "2048", kind: str = "range") -> str:
    """`count` buffers, each computed from the one before, all needed at some time."""
    lines = [f"def f(A: f32[{size}], C: f32[{size}]):"]
    lines += [f"    T{n} = alloc(f32[{size}])" for n in range(count)]
    names = ["A", *(f"T{n}" for n in range(count)), "C"]
    for n, (source, target) in enumerate(pairwise(names)):
        lines.append(f"    for i{n} in {kind}({size}):")
        lines.append(f"        {target}[i{n}] = {source}[{size} - 1 - i{n}] * 2.0")
    return "\n".join(lines)


def test_buffers_share_memory_when_their_lives_do_not_overlap():
    plan = planned(chain(4))
    assert offsets(plan) == ({}, {"T0": 0, "T1": 8192, "T2": 0, "T3": 8192})
    assert tir.int_value(plan.local_bytes) == 16384
    assert not plan.parallel


def test_in_parallel_stages_life_ends_at_a_barrier():
    plan = planned(chain(4, kind="parallel"))
    shared, local = offsets(plan)
    assert shared == {"T0": 0, "T1": 8192, "T2": 0, "T3": 8192}
    assert local == {}
    assert plan.parallel


def test_without_a_barrier_nothing_is_shared():
    text = """
        def f(A: f32[4096], C: f32[4096], D: f32[4096]):
            T = alloc(f32[4096])
            U = alloc(f32[4096])
            for i in parallel(4096):
                T[i] = A[i]
            for j in parallel(4096):
                C[j] = T[j]
            for k in parallel(4096):
                U[k] = A[k]
            for l in parallel(4096):
                D[l] = U[l]
    """
    shared, _ = offsets(planned(text))
    assert sorted(shared.values()) == [0, 16384]


def test_symbolic_sizes_follow_the_numbers():
    plan = planned(chain(3, size="n"))
    (n,) = plan.sizes
    slots = (n * 4 + 63) // 64
    _, local = offsets(plan)
    assert local == {"T0": 0, "T1": slots * 64, "T2": 0}
    assert plan.local_bytes == slots * 128


def test_small_buffers_of_a_thread_are_on_its_stack():
    text = """
        def f(A: f32[8192], C: f32[8192]):
            for i in parallel(4):
                T = alloc(f32[1024])
                U = alloc(f32[2048])
                for j in range(2048):
                    U[j] = A[i * 2048 + j]
                for k in range(1024):
                    T[k] = U[k] + U[2047 - k]
                for l in range(2048):
                    C[i * 2048 + l] = T[l // 2]
    """
    assert offsets(planned(text)) == ({}, {"U": 0})


def test_loops_keep_buffers_alive():
    text = """
        def f(A: f32[2048], C: f32[2048]):
            T = alloc(f32[2048])
            U = alloc(f32[2048])
            for i in range(2048):
                T[i] = A[i]
            for s in range(2):
                for j in range(2048):
                    U[j] = T[j]
                for k in range(2048):
                    C[k] = U[2047 - k]
    """
    _, local = offsets(planned(text))
    assert sorted(local.values()) == [0, 8192]
