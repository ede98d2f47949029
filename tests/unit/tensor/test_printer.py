import pytest

from tests.unit.tensor import samples
from tilewright.dtypes import bf16, f32
from tilewright.tensor import ir as tir
from tilewright.tensor import library
from tilewright.tensor.build import size
from tilewright.tensor.printer import print_func, print_node
from tilewright.tensor.visit import find_block, walk


@pytest.mark.parametrize("text", samples.EXPRESSIONS)
def test_expression_has_the_least_parentheses(text):
    assert print_node(samples.EXPRESSIONS[text]) == text


def test_matmul(golden):
    assert golden == library.matmul(128, 768, 768)


def test_symbolic_sizes_and_storage_types(golden):
    assert golden == library.matmul(size("m"), 64, size("k"), bf16, out=bf16, bias=True, relu=True)


def test_long_headers_are_wrapped(golden):
    assert golden == library.conv3d(1, 4, 8, 8, 8, 16, 3, padding=1)


def test_result_without_dimensions(golden):
    assert golden == library.total(3, 4)


def test_scheduled_program(golden):
    assert golden == samples.scheduled_func()


def test_lowered_program(golden):
    assert golden == samples.lowered_func()


def test_marks_stand_behind_their_lines(golden):
    func = samples.stages(4, 8)
    block = find_block(func, "E")
    inner = func.body.body.body.body.body[0].body
    load = next(n for n in walk(find_block(func, "Y")) if isinstance(n, tir.Load))
    marks = {
        "loop": inner,
        "also": inner,
        "block": block,
        "buffer": func.body.buffer,
        "parameter": func.params[0],
        "iterator": find_block(func, "S").iters[1].var,
        "access": load,
        "absent": tir.Barrier(),
    }
    assert golden == print_func(func, marks)


def test_unbound_variable_is_marked_where_it_is_used():
    stray = tir.Var("stray")
    a = tir.Buffer("A", (tir.Const(4),), f32)
    func = tir.Func("f", (a,), tir.Store(a, (stray,), tir.Const(0.0, f32)))
    assert "A[stray] = 0.0  # <- here" in print_func(func, {"here": stray})


def test_names_are_unique_and_keep_hints():
    a = tir.Buffer("A", (tir.Const(4),), f32)
    one, two, three = tir.Var("i"), tir.Var("i_1"), tir.Var("i")
    store = tir.Store(a, (one + two + three,), tir.Const(0.0, f32))
    nest = tir.For(
        one, tir.Const(1), tir.For(two, tir.Const(1), tir.For(three, tir.Const(1), store))
    )
    assert "A[i + i_1 + i_2] = 0.0" in print_func(tir.Func("f", (a,), nest))


def test_names_become_identifiers():
    a = tir.Buffer("A.local", (tir.Const(4),), f32)
    one, two = tir.Var("for"), tir.Var("0")
    store = tir.Store(a, (one + two,), tir.Const(0.0, f32))
    text = print_node(store)
    assert text == "A_local[for_ + _0] = 0.0"


def test_iterators_of_different_blocks_share_names():
    text = str(samples.stages(4, 8))
    assert text.count("vi=S(4, ") == 4


def test_single_nodes_print():
    a = tir.Buffer("A", (tir.Const(4), size("n")), f32)
    i = tir.Var("i")
    assert print_node(a) == "A: f32[4, n]"
    assert print_node(tir.Range(i * 2, tir.Const(4))) == "i * 2:i * 2 + 4"
    assert print_node(tir.Iter(i, tir.Const(4))) == "i = S(4)"
    assert print_node(tir.Barrier()) == "barrier()"
    assert print_node(library.add(2, 2)) == str(library.add(2, 2))
