from __future__ import annotations

from tilewright.dtypes import i64
from tilewright.tensor import ir as tir
from tilewright.tensor.arith.itermap import IterMap, Reason, Refusal, compose, detect
from tilewright.tensor.cover import count, of, size, start, uniform
from tilewright.tensor.printer import print_node

NAMES = "i j k f f0 f1 i0 i1 m n t t0 t1 u w x"
i, j, k, f, f0, f1, i0, i1, m, n, t, t0, t1, u, w, x = (tir.Var(v) for v in NAMES.split())
BLOCK = of((6, 20), (4, 2))  # 128


def accepted(found: IterMap | Refusal) -> IterMap:
    assert isinstance(found, IterMap), str(found)
    return found


def refused(found: IterMap | Refusal, reason: Reason, binding: int | None, *loops: tir.Var) -> None:
    assert isinstance(found, Refusal), found
    assert found.reason is reason, str(found)
    assert found.binding == binding
    assert found.loops == loops
    assert str(found)


def inverse_text(found: IterMap) -> dict[str, str]:
    iterators = [tir.Var(f"v{number}") for number in range(len(found.problem.bindings))]
    return {v.name: print_node(e) for v, e in found.inverse(iterators).items()}


def test_loops_themselves():
    found = accepted(detect((j, i), (5, 4), [(i, 4), (j, 5)]))
    assert found.is_exact
    assert found.uses == ((j,), (i,))
    assert inverse_text(found) == {"i": "v1", "j": "v0"}


def test_split():
    found = accepted(detect((i0 * 4 + i1,), (32,), [(i0, 8), (i1, 4)]))
    assert found.is_exact
    assert inverse_text(found) == {"i0": "v0 // 4", "i1": "v0 % 4"}


def test_split_with_loops_reordered():
    found = accepted(detect((i0 * 4 + i1, j), (32, 3), [(i1, 4), (j, 3), (i0, 8)]))
    assert found.is_exact
    assert found.uses == ((i1, i0), (j,))


def test_digits_of_a_fused_loop():
    found = accepted(detect((f // 4, f % 4), (8, 4), [(f, 32)]))
    assert found.is_exact
    assert inverse_text(found) == {"f": "v0 * 4 + v1"}


def test_three_digits():
    found = accepted(detect((f // 20, f // 4 % 5, f % 4), (6, 5, 4), [(f, 120)]))
    assert found.is_exact
    assert inverse_text(found) == {"f": "v0 * 20 + v1 * 4 + v2"}


def test_fused_loop_split_again():
    position = f0 * 8 + f1
    found = accepted(detect((position // 6, position % 6), (4, 6), [(f0, 3), (f1, 8)]))
    assert found.is_exact
    assert inverse_text(found) == {"f0": "(v0 * 6 + v1) // 8", "f1": "(v0 * 6 + v1) % 8"}


def test_symbolic_fused_loop():
    found = accepted(detect((f // n, f % n), (m, n), [(f, m * n)]))
    assert found.is_exact
    assert inverse_text(found) == {"f": "v0 * n + v1"}


def test_symbolic_scales():
    found = accepted(detect((i * n + j,), (m * n,), [(i, m), (j, n)]))
    assert found.is_exact
    assert inverse_text(found) == {"i": "v0 // n", "j": "v0 % n"}


def test_reversed_loop():
    found = accepted(detect((7 - i,), (8,), [(i, 8)]))
    assert found.is_exact
    assert inverse_text(found) == {"i": "7 - v0"}


def test_tiles_of_a_cover():
    found = accepted(detect((start(BLOCK, t) + j,), (128,), [(t, 22), (j, size(BLOCK, t))]))
    assert found.is_exact
    assert found.uses == ((t, j),)
    assert inverse_text(found) == {
        "t": "select(v0 < 120, v0 // 6, v0 // 4 - 10)",
        "j": "select(v0 < 120, v0 % 6, v0 % 4)",
    }


def test_tiles_of_a_regular_cover():
    cover = uniform(128, 6)
    found = accepted(detect((start(cover, t) + j,), (128,), [(t, 22), (j, size(cover, t))]))
    assert found.is_exact
    assert inverse_text(found) == {"t": "v0 // 6", "j": "v0 % 6"}


def test_tiles_of_a_symbolic_cover():
    cover = uniform(n, 6)
    found = accepted(detect((start(cover, t) + j,), (n,), [(t, count(cover)), (j, size(cover, t))]))
    assert found.is_exact


def test_tile_number_split():
    tile = t0 * 11 + t1
    loops = [(t0, 2), (t1, 11), (j, size(BLOCK, tile))]
    assert accepted(detect((start(BLOCK, tile) + j,), (128,), loops)).is_exact


def test_tile_number_fused_with_another_loop():
    tile = f % 22
    loops = [(f, 88), (j, size(BLOCK, tile))]
    found = accepted(detect((f // 22, start(BLOCK, tile) + j), (4, 128), loops))
    assert found.is_exact
    assert found.uses == ((f,), (f, j))


def test_tile_number_tiled_by_a_cover():
    outer = of((5, 2), (4, 3))
    tile = start(outer, u) + w
    loops = [(u, 5), (w, size(outer, u)), (j, size(BLOCK, tile))]
    found = accepted(detect((start(BLOCK, tile) + j,), (128,), loops))
    assert found.is_exact
    assert found.uses == ((u, w, j),)


def test_inside_of_a_tile_split():
    loops = [(t, 22), (i0, size(BLOCK, t) // 2), (i1, 2)]
    assert accepted(detect((start(BLOCK, t) + i0 * 2 + i1,), (128,), loops)).is_exact


def test_inside_of_a_tile_split_with_a_guard():
    loops = [(t, 22), (i0, (size(BLOCK, t) + 3) // 4), (i1, 4)]
    guard = i0 * 4 + i1 < size(BLOCK, t)
    assert accepted(detect((start(BLOCK, t) + i0 * 4 + i1,), (128,), loops, guard)).is_exact


def test_digits_of_tiled_positions():
    position = start(BLOCK, t) + j
    loops = [(t, 22), (j, size(BLOCK, t))]
    assert accepted(detect((position // 4, position % 4), (32, 4), loops)).is_exact


def test_guarded_split():
    loops = [(i0, 3), (i1, 4)]
    found = accepted(detect((i0 * 4 + i1,), (10,), loops, i0 * 4 + i1 < 10))
    assert found.is_exact
    assert inverse_text(found) == {"i0": "v0 // 4", "i1": "v0 % 4"}


def test_guarded_symbolic_split():
    loops = [(i0, (n + 3) // 4), (i1, 4)]
    assert accepted(detect((i0 * 4 + i1,), (n,), loops, i0 * 4 + i1 < n)).is_exact


def test_guards_within_guards():
    inner = i1 * 2 + j
    loops = [(i0, 4), (i1, 2), (j, 2)]
    guard = (i0 * 3 + inner < 10) & (inner < 3)
    assert accepted(detect((i0 * 3 + inner,), (10,), loops, guard)).is_exact


def test_guard_on_part_of_a_binding():
    loops = [(i0, 3), (i1, 4), (j, 8)]
    found = detect((i0 * 32 + i1 * 8 + j,), (80,), loops, i0 * 4 + i1 < 10)
    assert accepted(found).is_exact


def test_window_that_overlaps():
    found = accepted(detect((t * 4 + x, j), (34, 3), [(t, 8), (j, 3), (x, 6)]))
    assert found.overlapping == (True, False)
    assert not found.is_exact
    assert inverse_text(found) == {"j": "v1"}


def test_window_over_tiles():
    loops = [(t, 22), (x, size(BLOCK, t) + 2)]
    assert accepted(detect((start(BLOCK, t) + x,), (130,), loops)).overlapping == (True,)
    loops = [(t, 22), (x, size(BLOCK, t) * 2 + 1)]
    assert accepted(detect((start(BLOCK, t) * 2 + x,), (257,), loops)).overlapping == (True,)


def test_window_with_a_halo_cut_on_both_sides():
    position = t * 4 + x - 1
    guard = (position >= 0) & (position < 32)
    found = accepted(detect((position,), (32,), [(t, 8), (x, 6)], guard))
    assert found.overlapping == (True,)


def test_unused_loops():
    assert accepted(detect((i,), (8,), [(i, 8), (j, 4)])).unused == (j,)
    assert accepted(detect((i,), (8,), [(i, 8), (j, 1)])).unused == ()
    assert accepted(detect((i // 4,), (8,), [(i, 32)])).unused == (i,)


def test_a_loop_of_one_iteration_is_zero():
    found = accepted(detect((i, tir.Const(0)), (8, 1), [(i, 8), (j, 1)]))
    assert found.is_exact
    assert inverse_text(found) == {"i": "v0", "j": "0"}


def test_outer_variables_stand_still():
    found = detect((j,), (size(BLOCK, t),), [(j, size(BLOCK, t))], outer={t: 22})
    assert accepted(found).is_exact


def test_rejects_two_bindings_of_one_loop():
    refused(detect((i, i * 2), (8, 16), [(i, 8)]), Reason.DEPENDENT, 1, i)
    refused(detect((i, i), (8, 8), [(i, 8)]), Reason.DEPENDENT, 1, i)
    refused(detect((i // 2, i // 4), (8, 4), [(i, 16)]), Reason.DEPENDENT, 1, i)
    refused(detect((i % 4, i % 8), (4, 8), [(i, 32)]), Reason.DEPENDENT, 1, i)


def test_rejects_gaps():
    refused(detect((i * 2,), (16,), [(i, 8)]), Reason.GAP, 0, i)
    refused(detect((i0 * 8 + i1,), (64,), [(i0, 8), (i1, 4)]), Reason.GAP, 0, i0, i1)
    loops = [(t, 22), (x, size(BLOCK, t) - 1)]
    refused(detect((start(BLOCK, t) + x,), (127,), loops), Reason.GAP, 0, t, x)


def test_rejects_values_outside_of_the_domain():
    refused(detect((i + 1,), (8,), [(i, 8)]), Reason.OUTSIDE, 0, i)
    refused(detect((i - 1,), (8,), [(i, 8)]), Reason.OUTSIDE, 0, i)
    refused(detect((i0 * 4 + i1,), (10,), [(i0, 3), (i1, 4)]), Reason.OUTSIDE, 0, i0, i1)
    found = detect((j, i0 * 4 + i1), (2, 10), [(j, 2), (i0, 3), (i1, 4)])
    refused(found, Reason.OUTSIDE, 1, i0, i1)
    assert isinstance(found, Refusal)
    assert (found.expected, found.found) == (tir.Const(10), tir.Const(12))


def test_rejects_a_domain_that_is_not_reached():
    refused(detect((i,), (9,), [(i, 8)]), Reason.PARTIAL, 0, i)
    refused(detect((i // 4, i % 4), (3, 4), [(i, 10)]), Reason.PARTIAL, 1, i)
    refused(
        detect((start(BLOCK, t) + j,), (128,), [(t, 21), (j, size(BLOCK, t))]), Reason.PARTIAL, 0, t
    )


def test_rejects_predicates_that_no_binding_shows():
    refused(detect((i, j), (8, 8), [(i, 8), (j, 8)], i < j), Reason.PREDICATE, None, i, j)
    refused(detect((i, j), (4, 4), [(i, 4), (j, 4)], i * 4 + j < 10), Reason.PREDICATE, None, i, j)
    refused(detect((i,), (8,), [(i, 8)], i.ne(3)), Reason.PREDICATE, None)


def test_rejects_what_is_not_affine():
    table = tir.Buffer("A", (tir.Const(8),), i64)
    refused(detect((table[i],), (8,), [(i, 8)]), Reason.NOT_AFFINE, 0)
    refused(detect((j, i * i), (2, 50), [(j, 2), (i, 8)]), Reason.NOT_AFFINE, 1, i)
    refused(detect((tir.minimum(i, 3),), (4,), [(i, 8)]), Reason.NOT_AFFINE, 0, i)
    refused(detect((start(BLOCK, t),), (128,), [(t, 22)]), Reason.NOT_AFFINE, 0, t)


def test_rejects_what_cannot_be_proved():
    refused(detect((i,), (m,), [(i, n)]), Reason.UNKNOWN, 0, i)
    refused(detect((i0 * 4 + i1,), (n,), [(i0, n // 4), (i1, 4)]), Reason.UNKNOWN, 0, i0, i1)


def test_refusals_read_well():
    assert str(detect((i, i), (8, 8), [(i, 8)])) == (
        "binding 1 is not independent of the other bindings (`i`)"
    )
    assert str(detect((i, j), (8, 8), [(i, 8), (j, 8)], i < j)) == (
        "the predicate cuts the loops in a way that no binding shows (`i`, `j`)"
    )


def test_compose():
    v0, v1 = tir.Var("v0"), tir.Var("v1")
    split = accepted(detect((f // 4, f % 4), (8, 4), [(f, 32)]))
    swap = accepted(detect((v1 * 8 + v0,), (32,), [(v0, 8), (v1, 4)]))
    both = accepted(compose(split, swap))
    assert both.is_exact
    assert both.problem.loops == ((f, tir.Const(32)),)
    assert inverse_text(both) == {"f": "v0 // 8 + v0 % 8 * 4"}


def test_compose_carries_predicates():
    v0 = tir.Var("v0")
    split = accepted(detect((i0 * 4 + i1,), (10,), [(i0, 3), (i1, 4)], i0 * 4 + i1 < 10))
    digits = accepted(detect((v0 // 5, v0 % 5), (2, 5), [(v0, 10)]))
    assert accepted(compose(split, digits)).is_exact
