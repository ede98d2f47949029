from tests.unit.tensor import samples
from tilewright.dtypes import f32, i32, index
from tilewright.tensor import cover as covers
from tilewright.tensor import ir as tir
from tilewright.tensor import library
from tilewright.tensor.build import compute, func, make_block, placeholder, size
from tilewright.tensor.parser import parse
from tilewright.tensor.printer import print_node
from tilewright.tensor.regions import (
    allocated,
    block_regions,
    blocks,
    outputs,
    readers,
    reads_own_output,
    sizes,
    writers,
)
from tilewright.tensor.visit import find_block

A = tir.Buffer("A", (tir.Const(64), tir.Const(64)), f32)
B = tir.Buffer("B", (tir.Const(64),), f32)
t, i, j = tir.Var("t"), tir.Var("i"), tir.Var("j")


def texts(regions):
    return [print_node(r) for r in regions]


def test_leaf_block_lists_each_access_once_in_order():
    body = tir.Store(B, (i,), A[i, 0] + A[i, 1] * A[i, 0])
    reads, writes = block_regions((), body)
    assert texts(reads) == ["A[i, 0]", "A[i, 1]"]
    assert texts(writes) == ["B[i]"]


def test_own_accumulator_is_not_a_read():
    reads, _ = block_regions((), tir.Store(B, (i,), B[i] + A[i, j]))
    assert texts(reads) == ["A[i, j]"]


def test_other_element_of_the_written_buffer_is_a_read():
    reads, _ = block_regions((), tir.Store(B, (i,), B[i + 1]))
    assert texts(reads) == ["B[i + 1]"]


def test_indices_and_conditions_are_read():
    body = tir.If(A[i, 0] < 0.0, tir.Store(B, (i,), A[i, 1]), None)
    assert texts(block_regions((), body)[0]) == ["A[i, 0]", "A[i, 1]"]


def box(indices, extents):
    """The read region of `A[indices]` inside loops over i and j."""
    body = tir.Store(B, (tir.Const(0),), tir.Load(A, indices))
    for var, extent in reversed(tuple(zip((i, j), extents, strict=True))):
        body = tir.For(var, tir.as_index(extent), body)
    return texts(block_regions((), body)[0])


def test_inner_loops_give_boxes():
    assert box((t * 4 + i, j), (4, 8)) == ["A[t * 4:t * 4 + 4, 0:8]"]
    assert box((i * 2 + j, t), (4, 3)) == ["A[0:9, t]"]


def test_falling_index_gives_a_box():
    assert box((t - i, tir.Const(3) - j), (4, 4)) == ["A[t - 3:t - 3 + 4, 0:4]"]


def test_index_that_grows_in_steps_gives_a_box():
    assert box((i // 3, t), (4, 1)) == ["A[0:2, t]"]
    tiles = covers.of((6, 4), (4, 2))
    inside = covers.start(tiles, i) + j
    assert box((inside, t), (6, covers.size(tiles, i))) == ["A[0:32, t]"]


def test_index_that_depends_on_data_gives_the_whole_dimension():
    c = tir.Buffer("C", (tir.Const(8),), index)
    assert box((c[i], t), (4, 1)) == ["A[0:64, t]", "C[0:4]"]
    d = tir.Buffer("D", (tir.Const(8),), i32)
    assert box((d[i].to(index), t), (4, 1)) == ["A[0:64, t]", "D[0:4]"]


def test_index_that_private_memory_holds_gives_the_whole_dimension():
    state = tir.Buffer("S", (tir.Const(1),), index)
    steps = (tir.Store(state, (tir.Const(0),), i), tir.Store(A, (state[0], j), B[state[0]]))
    reads, writes = block_regions((), tir.Alloc(state, tir.Seq(steps)))
    assert texts(reads) == ["B[0:64]"]
    assert texts(writes) == ["A[0:64, j]"]


def test_index_that_a_leaf_reads_stays_as_it_is():
    c = tir.Buffer("C", (tir.Const(8),), index)
    _, writes = block_regions((), tir.Store(A, (c[i], j), B[j]))
    assert texts(writes) == ["A[C[i], j]"]


def test_inner_blocks_speak_through_their_signature():
    inner = find_block(library.matmul(64, 64, 64), "C")
    at = (t * 16 + i, j, tir.Const(0))
    body = tir.For(i, tir.Const(16), tir.For(j, tir.Const(64), inner.with_fields(bindings=at)))
    reads, writes = block_regions((), body)
    assert texts(reads) == ["A[t * 16:t * 16 + 16, 0]", "B[0, 0:64]"]
    assert texts(writes) == ["C[t * 16:t * 16 + 16, 0:64]"]


def test_local_buffers_are_no_business_of_the_outside():
    body = tir.Alloc(B, tir.Seq((tir.Store(B, (i,), A[i, 0]), tir.Store(A, (i, j), B[i]))))
    reads, writes = block_regions((), body)
    assert texts(reads) == ["A[i, 0]"]
    assert texts(writes) == ["A[i, j]"]


def test_whole_program_questions():
    program = samples.stages(size("m"), 8)
    m, e, s = allocated(program)
    assert [b.name for b in (m, e, s)] == ["M", "E", "S"]
    assert [b.name for b in outputs(program)] == ["Y"]
    assert [v.name for v in sizes(program)] == ["m"]
    assert [b.name for b in blocks(program)] == ["M", "E", "S", "Y"]
    assert [b.name for b in writers(program, e)] == ["E"]
    assert [b.name for b in readers(program, e)] == ["S", "Y"]


def test_sizes_come_in_order_of_first_appearance():
    n, m = size("n"), size("m")
    a = placeholder("A", (m, n + 1))
    program = func("f", [a], [compute("B", (n, m), lambda i, j: a[j, i])])
    assert sizes(program) == (m, n)


def test_update_without_init_reads_its_own_output():
    program = library.matmul(2, 2, 2)
    block = find_block(program, "C")
    assert not reads_own_output(block)
    assert reads_own_output(block.with_fields(init=None))
    assert not reads_own_output(make_block("B", (), (), tir.Store(B, (i,), A[i, i])))


def fill(extent, place):
    """Loops over `i` that store zero to `A[place]`."""
    return tir.For(i, tir.as_index(extent), tir.Store(A, place, tir.const(0.0, f32)))


def test_what_a_body_gives_values_to_first_is_not_its_own_output():
    where = tir.Buffer("C", (tir.Const(64),), index)
    update = tir.For(j, tir.Const(64), tir.Store(A, (t, where[j]), A[t, where[j]] + 1.0))

    def reads_own(*parts):
        return reads_own_output(
            make_block("B", (tir.Iter(t, tir.Const(64)),), (t,), tir.Seq(parts))
        )

    whole = fill(64, (t, i))
    assert not reads_own(whole, update)
    assert reads_own(update, whole)  # too late
    assert reads_own(fill(63, (t, i)), update)  # too little
    assert reads_own(fill(64, (t, 63 - i)), update)  # not plain to see
    assert reads_own(fill(64, (i, i)), update)  # a diagonal
    assert reads_own(fill(64, (tir.Const(0), i)), update)  # another row
    assert reads_own(tir.If(B[0] < 0.0, whole), update)  # perhaps never
    private = tir.Alloc(tir.Buffer("D", (tir.Const(4),), f32), tir.Seq((whole, update)))
    assert not reads_own_output(make_block("B", (tir.Iter(t, tir.Const(64)),), (t,), private))


def test_blocks_do_not_show_what_is_inside():
    text = """
    def f(A: f32[8], B: f32[8]):
        for t in range(2):
            with block("outer", vt=S(2, t)):
                for i in range(4):
                    with block("inner", vi=S(8, vt * 4 + i)):
                        B[vi] = A[vi]
    """
    program = parse(text)
    (outer,) = blocks(program)
    assert outer.name == "outer"
    assert texts(outer.reads) == ["A[vt * 4:vt * 4 + 4]"]
    assert texts(outer.writes) == ["B[vt * 4:vt * 4 + 4]"]
