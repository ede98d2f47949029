import pytest

from tests.lowering import applied
from tilewright.lower.cut_loops import cut_loops
from tilewright.tensor.parser import parse


def test_tiles_of_two_sizes(golden):
    text = """
        def scale(A: f32[128], C: f32[128]):
            for t in range(22):
                for i in unrolled(tile_size(cover((6, 21), (2, 1)), t)):
                    C[t * 6 + i] = A[t * 6 + i] * 2.0
    """
    assert golden == applied(cut_loops, text)


def test_tiles_of_three_sizes_with_starts(golden):
    tile = "cover((4, 3), (3, 2), (2, 1)), t"
    text = f"""
        def scale(A: f32[20], C: f32[20]):
            for t in range(6):
                for i in vectorized(tile_size({tile})):
                    C[tile_start({tile}) + i] = A[tile_start({tile}) + i]
    """
    assert golden == applied(cut_loops, text)


def test_split_tile_loop_is_cut_with_clamped_borders(golden):
    tile = "cover((6, 4), (4, 2)), s * 2 + t"
    text = f"""
        def scale(A: f32[32], C: f32[32]):
            for s in range(3):
                for t in range(2):
                    for i in unrolled(tile_size({tile})):
                        C[tile_start({tile}) + i] = A[tile_start({tile}) + i]
    """
    assert golden == applied(cut_loops, text)


def test_tiles_in_reverse(golden):
    text = """
        def scale(A: f32[14], C: f32[14]):
            for t in range(3):
                for i in unrolled(tile_size(cover((6, 2), (2, 1)), 2 - t)):
                    C[(2 - t) * 6 + i] = A[(2 - t) * 6 + i]
    """
    assert golden == applied(cut_loops, text)


def test_tile_number_that_no_range_of_iterations_fits(golden):
    text = """
        def scale(A: f32[14], C: f32[28]):
            for t in range(6):
                for i in unrolled(tile_size(cover((6, 2), (2, 1)), t % 3)):
                    C[(t // 3) * 14 + t % 3 * 6 + i] = A[t % 3 * 6 + i]
    """
    assert golden == applied(cut_loops, text)


def test_parallel_loop_chooses_its_body(golden):
    text = """
        def scale(A: f32[14], C: f32[14]):
            for t in parallel(3):
                for i in vectorized(tile_size(cover((6, 2), (2, 1)), t)):
                    C[t * 6 + i] = A[t * 6 + i]
    """
    assert golden == applied(cut_loops, text)


@pytest.mark.parametrize("n", [1, 5, 6, 17])
def test_symbolic_counts(golden, n):
    tile = "cover((6, n // 6), (1, n % 6)), t"
    text = f"""
        def scale(A: f32[n], C: f32[n]):
            for t in range(n // 6 + n % 6):
                for i in unrolled(tile_size({tile})):
                    C[tile_start({tile}) + i] = A[tile_start({tile}) + i]
    """
    made = applied(cut_loops, text, size_values={"n": n})
    assert n > 1 or golden == made


def test_nested_tiles_after_a_cut_makes_one_iteration(golden):
    """The inner tile loop vanishes in one part; then the parallel loop chooses the inner tiles."""
    text = """
        def scale(A: f32[17], C: f32[17]):
            for t in parallel(2):
                for u in unrolled(tile_size(cover((2, 1), (1, 1)), t)):
                    for i in unrolled(tile_size(cover((8, 2), (1, 1)), t * 2 + u)):
                        C[t * 16 + u * 8 + i] = A[t * 16 + u * 8 + i]
    """
    assert golden == applied(cut_loops, text)


def test_init_moves_in_front(golden):
    text = """
        def matmul(A: f32[12], B: f32[20], C: f32[15]):
            for i in range(3):
                for j in range(5):
                    for k in range(4):
                        if k == 0:
                            C[i * 5 + j] = 0.0
                        C[i * 5 + j] = C[i * 5 + j] + A[i * 4 + k] * B[k * 5 + j]
    """
    assert golden == applied(cut_loops, text)


def test_init_of_outer_reduction_is_peeled(golden):
    text = """
        def columns(A: f32[60], C: f32[5]):
            for k0 in range(4):
                for j in range(5):
                    for k1 in range(3):
                        if k0 == 0 and k1 == 0:
                            C[j] = 0.0
                        C[j] = C[j] + A[k0 * 15 + k1 * 5 + j]
    """
    assert golden == applied(cut_loops, text)


@pytest.mark.parametrize("n", [1, 4])
def test_init_of_symbolic_reduction(golden, n):
    text = """
        def total(A: i32[n], C: i32[1]):
            C[0] = i32(7)
            for k in range(n):
                if k == 0:
                    C[0] = i32(0)
                C[0] = C[0] + A[k]
    """
    made = applied(cut_loops, text, size_values={"n": n})
    assert n > 1 or golden == made


def test_predicate_splits_off_the_last_tile(golden):
    text = """
        def scale(A: f32[30], C: f32[30]):
            for i in range(4):
                for j in vectorized(8):
                    if i * 8 + j < 30:
                        C[i * 8 + j] = A[i * 8 + j] * 2.0
    """
    assert golden == applied(cut_loops, text)


def test_padding_is_asked_at_the_borders_only(golden):
    x = "t * 8 + j + r"
    text = f"""
        def blur(A: f32[32], C: f32[32]):
            for t in range(4):
                for i in vectorized(8):
                    C[t * 8 + i] = 0.0
                for r in range(3):
                    for j in vectorized(8):
                        C[t * 8 + j] = C[t * 8 + j] + select(
                            1 <= {x} and {x} <= 32, A[min(max({x} - 1, 0), 31)], 0.0
                        )
    """
    assert golden == applied(cut_loops, text)


def test_every_phase_of_a_copy_is_cut_at_its_own_border(golden):
    x = "i * 2 + phase"
    text = f"""
        def sort(A: f32[14], C: f32[16]):
            for phase in unrolled(2):
                for i in vectorized(8):
                    C[phase * 8 + i] = select(
                        1 <= {x} and {x} < 15, A[min(max({x} - 1, 0), 13)], 0.0
                    )
    """
    assert golden == applied(cut_loops, text)


def test_unrolled_loops_that_no_border_follows_stay_whole(golden):
    text = """
        def sort(A: f32[14], C: f32[16]):
            for phase in unrolled(2):
                for i in vectorized(8):
                    C[phase * 8 + i] = select(i < 7, A[min(i, 6) * 2 + phase], 0.0)
    """
    assert golden == applied(cut_loops, text)


def test_dynamic_border_of_the_innermost_loop(golden):
    text = """
        def blur(A: f32[9], C: f32[9]):
            for i in range(9):
                C[i] = 0.0
            for r in range(5):
                for i_1 in range(9):
                    if i_1 + r < 9:
                        C[i_1] = C[i_1] + A[i_1 + r]
    """
    assert golden == applied(cut_loops, text)


def test_condition_that_no_iteration_changes_moves_outside(golden):
    text = """
        def choose(A: f32[8], F: i32[4], C: f32[32]):
            for i in range(4):
                for j in range(8):
                    if i % 2 == 0:
                        C[i * 8 + j] = A[j]
                    else:
                        C[i * 8 + j] = 0.0
    """
    assert golden == applied(cut_loops, text)


def test_values_are_never_taken_for_conditions_of_loops(golden):
    text = """
        def choose(A: i64[8], C: i64[8]):
            for i in range(8):
                if A[i] < i:
                    C[i] = A[i]
                else:
                    C[i] = i
    """
    made = applied(cut_loops, text)
    assert golden == made


def test_copies_are_limited():
    """Conditions with sixteen different borders would make too many loops: most stay tests."""
    tests = "".join(
        f"            if i * 3 + j < {7 * n + 5}:\n                C[i * 3 + j] = A[{n}]\n"
        for n in range(16)
    )
    text = (
        "def steps(A: i32[16], C: i32[120]):\n"
        "    for z in range(120):\n        C[z] = i32(0)\n"
        f"    for i in range(40):\n        for j in range(3):\n{tests}"
    )
    assert len(str(applied(cut_loops, text)).splitlines()) < 2500


def test_steps_of_a_fold_that_are_skipped_end_the_loop(golden):
    text = """
        def prefix(A: f32[24], C: f32[4]):
            for q in range(4):
                C[q] = 0.0
                for t in range(4):
                    for k in unrolled(6):
                        C[q] = select(t * 2 <= q, C[q] + A[t * 6 + k], C[q])
    """
    assert golden == applied(cut_loops, text)


def test_one_stage_of_several_asks_in_its_own_loop(golden):
    """The other stages are not copied for it."""
    text = """
        def stages(A: f32[64], C: f32[64], D: f32[64]):
            for t in range(8):
                for i in range(8):
                    C[t * 8 + i] = select(t * 8 + i < 41, A[t * 8 + i], 0.0)
                for j in range(8):
                    for u in unrolled(4):
                        D[t * 8 + j] = A[t * 8 + j] * 2.0
    """
    found = applied(cut_loops, text)
    assert golden == found
    assert str(found).count("* 2.0") == 1


def test_condition_on_data_stays_in_its_loop():
    text = """
        def f(A: f32[8], C: f32[8]):
            for i in range(8):
                C[i] = 1.0
                for j in range(4):
                    if A[i] < 0.0:
                        C[i] = C[i] + 1.0
    """
    func = parse(text)
    assert applied(cut_loops, func) == func


def test_a_digit_of_a_fused_loop_is_tested_once(golden):
    text = """
        def groups(A: f32[112], C: f32[112]):
            for x in parallel(8):
                for j in vectorized(16):
                    if x % 2 * 16 + j < 28:
                        C[x // 2 * 28 + x % 2 * 16 + j] = A[x // 2 * 28 + x % 2 * 16 + j]
    """
    assert golden == applied(cut_loops, text)


def test_the_leading_digit_of_a_fused_loop_is_tested(golden):
    text = """
        def panels(A: f32[3, 28], C: f32[3, 28]):
            for x in parallel(6):
                for j in vectorized(16):
                    if x // 3 * 16 + j < 28:
                        C[x % 3, x // 3 * 16 + j] = A[x % 3, x // 3 * 16 + j]
    """
    assert golden == applied(cut_loops, text)


def test_a_digit_beside_its_variable_is_left_alone():
    text = """
        def mixed(A: f32[64], C: f32[64]):
            for x in parallel(8):
                for j in range(8):
                    C[x * 8 + j] = select(x % 2 * 16 + j < x + 5, A[x * 8 + j], 0.0)
    """
    assert "if x % 2 <" not in str(applied(cut_loops, text))
