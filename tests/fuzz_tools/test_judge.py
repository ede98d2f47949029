"""The judge finds planted faults, and tells them from rounding and from quarrels of oracles."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from fuzz import judge as judging
from fuzz.case import Case
from fuzz.compare import difference, spread
from fuzz.engines import run_reference
from fuzz.judge import judge
from fuzz.stepwise import Noise

F32 = np.float32


def case_of(*nodes: onnx.NodeProto, **feeds: np.ndarray) -> Case:
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in feeds.items()
    ]
    last = nodes[-1].output[0]
    shape = [None] * next(iter(feeds.values())).ndim
    output = helper.make_tensor_value_info(last, TensorProto.FLOAT, shape)
    graph = helper.make_graph(list(nodes), "case", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    return Case(model, [feeds])


@pytest.fixture
def plant(monkeypatch):
    """Let tilewright answer as given by a function of the reference's results."""

    def planted(change):
        def run(case):
            return [[change(a) for a in run] for run in run_reference(case.model, case.runs)], []

        monkeypatch.setattr(judging, "run_tilewright", run)

    return planted


def tanh() -> Case:
    x = np.linspace(-2, 2, 6, dtype=F32).reshape(2, 3)
    return case_of(helper.make_node("Tanh", ["x"], ["y"]), x=x)


def test_what_is_right_is_the_same():
    assert judge(tanh()).kind == "same"


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a + F32(1e-3),
        lambda a: a.T,
        lambda a: a.astype(np.float64),
        lambda a: np.where(a > 0, np.nan, a).astype(F32),
        lambda a: np.where(a > 0, np.inf, a).astype(F32),
    ],
)
def test_planted_errors_are_found(plant, change):
    plant(change)
    verdict = judge(tanh())
    assert (verdict.kind, verdict.is_finding) == ("wrong", True)


def test_a_refusal_is_a_finding(monkeypatch):
    def refuse(_):
        raise RuntimeError("no such operator")

    monkeypatch.setattr(judging, "run_tilewright", refuse)
    verdict = judge(tanh())
    assert verdict.kind == "refused"
    assert "no such operator" in verdict.detail


def test_models_that_the_checker_refuses_are_not_judged():
    assert (
        judge(case_of(helper.make_node("NoSuch", ["x"], ["y"]), x=np.ones(2, F32))).kind
        == "invalid"
    )


def test_disagreeing_oracles_excuse_who_agrees_with_one(monkeypatch):
    def other(model, runs):
        return [[a + 1 for a in run] for run in run_reference(model, runs)]

    monkeypatch.setitem(judging.ORACLES, "onnxruntime", other)
    assert judge(tanh()).kind == "explained"


@pytest.mark.parametrize(("start", "kept"), [(-2, [0]), (-9, [0]), (-1, [1, 0]), (9, [1, 0])])
def test_steps_backwards_begin_inside(start, kept):
    names = {"start": [start], "end": [-(2**40)], "axes": [0], "steps": [-1]}
    feeds = {n: np.array(v) for n, v in names.items()}
    case = case_of(
        helper.make_node("Slice", ["x", *feeds], ["y"]), x=np.arange(2, dtype=F32), **feeds
    )
    assert run_reference(case.model, case.runs)[0][0].tolist() == kept
    assert judge(case).oracles == {"onnxruntime": "", "reference": ""}


def test_norms_of_absolute_values():
    x = np.array([[3.0, -1.0, 4.0]], F32)
    case = case_of(helper.make_node("LpNormalization", ["x"], ["y"], p=1), x=x)
    np.testing.assert_allclose(run_reference(case.model, case.runs)[0][0], x / 8)
    assert judge(case).oracles == {"onnxruntime": "", "reference": ""}


@pytest.mark.parametrize("top", [np.inf, -np.inf])
def test_logarithms_of_infinite_sums(top):
    x = np.array([[1.0 if top > 0 else top, top]], F32)
    case = case_of(helper.make_node("ReduceLogSumExp", ["x"], ["y"]), x=x)
    assert run_reference(case.model, case.runs)[0][0].tolist() == [[top]]
    assert judge(case).oracles["reference"] == ""


def test_rounding_that_a_graph_amplifies_is_told_from_faults(plant):
    """The sum is zero but for rounding, and the quotient therefore anything."""
    x = np.array([[0.1, 0.2, -0.3, 1e-9]], F32)
    case = case_of(
        helper.make_node("ReduceSum", ["x"], ["s"]), helper.make_node("Div", ["x", "s"], ["y"]), x=x
    )
    plant(lambda a: a * F32(1.01))
    assert judge(case).kind == "rounding"
    plant(lambda a: a * F32(-50))
    assert judge(case).kind == "wrong"


def test_exact_operators_move_nothing():
    x = np.array([0.5, 1.5, -0.5], F32)
    case = case_of(
        helper.make_node("Floor", ["x"], ["f"]), helper.make_node("Neg", ["f"], ["y"]), x=x
    )
    moved = spread(case)
    assert moved is not None
    assert not moved[0][0].any()


@pytest.mark.parametrize("near", [1.0, -1.0])
def test_errors_beside_one_have_no_sign(near):
    """The state of a recurrence is near -1 as often as near 1, and no more exact there."""
    value = np.full(1000, near * (1 - 2**-24), np.float32)
    moved = Noise(seed=3).on(value, floor=1.0)
    assert (np.abs(moved) >= 1).any()
    assert (np.abs(moved) < 1).any()


def test_integers_and_texts_are_equal_or_different():
    a = np.array([1, 2, 3])
    assert not difference([[a]], [[a.copy()]])
    assert "1 of 3" in difference([[a]], [[np.array([1, 2, 4])]])
    texts = np.array(["a", "b"], object)
    assert difference([[texts]], [[np.array(["a", "c"], object)]])
    assert "shape" in difference([[a]], [[a[:2]]])
    assert "outputs" in difference([[a]], [[a, a]])


@pytest.mark.parametrize("opset", [7, 13, 17, 18, 20])
def test_the_reference_knows_the_logarithm_of_nothing(opset):
    axes = {"axes": [1]} if opset < 18 else {}
    inputs = ["x"] if opset < 18 else ["x", "axes"]
    node = helper.make_node("ReduceLogSumExp", inputs, ["y"], keepdims=0, **axes)
    case = case_of(node, x=np.array([[-np.inf], [0.0]], F32))
    del case.model.opset_import[:]
    case.model.opset_import.append(helper.make_opsetid("", opset))
    if opset >= 18:
        where = helper.make_tensor("axes", TensorProto.INT64, [1], [1])
        case.model.graph.initializer.append(where)
    ((y,),) = run_reference(case.model, case.runs)
    assert np.array_equal(y, [-np.inf, 0.0])


def test_the_reference_refuses_an_axis_that_is_not_there():
    case = case_of(helper.make_node("Softmax", ["x"], ["y"], axis=1), x=np.zeros(2, F32))
    del case.model.opset_import[:]
    case.model.opset_import.append(helper.make_opsetid("", 7))
    with pytest.raises(ValueError, match="axis 1 of 1 dimensions"):
        run_reference(case.model, case.runs)
