"""S20, S21: steps that move computations."""

from __future__ import annotations

from tilewright.explain.example import example
from tilewright.explain.examples.programs import CHAIN, MATMUL_RELU, SHARED, WINDOW

__all__ = ["EXAMPLES"]

LONG_CHAIN = """
A = tw.placeholder("A", (8,))
B = tw.compute("B", (8,), lambda i: A[i] * 2.0)
C = tw.compute("C", (8,), lambda i: B[i] + 1.0)
D = tw.compute("D", (8,), lambda i: C[i] * C[i])
s = tw.Schedule(tw.func("chain", [A], [D]))
"""

EXAMPLES = (
    example(
        "S201",
        """Steps on computations see a block as a whole, and what is inside a block not at all.
        After `blockize` or `tensorize` the outer block stands for the inner one.""",
        given=MATMUL_RELU,
        wrong="""
        s.split("k", 4)
        tile = s.blockize("k_1")
        s.compute_at("T", "i_1")
        """,
        right="""
        s.split("k", 4)
        tile = s.blockize("k_1")
        s.compute_at(tile, "i_1")
        """,
    ),
    example(
        "S202",
        """The block writes an output of the program, which must be complete in the end; only an
        intermediate result can be computed in parts where it is needed. `cache_write` makes the
        block compute an intermediate buffer that is copied out.""",
        given=CHAIN,
        wrong='s.compute_inline("C")',
        right='s.compute_inline("B")',
    ),
    example(
        "S203",
        """The step moves or merges the only block that writes a buffer, but another block writes
        it, too. A reduction that was decomposed is such a pair: move it first, then decompose.""",
        given=MATMUL_RELU,
        wrong="""
        s.decompose_reduction("T", "k")
        s.compute_at("T_init", "i_1")
        """,
        right="""
        loops = s.compute_at("T", "i_1")
        s.decompose_reduction("T", loops[-1])
        """,
    ),
    example(
        "S204",
        """The block is already inside this loop. `compute_at` takes a loop of a block that reads
        the result, `reverse_compute_at` a loop of a block that makes the input.""",
        given=CHAIN,
        wrong='s.compute_at("B", "i")',
        right='s.compute_at("B", "i_1")',
    ),
    example(
        "S205",
        """A block can be moved to a loop that is around blocks, but this loop belongs to the body
        of a block. Nothing is moved into a block.""",
        given='''
        program = tw.parse(
            """
            def rows(A: f32[4, 6], C: f32[4, 6]):
                B = alloc(f32[4, 6])
                for i in range(4):
                    for j in range(6):
                        with block("B", vi=S(4, i), vj=S(6, j)):
                            B[vi, vj] = A[vi, vj] * 2.0
                for y in range(4):
                    with block("C", vy=S(4, y)):
                        for x in range(6):
                            C[vy, x] = B[vy, x] + 1.0
            """
        )
        s = tw.Schedule(program)
        ''',
        wrong='s.compute_at("B", "x")',
        right='s.compute_at("B", "y")',
    ),
    example(
        "S206",
        """`compute_at` moves a block to where its result is read, but nothing in this loop reads
        it. Name a loop around the block that does.""",
        given=LONG_CHAIN,
        wrong='s.compute_at("B", "i_2")',
        right='s.compute_at("B", "i_1")',
    ),
    example(
        "S207",
        """After the move the result would exist inside of this loop only, yet another block reads
        it elsewhere. Bring the readers together first, and move the block to a loop around all of
        them.""",
        given=SHARED,
        wrong='s.compute_at("B", "i_2")',
        right="""
        s.compute_at("C", "i_2")
        s.compute_at("B", "i_2")
        """,
    ),
    example(
        "S208",
        """Between the old and the new place of the block another block writes what it reads, so at
        the new place it would see something else. Choose a loop behind the writer, or move the
        writer as well.""",
        given="""
        A, X = tw.placeholder("A", (8,)), tw.placeholder("X", (8,))
        C = tw.compute("C", (8,), lambda i: A[i] * 2.0)
        D = tw.compute("D", (8,), lambda i: C[7 - i] + X[i])
        E = tw.compute("E", (8,), lambda i: C[i] * D[i])
        s = tw.Schedule(tw.func("late", [A, X], [E]))
        """,
        wrong='s.reverse_compute_at("E", "i")',
        right='s.reverse_compute_at("E", "i_1")',
    ),
    example(
        "S209",
        """The block adds to a result that another block has started, so it cannot be run once more
        or elsewhere by itself. Move a reduction while it still has its start value.""",
        given=MATMUL_RELU,
        wrong="""
        s.decompose_reduction("T", "k")
        s.compute_at("T", "i_1")
        """,
        right="""
        loops = s.compute_at("T", "i_1")
        s.decompose_reduction("T", loops[-1])
        """,
    ),
    example(
        "S210",
        """`reverse_compute_at` moves a block to where its input is made, but nothing in this loop
        makes any of it. Name a loop around the block that does.""",
        given=LONG_CHAIN,
        wrong='s.reverse_compute_at("D", "i")',
        right='s.reverse_compute_at("D", "i_1")',
    ),
    example(
        "S211",
        """Inside a loop of a reduction the result is not finished: later iterations still add to
        it. Name a loop outside of the reduction.""",
        given=MATMUL_RELU,
        wrong='s.reverse_compute_at("C", "k")',
        right='s.reverse_compute_at("C", "j")',
    ),
    example(
        "S212",
        """What an iteration of the loop has made must be exactly what some iterations of the block
        read. A window that reaches into the next tile is not ready yet; then move the producer to
        the consumer with `compute_at`, which computes the overlap twice.""",
        given=WINDOW,
        wrong="""
        s.split("i", 3)
        s.reverse_compute_at("C", "i_0")
        """,
        right="""
        s.split("i_1", 4)
        s.compute_at("B", "i_1_0")
        """,
    ),
    example(
        "S213",
        """The block reduces over what becomes ready part by part, and a loop around repeats all of
        it. The reduction would meet each part several times; name a loop in which the whole of it
        is ready.""",
        given='''
        program = tw.parse(
            """
            def repeated(A: f32[8], C: f32[()]):
                B = alloc(f32[8])
                for again in range(3):
                    for t in range(2):
                        for i in range(4):
                            with block("B", vi=S(8, t * 4 + i)):
                                B[vi] = A[vi]
                for k in range(8):
                    with block("C", vk=R(8, k)):
                        with init():
                            C[()] = 0.0
                        C[()] = C[()] + B[vk]
            """
        )
        s = tw.Schedule(program)
        ''',
        wrong='s.reverse_compute_at("C", "t")',
        right='s.reverse_compute_at("C", "again")',
    ),
    example(
        "S215",
        """A buffer lives in `memory` or in `register`s. Caches are used by themselves: a buffer
        that is small and used soon again stays in them.""",
        given=CHAIN,
        wrong='s.cache_read("C", "B", "L1")',
        right='s.cache_read("C", "B", "memory")',
    ),
)
