"""Sequences, optionals and tensors of any rank: models that are compiled for what those hold."""

from __future__ import annotations

import threading

import numpy as np
from onnx import TensorProto, helper

import tilewright as tw
from tests.expect import raises_code
from tests.settled import X, axes, compilations
from tests.small import make, sequence_model


def test_sequences_are_settled_by_their_lengths_and_ranks(monkeypatch):
    seen = compilations(monkeypatch)
    module = tw.compile(sequence_model(TensorProto.FLOAT), cache=False)
    assert module.settled == ("parts",)
    for sizes in [(2, 1), (5, 3), (1,), (1, 2, 3)]:
        parts = [np.full(size, size, np.float32) for size in sizes]
        np.testing.assert_array_equal(module.run({"parts": parts})[0], np.concatenate(parts))
    assert len(seen) == 4, "one for each length, and places of single elements"
    assert module.by_reference == ()
    for wrong, code in [(X, "C002"), ([None], "C002"), ([X.astype(np.float64)[0, 0]], "C003")]:
        with raises_code(code):
            module.run({"parts": wrong})


def test_sequences_can_be_outputs():
    node = helper.make_node("SplitToSequence", ["x", "sizes"], ["parts"], axis=0)
    model = make([node], [("x", [6])], [])
    model.graph.input.append(helper.make_tensor_value_info("sizes", TensorProto.INT64, ["k"]))
    parts = helper.make_tensor_sequence_value_info("parts", TensorProto.FLOAT, None)
    model.graph.output.append(parts)
    module = tw.compile(model, cache=False)
    x = np.arange(6, dtype=np.float32)
    for sizes in [(2, 4), (1, 2, 3), (6,)]:
        (found,) = module.run({"x": x, "sizes": axes(*sizes)})
        assert isinstance(found, list)
        assert [len(part) for part in found] == list(sizes)
        np.testing.assert_array_equal(np.concatenate(found), x)
    assert module.by_reference == ()


def test_values_given_ahead_leave_sequences_to_be_put_together(tmp_path):
    node = helper.make_node("SplitToSequence", ["x", "sizes"], ["parts"], axis=0)
    model = make([node], [("x", [6])], [])
    model.graph.input.append(helper.make_tensor_value_info("sizes", TensorProto.INT64, ["k"]))
    parts = helper.make_tensor_sequence_value_info("parts", TensorProto.FLOAT, None)
    model.graph.output.append(parts)
    x = np.arange(6, dtype=np.float32)
    for _ in range(2):  # compiled, then from the cache
        module = tw.compile(model, cache=tmp_path, settled={"sizes": [2, 4]})
        assert [info.name for info in module.inputs] == ["x"]
        (found,) = module.run({"x": x})
        assert [part.tolist() for part in found] == [[0, 1], [2, 3, 4, 5]]


def test_outputs_alone_need_nothing_to_be_known():
    model = make([helper.make_node("SplitToSequence", ["x"], ["parts"])], [("x", [2, 3])], [])
    parts = helper.make_tensor_sequence_value_info("parts", TensorProto.FLOAT, None)
    model.graph.output.append(parts)
    module = tw.compile(model, cache=False)
    assert module.settled == ()
    assert module.kernels > 0, "it is compiled at once"
    (found,) = module.run({"x": X[0, :2, :3].copy()})
    assert [part.tolist() for part in found] == [X[0, :1, :3].tolist(), X[0, 1:2, :3].tolist()]


def test_optionals_are_settled_by_their_presence(monkeypatch):
    seen = compilations(monkeypatch)
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    nodes = [helper.make_node("OptionalHasElement", ["o"], ["has"])]
    model = make(nodes, [], [])
    model.graph.input.append(helper.make_value_info("o", kind))
    model.graph.output.append(helper.make_tensor_value_info("has", TensorProto.BOOL, []))
    module = tw.compile(model, cache=False)
    found = [module.run({"o": value})[0].item() for value in (None, X, X[0], None)]
    assert found == [False, True, True, False]
    assert len(seen) == 3
    assert module.by_reference == ()


def test_tensors_of_any_rank_are_settled_by_their_rank(monkeypatch):
    seen = compilations(monkeypatch)
    model = make([helper.make_node("Relu", ["x"], ["y"])], [], [])
    for where, name in ((model.graph.input, "x"), (model.graph.output, "y")):
        where.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    module = tw.compile(model, cache=False)
    for x in (X, X[0], X[:1], X[0, 0]):
        np.testing.assert_array_equal(module.run({"x": x - 9})[0], np.maximum(x - 9, 0))
    module.run({"x": X[:, :2]})
    assert len(seen) == 4
    assert module.by_reference == ()


def test_sizes_of_one_are_broadcast_where_shapes_are_not_declared():
    model = make([helper.make_node("Add", ["a", "b"], ["y"])], [], [])
    for where, names in ((model.graph.input, "ab"), (model.graph.output, "y")):
        where.extend(helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in names)
    module = tw.compile(model, cache=False)
    for a, b in [(X, X[:1]), (X, X), (X[:, :1], X[:1]), (X, X[0, 0]), (X[0, 0], X), (X[:0], X[:1])]:
        np.testing.assert_array_equal(module.run({"a": a, "b": b})[0], a + b)
    assert module.by_reference == ()


def test_sizes_are_settled_where_ranks_are_not_enough(monkeypatch):
    """How many pieces a tensor has is a size of it, here of a tensor of any shape."""
    seen = compilations(monkeypatch)
    model = make([helper.make_node("SplitToSequence", ["x"], ["parts"])], [], [])
    model.graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, None))
    parts = helper.make_tensor_sequence_value_info("parts", TensorProto.FLOAT, None)
    model.graph.output.append(parts)
    module = tw.compile(model, cache=False)
    for count in (2, 3, 2):
        (found,) = module.run({"x": X[0, :count]})
        assert [part.tolist() for part in found] == [[row.tolist()] for row in X[0, :count]]
    assert module.by_reference == ()
    assert len(seen) == 3, "ranks, then sizes, then other sizes"


def test_threads_with_other_sizes_do_not_share_what_is_made_for_some():
    """All begin with a key without sizes; whoever is first finds that these count."""
    nodes = [
        helper.make_node("SplitToSequence", ["x"], ["parts"], axis=0),
        helper.make_node("SequenceErase", ["parts"], ["fewer"]),
        helper.make_node("ConcatFromSequence", ["fewer"], ["y"], axis=0),
    ]
    model = make(nodes, [], [])
    model.graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, None))
    model.graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    module = tw.compile(model, cache=False, threads=1)
    sizes = range(2, 8)
    barrier = threading.Barrier(len(sizes))
    found: dict[int, object] = {}

    def work(size: int) -> None:
        x = np.arange(size, dtype=np.float32)
        barrier.wait()
        try:
            found[size] = module.run({"x": x})[0].tolist()
        except Exception as problem:  # noqa: BLE001  (the comparison shows it)
            found[size] = problem

    threads = [threading.Thread(target=work, args=(size,)) for size in sizes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {size: list(range(size - 1)) for size in sizes}
    assert module.by_reference == ()
    assert len(module._versions) == len(sizes), "each under its own key, and under no other"
