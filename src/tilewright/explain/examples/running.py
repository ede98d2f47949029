"""V2, V3: programs that cannot be interpreted, or whose parameters no caller could pass."""

from __future__ import annotations

from tilewright.explain.example import example

__all__ = ["EXAMPLES"]

ONES = "a = np.ones(8, np.float32)"

EXAMPLES = (
    example(
        "V200",
        """An array for the interpreter is missing, is called like no parameter, or has another type
        or shape than the parameter. Nothing is converted.""",
        given="program = library.row_sum(2, 3)",
        wrong='tw.interpret(program, {"X": np.ones((2, 3))})',
        right='tw.interpret(program, {"X": np.ones((2, 3), np.float32)})',
    ),
    example(
        "V201",
        """An index is outside of its buffer. The text says where it was and what the variables
        were. Both sides of a select are evaluated, so an access must be inside even where it is not
        wanted.""",
        given=f'''
        {ONES}
        text = """
        def pairs(A: f32[8], C: f32[8]):
            for i in range(8):
                with block("C", vi=S(8, i)):
                    C[vi] = A[vi] + A[vi + 1]
        """
        ''',
        wrong='tw.interpret(tw.parse(text), {"A": a})',
        right="""
        text = text.replace("A[vi + 1]", "A[min(vi + 1, 7)]")
        tw.interpret(tw.parse(text), {"A": a})
        """,
    ),
    example(
        "V202",
        """Buffers have no content until something is written, outputs included. A program that adds
        to an output needs a start value, or an array to add to.""",
        given=f'''
        {ONES}
        program = tw.parse(
            """
            def accumulate(A: f32[8], C: f32[8]):
                for i in range(8):
                    with block("C", vi=S(8, i)):
                        C[vi] = C[vi] + A[vi]
            """
        )
        ''',
        wrong='tw.interpret(program, {"A": a})',
        right='tw.interpret(program, {"A": a, "C": np.zeros(8, np.float32)})',
    ),
    example(
        "V203",
        """A loop around a block takes an iterator out of its domain. A schedule refuses such a
        program with V101; the interpreter finds it when it happens.""",
        given=f'''
        {ONES}
        text = """
        def copy(A: f32[8], C: f32[8]):
            for i in range(9):
                with block("C", vi=S(8, i)):
                    C[vi] = A[vi]
        """
        ''',
        wrong='tw.interpret(tw.parse(text), {"A": a})',
        right='tw.interpret(tw.parse(text.replace("range(9)", "range(8)")), {"A": a})',
    ),
    example(
        "V204",
        """The program has run, but some elements of an output were never written. Write all of
        them, or pass an array whose content stays there.""",
        given=f'''
        {ONES}
        program = tw.parse(
            """
            def spread(A: f32[8], C: f32[16]):
                for i in range(8):
                    with block("C", vi=S(8, i)):
                        C[vi * 2] = A[vi]
            """
        )
        ''',
        wrong='tw.interpret(program, {"A": a})',
        right='tw.interpret(program, {"A": a, "C": np.zeros(16, np.float32)})',
    ),
    example(
        "V205",
        """A symbolic size gets its value from the arrays that are passed, and no array tells this
        one. Pass the output, whose shape says it, or the value.""",
        given='''
        program = tw.parse(
            """
            def count(C: i64[n]):
                for i in range(n):
                    with block("C", vi=S(n, i)):
                        C[vi] = vi
            """
        )
        ''',
        wrong="tw.interpret(program, {})",
        right='tw.interpret(program, {"C": np.zeros(4, np.int64)})',
    ),
    example(
        "V206",
        """The program uses a variable that has no value: no loop gives it one, and it is no
        dimension of a parameter. A schedule refuses such a program with V001.""",
        given=f"""
        {ONES}
        n = tw.size("n")
        A = tw.placeholder("A", (8,))
        program = tw.func("mean", [A], [tw.compute("C", (8,), lambda i: A[i] / n.to(tw.f32))])
        """,
        wrong='tw.interpret(program, {"A": a})',
        right='tw.interpret(program, {"A": a}, {n: 8})',
    ),
    example(
        "V207",
        """The interpreter does not know the function that the program calls. A schedule refuses
        such a program with V021.""",
        given=f"""
        {ONES}
        A = tw.placeholder("A", (8,))
        """,
        wrong="""
        C = tw.compute("C", (8,), lambda i: tw.call("exponential", A[i]))
        tw.interpret(tw.func("exp", [A], [C]), {"A": a})
        """,
        right="""
        C = tw.compute("C", (8,), lambda i: tw.call("exp", A[i]))
        tw.interpret(tw.func("exp", [A], [C]), {"A": a})
        """,
    ),
    example(
        "V301",
        """A kernel checks the arrays that it gets against its parameters, whose dimensions are
        therefore numbers or sizes by themselves. Give a dimension such as `n * 2` a size of its
        own.""",
        given='n, m = tw.size("n"), tw.size("m")',
        wrong="""
        A, B = tw.placeholder("A", (n * 2,)), tw.placeholder("B", (n,))
        C = tw.compute("C", (n,), lambda i: A[i * 2] + B[i])
        tw.build(tw.func("every_other", [A, B], [C]))
        """,
        right="""
        A, B = tw.placeholder("A", (m,)), tw.placeholder("B", (n,))
        C = tw.compute("C", (n,), lambda i: A[i * 2] + B[i])
        tw.build(tw.func("every_other", [A, B], [C]))
        """,
    ),
    example(
        "V302",
        """A reduction runs over nothing, so its result would be the start value alone, which the
        kernel never sets. Write such a constant with a block of its own.""",
        wrong='tw.build(library.row_sum(4, 0), trace="none")',
        right="""
        Y = tw.compute("Y", (4,), lambda i: tir.const(0.0, tw.f32))
        tw.build(tw.func("zeros", [], [Y]), trace="none")
        """,
    ),
)
