"""Sizes that meet are broadcast in every run that has one of them as one, and refused otherwise.

Each model is compiled once and runs with all combinations of its sizes, zero and one among them;
what NumPy does, as the reference implementation of ONNX calls it, is what has to happen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

import tilewright
from tests.expect import raises_code
from tests.onnx.beside_ort import assert_alike
from tilewright.frontend.onnx.broadcasting import _OPERATORS
from tilewright.frontend.onnx.registry import HANDLERS
from tilewright.frontend.onnx.settled import Settled
from tilewright.model.compiler import Compiling
from tilewright.runtime.meetings import Wanted
from tilewright.target import Target

SIZES = (0, 1, 2, 3)
CONSTANTS: Mapping[str, Any] = {
    "zero": [0], "one": [1], "minus": [-1], "most": [2**63 - 1], "two": 2, "true": True,
    "three": np.array([1, 2, 3], "f4"), "w": np.eye(4, 3, dtype="f4"),
}  # fmt: skip

MODELS = {
    "elementwise": """g (float[n] x, float[m] z) => (float a, float b) {
        a = Max(x, z, x)
        c = Less(z, x)
        s = Shape(a)
        u = ConstantOfShape(s)
        b = Where(c, u, z)
    }""",
    "no names": "g (float[?, 2] x, float[?, 2] z) => (float a) { b = PRelu(x, z) a = Mul(z, b) }",
    "a number": "g (float[n] x) => (float a) { b = Sub(x, three) a = Mul(b, x) }",
    "three sizes": """g (bool[n] c, float[m] x, float[k] z) => (float a) {
        t = Where(c, x, z)
        a = Mean(t, z)
    }""",
    "expanded": """g (float[n] x, float[k, m] z) => (float a) {
        s = Shape(z)
        a = Expand(x, s)
    }""",
    "products": """g (float[n, 2, 3] x, float[m, 3, 2] z) => (float a, float b) {
        a = MatMul(x, z)
        b = Einsum<equation = "bij,bjk->kb">(x, z)
    }""",
    "sums of products": """g (float[n, j] x, float[k, 2] z) => (float a) {
        a = Einsum<equation = "ij,jk->ik">(x, z)
    }""",
    "a product of what has met": """g (float[n] x, float[2, m] z, float[m, 3] w) => (float a) {
        t = Mul(x, z)
        a = MatMul(t, w)
    }""",
    "a bias": "g (float[n, 4] x, float[k] c) => (float a) { a = Gemm(x, w, c) }",
    "other shapes between": """g (float[n, 6] x, float[3, m] z) => (float a, float b) {
        r = Transpose<perm = [1, 0]>(z)
        s = Concat<axis = 1>(r, r)
        t = Add(x, s)
        a = Transpose<perm = [1, 0]>(t)
        b = Flatten<axis = 0>(t)
    }""",
    "the last row": """g (float[b, n] x, float[m] z) => (float a) {
        l = Slice(x, minus, most, one)
        a = Add(l, z)
    }""",
    "neighbours": """g (float[n] x, float[m] z) => (float a) {
        l = Slice(x, one, most)
        k = Slice(z, minus, most)
        t = Sub(k, l)
        a = Add(t, z)
    }""",
    "chosen by data": """g (float[n] x, float[m] z) => (float a) {
        i = NonZero(x)
        j = Squeeze(i, zero)
        l = Gather(x, j)
        a = Mul(l, z)
    }""",
    "joined before data tell": """g (float[n] x, float[m] z, float[1, k] w) => (float a) {
        i = NonZero(x)
        l = Cast<to = 1>(i)
        t = Add(l, z)
        a = Concat<axis = 0>(t, w)
    }""",
    "shapes alone": """g (float[n] x, float[m] z) => (int64 a, float b) {
        t = Add(x, z)
        a = Shape(t)
        i = NonZero(x)
        l = Cast<to = 1>(i)
        u = Mul(l, z)
        s = Shape(u)
        b = ConstantOfShape(s)
    }""",
    "a shape in a branch": """g (float[n] x, float[m] z, bool c) => (int64 a) {
        a = If(c) <
            then_branch = t () => (int64[1] u) { s = Add(x, z) u = Shape(s) },
            else_branch = e () => (int64[1] v) { v = Shape(x) }>
    }""",
    "a branch": """g (float[n] x, float[m] z, bool c) => (float a) {
        a = If(c) <
            then_branch = t () => (float u) { u = Add(x, z) },
            else_branch = e () => (float v) { v = Neg(x) }>
    }""",
    "a loop": """g (float[n] x, float[m] z) => (float a, float b) {
        a, b = Loop(two, true, x) <
            body = l (int64 i, bool c, float[n] y) => (bool d, float v, float s) {
                d = Identity(c)
                v = Identity(y)
                s = Add(y, z)
            }>
    }""",
}  # fmt: skip


def names_read(graph: onnx.GraphProto) -> Iterator[str]:
    for node in graph.node:
        yield from node.input
        for attribute in node.attribute:
            yield from names_read(attribute.g)


def parsed(text: str) -> onnx.ModelProto:
    model = parser.parse_model(f'<ir_version: 9, opset_import: ["" : 20]>\n{text}')
    read = set(names_read(model.graph))
    known = [numpy_helper.from_array(np.array(v), n) for n, v in CONSTANTS.items() if n in read]
    model.graph.initializer.extend(known)
    for info in model.graph.output:
        info.type.tensor_type.ClearField("shape")
    return model


def dims_of(info: onnx.ValueInfoProto) -> list[int | str]:
    dims = enumerate(info.type.tensor_type.shape.dim)
    return [d.dim_value or d.dim_param or f"{info.name}_{k}" for k, d in dims]


def drawn(kind: int, shape: Sequence[int], draw: np.random.Generator) -> np.ndarray[Any, Any]:
    if kind == TensorProto.BOOL:
        return np.asarray(draw.random(shape) < 0.6)
    return np.asarray(draw.integers(-1, 3, shape)).astype("f4")  # some zeros, for `NonZero`


def check(
    model: onnx.ModelProto,
    sizes: Sequence[int] = SIZES,
    module: tilewright.Module | None = None,
) -> tilewright.Module:
    """Compiled once, run with every combination of sizes."""
    module = module or tilewright.compile(model, cache=False, threads=1)
    assert module.by_reference == ()
    reference, draw = ReferenceEvaluator(model), np.random.default_rng(5)
    inputs = {info.name: dims_of(info) for info in model.graph.input}
    kinds = {info.name: info.type.tensor_type.elem_type for info in model.graph.input}
    names = list(dict.fromkeys(d for dims in inputs.values() for d in dims if isinstance(d, str)))
    for numbers in product(sizes, repeat=len(names)):
        size: dict[int | str, Any] = dict(zip(names, numbers, strict=True))
        shapes = {name: [size.get(d, d) for d in dims] for name, dims in inputs.items()}
        feeds = {name: drawn(kinds[name], shape, draw) for name, shape in shapes.items()}
        try:
            wanted = reference.run(None, feeds)
        except Exception:  # noqa: BLE001  (whatever NumPy has against these shapes)
            with raises_code("C025"):
                module.run(feeds)
            continue
        for found, expected in zip(module.run(feeds), wanted, strict=True):
            assert found.shape == np.shape(expected), f"{size}"
            assert_alike(found, expected)
    return module


@pytest.mark.parametrize("name", MODELS)
def test_every_combination(name: str) -> None:
    check(parsed(MODELS[name]))


@pytest.mark.parametrize("name", ["products", "a number"])
def test_every_combination_without_knowing_which_sizes_are_one(name: str) -> None:
    """The version that looks everything up, where one that knows more would do."""
    model = parsed(MODELS[name])
    how = Compiling(Target.host(), 1, "default", "auto")
    check(model, (0, 1, 3), how.module(model, lambda _: None, Settled(spreads=True), final=True))


def test_one_version_serves_all_other_sizes() -> None:
    """Only what is one where it meets another is known of a version."""
    module = check(parsed(MODELS["the last row"]), (1, 2))
    assert module.spreading is None or len(module.spreading._versions._made) == 0
    text = "g (float[n, q] x, float[m, q] z) => (float a) { a = Add(x, z) }"
    module = check(parsed(text))
    assert module.spreading is not None
    wanted = {Wanted(frozenset(name)) for name in "nm"}
    assert set(module.spreading._versions._made) == wanted


STRICT = {
    "an inner dimension": "g (float[2, n] x, float[m, 3] z) => (float a) { a = MatMul(x, z) }",
    "a bias": "g (float[n, 4] x, float[m, 3] c) => (float a) { a = Gemm(x, w, c) }",
    "a scale": "g (float[2, n] x, float[m] s) => (float a) { a = LayerNormalization(x, s) }",
    "joined parts": "g (float[n, 2] x, float[m, 2] z) => (float a) { a = Concat<axis = 1>(x, z) }",
}


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("an inner dimension", {"x": (2, 1), "z": (3, 3)}),
        ("a bias", {"x": (1, 4), "c": (2, 3)}),
        ("a scale", {"x": (2, 1), "s": (3,)}),
        ("joined parts", {"x": (1, 2), "z": (3, 2)}),
    ],
)
def test_what_is_not_broadcast_is_refused(
    name: str, shapes: Mapping[str, tuple[int, ...]], rng: np.random.Generator
) -> None:
    module = tilewright.compile(parsed(STRICT[name]), cache=False, threads=1)
    with raises_code("C025"):
        module.run({key: rng.normal(0, 1, shape).astype("f4") for key, shape in shapes.items()})


def test_operators_that_broadcast_have_handlers() -> None:
    assert set(HANDLERS) >= _OPERATORS
