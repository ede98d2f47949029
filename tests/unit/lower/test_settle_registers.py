import pytest

from tests.lowering import applied
from tilewright.lower.settle_registers import settle_registers


def test_loops_over_registers_are_unrolled(golden):
    text = """
        def f(A: f32[32], C: f32[32]):
            for i in range(4):
                T = alloc(f32[8], "register")
                for j in range(8):
                    T[j] = A[i * 8 + j]
                for k in vectorized(8):
                    C[i * 8 + k] = T[k]
    """
    assert golden == applied(settle_registers, text, remarks=[])


MEMORY = {
    "its size must be a number and at most 4096 elements": """
        def f(A: f32[n], C: f32[n]):
            T = alloc(f32[n], "register")
            for j in range(n):
                T[j] = A[j]
            for k in range(n):
                C[k] = T[k]
    """,
    "several threads use it": """
        def f(A: f32[8], C: f32[8]):
            T = alloc(f32[8], "register")
            for j in parallel(8):
                T[j] = A[j]
            for k in range(8):
                C[k] = T[k]
    """,
    "an index is read from memory": """
        def f(A: f32[8], I: i64[8], C: f32[8]):
            T = alloc(f32[8], "register")
            for j in range(8):
                T[j] = A[j]
            for k in range(8):
                C[k] = T[I[k] % 8]
    """,
    "its indices depend on `i` outside of it": """
        def f(A: f32[8], C: f32[8]):
            for i in range(8):
                T = alloc(f32[16], "register")
                for j in range(8):
                    T[(i * j) % 16] = A[i]
                C[i] = T[(i * 7) % 16]
    """,
    "the loop `j` over it has no constant extent": """
        def f(A: f32[n], C: f32[n]):
            for i in range(n):
                T = alloc(f32[16], "register")
                for j in range(i + 1):
                    T[j % 16] = A[i]
                C[i] = T[0]
    """,
}


@pytest.mark.parametrize("reason", MEMORY)
def test_what_cannot_be_in_registers_is_moved_to_memory(reason):
    made = applied(settle_registers, MEMORY[reason], remarks=[f"`T` is kept in memory: {reason}"])
    assert "register" not in str(made)


def test_programs_without_registers_stay_the_same_object():
    text = """
        def f(A: f32[8], C: f32[8]):
            for i in range(8):
                C[i] = A[i]
    """
    made = applied(settle_registers, text, remarks=[])
    assert applied(settle_registers, made) is made
