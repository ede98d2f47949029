"""S27, S28: steps that round domains up, and steps on a softmax with the sums that it weights."""

from __future__ import annotations

from tilewright.explain.example import example
from tilewright.explain.examples.programs import CHAIN

__all__ = ["EXAMPLES"]

_ATTENTION = "s = tw.Schedule(library.attention(1, 2, 4, 10, 3))"
_CAUSAL = """
        s = tw.Schedule(library.attention(1, 2, 4, 10, 3, causal=True))
        s.factor_softmax("Y_powers", 4)
        """

EXAMPLES = (
    example(
        "S272",
        """Only a spatial iterator of the block can be rounded up: what a reduction adds counts, and
        nothing may be added to it. The error lists the iterators that can.""",
        given=CHAIN,
        wrong='s.round_up("B", "vk", 8)',
        right='s.round_up("B", "vi", 8)',
    ),
    example(
        "S273",
        """The result grows along the iterator, so the iterator must be one of its dimensions, by
        itself, and the block must write that dimension from its first to its last element.""",
        given='''
        text = """
        def spread(A: f32[6], C: f32[6]):
            B = alloc(f32[12])
            for i in range(6):
                with block("B", vi=S(6, i)):
                    B[vi * 2] = A[vi]
            for j in range(6):
                with block("C", vj=S(6, j)):
                    C[vj] = B[vj * 2]
        """
        ''',
        wrong='tw.Schedule(tw.parse(text)).round_up("B", "vi", 8)',
        right="""
        text = text.replace("12", "6").replace("vi * 2", "vi").replace("vj * 2", "vj")
        tw.Schedule(tw.parse(text)).round_up("B", "vi", 8)
        """,
    ),
    example(
        "S274",
        """An extent is rounded up to a multiple of a positive number: the iterations of a tile.""",
        given=CHAIN,
        wrong='s.round_up("B", "vi", 0)',
        right='s.round_up("B", "vi", 5)',
    ),
    example(
        "S275",
        """The loop that the iterator is bound to grows with it. A loop that has been split or fused
        is no longer that loop: round up first.""",
        given=CHAIN,
        wrong="""
        s.split("i", 4)
        s.round_up("B", "vi", 5)
        """,
        right="""
        s.round_up("B", "vi", 5)
        s.split("i", 4)
        """,
    ),
    example(
        "S276",
        """A layout is recorded for the shape that a buffer had. Round up first, then change how the
        larger buffer is stored.""",
        given=CHAIN,
        wrong="""
        s.layout_split("B", 0, 4)
        s.round_up("B", "vi", 5)
        """,
        right="""
        s.round_up("B", "vi", 5)
        s.layout_split("B", 0, 5)
        """,
    ),
    example(
        "S280",
        """The step needs a softmax whose powers are only summed, each by itself or times something:
        then a sum over all keys is a weighted sum of those over blocks of keys. The powers of a
        plain softmax are also a result, one by one.""",
        given="",
        wrong="""
        s = tw.Schedule(library.softmax(4, 12))
        s.factor_softmax("E", 4)
        """,
        right="""
        s = tw.Schedule(library.attention(1, 2, 4, 12, 3))
        s.factor_softmax("Y_powers", 4)
        """,
    ),
    example(
        "S281",
        """All blocks of the softmax get new iterators, and with them new loops: what was done to
        the old ones would be lost. Factor the softmax first.""",
        given=_ATTENTION,
        wrong="""
        s.split(s.loops("Y_max")[-1], 4)
        s.factor_softmax("Y_powers", 4)
        """,
        right="""
        s.factor_softmax("Y_powers", 4)
        s.split(s.loops("Y_max")[-1], 2)
        """,
    ),
    example(
        "S282",
        """A block of keys has at least one key; about a hundred fit into a cache.""",
        given=_ATTENTION,
        wrong='s.factor_softmax("Y_powers", 0)',
        right='s.factor_softmax("Y_powers", 8)',
    ),
    example(
        "S283",
        """What is skipped must be known from indices alone: logits that are minus infinity unless
        the key lies below some end, as a causal mask makes them, and a greatest value that is
        bounded from below, as `factor_softmax` makes it. A mask from memory is applied, but says
        nothing when the program is compiled.""",
        given="",
        wrong="""
        s = tw.Schedule(library.attention(1, 2, 4, 12, 3))
        s.factor_softmax("Y_powers", 4)
        s.skip_masked("Y_powers", 2, 2)
        """,
        right="""
        s = tw.Schedule(library.attention(1, 2, 4, 12, 3, causal=True))
        s.factor_softmax("Y_powers", 4)
        s.skip_masked("Y_powers", 2, 2)
        """,
    ),
    example(
        "S284",
        """A tile has at least one key and one query, and is what one step works on.""",
        given=_CAUSAL,
        wrong='s.skip_masked("Y_powers", 0, 2)',
        right='s.skip_masked("Y_powers", 2, 2)',
    ),
)
