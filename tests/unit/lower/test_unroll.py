from tests.lowering import applied
from tilewright.lower.unroll import unroll


def test_numbers_take_the_place_of_variables(golden):
    text = """
        def f(A: f32[64], C: f32[64]):
            for k in range(8):
                for i in unrolled(2):
                    for j in unrolled(2):
                        if i * 2 + j < 3:
                            C[k * 8 + i * 4 + j] = A[k * 8 + i * 4 + j] + f32(i * 2 + j)
                        C[k * 8 + i * 4 + 2 + j] = 1.0
                    if i == 1:
                        C[k * 8 + 5] = 0.0
    """
    assert golden == applied(unroll, text + _rest("C"), remarks=[])


def _rest(name: str) -> str:
    return f"""
            for z in range(8):
                {name}[z * 8 + 5] = 2.0
    """


def test_inner_loops_and_buffers_are_copied(golden):
    text = """
        def f(A: f32[32], C: f32[4]):
            for i in unrolled(4):
                T = alloc(f32[1])
                T[0] = 0.0
                for k in range(8):
                    T[0] = T[0] + A[i * 8 + k]
                C[i] = T[0]
    """
    assert golden == applied(unroll, text, remarks=[])


def test_symbolic_loops_stay_loops():
    text = """
        def f(A: f32[n], C: f32[n]):
            for i in unrolled(n):
                T = alloc(f32[4], "register")
                T[i % 4] = A[i]
                C[i] = T[i % 4]
    """
    remarks = [
        "loop `i` is not unrolled: its extent is not constant",
        "`T` is kept in memory: not all loops over it are unrolled",
    ]
    assert "register" not in str(applied(unroll, text, remarks=remarks))


def test_very_long_loops_stay_loops():
    text = """
        def f(A: f32[20000], C: f32[20000]):
            for i in unrolled(20000):
                C[i] = A[i]
    """
    remark = "loop `i` is not unrolled: it would have more than 16384 statements"
    applied(unroll, text, remarks=[remark])


def test_nothing_to_unroll_stays_the_same_object():
    text = """
        def f(A: f32[8], C: f32[8]):
            for i in range(8):
                C[i] = A[i]
    """
    made = applied(unroll, text, remarks=[])
    assert applied(unroll, made) is made
