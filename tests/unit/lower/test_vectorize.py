import pytest

from tests.lowering import applied
from tilewright.lower.vectorize import vectorize


def test_full_vectors(golden):
    text = """
        def scale(A: f32[24], C: f32[24]):
            for j in vectorized(24):
                C[j] = A[j] * 2.0
    """
    assert golden == applied(vectorize, text, remarks=[])


def test_rest_by_powers_of_two(golden):
    text = """
        def scale(A: f32[15], C: f32[15]):
            for j in vectorized(15):
                C[j] = A[j] * 2.0
    """
    assert golden == applied(vectorize, text, remarks=[])


def test_width_follows_the_widest_type(golden):
    text = """
        def widen(A: i8[16], C: f64[16]):
            for j in vectorized(16):
                C[j] = f64(A[j])
    """
    assert golden == applied(vectorize, text, remarks=[])


def test_values_that_do_not_move_stay_scalar(golden):
    text = """
        def outer(A: f32[4], B: f32[8], C: f32[32]):
            for i in range(4):
                for j in vectorized(8):
                    C[i * 8 + j] = (A[i] + 1.0) * B[j] + f32(j)
    """
    assert golden == applied(vectorize, text, remarks=[])


def test_strides_and_gathers(golden):
    text = """
        def gather(I: i64[8], A: f32[64], C: f32[64]):
            for j in vectorized(8):
                C[j * 8] = A[I[j] % 64] + A[7 - j]
                for k in range(7):
                    C[j * 8 + k + 1] = A[(j * 8 + k) // 8]
    """
    assert golden == applied(vectorize, text, remarks=[])


def test_divisions_that_cancel_in_a_vector(golden):
    text = """
        def blocks(A: f32[8], C: f32[64]):
            for j in vectorized(64):
                C[j] = A[j // 8]
    """
    assert golden == applied(vectorize, text, remarks=[])


def test_inner_loops_stay_around_all_vectors(golden):
    text = """
        def matvec(A: f32[128], B: f32[8], C: f32[16]):
            for j in vectorized(16):
                C[j] = 0.0
                for k in range(8):
                    C[j] = C[j] + A[k * 16 + j] * B[k]
    """
    assert golden == applied(vectorize, text, remarks=[])


def test_reduction_folds_its_lanes(golden):
    text = """
        def total(A: f32[19], C: f32[1]):
            C[0] = 0.0
            for k in vectorized(19):
                C[0] = C[0] + A[k]
    """
    assert golden == applied(vectorize, text, remarks=[])


def test_long_reduction_keeps_vectors_in_registers(golden):
    text = """
        def greatest(A: i32[300], C: i32[1]):
            C[0] = i32(-100)
            for k in vectorized(300):
                C[0] = max(A[k], C[0])
    """
    assert golden == applied(vectorize, text, remarks=[])


def test_last_store_to_one_element_wins(golden):
    text = """
        def last(A: f32[12], C: f32[1]):
            for k in vectorized(12):
                C[0] = A[k]
    """
    assert golden == applied(vectorize, text, remarks=[])


@pytest.mark.parametrize("n", [1, 7, 8, 21])
def test_symbolic_extent(golden, n):
    text = """
        def scale(A: f32[n], C: f32[n]):
            for j in vectorized(n):
                C[j] = A[j] * 2.0
    """
    made = applied(vectorize, text, remarks=[], size_values={"n": n})
    assert n > 1 or golden == made


@pytest.mark.parametrize("n", [1, 31, 32, 77])
def test_symbolic_reduction(n):
    text = """
        def total(A: i32[n], C: i32[1]):
            C[0] = i32(0)
            for j in vectorized(n):
                C[0] = C[0] + A[j]
    """
    applied(vectorize, text, remarks=[], size_values={"n": n})


def test_long_loop_stays_a_loop(golden):
    text = """
        def scale(A: f32[1003], C: f32[1003]):
            for j in vectorized(1003):
                C[j] = A[j] * 2.0
    """
    assert golden == applied(vectorize, text, remarks=[])


def test_condition_that_differs_between_lanes(golden):
    text = """
        def head(A: f32[16], C: f32[16], n: i64[1]):
            for i in range(16):
                C[i] = 0.0
            for i in range(2):
                for j in vectorized(8):
                    if i * 8 + j < n[0] % 16:
                        C[i * 8 + j] = A[i * 8 + j]
    """
    assert golden == applied(vectorize, text)


def test_let_with_a_vector(golden):
    text = """
        def square(A: f32[8], C: f32[8]):
            for j in vectorized(8):
                C[j] = let((x := A[j] + 1.0), x * x)
    """
    assert golden == applied(vectorize, text, remarks=[])


SCALAR = {
    "an inner loop has another extent in each iteration": """
        def triangle(A: i32[8], C: i32[8]):
            for j in vectorized(8):
                C[j] = i32(0)
                for k in range(j):
                    C[j] = C[j] + A[k]
    """,
    "every iteration has a buffer of its own": """
        def own(A: i32[8], C: i32[8]):
            for j in vectorized(8):
                T = alloc(i32[1])
                T[0] = A[j]
                C[j] = T[0] + T[0]
    """,
    "an iteration reads what another one writes to `C`": """
        def difference(A: i32[8], C: i32[1]):
            C[0] = i32(0)
            for j in vectorized(8):
                C[0] = A[j] - C[0]
    """,
    "all iterations share an element of `T`": """
        def shared(A: i32[8], C: i32[8]):
            T = alloc(i32[1])
            for j in vectorized(8):
                T[0] = A[j]
                C[j] = T[0] + T[0]
    """,
    "another vector loop is inside": """
        def nested(A: i32[64], C: i32[64]):
            for i in vectorized(8):
                for j in vectorized(8):
                    C[i * 8 + j] = A[i * 8 + j]
    """,
    "several iterations store to one element": """
        def pairs(A: i32[16], C: i32[2]):
            for j in vectorized(16):
                C[j // 8] = A[j]
    """,
}


@pytest.mark.parametrize("reason", SCALAR)
def test_what_has_no_vector_form_stays_scalar(reason):
    made = applied(vectorize, SCALAR[reason], remarks=None)
    assert "vectorized" not in str(made)


@pytest.mark.parametrize("reason", SCALAR)
def test_remark_says_why(reason):
    name = "i" if "another vector" in reason else "j"
    applied(vectorize, SCALAR[reason], remarks=[f"loop `{name}` is not vectorised: {reason}"])


def test_registers_without_vectors_are_unrolled(golden):
    text = """
        def sums(A: i32[4], C: i32[4]):
            T = alloc(i32[5], "register")
            T[0] = i32(0)
            for j in vectorized(4):
                T[j + 1] = T[j] + A[j]
                C[j] = i32(0)
                for k in range(j):
                    C[j] = C[j] + A[k]
    """
    assert golden == applied(vectorize, text)
