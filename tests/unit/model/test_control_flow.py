"""Loops, branches and scans as native code: what ONNX says they mean, with one thread and two."""

from __future__ import annotations

import warnings

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import tilewright as tw
from tests.expect import raises_code
from tests.onnx.small_models import close
from tilewright.frontend.onnx import import_model
from tilewright.graph import interpret

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
COLUMNS = 600
"""Wide enough for two threads to share the work of a row."""


def info(name, kind=FLOAT, shape=()):
    return helper.make_tensor_value_info(name, kind, shape)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(" "), outputs.split(), **attributes)


def graph(nodes, inputs=(), outputs="", weights=None):
    constants = [numpy_helper.from_array(np.asarray(a), n) for n, a in (weights or {}).items()]
    results = [onnx.ValueInfoProto(name=name) for name in outputs.split()]
    return helper.make_graph(nodes, "inner", list(inputs), results, constants)


def model(nodes, inputs, outputs, weights=None):
    made = graph(nodes, inputs, outputs, weights)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 21)], ir_version=9)


def body(nodes, carried, outputs, weights=None):
    """The body of a loop; its inputs are `i`, `cond` and the carried values."""
    return graph(nodes, [info("i", INT64), info("cond", BOOL), *carried], outputs, weights)


def by_reference(made):
    evaluator = ReferenceEvaluator(made)
    return lambda arrays: evaluator.run(None, arrays)


def by_meaning(made):
    """For what the reference does not know: stacked results, and scans from the end."""
    imported = import_model(made).graph
    return lambda arrays: interpret(imported, arrays)


def check(made, *feeds, oracle=by_reference):
    """Compiled without help from the reference, and the same numbers, at both counts of threads."""
    meaning = oracle(made)
    for threads in (1, 2):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            module = tw.compile(made, threads=threads, cache=False)
        assert not module.by_reference
        for arrays in feeds:
            for found, wanted in zip(module.run(arrays), meaning(arrays), strict=True):
                close(found, np.asarray(wanted))


def floats(*shape):
    rng = np.random.default_rng(len(shape))
    return rng.uniform(-1, 1, shape).astype(np.float32)


X = info("x", FLOAT, ["n", COLUMNS])


@pytest.mark.parametrize("same", [True, False], ids=["one size", "two sizes"])
def test_branches(same):
    other = node("Neg", "x", "r") if same else node("Concat", "x x", "r", axis=0)
    then = graph([node("Mul", "x k", "s"), node("Exp", "s", "r")], outputs="r",
                 weights={"k": np.float32(2)})  # fmt: skip
    chosen = node("If", "c", "y", then_branch=then, else_branch=graph([other], outputs="r"))
    made = model([chosen, node("Add", "y one", "z")], [info("c", BOOL), X], "z y",
                 {"one": np.float32(1)})  # fmt: skip
    check(
        made, *({"c": np.array(c), "x": floats(n, COLUMNS)} for c in (True, False) for n in (1, 3))
    )


def test_a_condition_that_is_computed():
    then = graph([node("Sub", "x top", "r")], outputs="r")
    chosen = node("If", "c", "y", then_branch=then,
                  else_branch=graph([node("Identity", "x", "r")], outputs="r"))  # fmt: skip
    nodes = [node("ReduceMax", "x", "top", keepdims=0), node("Greater", "top half", "c"), chosen]
    made = model(nodes, [X], "y", {"half": np.float32(0.5)})
    check(made, {"x": floats(2, COLUMNS)}, {"x": floats(2, COLUMNS) * np.float32(0.1)})


COUNTING = [
    node("Identity", "cond", "go"),
    node("Cast", "i", "t", to=FLOAT),
    node("Add", "h t", "h1"),
    node("Mul", "h1 x", "s"),
]


def test_loops_carry_and_collect():
    inner = body(COUNTING, [info("h", FLOAT, None)], "go h1 s")
    made = model(
        [node("Loop", "m c x", "last all", body=inner), node("Relu", "last", "y")],
        [info("m", INT64), X],
        "y all last",
        {"c": np.array(True)},
    )
    feeds = [{"m": np.array(m), "x": floats(2, COLUMNS)} for m in (-3, 0, 1, 4)]
    check(made, *feeds, oracle=by_meaning)


def test_fewer_iterations_than_none_are_none():
    """How often the body runs is known from sizes: rows less three."""
    inner = body(COUNTING, [info("h", FLOAT, None)], "go h1 s")
    nodes = [
        node("Shape", "x", "rows", end=1),
        node("Sub", "rows three", "m"),
        node("Loop", "m c x", "last all", body=inner),
    ]
    made = model(nodes, [X], "last all", {"three": np.array([3]), "c": np.array(True)})
    check(made, *({"x": floats(n, COLUMNS)} for n in (1, 3, 5)), oracle=by_meaning)


def test_values_that_change_places():
    """Fibonacci: each state becomes the other one."""
    nodes = [node("Identity", "cond", "go"), node("Add", "p q", "sum")]
    carried = [info("p", FLOAT, None), info("q", FLOAT, None)]
    made = model(
        [node("Loop", "m c x x", "a b", body=body(nodes, carried, "go q sum"))],
        [info("m", INT64), X],
        "a b",
        {"c": np.array(True)},
    )
    check(made, *({"m": np.array(m), "x": floats(1, COLUMNS)} for m in (-1, 0, 1, 2, 7)))


def test_a_body_says_when_to_stop():
    nodes = [
        node("Add", "h h", "h1"),
        node("ReduceMax", "h1", "top", keepdims=0),
        node("Less", "top hundred", "go"),
    ]
    inner = body(nodes, [info("h", FLOAT, None)], "go h1", {"hundred": np.float32(100)})
    made = model(
        [node("Loop", "m c x", "y", body=inner)], [info("m", INT64), info("c", BOOL), X], "y"
    )
    x = floats(2, COLUMNS)
    check(
        made,
        *({"m": np.array(m), "c": np.array(c), "x": x} for m in (3, 50) for c in (True, False)),
    )


def collecting(limit: str):
    """A loop that doubles until something is large, and collects."""
    nodes = [
        node("Add", "h h", "h1"),
        node("ReduceMax", "h1", "top", keepdims=0),
        node("Less", "top ten", "go"),
        node("Neg", "h1", "s"),
    ]
    inner = body(nodes, [info("h", FLOAT, None)], "go h1 s", {"ten": np.float32(10)})
    before = [node("Shape", "x", "dims"), node("ReduceProd", "dims", "size", keepdims=0)]
    after = [node("Loop", f"{limit} c x", "last all", body=inner), node("Relu", "all", "y")]
    return model([*before, *after], [info("c", BOOL), X], "last all y", {"four": np.array(4)})


@pytest.mark.parametrize("limit", ["four", "size"])
def test_a_loop_that_may_end_early_collects(limit):
    """There is room for as many rows as there may be; the first ones are the result."""
    starts = (floats(2, COLUMNS), 20 + floats(1, COLUMNS), 0 * floats(1, COLUMNS))
    feeds = [{"c": np.array(c), "x": x} for x in starts for c in (True, False)]
    check(collecting(limit), *feeds, oracle=by_meaning)


def test_a_loop_without_a_small_limit_collects():
    """There is room for a few rows at first, and twice as much whenever they are full."""
    starts = (np.full((1, COLUMNS), start, np.float32) for start in (20, 5, 4e-3, 4e-6, 1e-10))
    feeds = [{"c": np.array(c), "x": x} for x in starts for c in (True, False)]
    check(collecting(""), *feeds, oracle=by_meaning)


def flags(go: str):
    """A loop that carries a flag, which changes in every iteration; it goes on if `go` says so."""
    nodes = [node("Not", "f", "f1"), node("Add", "h one", "h1"), node("Identity", go, "go")]
    inner = body(
        nodes, [info("f", BOOL), info("h", FLOAT, None)], "go f1 h1", {"one": np.float32(1)}
    )
    inputs = [info("m", INT64), info("flag", BOOL), X]
    return model(
        [node("Loop", "m c flag x", "f y", body=inner)], inputs, "f y", {"c": np.array(True)}
    )


@pytest.mark.parametrize("go", ["f", "f1"])
def test_a_condition_may_be_a_carried_value_before_or_after_it_changes(go):
    x = floats(1, COLUMNS)
    check(flags(go), *({"m": np.array(9), "flag": np.array(f), "x": x} for f in (True, False)))


def test_a_loop_that_never_begins():
    nodes = [node("Identity", "cond", "go"), node("Add", "h h", "h1")]
    inner = body(nodes, [info("h", FLOAT, None)], "go h1")
    made = model([node("Loop", "m c x", "y", body=inner)], [info("m", INT64), X], "y",
                 {"c": np.array(False)})  # fmt: skip
    check(made, {"m": np.array(3), "x": floats(1, COLUMNS)})


def test_a_branch_in_a_loop_in_a_branch():
    odd = [node("Mod", "i two", "rest"), node("Equal", "rest zero", "even")]
    ways = {
        "then_branch": graph([node("Add", "h x", "r")], outputs="r"),
        "else_branch": graph([node("Mul", "h x", "r")], outputs="r"),
    }
    inner = body(
        [node("Identity", "cond", "go"), *odd, node("If", "even", "h1", **ways)],
        [info("h", FLOAT, None)],
        "go h1",
        {"two": np.int64(2), "zero": np.int64(0)},
    )
    looped = graph([node("Loop", "m yes x", "r", body=inner)], outputs="r",
                   weights={"yes": np.array(True)})  # fmt: skip
    chosen = node("If", "c", "y", then_branch=looped,
                  else_branch=graph([node("Neg", "x", "r")], outputs="r"))  # fmt: skip
    made = model([chosen], [info("m", INT64), info("c", BOOL), X], "y")
    x = floats(1, COLUMNS)
    check(made, *({"m": np.array(3), "c": np.array(c), "x": x} for c in (True, False)))


@pytest.mark.parametrize("backward", [0, 1])
def test_scans(backward):
    inner = graph(
        [node("Add", "s e", "s1"), node("Tanh", "s1", "o")],
        [info("s", FLOAT, None), info("e", FLOAT, None)],
        "s1 o",
    )
    scan = node("Scan", "a x", "last all", body=inner, num_scan_inputs=1,
                scan_input_directions=[backward], scan_output_directions=[backward])  # fmt: skip
    made = model([scan], [info("a", FLOAT, [COLUMNS]), X], "last all")
    check(
        made,
        *({"a": floats(COLUMNS), "x": floats(n, COLUMNS)} for n in (1, 5)),
        oracle=by_meaning if backward else by_reference,
    )


def test_nothing_is_asked_of_a_branch_that_is_not_taken():
    """Its sizes need not fit; taken, it refuses them."""
    then = graph([node("Add", "x w", "r")], outputs="r")
    other = graph([node("Neg", "x", "r")], outputs="r")
    chosen = node("If", "c", "y", then_branch=then, else_branch=other)
    inputs = [info("c", BOOL), info("x", FLOAT, ["n"]), info("w", FLOAT, ["m"])]
    made = model([chosen], inputs, "y")

    def feeds(c, n, m):
        return {"c": np.array(c), "x": floats(n), "w": floats(m)}

    check(made, feeds(c=True, n=3, m=3), feeds(c=False, n=7, m=9))
    module = tw.compile(made, threads=1, cache=False)
    with raises_code("C025", text="`m` and `n` must be equal"):
        module.run(feeds(c=True, n=3, m=4))
