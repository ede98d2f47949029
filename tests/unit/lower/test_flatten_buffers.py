import pytest

from tests.lowering import applied
from tilewright.lower.flatten_buffers import flatten_buffers


def test_strides_of_the_shape(golden):
    text = """
        def f(A: f32[4, 5, 6], C: f32[5, 6, 4]):
            T = alloc(f32[6, 4])
            for j in range(5):
                for i in range(4):
                    for k in unrolled(6):
                        T[k, i] = A[i, j, k]
                for i_1 in range(4):
                    for k_1 in unrolled(6):
                        C[j, k_1, i_1] = T[k_1, i_1] + A[3 - i_1, j, k_1]
    """
    assert golden == applied(flatten_buffers, text)


def test_symbolic_strides(golden):
    text = """
        def f(A: f32[m, n, 3], C: f32[m, n, 3]):
            for i in range(m):
                for j in range(n):
                    for k in range(3):
                        C[i, j, k] = A[i, j, k]
    """
    assert golden == applied(flatten_buffers, text, size_values={"m": 2, "n": 3})


def test_scalars_become_rows_of_one(golden):
    text = """
        def f(A: f32[8], C: f32[()]):
            C[()] = 0.0
            for i in range(8):
                C[()] = C[()] + A[i]
    """
    assert golden == applied(flatten_buffers, text)


@pytest.mark.parametrize("where", ["2, ramp(4, 1, 4)", "ramp(0, 2, 4), 7"])
def test_vectors_of_indices(golden, where):
    text = f"""
        def f(A: f32[8, 8], C: f32[4]):
            C[ramp(0, 1, 4)] = A[{where}]
    """
    assert golden == applied(flatten_buffers, text)


def test_indices_from_memory(golden):
    text = """
        def f(A: f32[4, 8], I: i64[4], C: f32[4]):
            C[ramp(0, 1, 4)] = A[ramp(0, 1, 4), I[ramp(0, 1, 4)] % broadcast(8, 4)]
    """
    assert golden == applied(flatten_buffers, text)


def test_fused_loops_come_together(golden):
    text = """
        def f(A: f32[4, 6], C: f32[4, 6]):
            for ij in range(24):
                C[ij // 6, ij % 6] = A[ij // 6, ij % 6]
    """
    assert golden == applied(flatten_buffers, text)


def test_flat_programs_stay_the_same_object():
    text = """
        def f(A: f32[8], C: f32[8]):
            for i in range(8):
                C[i] = A[i]
    """
    made = applied(flatten_buffers, text)
    assert applied(flatten_buffers, made) is made


def test_digits_by_symbolic_sizes_come_together(golden):
    text = """
        def f(A: f32[m, n], C: f32[l, m, n, 3]):
            for x in range(l * (m * n)):
                for k in range(3):
                    C[x // (m * n), x // n % m, x % n, k] = A[x // n % m, x % n]
    """
    made = applied(flatten_buffers, text, size_values={"l": 2, "m": 3, "n": 4})
    assert golden == made


def test_digits_of_another_size_stay_apart(golden):
    text = """
        def f(A: f32[m, n], C: f32[m, n]):
            for x in range(m * n):
                C[x // n, x % n] = A[x // n, (x + 1) % n]
    """
    assert golden == applied(flatten_buffers, text, size_values={"m": 3, "n": 4})
