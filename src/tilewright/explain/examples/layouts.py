"""S3: steps on layouts."""

from __future__ import annotations

from tilewright.explain.example import example

__all__ = ["EXAMPLES"]

ADD = "s = tw.Schedule(library.add(4, 6))"
DENSE = "s = tw.Schedule(library.matmul(4, 6, 8, bias=True))"
WINDOW = """
A, W, r = tw.placeholder("A", (10,)), tw.placeholder("W", (3,)), tw.reduce_axis(3, "r")
C = tw.compute("C", (8,), lambda i: tw.sum_over(A[i + r] * W[r], r))
s = tw.Schedule(tw.func("window", [A, W], [C]))
"""
ZEROS_AROUND = """
A = tw.placeholder("A", (8,))
B = tw.compute("B", (8,), lambda i: A[i] * 2.0)
C = tw.compute(
    "C",
    (10,),
    lambda i: tw.select((i >= 1) & (i < 9), B[tir.maximum(tir.minimum(i - 1, 7), 0)], 0.0),
)
s = tw.Schedule(tw.func("around", [A], [C]))
"""

EXAMPLES = (
    example(
        "S301",
        """The buffer has fewer dimensions than the step asks for. Dimensions are those in which it
        is stored now: after a split there is one more, after a fusion one less.""",
        given=ADD,
        wrong='s.layout_split("A", 2, 3)',
        right='s.layout_split("A", 1, 3)',
    ),
    example(
        "S302",
        """`layout_unpad`, `layout_fold` and `layout_decouple` undo the last layout step of a
        buffer, which must be the one that they are the inverse of. Undo later steps first.""",
        given=ADD,
        wrong="""
        s.layout_pad("A", 1, 0, 2)
        s.layout_split("A", 1, 4)
        s.layout_unpad("A")
        """,
        right="""
        s.layout_pad("A", 1, 0, 2)
        s.layout_split("A", 1, 4)
        s.layout_fuse("A", 1)
        s.layout_unpad("A")
        """,
    ),
    example(
        "S303",
        """A dimension is stored as groups of one size, so the factor must divide its size. Padding
        makes any size a multiple.""",
        given=ADD,
        wrong='s.layout_split("A", 1, 4)',
        right="""
        s.layout_pad("A", 1, 0, 2)
        s.layout_split("A", 1, 4)
        """,
    ),
    example(
        "S304",
        """An order of the dimensions names each of them once, from zero, as `numpy.transpose` takes
        it.""",
        given=ADD,
        wrong='s.layout_reorder("A", [1])',
        right='s.layout_reorder("A", [1, 0])',
    ),
    example(
        "S305",
        """Fusing makes one dimension of two or more neighbours. One dimension alone already is what
        it would become.""",
        given=ADD,
        wrong='s.layout_fuse("A", 0, 1)',
        right='s.layout_fuse("A", 0, 2)',
    ),
    example(
        "S306",
        """Padding stores a number of zeros before and after the elements. Neither number can be
        negative, and both being zero changes nothing.""",
        given=ADD,
        wrong='s.layout_pad("A", 1, 0, 0)',
        right='s.layout_pad("A", 1, 0, 2)',
    ),
    example(
        "S307",
        """Blocks read the zeros that were stored around the buffer, in the place of a test whether
        an index is inside. As long as they do, the zeros must stay.""",
        given=ZEROS_AROUND,
        wrong="""
        s.layout_pad("B", 0, 1, 1)
        s.layout_unpad("B")
        """,
        right='s.layout_pad("B", 0, 1, 1)',
    ),
    example(
        "S308",
        """Overlapping tiles begin every `stride` elements and hold `tile` of them: at least as many
        as the stride, and no more than there are. The size must be a constant.""",
        given=WINDOW,
        wrong='s.layout_unfold("A", 0, 4, 6)',
        right='s.layout_unfold("A", 0, 6, 4)',
    ),
    example(
        "S309",
        """In an unfolded buffer an element may have several copies, and the block that computes it
        must write all of them. Reductions and blocks that are already scheduled cannot; then let
        the reader have an unfolded copy.""",
        given="s = tw.Schedule(library.matmul(4, 6, 8, relu=True))",
        wrong='s.layout_unfold("T", 1, 4, 2)',
        right="""
        s.cache_read("C", "T")
        s.layout_unfold("T_read", 1, 4, 2)
        """,
    ),
    example(
        "S310",
        """Two buffers that are stored together become one, so they must be alike: both inputs or
        both intermediate, of one type and scope. Outputs are what the caller asked for and stay by
        themselves.""",
        given=ADD,
        wrong='s.layout_store_at("A", "C", 0)',
        right='s.layout_store_at("A", "B", 0)',
    ),
    example(
        "S311",
        """The second buffer is appended along one dimension; all the others must have the same
        size. A buffer that lacks just this dimension fits, too.""",
        given=DENSE,
        wrong='s.layout_store_at("A", "D", 0)',
        right='s.layout_store_at("B", "D", 0)',
    ),
    example(
        "S312",
        """Two buffers that are stored together can be taken apart if every access clearly means one
        of them. A block that runs over both, such as a copy of the whole, does not.""",
        given=DENSE,
        wrong="""
        s.layout_store_at("B", "D", 0)
        s.cache_read("T", "B")
        s.layout_decouple("B")
        """,
        right="""
        s.layout_store_at("B", "D", 0)
        s.layout_decouple("B")
        s.cache_read("T", "B")
        """,
    ),
)
