import pytest

from tests.lowering import applied
from tilewright.lower.compact_buffers import compact_buffers


def test_tile_of_a_cover(golden):
    text = """
        def f(A: f32[128, 64], C: f32[128, 64]):
            for i in range(22):
                for j in range(4):
                    T = alloc(f32[128, 64], "register")
                    for x in unrolled(tile_size(cover((6, 21), (2, 1)), i)):
                        for y in vectorized(16):
                            T[i * 6 + x, j * 16 + y] = A[i * 6 + x, j * 16 + y]
                    for u in unrolled(tile_size(cover((6, 21), (2, 1)), i)):
                        for v in vectorized(16):
                            C[i * 6 + u, j * 16 + v] = T[i * 6 + u, j * 16 + v]
    """
    assert golden == applied(compact_buffers, text)


def test_union_of_what_is_written_and_read(golden):
    text = """
        def f(A: f32[34], C: f32[32]):
            for i in range(4):
                T = alloc(f32[40])
                for j in range(10):
                    T[i * 8 + j] = A[i * 8 + j]
                for k in range(8):
                    C[i * 8 + k] = T[i * 8 + k] + T[i * 8 + k + 2]
    """
    assert golden == applied(compact_buffers, text)


def test_starts_of_irregular_tiles(golden):
    tile = "cover((4, 3), (3, 2), (2, 1)), t"
    text = f"""
        def f(A: f32[20], C: f32[20]):
            for t in range(6):
                T = alloc(f32[20])
                for i in range(tile_size({tile})):
                    T[tile_start({tile}) + i] = A[tile_start({tile}) + i]
                for j in range(tile_size({tile})):
                    C[tile_start({tile}) + j] = T[tile_start({tile}) + j]
    """
    assert golden == applied(compact_buffers, text)


def test_dimensions_that_are_used_whole_stay():
    text = """
        def f(A: f32[8, n], C: f32[8, n]):
            for i in range(8):
                T = alloc(f32[1, n])
                for j in range(n):
                    T[0, j] = A[i, j]
                for k in range(n):
                    C[i, k] = T[0, k]
    """
    made = applied(compact_buffers, text)
    assert applied(compact_buffers, made) is made


def test_symbolic_size_becomes_a_number(golden):
    text = """
        def f(A: f32[n], C: f32[n]):
            for i in range(n):
                T = alloc(f32[n])
                T[i] = A[i]
                C[i] = T[i]
    """
    assert golden == applied(compact_buffers, text)


@pytest.mark.parametrize("index", ["I[i]", "(i * 3 + j) % 8"])
def test_index_without_useful_bounds_keeps_the_size(index):
    text = f"""
        def f(A: i32[8], I: i64[8], C: i32[8, 8]):
            for i in range(8):
                T = alloc(i32[8])
                for z in range(8):
                    T[z] = A[z]
                for j in range(8):
                    C[i, j] = T[({index}) % 8]
    """
    made = applied(compact_buffers, text)
    assert "alloc(i32[8])" in str(made)


def test_vector_accesses_count_all_lanes(golden):
    text = """
        def f(A: f32[64], C: f32[64]):
            for i in range(4):
                T = alloc(f32[64])
                T[ramp(i * 16, 1, 8)] = A[ramp(i * 16, 1, 8)]
                T[ramp(i * 16 + 8, 1, 8)] = A[ramp(i * 16 + 8, 1, 8)]
                C[ramp(i * 16, 1, 16)] = T[ramp(i * 16, 1, 16)]
    """
    assert golden == applied(compact_buffers, text)
