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
