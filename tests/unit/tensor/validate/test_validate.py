"""Schedules that change what a program means are refused, each with the code that says why."""

import pytest

from tests.expect import raises_code
from tests.unit.tensor import samples
from tilewright.tensor import library
from tilewright.tensor.build import size
from tilewright.tensor.ir import LoopKind
from tilewright.tensor.parser import parse
from tilewright.tensor.validate import ValidationCache, validate
from tilewright.tensor.validate.places import top_statements
from tilewright.tensor.verify import verify
from tilewright.tensor.visit import replace_node


def copy(loops, bindings, extra=""):
    """`B[vi, vj] = A[vi, vj]` on 8×8 elements, with these loops and bindings."""
    lines = ["def f(A: f32[8, 8], B: f32[8, 8]):"]
    for depth, loop in enumerate(loops):
        lines.append("    " * (depth + 1) + f"for {loop}:")
    space = "    " * (len(loops) + 1)
    vi, vj = bindings
    lines.append(f'{space}with block("B", vi=S(8, {vi}), vj=S(8, {vj})){extra}:')
    lines.append(f"{space}    B[vi, vj] = A[vi, vj]")
    return "\n".join(lines)


def row_sum(loops, bindings, *, init=True, extra=""):
    """`B[vi] += A[vi, vk]` on 8×8 elements, with these loops and bindings."""
    lines = ["def f(A: f32[8, 8], B: f32[8]):"]
    for depth, loop in enumerate(loops):
        lines.append("    " * (depth + 1) + f"for {loop}:")
    space = "    " * (len(loops) + 1)
    vi, vk = bindings
    lines.append(f'{space}with block("B", vi=S(8, {vi}), vk=R(8, {vk})){extra}:')
    if init:
        lines += [f"{space}    with init():", f"{space}        B[vi] = 0.0"]
    lines.append(f"{space}    B[vi] = B[vi] + A[vi, vk]")
    return "\n".join(lines)


def two(first, second, *, shape="8", outer=()):
    """A producer of T and a consumer in the same loops; both are given as lists of lines."""
    lines = ["def f(A: f32[8], B: f32[8]):", f"    T = alloc(f32[{shape}])"]
    for depth, loop in enumerate(outer):
        lines.append("    " * (depth + 1) + f"for {loop}:")
    space = "    " * (len(outer) + 1)
    lines += [space + line for line in (*first, *second)]
    return "\n".join(lines)


def producer(loop, binding, extra=""):
    return [
        f"for {loop}:",
        f'    with block("T", vp=S(8, {binding})){extra}:',
        "        T[vp] = A[vp]",
    ]


def consumer(loop, binding, read="T[vc]", extra=""):
    return [
        f"for {loop}:",
        f'    with block("B", vc=S(8, {binding})){extra}:',
        f"        B[vc] = {read}",
    ]


SERIAL = ("i in range(8)", "j in range(8)")

LEGAL = {
    "plain": copy(SERIAL, ("i", "j")),
    "digits of a fused loop": copy(("f in range(64)",), ("f // 8", "f % 8")),
    "split": copy(("a in range(2)", "b in range(4)", "j in range(8)"), ("a * 4 + b", "j")),
    "guarded split": copy(
        ("a in range(3)", "b in range(3)", "j in range(8)"),
        ("a * 3 + b", "j"),
        ", where(a * 3 + b < 8)",
    ),
    "tiles of several sizes": copy(
        (
            "t in range(3)",
            "u in range(tile_size(cover((3, 2), (2, 1)), t))",
            "j in range(8)",
        ),
        ("tile_start(cover((3, 2), (2, 1)), t) + u", "j"),
    ),
    "reversed": copy(SERIAL, ("7 - i", "j")),
    "repeated without accumulation": copy(("r in range(2)", *SERIAL), ("i", "j")),
    "parallel and vector": copy(("i in parallel(8)", "j in vectorized(8)"), ("i", "j")),
    "unrolled inside a vector": copy(("j in vectorized(8)", "i in unrolled(8)"), ("i", "j")),
    "reduction": row_sum(("i in range(8)", "k in range(8)"), ("i", "k")),
    "reduction outside": row_sum(("k in range(8)", "i in range(8)"), ("i", "k")),
    "reduction in fused loops": row_sum(("f in range(64)",), ("f // 8", "f % 8")),
    "reduction in split fused loops": row_sum(
        ("a in range(16)", "b in range(4)"), ("(a * 4 + b) // 8", "(a * 4 + b) % 8")
    ),
    "reduction repeated as a whole": row_sum(
        ("r in range(2)", "i in range(8)", "k in range(8)"), ("i", "k")
    ),
    "reduction in parallel rows": row_sum(("i in parallel(8)", "k in range(8)"), ("i", "k")),
    "update of a parameter": row_sum(("i in range(8)", "k in range(8)"), ("i", "k"), init=False),
    "lanes of a fold": row_sum(("i in range(8)", "k in vectorized(8)"), ("i", "k"), init=False),
    "producer and consumer": two(producer("p in range(8)", "p"), consumer("c in range(8)", "c")),
    "producer in the loop of its consumer": two(
        producer("p in range(4)", "t * 4 + p"),
        consumer("c in range(4)", "t * 4 + c"),
        outer=("t in range(2)",),
    ),
    "producer with a halo": two(
        producer("p in range(5)", "t * 4 + p", ", where(t * 4 + p < 8)"),
        consumer("c in range(4)", "t * 4 + c", "T[vc] + T[min(vc + 1, 7)]"),
        outer=("t in parallel(2)",),
    ),
    "partial producer": two(
        producer("p in range(4)", "p"), consumer("c in range(8)", "c", "T[vc // 2]")
    ),
    "diagonal": """
        def f(A: f32[8], B: f32[8]):
            T = alloc(f32[8, 8])
            for p in range(8):
                with block("T", vp=S(8, p)):
                    T[vp, vp] = A[vp]
            for c in range(8):
                with block("B", vc=S(8, c)):
                    B[vc] = T[vc, vc]
        """,
    "padding of a split dimension": """
        def f(A: f32[12], B: f32[12]):
            T = alloc(f32[2, 8])
            for p in range(12):
                with block("T", vp=S(12, p)):
                    T[vp // 8, vp % 8] = A[vp]
            for c in range(12):
                with block("B", vc=S(12, c)):
                    B[vc] = T[vc // 8, vc % 8]
        """,
    "one column": """
        def f(A: f32[8], B: f32[8]):
            T = alloc(f32[8, 4])
            for p in range(8):
                with block("T", vp=S(8, p)):
                    T[vp, 1] = A[vp]
            for c in range(8):
                with block("B", vc=S(8, c)):
                    B[vc] = T[vc, 1]
        """,
    "loop of one iteration": copy(("i in range(8)", "j in range(8)", "o in range(1)"), ("i", "j")),
}

ILLEGAL = {
    "dependent bindings": ("V101", copy(("i in range(8)",), ("i", "i"))),
    "twice the loop": ("V101", copy(SERIAL, ("i", "j * 2"))),
    "v1 = i, v2 = 2 i": (
        "V101",
        (
            "def f(A: f32[8, 16], B: f32[8, 16]):\n    for i in range(8):\n"
            '        with block("B", vi=S(8, i), vj=S(16, i * 2)):\n'
            "            B[vi, vj] = A[vi, vj]"
        ),
    ),
    "part of the domain": ("V101", copy(("i in range(7)", "j in range(8)"), ("i", "j"))),
    "beyond the domain": ("V101", copy(("i in range(9)", "j in range(8)"), ("i", "j"))),
    "shifted": ("V101", copy(SERIAL, ("i + 1", "j"))),
    "gap in a split": (
        "V101",
        copy(("a in range(2)", "b in range(3)", "j in range(8)"), ("a * 4 + b", "j")),
    ),
    "not affine": ("V101", copy(SERIAL, ("i * i", "j"))),
    "fused with wrong digits": ("V101", copy(("f in range(64)",), ("f // 4 % 8", "f % 8"))),
    "guard too tight": (
        "V101",
        copy(
            ("a in range(3)", "b in range(3)", "j in range(8)"),
            ("a * 3 + b", "j"),
            ", where(a * 3 + b < 7)",
        ),
    ),
    "guard missing": (
        "V101",
        copy(("a in range(3)", "b in range(3)", "j in range(8)"), ("a * 3 + b", "j")),
    ),
    "guard on an idle loop": (
        "V101",
        copy(("r in range(2)", *SERIAL), ("i", "j"), ", where(r < 1)"),
    ),
    "cover of another extent": (
        "V101",
        copy(
            (
                "t in range(3)",
                "u in range(tile_size(cover((4, 2), (2, 1)), t))",
                "j in range(8)",
            ),
            ("tile_start(cover((4, 2), (2, 1)), t) + u", "j"),
        ),
    ),
    "repeated zero times": ("V101", copy(("r in range(0)", *SERIAL), ("i", "j"))),
    "part of a reduction": ("V101", row_sum(("i in range(8)", "k in range(7)"), ("i", "k"))),
    "reduction with overlap": (
        "V107",
        row_sum(("i in range(8)", "a in range(2)", "b in range(5)"), ("i", "a * 3 + b")),
    ),
    "parallel reduction": ("V102", row_sum(("i in range(8)", "k in parallel(8)"), ("i", "k"))),
    "parallel fused reduction": ("V102", row_sum(("f in parallel(64)",), ("f // 8", "f % 8"))),
    "lanes with a start value": (
        "V102",
        row_sum(("i in range(8)", "k in vectorized(8)"), ("i", "k")),
    ),
    "parallel repetition": ("V103", copy(("r in parallel(2)", *SERIAL), ("i", "j"))),
    "parallel windows": (
        "V103",
        (
            "def f(A: f32[8], B: f32[8]):\n    for t in parallel(3):\n        for i in range(4):\n"
            '            with block("B", vi=S(8, t * 2 + i)):\n                B[vi] = A[vi]'
        ),
    ),
    "parallel writes to one element": (
        "V103",
        (
            "def f(A: f32[8], B: f32[8]):\n    for i in parallel(8):\n"
            '        with block("B", vi=S(8, i)):\n            B[0] = A[vi]'
        ),
    ),
    "parallel halo in a shared buffer": (
        "V103",
        two(
            producer("p in range(5)", "t * 4 + p", ", where(t * 4 + p < 8)"),
            consumer("c in range(4)", "t * 4 + c"),
            outer=("t in parallel(2)",),
        )
        + "\n    for z in range(1):\n"
        + '        with block("Z", vz=S(1, z)):\n            A[vz] = T[vz]',
    ),
    "producer behind its consumer": (
        "V104",
        two(consumer("c in range(8)", "c"), producer("p in range(8)", "p")),
    ),
    "never written": ("V104", two([], consumer("c in range(8)", "c"))),
    "producer computes too little": (
        "V104",
        two(producer("p in range(7)", "p"), consumer("c in range(8)", "c")),
    ),
    "producer computes another part": (
        "V104",
        two(
            producer("p in range(4)", "t * 4 + p"),
            consumer("c in range(4)", "(1 - t) * 4 + c"),
            outer=("t in range(2)",),
        ),
    ),
    "halo missing": (
        "V104",
        two(
            producer("p in range(4)", "t * 4 + p"),
            consumer("c in range(4)", "t * 4 + c", "T[vc] + T[min(vc + 1, 7)]"),
            outer=("t in range(2)",),
        ),
    ),
    "producer that never runs": (
        "V104",
        two(
            [
                "for p in range(8):",
                "    for z in range(0):",
                '        with block("T", vp=S(8, p), vz=S(1, z)):',
                "            T[vp] = A[vp]",
            ],
            consumer("c in range(8)", "c"),
        ),
    ),
    "only one column is written": (
        "V104",
        """
        def f(A: f32[8], B: f32[8, 2]):
            T = alloc(f32[8, 2])
            for p in range(8):
                with block("T", vp=S(8, p)):
                    T[vp, 0] = A[vp]
            for c in range(8):
                for d in range(2):
                    with block("B", vc=S(8, c), vd=S(2, d)):
                        B[vc, vd] = T[vc, vd]
        """,
    ),
    "only the diagonal is written": (
        "V104",
        """
        def f(A: f32[8], B: f32[8, 8]):
            T = alloc(f32[8, 8])
            for p in range(8):
                with block("T", vp=S(8, p)):
                    T[vp, vp] = A[vp]
            for c in range(8):
                for d in range(8):
                    with block("B", vc=S(8, c), vd=S(8, d)):
                        B[vc, vd] = T[vc, vd]
        """,
    ),
    "padding of a split dimension is read": (
        "V104",
        """
        def f(A: f32[12], B: f32[16]):
            T = alloc(f32[2, 8])
            for p in range(12):
                with block("T", vp=S(12, p)):
                    T[vp // 8, vp % 8] = A[vp]
            for c in range(16):
                with block("B", vc=S(16, c)):
                    B[vc] = T[vc // 8, vc % 8]
        """,
    ),
    "partial sum is read": (
        "V104",
        """
        def f(A: f32[8, 8], B: f32[8]):
            T = alloc(f32[8])
            for i in range(8):
                for k in range(8):
                    with block("T", vi=S(8, i), vk=R(8, k)):
                        with init():
                            T[vi] = 0.0
                        T[vi] = T[vi] + A[vi, vk]
                    with block("B", vj=S(8, i)):
                        B[vj] = T[vj]
        """,
    ),
    "read between start value and sum": (
        "V104",
        """
        def f(A: f32[8], B: f32[1]):
            T = alloc(f32[1])
            with block("T_init"):
                T[0] = 0.0
            with block("B"):
                B[0] = T[0]
            for k in range(8):
                with block("T", vk=R(8, k)):
                    T[0] = T[0] + A[vk]
        """,
    ),
    "read in the loop of the start value": (
        "V104",
        """
        def f(A: f32[8, 8], B: f32[8]):
            T = alloc(f32[8])
            for i in range(8):
                with block("T_init", vi=S(8, i)):
                    T[vi] = 0.0
                with block("B", vj=S(8, i)):
                    B[vj] = T[vj]
            for j in range(8):
                for k in range(8):
                    with block("T", vl=S(8, j), vk=R(8, k)):
                        T[vl] = T[vl] + A[vl, vk]
        """,
    ),
    "start value behind the sum": (
        "V104",
        """
        def f(A: f32[8], B: f32[1]):
            for k in range(8):
                with block("B", vk=R(8, k)):
                    B[0] = B[0] + A[vk]
            with block("B_init"):
                B[0] = 0.0
        """,
    ),
    "inner block writes too little": (
        "V104",
        """
        def f(A: f32[8], B: f32[8]):
            T = alloc(f32[8])
            for t in range(2):
                with block("tile", vt=S(2, t)):
                    reads(A[vt * 4:vt * 4 + 4])
                    writes(T[vt * 4:vt * 4 + 4])
                    for i in range(3):
                        with block("T", vi=S(8, vt * 4 + i)):
                            T[vi] = A[vi]
            for c in range(8):
                with block("B", vc=S(8, c)):
                    B[vc] = T[vc]
        """,
    ),
    "loop inside a vector": (
        "V106",
        copy(("i in vectorized(8)", "j in range(8)"), ("i", "j")),
    ),
    "lanes that write one element": (
        "V106",
        (
            "def f(A: f32[8], B: f32[8]):\n    T = alloc(f32[1])\n    for i in vectorized(8):\n"
            '        with block("T", vt=S(8, i)):\n            T[0] = A[vt]\n'
            '        with block("B", vi=S(8, i)):\n            B[vi] = A[vi]'
        ),
    ),
    "repeated update": (
        "V107",
        row_sum(("i in range(8)", "k in range(8)", "r in range(2)"), ("i", "k")),
    ),
    "repeated update without start": (
        "V107",
        row_sum(("r in range(2)", "i in range(8)", "k in range(8)"), ("i", "k"), init=False),
    ),
    "reduction from the end": (
        "V108",
        row_sum(("i in range(8)", "k in range(8)"), ("i", "7 - k")),
    ),
    "reduction from the middle": (
        "V108",
        row_sum(("i in range(8)", "a in range(2)", "b in range(4)"), ("i", "a * 4 + 3 - b")),
    ),
    "fused reduction in another order": (
        "V108",
        row_sum(("b in range(4)", "a in range(16)"), ("(a * 4 + b) // 8", "(a * 4 + b) % 8")),
    ),
    "parallel in parallel": ("V109", copy(("i in parallel(8)", "j in parallel(8)"), ("i", "j"))),
    "parallel inside a block in a parallel loop": (
        "V109",
        """
        def f(A: f32[8], B: f32[8]):
            for t in parallel(2):
                with block("tile", vt=S(2, t)):
                    for i in parallel(4):
                        with block("B", vi=S(8, vt * 4 + i)):
                            B[vi] = A[vi]
        """,
    ),
    "race inside a block": (
        "V103",
        """
        def f(A: f32[8], B: f32[8]):
            for t in range(2):
                with block("tile", vt=S(2, t)):
                    for r in parallel(4):
                        for i in range(4):
                            with block("B", vi=S(8, vt * 4 + i)):
                                B[vi] = A[vi]
        """,
    ),
    "block reads its neighbours": (
        "V110",
        (
            "def f(A: f32[8], B: f32[8]):\n    for i in range(7):\n"
            '        with block("B", vi=S(7, i)):\n            B[vi] = B[vi + 1]'
        ),
    ),
}


@pytest.mark.parametrize("what", LEGAL)
def test_validate_accepts(what):
    validate(verify(parse(LEGAL[what])))


@pytest.mark.parametrize("what", ILLEGAL)
def test_validate_rejects(what):
    code, text = ILLEGAL[what]
    func = verify(parse(text))
    with raises_code(code) as caught:
        validate(func)
    assert "# <- " in str(caught.value)


def test_loop_outside_of_the_loop_that_its_extent_mentions():
    func = parse(LEGAL["tiles of several sizes"])
    tiles = func.body
    inner = tiles.body
    swapped = inner.with_fields(body=tiles.with_fields(body=inner.body))
    with raises_code("V105", facts={"variable": "t"}):
        validate(replace_node(func, tiles, swapped))


def test_lanes_of_unknown_number():
    n = size("n")
    func = library.add(8, n)
    inner = func.body.body
    with raises_code("V106"):
        validate(replace_node(func, inner, inner.with_fields(kind=LoopKind.VECTOR)))


@pytest.mark.parametrize(
    "func",
    [
        library.matmul(4, 5, 6, bias=True, relu=True),
        library.conv2d(1, 4, 6, 6, 8, 3, padding=1, groups=2, stride=2),
        library.transposed_conv2d(1, 2, 3, 4, 3, 4, stride=2, padding=1),
        library.max_pool2d(1, 2, size("h"), 7, 3, stride=2, padding=1),
        library.softmax(size("m"), size("n")),
        library.layernorm(3, 8),
        library.total(2, 3),
        library.stencil(7, 8),
        library.cumulative_sum(5),
        library.elementwise_chain(3, 4),
    ],
    ids=lambda func: func.name,
)
def test_programs_of_the_library_are_valid(func):
    validate(func)


def test_cache_looks_only_at_what_changed():
    func = samples.stages(4, 8)
    cache = ValidationCache()
    validate(func, cache)
    before = dict(cache._nests)
    nest = top_statements(func)[3]
    validate(replace_node(func, nest, nest.with_fields(notes=(("x", 1),))), cache)
    assert before.items() <= cache._nests.items()
    assert len(cache._nests) == len(before) + 1


def test_cache_sees_that_a_private_buffer_became_shared():
    """The same nest is valid in one program and races in another."""
    cache = ValidationCache()
    func = parse(LEGAL["producer with a halo"])
    validate(func, cache)
    more = parse(ILLEGAL["parallel halo in a shared buffer"][1])
    with raises_code("V103"):
        validate(more, cache)


def test_error_shows_both_blocks(golden):
    with raises_code("V104") as caught:
        validate(parse(ILLEGAL["halo missing"][1]))
    assert golden == caught.value


def test_error_shows_the_reason(golden):
    with raises_code("V101") as caught:
        validate(parse(ILLEGAL["v1 = i, v2 = 2 i"][1]))
    assert golden == caught.value
