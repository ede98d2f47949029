"""`cache_read`, `cache_write` and `reindex`: copies of what a block reads and writes."""

from __future__ import annotations

from tests.expect import raises_code
from tests.moving import chain, dense
from tests.programs import assert_same_meaning, conv1d, matmul_relu, total
from tilewright.schedule import Schedule
from tilewright.tensor import ir as tir
from tilewright.tensor.build import compute, func, placeholder, size


def test_cache_read(golden, rng):
    program = dense(4, 6, 8)
    s = Schedule(program)
    assert s.cache_read("C", "A") == "A_read"
    assert golden == s.func
    assert s.buffer("A_read").scope is tir.Scope.MEMORY
    assert_same_meaning(s, program, rng)


def test_cache_read_of_an_intermediate(rng):
    program = chain(8)
    s = Schedule(program)
    s.split("i_1", 4)
    s.cache_read("C", "B", "register")
    assert s.blocks() == ("B", "B_read", "C")
    s.compute_at("B_read", "i_1_0")
    assert_same_meaning(s, program, rng)


def test_cache_read_redirects_one_block_only(rng):
    a = placeholder("A", (8,))
    b = compute("B", (8,), lambda i: a[i] * 2.0)
    c = compute("C", (8,), lambda i: a[i] + b[i])
    program = func("shared", [a], [c])
    s = Schedule(program)
    s.cache_read("C", "A")
    assert [r.buffer.name for r in s.block("B").reads] == ["A"]
    assert [r.buffer.name for r in s.block("C").reads] == ["A_read", "B"]
    assert_same_meaning(s, program, rng)


def test_cache_read_names_are_fresh(rng):
    program = dense(4, 6, 8)
    s = Schedule(program)
    assert s.cache_read("C", "A") == "A_read"
    assert s.cache_read("C", "A_read") == "A_read_read"
    assert s.cache_read("A_read", "A") == "A_read_2"  # `A_read_1` is a loop
    assert_same_meaning(s, program, rng)


def test_cache_write_of_a_reduction(golden, rng):
    program = dense(4, 6, 8)
    s = Schedule(program)
    assert s.cache_write("C") == "C_write"
    assert golden == s.func
    assert s.buffer("C_write").scope is tir.Scope.REGISTER
    assert_same_meaning(s, program, rng)


def test_cache_write_of_a_decomposed_reduction(rng):
    program = dense(4, 6, 8)
    s = Schedule(program)
    s.decompose_reduction("C", "k")
    s.cache_write("C", "memory")
    assert {r.buffer.name for n in ("C", "C_init") for r in s.block(n).writes} == {"C_write"}
    assert_same_meaning(s, program, rng)


def test_cache_write_serves_readers_in_the_same_nest(rng):
    program = matmul_relu(4, 6, 8)
    s = Schedule(program)
    s.reverse_compute_at("D", "i")
    s.cache_write("C")
    assert [r.buffer.name for r in s.block("D").reads] == ["C_write"]
    assert_same_meaning(s, program, rng)


def test_scalar_result(rng):
    program = total(3, 4)
    s = Schedule(program)
    s.cache_write("C")
    assert_same_meaning(s, program, rng)


def test_symbolic_shapes(rng):
    program = chain(size("n"))
    s = Schedule(program)
    s.cache_read("B", "A")
    s.cache_write("C", "memory")
    assert_same_meaning(s, program, rng, {"n": 7})


def test_reindex_of_an_input(golden, rng):
    program = conv1d(6, 3, 2)
    s = Schedule(program)
    assert s.reindex("C", "A") == "A_reindex"
    assert golden == s.func
    assert_same_meaning(s, program, rng)


def test_reindex_of_a_result(golden, rng):
    a = placeholder("A", (3, 4))
    c = compute("C", (4, 6), lambda i, j: a[j // 2, i] * 2.0)
    program = func("moved", [a], [c])
    s = Schedule(program)
    s.layout_split("C", 1, 3)
    before = s.func
    s.reindex("C", "C")
    assert golden == s.func
    assert_same_meaning(Schedule(before), before, rng)


def test_reindex_of_one_access_of_two(rng):
    """The other access stays, and a place that is not there is refused."""
    a = placeholder("A", (9,))
    c = compute("C", (8,), lambda i: a[i] * a[i + 1])
    program = func("window", [a], [c])
    for access in (0, 1):
        s = Schedule(program)
        assert s.reindex("C", "A", access) == "A_reindex"
        assert {r.buffer.name for r in s.block("C").reads} == {"A", "A_reindex"}
        assert_same_meaning(s, program, rng)
    with raises_code("S225", facts={"places": 2}):
        Schedule(program).reindex("C", "A", 2)


def test_reindex_then_layout_then_compute_at(rng):
    program = conv1d(12, 3, 4)
    s = Schedule(program)
    s.reindex("C", "A")
    s.layout_reorder("A_reindex", [1, 2, 0])
    s.split("i", 4)
    s.compute_at("A_reindex", "i_0")
    assert_same_meaning(s, program, rng)
