import ast

import pytest

from tests.expect import raises_code
from tests.unit.tensor import samples
from tilewright.dtypes import f16, f32, f64, i32
from tilewright.tensor import ir as tir
from tilewright.tensor import library
from tilewright.tensor.build import size
from tilewright.tensor.parser import parse
from tilewright.tensor.printer import print_func
from tilewright.tensor.structural import structural_equal
from tilewright.tensor.text.parse_expr import ExprParser
from tilewright.tensor.text.source import Source
from tilewright.tensor.verify import verify
from tilewright.tensor.visit import walk_stmts

PROGRAMS = {
    "matmul": library.matmul(4, 5, size("k"), f16, out=f16, bias=True, relu=True),
    "conv2d": library.conv2d(1, 4, 6, 6, 8, 3, padding=1, groups=2, stride=2),
    "transposed": library.transposed_conv2d(1, 2, 4, 4, 3, 4, stride=2, padding=1),
    "max_pool2d": library.max_pool2d(1, 2, size("h"), 6, 3, padding=1),
    "softmax": library.softmax(size("m"), size("n")),
    "layernorm": library.layernorm(3, 8),
    "total": library.total(2, 3),
    "scheduled": samples.scheduled_func(),
    "lowered": samples.lowered_func(),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_printed_program_parses_back(name):
    func = PROGRAMS[name]
    again = parse(print_func(func))
    assert structural_equal(again, func)
    assert print_func(again) == print_func(func)


@pytest.mark.parametrize("text", samples.EXPRESSIONS)
def test_printed_expression_parses_back(text):
    parser = ExprParser(Source(text))
    names = (samples.i, samples.j, samples.x, samples.y, samples.a8, samples.b8)
    parser.names = {v.name: v for v in (*names, samples.p, samples.q, samples.n, samples.A)}
    again = parser.expr(ast.parse(text, mode="eval").body)
    assert structural_equal(again, samples.EXPRESSIONS[text])


def test_marks_are_comments():
    func = library.add(2, 2)
    assert structural_equal(parse(print_func(func, {"here": func.body})), func)


def test_regions_may_be_left_out():
    text = "\n".join(
        line for line in str(library.matmul(2, 3, 4)).splitlines() if "reads" not in line
    )
    assert "writes" in text
    bare = "\n".join(line for line in text.splitlines() if "writes" not in line)
    assert structural_equal(parse(bare), library.matmul(2, 3, 4))


def test_one_kind_of_region_alone_means_that_the_other_is_empty():
    text = """
    def f(A: f32[4], B: f32[4]):
        for i in range(4):
            with block("B", vi=S(4, i)):
                writes(B[vi])
                B[vi] = A[vi]
    """
    block = parse(text).body.body
    assert block.reads == ()


def test_numbers_take_the_type_of_their_partner():
    func = parse(
        """
        def f(A: f64[4], B: i32[4], C: f32[4]):
            A[0] = A[1] * 2 + 0.5
            B[0] = max(B[1] + 1, 0)
            C[0] = 0
            C[1] = select(A[0] > 1, 0, C[2])
        """
    )
    stores = [s for s in walk_stmts(func) if isinstance(s, tir.Store)]
    assert stores[0].value.b == tir.Const(0.5, f64)
    assert stores[1].value.b == tir.Const(0, i32)
    assert stores[2].value == tir.Const(0.0, f32)
    assert stores[3].value.if_true == tir.Const(0.0, f32)


def test_unknown_names_in_shapes_are_sizes():
    func = parse("def f(A: f32[n, n + m], B: f32[m]):\n    pass")
    assert func.params[0].shape[0] is func.params[0].shape[1].a
    assert func.params[1].shape[0] is func.params[0].shape[1].b


def test_scopes_end_where_the_text_says():
    func = parse(
        """
        def f(A: f32[4]):
            with alloc(f32[4]) as T:
                T[0] = 1.0
                A[0] = T[0]
            U = alloc(f32[2], "register")
            U[0] = 2.0
            A[1] = U[0]
        """
    )
    first, second = func.body.body
    assert [type(first), type(second)] == [tir.Alloc, tir.Alloc]
    assert second.buffer.scope is tir.Scope.REGISTER
    assert structural_equal(parse(str(func)), func)


def test_ranges_are_start_and_stop():
    text = """
    def f(A: f32[64], B: f32[8]):
        for i in range(8):
            with block("B", vi=S(8, i)):
                reads(A[vi * 8:vi * 8 + 8], A[3:7], A[vi:2 * vi])
                writes(B[vi])
                B[vi] = A[vi]
    """
    first, second, third = (r.ranges[0] for r in parse(text).body.body.reads)
    assert first.extent == tir.Const(8)
    assert (second.start, second.extent) == (tir.Const(3), tir.Const(4))
    assert type(third.extent) is tir.Sub


def test_text_by_hand_is_a_verified_program():
    verify(
        parse(
            """
            def relu(X: f32[n, 8], Y: f32[n, 8]):
                for i in parallel(n):
                    for j in vectorized(8):
                        with block("Y", vi=S(n, i), vj=S(8, j)):
                            Y[vi, vj] = max(X[vi, vj], 0.0)
            """
        )
    )


BAD = {
    "not python": ("P001", "def f(A: f32[4]:\n    pass"),
    "indentation": ("P001", "def f(A: f32[4]):\npass"),
    "nothing": ("P002", ""),
    "two programs": ("P002", "def f():\n    pass\ndef g():\n    pass"),
    "no type": ("P002", "def f(A):\n    pass"),
    "default": ("P002", "def f(A: f32[4] = 0):\n    pass"),
    "star": ("P002", "def f(*A: f32[4]):\n    pass"),
    "decorator": ("P002", "@x\ndef f():\n    pass"),
    "unknown variable": ("P003", "def f(A: f32[4]):\n    A[k] = 0.0"),
    "unknown buffer": ("P003", "def f(A: f32[4]):\n    B[0] = 0.0"),
    "buffer as number": ("P003", "def f(A: f32[4]):\n    A[0] = A"),
    "number as buffer": ("P003", "def f(A: f32[n]):\n    n[0] = 0.0"),
    "name after its scope": (
        "P003",
        "def f(A: f32[4]):\n    for i in range(4):\n        A[i] = 0.0\n    A[i] = 1.0",
    ),
    "while": ("P004", "def f(A: f32[4]):\n    while True:\n        pass"),
    "return": ("P004", "def f(A: f32[4]):\n    return A"),
    "plain assignment": ("P004", "def f(A: f32[4]):\n    B = A"),
    "augmented": ("P004", "def f(A: f32[4]):\n    A[0] += 1.0"),
    "for else": (
        "P004",
        "def f(A: f32[4]):\n    for i in range(4):\n        pass\n    else:\n        pass",
    ),
    "other with": ("P004", "def f(A: f32[4]):\n    with open('x'):\n        pass"),
    "block without name": ("P004", "def f(A: f32[4]):\n    with block():\n        pass"),
    "block clause": ("P004", "def f(A: f32[4]):\n    with block('B'), then(1):\n        pass"),
    "lambda": ("P005", "def f(A: f32[4]):\n    A[0] = (lambda: 0)()"),
    "string": ("P005", "def f(A: f32[4]):\n    A[0] = 'x'"),
    "chain": ("P005", "def f(A: bool[4]):\n    A[0] = 0 < 1 < 2"),
    "power": ("P005", "def f(A: f32[4]):\n    A[0] = A[1] ** 2"),
    "attribute": ("P005", "def f(A: f32[4]):\n    A[0] = A.x"),
    "slice step": (
        "P005",
        "def f(A: f32[4]):\n    with block('B'):\n        reads(A[0:4:2])\n        A[0] = 0.0",
    ),
    "reads twice": (
        "P005",
        "def f(A: f32[4]):\n    with block('B'):\n        reads()\n        reads()\n        pass",
    ),
    "too few arguments": ("P006", "def f(A: f32[4]):\n    A[0] = min(A[1])"),
    "loop from one": ("P006", "def f(A: f32[4]):\n    for i in range(1, 4):\n        pass"),
    "let without binding": ("P006", "def f(A: f32[4]):\n    A[0] = let(1.0, 2.0)"),
    "bad scope": ("P006", "def f(A: f32[4]):\n    T = alloc(f32[4], 'disk')\n    pass"),
    "bad cover": ("P006", "def f(A: i64[4]):\n    A[0] = tile_start(cover(4), 0)"),
    "keyword": ("P006", "def f(A: f32[4]):\n    A[0] = exp(A[1], fast=True)"),
    "no such type": ("P007", "def f(A: f33[4]):\n    pass"),
    "type without shape": ("P007", "def f(A: f32):\n    pass"),
    "cast to nothing": ("P007", "def f(A: f32[4]):\n    A[0] = cast(float, A[1])"),
    "iterator kind": ("P008", "def f(A: f32[4]):\n    with block('B', vi=T(4, 0)):\n        pass"),
    "iterator number": ("P008", "def f(A: f32[4]):\n    with block('B', vi=0):\n        pass"),
    "literal too large": ("P009", "def f(A: i8[4]):\n    A[0] = i8(128)"),
    "fraction": ("P009", "def f(A: i8[4]):\n    A[0] = i8(0.5)"),
    "word as number": ("P009", "def f(A: f32[4]):\n    A[0] = f32('many')"),
    "lanes": ("P009", "def f(A: f32[4]):\n    A[0] = broadcast(A[0], n)"),
    "loop kind": ("P010", "def f(A: f32[4]):\n    for i in threads(4):\n        pass"),
    "parameter twice": ("P011", "def f(A: f32[4], A: f32[4]):\n    pass"),
    "name twice": ("P011", "def f(A: f32[4]):\n    A = alloc(f32[4])\n    pass"),
    "loop named like a buffer": ("P011", "def f(A: f32[4]):\n    for A in range(4):\n        pass"),
    "layout": ("P012", "def f(A: f32[4] @ layout(Folded(0, 2))):\n    pass"),
}


@pytest.mark.parametrize("name", BAD)
def test_parser_rejects(name):
    code, text = BAD[name]
    with raises_code(code) as caught:
        parse(text)
    if code != "P002":
        assert "^" in str(caught.value)


def test_error_points_at_the_place(golden):
    text = """
    def f(A: f32[4], B: f32[4]):
        for i in range(4):
            B[i] = A[i] + min(A[i], unknown)
    """
    with raises_code("P003", facts={"line": 4, "name": "unknown"}) as caught:
        parse(text)
    assert golden == caught.value
