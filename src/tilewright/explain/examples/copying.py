"""S22, S23: steps that copy what a block uses, or merge blocks."""

from __future__ import annotations

from tilewright.explain.example import example
from tilewright.explain.examples.programs import CHAIN, MATMUL_RELU, SHARED, WINDOW

__all__ = ["EXAMPLES"]


EXAMPLES = (
    example(
        "S220",
        """A copy is made for a block that reads the buffer, and this block does not. The error
        lists what it reads.""",
        given=CHAIN,
        wrong='s.cache_read("C", "A")',
        right='s.cache_read("C", "B")',
    ),
    example(
        "S221",
        """`cache_read` copies what a block only reads; what it writes would not come back from the
        copy. `cache_write` keeps a result in a buffer of its own and copies it out.""",
        given="s = tw.Schedule(library.matmul(4, 6, 8))",
        wrong='s.cache_read("C", "C", "register")',
        right='s.cache_write("C", "register")',
    ),
    example(
        "S222",
        """The copy is made in front of the nest, where the buffer must be complete, but a block of
        the same nest still writes it. Make the copy first and move blocks together afterwards.""",
        given=CHAIN,
        wrong="""
        s.split("i_1", 4)
        s.compute_at("B", "i_1_0")
        s.cache_read("C", "B")
        """,
        right="""
        s.cache_read("C", "B")
        s.split("i_1", 4)
        s.compute_at("B_read", "i_1_0")
        """,
    ),
    example(
        "S223",
        """`cache_write` keeps the one result of a block elsewhere, and this block has several.
        Write a block for each of them.""",
        given='''
        text = """
        def both(A: f32[8], C: f32[8], D: f32[8]):
            for i in range(8):
                with block("C", vi=S(8, i)):
                    C[vi] = A[vi] * 2.0
                    D[vi] = A[vi] * 3.0
        """
        ''',
        wrong='tw.Schedule(tw.parse(text)).cache_write("C")',
        right='''
        text = """
        def both(A: f32[8], C: f32[8], D: f32[8]):
            for i in range(8):
                with block("C", vi=S(8, i)):
                    C[vi] = A[vi] * 2.0
            for j in range(8):
                with block("D", vj=S(8, j)):
                    D[vj] = A[vj] * 3.0
        """
        tw.Schedule(tw.parse(text)).cache_write("C")
        ''',
    ),
    example(
        "S224",
        """The copy at the end writes every element of the buffer, so the block must have computed
        every element. Elements that it leaves alone would be overwritten by nothing.""",
        given='''
        text = """
        def spread(A: f32[8], C: f32[16]):
            for i in range(8):
                with block("C", vi=S(8, i)):
                    C[vi * 2] = A[vi]
        """
        ''',
        wrong='tw.Schedule(tw.parse(text)).cache_write("C")',
        right='''
        text = """
        def spread(A: f32[8], C: f32[16]):
            for i in range(16):
                with block("C", vi=S(16, i)):
                    C[vi] = select(vi % 2 == 0, A[vi // 2], 0.0)
        """
        tw.Schedule(tw.parse(text)).cache_write("C")
        ''',
    ),
    example(
        "S225",
        """`reindex` replaces the indices of an operand by the iterators of the block, which works
        if the block uses it at one place. Two different accesses would need two copies; say which
        of them is meant, counted from 0 in the order in which they appear.""",
        given='A = tw.placeholder("A", (9,))',
        wrong="""
        C = tw.compute("C", (8,), lambda i: A[i] + A[i + 1])
        tw.Schedule(tw.func("window", [A], [C])).reindex("C", "A")
        """,
        right="""
        C = tw.compute("C", (8,), lambda i: A[i] + A[i + 1])
        tw.Schedule(tw.func("window", [A], [C])).reindex("C", "A", access=1)
        """,
    ),
    example(
        "S226",
        """`reindex` rewrites the accesses of a plain block; this one has loops or blocks inside,
        whose variables are not its iterators. Use it before `blockize`.""",
        given="s = tw.Schedule(library.matmul(4, 6, 8))",
        wrong="""
        tile = s.blockize("k")
        s.reindex(tile, "A")
        """,
        right="""
        s.reindex("C", "A")
        tile = s.blockize("k")
        """,
    ),
    example(
        "S227",
        """The result would be copied back after the nest, but a block of the same nest reads it
        before. Use `reindex` before blocks are moved together.""",
        given=CHAIN,
        wrong="""
        s.split("i_1", 4)
        s.compute_at("B", "i_1_0")
        s.reindex("B", "B")
        """,
        right="""
        s.reindex("B", "B")
        s.split("i_1", 4)
        """,
    ),
    example(
        "S230",
        """Only a plain value can be put in the place of a read: one store, without a reduction. A
        reduction can be moved to its reader, or its reader to it.""",
        given=MATMUL_RELU,
        wrong='s.compute_inline("T")',
        right='s.reverse_compute_at("C", "j")',
    ),
    example(
        "S231",
        """To compute an element where it is read, the step must find the iteration that makes it
        from the indices of the element. Here the block writes in an order that it cannot turn
        round.""",
        given='''
        text = """
        def mirrored(A: f32[8], C: f32[8]):
            B = alloc(f32[8])
            for i in range(8):
                with block("B", vi=S(8, i)):
                    B[7 - vi] = A[vi]
            for j in range(8):
                with block("C", vj=S(8, j)):
                    C[vj] = B[vj]
        """
        ''',
        wrong='tw.Schedule(tw.parse(text)).compute_inline("B")',
        right="""
        text = text.replace("B[7 - vi] = A[vi]", "B[vi] = A[7 - vi]")
        tw.Schedule(tw.parse(text)).compute_inline("B")
        """,
    ),
    example(
        "S232",
        """Nothing reads what the block computes, so there is no place to put it. Leave such a block
        out of the program.""",
        given='''
        text = """
        def unread(A: f32[8], C: f32[8]):
            B = alloc(f32[8])
            for i in range(8):
                with block("B", vi=S(8, i)):
                    B[vi] = A[vi] * 2.0
            for j in range(8):
                with block("C", vj=S(8, j)):
                    C[vj] = A[vj] + 1.0
        """
        ''',
        wrong='tw.Schedule(tw.parse(text)).compute_inline("B")',
        right="""
        text = text.replace("A[vj] + 1.0", "B[vj] + 1.0")
        tw.Schedule(tw.parse(text)).compute_inline("B")
        """,
    ),
    example(
        "S233",
        """`reverse_compute_inline` merges a block into the one that computes its input. This block
        reads inputs of the program only.""",
        given=CHAIN,
        wrong='s.reverse_compute_inline("B")',
        right='s.reverse_compute_inline("C")',
    ),
    example(
        "S234",
        """After the merge the buffer in between is gone, but another block reads it, too. Inline
        the producer into all its readers instead.""",
        given=SHARED,
        wrong='s.reverse_compute_inline("C")',
        right='s.compute_inline("B")',
    ),
    example(
        "S235",
        """The producer can compute the result at once if each of its elements is read exactly
        once. Here an element is read several times or not at all; `compute_inline` goes the
        other way.""",
        given=WINDOW,
        wrong='s.reverse_compute_inline("C")',
        right='s.compute_inline("B")',
    ),
)
