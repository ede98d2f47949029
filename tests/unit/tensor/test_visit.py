import pytest

from tests.unit.tensor import samples
from tilewright.dtypes import f32
from tilewright.tensor import ir as tir
from tilewright.tensor import library
from tilewright.tensor.visit import (
    enclosing,
    find,
    find_block,
    free_vars,
    holds,
    map_children,
    replace_node,
    rewrite,
    substitute,
    walk,
    walk_stmts,
)

i, j = tir.Var("i"), tir.Var("j")


def test_walk_is_in_program_order():
    names = [n.name for n in walk(i * 4 + j) if isinstance(n, tir.Var)]
    assert names == ["i", "j"]


def test_walk_enters_covers_and_regions():
    cover = tir.Cover(((4, i), (1, j)))
    assert {i, j} <= set(walk(tir.TileStart(cover, tir.Const(0))))
    block = find_block(library.matmul(2, 2, 2), "C")
    assert sum(isinstance(n, tir.Region) for n in walk(block)) == 3


SOUGHT = (
    tir.Call,
    tir.Load,
    tir.Var,
    tir.Const,
    tir.Select,
    tir.Compare,
    tir.TileSize,
    tir.Store,
    tir.Block,
)
ROOTS = {
    **samples.EXPRESSIONS,
    "stages": samples.stages(3, 4),
    "matmul": library.matmul(2, 2, 2),
    "cover": tir.TileSize(tir.Cover(((4, i), (1, j * 2))), tir.Const(0)),
}


@pytest.mark.parametrize("name", ROOTS)
def test_find_is_walk_for_one_class(name):
    for kind in SOUGHT:
        expected = [part for part in walk(ROOTS[name]) if isinstance(part, kind)]
        found = list(find(ROOTS[name], kind))
        assert len(found) == len(expected)
        assert all(a is b for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("name", ROOTS)
def test_every_part_knows_what_it_holds(name):
    for part in walk(ROOTS[name]):
        for kind in SOUGHT:
            assert holds(part, kind) == any(isinstance(n, kind) for n in walk(part))
    assert holds(ROOTS[name], *SOUGHT)


def test_what_no_pass_looks_for_cannot_be_asked_for():
    with pytest.raises(TypeError):
        holds(i // 2, tir.FloorDiv)


def test_rewrite_keeps_what_does_not_change():
    func = samples.stages(3, 4)
    assert rewrite(func.body, lambda _: None) is func.body
    assert map_children(func.body, lambda n: n) is func.body


def test_rewrite_is_bottom_up():
    ones = rewrite(i + (j + i), lambda n: tir.Const(1) if n is i else None)
    assert ones == tir.Add(tir.Const(1), tir.Add(j, tir.Const(1)))


def test_substitute_replaces_and_shares():
    a = tir.Buffer("A", (tir.Const(4),), f32)
    expr = a[i] + a[j]
    changed = substitute(expr, {i: j})
    assert changed == a[j] + a[j]
    assert changed.b is expr.b
    assert substitute(expr, {}) is expr
    assert substitute(expr, {tir.Var("k"): j}) is expr


def test_substitute_makes_vectors_of_loads():
    a = tir.Buffer("A", (tir.Const(8),), f32)
    assert substitute(a[i], {i: tir.Ramp(tir.Const(0), tir.Const(1), 8)}).dtype == f32.vector(8)


def test_substitute_does_not_enter_blocks_for_outer_variables():
    nest = library.matmul(2, 2, 2).body
    block = find_block(nest, "C")
    changed = substitute(block, {nest.var: tir.Const(1)})
    assert changed.bindings[0] == tir.Const(1)
    assert changed.body is block.body


def test_replace_node_finds_by_identity_and_shares_the_rest():
    func = samples.stages(3, 4)
    parts = func.body.body.body.body.body
    new = tir.Barrier()
    changed = replace_node(func, parts[1], new)
    after = changed.body.body.body.body.body
    assert after[1] is new
    assert after[0] is parts[0]
    assert replace_node(func, tir.Barrier(), new) is func


def test_free_vars_leaves_out_bound_ones():
    assert free_vars(i * 2 + j) == {i, j}
    assert free_vars(tir.Let(i, j, i + 1)) == {j}
    assert free_vars(library.matmul(2, 2, 2).body) == set()


def test_enclosing_lists_the_path():
    func = library.matmul(2, 2, 2)
    block = find_block(func, "C")
    assert [s.var.name for s in enclosing(func, block)] == ["i", "j", "k"]
    assert enclosing(func, tir.Barrier()) == ()


def test_walk_stmts_sees_statements_only():
    kinds = [type(s).__name__ for s in walk_stmts(library.matmul(2, 2, 2))]
    assert kinds == ["For", "For", "For", "Block", "Store", "Store"]
