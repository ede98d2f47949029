"""Buffers that are written in pieces: by strides, by several blocks, by tiles of several sizes."""

from __future__ import annotations

import pytest

from tests.expect import raises_code
from tilewright.tensor.parser import parse
from tilewright.tensor.validate import validate
from tilewright.tensor.verify import verify


def pieces(*writers: str, reader: str = "T[v]", count: int = 8, length: int = 8) -> str:
    """A nest for each `extent, kind of loop: index` of T, then a block that reads T."""
    lines = [f"def f(A: f32[16], B: f32[{count}]):", f"    T = alloc(f32[{length}])"]
    for number, writer in enumerate(writers):
        loop, _, index = writer.partition(": ")
        extent, _, kind = loop.partition(", ")
        lines += [
            f"    for i{number} in {kind or 'range'}({extent}):",
            f'        with block("W{number}", v=S({extent}, i{number})):',
            f"            T[{index}] = A[v]",
        ]
    lines += [
        f"    for c in range({count}):",
        f'        with block("B", v=S({count}, c)):',
        f"            B[v] = {reader}",
    ]
    return "\n".join(lines)


IN_ONE_LOOP = """
def f(A: f32[8], B: f32[16]):
    T = alloc(f32[16])
    for t in {kind}(2):
        for i in range(4):
            with block("E", v=S(8, t * 4 + i)):
                T[v * 2] = A[v]
        for j in range({odd}):
            with block("O", v=S(8, t * 4 + j)):
                T[v * 2 + 1] = A[v]
        for k in range(8):
            with block("B", v=S(16, t * 8 + k)):
                B[v] = T[{read}]
"""

LEGAL = {
    "even and odd": pieces("4: v * 2", "4: v * 2 + 1"),
    "even and odd at once": pieces("4, parallel: v * 2", "4, vectorized: v * 2 + 1"),
    "thirds": pieces("3: v * 3", "3: v * 3 + 1", "2: v * 3 + 2"),
    "halves, one in strides": pieces("4: v + 4", "2: v * 2", "2: v * 2 + 1"),
    "strides of different length": pieces("2: v * 4", "4: v * 2 + 1", "2: v * 4 + 2"),
    "only the even ones are read": pieces("4: v * 2", reader="T[v * 2]", count=4),
    "every fourth of the even ones": pieces("4: v * 2", reader="T[v * 4]", count=2),
    "even and odd in the loop of their reader": IN_ONE_LOOP.format(
        kind="parallel", odd=4, read="v"
    ),
    "groups with holes": """
        def f(A: f32[4, 3], B: f32[4, 3]):
            T = alloc(f32[24])
            for i in range(4):
                for j in range(3):
                    with block("T", vi=S(4, i), vj=S(3, j)):
                        T[vi * 6 + vj + 1] = A[vi, vj]
            for k in parallel(4):
                for l in range(3):
                    with block("B", vk=S(4, k), vl=S(3, l)):
                        B[vk, vl] = T[vk * 6 + vl + 1]
        """,
    "holes are filled by others": """
        def f(A: f32[4, 3], B: f32[24]):
            T = alloc(f32[24])
            for i in range(4):
                for j in range(3):
                    with block("T", vi=S(4, i), vj=S(3, j)):
                        T[vi * 6 + vj + 1] = A[vi, vj]
            for k in range(4):
                with block("L", vk=S(4, k)):
                    T[vk * 6] = 0.0
            for m in range(4):
                for n in range(2):
                    with block("R", vm=S(4, m), vn=S(2, n)):
                        T[vm * 6 + vn + 4] = 0.0
            for o in range(24):
                with block("B", vo=S(24, o)):
                    B[vo] = T[vo]
        """,
    "two parts of one buffer, the second later": """
        def f(A: f32[4], B: f32[4], C: f32[4]):
            T = alloc(f32[8])
            for i in range(4):
                with block("X", v=S(4, i)):
                    T[v] = A[v]
            for j in range(4):
                with block("B", v=S(4, j)):
                    B[v] = T[v]
            for k in range(4):
                with block("Y", v=S(4, k)):
                    T[v + 4] = A[v]
            for l in range(4):
                with block("C", v=S(4, l)):
                    C[v] = T[v + 4]
        """,
    "tile of several sizes in a block": """
        def f(A: f32[13], B: f32[13]):
            T = alloc(f32[13])
            for t in parallel(3):
                with block("tile", vt=S(3, t)):
                    for i in range(tile_size(cover((6, 1), (5, 1), (2, 1)), vt)):
                        with block("T", v=S(13, tile_start(cover((6, 1), (5, 1), (2, 1)), vt) + i)):
                            T[v] = A[v]
            for c in range(13):
                with block("B", v=S(13, c)):
                    B[v] = T[v]
        """,
    "windows in blocks": """
        def f(A: f32[8], B: f32[6]):
            T = alloc(f32[8])
            for t in range(6):
                for w in range(3):
                    with block("tile", vt=S(6, t), vw=S(3, w)):
                        for o in range(1):
                            with block("T", v=S(8, vt + vw + o)):
                                T[v] = A[v]
                for r in range(1):
                    with block("B", v=S(6, t + r)):
                        B[v] = T[v] + T[v + 1] + T[v + 2]
        """,
}

ILLEGAL = {
    "the last odd one is missing": ("V104", pieces("4: v * 2", "3: v * 2 + 1")),
    "even twice": ("V104", pieces("4: v * 2", "4: v * 2")),
    "a third is missing": ("V104", pieces("3: v * 3", "3: v * 3 + 1", "1: v * 3 + 2")),
    "an odd one is read": ("V104", pieces("4: v * 2", reader="T[v * 2 + 1]", count=4)),
    "every third of the even ones": ("V104", pieces("4: v * 2", reader="T[v * 3]", count=2)),
    "overlapping strides at once": (
        "V103",
        """
        def f(A: f32[8], B: f32[3]):
            T = alloc(f32[8])
            for i in parallel(3):
                with block("E", v=S(3, i)):
                    T[v * 2] = A[v]
                with block("O", v=S(3, i)):
                    T[v * 2 + 2] = A[v]
            for k in range(3):
                with block("B", v=S(3, k)):
                    B[v] = T[v * 2]
        """,
    ),
    "a part of the odd ones, in the loop of their reader": (
        "V104",
        IN_ONE_LOOP.format(kind="range", odd=3, read="v"),
    ),
    "elements of the next iteration": (
        "V104",
        IN_ONE_LOOP.format(kind="range", odd=4, read="min(v + 8, 15)"),
    ),
    "holes are read": (
        "V104",
        """
        def f(A: f32[4, 3], B: f32[4, 4]):
            T = alloc(f32[24])
            for i in range(4):
                for j in range(3):
                    with block("T", vi=S(4, i), vj=S(3, j)):
                        T[vi * 6 + vj] = A[vi, vj]
            for k in range(4):
                for l in range(4):
                    with block("B", vk=S(4, k), vl=S(4, l)):
                        B[vk, vl] = T[vk * 6 + vl]
        """,
    ),
    "two indices that share an iterator": (
        "V104",
        """
        def f(A: f32[4, 2], B: f32[4, 8]):
            T = alloc(f32[4, 8])
            for i in range(4):
                for j in range(2):
                    with block("T", v=S(4, i), u=S(2, j)):
                        T[v, u * 4 + v] = A[v, u]
            for k in range(4):
                for l in range(8):
                    with block("B", x=S(4, k), y=S(8, l)):
                        B[x, y] = T[x, y]
        """,
    ),
    "as many points as elements, but not all of them": (
        "V104",
        """
        def f(A: f32[8], B: f32[9]):
            T = alloc(f32[9])
            for i in range(2):
                for j in range(4):
                    with block("X", v=S(2, i), u=S(4, j)):
                        T[(v * 5 + u) % 8] = A[v * 4 + u]
            for k in range(1):
                with block("Y", v=S(1, k)):
                    T[v + 8] = A[v]
            for l in range(9):
                with block("B", v=S(9, l)):
                    B[v] = T[v]
        """,
    ),
    "two parts of one buffer that overlap": (
        "V104",
        """
        def f(A: f32[5], B: f32[4]):
            T = alloc(f32[8])
            for i in range(4):
                with block("X", v=S(4, i)):
                    T[v] = A[v]
            for j in range(4):
                with block("B", v=S(4, j)):
                    B[v] = T[v]
            for k in range(5):
                with block("Y", v=S(5, k)):
                    T[v + 3] = A[v]
        """,
    ),
    "the first of the next tile": (
        "V104",
        """
        def f(A: f32[13], B: f32[13]):
            T = alloc(f32[13])
            for t in range(3):
                for i in range(tile_size(cover((6, 1), (5, 1), (2, 1)), t)):
                    with block("T", v=S(13, tile_start(cover((6, 1), (5, 1), (2, 1)), t) + i)):
                        T[v] = A[v]
                for c in range(tile_size(cover((6, 1), (5, 1), (2, 1)), t)):
                    with block("B", v=S(13, tile_start(cover((6, 1), (5, 1), (2, 1)), t) + c)):
                        B[v] = T[min(v + 1, 12)]
        """,
    ),
}


@pytest.mark.parametrize("what", LEGAL)
def test_pieces_that_are_complete(what):
    validate(verify(parse(LEGAL[what])))


@pytest.mark.parametrize("what", ILLEGAL)
def test_pieces_that_are_refused(what):
    code, text = ILLEGAL[what]
    func = verify(parse(text))
    with raises_code(code) as caught:
        validate(func)
    assert "# <- " in str(caught.value)
