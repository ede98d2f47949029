"""The path of a model by its stages: one can stop anywhere, and every stage prints."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.expect import raises_code
from tests.feature_maps import network
from tests.small import expected, make, rows, sequence_model, two_outputs
from tilewright.model import module as modules
from tilewright.model.compilation import NotCompiled, Unsettled
from tilewright.model.compiler import Compiling
from tilewright.pipeline import MODEL_STAGES, ModelPipeline, dump_to
from tilewright.target import Target

HOW = Compiling(Target.host(), 1, "default", "auto")
NAMES = [stage.name for stage in MODEL_STAGES]


def branching():
    """A model with all kinds of steps: a branch, a size that data tells, a node of Python."""
    then, other = (
        helper.make_graph(
            [helper.make_node(op, ["x"], [name])],
            name,
            [],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"])],
        )
        for op, name in (("Relu", "a"), ("Neg", "b"))
    )
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        helper.make_node("Cast", ["sum"], ["flag"], to=TensorProto.BOOL),
        helper.make_node("If", ["flag"], ["chosen"], "if", then_branch=then, else_branch=other),
        helper.make_node("NonZero", ["chosen"], ["places"], "places"),
        helper.make_node("Cast", ["places"], ["y"], to=TensorProto.FLOAT),
    ]
    return make(nodes, [("x", ["n"])], [("y", [1, "k"])])


def settled_later():
    nodes = [helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)]
    model = make(nodes, [("x", [2, 3])], [("y", None)])
    model.graph.input.append(helper.make_tensor_value_info("axes", TensorProto.INT64, ["k"]))
    return model


def test_stages_come_from_each_other():
    assert [stage.source for stage in MODEL_STAGES] == ["", *NAMES[:-1]]


@pytest.mark.parametrize("until", NAMES)
@pytest.mark.parametrize("make_model", [two_outputs, network, branching], ids=lambda f: f.__name__)
def test_it_stops_anywhere_and_prints(until, make_model):
    seen = []
    path = ModelPipeline(HOW, observers=[lambda artefact: seen.append(artefact.stage)])
    artefact = path.run(make_model(), until)
    assert artefact.stage == until
    assert seen == NAMES[: NAMES.index(until) + 1]
    assert [*path.report.seconds] == seen
    assert artefact.text == str(artefact.value)
    assert "object at 0x" not in artefact.text


def test_the_last_stage_runs():
    module = ModelPipeline(HOW).run(two_outputs()).value
    scores, _ = module.run({"x": rows(3)})
    np.testing.assert_allclose(scores, expected(rows(3))[0], rtol=1e-5, atol=1e-6)


def test_texts_say_what_each_stage_made():
    def text(until):
        return ModelPipeline(HOW).run(two_outputs(), until).text

    assert "scores = MatMul(positive, w)  # product" in text("read")
    assert "constant w: float[8, 4]" in text("read")
    assert text("import").startswith("graph small\n  input    x: f32[rows, 8]")
    assert "# product" in text("optimise")
    plan = text("plan")
    assert plan.startswith("plan small: 2 steps, 2 kernels\n   0  kernel 0 (map) → map\n")
    kernels = text("kernels")
    assert "kernels small: 2 kernels, " in kernels
    assert "   1  product\n" in kernels
    link = text("link")
    assert "2 kernels in" in link
    assert "step   1: wait, call 1 with buffers" in link


def test_steps_of_all_kinds_print():
    plan, link = (ModelPipeline(HOW).run(branching(), stage).text for stage in ("plan", "link"))
    assert "go to else unless" in plan
    assert "      else:\n" in plan
    assert "enter segment" in plan
    assert "go to " in link
    assert "enter segment 1 with size" in link


def test_later_stages_than_asked_for_are_not_run(monkeypatch):
    monkeypatch.delattr(ModelPipeline, "_plan")
    assert ModelPipeline(HOW).run(two_outputs(), until="choose").stage == "choose"


def test_unknown_stages_and_layouts_are_refused_before_any_work(tmp_path):
    with raises_code("K001", text="read, import, optimise, choose, plan, kernels, link, module"):
        ModelPipeline(HOW).run(tmp_path / "missing.onnx", until="group")
    with raises_code("K060"):
        ModelPipeline(replace(HOW, layouts="nchw8"))


def test_a_model_without_a_graph_ends_at_import():
    artefact = ModelPipeline(HOW).run(settled_later(), until="link")
    assert artefact.stage == "import"
    assert isinstance(artefact.value, Unsettled)
    artefact = ModelPipeline(HOW, final=True).run(sequence_model(), until="link")
    assert artefact.stage == "import"
    assert isinstance(artefact.value, NotCompiled)
    assert "ConcatFromSequence" in ModelPipeline(HOW).run(sequence_model(), until="read").text


def test_every_stage_can_be_written_to_files(tmp_path):
    ModelPipeline(HOW, observers=[dump_to(tmp_path, MODEL_STAGES)]).run(two_outputs())
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [f"{k:02}-{s.name}{s.suffix}" for k, s in enumerate(MODEL_STAGES[:-1])]


def test_weights_of_the_graph_are_let_go_before_they_are_packed(monkeypatch):
    """They are in memory once: what the stages before have made is gone by then."""
    graphs = []

    def watch(artefact):
        if artefact.stage in ("import", "optimise"):
            graphs.append(weakref.ref(artefact.value))
        elif artefact.stage == "choose":
            graphs.extend(weakref.ref(part) for part in (artefact.value, artefact.value.choice))

    packed = modules.parts_of

    def parts_of(*args):
        gc.collect()
        assert len(graphs) == 4
        assert [graph() for graph in graphs] == [None] * 4
        return packed(*args)

    monkeypatch.setattr(modules, "parts_of", parts_of)
    ModelPipeline(HOW, observers=[watch]).run(network(), until="link")
