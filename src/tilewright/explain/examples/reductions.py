"""S25, S26, S27: start values, partial results and scopes."""

from __future__ import annotations

from tilewright.explain.example import example
from tilewright.explain.examples.programs import MATMUL, MATMUL_RELU

__all__ = ["EXAMPLES"]

ROW_SUM = "s = tw.Schedule(library.row_sum(4, 10))"
GUARDED = '''
text = """
def row_sum(X: f32[4, 8], Y: f32[4]):
    for i in range(4):
        for t in range(3):
            for k in range(3):
                with block("Y", vi=S(4, i), vk=R(8, t * 3 + k)), where(t * 3 + k < 8):
                    with init():
                        Y[vi] = 0.0
                    Y[vi] = Y[vi] + X[vi, vk]
"""
'''
AGAIN = '''
program = tw.parse(
    """
    def row_sum(X: f32[4, 8], Y: f32[4]):
        for again in range(2):
            for i in range(4):
                for k in range(8):
                    with block("Y", vi=S(4, i), vk=R(8, k)):
                        with init():
                            Y[vi] = 0.0
                        Y[vi] = Y[vi] + X[vi, vk]
    """
)
s = tw.Schedule(program)
'''

EXAMPLES = (
    example(
        "S250",
        """Only a reduction has a start value, and it can be taken out once. Here the block does not
        reduce, or its start value is already a block of its own.""",
        given=MATMUL,
        wrong="""
        s.decompose_reduction("C", "k")
        s.decompose_reduction("C", "k")
        """,
        right='s.decompose_reduction("C", "k")',
    ),
    example(
        "S251",
        """The start value is put in front of a loop around the block, but this loop is somewhere
        else. `s.loops(block)` lists the loops around a block.""",
        given=MATMUL_RELU,
        wrong='s.decompose_reduction("T", "i_1")',
        right='s.decompose_reduction("T", "k")',
    ),
    example(
        "S252",
        """A loop further out belongs to the same reduction, and would set the start value again in
        each of its iterations. Take it out at the outermost loop of the reduction.""",
        given="s = tw.Schedule(library.total(4, 6))",
        wrong='s.decompose_reduction("Y", "j")',
        right='s.decompose_reduction("Y", "i")',
    ),
    example(
        "S253",
        """The loop was fused from a spatial loop and a loop of the reduction, so that its
        iterations can no longer be told apart by kind. Take the start value out, or use `rfactor`
        or `blockize`, before such loops are fused.""",
        given=MATMUL,
        wrong="""
        s.fuse("j", "k")
        s.decompose_reduction("C", "i")
        """,
        right="""
        s.decompose_reduction("C", "i")
        s.fuse("j", "k")
        """,
    ),
    example(
        "S254",
        """The start value runs over the spatial loops alone, so neither they nor the predicate of
        the block may depend on a loop of the reduction. `split` needs no predicate: it fills any
        extent exactly.""",
        given=GUARDED,
        wrong='tw.Schedule(tw.parse(text)).decompose_reduction("Y", "t")',
        right="""
        s = tw.Schedule(library.row_sum(4, 8))
        s.split("k", 3)
        s.decompose_reduction("Y", "k_0")
        """,
    ),
    example(
        "S255",
        """A loop that the block does not use repeats the whole reduction, start value included. In
        front of that loop the start value would be set once for all repetitions; choose a loop
        inside of it.""",
        given=AGAIN,
        wrong='s.decompose_reduction("Y", "again")',
        right='s.decompose_reduction("Y", "i")',
    ),
    example(
        "S260",
        """The step changes a loop together with the one block inside it, and here are several. Use
        it before other blocks come into the loop, or move them away.""",
        given=MATMUL,
        wrong="""
        s.decompose_reduction("C", "k")
        s.rfactor("j")
        """,
        right='s.rfactor("k")',
    ),
    example(
        "S261",
        """Partial results can be kept for sums, products, minima and maxima that still have their
        start value. Use `rfactor` before `decompose_reduction`.""",
        given=MATMUL,
        wrong="""
        s.decompose_reduction("C", "k")
        s.rfactor("k")
        """,
        right="""
        s.rfactor("k")
        s.decompose_reduction("C", "k_fold")
        """,
    ),
    example(
        "S262",
        """`rfactor` keeps one partial result for each iteration of a loop of the reduction. Along
        this loop the results lie; nothing is added up.""",
        given=ROW_SUM,
        wrong='s.rfactor("i")',
        right='s.rfactor("k")',
    ),
    example(
        "S263",
        """The number of partial results must be the same everywhere, but the loop runs inside tiles
        of several sizes. Split by a size that divides the loop, or use `rfactor` first.""",
        given=ROW_SUM,
        wrong="""
        s.split("k", 4)
        s.rfactor("k_1")
        """,
        right="""
        s.split("k", 5)
        s.rfactor("k_1")
        """,
    ),
    example(
        "S264",
        """The partial results have one dimension more than the result, and `axis` says where it is.
        Negative numbers count from the end.""",
        given=ROW_SUM,
        wrong='s.rfactor("k", axis=2)',
        right='s.rfactor("k", axis=1)',
    ),
    example(
        "S265",
        """The partial results are folded after the loops of the reduction, so no other block may be
        in any of them. Use `rfactor` before blocks are moved into the nest.""",
        given=MATMUL,
        wrong="""
        s.split("k", 4)
        s.cache_read("C", "A")
        s.compute_at("A_read", "k_0")
        s.rfactor("k_1")
        """,
        right="""
        s.split("k", 4)
        s.rfactor("k_1")
        s.cache_read("C_rf", "A")
        s.compute_at("A_read", "k_0")
        """,
    ),
    example(
        "S266",
        """The block runs only for some iterations of its loops, and the partial results of the
        others would have no value. Let `split` cut the loop, which needs no predicate.""",
        given=GUARDED,
        wrong='tw.Schedule(tw.parse(text)).rfactor("k")',
        right="""
        s = tw.Schedule(library.row_sum(4, 8))
        s.split("k", [(4, 2)])
        s.rfactor("k_1")
        """,
    ),
    example(
        "S270",
        """Parameters are arrays of the caller and stay in memory. `cache_read` and `cache_write`
        make a copy in registers that the block works on.""",
        given=MATMUL,
        wrong='s.set_scope("C", "register")',
        right='s.cache_write("C", "register")',
    ),
)
