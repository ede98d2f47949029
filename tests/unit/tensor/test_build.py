import pytest

from tilewright.dtypes import bf16, f32, i8, i32
from tilewright.tensor import ir as tir
from tilewright.tensor.build import (
    compute,
    fold_identity,
    func,
    max_over,
    placeholder,
    reduce_axis,
    select,
    seq,
    sum_over,
)
from tilewright.tensor.verify import verify


def test_compute_names_loops_after_the_parameters():
    a = placeholder("A", (2, 3))
    t = compute("T", (2, 3), lambda row, column: a[row, column])
    assert (t.nest.var.name, t.nest.body.var.name) == ("row", "column")
    assert [i.var.name for i in t.nest.body.body.iters] == ["vrow", "vcolumn"]


def test_compute_counts_dimensions_of_varied_functions():
    a = placeholder("A", (2, 3))
    assert compute("T", (2, 3), lambda *i: a[i]).nest.var.name == "i0"


def test_func_orders_blocks_and_allocates_intermediates():
    a = placeholder("A", (4,))
    b = compute("B", (4,), lambda i: a[i] + 1.0)
    c = compute("C", (4,), lambda i: b[i] * b[i])
    program = verify(func("chain", [a], [c]))
    assert type(program.body) is tir.Alloc
    assert program.body.buffer is b.buffer
    assert [p.name for p in program.params] == ["A", "C"]


def test_func_computes_a_shared_input_once():
    a = placeholder("A", (4,))
    b = compute("B", (4,), lambda i: a[i] + 1.0)
    c = compute("C", (4,), lambda i: b[i] * 2.0)
    d = compute("D", (4,), lambda i: b[i] + c[i])
    program = verify(func("diamond", [a], [d]))
    assert len(program.body.body.body.body) == 3


def test_output_may_also_be_read():
    a = placeholder("A", (4,))
    b = compute("B", (4,), lambda i: a[i] + 1.0)
    c = compute("C", (4,), lambda i: b[i] * 2.0)
    program = verify(func("both", [a], [b, c]))
    assert type(program.body) is tir.Seq


def test_narrow_floats_are_widened_when_read():
    a = placeholder("A", (4,), bf16)
    t = compute("T", (4,), lambda i: a[i] * 2.0, bf16)
    store = t.nest.body.body
    assert store.value.dtype == bf16
    assert store.value.value.dtype == f32


def test_reduction_starts_with_the_identity_of_its_fold():
    a = placeholder("A", (4,), i8)
    k = reduce_axis(4)
    block = compute("T", (), lambda: max_over(a[k], k)).nest.body
    assert block.init.value == tir.Const(-128, i8)
    assert fold_identity(tir.Fold.MIN, f32).value == float("inf")
    assert fold_identity(tir.Fold.MUL, i32) == tir.Const(1, i32)


def test_select_lifts_numbers():
    a = placeholder("A", (4,))
    i = tir.Var("i")
    assert select(i < 2, a[i], 0).if_false == tir.Const(0.0, f32)
    assert select(i < 2, 1, a[i]).if_true == tir.Const(1.0, f32)


def test_seq_is_flat():
    b = tir.Barrier()
    assert seq(b) is b
    assert seq(b, seq(b, b)) == tir.Seq((b, b, b))


def test_wrong_rank_is_refused():
    a = placeholder("A", (4, 4))
    with pytest.raises(IndexError, match="`A` has 2 dimensions, found 1"):
        compute("T", (4,), lambda i: a[i])


def test_reduction_axis_outside_of_a_reduction_is_refused():
    a = placeholder("A", (4,))
    k, r = reduce_axis(4, "k"), reduce_axis(4, "r")
    with pytest.raises(ValueError, match="`T` uses the reduction axis `r`"):
        compute("T", (), lambda: sum_over(a[k] * a[r], k))


def test_missing_input_is_refused():
    a = placeholder("A", (4,))
    b = compute("B", (4,), lambda i: a[i])
    with pytest.raises(ValueError, match="`A` is read but is not among the inputs"):
        func("f", [], [b])
