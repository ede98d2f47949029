"""V1: loops and bindings that would change what a program means."""

from __future__ import annotations

from tilewright.explain.example import example
from tilewright.explain.examples.programs import SCHEDULE

__all__ = ["EXAMPLES"]


EXAMPLES = (
    example(
        "V101",
        """The loops around a block must take every point of its domain, each iterator independently
        of the others. Here they leave points out, go beyond the domain, or one loop drives two
        iterators that should move apart.""",
        given='''
        text = """
        def copy(A: f32[8, 8], C: f32[8, 8]):
            for i in range(8):
                with block("C", vi=S(8, i), vj=S(8, i)):
                    C[vi, vj] = A[vi, vj]
        """
        ''',
        wrong=SCHEDULE,
        right="""
        text = text.replace("range(8)", "range(64)")
        text = text.replace("vi=S(8, i), vj=S(8, i)", "vi=S(8, i // 8), vj=S(8, i % 8)")
        tw.Schedule(tw.parse(text))
        """,
    ),
    example(
        "V102",
        """Iterations of a parallel or vectorized loop run at the same time, but here they all
        update one element of a reduction. Let another loop be parallel, or keep partial results
        with `rfactor`.""",
        given='''
        text = """
        def row_sum(X: f32[4, 8], Y: f32[4]):
            for i in range(4):
                for k in parallel(8):
                    with block("Y", vi=S(4, i), vk=R(8, k)):
                        with init():
                            Y[vi] = 0.0
                        Y[vi] = Y[vi] + X[vi, vk]
        """
        ''',
        wrong=SCHEDULE,
        right="""
        text = text.replace("parallel(8)", "range(8)").replace("range(4)", "parallel(4)")
        tw.Schedule(tw.parse(text))
        """,
    ),
    example(
        "V103",
        """Iterations of a parallel loop run at the same time, so no two of them may write the same
        elements of a buffer that others see. Here the parts that they write overlap.""",
        given='''
        text = """
        def copy(A: f32[8], C: f32[8]):
            for t in parallel(3):
                for i in range(4):
                    with block("C", vi=S(8, t * 2 + i)):
                        C[vi] = A[vi]
        """
        ''',
        wrong=SCHEDULE,
        right="""
        text = text.replace("parallel(3)", "parallel(2)").replace("t * 2 + i", "t * 4 + i")
        tw.Schedule(tw.parse(text))
        """,
    ),
    example(
        "V104",
        """A block reads elements that are not written by then: the block that writes them comes
        later, writes less, or is in the middle of a reduction. The text says which, after
        `because`.""",
        given='''
        text = """
        def twice(A: f32[8], C: f32[8]):
            B = alloc(f32[8])
            for i in range(7):
                with block("B", vi=S(7, i)):
                    B[vi] = A[vi] * 2.0
            for j in range(8):
                with block("C", vj=S(8, j)):
                    C[vj] = B[vj]
        """
        ''',
        wrong=SCHEDULE,
        right="""
        text = text.replace("range(7)", "range(8)").replace("S(7, i)", "S(8, i)")
        tw.Schedule(tw.parse(text))
        """,
    ),
    example(
        "V105",
        """A loop or a block uses a variable that no loop around it defines. No step of a schedule
        makes such a program: it is met by tools that build programs from nodes and validate them
        without `verify`, which says V001.""",
        given="""
        from tilewright.tensor.validate import validate

        A = tw.placeholder("A", (8,))
        C = tw.compute("C", (8,), lambda i: A[i])
        """,
        wrong='validate(tir.Func("copy", (A.buffer, C.buffer), C.nest.body))',
        right='validate(tir.Func("copy", (A.buffer, C.buffer), C.nest))',
    ),
    example(
        "V106",
        """Iterations of a vectorized loop become the lanes of a vector: the loop is innermost, its
        extent is known when the program is compiled, and every lane has an element of its own.""",
        given='''
        text = """
        def copy(A: f32[4, 8], C: f32[4, 8]):
            for i in vectorized(4):
                for j in range(8):
                    with block("C", vi=S(4, i), vj=S(8, j)):
                        C[vi, vj] = A[vi, vj]
        """
        ''',
        wrong=SCHEDULE,
        right="""
        text = text.replace("vectorized(4)", "range(4)").replace("range(8)", "vectorized(8)")
        tw.Schedule(tw.parse(text))
        """,
    ),
    example(
        "V107",
        """A reduction must meet each of its points once, or the point is counted twice. Here the
        loops come to some points again.""",
        given='''
        text = """
        def row_sum(X: f32[4, 8], Y: f32[4]):
            for i in range(4):
                for t in range(2):
                    for k in range(5):
                        with block("Y", vi=S(4, i), vk=R(8, t * 3 + k)):
                            with init():
                                Y[vi] = 0.0
                            Y[vi] = Y[vi] + X[vi, vk]
        """
        ''',
        wrong=SCHEDULE,
        right="""
        text = text.replace("range(5)", "range(4)").replace("t * 3 + k", "t * 4 + k")
        tw.Schedule(tw.parse(text))
        """,
    ),
    example(
        "V108",
        """The start value is set at the point where all iterators of the reduction are zero, so
        that point must come first. Here the loop runs the other way.""",
        given='''
        text = """
        def row_sum(X: f32[4, 8], Y: f32[4]):
            for i in range(4):
                for k in range(8):
                    with block("Y", vi=S(4, i), vk=R(8, 7 - k)):
                        with init():
                            Y[vi] = 0.0
                        Y[vi] = Y[vi] + X[vi, vk]
        """
        ''',
        wrong=SCHEDULE,
        right="""
        text = text.replace("vk=R(8, 7 - k)", "vk=R(8, k)").replace("X[vi, vk]", "X[vi, 7 - vk]")
        tw.Schedule(tw.parse(text))
        """,
    ),
    example(
        "V109",
        """Threads are divided among the iterations of one parallel loop, not of nested ones. Make
        one loop of the two.""",
        given='''
        text = """
        def copy(A: f32[4, 8], C: f32[4, 8]):
            for i in parallel(4):
                for j in parallel(8):
                    with block("C", vi=S(4, i), vj=S(8, j)):
                        C[vi, vj] = A[vi, vj]
        """
        ''',
        wrong=SCHEDULE,
        right='tw.Schedule(tw.parse(text.replace("parallel(8)", "range(8)")))',
    ),
    example(
        "V110",
        """The block reads elements that its own other iterations write, so the result depends on
        the order of the loop. Write to another buffer.""",
        given='''
        text = """
        def mirror(A: f32[8]):
            for i in range(8):
                with block("A", vi=S(8, i)):
                    A[vi] = A[7 - vi]
        """
        ''',
        wrong=SCHEDULE,
        right="""
        text = text.replace("(A: f32[8])", "(A: f32[8], C: f32[8])").replace("A[vi] =", "C[vi] =")
        tw.Schedule(tw.parse(text))
        """,
    ),
)
