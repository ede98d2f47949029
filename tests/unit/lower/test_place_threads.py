import pytest

from tests.lowering import applied, lowered
from tests.threaded import run_threaded
from tilewright.lower.place_threads import place_threads
from tilewright.tensor import ir as tir
from tilewright.tensor.interpret import interpret
from tilewright.tensor.parser import parse
from tilewright.tensor.visit import walk_stmts
from tilewright.testing import assert_same, random_inputs

PROGRAMS = {
    "one_parallel_loop": """
        def f(A: f32[64], C: f32[64]):
            for i in parallel(8):
                for j in range(8):
                    C[i * 8 + j] = A[i * 8 + j]
    """,
    "dependent_stages": """
        def f(A: f32[64], C: f32[64]):
            T = alloc(f32[64])
            for i in range(64):
                T[i] = A[i]
            for j in parallel(8):
                for k in range(8):
                    C[j * 8 + k] = T[63 - j * 8 - k]
            for i_1 in range(8):
                C[i_1] = C[i_1] + 1.0
    """,
    "independent_stages": """
        def f(A: f32[8], C: f32[8], D: f32[8]):
            for i in parallel(8):
                C[i] = A[i]
            for j in range(8):
                D[j] = A[j]
    """,
    "same_slices": """
        def f(A: f32[64], C: f32[64]):
            T = alloc(f32[64])
            for i in parallel(8):
                for j in range(8):
                    T[i * 8 + j] = A[i * 8 + j]
            for k in parallel(8):
                for l in range(8):
                    C[k * 8 + l] = T[k * 8 + 7 - l]
    """,
    "other_slices": """
        def f(A: f32[64], C: f32[64]):
            T = alloc(f32[64])
            for i in parallel(8):
                for j in range(8):
                    T[j * 8 + i] = A[i * 8 + j]
            for k in parallel(8):
                for l in range(8):
                    C[k * 8 + l] = T[k * 8 + l]
    """,
    "back_edge_of_a_loop": """
        def f(A: f32[8], C: f32[8]):
            T = alloc(f32[8])
            for i in range(8):
                T[i] = A[i]
            for s in range(3):
                for j in parallel(8):
                    C[j] = T[(j + s) % 8]
                for k in parallel(8):
                    T[k] = C[7 - k]
    """,
    "condition_around_parallel_loops": """
        def f(A: f32[8], B: i64[1], C: f32[8]):
            T = alloc(i64[1])
            T[0] = B[0] % 2
            if T[0] == 0:
                for i in parallel(8):
                    C[i] = A[i]
            else:
                for j in parallel(8):
                    C[j] = A[7 - j]
            C[0] = 1.0
    """,
    "parallel_inside_parallel": """
        def f(A: f32[64], C: f32[64]):
            for i in parallel(8):
                for j in parallel(8):
                    C[i * 8 + j] = A[i * 8 + j]
    """,
    "buffers_of_a_thread": """
        def f(A: f32[64], C: f32[64]):
            for s in range(2):
                for i in parallel(8):
                    T = alloc(f32[8])
                    for j in range(8):
                        T[j] = A[i * 8 + 7 - j]
                    for k in range(8):
                        C[i * 8 + k] = T[k] + f32(s)
    """,
    "loop_that_may_not_run": """
        def f(A: f32[n], C: f32[n], D: f32[n]):
            for i in parallel(n):
                C[i] = A[i]
            for s in range(n - 1):
                for j in parallel(n):
                    D[j] = A[j]
            for k in range(n):
                D[k] = C[n - 1 - k]
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_guards_and_barriers(golden, name):
    made = applied(place_threads, PROGRAMS[name])
    assert golden == made
    assert applied(place_threads, made) is made


@pytest.mark.parametrize("threads", [1, 2, 3, 9])
@pytest.mark.parametrize("name", PROGRAMS)
def test_threads_do_not_race(rng, name, threads):
    func = parse(PROGRAMS[name])
    values = dict.fromkeys(walk_sizes(func), 5)
    inputs = random_inputs(func, rng, values)
    found = run_threaded(lowered(func), inputs, values, threads)
    assert_same(found, interpret(func, inputs, values))


def walk_sizes(func: tir.Func) -> list[tir.Var]:
    return [d for p in func.params for d in p.shape if isinstance(d, tir.Var)]


@pytest.mark.parametrize(("name", "count"), [("independent_stages", 0), ("same_slices", 0)])
def test_no_barrier_without_dependence(name, count):
    made = applied(place_threads, PROGRAMS[name])
    assert sum(type(s) is tir.Barrier for s in walk_stmts(made)) == count


def test_scratch_that_iterations_share_keeps_a_loop_serial():
    text = """
        def f(A: f32[8], C: f32[8]):
            T = alloc(f32[8])
            for s in range(2):
                for i in parallel(4):
                    for j in range(8):
                        T[(i + j) % 8] = A[i]
                    C[s * 4 + i] = T[i * 3 % 8]
    """
    remark = "loop `i` is not parallel: `T` is shared"
    made = applied(place_threads, text, remarks=[remark])
    assert "parallel" not in str(made)


def test_scratch_in_slices_of_iterations_stays_parallel():
    text = """
        def f(A: f32[8], C: f32[8]):
            T = alloc(f32[8])
            for s in range(2):
                for i in parallel(4):
                    for j in range(2):
                        T[i * 2 + j] = A[i * 2 + 1 - j]
                    C[s * 4 + i] = T[i * 2 + s]
    """
    assert "parallel" in str(applied(place_threads, text, remarks=[]))
