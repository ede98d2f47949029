"""Branches, loops, scans and sequences: what becomes of them, and what they mean."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tests.expect import raises_code
from tests.onnx.small_models import close
from tilewright.frontend.onnx import import_model
from tilewright.frontend.onnx.reference.whole import WholeModel
from tilewright.frontend.onnx.registry import HANDLERS, Unknown
from tilewright.graph import Graph, interpret, verify_graph

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def info(name, kind=FLOAT, shape=()):
    return helper.make_tensor_value_info(name, kind, shape)


def named(*names):
    return [onnx.ValueInfoProto(name=name) for name in names]


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def graph(nodes, inputs=(), outputs="", weights=None):
    constants = [numpy_helper.from_array(np.asarray(a), n) for n, a in (weights or {}).items()]
    return helper.make_graph(nodes, "inner", list(inputs), named(*outputs.split()), constants)


def model(nodes, inputs, outputs, weights=None):
    made = graph(nodes, inputs, outputs, weights)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 21)])


def imported(made) -> Graph:
    found = import_model(made)
    assert not found.by_reference, found.by_reference
    return verify_graph(found.graph)


def check(made, feeds):
    """The meaning of the graph is as the reference says; gives the graph."""
    found = imported(made)
    for a, b in zip(
        interpret(found, feeds), ReferenceEvaluator(made).run(None, feeds), strict=True
    ):
        close(np.asarray(a), np.asarray(b))
    return found


def choice(then, otherwise, inputs=(), weights=None):
    branches = {"then_branch": then, "else_branch": otherwise}
    nodes = [node("If", "c", "y", **branches)]
    return model(nodes, [info("c", BOOL), info("x", FLOAT, ["n"]), *inputs], "y", weights)


def scaled(by):
    return graph([node("Mul", "x k", "r")], outputs="r", weights={"k": np.float32(by)})


def ops(found):
    return [n.op.name for n in found.nodes]


@pytest.mark.parametrize("c", [False, True])
def test_branches_capture_values_and_share_them(c):
    made = choice(
        scaled(2), graph([node("Add", "x w", "r")], outputs="r"), weights={"w": np.float32(5)}
    )
    found = check(made, {"c": np.array(c), "x": np.arange(4, dtype=np.float32)})
    assert ops(found) == ["if"]
    (branch,) = found.nodes
    assert [len(g.inputs) for g in (branch.op.then, branch.op.otherwise)] == [1, 1]
    assert [v.name for v in branch.inputs] == ["c", "x"]


def test_a_known_condition_leaves_one_branch():
    nodes = [node("If", "c", "y", then_branch=scaled(2), else_branch=scaled(3))]
    made = model(nodes, [info("x", FLOAT, ["n"])], "y", {"c": np.array(True)})
    assert ops(check(made, {"x": np.ones(3, np.float32)})) == ["map"]


@pytest.mark.parametrize("c", [False, True])
def test_branches_of_different_sizes(c):
    two = graph([node("Concat", "x x", "r", axis=0)], outputs="r")
    made = choice(two, scaled(3))
    found = check(made, {"c": np.array(c), "x": np.arange(4, dtype=np.float32)})
    assert found.outputs[0].shape != found.inputs[1].shape


@pytest.mark.parametrize("c", [False, True])
def test_what_follows_branches_of_different_ranks_goes_into_both(c):
    wide = graph([node("Unsqueeze", "x a", "r")], outputs="r", weights={"a": np.array([0])})
    nodes = [
        node("If", "c", "y", then_branch=wide, else_branch=scaled(1)),
        node("ReduceSum", "y", "z", keepdims=0),
    ]
    made = model(nodes, [info("c", BOOL), info("x", FLOAT, ["n"])], "z")
    found = check(made, {"c": np.array(c), "x": np.arange(4, dtype=np.float32)})
    assert ops(found) == ["if"]


def test_ranks_that_differ_to_the_end_leave_the_model_to_the_reference():
    wide = graph([node("Unsqueeze", "x a", "r")], outputs="r", weights={"a": np.array([0])})
    made = choice(wide, scaled(1))
    with pytest.raises(Unknown, match="rank"):
        import_model(made)


def test_a_branch_in_which_nothing_can_follow_fails_when_it_is_taken():
    wide = graph([node("Unsqueeze", "x a", "r")], outputs="r", weights={"a": np.array([0])})
    weights = {"k": np.ones((1, 1, 3), np.float32)}
    nodes = [
        node("If", "c", "y", then_branch=wide, else_branch=scaled(1)),
        node("Unsqueeze", "y a", "u"),
        node("Conv", "u k", "z"),
    ]
    made = model(
        nodes, [info("c", BOOL), info("x", FLOAT, [1, "n"])], "z", weights | {"a": np.array([0])}
    )
    found = imported(made)
    x = np.ones((1, 5), np.float32)
    (y,) = interpret(found, {"c": np.array(False), "x": x})
    assert y.shape == (1, 1, 3)
    with raises_code("C302"):
        interpret(found, {"c": np.array(True), "x": x})


def looped(body_nodes, outputs, weights=None, *, trip=True, condition=True, carried="x"):
    """A loop whose body reads `i`, `cond` and the carried `h`."""
    inputs = [info("i", INT64), info("cond", BOOL), info("h", FLOAT, None)]
    body = graph(body_nodes, inputs, outputs, weights)
    results = " ".join(f"y{k}" for k in range(len(outputs.split()) - 1))
    names = f"{'m' if trip else ''} {'c' if condition else ''} {carried}"
    made = helper.make_node("Loop", names.split(" "), results.split(), body=body)
    return [made], results


COUNTING = [node("Identity", "cond", "go"), node("Add", "h w", "h1"), node("Mul", "h1 h1", "s")]


def test_loops_carry_and_collect():
    nodes, results = looped(COUNTING, "go h1 s", condition=False)
    inputs = [info("m", INT64), info("x", FLOAT, [3])]
    made = model(nodes, inputs, results, {"w": np.float32(2)})
    found = imported(made)
    x = np.arange(3, dtype=np.float32)
    for m in (0, 1, 5):
        last, all_of_them = interpret(found, {"m": np.int64(m), "x": x})
        np.testing.assert_array_equal(last, x + 2 * m)
        wanted = [(x + 2 * (k + 1)) ** 2 for k in range(m)]
        np.testing.assert_array_equal(all_of_them, np.array(wanted).reshape(m, 3))
    assert ops(found) == ["map", "loop"], "a negative number of iterations is none"
    assert not found.nodes[1].op.tested
    assert found.nodes[1].op.carried == 1


@pytest.mark.parametrize(("count", "kind"), [(4, "map"), (400, "loop")])
def test_short_loops_become_copies_of_their_body(count, kind):
    nodes, results = looped(COUNTING, "go h1 s", condition=False)
    weights = {"w": np.float32(1), "m": np.int64(count)}
    found = imported(model(nodes, [info("x", FLOAT, [2])], results, weights))
    assert ops(found)[0] == kind
    last, every = interpret(found, {"x": np.zeros(2, np.float32)})
    assert last[0] == count
    assert every.shape == (count, 2)


def test_a_loop_ends_when_its_body_says_so():
    body = [node("Add", "h h", "h1"), node("ReduceMax", "h1", "top", keepdims=0)]
    body += [node("Less", "top w", "go")]
    nodes, results = looped(body, "go h1", trip=False)
    made = model(nodes, [info("c", BOOL), info("x", FLOAT, [2])], results, {"w": np.float32(100)})
    found = imported(made)
    assert found.nodes[-1].op.tested
    x = np.array([1, 3], np.float32)
    np.testing.assert_array_equal(interpret(found, {"c": np.array(True), "x": x})[0], x * 64)
    np.testing.assert_array_equal(interpret(found, {"c": np.array(False), "x": x})[0], x)


def test_carried_values_may_grow():
    body = [node("Identity", "cond", "go"), node("Concat", "h x", "h1", axis=0)]
    nodes, results = looped(body, "go h1", condition=False)
    found = imported(model(nodes, [info("m", INT64), info("x", FLOAT, [2])], results))
    x = np.arange(2, dtype=np.float32)
    (y,) = interpret(found, {"m": np.int64(3), "x": x})
    np.testing.assert_array_equal(y, np.tile(x, 4))


def test_an_element_of_a_scan_is_a_movement():
    """Its place is the number of the iteration, which is known inside: no data is looked at."""
    inputs = [info("s", FLOAT, None), info("e", FLOAT, None)]
    body = graph([node("Add", "s e", "s1")], inputs, "s1")
    made = node("Scan", "a x", "last", body=body, num_scan_inputs=1)
    found = imported(model([made], [info("a", FLOAT, [2]), info("x", FLOAT, ["n", 2])], "last"))
    assert ops(found.nodes[-1].op.body) == ["remap", "map"]


def test_loops_inside_of_loops_capture_through_both():
    inner_inputs = [info("j", INT64), info("cj", BOOL), info("g", FLOAT, None)]
    inner = graph([node("Identity", "cj", "gj"), node("Add", "g x", "g1")], inner_inputs, "gj g1")
    body = [
        node("Identity", "cond", "go"),
        helper.make_node("Loop", ["m", "", "h"], ["h1"], body=inner),
    ]
    nodes, results = looped(body, "go h1", condition=False)
    found = imported(model(nodes, [info("m", INT64), info("x", FLOAT, [2])], results))
    x = np.array([1, 2], np.float32)
    (y,) = interpret(found, {"m": np.int64(3), "x": x})
    np.testing.assert_array_equal(y, x * 10)


@pytest.mark.parametrize("backward", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scans_walk_along_an_axis_in_both_directions(axis, backward):
    inputs = [info("s", FLOAT, None), info("e", FLOAT, None)]
    body = graph([node("Add", "s e", "s1"), node("Mul", "s1 s1", "o")], inputs, "s1 o")
    made = node(
        "Scan", "a x", "last all", body=body, num_scan_inputs=1, scan_input_axes=[axis],
        scan_input_directions=[backward], scan_output_axes=[axis],
        scan_output_directions=[backward],
    )  # fmt: skip
    found = imported(model([made], [info("a", FLOAT, [4]), info("x", FLOAT, [4, 4])], "last all"))
    rng = np.random.default_rng(0)
    a, x = rng.standard_normal(4).astype(np.float32), rng.standard_normal((4, 4)).astype(np.float32)
    last, every = interpret(found, {"a": a, "x": x})
    rows = np.moveaxis(x, axis, 0)[:: -1 if backward else 1]
    sums = a + np.cumsum(rows, axis=0)
    np.testing.assert_allclose(last, sums[-1], rtol=1e-5)
    wanted = np.moveaxis((sums**2)[:: -1 if backward else 1], 0, axis)
    np.testing.assert_allclose(every, wanted, rtol=1e-4)


def test_scans_over_symbolic_lengths():
    inputs = [info("s", FLOAT, None), info("e", FLOAT, None)]
    body = graph([node("Add", "s e", "s1"), node("Identity", "s1", "o")], inputs, "s1 o")
    made = node("Scan", "a x", "last all", body=body, num_scan_inputs=1)
    found = imported(model([made], [info("a", FLOAT, [2]), info("x", FLOAT, ["n", 2])], "last all"))
    assert str(found.outputs[1].shape[0]) == str(found.inputs[1].shape[0])
    for n in (1, 40):
        x = np.ones((n, 2), np.float32)
        last, every = interpret(found, {"a": np.zeros(2, np.float32), "x": x})
        assert last[0] == n
        np.testing.assert_array_equal(every, np.cumsum(x, axis=0))


def test_old_scans_have_a_batch():
    inputs = [info("s", FLOAT, None), info("e", FLOAT, None)]
    body = graph([node("Add", "s e", "s1"), node("Identity", "s1", "o")], inputs, "s1 o")
    made = helper.make_node("Scan", ["", "a", "x"], ["last", "all"], body=body, num_scan_inputs=1)
    whole = graph([made], [info("a", FLOAT, [2, 3]), info("x", FLOAT, [2, 5, 3])], "last all")
    old = helper.make_model(whole, opset_imports=[helper.make_opsetid("", 8)])
    x = np.random.default_rng(1).standard_normal((2, 5, 3)).astype(np.float32)
    last, every = interpret(imported(old), {"a": np.zeros((2, 3), np.float32), "x": x})
    np.testing.assert_allclose(every, np.cumsum(x, axis=1), rtol=1e-5)
    np.testing.assert_allclose(last, x.sum(axis=1), rtol=1e-5)


def test_sequences_are_gone_after_the_import():
    nodes = [
        node("SplitToSequence", "x", "parts", axis=0, keepdims=0),
        node("SequenceLength", "parts", "count"),
        node("SequenceAt", "parts one", "second"),
        node("SequenceInsert", "parts second", "more"),
        node("SequenceErase", "more one", "fewer"),
        node("ConcatFromSequence", "fewer", "y", axis=0, new_axis=1),
    ]
    made = model(nodes, [info("x", FLOAT, [3, 2])], "y count", {"one": np.int64(1)})
    found = check(made, {"x": np.arange(6, dtype=np.float32).reshape(3, 2)})
    assert set(ops(found)) <= {"remap", "reshape", "concat"}


def test_a_body_is_mapped_over_a_sequence():
    body = graph([node("Mul", "e k", "r")], [info("e", FLOAT, None)], "r", {"k": np.float32(3)})
    nodes = [
        node("SplitToSequence", "x sizes", "parts", axis=0),
        node("SequenceMap", "parts", "mapped", body=body),
        node("ConcatFromSequence", "mapped", "y", axis=0),
    ]
    made = model(nodes, [info("x", FLOAT, [5])], "y", {"sizes": np.array([2, 3])})
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(interpret(imported(made), {"x": x})[0], x * 3)


def test_optionals_are_what_they_hold():
    nodes = [node("Optional", "x", "o"), node("OptionalGetElement", "o", "y")]
    nodes += [node("OptionalHasElement", "o", "has")]
    found = imported(model(nodes, [info("x", FLOAT, [2])], "y has"))
    y, has = interpret(found, {"x": np.ones(2, np.float32)})
    assert has
    assert y.shape == (2,)


def test_models_over_sequences_run_by_reference():
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, [2]))
    inputs = [helper.make_value_info("s", kind)]
    made = model([node("ConcatFromSequence", "s", "y", axis=0)], inputs, "y")
    with pytest.raises(Unknown, match="sequence"):
        import_model(made)
    whole = WholeModel(made, "sequences")
    assert whole.inputs == {"s": "sequence of float[2]"}
    (y,) = whole.run({"s": [np.ones(2, np.float32), np.zeros(2, np.float32)]})
    np.testing.assert_array_equal(y, [1, 1, 0, 0])
    with raises_code("C301"):
        whole.run({})


def growing(count):
    """A loop that appends to a sequence, and collects the lengths that it had."""
    body = graph(
        [
            node("SequenceLength", "s", "length"),
            node("SequenceInsert", "s x", "s1"),
            node("Identity", "go", "goes"),
        ],
        [info("i", INT64, []), info("go", BOOL, []), onnx.ValueInfoProto(name="s")],
        "goes s1 length",
    )
    nodes = [
        node("SequenceEmpty", "", "empty"),
        helper.make_node("Loop", ["count", "", "empty"], ["last", "lengths"], body=body),
        node("ConcatFromSequence", "last", "y", axis=0),
    ]
    held = {} if count is None else {"count": np.int64(count)}
    inputs = [info("x", FLOAT, [2])] + ([info("count", INT64, [])] if count is None else [])
    return model(nodes, inputs, "y lengths", held)


def test_a_loop_may_carry_sequences_if_its_length_is_known():
    x = np.array([1, 2], np.float32)
    y, lengths = interpret(imported(growing(3)), {"x": x})
    np.testing.assert_array_equal(y, np.tile(x, 3))
    np.testing.assert_array_equal(lengths, [0, 1, 2])
    for count, reason in [(None, "depends on data"), (0, "collects nothing"), (999, "a long loop")]:
        with pytest.raises(Unknown, match=reason):
            import_model(growing(count))


def test_captured_values_reach_nodes_that_run_by_reference(monkeypatch):
    """A branch that cannot be imported at all, over values of the outside."""
    monkeypatch.delitem(HANDLERS, ("", "Unique"))
    body = graph([node("Unique", "x", "r")], outputs="r")
    made = choice(body, scaled(2))
    x = np.array([3, 1, 3, 2], np.float32)
    found = import_model(made)
    for c in (True, False):
        (y,) = interpret(found.graph, {"c": np.array(c), "x": x})
        np.testing.assert_array_equal(y, np.unique(x) if c else x * 2)
