"""In which order a reduction takes its points, and how loops that nobody expects are judged."""

from __future__ import annotations

import pytest

from tests.expect import raises_code
from tilewright.tensor.parser import parse
from tilewright.tensor.validate import validate
from tilewright.tensor.verify import verify


def row_sum(loops: tuple[str, ...], vi: str, vk: str, rows: str = "6", columns: str = "8") -> str:
    lines = [f"def f(A: f32[{rows}, {columns}], B: f32[{rows}]):"]
    lines += ["    " * (depth + 1) + f"for {loop}:" for depth, loop in enumerate(loops)]
    space = "    " * (len(loops) + 1)
    lines += [
        f'{space}with block("B", vi=S({rows}, {vi}), vk=R({columns}, {vk})):',
        f"{space}    with init():",
        f"{space}        B[vi] = 0.0",
        f"{space}    B[vi] = B[vi] + A[vi, vk]",
    ]
    return "\n".join(lines)


COVER = "cover((23, 1), (14, 1), (11, 1))"
TILE = f"(tile_start({COVER}, t) + j)"
SYMBOLIC = "cover((5, n * 8 // 5), (1, n * 8 % 5))"
FUSED = f"(tile_start({SYMBOLIC}, t) + j)"
PIECES = "cover((3, 1), (2, 2), (1, 1))"
PIECE = f"tile_start({PIECES}, f % 4) + j"

LEGAL = {
    "tiles of a fused loop": row_sum(
        ("t in range(3)", f"j in range(tile_size({COVER}, t))"), f"{TILE} // 8", f"{TILE} % 8"
    ),
    "tiles of a fused loop of symbolic length": row_sum(
        ("t in range(n * 8 // 5 + n * 8 % 5)", f"j in range(tile_size({SYMBOLIC}, t))"),
        f"{FUSED} // 8",
        f"{FUSED} % 8",
        rows="n",
    ),
    "rows fused with tiles": row_sum(
        ("f in range(24)", f"j in range(tile_size({PIECES}, f % 4))"), "f // 4", PIECE
    ),
    "rows fused with tiles that are divided": """
        def f(A: f32[6, 2, 4], B: f32[6, 2]):
            for f in range(24):
                for j in range(tile_size(cover((3, 1), (2, 2), (1, 1)), f % 4)):
                    with block(
                        "B", vi=S(6, f // 4),
                        vj=S(2, (tile_start(cover((3, 1), (2, 2), (1, 1)), f % 4) + j) // 4),
                        vk=R(4, (tile_start(cover((3, 1), (2, 2), (1, 1)), f % 4) + j) % 4),
                    ):
                        with init():
                            B[vi, vj] = 0.0
                        B[vi, vj] = B[vi, vj] + A[vi, vj, vk]
        """,
    "started once for each row": """
        def f(A: f32[8, 8], B: f32[8]):
            for i in range(8):
                with block("I", v=S(8, i)):
                    B[v] = 0.0
                for k in range(2):
                    for l in range(4):
                        with block("B", v=S(8, i), w=R(8, k * 4 + l)):
                            B[v] = B[v] + A[v, w]
        """,
    "a sum that nothing is added to": row_sum(("f in range(48)",), "(f + 0) // 8", "(f + 0) % 8"),
    "digits of which some are not used": """
        def f(A: f32[4, 7], B: f32[4, 7]):
            for f in range(84):
                with block("B", vi=S(4, f // 21), vj=S(7, f // 3 % 7)):
                    B[vi, vj] = A[vi, vj]
        """,
    "digits of two symbolic lengths": """
        def f(A: f32[n, m, 3], B: f32[n, m, 3]):
            for f in range(n * (m * 3)):
                with block(
                    "B", vi=S(n, f // (m * 3)), vj=S(m, f % (m * 3) // 3),
                    vk=S(3, f % (m * 3) % 3),
                ):
                    B[vi, vj, vk] = A[vi, vj, vk]
        """,
    "digits of a symbolic length in the middle": """
        def f(A: f32[n, 6, m], B: f32[n, 6, m]):
            for f in range(n * (6 * m)):
                with block(
                    "B", vi=S(n, f // (6 * m)), vj=S(6, f % (6 * m) // m), vk=S(m, f % (6 * m) % m)
                ):
                    B[vi, vj, vk] = A[vi, vj, vk]
        """,
    "repeated by the tiles of a symbolic length": """
        def f(A: f32[4], B: f32[n]):
            T = alloc(f32[4])
            for t in range(n // 5 + n % 5):
                for p in range(4):
                    with block("T", vp=S(4, p)):
                        T[vp] = A[vp]
                for j in range(tile_size(cover((5, n // 5), (1, n % 5)), t)):
                    with block("B", v=S(n, tile_start(cover((5, n // 5), (1, n % 5)), t) + j)):
                        B[v] = T[v % 4]
        """,
}

ILLEGAL = {
    "started again in the middle": (
        "V104",
        """
        def f(A: f32[8, 8], B: f32[8]):
            for i in range(8):
                for k in range(2):
                    with block("I", v=S(8, i)):
                        B[v] = 0.0
                    for l in range(4):
                        with block("B", v=S(8, i), w=R(8, k * 4 + l)):
                            B[v] = B[v] + A[v, w]
        """,
    ),
    "tiles in reverse": (
        "V108",
        row_sum(
            ("t in range(6)", "j in range(8)"),
            "((5 - t) * 8 + j) // 8",
            "((5 - t) * 8 + 7 - j) % 8",
        ),
    ),
    "odd ones before even ones": (
        "V108",
        row_sum(("b in range(2)", "a in range(24)"), "(a * 2 + 1 - b) // 8", "(a * 2 + 1 - b) % 8"),
    ),
    "tiles fused with rows the other way round": (
        "V108",
        row_sum(
            ("f in range(24)", f"j in range(tile_size({PIECES}, 3 - f % 4))"),
            "f // 4",
            f"tile_start({PIECES}, 3 - f % 4) + j",
        ),
    ),
    "wrong digits of symbolic lengths": (
        "V101",
        """
        def f(A: f32[n, m], B: f32[n, m]):
            for f in range(n * m):
                with block("B", vi=S(n, f // n), vj=S(m, f % m)):
                    B[vi, vj] = A[vi, vj]
        """,
    ),
    "digits that overlap": (
        "V101",
        """
        def f(A: f32[4, 7], B: f32[4, 7]):
            for f in range(84):
                with block("B", vi=S(4, f // 21), vj=S(7, f // 6 % 7)):
                    B[vi, vj] = A[vi, vj]
        """,
    ),
    "repeated perhaps never": (
        "V101",
        """
        def f(A: f32[4], B: f32[4], C: f32[n]):
            for t in range(n // 5):
                for p in range(4):
                    with block("B", vp=S(4, p)):
                        B[vp] = A[vp]
            for i in range(n):
                with block("C", v=S(n, i)):
                    C[v] = 0.0
        """,
    ),
}


@pytest.mark.parametrize("what", LEGAL)
def test_orders_that_are_right(what):
    validate(verify(parse(LEGAL[what])))


@pytest.mark.parametrize("what", ILLEGAL)
def test_orders_that_are_wrong(what):
    code, text = ILLEGAL[what]
    func = verify(parse(text))
    with raises_code(code) as caught:
        validate(func)
    assert "# <- " in str(caught.value)
