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


@pytest.mark.parametrize("n", [1, 8, 9, 31, 32, 33])
def test_condition_that_ends_a_loop(golden, n):
    """What a tile leaves over goes by single vectors, and the last of them in part."""
    text = """
        def scale(A: f32[n], C: f32[n]):
            for i in range((n + 31) // 32):
                for j in vectorized(32):
                    if i * 32 + j < n:
                        C[i * 32 + j] = A[i * 32 + j] * 2.0
    """
    made = applied(vectorize, text, remarks=[], size_values={"n": n})
    assert n > 1 or golden == made


@pytest.mark.parametrize("n", [1, 8, 9, 31, 32, 33])
def test_condition_that_ends_a_reduction(golden, n):
    text = """
        def greatest(A: i32[n], C: i32[1]):
            C[0] = i32(-1000)
            for i in range((n + 31) // 32):
                for j in vectorized(32):
                    if i * 32 + j < n:
                        C[0] = max(C[0], A[i * 32 + j])
    """
    made = applied(vectorize, text, remarks=[], size_values={"n": n})
    assert n > 1 or golden == made


@pytest.mark.parametrize("n", [1, 7, 8, 13, 16])
def test_registers_that_are_stored_in_part(golden, n):
    """The store asks whether all lanes are on: under a mask it takes longer, without AVX-512."""
    text = """
        def crop(A: f32[16], C: f32[n]):
            T = alloc(f32[16], "register")
            for j in vectorized(16):
                T[j] = A[j] * 2.0
            for j in vectorized(16):
                if j < n:
                    C[j] = T[j]
    """
    made = applied(vectorize, text, remarks=[], size_values={"n": n})
    assert n > 1 or golden == made


@pytest.mark.parametrize("n", [1, 7, 8, 13, 16])
@pytest.mark.parametrize("outside", ["0.0", "1.0"])
def test_border_behind_a_symbolic_end(golden, n, outside):
    """Zero is what a load in part gives by itself."""
    text = f"""
        def pad(A: f32[n], C: f32[16]):
            for j in vectorized(16):
                C[j] = select(j < n, A[min(j, n - 1)], {outside})
    """
    made = applied(vectorize, text, remarks=[], size_values={"n": n})
    assert n > 1 or golden == made


@pytest.mark.parametrize("n", [1, 7, 9])
def test_lanes_that_are_not_adjacent_have_no_mask(n):
    text = """
        def turned(A: f32[n], C: f32[n]):
            for j in vectorized(16):
                if j < n:
                    C[j] = A[n - 1 - j]
    """
    made = applied(vectorize, text, size_values={"n": n})
    assert "prefix" not in str(made)


@pytest.mark.parametrize("n", [0, 1, 9])
def test_an_element_for_all_lanes_is_there_if_one_lane_is_on(n):
    text = """
        def last(A: f32[n + 1], B: f32[n], C: f32[16]):
            for j in vectorized(16):
                C[j] = 0.0
            for j in vectorized(8):
                if j < n:
                    C[j] = A[j] + B[n - 1]
    """
    made = applied(vectorize, text, remarks=[], size_values={"n": n})
    assert "if 0 < n:" in str(made)


@pytest.mark.parametrize("n", [1, 9])
def test_small_elements_have_no_masks_before_avx512(n):
    text = """
        def copy(A: i8[n], C: i8[n]):
            for j in vectorized(32):
                if j < n:
                    C[j] = A[j]
    """
    assert "prefix" not in str(applied(vectorize, text, remarks=[], size_values={"n": n}))


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
