"""V000 to V019: programs that are not well formed: names, types and the parts of a block."""

from __future__ import annotations

from tilewright.explain.example import example
from tilewright.explain.examples.programs import COMPUTED, SCHEDULE

__all__ = ["EXAMPLES"]

INPUTS = """
A, B = tw.placeholder("A", (8,)), tw.placeholder("B", (8,), tw.f64)
"""

EXAMPLES = (
    example(
        "V001",
        """The program uses a variable that nothing in it defines. A symbolic size is defined by the
        parameter that has it as a dimension, because its value comes from the arrays of a call.""",
        given="""
        n = tw.size("n")
        A = tw.placeholder("A", (8,))
        C = tw.compute("C", (8,), lambda i: A[i] / n.to(tw.f32))
        """,
        wrong='tw.Schedule(tw.func("mean", [A], [C]))',
        right="""
        N = tw.placeholder("N", (1,))
        C = tw.compute("C", (8,), lambda i: A[i] / N[0])
        tw.Schedule(tw.func("mean", [A, N], [C]))
        """,
    ),
    example(
        "V002",
        """Inside of a block only its own iterators are visible, so that the loops around can be
        changed without looking into it. Use the iterator that is bound to the loop.""",
        given='''
        text = """
        def copy(A: f32[8], C: f32[8]):
            for i in range(8):
                with block("C", vi=S(8, i)):
                    C[vi] = A[i]
        """
        ''',
        wrong=SCHEDULE,
        right='tw.Schedule(tw.parse(text.replace("A[i]", "A[vi]")))',
    ),
    example(
        "V003",
        """Every variable has one loop or iterator that gives it values. A nest that is to run twice
        needs variables of its own the second time, as another `compute` makes them.""",
        given=COMPUTED,
        wrong="""
        both = tir.Seq((C.nest, C.nest))
        tw.Schedule(tir.Func("twice", (A.buffer, C.buffer), both))
        """,
        right="""
        D = tw.compute("D", (8,), lambda i: A[i] * 2.0)
        tw.Schedule(tw.func("twice", [A], [C, D]))
        """,
    ),
    example(
        "V004",
        """The program reads or writes a buffer that is neither a parameter nor allocated around the
        place. `tw.func` finds all of them by itself.""",
        given=COMPUTED,
        wrong='tw.Schedule(tir.Func("twice", (C.buffer,), C.nest))',
        right='tw.Schedule(tw.func("twice", [A], [C]))',
    ),
    example(
        "V005",
        """The same buffer is a parameter twice, or allocated although it is there already. Each
        buffer is declared once.""",
        given=COMPUTED,
        wrong='tw.Schedule(tw.func("twice", [A, A], [C]))',
        right='tw.Schedule(tw.func("twice", [A], [C]))',
    ),
    example(
        "V006",
        """An access gives one index for each dimension of the buffer. There is no short form for
        whole rows: a block works on elements.""",
        given='''
        text = """
        def diagonal(A: f32[8, 8], C: f32[8]):
            for i in range(8):
                with block("C", vi=S(8, i)):
                    C[vi] = A[vi]
        """
        ''',
        wrong=SCHEDULE,
        right='tw.Schedule(tw.parse(text.replace("A[vi]", "A[vi, vi]")))',
    ),
    example(
        "V007",
        """Indices are 64-bit integers, and nothing is converted unasked. Convert an index that
        comes from an array of another type.""",
        given="""
        A, at = tw.placeholder("A", (8,)), tw.placeholder("at", (8,), tw.i32)
        """,
        wrong="""
        C = tw.compute("C", (8,), lambda i: A[at[i]])
        tw.Schedule(tw.func("gather", [A, at], [C]))
        """,
        right="""
        C = tw.compute("C", (8,), lambda i: A[at[i].to(tw.i64)])
        tw.Schedule(tw.func("gather", [A, at], [C]))
        """,
    ),
    example(
        "V008",
        """Both operands of an operation have one type, and the program says where values are
        converted. A plain number takes the type of its partner.""",
        given=INPUTS,
        wrong="""
        C = tw.compute("C", (8,), lambda i: A[i] + B[i])
        tw.Schedule(tw.func("add", [A, B], [C]))
        """,
        right="""
        C = tw.compute("C", (8,), lambda i: A[i].to(tw.f64) + B[i])
        tw.Schedule(tw.func("add", [A, B], [C]))
        """,
    ),
    example(
        "V009",
        """`f16` and `bf16` are types to store values in; computing is done in `f32`. Programs made
        by `compute` convert by themselves, text says it.""",
        given='''
        text = """
        def double(A: f16[8], C: f16[8]):
            for i in range(8):
                with block("C", vi=S(8, i)):
                    C[vi] = A[vi] + A[vi]
        """
        ''',
        wrong=SCHEDULE,
        right="""
        text = text.replace("A[vi] + A[vi]", "f16(f32(A[vi]) + f32(A[vi]))")
        tw.Schedule(tw.parse(text))
        """,
    ),
    example(
        "V010",
        """The operation does not exist for this type: `/` is for floats, `//`, `%` and shifts are
        for integers, arithmetic is not for bools.""",
        given='A = tw.placeholder("A", (8,), tw.i32)',
        wrong="""
        C = tw.compute("C", (8,), lambda i: A[i] / 2)
        tw.Schedule(tw.func("half", [A], [C]))
        """,
        right="""
        C = tw.compute("C", (8,), lambda i: A[i] // 2)
        tw.Schedule(tw.func("half", [A], [C]))
        """,
    ),
    example(
        "V011",
        """A condition is true or false; a number is not taken for one. Compare it.""",
        given='A = tw.placeholder("A", (8,))',
        wrong="""
        C = tw.compute("C", (8,), lambda i: tw.select(A[i], 1.0, 0.0))
        tw.Schedule(tw.func("nonzero", [A], [C]))
        """,
        right="""
        C = tw.compute("C", (8,), lambda i: tw.select(A[i].ne(0.0), 1.0, 0.0))
        tw.Schedule(tw.func("nonzero", [A], [C]))
        """,
    ),
    example(
        "V012",
        """A value is stored to a buffer of its own type. Programs made by `compute` convert to the
        type of the result by themselves, text says it.""",
        given='''
        text = """
        def widen(A: f32[8], C: f64[8]):
            for i in range(8):
                with block("C", vi=S(8, i)):
                    C[vi] = A[vi]
        """
        ''',
        wrong=SCHEDULE,
        right='tw.Schedule(tw.parse(text.replace("= A[vi]", "= f64(A[vi])")))',
    ),
    example(
        "V013",
        """The result of a select has one type, whichever side is taken. Convert one of them.""",
        given=INPUTS,
        wrong="""
        C = tw.compute("C", (8,), lambda i: tw.select(i < 4, A[i], B[i]))
        tw.Schedule(tw.func("either", [A, B], [C]))
        """,
        right="""
        C = tw.compute("C", (8,), lambda i: tw.select(i < 4, A[i].to(tw.f64), B[i]))
        tw.Schedule(tw.func("either", [A, B], [C]))
        """,
    ),
    example(
        "V014",
        """The head of a block binds each of its iterators to one whole number, written in the loops
        around. Other types and missing bindings are refused.""",
        given='''
        text = """
        def copy(A: f32[8], C: f32[8]):
            for i in range(8):
                with block("C", vi=S(8, i32(i))):
                    C[vi] = A[vi]
        """
        ''',
        wrong=SCHEDULE,
        right='tw.Schedule(tw.parse(text.replace("i32(i)", "i")))',
    ),
    example(
        "V015",
        """A loop counts whole numbers of 64 bits. Its extent is a number, a size, or made from
        them.""",
        given='''
        text = """
        def copy(A: f32[8], C: f32[8]):
            for i in range(8.0):
                with block("C", vi=S(8, i)):
                    C[vi] = A[vi]
        """
        ''',
        wrong=SCHEDULE,
        right='tw.Schedule(tw.parse(text.replace("8.0", "8")))',
    ),
    example(
        "V016",
        """The signature of a block says what it reads, and everything else relies on it. Here the
        body reads more. In text written by hand the regions can be left out; they then follow from
        the body.""",
        given='''
        text = """
        def pairs(A: f32[9], C: f32[8]):
            for i in range(8):
                with block("C", vi=S(8, i)):
                    reads(A[vi])
                    writes(C[vi])
                    C[vi] = A[vi] + A[vi + 1]
        """
        ''',
        wrong=SCHEDULE,
        right='tw.Schedule(tw.parse(text.replace("reads(A[vi])", "reads(A[vi:vi + 2])")))',
    ),
    example(
        "V017",
        """The signature of a block says what it writes, and everything else relies on it. Here the
        body writes something else. In text written by hand the regions can be left out.""",
        given='''
        text = """
        def shift(A: f32[8], C: f32[9]):
            for i in range(8):
                with block("C", vi=S(8, i)):
                    reads(A[vi])
                    writes(C[vi])
                    C[vi + 1] = A[vi]
        """
        ''',
        wrong=SCHEDULE,
        right='tw.Schedule(tw.parse(text.replace("writes(C[vi])", "writes(C[vi + 1])")))',
    ),
    example(
        "V018",
        """The start value of a reduction is stored to the very element that the body then updates,
        once for all steps of the reduction. So `init` uses the same indices, and no iterator of the
        reduction.""",
        given='''
        text = """
        def row_sum(X: f32[4, 8], Y: f32[4]):
            for i in range(4):
                for k in range(8):
                    with block("Y", vi=S(4, i), vk=R(8, k)):
                        with init():
                            Y[0] = 0.0
                        Y[vi] = Y[vi] + X[vi, vk]
        """
        ''',
        wrong=SCHEDULE,
        right='tw.Schedule(tw.parse(text.replace("Y[0] = 0.0", "Y[vi] = 0.0")))',
    ),
    example(
        "V019",
        """Sizes of buffers, extents of loops and domains of iterators are zero or more. A negative
        one is usually a difference the wrong way round.""",
        given="width, window = 6, 8",
        wrong="tw.Schedule(library.add(4, width - window + 1))",
        right="tw.Schedule(library.add(4, window - width + 1))",
    ),
)
