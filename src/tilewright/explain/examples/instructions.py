"""S4: tiles as blocks, tensor instructions, and what prepares a block for them."""

from __future__ import annotations

from tilewright.explain.example import example
from tilewright.explain.examples.programs import MATMUL, MATMUL_RELU

__all__ = ["EXAMPLES"]

ADD = "s = tw.Schedule(library.add(10, 4))"
ODD_MATMUL = "s = tw.Schedule(library.matmul(5, 6, 7))"
MATVEC = "s = tw.Schedule(library.matvec(3, 8))"
RECIPE = "from tilewright.schedule.recipes.tensorize_block import tensorize_block"

EXAMPLES = (
    example(
        "S401",
        """The loops around a tile become iterators of its block, and the domain of an iterator has
        one size. A loop inside tiles of several sizes has not; of a tile of one block, iterators
        are taken instead. Put the loop into the tile, or split by a size that divides.""",
        given=MATMUL_RELU,
        wrong="""
        s.split("i_1", 3)
        s.split("j_1", 2)
        s.compute_at("T", "j_1_0")
        s.blockize("j_1_0")
        """,
        right="""
        s.split("i_1", 2)
        s.split("j_1", 2)
        s.compute_at("T", "j_1_0")
        s.blockize("j_1_0")
        """,
    ),
    example(
        "S402",
        """A loop around the tile becomes one iterator of one kind, but one block of the tile writes
        along it and another one reduces over it. Hide fewer blocks at once.""",
        given=MATMUL,
        wrong="""
        s.split("k", 4)
        s.reorder("k_0", "i", "j", "k_1")
        s.cache_read("C", "A")
        s.compute_at("A_read", "i")
        s.blockize("i")
        """,
        right="""
        s.split("k", 4)
        s.reorder("k_0", "i", "j", "k_1")
        s.cache_read("C", "A")
        s.compute_at("A_read", "i")
        s.blockize("j")
        """,
    ),
    example(
        "S410",
        """The list says for each iterator of the block, in order, of what its extent is to become a
        multiple. 1 leaves an iterator alone.""",
        given=ODD_MATMUL,
        wrong='s.pad_einsum("C", [4, 4])',
        right='s.pad_einsum("C", [4, 4, 4])',
    ),
    example(
        "S411",
        """Zeros that are added must not change the result, which is sure for a sum of products that
        begins at zero. Pad first, before the start value is taken out or the block is tiled.""",
        given=ODD_MATMUL,
        wrong="""
        s.decompose_reduction("C", "k")
        s.pad_einsum("C", [4, 4, 4])
        """,
        right="""
        s.pad_einsum("C", [4, 4, 4])
        s.decompose_reduction("C", "k")
        """,
    ),
    example(
        "S412",
        """An iterator can be padded where it is an index by itself. In a sum such as `i + r` the
        added steps would reach beyond the buffer; `reindex` gives every iterator a dimension.""",
        given="""
        A, W, r = tw.placeholder("A", (9,)), tw.placeholder("W", (3,)), tw.reduce_axis(3, "r")
        C = tw.compute("C", (7,), lambda i: tw.sum_over(A[i + r] * W[r], r))
        s = tw.Schedule(tw.func("window", [A, W], [C]))
        """,
        wrong='s.pad_einsum("C", [4, 1])',
        right="""
        s.reindex("C", "A")
        s.pad_einsum("C", [4, 1])
        """,
    ),
    example(
        "S413",
        """A padded iterator needs a plain loop of its own, which then runs further. Pad before
        loops are split or fused.""",
        given=ODD_MATMUL,
        wrong="""
        s.split("i", 4)
        s.pad_einsum("C", [4, 4, 4])
        """,
        right="""
        s.pad_einsum("C", [4, 4, 4])
        s.split("i", 4)
        """,
    ),
    example(
        "S414",
        """No input has this iterator as an index, so there is no place for zeros and each added
        step would add something. Leave the iterator as it is.""",
        given="""
        A, k = tw.placeholder("A", (5,)), tw.reduce_axis(3, "k")
        C = tw.compute("C", (5,), lambda i: tw.sum_over(A[i] * 0.5, k))
        s = tw.Schedule(tw.func("repeated", [A], [C]))
        """,
        wrong='s.pad_einsum("C", [4, 4])',
        right='s.pad_einsum("C", [4, 1])',
    ),
    example(
        "S420",
        """There is no tensor instruction of this name, or not with so many parameters. The error
        lists all; letters stand for sizes.""",
        given=MATMUL,
        wrong="""
        s.decompose_reduction("C", "i")
        s.tensorize("i", "f32.gemm(4,6)")
        """,
        right="""
        s.decompose_reduction("C", "i")
        s.tensorize("i", "f32.gemm(4,6,8)")
        """,
    ),
    example(
        "S421",
        """An instruction replaces one computation in loops of constant extent. Here the loop has
        several blocks inside, such as a start value, or an extent that is not a constant.""",
        given=MATMUL,
        wrong="""
        s.decompose_reduction("C", "k")
        s.tensorize("i", "f32.gemm(4,6,8)")
        """,
        right="""
        s.decompose_reduction("C", "i")
        s.tensorize("i", "f32.gemm(4,6,8)")
        """,
    ),
    example(
        "S422",
        """The instruction adds to what is there and does not set a start value. Make the start
        value a block of its own first.""",
        given=MATMUL,
        wrong='s.tensorize("i", "f32.gemm(4,6,8)")',
        right="""
        s.decompose_reduction("C", "i")
        s.tensorize("i", "f32.gemm(4,6,8)")
        """,
    ),
    example(
        "S423",
        """The block computes something else than the instruction: another operation, or one operand
        more or less. `lookup(name).meaning_func()` in `tilewright.intrin` is what it means, as a
        program.""",
        given="",
        wrong="""
        s = tw.Schedule(library.row_sum(3, 8))
        s.decompose_reduction("Y", "k")
        s.tensorize("k", "f32.dot(8)")
        """,
        right="""
        s = tw.Schedule(library.matvec(3, 8))
        s.decompose_reduction("y", "k")
        s.tensorize("k", "f32.dot(8)")
        """,
    ),
    example(
        "S424",
        """The instruction computes the same, but on other types. Choose an instruction for the
        types of the program.""",
        given="",
        wrong="""
        s = tw.Schedule(library.matvec(3, 8, tw.f64))
        s.decompose_reduction("y", "k")
        s.tensorize("k", "f32.dot(8)")
        """,
        right="""
        s = tw.Schedule(library.matvec(3, 8, tw.f32))
        s.decompose_reduction("y", "k")
        s.tensorize("k", "f32.dot(8)")
        """,
    ),
    example(
        "S425",
        """The loops of the tile must have the extents of the instruction, spatial ones and those of
        the reduction alike. Split them, or choose other sizes.""",
        given=MATVEC,
        wrong="""
        s.decompose_reduction("y", "k")
        s.tensorize("k", "f32.dot(4)")
        """,
        right="""
        s.split("k", 4)
        s.decompose_reduction("y", "k_0")
        s.tensorize("k_1", "f32.dot(4)")
        """,
    ),
    example(
        "S426",
        """Each index must move with the loops of the tile as the operand of the instruction does:
        in steps of one size. A copy by `reindex` has plain indices.""",
        given="""
        A, B, k = tw.placeholder("A", (3, 8)), tw.placeholder("B", (3, 8)), tw.reduce_axis(8, "k")
        C = tw.compute("C", (3,), lambda i: tw.sum_over(A[i, k * k % 8] * B[i, k], k))
        s = tw.Schedule(tw.func("squares", [A, B], [C]))
        """,
        wrong="""
        s.decompose_reduction("C", "k")
        s.tensorize("k", "f32.dot(8)")
        """,
        right="""
        s.reindex("C", "A")
        s.decompose_reduction("C", "k")
        s.tensorize("k", "f32.dot(8)")
        """,
    ),
    example(
        "S427",
        """The instruction loads neighbours as one vector, but here they are apart in memory. Change
        the layout so that the dimension is the innermost one.""",
        given="s = tw.Schedule(library.matmul(4, 6, 8, transpose_b=True))",
        wrong="""
        s.decompose_reduction("C", "i")
        s.tensorize("i", "f32.gemm(4,6,8)")
        """,
        right="""
        s.layout_reorder("B", [1, 0])
        s.decompose_reduction("C", "i")
        s.tensorize("i", "f32.gemm(4,6,8)")
        """,
    ),
    example(
        "S430",
        """The step takes iterators of the block, not loops around it. They are the names in the
        head of the block: `vi` in `vi=S(10, i)`.""",
        given=ADD,
        wrong='s.fuse_iters("C", ["i", "j"])',
        right='s.fuse_iters("C", ["vi", "vj"])',
    ),
    example(
        "S431",
        """A fused iterator is either spatial or reduces, so the iterators that it is made of must
        be of one kind.""",
        given=MATMUL,
        wrong='s.fuse_iters("C", ["vj", "vk"])',
        right='s.fuse_iters("C", ["vi", "vj"])',
    ),
    example(
        "S432",
        """Iterators can be fused or split while each is bound to a loop of its own, one directly
        inside the other in the given order. Use the step before loops are split or reordered.""",
        given=ADD,
        wrong="""
        s.reorder("j", "i")
        s.fuse_iters("C", ["vi", "vj"])
        """,
        right='s.fuse_iters("C", ["vi", "vj"])',
    ),
    example(
        "S433",
        """An iterator is split into two whose extents multiply to that of the old one, so the size
        must divide it. `pad_einsum` makes an extent a multiple.""",
        given=MATMUL,
        wrong='s.split_iter("C", "vk", 3)',
        right='s.split_iter("C", "vk", 4)',
    ),
    example(
        "S440",
        """The recipe matches iterators of the block with axes of the instruction by the operands
        that they index. An axis without such an iterator cannot be filled: a depthwise convolution,
        for one, has no dimension that only the weights have.""",
        given=RECIPE,
        wrong="""
        s = tw.Schedule(library.depthwise_conv2d(1, 3, 5, 5, 3))
        tensorize_block(s, "Y", "f32.gemm(4,4,4)")
        """,
        right="""
        s = tw.Schedule(library.conv2d(1, 3, 5, 5, 4, 3))
        tensorize_block(s, "Y", "f32.gemm(4,4,4)")
        """,
    ),
)
