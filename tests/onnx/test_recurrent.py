"""Recurrent layers with every option against their equations, one time step after another."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.onnx.small_models import close, one_node, run
from tilewright.frontend.onnx import import_model
from tilewright.graph import interpret

BATCH, FEATURES, HIDDEN = 3, 4, 5
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
FUNCTIONS = {
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Tanh": np.tanh,
    "Relu": lambda x: np.maximum(x, 0),
    "HardSigmoid": lambda x: np.clip(0.3 * x + 0.4, 0, 1),
    "Softsign": lambda x: x / (1 + np.abs(x)),
    "Affine": lambda x: 0.3 * x + 0.4,
    "Elu": lambda x: np.where(x < 0, 0.3 * (np.exp(x) - 1), x),
}
DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
WITH_ALPHA, WITH_BETA = {"HardSigmoid", "Affine", "Elu"}, {"HardSigmoid", "Affine"}


def step(op, x, states, w, r, bias, holes, functions, options):
    """One time step of one direction, as the standard writes it."""
    wb, rb = np.split(bias, 2)
    clip = options.get("clip")
    limit = (lambda v: np.clip(v, -clip, clip)) if clip else (lambda v: v)
    f, g, h_ = (*[(lambda v, fn=FUNCTIONS[n]: fn(limit(v))) for n in functions], None, None)[:3]
    h = states[0]
    if op == "RNN":
        return [f(x @ w.T + h @ r.T + wb + rb)]
    if op == "GRU":
        (wz, wr, wh), (rz, rr, rh) = np.split(w, 3), np.split(r, 3)
        (bz, br, bh), (cz, cr, ch) = np.split(wb, 3), np.split(rb, 3)
        z = f(x @ wz.T + h @ rz.T + bz + cz)
        reset = f(x @ wr.T + h @ rr.T + br + cr)
        if options.get("linear_before_reset"):
            new = g(x @ wh.T + reset * (h @ rh.T + ch) + bh)
        else:
            new = g(x @ wh.T + (reset * h) @ rh.T + ch + bh)
        return [(1 - z) * new + z * h]
    c = states[1]
    i, o, forget, cell = np.split(x @ w.T + h @ r.T + wb + rb, 4, axis=-1)
    pi, po, pf = np.split(holes, 3)
    i = f(i + pi * c)
    forget = 1 - i if options.get("input_forget") else f(forget + pf * c)
    new = forget * c + i * g(cell)
    return [f(o + po * new) * h_(new), new]


def layer(op, x, w, r, bias, lengths, initial, holes, names, options):
    """All time steps and directions; x is (time, batch, features)."""
    ways = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}
    whole, finals = [], []
    per_way = len(DEFAULTS[op])
    for d, backward in enumerate(ways[options.get("direction", "forward")]):
        states = [s[d] for s in initial]
        rows = np.zeros((len(x), BATCH, HIDDEN))
        for t in reversed(range(len(x))) if backward else range(len(x)):
            functions = names[d * per_way : (d + 1) * per_way]
            new = step(op, x[t], states, w[d], r[d], bias[d], holes[d], functions, options)
            inside = (t < lengths)[:, None]
            rows[t] = np.where(inside, new[0], 0)
            states = [np.where(inside, n, s) for n, s in zip(new, states, strict=True)]
        whole.append(rows)
        finals.append(states)
    return [np.stack(whole, 1), *(np.stack(s) for s in zip(*finals, strict=True))]


@st.composite
def options_of(draw: st.DrawFn, op: str) -> dict[str, object]:
    options: dict[str, object] = {"hidden_size": HIDDEN}
    options["direction"] = draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    if draw(st.booleans()):
        options["clip"] = 0.6
    if op == "GRU":
        options["linear_before_reset"] = draw(st.integers(0, 1))
    if op == "LSTM":
        options["input_forget"] = draw(st.integers(0, 1))
    if draw(st.booleans()):
        count = len(DEFAULTS[op]) * (2 if options["direction"] == "bidirectional" else 1)
        names = [draw(st.sampled_from(sorted(FUNCTIONS))) for _ in range(count)]
        options["activations"] = names
        options["activation_alpha"] = [0.3 for n in names if n in WITH_ALPHA]
        options["activation_beta"] = [0.4 for n in names if n in WITH_BETA]
    return {k: v for k, v in options.items() if v != []}


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
@given(data=st.data())
def test_layer(op, data):
    options = data.draw(options_of(op))
    time = data.draw(st.sampled_from([1, 3, 10]))
    has = {
        k: data.draw(st.booleans(), label=k)
        for k in ("bias", "lengths", "state", "holes", "layout")
    }
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    ways = 2 if options["direction"] == "bidirectional" else 1
    draw = lambda *shape: rng.uniform(-0.3, 0.3, shape).astype(np.float32)  # noqa: E731
    x = draw(time, BATCH, FEATURES)
    w, r = draw(ways, GATES[op] * HIDDEN, FEATURES), draw(ways, GATES[op] * HIDDEN, HIDDEN)
    bias = draw(ways, 2 * GATES[op] * HIDDEN) * has["bias"]
    count = 2 if op == "LSTM" else 1
    initial = [draw(ways, BATCH, HIDDEN) * has["state"] for _ in range(count)]
    holes = draw(ways, 3 * HIDDEN) * has["holes"]
    lengths = rng.integers(1, time + 1, BATCH).astype(np.int32) if has["lengths"] else None
    names = options.get("activations") or DEFAULTS[op] * ways
    full = np.full(BATCH, time) if lengths is None else lengths
    wanted = layer(op, x, w, r, bias, full, initial, holes, names, options)
    inputs = [x, w, r, bias if has["bias"] else None, lengths]
    states = initial if has["state"] else [None] * count
    if has["layout"]:
        options["layout"] = 1
        inputs[0] = x.swapaxes(0, 1)
        states = [None if s is None else s.swapaxes(0, 1) for s in states]
        wanted = [wanted[0].transpose(2, 0, 1, 3), *(v.swapaxes(0, 1) for v in wanted[1:])]
    inputs += [*states, *([holes] if op == "LSTM" and has["holes"] else [])]
    model, feeds = one_node(op, inputs, known=[1, 2], outputs=1 + count, attributes=options)
    for found, value in zip(run(model, feeds), wanted, strict=True):
        assert found.shape == value.shape
        np.testing.assert_allclose(found, value, rtol=2e-5, atol=2e-5)


def lstm(time):
    rng = np.random.default_rng(0)
    w = rng.standard_normal((1, 4 * HIDDEN, FEATURES)).astype(np.float32)
    r = rng.standard_normal((1, 4 * HIDDEN, HIDDEN)).astype(np.float32)
    x = rng.standard_normal((time, 2, FEATURES)).astype(np.float32)
    return one_node("LSTM", [x, w, r], known=[1, 2], outputs=3, attributes={"hidden_size": HIDDEN})


def test_products_with_inputs_stand_in_front_of_the_loop():
    graph = import_model(lstm(20)[0]).graph
    assert [n.op.name for n in graph.nodes].count("contract") == 1
    (loop,) = [n for n in graph.nodes if n.op.name == "loop"]
    assert [n.op.name for n in loop.op.body.nodes].count("contract") == 1


def test_a_few_time_steps_need_no_loop():
    assert "loop" not in [n.op.name for n in import_model(lstm(6)[0]).graph.nodes]


def test_one_graph_serves_every_length():
    model, feeds = lstm(7)  # a dimension of this size has a name in small models
    graph = import_model(model).graph
    for time in (1, 7, 30):
        fixed, arrays = lstm(time)
        for found, wanted in zip(interpret(graph, arrays), run(fixed, arrays), strict=True):
            close(found, wanted)
    assert feeds["in0"].shape[0] == 7


def test_states_that_nobody_wants_are_not_collected():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20, 2, FEATURES)).astype(np.float32)
    w = rng.standard_normal((1, HIDDEN, FEATURES)).astype(np.float32)
    r = rng.standard_normal((1, HIDDEN, HIDDEN)).astype(np.float32)
    model, feeds = one_node(
        "RNN", [x, w, r], known=[1, 2], outputs=2, attributes={"hidden_size": HIDDEN}
    )
    whole, last = run(model, feeds)
    model.graph.node[0].output[0] = ""
    del model.graph.output[0]
    graph = import_model(model).graph
    (loop,) = [n for n in graph.nodes if n.op.name == "loop"]
    assert len(loop.outputs) == 1
    np.testing.assert_array_equal(interpret(graph, feeds)[0], last)
    np.testing.assert_array_equal(whole[-1, 0], last[0])
