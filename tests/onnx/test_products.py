"""Matrix products and `Einsum` against NumPy, and as native code."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.onnx.small_models import BATCH, check_node, one_node, run
from tilewright.frontend.onnx import import_model
from tilewright.graph.ir import Array
from tilewright.graph.ops import Contract


def normal(rng: np.random.Generator, shape: tuple[int, ...], dtype: str = "f4") -> Array:
    return np.asarray(rng.normal(0, 1, shape)).astype(dtype)


SHAPES = [
    ((5,), (5,)),
    ((5,), (5, 3)),
    ((4, 5), (5,)),
    ((BATCH, 5), (5, 3)),
    ((BATCH, 2, 4, 5), (5, 3)),
    ((BATCH, 4, 5), (BATCH, 5, 3)),
    ((1, 4, 5), (BATCH, 5, 3)),
    ((2, BATCH, 4, 5), (BATCH, 5, 3)),
    ((2, 1, 4, 5), (1, 3, 5, 2)),
    ((2, 1, 4, 5), (2, 1, 5, 1)),
    ((2, 3, 1, 5), (5,)),
    ((5,), (2, 3, 5, 4)),
]


@pytest.mark.parametrize(("left", "right"), SHAPES, ids=str)
def test_matmul(rng: np.random.Generator, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    compiled = BATCH not in left + right  # the fixed ones: compiling takes longest here
    check_node("MatMul", [normal(rng, left), normal(rng, right)], compiled=compiled)


def test_sums_of_no_products_are_zero(rng: np.random.Generator) -> None:
    x, y = normal(rng, (BATCH, 0)), normal(rng, (0, 4))
    check_node("MatMul", [x, y], expected=[np.zeros((BATCH, 4), np.float32)])
    model, _ = one_node("MatMul", [x, y])
    assert not any(isinstance(node.op, Contract) for node in import_model(model).graph.nodes)


@pytest.mark.parametrize("dtype", ["f2", "f8", "i4", "u8"])
def test_matmul_of_types(rng: np.random.Generator, dtype: str) -> None:
    x, y = (np.abs(normal(rng, s) * 5).astype(dtype) for s in ((BATCH, 9), (9, 4)))
    check_node("MatMul", [x, y], compiled=True)


@pytest.mark.parametrize("transposed", range(4))
@pytest.mark.parametrize("third", [None, (), (3,), (1, 3), (BATCH, 1), (BATCH, 3)], ids=str)
def test_gemm(rng: np.random.Generator, transposed: int, third: tuple[int, ...] | None) -> None:
    by_left, by_right = transposed & 1, transposed >> 1
    x = normal(rng, (5, BATCH) if by_left else (BATCH, 5))
    y = normal(rng, (3, 5) if by_right else (5, 3))
    inputs = [x, y] if third is None else [x, y, normal(rng, third)]
    attributes = {"transA": by_left, "transB": by_right, "alpha": 0.5, "beta": 2.0}
    check_node("Gemm", inputs, attributes=attributes, compiled=third == (3,) and transposed == 3)


def test_gemm_of_integers(rng: np.random.Generator) -> None:
    x, y, c = (rng.integers(-5, 5, s).astype("i4") for s in ((BATCH, 5), (5, 3), (3,)))
    attributes = {"alpha": 2.0, "beta": 3.0}
    check_node("Gemm", [x, y, c], expected=[2 * (x @ y) + 3 * c], attributes=attributes)
    model, _ = one_node("Gemm", [x, y, c], attributes={"alpha": 0.5})
    assert import_model(model).by_reference


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(BATCH, 4), (4, 3)]),
        ("ij,jk", [(BATCH, 4), (4, 3)]),
        ("ba,ca", [(3, 4), (2, 4)]),
        ("bhqd,bhkd->bhqk", [(BATCH, 2, 3, 4), (BATCH, 2, 5, 4)]),
        ("i,i->", [(5,), (5,)]),
        ("i,j->ij", [(5,), (4,)]),
        ("ij,ij->ij", [(BATCH, 4), (BATCH, 4)]),
        ("ij->ji", [(BATCH, 4)]),
        ("ij->i", [(BATCH, 4)]),
        ("ij->", [(BATCH, 4)]),
        ("ii->i", [(4, 4)]),
        ("ii", [(4, 4)]),
        ("iji->j", [(4, BATCH, 4)]),
        ("...ij,...jk->...ik", [(BATCH, 2, 3, 4), (2, 4, 5)]),
        ("...ij,jk->...ik", [(BATCH, 3, 4), (4, 5)]),
        ("...->...", [(BATCH, 2)]),
        ("i...->...", [(BATCH, 2, 3)]),
        ("...i,...i->...", [(1, 4), (BATCH, 4)]),
        ("ij,jk,kl->il", [(BATCH, 3), (3, 4), (4, 5)]),
        ("ij,jk,ij->k", [(BATCH, 3), (3, 4), (BATCH, 3)]),
        ("a,b,c->abc", [(2,), (3,), (4,)]),
        ("Ab,bC->AC", [(BATCH, 3), (3, 4)]),
        (" i j , j k -> i k ", [(BATCH, 3), (3, 4)]),
        ("ij,kl->i", [(BATCH, 3), (3, 4)]),
        ("ij,jk->ik", [(BATCH, 1), (4, 3)]),
    ],
)
def test_einsum(rng: np.random.Generator, equation: str, shapes: list[tuple[int, ...]]) -> None:
    arrays = [normal(rng, s) for s in shapes]
    wanted = np.einsum(equation, *(a.astype("f8") for a in arrays)).astype("f4")
    attributes = {"equation": equation}
    check_node("Einsum", arrays, expected=[np.asarray(wanted)], attributes=attributes)


@pytest.mark.parametrize("equation", ["iji->j", "ij,kl->i", "i,j->ij"])
def test_einsum_as_native_code(rng: np.random.Generator, equation: str) -> None:
    arrays = [normal(rng, (4,) * len(t)) for t in equation.partition("->")[0].split(",")]
    check_node("Einsum", arrays, attributes={"equation": equation}, compiled=True)


@st.composite
def equations(draw: st.DrawFn) -> tuple[str, list[tuple[int, ...]]]:
    """Any equation over a few letters, with the shapes of its operands."""
    sizes = dict(zip("abcde", (2, 3, 1, 4, 5), strict=True))
    terms = draw(st.lists(st.text("abcde", max_size=3), min_size=1, max_size=4))
    letters = "".join(dict.fromkeys("".join(terms)))
    result = "".join(draw(st.permutations(letters)))[: draw(st.integers(0, len(letters)))]
    return f"{','.join(terms)}->{result}", [tuple(sizes[c] for c in t) for t in terms]


@given(equations())
def test_any_einsum(drawn: tuple[str, list[tuple[int, ...]]]) -> None:
    equation, shapes = drawn
    rng = np.random.default_rng(3)
    arrays = [np.asarray(rng.integers(-4, 5, s)) for s in shapes]
    model, feeds = one_node("Einsum", arrays, attributes={"equation": equation})
    (found,) = run(model, feeds)
    np.testing.assert_array_equal(found, np.einsum(equation, *arrays))


def test_einsum_of_two_matrices_is_one_contraction(rng: np.random.Generator) -> None:
    x, y = normal(rng, (BATCH, 2, 3, 4)), normal(rng, (BATCH, 2, 5, 4))
    model, _ = one_node("Einsum", [x, y], attributes={"equation": "bhqd,bhkd->bqhk"})
    (node,) = import_model(model).graph.nodes
    assert isinstance(node.op, Contract)


@pytest.mark.parametrize("left", ["u1", "i1"])
@pytest.mark.parametrize("right", ["u1", "i1"])
@pytest.mark.parametrize("zeros", [(None, None), (3, None), (None, 5), (3, 5), ("rows", "columns")])
def test_matmul_of_small_integers(
    rng: np.random.Generator, left: str, right: str, zeros: tuple[object, object]
) -> None:
    x, y = rng.integers(0, 100, (4, 9)).astype(left), rng.integers(0, 100, (9, 6)).astype(right)
    p = rng.integers(0, 9, 4).astype(left) if zeros[0] == "rows" else zeros[0]
    q = rng.integers(0, 9, 6).astype(right) if zeros[1] == "columns" else zeros[1]
    p, q = (None if z is None else np.asarray(z, t) for z, t in ((p, left), (q, right)))
    moved = x.astype("i4") - (0 if p is None else p.reshape(-1, 1).astype("i4"))
    wanted = moved @ (y.astype("i4") - (0 if q is None else q.astype("i4")))
    check_node("MatMulInteger", [x, y, p, q], expected=[wanted], compiled=zeros == (3, 5))


def test_vectors_of_small_integers(rng: np.random.Generator) -> None:
    x, y = rng.integers(0, 100, (2, 9)).astype("u1")
    wanted = (x.astype("i4") - 3) @ (y.astype("i4") - 4)
    zeros = [np.uint8(3), np.uint8(4)]
    check_node("MatMulInteger", [x, y, *zeros], expected=[np.asarray(wanted)])


@pytest.mark.parametrize("dtype", ["u1", "i1"])
@pytest.mark.parametrize("stacked", [False, True])
def test_quantized_matmul(rng: np.random.Generator, dtype: str, stacked: bool) -> None:
    x = rng.integers(0, 100, (BATCH, 4, 9) if stacked else (BATCH, 9)).astype(dtype)
    y = rng.integers(0, 100, (9, 6)).astype(dtype)
    scales = [np.float32(s) for s in (0.03, 0.02, 2.0)]
    zeros = [np.asarray(z, dtype) for z in (20, 30, 50)]
    inputs = [x, scales[0], zeros[0], y, scales[1], zeros[1], scales[2], zeros[2]]
    check_node("QLinearMatMul", inputs, compiled=not stacked)
