import pytest

from tests.lowering import applied
from tilewright.lower.place_allocations import place_allocations
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import enclosing, walk_stmts


def loops_around(func: tir.Func, name: str) -> list[str]:
    """The loops around the allocation of a buffer."""
    allocs = [s for s in walk_stmts(func) if type(s) is tir.Alloc and s.buffer.name == name]
    assert len(allocs) == 1
    return [s.var.name for s in enclosing(func, allocs[0]) if type(s) is tir.For]


def test_buffer_moves_to_where_it_is_used(golden):
    text = """
        def f(A: f32[128], C: f32[128]):
            T = alloc(f32[128])
            U = alloc(f32[128])
            for i in range(16):
                for j in range(8):
                    T[i * 8 + j] = A[i * 8 + j] * 2.0
                for k in range(8):
                    U[i * 8 + k] = T[i * 8 + k] + 1.0
                    C[i * 8 + k] = U[i * 8 + k]
    """
    assert golden == applied(place_allocations, text)


CARRIED = {
    "accumulator of an outer reduction": """
        def f(A: i32[32], C: i32[8]):
            T = alloc(i32[8])
            for k in range(4):
                for j in range(8):
                    if k == 0:
                        T[j] = i32(0)
                    T[j] = T[j] + A[k * 8 + j]
                for j_1 in range(8):
                    if k == 3:
                        C[j_1] = T[j_1]
    """,
    "value of the iteration before": """
        def f(A: i32[9], C: i32[8]):
            T = alloc(i32[9])
            for k in range(8):
                if k == 0:
                    T[0] = A[0]
                T[k + 1] = A[k + 1]
                C[k] = T[k] + T[k + 1]
    """,
    "write behind the read": """
        def f(A: i32[8], C: i32[8]):
            T = alloc(i32[1])
            for k in range(8):
                if 0 < k:
                    C[k] = T[0]
                else:
                    C[k] = i32(0)
                T[0] = A[k]
    """,
    "only every second element is written": """
        def f(A: i32[16], C: i32[16]):
            T = alloc(i32[16])
            for k in range(2):
                for i in range(8):
                    T[i * 2 + k] = A[i * 2 + k]
                for i_1 in range(8):
                    C[i_1 * 2 + k] = T[i_1 * 2]
    """,
    "more is read than written": """
        def f(A: i32[16], C: i32[32]):
            T = alloc(i32[12])
            for k in range(4):
                for i in range(9):
                    if i < 9 - k:
                        T[i + k] = A[i + k]
                for i_1 in range(8):
                    C[k * 8 + i_1] = T[i_1]
    """,
}


@pytest.mark.parametrize("reason", CARRIED)
def test_buffer_with_values_of_other_iterations_stays_outside(reason):
    assert loops_around(applied(place_allocations, CARRIED[reason]), "T") == []


PRIVATE = {
    "accumulator with init inside": """
        def f(A: i32[32], C: i32[4]):
            T = alloc(i32[4])
            for i in range(4):
                for k in range(8):
                    if k == 0:
                        T[i] = i32(0)
                    T[i] = T[i] + A[i * 8 + k]
                C[i] = T[i]
    """,
    "tiles of a cover": """
        def f(A: i32[16], C: i32[16]):
            T = alloc(i32[16])
            for i in range(3):
                for j in range(tile_size(cover((6, 2), (4, 1)), i)):
                    T[i * 6 + j] = A[i * 6 + j]
                for k in range(tile_size(cover((6, 2), (4, 1)), i)):
                    C[i * 6 + k] = T[i * 6 + k]
    """,
    "all tiles of a cover, in every iteration": """
        def f(A: i32[64], C: i32[64]):
            T = alloc(i32[16])
            for i in range(4):
                for t in range(3):
                    for j in range(tile_size(cover((6, 2), (4, 1)), t)):
                        T[t * 6 + j] = A[i * 16 + t * 6 + j]
                for k in range(16):
                    C[i * 16 + k] = T[k]
    """,
    "halo": """
        def f(A: i32[34], C: i32[32]):
            T = alloc(i32[34])
            for i in range(4):
                for j in range(10):
                    T[i * 8 + j] = A[i * 8 + j]
                for k in range(8):
                    C[i * 8 + k] = T[i * 8 + k] + T[i * 8 + k + 2]
    """,
    "predicate that only keeps the buffer's bounds": """
        def f(A: i32[30], C: i32[30]):
            T = alloc(i32[30])
            for i in range(4):
                for j in range(8):
                    if i * 8 + j < 30:
                        T[i * 8 + j] = A[i * 8 + j]
                for k in range(8):
                    if i * 8 + k < 30:
                        C[i * 8 + k] = T[i * 8 + k]
    """,
    "parallel iterations are independent": """
        def f(A: i32[8], I: i64[8], C: i32[8]):
            T = alloc(i32[8])
            for i in parallel(8):
                for j in range(8):
                    T[(i + j) % 8] = A[j]
                C[i] = T[(i + 3) % 8]
    """,
}


@pytest.mark.parametrize("reason", PRIVATE)
def test_buffer_of_one_iteration_moves_inside(reason):
    assert loops_around(applied(place_allocations, PRIVATE[reason]), "T") == ["i"]


def test_vector_loops_are_not_entered():
    text = """
        def f(A: f32[8], C: f32[8]):
            T = alloc(f32[8])
            for i in vectorized(8):
                T[i] = A[i] * 2.0
                C[i] = T[i] + 1.0
    """
    assert loops_around(applied(place_allocations, text), "T") == []


def test_branches_are_entered_and_dead_buffers_dropped(golden):
    text = """
        def f(A: f32[8], C: f32[8]):
            T = alloc(f32[8])
            U = alloc(f32[8])
            for i in range(8):
                if i < 4:
                    T[i] = A[i]
                    C[i] = T[i]
                else:
                    C[i] = 0.0
    """
    assert golden == applied(place_allocations, text)


def test_scopes_that_are_already_tight_stay_the_same_object():
    text = """
        def f(A: f32[8], C: f32[8]):
            for i in range(8):
                T = alloc(f32[8])
                T[i] = A[i]
                C[i] = T[i]
    """
    made = applied(place_allocations, text)
    assert applied(place_allocations, made) is made
