"""Nodes that cannot be compiled: all of them are named at once, wherever they stand."""

from __future__ import annotations

import json
import pickle

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tilewright as tw
from tests.expect import raises_code
from tests.small import make
from tilewright.cli import main
from tilewright.errors import ModelError
from tilewright.frontend.onnx import import_model
from tilewright.frontend.onnx.registry import HANDLERS, Unknown
from tilewright.graph import interpret
from tilewright.unsupported import Operand, Unsupported

FLOAT = TensorProto.FLOAT
ACME = "com.acme"


def node(op, inputs, outputs, name="", domain="", **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), name, domain=domain, **attributes)


def graph(nodes, outputs):
    infos = [helper.make_tensor_value_info(name, FLOAT, ["m"]) for name in outputs.split()]
    return helper.make_graph(nodes, "inside", [], infos)


def model(nodes, outputs="y", functions=(), opset=20):
    made = make(nodes, [("x", ["n", 3])], [(name, ["k", 3]) for name in outputs.split()])
    made.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    versions = {"": opset, ACME: 7, "local": 1}
    del made.opset_import[:]
    made.opset_import.extend(helper.make_opsetid(d, v) for d, v in versions.items())
    made.functions.extend(functions)
    return made


def problems(made):
    """What the one error about a model names, by node."""
    with raises_code("M004") as caught:
        import_model(made)
    error = caught.value
    assert isinstance(error, ModelError)
    found = {item.node: item for item in error.nodes}
    assert len(found) == len(error.nodes)
    return found


X = Operand("x", "f32", ("n", 3))


def test_everything_is_named_at_once():
    made = model(
        [
            node("Sharpen", "x", "a", "first", ACME),
            node("Relu", "a", "b", "behind_it"),
            node("Sharpen", "b", "c1", domain=ACME),
            node("Concat", "x x", "d", "joined"),
            node("Relu", "x", "e", "styled", style="round"),
            node("Gelu", "x", "f", "typed", approximate=1),
            node("Relu", "x x", "g", "crowded"),
            node("MatMul", "x w", "h", "shaped"),
            node("Add", "x nowhere", "i", "lost"),
            node("FutureOp", "x", "j", "modern"),
            helper.make_node("Add", ["", "x"], ["k"], "half"),
            node("Sigmoid", "x", "fine"),
        ],
        "c1 fine",
    )
    made.graph.initializer.append(helper.make_tensor("w", FLOAT, [5, 1], range(5)))
    found = problems(made)
    reasons = {name: item.reason for name, item in found.items()}
    assert reasons == {
        "first": "the domain `com.acme` is not known here",
        "c1": "the domain `com.acme` is not known here",
        "joined": "the attribute `axis` is missing",
        "styled": "the attribute `style` does not exist",
        "typed": "the attribute `approximate` is of type int, not string",
        "crowded": "2 inputs, where 1 are expected",
        "shaped": reasons["shaped"],
        "lost": "it reads `nowhere`, which nothing computes before it",
        "modern": f"onnx {onnx.__version__} has no such operator",
        "half": "the input `A` is left out",
    }
    assert "5" in reasons["shaped"]
    assert found["first"] == Unsupported(
        "first", "Sharpen", ACME, 7, (X,), "the domain `com.acme` is not known here"
    )
    assert found["c1"].inputs == (Operand("b"),)  # nothing is known of what comes after `first`
    assert found["shaped"].inputs == (X, Operand("w", "f32", (5, 1)))


def test_types_that_the_model_declares_are_told_where_nothing_else_is_known():
    made = model([node("Sharpen", "x", "a", domain=ACME), node("Blur", "a", "y", domain=ACME)])
    made.graph.value_info.append(helper.make_tensor_value_info("a", FLOAT, ["n", None]))
    assert problems(made)["y"].inputs == (Operand("a", "f32", ("n", "?")),)


def test_newer_versions_are_said_to_be_newer():
    made = model([node("FutureOp", "x", "y", "modern")], opset=999)
    assert problems(made)["modern"].reason.endswith(
        f"(it knows opsets up to {onnx.defs.onnx_opset_version()})"
    )
    early = model([node("StringConcat", "x x", "y", "early")], opset=19)
    assert problems(early)["early"].reason == "this operator came with opset 20"


def test_outputs_that_nothing_computes_are_named():
    with raises_code("M004", text="nothing computes the output `z`"):
        import_model(model([node("Relu", "x", "y")], "y z"))


def test_nodes_in_branches_loops_and_functions_are_named():
    then = graph([node("Sharpen", "x", "t", "sharp", ACME), node("Relu", "t", "t2")], "t2")
    other = graph([node("Blur", "x", "e", "blurred", ACME)], "e")
    call = helper.make_function(
        "local", "Twice", ["v"], ["w"],
        [node("Sharpen", "v", "u", "in_function", ACME), node("Relu", "u", "w")],
        [helper.make_opsetid("", 18), helper.make_opsetid(ACME, 2)],
    )  # fmt: skip
    nodes = [
        node("If", "c", "p", "choice", then_branch=then, else_branch=other),
        node("Twice", "x", "q", "call", "local"),
        node("Twice", "q", "r", "call_again", "local"),
    ]
    with raises_code("M004") as caught:
        import_model(model(nodes, "p r", [call]))
    found = [(item.inside, item.node, item.opset) for item in caught.value.nodes]
    assert sorted(found) == [
        ("call", "in_function", 2),
        ("call_again", "in_function", 2),
        ("choice.else_branch", "blurred", 7),
        ("choice.then_branch", "sharp", 7),
    ]
    (first,) = [item for item in caught.value.nodes if item.inside == "call"]
    assert first.inputs == (Operand("v", "f32", ("n", 3)),)


def test_a_long_list_is_shortened_in_the_text_only():
    nodes = [node("Sharpen", "x", f"s{k}", domain=ACME) for k in range(40)]
    nodes += [node(f"Other{k}", "x", f"o{k}", domain=ACME) for k in range(20)]
    with raises_code("M004", text="60 nodes are in the way") as caught:
        import_model(model(nodes, "s0"))
    assert len(caught.value.nodes) == 60
    text = str(caught.value)
    assert "com.acme::Sharpen (opset 7), 40 nodes: the domain" in text
    assert "and 32 more\n" in text
    assert "and 5 nodes more: com.acme::Other15, com.acme::Other16" in text
    assert len(text.splitlines()) < 60


def test_what_follows_both_ways_of_a_branch_is_named():
    """Branches of different ranks: the rest of the model goes into both of them."""
    flat = graph([node("ReduceSum", "x", "t", keepdims=0)], "t")
    same = graph([node("Identity", "x", "e")], "e")
    made = model(
        [
            node("If", "c", "p", then_branch=flat, else_branch=same),
            node("Sharpen", "p", "y", "after", ACME),
        ]
    )
    assert set(problems(made)) == {"after"}


def test_a_branch_that_cannot_go_on_is_no_obstacle():
    """Not even by a node whose result nobody reads: a run that takes this branch says so."""
    flat = graph([node("ReduceSum", "x", "t", keepdims=0)], "t")
    same = graph([node("Identity", "x", "e")], "e")
    nodes = [
        node("If", "c", "p", "choice", then_branch=flat, else_branch=same),
        node("MatMul", "p w", "unread", "needs_a_matrix"),
        node("Relu", "x", "y"),
    ]
    made = model(nodes)
    made.graph.initializer.append(helper.make_tensor("w", FLOAT, [3, 2], range(6)))
    imported = import_model(made)
    assert not imported.by_reference
    x = np.float32([[-1, 2, -3]])
    (y,) = interpret(imported.graph, {"x": x, "c": np.array(False)})
    np.testing.assert_array_equal(y, [[0, 2, 0]])


def test_strings_put_only_what_reads_them_on_the_reference(monkeypatch):
    """Which knows no operators of other vendors: these have to have a kernel."""
    nodes = [
        node("Cast", "x", "text", to=TensorProto.STRING),
        node("Cast", "text", "z", to=FLOAT),
        node("Gelu", "z", "y", "foreign", "com.microsoft"),
    ]
    made = model(nodes)
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    assert [item.node for item in import_model(made).by_reference] == ["text", "z"]
    monkeypatch.delitem(HANDLERS, ("com.microsoft", "Gelu"))
    with raises_code("M004", text="has no such operator that is known here"):
        tw.compile(made, cache=False)


@pytest.fixture
def unique_by_reference(monkeypatch):
    """An operator of ONNX without a kernel."""
    monkeypatch.delitem(HANDLERS, ("", "Unique"))


def by_reference():
    """Three nodes without kernels: in the model, in a function, and in a branch."""
    call = helper.make_function(
        "local", "Distinct", ["v"], ["w"],
        [node("Unique", "v", "w", "in_function")], [helper.make_opsetid("", 20)],
    )  # fmt: skip
    then = graph([node("Unique", "a", "t")], "t")
    other = graph([node("Identity", "a", "e")], "e")
    nodes = [
        node("Unique", "x", "a", "distinct"),
        node("Distinct", "x", "b", "call", "local"),
        node("If", "c", "d", "choice", then_branch=then, else_branch=other),
    ]
    made = model(nodes, "", [call])
    for name in ("a", "b", "d"):
        made.graph.output.append(helper.make_tensor_value_info(name, FLOAT, ["k"]))
    return made


PLACES = [("", "distinct"), ("call", "in_function"), ("choice.then_branch", "t")]


@pytest.mark.usefixtures("unique_by_reference")
def test_the_warning_has_all_nodes_with_shapes(tmp_path):
    for _ in range(2):  # compiled, then from the cache
        with pytest.warns(tw.TilewrightWarning) as caught:
            module = tw.compile(by_reference(), cache=tmp_path, threads=1)
        (warning,) = (item.message for item in caught)
        assert [(item.inside, item.node) for item in warning.nodes] == PLACES
        assert warning.nodes == module.by_reference
        assert warning.nodes[0].inputs == (X,)
        assert str(warning).splitlines() == [
            "3 nodes run on the ONNX reference implementation, which is slow:",
            "  Unique (opset 20), 3 nodes: it has no kernel",
            "    `distinct` of x: f32[n, 3]",
            "    `in_function` in `call` of v: f32[n, 3]",
            f"    `t` in `choice.then_branch` of {warning.nodes[2].inputs[0]}",
        ]
        again = pickle.loads(pickle.dumps(warning))
        assert again.nodes == warning.nodes
    x = np.array([[1, 2, 1], [3, 3, 2]], np.float32)
    for result in module.run({"x": x, "c": np.array(True)}):
        np.testing.assert_array_equal(result, [1, 2, 3])


def test_a_node_that_declines_speaks_for_what_is_inside_of_it():
    """A loop whose carried value changes its rank runs by reference with its whole body."""
    body = helper.make_graph(
        [
            node("Identity", "go", "go_on"),
            node("Unique", "v", "u", "inner"),
            node("Unsqueeze", "u axes", "w"),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("w", FLOAT, None),
        ],
        [helper.make_tensor("axes", TensorProto.INT64, [2], [0, 1])],
    )
    made = model([node("Loop", "count c x", "y", "growing", body=body)])
    made.graph.initializer.append(helper.make_tensor("count", TensorProto.INT64, [], [2]))
    try:
        nodes = import_model(made).by_reference
    except Unknown as whole:
        nodes = whole.nodes
    assert [item.node for item in nodes] == ["growing"]


@pytest.mark.usefixtures("unique_by_reference")
@pytest.mark.filterwarnings("default")
def test_commands_show_all_nodes(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    path, out = tmp_path / "m.onnx", str(tmp_path / "m.tw")
    onnx.save(by_reference(), path)
    assert main(["compile", str(path), "-o", out, "--json", "--threads", "1"]) == 0
    listed = json.loads(capsys.readouterr().out)["by_reference"]
    assert [(item["inside"], item["node"]) for item in listed] == PLACES
    assert listed[0]["inputs"] == [{"name": "x", "dtype": "f32", "shape": ["n", 3]}]
    assert main(["show", out, "--memory"]) == 0
    text = capsys.readouterr().out
    assert "by reference: `distinct` of x: f32[n, 3], Unique (opset 20): it has no kernel" in text
    assert text.count("  by reference: ") == 3
    assert tuple(map(Unsupported.from_dict, listed)) == tw.load(out).by_reference


def test_commands_refuse_with_all_nodes(tmp_path, capsys):
    path = tmp_path / "bad.onnx"
    nodes = [node("Sharpen", "x", "a", domain=ACME), node("Blur", "a", "y", domain=ACME)]
    onnx.save(model(nodes), path)
    assert main(["compile", str(path), "--no-cache"]) == 1
    text = capsys.readouterr().err
    assert "com.acme::Sharpen (opset 7)" in text
    assert "com.acme::Blur (opset 7)" in text
