"""Shapes as data and other shapes for tensors, with numbers and with symbols as dimensions."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, parser
from onnx.reference import ReferenceEvaluator

import tilewright
from tests.onnx.small_models import BATCH, check, check_node, make_model
from tilewright.frontend.onnx import import_model
from tilewright.frontend.onnx.shapes import resolved
from tilewright.graph import interpret
from tilewright.graph.ir import Array
from tilewright.graph.sizes import as_shape
from tilewright.tensor import ir as tir

X = np.arange(BATCH * 4 * 6, dtype=np.float32).reshape(BATCH, 4, 6)


def ints(*values: int) -> Array:
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize(
    "wanted",
    [(BATCH, 24), (-1, 24), (0, -1), (0, 2, 2, 6), (4, -1, 6), (-1,), (0, 4, 6), (2, -1, 3)],
)
def test_reshape(wanted: tuple[int, ...]) -> None:
    check_node("Reshape", [X, ints(*wanted)], known=[1], compiled=True)


def test_reshape_of_nothing() -> None:
    empty = np.zeros((0, 3, 4), np.float32)
    check_node("Reshape", [empty, ints(0, -1)], known=[1], expected=[empty.reshape(0, 12)])
    options = {"known": [1], "attributes": {"allowzero": 1}}
    check_node("Reshape", [empty, ints(3, 4, 0)], **options, expected=[empty.reshape(3, 4, 0)])


def test_reshape_solves_a_symbolic_dimension_exactly() -> None:
    n, s = tir.Var("n"), tir.Var("s")
    shape = as_shape((n, s, 768))
    assert resolved(shape, as_shape((0, -1, 12, 64))) == (n, s, tir.Const(12), tir.Const(64))
    assert resolved(shape, as_shape((-1, 768)))[0] in (n * s, s * n)
    assert resolved(as_shape((n, 12, s, 64)), as_shape((n * 12, -1, 64)))[1] is s
    assert resolved(as_shape((n, s + 1)), as_shape((-1, s + 1)))[0] is n


def test_a_shape_from_shapes_needs_no_node() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "first"], ["batch"]),
        helper.make_node("Unsqueeze", ["batch", "zero"], ["row"]),
        helper.make_node("Concat", ["row", "rest"], ["wanted"], axis=0),
        helper.make_node("Reshape", ["x", "wanted"], ["y"]),
    ]
    known = {"first": np.array(0), "zero": ints(0), "rest": ints(2, -1)}
    model = make_model(nodes, {"x": X}, known)
    check(model, {"x": X})
    del model.graph.output[:-1]
    (node,) = import_model(model).graph.nodes
    assert node.op.name == "reshape"


@pytest.mark.parametrize(("start", "end"), [(0, 3), (1, 3), (-2, 3), (0, -1), (2, 1), (0, 99)])
def test_shape_of_some_dimensions(start: int, end: int) -> None:
    check_node("Shape", [X], attributes={"start": start, "end": end})


def test_size() -> None:
    check_node("Size", [X])
    check_node("Size", [np.float32(1)])


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1])
def test_flatten(axis: int) -> None:
    check_node("Flatten", [X], attributes={"axis": axis})


def test_squeeze_and_unsqueeze() -> None:
    wide = X.reshape(1, BATCH, 1, 4, 6)
    check_node("Squeeze", [wide, ints(0, -3)], known=[1], compiled=True)
    check_node("Squeeze", [wide])
    check_node("Squeeze", [wide], attributes={"axes": [2]}, opset=11, expected=[wide[:, :, 0]])
    check_node("Unsqueeze", [X, ints(0, -1)], known=[1], compiled=True)
    expected = [X[:, None, :, None]]
    check_node("Unsqueeze", [X], attributes={"axes": [3, 1]}, opset=11, expected=expected)


@pytest.mark.parametrize("wanted", [(BATCH, 4, 6), (1,), (2, 1, 1, 1), (6,), (3, BATCH, 1, 6)])
def test_expand(wanted: tuple[int, ...]) -> None:
    for source in (X, X[:, :1], X[:, :, :1], np.float32(2)):
        check_node("Expand", [source, ints(*wanted)], known=[1], compiled=True)


@pytest.mark.parametrize("perm", [None, [0, 1, 2], [2, 0, 1], [1, 0, 2], [0, 2, 1]])
@pytest.mark.parametrize("dtype", ["f4", "f2", "i8", "?"])
def test_transpose(perm: list[int] | None, dtype: str) -> None:
    attributes = {} if perm is None else {"perm": perm}
    check_node("Transpose", [X.astype(dtype)], attributes=attributes, compiled=True)


def test_what_depends_on_data_is_declined() -> None:
    node = helper.make_node("CumSum", ["x", "along"], ["y"])
    model = make_model([node], {"x": X, "along": ints(1)})
    assert "the axis depends on data" in str(import_model(model).by_reference[0])


def test_numbers_of_sizes_that_are_zero() -> None:
    """Whether something is left, and a count that is at least one, are asked when a model runs."""
    model = parser.parse_model("""<ir_version: 9, opset_import: ["" : 20]>
    left (float[n, 2] x, bool[n] k)
        => (bool some, int64 most, int64[2] wide, bool[2] each, float[m, 2] y)
    <int64 zero = {0}, int64 one = {1}, float ten = {10}> {
        c = Compress <axis = 0> (x, k)
        size = Size (c)
        some = Greater (size, zero)
        most = Max (size, one)
        shape = Shape (x)
        wide = Max (shape, one)
        each = Greater (shape, zero)
        y = If (some) <
            then_branch = some_are () => (float[p, 2] a) { a = Add (c, ten) },
            else_branch = none_is () => (float[p, 2] a) { a = Neg (x) }>
    }""")
    module = tilewright.compile(model, cache=False)
    for rows, kept, expected in (
        ([[1, 2], [3, 4]], [True, False], [True, 2, [2, 2], [True, True], [[11, 12]]]),
        ([[1, 2]], [False], [False, 1, [1, 2], [True, True], [[-1, -2]]]),
        ([], [], [False, 1, [1, 2], [False, True], []]),
    ):
        x = np.array(rows, np.float32).reshape(-1, 2)
        found = module.run({"x": x, "k": np.array(kept, np.bool_)})
        assert [v.tolist() for v in found] == expected


HALVES = """
    s = Shape <start = 1> (x)
    f = Cast <to = 1> (s)
    k = Constant <value = float[2] {0.6, 1.7}> ()
    m = Mul (f, k)
    g = Floor (m)
    wanted = Cast <to = 7> (g)"""
CEILINGS = """
    s = Shape <start = 1> (x)
    f = Cast <to = 11> (s)
    k = Constant <value = double[2] {3.0, -2.5}> ()
    q = Div (f, k)
    g = Ceil (q)
    i = Cast <to = 7> (g)
    sign = Constant <value_ints = [1, -1]> ()
    wanted = Mul (i, sign)"""
TRUNCATED = """
    s = Shape <start = 1> (x)
    f = Cast <to = 1> (s)
    three = Constant <value = float[2] {3.0, 0.5}> ()
    less = Sub (three, f)
    half = Constant <value = float[1] {0.7}> ()
    part = Mul (less, half)
    i = Cast <to = 7> (part)
    ten = Constant <value_ints = [40, 90]> ()
    wanted = Add (i, ten)"""
SIGNS = """
    s = Shape <start = 1> (x)
    b = Shape <start = 0, end = 1> (x)
    k = Constant <value_ints = [4, 3]> ()
    zero = Constant <value_ints = [0]> ()
    less = Sub (zero, s)
    q = Div (less, k)
    d = Sub (zero, q)
    n = Sub (zero, b)
    r = Div (less, n)
    wanted = Max (d, r)"""

LIMITED = """
    s = Shape <start = 1> (x)
    f = Cast <to = 1> (s)
    k = Constant <value = float[2] {3.0, 2.0}> ()
    part = Div (f, k)
    low = Constant <value = float[2] {7.5, 4.0}> ()
    some = Max (part, low)
    top = Constant <value = float[2] {15.0, 20.25}> ()
    few = Min (some, top)
    wanted = Cast <to = 7> (few)"""
COMPARED = """
    s = Shape <start = 1> (x)
    f = Cast <to = 1> (s)
    k = Constant <value = float[2] {0.5, 1.0}> ()
    half = Mul (f, k)
    end = Constant <value = float[2] {9.5, 20.0}> ()
    few = Less (half, end)
    other = Constant <value_ints = [5, 6]> ()
    wanted = Where (few, s, other)"""


@pytest.mark.parametrize("nodes", [HALVES, CEILINGS, TRUNCATED, SIGNS, LIMITED, COMPARED])
def test_sizes_that_models_compute_as_exporters_write_it(nodes: str) -> None:
    """With floats in between, or with divisions that are rounded toward zero."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]>
        g (float[c, h, w] x) => (float[p, q] y, int64[2] wanted) {{
            one = Constant <value = float[1, 1] {{1.0}}> () {nodes}
            y = Expand (one, wanted) }}"""
    )
    graph = import_model(model).graph
    module = tilewright.compile(model, threads=1, cache=False)
    assert module.by_reference == ()
    for height, width in [(n, 61 - n) for n in range(1, 60)]:
        feeds = {"x": np.zeros((2, height, width), np.float32)}
        wanted = ReferenceEvaluator(model).run(None, feeds)
        for found in (module.run(feeds), interpret(graph, feeds)):
            assert [a.shape for a in found] == [a.shape for a in wanted]
            np.testing.assert_array_equal(found[1], wanted[1])


@pytest.mark.parametrize("rounding", ["Floor", "Ceil", "Identity"])
@pytest.mark.parametrize("factor", [0.6, 0.51, 0.1, 0.3, 0.7, 1.1, 0.9, 2.3, 0.0625])
@pytest.mark.parametrize("op", ["Mul", "Div"])
def test_sizes_by_factors_are_those_of_floats(rounding: str, factor: float, op: str) -> None:
    """A product beside a whole number is what a float makes of it: 425 · 0.6 is more than 255."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]>
        g (bool[n] x) => (int64[1] y) {{
            s = Shape (x)
            f = Cast <to = 1> (s)
            k = Constant <value = float[1] {{{factor}}}> ()
            m = {op} (f, k)
            r = {rounding} (m)
            y = Cast <to = 7> (r) }}"""
    )
    graph = import_model(model).graph
    sizes = np.arange(1, 4000)
    scaled = getattr(np, {"Mul": "multiply", "Div": "divide"}[op])(
        sizes.astype(np.float32), np.float32(factor)
    )
    wanted = {"Floor": np.floor, "Ceil": np.ceil, "Identity": np.trunc}[rounding](scaled)
    every = [n for n in sizes if n % 97 == 0 or n % 85 == 0 or n < 40]
    found = [interpret(graph, {"x": np.zeros(n, np.bool_)})[0][0] for n in every]
    assert found == [int(wanted[n - 1]) for n in every]


def test_bits_of_sizes_are_data() -> None:
    """What no size of a program is made of is computed by a kernel."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]>
        g (float[h, w] x) => (int64[2] y) {
            s = Shape (x)
            k = Constant <value_ints = [6, 5]> ()
            a = BitwiseAnd (s, k)
            o = BitwiseXor (s, k)
            y = Sub (a, o) }"""
    )
    module = tilewright.compile(model, threads=1, cache=False)
    (found,) = module.run({"x": np.zeros((13, 6), np.float32)})
    assert found.tolist() == [(13 & 6) - (13 ^ 6), (6 & 5) - (6 ^ 5)]
