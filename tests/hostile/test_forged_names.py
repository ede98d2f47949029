"""Whatever a model calls its parts: errors, warnings and listings about them stay ours."""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, parser

import tilewright as tw
from tests.hostile.forged import LONG, forge, forged, require_readable
from tests.hostile.texts import HEAD, OTHER_DOMAINS
from tests.settled import reshaped, summed
from tests.small import make, rows, sequence_model, text_inside, two_outputs
from tilewright.errors import ModelError, TilewrightError
from tilewright.model.session import InferenceSession
from tilewright.runtime.artefact import open_artefact
from tilewright.shown import in_line, listed, shown, visible

X, ROWS, SCORES = forged("x"), rows(3), forged("scores")


def quietly(model: onnx.ModelProto, **options: object) -> tw.Module:
    """Compiled; what is warned of is looked at."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            module = tw.compile(model.SerializeToString(), cache=False, threads=1, **options)
        finally:
            for warning in told:
                require_readable(str(warning.message))
    return module


@pytest.fixture(scope="module")
def module() -> tw.Module:
    return quietly(forge(two_outputs()))


def refusal(act: Callable[[], object]) -> str:
    """The text of the error that something ends with, and what another process sees of it."""
    with pytest.raises(TilewrightError) as caught:
        act()
    text = str(caught.value)
    require_readable(text)
    require_readable(caught.value.summary())
    assert str(pickle.loads(pickle.dumps(caught.value))) == text
    return text


def both(first: np.ndarray, second: np.ndarray) -> dict[str, np.ndarray]:
    return {forged("a"): first, forged("b"): second}


CALLS = {
    "C021": lambda m: m.run({}),
    "C022": lambda m: m.run({X: ROWS, forged("other"): ROWS}),
    "C023": lambda m: m.run({forged("y"): ROWS}),
    "C003": lambda m: m.run({X: ROWS.astype(np.float64)}),
    "C004": lambda m: m.run({X: ROWS[0]}),
    "C005": lambda m: m.run({X: ROWS[:, :4]}),
    "C002": lambda m: m.run({X: object()}),
    "C007": lambda m: m.run_into({X: ROWS}, {SCORES: np.broadcast_to(np.float32(0), (3, 4))}),
    "C006": lambda m: m.run_into({X: ROWS}, {SCORES: np.empty((2, 4), np.float32)}),
    "C008": lambda m: m.run_into({X: ROWS}, {SCORES: np.empty((4, 3), np.float32).T}),
}


@pytest.mark.parametrize("code", CALLS)
def test_wrong_calls(module, code):
    assert refusal(lambda: CALLS[code](module)).startswith(code)


def test_outputs_that_there_are_not(module):
    text = refusal(lambda: module.run_into({X: ROWS}, {forged("z"): ROWS}))
    assert text.startswith("C022")
    session = InferenceSession(forge(two_outputs()).SerializeToString())
    assert refusal(lambda: session.run([forged("score")], {X: ROWS})).startswith("C022")
    require_readable(repr(session))
    for arg in (*session.get_inputs(), *session.get_outputs()):
        require_readable(repr(arg), longest=None)  # it is exact, as `repr` of any value


def test_sizes_that_disagree():
    add = helper.make_node("Add", ["a", "b"], ["y"])
    added = quietly(forge(make([add], [("a", ["n"]), ("b", ["n"])], [("y", ["n"])])))
    x = np.ones(4, np.float32)
    assert refusal(lambda: added.run(both(x, x[:3]))).startswith("C006")


def test_sizes_that_a_run_refuses():
    text = "m (float[n] a, float[k] b) => (float[j] y) { y = Add (a, b) }"
    added = quietly(forge(parser.parse_model(HEAD + text)))
    x = np.ones(4, np.float32)
    assert refusal(lambda: added.run(both(x, x[:3]))).startswith("C025")


def test_names_are_exact_for_programs(module):
    """Only texts for people shorten them."""
    assert [info.name for info in module.inputs] == [X]
    assert [info.name for info in module.outputs] == [SCORES, forged("positive")]
    assert module.inputs[0].exact.startswith(f"{X}: f32[")
    assert module.name == forged("small")
    assert module.meta.producer_name == forged("tool")
    scores, _ = module.run({X: ROWS})
    assert scores.shape == (3, 4)


def test_listings(module):
    for thing in (module, module.executable, *module.inputs, *module.outputs):
        require_readable(str(thing))
    require_readable(str(module.graph), longest=None)  # sizes are variables, with all their letters
    require_readable(repr(module.meta), longest=None)


WHOLE = {
    "strings": sequence_model(),
    "axes": summed(),
    "shape": reshaped(),
    "function": parser.parse_model(
        HEAD
        + """m (float[n] x) => (float[n] y) { y = own.twice (x) }
        <domain: "own", opset_import: ["" : 20]> twice (a) => (b) { b = Add (a, a) }"""
    ),
    "branch": parser.parse_model(
        HEAD
        + """m (float[n] x, bool c) => (float[n] y) { y = If (c) <
        then_branch = t () => (float[n] u) { u = Neg (x) },
        else_branch = e () => (float[n] v) { v = Abs (x) }> }"""
    ),
    "labels": parser.parse_model(
        OTHER_DOMAINS + "m (int64[n] x) => (string[n] y) { y = ai.onnx.ml.LabelEncoder"
        ' <keys_int64s = [3], values_strings = ["?"], default_string = "none"> (x) }'
    ),
    "by reference": text_inside(),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_models_of_all_kinds(kind, tmp_path):
    made = quietly(forge(WHOLE[kind]))
    for thing in (made, *made.inputs, *made.outputs, *made.by_reference):
        require_readable(f"{thing}")
    require_readable(repr(made))
    refusal(lambda: made.run({}))
    refusal(lambda: made.run({forged("other"): ROWS}))
    refusal(lambda: made.run({info.name: object() for info in made.inputs}))
    refusal(lambda: made.run_into({}, {forged("other"): ROWS}))
    refusal(lambda: tw.compile(forge(WHOLE[kind]), cache=False, settled={forged("other"): 1}))
    if kind == "strings":
        require_readable(repr(made.model))
        assert refusal(lambda: made.save(tmp_path / "made.tw")).startswith("A121")


def broken() -> Iterator[onnx.ModelProto]:
    """Models that nothing can run, each for another reason."""
    plain: list[tuple[str, list[int | str]]] = [("y", ["n"])]

    def of(*nodes: onnx.NodeProto, **more: object) -> onnx.ModelProto:
        return forge(make(nodes, [("x", ["n"])], plain, **more))  # type: ignore[arg-type]

    yield of(helper.make_node(forged("Sharpen"), ["x"], ["y"]))
    yield of(helper.make_node("Sharpen", ["x"], ["y"], domain=forged("own")))
    yield of(helper.make_node("Neg", ["x"], ["y"], **{forged("alpha"): 1.0}))
    yield of(helper.make_node("Neg", ["x", "x"], ["y"]))
    yield of(helper.make_node("Neg", ["nowhere"], ["y"]))
    yield of(helper.make_node("Neg", ["x"], ["z"]))
    yield of(helper.make_node("Neg", ["x"], ["y"]), helper.make_node("Neg", ["x"], ["y"]))
    yield of(helper.make_node("Not", ["x"], ["y"]))
    yield of(helper.make_node("Add", ["x", "w"], ["y"]), weights={"w": np.ones(2, np.int8)})
    yield of(helper.make_node("Concat", ["x", "w"], ["y"], axis=3), weights={"w": np.ones((2, 2))})
    yield of(helper.make_node("MatMul", ["w", "w"], ["y"]), weights={"w": np.ones((2, 3))})
    weights = {"s": np.ones((3, 1, 2)), "w": np.ones((1, 2, 2))}
    words = {"activations": [forged("Tanh")], "hidden_size": 2}
    yield of(helper.make_node("RNN", ["s", "w", "w"], ["y"], **words), weights=weights)
    model = of(helper.make_node("Add", ["x", "w"], ["y"]), weights={"w": np.ones(4, np.float32)})
    for location in ("nowhere", "/etc/passwd", "../other"):
        tensor = model.graph.initializer[0]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        del tensor.external_data[:]
        tensor.external_data.add(key="location", value=forged(location))
        tensor.external_data.add(key=forged("key"), value=forged("value"))
        yield model
    model = of(helper.make_node("Add", ["x", "w"], ["y"]), weights={"w": np.ones(4, np.float32)})
    model.graph.initializer[0].dims[0] = 7
    yield model
    model = of(helper.make_node("Neg", ["x"], ["y"]))
    model.opset_import.append(helper.make_opsetid(forged("domain"), -4))
    yield model


@pytest.mark.parametrize("number", range(17))
def test_models_that_nothing_can_run(number, tmp_path):
    model = list(broken())[number]
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    for source in (path, model.SerializeToString()):
        with pytest.raises(ModelError) as caught:
            tw.compile(source, cache=False)
        require_readable(str(caught.value))
        for node in caught.value.nodes:
            require_readable(str(node))


def test_there_are_as_many_broken_models_as_are_tried():
    assert len(list(broken())) == 17


def test_compiled_models_that_are_damaged(module, tmp_path):
    path = tmp_path / "a\n\x1b[31mM999: a forged line\u202e.tw"
    module.save(path)
    require_readable(repr(tw.load(path)))
    refusal(lambda: tw.load(path).run({}))
    content = path.read_bytes()
    for damage in (b"", b"other", content[:40], content[:-1], content[:200] + b"!" + content[201:]):
        path.write_bytes(damage)
        assert re.match("A11[01]", refusal(lambda: open_artefact(path)))
    refusal(lambda: tw.compile(path.with_suffix(".onnx"), cache=False))


def test_names_as_a_text_shows_them():
    assert shown("a\tb\n\x1b\u202e") == r"a\tb\n\x1b\u202e"
    assert shown(b"a\xff\n") == "a\\xff\\n"
    assert in_line("one\ntwo") == r"one\ntwo"
    assert visible("one\n\ttwo\x1b") == "one\n\ttwo\\x1b"
    assert len(shown(LONG)) <= 120
    assert listed([]) == "none"
    assert listed(["a", "b\n"]) == r"`a`, `b\n`"
    assert listed("abcd", most=2) == "`a`, `b`, 2 more"
