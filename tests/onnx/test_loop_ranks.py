"""Loops whose first iterations change the rank of what they carry.

Exporters of languages without declarations begin with a placeholder (a scalar, a flag without
dimensions), which the first iteration replaces by a tensor of another rank.
"""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tests.onnx.test_loop_states import check, parsed, ramp
from tilewright.errors import TilewrightWarning
from tilewright.frontend.onnx import import_model
from tilewright.graph.ops import Contract
from tilewright.graph.ops.control import Loop

UNREAD = """
    y, z = Loop(k, yes, one) <
        body = b (int64 i, bool c, float[] s) => (bool go, float[] t, int64 r) {
        go = Identity(c)
        f = Cast <to = 1> (i)
        t = Add(x, f)
        r = Add(i, i) }>"""

READ = """
    y = Loop(k, yes, one) <body = b (int64 i, bool c, float[] s) => (bool go, float[] t) {
        go = Identity(c)
        u = Mul(s, x)
        t = Add(u, one) }>"""

CHAINED = """
    y, v, w = Loop(k, yes, one, one, x) <
        body = b (int64 i, bool c, float[] s, float[] t, float[p] u)
            => (bool go, float[] t1, float[] u1, float[p] u2) {
            go = Identity(c)
            t1 = Identity(t)
            u1 = Identity(u)
            u2 = Add(u, one) }>"""

FLAGS = """
    y, n = Loop(k, yes, no, zeroth) <
        body = b (int64 i, bool c, bool[] done, int64 m) => (bool[1] go, bool[] ends, int64 more) {
            up = Gather(first, zeroth)
            more = Add(m, up)
            late = Greater(more, limit)
            whole = If(late) <
                then_branch = t () => (bool[] a) { a = Identity(yes) },
                else_branch = e () => (bool[] d) { d = And(done, flags) }>
            ends = Or(whole, flags)
            undone = Not(whole)
            both = And(undone, c)
            go = Reshape(both, first) }>"""

FIXED = """
    y = Loop(k, yes, one) <body = b (int64 i, bool c, float[] s) => (bool go, float[] t) {
        go = Identity(c)
        turned = Transpose(x)
        square = MatMul(x, turned)
        more = Sub(square, s)
        t = MatMul(more, more) }>"""

DEEPER = """
    y = Loop(k, yes, x) <body = b (int64 i, bool c, float[p] s) => (bool go, float[] t) {
        go = Identity(c)
        t = Unsqueeze(s, zero) }>"""

WIDE = "(float[m, n] x, int64 k) => "


def counted(wanted: str, nodes: str, count: int):
    return parsed(f"(float[m, n] x) => {wanted}", f"k = Constant <value_int = {count}> () {nodes}")


@pytest.mark.parametrize("count", [1, 2, 40])
@pytest.mark.parametrize("nodes", [UNREAD, READ], ids=["unread", "read"])
def test_a_placeholder_is_replaced_by_the_first_iteration(nodes, count):
    wanted = "(float[] y, int64[t] z)" if nodes is UNREAD else "(float[a, b] y)"
    made = counted(wanted, nodes, count)
    check(made, *({"x": ramp(m * n, 0.01).reshape(m, n)} for m, n in ((2, 3), (1, 1), (0, 4))))


def test_the_loop_that_is_left_carries_one_rank():
    graph = import_model(counted("(float[a, b] y)", READ, 40)).graph
    (loop,) = (node.op for node in graph.nodes if isinstance(node.op, Loop))
    assert [kind.rank for kind in loop.results] == [2]


def test_the_loop_that_is_left_takes_what_does_not_change_from_the_first_iteration():
    made = counted("(float[a, b] y)", FIXED, 40)
    graph = import_model(made).graph
    (loop,) = (node.op for node in graph.nodes if isinstance(node.op, Loop))
    assert sum(isinstance(node.op, Contract) for node in loop.body.nodes) == 1
    check(counted("(float[a, b] y)", FIXED, 3), {"x": ramp(6, 0.1).reshape(2, 3)})


def test_placeholders_behind_each_other_take_an_iteration_each():
    made = counted("(float[a, b] y, float[c, d] v, float[e, f] w)", CHAINED, 40)
    check(made, {"x": ramp(6).reshape(2, 3)})


@pytest.mark.parametrize("nodes", [UNREAD, READ], ids=["unread", "read"])
def test_data_tells_whether_there_is_a_first_iteration(nodes):
    wanted = "(float total, int64[t] z)" if nodes is UNREAD else "(float total)"
    nodes += " total = ReduceSum <keepdims = 0> (y)"
    feeds = ({"x": ramp(6).reshape(2, 3), "k": np.array(k)} for k in (0, 1, 7))
    check(parsed(WIDE + wanted, nodes), *feeds)


@pytest.mark.parametrize("limit", [0, 3, 100])
def test_a_flag_without_dimensions_becomes_a_vector(limit):
    """A condition of unequal ranks in a body whose own result decides when it ends."""
    begin = f"""limit = Constant <value_int = {limit}> () k = Constant <value_int = 9> ()
        no = Constant <value = bool {{0}}> ()"""
    made = parsed("(bool[1] flags) => (bool[a] y, int64 n)", begin + FLAGS)
    check(made, *({"flags": np.array([flag])} for flag in (True, False)))


def test_a_few_known_iterations_may_change_every_rank():
    check(counted("(float[] y)", DEEPER, 3), {"x": ramp(6).reshape(2, 3)})


def test_ranks_without_an_end_are_left_to_the_reference():
    count = "most = ReduceMax <keepdims = 0> (x) k = Cast <to = 7> (most)"
    made = parsed("(float[m, n] x) => (float[] y)", count + DEEPER)
    with pytest.warns(TilewrightWarning, match="the rank of a result of Loop"):
        module = tw.compile(made, cache=False)
    (y,) = module.run({"x": ramp(4).reshape(2, 2)})
    assert y.shape == (1, 1, 1, 2, 2)
