"""Values without a form before a run: what computes and reads them falls back, and nothing else."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, parser
from onnx.reference import ReferenceEvaluator

import tilewright as tw
from tilewright.frontend.onnx import import_model
from tilewright.graph.ops.host import Host

HEAD = """
    <ir_version: 10, opset_import: ["" : 21, "local" : 1]>
    g (float[n, 4] x, float[k, 1] drawn) => (RESULTS) {
        yes = Constant <value = bool {1}> ()
        zero = Constant <value_ints = [0]> ()
        flat = Constant <value_ints = [-1]> ()
        two = Constant <value_ints = [2, -1]> ()
        most = ReduceMax <keepdims = 0> (drawn)
        turns = Cast <to = 7> (most)
        a = Relu(x)
        NODES
    }"""

DEEPER = """
    d = Loop(turns, yes, a) <body = b (int64 i, bool c, float[] s) => (bool go, float[] t) {
        go = Identity(c)
        t = Unsqueeze(s, zero) }>"""

TEXTS = """
    whole = Cast <to = 7> (a)
    text = Cast <to = 8> (whole)
    number = Cast <to = 1> (text)
    """


MODELS = {
    "a tensor of any rank": ("float[m] y", f"{DEEPER} e = Exp(d) r = Reshape(e, flat) y = Neg(r)"),
    "its shape": ("int64[r] y", f"{DEEPER} z = Shape(d) y = Neg(z)"),
    "strings": ("float[n, 4] y", f"{TEXTS} y = Neg(number)"),
    "two readers": (
        "float[m] y, int64 z",
        f"{DEEPER} r = Reshape(d, flat) y = Neg(r) z = Size(d)",
    ),
    "a captured value": (
        "float[m] y",
        f"""{DEEPER} late = Greater(most, drawn_least) y = If(late) <
            then_branch = t () => (float[m] u) {{ u = Reshape(d, flat) }},
            else_branch = e () => (float[m] v) {{ v = Reshape(a, flat) }}>""",
    ),
    "in a loop": (
        "float[n, 4] y",
        """y = Loop(turns, yes, a) <body = b (int64 i, bool c, float[n, 4] s)
            => (bool go, float[n, 4] t) {
            go = Identity(c)
            whole = Cast <to = 7> (s)
            text = Cast <to = 8> (whole)
            number = Cast <to = 1> (text)
            t = Add(number, x) }>""",
    ),
    "a declared rank": ("float[1, 1, n, 4] d", DEEPER),
}
FALL_BACK = {
    "a tensor of any rank": ["Loop", "Exp", "Reshape"],
    "its shape": ["Loop", "Shape"],
    "strings": ["Cast", "Cast"],
    "two readers": ["Loop", "Reshape", "Size"],
    "a captured value": ["Loop", "If"],
    "in a loop": ["Cast", "Cast"],
    "a declared rank": ["Loop"],
}


def parsed(name: str) -> ModelProto:
    results, nodes = MODELS[name]
    least = "drawn_least = ReduceMin <keepdims = 0> (drawn)" if "drawn_least" in nodes else ""
    text = HEAD.replace("RESULTS", results).replace("NODES", least + nodes)
    return parser.parse_model(text)


def compiled(model: ModelProto) -> tw.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tw.TilewrightWarning)
        return tw.compile(model, cache=False, threads=1)


@pytest.mark.parametrize("name", MODELS)
def test_only_these_nodes_fall_back(name):
    model = parsed(name)
    module = compiled(model)
    assert [node.op for node in module.by_reference] == FALL_BACK[name]
    for n, drawn in ((3, [2.0, 1.0]), (1, [2.0])):
        x = np.random.default_rng(n).normal(scale=9, size=(n, 4)).astype(np.float32)
        feeds = {"x": x, "drawn": np.float32(drawn)[:, None]}
        wanted = ReferenceEvaluator(model).run(None, feeds)
        for found, right in zip(module.run(feeds), wanted, strict=True):
            assert found.shape == right.shape
            np.testing.assert_allclose(found, right, rtol=1e-5)


def test_the_warning_names_just_these():
    with pytest.warns(tw.TilewrightWarning, match="3 nodes run") as caught:
        tw.compile(parsed("a tensor of any rank"), cache=False, threads=1)
    text = str(caught[0].message)
    assert "the rank of a result of Loop is not known" in text
    assert "as a whole" not in text
    assert "Relu" not in text


def test_a_segment_is_one_step_and_equal_models_make_equal_segments():
    made = [import_model(parsed("a tensor of any rank")).graph for _ in range(2)]
    hosts = [[n.op.payload for n in g.nodes if isinstance(n.op, Host)] for g in made]
    assert hosts[0] == hosts[1]
    assert len(hosts[0]) == 1


def test_segments_are_saved(tmp_path):
    module = compiled(parsed("strings"))
    module.save(tmp_path / "strings.tw")
    feeds = {"x": np.float32([[1.5, -2, 7, 0]]), "drawn": np.float32([[1]])}
    loaded = tw.load(tmp_path / "strings.tw")
    assert [node.op for node in loaded.by_reference] == ["Cast", "Cast"]
    np.testing.assert_array_equal(loaded.run(feeds)[0], module.run(feeds)[0])


def test_constants_that_are_strings_belong_to_what_reads_them():
    """A word of each class, looked up and compared with others: the scores are native."""
    words = helper.make_tensor("words", TensorProto.STRING, [3], [b"cat", b"dog", b"newt"])
    wanted = helper.make_tensor("wanted", TensorProto.STRING, [1], [b"dog"])
    nodes = [
        helper.make_node("ArgMax", ["x"], ["best"], axis=1, keepdims=0),
        helper.make_node("Gather", ["words", "best"], ["names"]),
        helper.make_node("Equal", ["names", "wanted"], ["is_dog"]),
        helper.make_node("Cast", ["is_dog"], ["y"], to=TensorProto.FLOAT),
    ]
    graph = helper.make_graph(
        nodes,
        "words",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])],
        [words, wanted],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    module = compiled(model)
    assert [node.op for node in module.by_reference] == ["Gather", "Equal"]
    x = np.float32([[0, 2, 1], [5, 2, 1], [0, 1, 0]])
    np.testing.assert_array_equal(module.run({"x": x})[0], [1, 0, 1])


def test_a_string_as_an_output_is_no_result_of_a_graph():
    words = helper.make_tensor("words", TensorProto.STRING, [2], [b"cat", b"dog"])
    graph = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["y"])],
        "words",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"]),
            helper.make_tensor_value_info("words", TensorProto.STRING, [2]),
        ],
        [words],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    with pytest.warns(tw.TilewrightWarning, match="as a whole, because an output is a constant"):
        module = tw.compile(model, cache=False)
    y, found = module.run({"x": np.float32([1, 2])})
    np.testing.assert_array_equal(y, [-1, -2])
    assert found.tolist() == ["cat", "dog"]
