from tests.lowering import applied
from tilewright.lower.delay_folds import delay_folds
from tilewright.tensor.parser import parse


def test_lanes_are_folded_behind_the_loop(golden):
    text = """
        def f(A: f32[64], C: f32[1]):
            C[0] = 0.0
            for k in range(8):
                C[0] = C[0] + reduce_add(A[ramp(k * 8, 1, 8)])
    """
    assert golden == applied(delay_folds, text, remarks=[])


def test_a_greatest_element_starts_from_minus_infinity(golden):
    text = """
        def f(A: f32[64], C: f32[8]):
            for i in range(8):
                C[i] = -1.0
                for k in range(2):
                    C[i] = max(C[i], reduce_max(A[ramp(i * 8 + k * 4, 1, 4)]))
    """
    assert golden == applied(delay_folds, text, remarks=[])


def test_what_is_left_over_shares_the_lanes(golden):
    text = """
        def f(A: f32[n], C: f32[1]):
            C[0] = 0.0
            for k in range(n // 16):
                C[0] = C[0] + reduce_add(A[ramp(k * 16, 1, 8)] + A[ramp(k * 16 + 8, 1, 8)])
            if 0 < n % 16:
                for k in range(n % 16 // 8):
                    C[0] = C[0] + reduce_add(A[ramp(n // 16 * 16 + k * 8, 1, 8)])
                C[0] = C[0] + reduce_add(A[prefix(n // 8 * 8, n % 8, 8)])
    """
    made = [applied(delay_folds, text, remarks=[], size_values={"n": n}) for n in (5, 16, 29)]
    assert golden == made[0]


def test_lanes_are_not_shared_with_another_element_or_fold():
    text = """
        def f(A: f32[64], C: f32[2]):
            C[0] = 0.0
            C[1] = 0.0
            for k in range(4):
                C[0] = C[0] + reduce_add(A[ramp(k * 8, 1, 8)])
            C[1] = C[1] + reduce_add(A[ramp(32, 1, 8)])
            C[0] = max(C[0], reduce_max(A[ramp(40, 1, 8)]))
            C[0] = C[0] + reduce_add(A[ramp(48, 1, 8)] * broadcast(C[0], 8))
    """
    made = str(applied(delay_folds, text, remarks=[]))
    assert made.count("reduce_") == 4


def test_an_element_that_moves_or_is_used_otherwise_stays():
    text = """
        def f(A: f32[64], C: f32[8], D: f32[8]):
            for i in range(8):
                C[i] = 0.0
            for k in range(8):
                C[k] = C[k] + reduce_add(A[ramp(k * 8, 1, 8)])
            D[0] = 0.0
            for k in range(1, 8):
                D[0] = D[0] + reduce_add(A[ramp(k * 8, 1, 8)])
                D[k] = D[0]
    """
    func = parse(text.replace("range(1, 8)", "range(7)").replace("D[k]", "D[k + 1]"))
    assert delay_folds(func, None) is func
