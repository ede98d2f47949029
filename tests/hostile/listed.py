"""Models whose lists ask for more than they hold: branches that meet, sets, pairs, sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["LISTED"]

ML = "ai.onnx.ml"


def _model(nodes: list[onnx.NodeProto], kind: int, shape: list[Any]) -> onnx.ModelProto:
    """A model of an input x and the results of its last node."""
    x = helper.make_tensor_value_info("x", kind, shape)
    results = [onnx.ValueInfoProto(name=name) for name in nodes[-1].output]
    graph = helper.make_graph(nodes, "listed", [x], results)
    sets = [helper.make_opsetid("", 20), helper.make_opsetid(ML, 5)]
    return helper.make_model(graph, opset_imports=sets, ir_version=9)


def branches_that_meet() -> onnx.ModelProto:
    """Sixty tests, both branches of each lead to the next: 2⁶⁰ ways to one leaf."""
    count = 60
    following = [*range(1, count + 1), 0]
    node = helper.make_node(
        "TreeEnsembleClassifier", ["x"], ["y", "z"], domain=ML,
        nodes_treeids=[0] * (count + 1), nodes_nodeids=list(range(count + 1)),
        nodes_featureids=[0] * (count + 1), nodes_values=[0.5] * (count + 1),
        nodes_modes=["BRANCH_LEQ"] * count + ["LEAF"],
        nodes_truenodeids=following, nodes_falsenodeids=following,
        class_treeids=[0], class_nodeids=[count], class_ids=[0], class_weights=[1.0],
        classlabels_int64s=[0, 1, 2],
    )  # fmt: skip
    return _model([node], TensorProto.FLOAT, ["n", 3])


def sets_of_members() -> onnx.ModelProto:
    """Each of twenty thousand tests is one for two members, and becomes two tests."""
    count = 20_000
    node = helper.make_node(
        "TreeEnsemble", ["x"], ["y"], domain=ML, n_targets=1, tree_roots=[0],
        nodes_featureids=[0] * count, nodes_trueleafs=[1] * count, nodes_truenodeids=[0] * count,
        nodes_modes=numpy_helper.from_array(np.full(count, 6, np.uint8)),
        nodes_splits=numpy_helper.from_array(np.zeros(count, np.float32)),
        nodes_falsenodeids=[*range(1, count), 0], nodes_falseleafs=[0] * (count - 1) + [1],
        membership_values=numpy_helper.from_array(np.array([1, 2, np.nan] * count, np.float32)),
        leaf_targetids=[0], leaf_weights=numpy_helper.from_array(np.ones(1, np.float32)),
    )  # fmt: skip
    return _model([node], TensorProto.FLOAT, ["n", 3])


def _counted(counts: list[int], pool: int, longest: int) -> onnx.ModelProto:
    node = helper.make_node(
        "TfIdfVectorizer", ["x"], ["y"], min_gram_length=1, max_gram_length=longest,
        max_skip_count=0, mode="TF", ngram_counts=counts, ngram_indexes=[0],
        pool_int64s=[1] * pool,
    )  # fmt: skip
    return _model([node], TensorProto.INT64, ["n"])


def sequences_that_overlap() -> onnx.ModelProto:
    """Three thousand lengths, the sequences of each of which are said to be the whole list."""
    return _counted([0, 100_000] * 3000, 100_000, 1)


def one_long_sequence() -> onnx.ModelProto:
    """All of its beginnings have n² elements."""
    return _counted([0] * 30_000, 30_000, 30_000)


def pairs_of_classes() -> onnx.ModelProto:
    """Four million pairs, of 2,800 classes with one vector, and two constants for them."""
    classes = 2800
    node = helper.make_node(
        "SVMClassifier", ["x"], ["y", "z"], domain=ML, classlabels_ints=list(range(classes)),
        vectors_per_class=[1] + [0] * (classes - 1), coefficients=[1.0] * classes,
        support_vectors=[1.0, 2.0], rho=[1.0, 2.0],
    )  # fmt: skip
    return _model([node], TensorProto.FLOAT, ["n", 2])


def sequence_that_grows() -> onnx.ModelProto:
    """Twenty thousand nodes, each of which adds one element to a sequence."""
    count = 20_000
    nodes = [helper.make_node("SequenceConstruct", ["x"], ["s0"])]
    nodes += [
        helper.make_node("SequenceInsert", [f"s{k}", "x"], [f"s{k + 1}"]) for k in range(count)
    ]
    nodes.append(helper.make_node("SequenceLength", [f"s{count}"], ["y"]))
    return _model(nodes, TensorProto.FLOAT, [2])


def sequence_in_many_graphs() -> onnx.ModelProto:
    """Two thousand branches, each of which mentions a sequence of forty thousand elements."""
    nodes = [helper.make_node("SequenceConstruct", ["x"] * 40_000, ["s"])]
    nodes.append(helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0))
    nodes.append(helper.make_node("Cast", ["sum"], ["c"], to=TensorProto.BOOL))
    for k in range(1000):
        ways = {}
        for way in ("then_branch", "else_branch"):
            inner = helper.make_node("SequenceLength", ["s"], [f"{way}{k}"])
            result = helper.make_tensor_value_info(f"{way}{k}", TensorProto.INT64, [])
            ways[way] = helper.make_graph([inner], way, [], [result])
        nodes.append(helper.make_node("If", ["c"], [f"y{k}"], **ways))
    return _model(nodes, TensorProto.FLOAT, [2])


LISTED: dict[str, Callable[[], onnx.ModelProto]] = {
    "branches that meet": branches_that_meet,
    "sets of members": sets_of_members,
    "sequences that overlap": sequences_that_overlap,
    "one long sequence": one_long_sequence,
    "pairs of classes": pairs_of_classes,
    "sequence that grows": sequence_that_grows,
    "sequence in many graphs": sequence_in_many_graphs,
}
