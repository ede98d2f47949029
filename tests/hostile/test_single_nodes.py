"""Nodes with anything at all for inputs and attributes are imported, or refused as models are."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import warnings

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tilewright as tw
from fuzz.hostile.nodes import random_node
from tests.expect import raises_code
from tests.small import make
from tilewright.errors import ModelError
from tilewright.frontend.onnx import import_model
from tilewright.frontend.onnx.registry import Unknown
from tilewright.graph.folding import TooLarge


def outcomes(seeds: range) -> dict[str, int]:
    """How many are imported and refused; a test ends with anything else."""
    found = {"imported": 0, "refused": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tw.TilewrightWarning)
        for seed in seeds:
            model = random_node(random.Random(seed))
            try:
                import_model(model)
                found["imported"] += 1
            except (ModelError, Unknown, TooLarge):
                found["refused"] += 1
            except Exception as problem:
                problem.add_note(f"seed {seed}:\n{onnx.printer.to_text(model)}")
                raise
    return found


def test_a_sample_of_nodes():
    found = outcomes(range(4000))
    assert min(found.values()) > 100  # neither everything nor nothing makes sense


def test_a_few_nodes_are_compiled_and_run(tmp_path):
    """Between forbidden pages, with extreme values, in processes of their own."""
    out = tmp_path / "report.json"
    command = [sys.executable, "-m", "fuzz", "hostile", "--only", "nodes", "--seed", "100"]
    command += ["--count", "120", "--keep", str(tmp_path), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(out.read_text())["ends"]["ran"] > 3


@pytest.mark.slow
def test_very_many_nodes():
    assert sum(outcomes(range(1_000_000, 1_300_000)).values()) == 300_000


def test_axes_that_are_named_twice():
    node = helper.make_node("Unsqueeze", ["x", "axes"], ["y"])
    axes = {"axes": np.array([0, 0], np.int64)}
    with raises_code("M004"):
        tw.compile(make([node], [("x", [2])], [("y", [1, 1, 2])], axes))


def test_attention_of_scalars():
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"])
    with raises_code("M004"):
        tw.compile(make([node], [(name, []) for name in "qkv"], [("y", [])]))


@pytest.mark.parametrize(
    ("op", "shapes", "attributes"),
    [
        ("TensorScatter", [(2, 8, 1, 4), (1, 8, 8)], {"axis": -1}),
        ("Scatter", [(1, 3, 1, 1, 1), (4, 2, 8, 4, 1), (4, 8, 2, 1)], {"axis": -1}),
        ("Compress", [(3, 4), (3, 4)], {}),
        ("Transpose", [(3, 4)], {"perm": [0]}),
        ("Transpose", [(3, 4)], {"perm": [1, 1]}),
    ],
)
def test_ranks_that_do_not_fit_at_an_opset_without_the_operator(op, shapes, attributes):
    """Nothing but the operators of the graph looks at the ranks then."""
    kinds = {"Scatter": "fif", "Compress": "fb"}.get(op, "f" * len(shapes))
    types = {"f": TensorProto.FLOAT, "i": TensorProto.INT64, "b": TensorProto.BOOL}
    inputs = [
        helper.make_tensor_value_info(f"x{k}", types[kind], shape)
        for k, (kind, shape) in enumerate(zip(kinds, shapes, strict=True))
    ]
    node = helper.make_node(op, [i.name for i in inputs], ["y"], **attributes)
    graph = helper.make_graph([node], op, inputs, [onnx.ValueInfoProto(name="y")])
    sets = [helper.make_opsetid("", 7)]
    with raises_code("M004"):
        tw.compile(helper.make_model(graph, opset_imports=sets, ir_version=8))


def test_attention_of_integers():
    node = helper.make_node(
        "MultiHeadAttention", ["q", "k", "v"], ["y"], domain="com.microsoft", num_heads=2
    )
    inputs = [helper.make_tensor_value_info(n, TensorProto.INT32, [1, 4, 8]) for n in "qkv"]
    graph = helper.make_graph([node], "ints", inputs, [onnx.ValueInfoProto(name="y")])
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    with raises_code("M004"):
        tw.compile(helper.make_model(graph, opset_imports=sets, ir_version=8))


def test_what_runs_by_reference_does_not_run_while_a_model_is_compiled():
    """A seed that NumPy refuses, of a type that has no kernel."""
    node = helper.make_node("RandomNormalLike", ["x"], ["y"], seed=-1.0)
    model = make([node], [], [("y", None)], {"x": np.zeros(1, np.int32)})
    with pytest.warns(tw.TilewrightWarning):
        module = tw.compile(model, cache=False, threads=1)
    with raises_code("C302"):
        module.run({})
