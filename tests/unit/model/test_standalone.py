"""Single kernels of models: built alone, they compute what their program and their model say."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.feature_maps import network
from tests.small import make, two_outputs
from tilewright.model.compiler import Compiling
from tilewright.model.kernels import KernelTask
from tilewright.model.standalone import USUAL_SIZE, sizes_of, standalone
from tilewright.pipeline import ModelPipeline
from tilewright.schedule.source import Unscheduled
from tilewright.target import Target
from tilewright.tensor.interpret import interpret
from tilewright.tensor.layout import Pad

HOST = Target.host()
SIZES = {"rows": 3, "batch": 1, "n": 5, "h": 9, "w": 7, "a": 2, "b": 3}


def tasks_of(model, layouts="auto") -> list[KernelTask]:
    how = Compiling(HOST, 1, "default", layouts)
    return ModelPipeline(how).run(model, until="plan").value.planned.kernels


def small_network(height=9, width=7):
    """Convolutions that store borders, and blocks if they are told to."""
    rng = np.random.default_rng(3)
    weights = {
        "w0": rng.uniform(-1, 1, (8, 3, 3, 3)).astype(np.float32),
        "w1": rng.uniform(-1, 1, (8, 8, 3, 3)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Conv", ["r", "w1"], ["y"], pads=[1, 1, 1, 1]),
    ]
    return make(nodes, [("x", ["batch", 3, height, width])], [("y", None)], weights)


def any_picture():
    return small_network("h", "w")


def looked_up():
    """Data that say where to read, a size that no parameter tells, and rows."""
    nodes = [
        helper.make_node("Cast", ["x"], ["places"], to=TensorProto.INT64),
        helper.make_node("Gather", ["table", "places"], ["rows_"]),
        helper.make_node("Softmax", ["rows_"], ["y"]),
    ]
    table = np.linspace(-1, 1, 40, dtype=np.float32).reshape(5, 8)
    return make(nodes, [("x", ["a", "b"])], [("y", None)], {"table": table})


MODELS = {
    "two outputs": (two_outputs, "auto"),
    "any picture": (any_picture, "auto"),
    "channels last": (small_network, "nhwc"),
    "channels first": (small_network, "nchw"),
    "blocks": (small_network, "nchw8c"),
    "looked up": (looked_up, "auto"),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_kernel_alone_computes_what_its_program_says(name):
    make_model, layouts = MODELS[name]
    for task in tasks_of(make_model(), layouts):
        kernel = standalone(task, HOST, SIZES, threads=2)
        arrays = kernel.arrays(seed=7)
        expected = interpret(task.program, arrays, kernel.program_sizes)
        found = kernel.run(arrays)
        assert found.keys() == expected.keys()
        for result, array in found.items():
            np.testing.assert_allclose(array, expected[result], rtol=1e-4, atol=1e-4)


def test_kernels_one_after_another_are_the_model():
    """What the model computes, from its input to its output, kernel by kernel."""
    model = two_outputs()
    path = ModelPipeline(Compiling(HOST, 1, "default", "auto"))
    relu, product = path.run(model, until="plan").value.planned.kernels
    x = np.random.default_rng(1).standard_normal((3, 8), np.float32)
    w = np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4)
    (positive,) = standalone(relu, HOST, SIZES).run({"p0": x}).values()
    (scores,) = standalone(product, HOST, SIZES).run({"p0": positive, "p1": w}).values()
    wanted = path.run(model).value.run({"x": x})
    assert scores.tobytes() == wanted[0].tobytes()
    assert positive.tobytes() == wanted[1].tobytes()


def test_borders_of_made_up_pictures_are_zero():
    tasks = tasks_of(small_network(), "nchw8c")
    task = next(t for t in tasks if any(isinstance(s, Pad) for s in t.params[0].layout))
    picture = standalone(task, HOST, SIZES).arrays()["p0"]
    assert picture.size > np.count_nonzero(picture) == 9 * 7 * 8
    assert not picture[:, :, 0].any()
    assert not picture[:, :, :, -1].any()


def test_sizes_are_those_of_the_graph():
    (relu, _) = tasks_of(two_outputs())
    assert {v.name: n for v, n in sizes_of(relu, {"rows": 5}).items()} == {"rows": 5}
    assert list(sizes_of(relu, {}).values()) == [USUAL_SIZE]
    assert standalone(relu, HOST, {"rows": 5}).arrays()["p0"].shape == (5, 8)


def test_times_of_a_kernel_are_those_of_its_runs():
    task = max(tasks_of(network("batch")), key=lambda t: len(t.program.params))
    kernel = standalone(task, HOST, {"batch": 2})
    times = kernel.times_ns(kernel.arrays(), runs=5)
    assert len(times) == 5
    assert all(0 < time_ns < 1e9 for time_ns in times)


def test_a_kernel_can_be_built_by_another_schedule():
    task = tasks_of(two_outputs())[1]
    plain = standalone(task, HOST, SIZES, schedules=Unscheduled())
    drafted = standalone(task, HOST, SIZES)
    assert plain.compiled.code != drafted.compiled.code
    arrays = drafted.arrays()
    (a,), (b,) = plain.run(arrays).values(), drafted.run(arrays).values()
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
