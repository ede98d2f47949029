"""S0, S1: the names that a step is given, and steps on loops."""

from __future__ import annotations

from tilewright.explain.example import example
from tilewright.explain.examples.programs import MATMUL

__all__ = ["EXAMPLES"]

ADD = "s = tw.Schedule(library.add(30, 6))"
SYMBOLIC = 's = tw.Schedule(library.add(tw.size("n"), 6))'
ROW_SUM = "s = tw.Schedule(library.row_sum(4, 12))"

EXAMPLES = (
    example(
        "S001",
        """The program of the schedule has no loop, block or buffer of this name. Names are those of
        the printed program, and steps make new ones: a loop `i` that was split is now `i_0` and
        `i_1`.""",
        given=ADD,
        wrong="""
        s.split("i", 5)
        s.parallel("i")
        """,
        right="""
        outer, inner = s.split("i", 5)
        s.parallel(outer)
        """,
    ),
    example(
        "S002",
        """A step got an argument of the wrong kind, or lacks one. Steps take plain values only:
        names, numbers and lists of them, so that a trace can store them.""",
        given=ADD,
        wrong='s.split("i", "5")',
        right='s.split("i", 5)',
    ),
    example(
        "S003",
        """A trace names a primitive that does not exist. The reference of primitives lists them
        all; a trace from a newer release may use one that this release lacks.""",
        given=ADD,
        wrong='s.apply(tw.Step.of("tile", loop="i", size=5))',
        right='s.apply(tw.Step.of("split", loop="i", tiles=5))',
    ),
    example(
        "S004",
        """The text does not hold a trace. `Trace.from_json` reads what `Trace.to_json` has written,
        and nothing else; `Trace.as_python` is for people and is not read back.""",
        given=ADD,
        wrong="""
        s.split("i", 5)
        tw.Trace.from_json(s.trace.as_python())
        """,
        right="""
        s.split("i", 5)
        tw.Trace.from_json(s.trace.to_json())
        """,
    ),
    example(
        "S006",
        """The text does not hold points. `Points.from_json` reads what `Points.to_json` has
        written: for the last block of each group, the kind of its point and all decisions.""",
        given="from tilewright.schedule.source import Points",
        wrong="""Points.from_json('{"C": [6, 2]}')""",
        right="Points.from_json(Points({}).to_json())",
    ),
    example(
        "S005",
        """A step that takes a loop or a block got a name that both a loop and a block have. A block
        is usually called like the buffer that it computes; one of the two needs another name.""",
        given='''
        text = """
        def twice(A: f32[8], C: f32[8]):
            for i in range(8):
                with block("i", vi=S(8, i)):
                    C[vi] = A[vi] * 2.0
        """
        ''',
        wrong='tw.Schedule(tw.parse(text)).annotate("i", "role", "main")',
        right="""
        text = text.replace('block("i"', 'block("C"')
        tw.Schedule(tw.parse(text)).annotate("C", "role", "main")
        """,
    ),
    example(
        "S101",
        """The step needs a plain serial loop, but this one is already parallel, vectorized or
        unrolled. How a loop runs is said last, when its shape is settled.""",
        given=ADD,
        wrong="""
        s.parallel("i")
        s.split("i", 5)
        """,
        right="""
        outer, inner = s.split("i", 5)
        s.parallel(outer)
        """,
    ),
    example(
        "S102",
        """A list of (tile size, number of tiles) must fill the loop exactly, because splits are
        never guarded. Add what is missing as a tile of another size, or give one tile size: it then
        leaves a shorter tile at the end.""",
        given=ADD,
        wrong='s.split("i", [(8, 3)])',
        right='s.split("i", [(8, 3), (6, 1)])',
    ),
    example(
        "S103",
        """A tile holds at least one iteration, and there is at least one tile. Zero and negative
        sizes or counts describe no loop.""",
        given=ADD,
        wrong='s.split("i", 0)',
        right='s.split("i", 10)',
    ),
    example(
        "S104",
        """The loop runs inside tiles of several sizes, and this tile size does not divide all of
        them. Split by a common divisor, or build tiles from the inside out: first the small tile
        over the whole loop, then blocks of tiles.""",
        given=ADD,
        wrong="""
        s.split("i", 8)
        s.split("i_1", 4)
        """,
        right="""
        s.split("i", 8)
        s.split("i_1", 2)
        """,
    ),
    example(
        "S105",
        """Loops can be fused when each is the whole body of the one before, named from the outside
        in. Here something else stands between them, or they are named in another order.""",
        given=MATMUL,
        wrong='s.fuse("i", "k")',
        right="""
        s.reorder("j", "i", "k")
        s.fuse("i", "k")
        """,
    ),
    example(
        "S106",
        """The inner loop is as long as the tile that the outer one counts, and tiles differ in
        size. Such loops can neither be fused nor change places; split by a size that divides the
        loop, or apply the step before the split.""",
        given=ADD,
        wrong="""
        s.split("i", 8)
        s.fuse("i_0", "i_1")
        """,
        right="""
        s.split("i", 10)
        s.fuse("i_0", "i_1")
        """,
    ),
    example(
        "S107",
        """Fusing and reordering are about several loops. Name at least two, each once.""",
        given=ADD,
        wrong='s.fuse("i")',
        right='s.fuse("i", "j")',
    ),
    example(
        "S108",
        """All iterations of the loop add to the same element, so they cannot run at the same time.
        Use a loop of another iterator, or give each iteration a partial result of its own with
        `rfactor`.""",
        given=ROW_SUM,
        wrong='s.parallel("k")',
        right="""
        s.rfactor("k")
        s.parallel("k")
        """,
    ),
    example(
        "S109",
        """Only loops of one nest can change places, and only where nothing but loops is between
        them. These two are in different nests, or another block stands in between.""",
        given="s = tw.Schedule(library.matmul(4, 6, 8, relu=True))",
        wrong='s.reorder("k", "i_1")',
        right='s.reorder("k", "i")',
    ),
    example(
        "S110",
        """An unrolled or vectorized loop is written out when the program is compiled, so its extent
        must be known by then. Split it by a constant and use the inner loop.""",
        given=SYMBOLIC,
        wrong='s.unroll("i")',
        right="""
        outer, inner = s.split("i", 4)
        s.unroll(inner)
        """,
    ),
    example(
        "S111",
        """The body of a block is not scheduled: nothing outside looks into it. Use the loops
        around the block, and write a computation as a block of its own if its loops are to be
        scheduled.""",
        given='''
        program = tw.parse(
            """
            def rows(A: f32[4, 6], C: f32[4, 6]):
                for i in range(4):
                    with block("C", vi=S(4, i)):
                        for j in range(6):
                            C[vi, j] = A[vi, j]
            """
        )
        s = tw.Schedule(program)
        ''',
        wrong='s.parallel("j")',
        right='s.parallel("i")',
    ),
    example(
        "S112",
        """Iterations of a vectorized loop are the lanes of a vector, so no other loop can be
        inside. Move the loop to the innermost place first.""",
        given=ADD,
        wrong='s.vectorize("i")',
        right="""
        s.reorder("j", "i")
        s.vectorize("i")
        """,
    ),
    example(
        "S113",
        """A block that is repeated by a loop it does not use computes the same thing again, which
        is harmless for the whole of a reduction. Inside of the reduction the loop would add the
        same terms several times.""",
        given='''
        program = tw.parse(
            """
            def sums(A: f32[4, 6], C: f32[4]):
                for again in range(2):
                    for i in range(4):
                        for k in range(6):
                            with block("C", vi=S(4, i), vk=R(6, k)):
                                with init():
                                    C[vi] = 0.0
                                C[vi] = C[vi] + A[vi, vk]
            """
        )
        s = tw.Schedule(program)
        ''',
        wrong='s.reorder("i", "k", "again")',
        right='s.reorder("i", "again", "k")',
    ),
    example(
        "S114",
        """Threads are divided among the iterations of one parallel loop, not of nested ones. Fuse
        the two loops and make the result parallel.""",
        given=ADD,
        wrong="""
        s.parallel("i")
        s.parallel("j")
        """,
        right="""
        both = s.fuse("i", "j")
        s.parallel(both)
        """,
    ),
)
