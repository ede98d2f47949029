import numpy as np
import pytest

from tests.lowering import applied
from tilewright.lower import forms
from tilewright.lower.fold import substitute
from tilewright.lower.lower_tiles import lower_tiles, tile_borders, tile_facts
from tilewright.tensor import cover as covers
from tilewright.tensor import ir as tir
from tilewright.tensor.evaluate import Evaluator

COVERS = [
    covers.of((6, 4), (2, 1)),
    covers.of((3, 2), (5, 1), (2, 2)),
    covers.of((1, 3), (4, 2), (1, 1)),
    covers.of((4, 5)),
]


@pytest.mark.parametrize("cover", COVERS, ids=str)
def test_segments_know_size_and_start(cover):
    t = tir.Var("t")
    facts = tile_facts(cover, t)
    borders = [0, *(forms.const_of(b) for b in tile_borders(cover))]
    for number in range(tir.int_value(covers.count(cover))):
        segment = max(n for n, border in enumerate(borders) if border <= number)
        at = {t: tir.Const(number)}
        known = [substitute(e, at) for e in facts[segment].values()]
        assert known == [
            covers.size(cover, tir.Const(number)),
            covers.start(cover, tir.Const(number)),
        ]


@pytest.mark.parametrize("counts", [(0, 3, 1), (2, 0, 2), (1, 1, 0), (2, 3, 1)])
def test_arithmetic_of_tiles_with_symbolic_counts(counts):
    p, q, r, t = (tir.Var(name) for name in "pqrt")
    cover = tir.Cover(((5, p), (2, q), (3, r)))
    buffer = tir.Buffer("C", (p, q, r), tir.index)
    where = (tir.Const(0),) * 3
    stores = [tir.Store(buffer, where, kind(cover, t)) for kind in (tir.TileStart, tir.TileSize)]
    body = tir.For(t, covers.count(cover), tir.Seq(tuple(stores)))
    made = lower_tiles(tir.Func("f", (buffer,), body), None)
    machine = Evaluator(made)
    machine.values.update(zip((p, q, r), map(np.int64, counts), strict=True))
    for number in range(sum(counts)):
        machine.values[made.body.var] = machine.values[t] = np.int64(number)
        found = [machine.value(s.value) for s in made.body.body.body]
        assert found == [machine.value(s.value) for s in stores]


def test_serial_loops_over_tiles(golden):
    tile = "cover((4, 3), (3, 2), (2, 1)), t"
    text = f"""
        def f(A: f32[20], C: f32[20]):
            for t in range(6):
                for i in range(tile_size({tile})):
                    C[tile_start({tile}) + i] = A[tile_start({tile}) + i]
    """
    made = applied(lower_tiles, text)
    assert golden == made
    assert applied(lower_tiles, made) is made
