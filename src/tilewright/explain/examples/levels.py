"""V020 to V099: programs that are not well formed: functions, literals, and what stands where."""

from __future__ import annotations

from tilewright.explain.example import example
from tilewright.explain.examples.programs import COMPUTED, PIPELINE, SCHEDULE

__all__ = ["EXAMPLES"]

RESUME = 'pipeline.resume("expand_math", text, until="llvm")'

EXAMPLES = (
    example(
        "V020",
        """A sequence holds two statements or more, none of which is a sequence, so that equal
        programs have one form. `seq` in `tilewright.tensor.build` flattens what it is given.""",
        given=COMPUTED,
        wrong='tw.Schedule(tir.Func("twice", (A.buffer, C.buffer), tir.Seq((C.nest,))))',
        right='tw.Schedule(tir.Func("twice", (A.buffer, C.buffer), C.nest))',
    ),
    example(
        "V021",
        """There is no function of this name, or its arguments do not fit in number or type.
        Functions take and return values of one type.""",
        given='A = tw.placeholder("A", (8,))',
        wrong="""
        C = tw.compute("C", (8,), lambda i: tw.call("exponential", A[i]))
        tw.Schedule(tw.func("exp", [A], [C]))
        """,
        right="""
        C = tw.compute("C", (8,), lambda i: tw.call("exp", A[i]))
        tw.Schedule(tw.func("exp", [A], [C]))
        """,
    ),
    example(
        "V022",
        """`reinterpret` gives the same bits another type, so both have the same number of bits; a
        cast changes the type of each lane, so both have the same number of lanes.""",
        given='''
        text = """
        def bits(A: f32[8], C: i64[8]):
            for i in range(8):
                with block("C", vi=S(8, i)):
                    C[vi] = reinterpret(i64, A[vi])
        """
        ''',
        wrong=SCHEDULE,
        right="""
        text = text.replace("reinterpret(i64, A[vi])", "i64(reinterpret(i32, A[vi]))")
        tw.Schedule(tw.parse(text))
        """,
    ),
    example(
        "V023",
        """A number in the program must be a value of its type. A plain number takes the type of its
        partner, which may be too narrow for it.""",
        given='A = tw.placeholder("A", (8,), tw.u8)',
        wrong="""
        C = tw.compute("C", (8,), lambda i: A[i] * 300)
        tw.Schedule(tw.func("scale", [A], [C]))
        """,
        right="""
        C = tw.compute("C", (8,), lambda i: A[i].to(tw.i32) * 300)
        tw.Schedule(tw.func("scale", [A], [C]))
        """,
    ),
    example(
        "V024",
        """Vectors, local names, barriers and prefetches appear when a program is lowered. A program
        to be scheduled works on elements; `vectorize` makes vectors of them.""",
        given='''
        text = """
        def sums(A: f32[8], C: f32[1]):
            for i in range(1):
                with block("C", vi=S(1, i)):
                    C[vi] = reduce_add(A[ramp(0, 1, 8)])
        """
        ''',
        wrong=SCHEDULE,
        right="tw.Schedule(library.row_sum(1, 8))",
    ),
    example(
        "V025",
        """Vectors that meet in an operation have the same number of lanes. This concerns text of a
        lowered stage, edited by hand.""",
        given=f'''
        {PIPELINE}
        text = """
        def double(A: f32[8]):
            A[ramp(0, 1, 8)] = A[ramp(0, 1, 8)] * broadcast(2.0, 4)
        """
        ''',
        wrong=RESUME,
        right="""
        text = text.replace("broadcast(2.0, 4)", "broadcast(2.0, 8)")
        pipeline.resume("expand_math", text, until="llvm")
        """,
    ),
    example(
        "V026",
        """The text of the last lowering stage still has something that an earlier pass removes: a
        block, a tile of a cover, an unrolled or vectorized loop. Resume from the stage that the
        text belongs to.""",
        given=f'''
        {PIPELINE}
        text = """
        def copy(A: f32[8], C: f32[8]):
            for i in range(8):
                with block("C", vi=S(8, i)):
                    C[vi] = A[vi]
        """
        ''',
        wrong=RESUME,
        right='pipeline.resume("scheduled", text, until="llvm")',
    ),
    example(
        "V027",
        """In a lowered program every buffer has one dimension, and indices are offsets. Resume from
        an earlier stage, or compute the offset.""",
        given=f'''
        {PIPELINE}
        text = """
        def clear(A: f32[4, 8]):
            for i in range(4):
                for j in range(8):
                    A[i, j] = 0.0
        """
        ''',
        wrong=RESUME,
        right="""
        text = text.replace("f32[4, 8]", "f32[32]").replace("A[i, j]", "A[i * 8 + j]")
        pipeline.resume("expand_math", text, until="llvm")
        """,
    ),
    example(
        "V028",
        """Parameters are arrays in memory, and registers hold a number of values that is known when
        the program is compiled. Let `cache_read` or `cache_write` make copies in registers.""",
        given=COMPUTED,
        wrong="""
        kept = A.buffer.with_fields(scope=tir.Scope.REGISTER)
        tw.Schedule(tir.Func("twice", (kept, C.buffer), C.nest))
        """,
        right="""
        s = tw.Schedule(tw.func("twice", [A], [C]))
        s.cache_read("C", "A", "register")
        """,
    ),
    example(
        "V029",
        """The value of a size comes from the shapes of the arrays of a call, so it must be a whole
        dimension of some parameter. From `2 * n` alone it is not read.""",
        given='n = tw.size("n")',
        wrong="""
        A = tw.placeholder("A", (n * 2,))
        C = tw.compute("C", (n * 2,), lambda i: A[i] + 1.0)
        tw.Schedule(tw.func("next", [A], [C]))
        """,
        right="""
        A = tw.placeholder("A", (n,))
        C = tw.compute("C", (n,), lambda i: A[i] + 1.0)
        tw.Schedule(tw.func("next", [A], [C]))
        """,
    ),
    example(
        "V030",
        """A cover is a list of (tile size, number of tiles); sizes are positive constants, and
        tiles are counted by whole numbers. Covers are made by `split`.""",
        given='''
        text = """
        def copy(A: f32[8], C: f32[8]):
            for t in range(8):
                for i in range(tile_size(cover((0, 8)), t)):
                    with block("C", vi=S(8, tile_start(cover((0, 8)), t) + i)):
                        C[vi] = A[vi]
        """
        ''',
        wrong=SCHEDULE,
        right="""
        text = text.replace("cover((0, 8))", "cover((1, 8))")
        tw.Schedule(tw.parse(text))
        """,
    ),
    example(
        "V031",
        """A node was made with a type of its own that contradicts its operands. Types of operations
        and of accesses follow from what they work on; leave them out.""",
        given="""
        from tilewright.tensor.build import make_block


        def copy(value):
            block = make_block("C", (tir.Iter(v, tir.Const(8)),), (i,), tir.Store(C, (v,), value))
            return tir.Func("copy", (A, C), tir.For(i, tir.Const(8), block))


        A, C = (tir.Buffer(name, (tir.Const(8),), tw.f32) for name in "AC")
        i, v = tir.Var("i"), tir.Var("v")
        """,
        wrong="tw.Schedule(copy(tir.Load(A, (v,), tw.f64)))",
        right="tw.Schedule(copy(tir.Load(A, (v,))))",
    ),
    example(
        "V032",
        """Ramps count integers, broadcasts repeat a scalar, and a fold of lanes takes a vector;
        ramps and broadcasts have two lanes or more. This concerns text of a lowered stage.""",
        given=f'''
        {PIPELINE}
        text = """
        def fill(A: f32[8]):
            A[ramp(0, 1, 8)] = broadcast(1.0, 1)
        """
        ''',
        wrong=RESUME,
        right="""
        text = text.replace("broadcast(1.0, 1)", "broadcast(1.0, 8)")
        pipeline.resume("expand_math", text, until="llvm")
        """,
    ),
    example(
        "V033",
        """All threads must reach a barrier equally often, and in a parallel loop they run different
        numbers of iterations. Put the barrier behind the loop.""",
        given=f'''
        {PIPELINE}
        text = """
        def fill(A: f32[8]):
            for i in parallel(8):
                A[i] = 1.0
                barrier()
        """
        ''',
        wrong=RESUME,
        right="""
        text = text.replace("        barrier()", "    barrier()")
        pipeline.resume("expand_math", text, until="llvm")
        """,
    ),
    example(
        "V034",
        """The dimensions of a buffer are whole numbers or sizes.""",
        given='''
        text = """
        def copy(A: f32[8.0], C: f32[8]):
            for i in range(8):
                with block("C", vi=S(8, i)):
                    C[vi] = A[vi]
        """
        ''',
        wrong=SCHEDULE,
        right='tw.Schedule(tw.parse(text.replace("8.0", "8")))',
    ),
    example(
        "V035",
        """A program to be scheduled is made of loops around blocks; whatever stores or decides
        stands inside of a block. The block says what is computed, the loops only in which
        order.""",
        given='''
        text = """
        def copy(A: f32[8], C: f32[8]):
            for i in range(8):
                C[i] = A[i]
        """
        ''',
        wrong=SCHEDULE,
        right='''
        text = """
        def copy(A: f32[8], C: f32[8]):
            for i in range(8):
                with block("C", vi=S(8, i)):
                    C[vi] = A[vi]
        """
        tw.Schedule(tw.parse(text))
        ''',
    ),
    example(
        "V036",
        """Steps of a reduction all update the same element. An iterator that selects the element to
        be written is spatial.""",
        given='''
        text = """
        def copy(A: f32[8], C: f32[8]):
            for i in range(8):
                with block("C", vi=R(8, i)):
                    C[vi] = A[vi]
        """
        ''',
        wrong=SCHEDULE,
        right='tw.Schedule(tw.parse(text.replace("R(8, i)", "S(8, i)")))',
    ),
    example(
        "V037",
        """Arrays are passed and results returned by the names of parameters, so each has a name of
        its own.""",
        given="",
        wrong="""
        A, B = tw.placeholder("A", (8,)), tw.placeholder("A", (8,))
        C = tw.compute("C", (8,), lambda i: A[i] + B[i])
        tw.Schedule(tw.func("add", [A, B], [C]))
        """,
        right="""
        A, B = tw.placeholder("A", (8,)), tw.placeholder("B", (8,))
        C = tw.compute("C", (8,), lambda i: A[i] + B[i])
        tw.Schedule(tw.func("add", [A, B], [C]))
        """,
    ),
)
