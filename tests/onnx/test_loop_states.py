"""Loops whose iterations change the sizes of what they carry, hand it on, or never say how many
they are: as exporters write recurrent layers, decoders and searches.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from onnx import parser

import tilewright as tw
from tests.onnx.beside_ort import assert_alike, onnxruntime_results
from tilewright.frontend.onnx import import_model
from tilewright.graph import interpret
from tilewright.graph.ops.control import Loop

HEAD = """
    <ir_version: 9, opset_import: ["" : 17]>
    g (SIGNATURE {
        yes = Constant <value = bool {1}> ()
        one = Constant <value = float {1.0}> ()
        zeroth = Constant <value_int = 0> ()
        zero = Constant <value_ints = [0]> ()
        first = Constant <value_ints = [1]> ()
        last = Constant <value_ints = [1000000]> ()
        NODES }"""

GROWING = """
    y = Loop(k, yes, x) <body = b (int64 i, bool c, float[p] s) => (bool go, float[q] t) {
        go = Identity(c)
        t = Concat <axis = 0> (s, x) }>"""

SWAPPING = """
    y, z = Loop(k, yes, x, w) <
        body = b (int64 i, bool c, float[p] s, float[q] t) => (bool go, float[q] u, float[r] v) {
            go = Identity(c)
            u = Identity(t)
            v = Concat <axis = 0> (t, s) }>"""

SHRINKING = """
    y, z = Loop("", yes, x) <
        body = b (int64 i, bool c, float[p] s) => (bool go, float[q] t, float head) {
            head = Gather(s, zeroth)
            t = Slice(s, first, last, zero)
            left = Size(t)
            go = Greater(left, zeroth) }>"""

NESTED = """
    y, z = Loop(k, yes, x) <
        body = b (int64 i, bool c, float[p] s) => (bool go, float[q] t, int64 n) {
        go = Identity(c)
        e = Loop(i, c, x) <body = d (int64 j, bool f, float[a] u) => (bool on, float[b] v) {
            on = Identity(f)
            v = Concat <axis = 0> (u, x) }>
        t = Concat <axis = 0> (s, e)
        n = Size(t) }>"""

SIFTING = """
    y, z = Loop("", yes, x) <
        body = b (int64 i, bool c, float[p] s) => (bool go, float[q] t, int64 n) {
            less = Sub(s, one)
            large = Greater(less, one)
            t = Compress <axis = 0> (less, large)
            n = Size(t)
            go = Greater(n, zeroth) }>"""


def parsed(signature: str, nodes: str):
    return parser.parse_model(HEAD.replace("(SIGNATURE", signature).replace("NODES", nodes))


def check(model, *feeds):
    """Native with one thread and two, and as the graph means it: what onnxruntime computes."""
    meaning = import_model(model).graph
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        modules = [tw.compile(model, threads=threads, cache=False) for threads in (1, 2)]
    for arrays in feeds:
        wanted = onnxruntime_results(model, arrays)
        for found in (*(m.run(arrays) for m in modules), interpret(meaning, arrays)):
            for a, b in zip(found, wanted, strict=True):
                assert_alike(np.asarray(a), b)


def ramp(n: int, by: float = 1.0):
    return by * np.arange(n, dtype=np.float32)


ONE = "(float[n] x, int64 k) => (float[m] y)"
TWO = "(float[n] x, int64 k) => (float[m] y, int64[t] z)"


def test_a_loop_makes_longer_what_it_carries():
    sizes = [(n, k) for n in (3, 700, 0) for k in (5, 0, 1)]
    check(parsed(ONE, GROWING), *({"x": ramp(n), "k": np.array(k)} for n, k in sizes))


def test_a_loop_hands_one_state_to_the_place_of_another():
    made = parsed("(float[n] x, float[m] w, int64 k) => (float[p] y, float[q] z)", SWAPPING)
    sizes = [(n, m, k) for n, m in ((3, 2), (1, 600)) for k in (4, 0, 1)]
    check(made, *({"x": ramp(n), "w": ramp(m, 9.0), "k": np.array(k)} for n, m, k in sizes))


def test_a_loop_ends_when_nothing_is_left():
    made = parsed("(float[n] x) => (float[m] y, float[t] z)", SHRINKING)
    check(made, *({"x": ramp(n)} for n in (3, 50, 1)))


def test_loops_inside_of_loops_grow():
    sizes = [(n, k) for n in (3, 1) for k in (5, 0, 1)]
    check(parsed(TWO, NESTED), *({"x": ramp(n), "k": np.array(k)} for n, k in sizes))


def test_data_tells_what_a_loop_carries_on():
    made = parsed("(float[n] x) => (float[m] y, int64[t] z)", SIFTING)
    check(made, *({"x": ramp(n)} for n in (40, 1, 900)))


HANDED = """
    begins = Less(zeroth, count)
    y, v, n, turns, rows = Loop("", begins, x, w, count, zeroth) <
        body = b (int64 i, bool c, float[3] s, float[3, 3] w0, int64 n0, int64 i0)
            => (bool go, float[3] t, float[3, 3] w2, int64 n0, int64 i1, float[3] r) {
            w1 = Identity(w0)
            w2 = Identity(w1)
            up = Gather(first, zeroth)
            i1 = Add(i0, up)
            r = MatMul(s, w0)
            t = Tanh(r)
            go = Less(i1, n0) }>"""


def test_what_a_body_hands_on_is_not_carried():
    """Weights and lengths; the weights are constants inside of the body then."""
    weights = ", ".join(str(k / 9) for k in range(9))
    made = parsed(
        "(float[3] x, int64 count) => (float[3] y, float[3, 3] v, int64 n, float[t, 3] rows)",
        f"w = Constant <value = float[3, 3] {{{weights}}}> () {HANDED}",
    )
    (node,) = (n for n in import_model(made).graph.nodes if isinstance(n.op, Loop))
    assert node.op.carried == 2
    assert any(a.shape == (3, 3) for a in node.op.body.constants.values())
    check(made, *({"x": ramp(3), "count": np.array(k)} for k in (4, 0, 1, 40)))


FLAT_OR_NOT = """
    dims = Shape(x)
    rows = Gather(dims, zeroth)
    up = Gather(first, zeroth)
    single = Equal(rows, up)"""


def flattened(name: str) -> str:
    """A result with one dimension less if there is a single row."""
    return f"""
        {name} = If(single) <
            then_branch = a{name} () => (float[p] {name}_yes) {{ {name}_yes = Squeeze(x, zero) }},
            else_branch = b{name} () => (float[p, q] {name}_no) {{ {name}_no = Neg(x) }}>"""


def summed(count: int) -> str:
    """Results whose ranks depend on `single`, again and again."""
    names = [f"v{k}" for k in range(count)]
    every = "".join(flattened(name) for name in names)
    return f"""{every}
        total = Sum({", ".join(names)})
        y = ReduceSum <keepdims = 0> (total)"""


@pytest.mark.parametrize("count", [2, 12])
def test_a_condition_is_known_where_it_has_been_asked(count):
    """All that follows is there twice, not 2¹² times."""
    made = parsed("(float[n, 4] x) => (float y)", FLAT_OR_NOT + summed(count))
    check(made, *({"x": ramp(4 * n).reshape(n, 4)} for n in (1, 3)))


def test_a_flag_is_known_where_it_has_been_asked():
    made = parsed("(float[1, 4] x, bool single) => (float y)", summed(12))
    x = ramp(4).reshape(1, 4)
    check(made, *({"x": x, "single": np.array(flag)} for flag in (True, False)))
