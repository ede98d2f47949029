import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.tensor import cover as covers
from tilewright.tensor import ir as tir
from tilewright.tensor.build import size

t = tir.Var("t")


def tiles(cover):
    """All (start, size) pairs of a constant cover."""
    count = tir.int_value(covers.count(cover))
    return [
        (
            tir.int_value(covers.start(cover, tir.Const(n))),
            tir.int_value(covers.size(cover, tir.Const(n))),
        )
        for n in range(count)
    ]


def assert_fills(cover, extent):
    position = 0
    for start, length in tiles(cover):
        assert start == position
        position += length
    assert position == extent == tir.int_value(covers.total(cover))


@given(st.integers(0, 60), st.integers(1, 20))
def test_uniform_fills_the_extent(extent, tile):
    cover = covers.uniform(extent, tile)
    assert_fills(cover, extent)
    assert all(length == tile for _, length in tiles(cover)[:-1])


@given(st.integers(0, 60), st.integers(1, 20))
def test_uneven_fills_the_extent_with_equal_tiles(extent, largest):
    cover = covers.uneven(extent, largest)
    assert_fills(cover, extent)
    lengths = {length for _, length in tiles(cover)}
    assert len(lengths) <= 2
    assert not lengths or max(lengths) <= largest
    assert not lengths or max(lengths) - min(lengths) <= 1


def test_regular_covers_have_plain_starts():
    assert covers.start(covers.uniform(12, 4), t) == t * 4
    assert covers.size(covers.uniform(12, 4), t) == tir.Const(4)
    assert covers.start(covers.uniform(14, 4), t) == t * 4
    assert type(covers.size(covers.uniform(14, 4), t)) is tir.TileSize


def test_irregular_covers_have_symbolic_starts():
    cover = covers.of((6, 20), (4, 2))
    assert covers.regular_size(cover) is None
    assert type(covers.start(cover, t)) is tir.TileStart
    assert covers.start(cover, tir.Const(21)) == tir.Const(124)


def test_symbolic_extent_is_filled_up_with_single_elements():
    n = size("n")
    cover = covers.uniform(n, 8)
    assert [s for s, _ in cover.segments] == [8, 1]
    assert covers.uniform(n, 1) == covers.of((1, n))


def test_equal_neighbours_merge_and_empty_segments_vanish():
    assert covers.of((4, 2), (4, 3), (2, 0)) == covers.of((4, 5))


@pytest.mark.parametrize("segment", [(0, 3), (-1, 2), (4, -1)])
def test_cover_rejects_impossible_segments(segment):
    with pytest.raises(ValueError, match="positive"):
        covers.of(segment)
