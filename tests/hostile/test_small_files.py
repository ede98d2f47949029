"""Small files whose numbers ask for tables and repetitions, or whose nodes multiply each other.

As a program it compiles each apart and prints what became of it:

python -m tests.hostile.test_small_files [NAME…]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from fuzz.hostile.trial import Limits, attempt
from tilewright.errors import InternalError, ModelError
from tilewright.model.sizing import I140

SECONDS, MEMORY = 5.0, 256 << 20
ML, MS = "ai.onnx.ml", "com.microsoft"
KINDS = {"f": TensorProto.FLOAT, "i": TensorProto.INT64}

Dims = Sequence[int | str]


def _model(
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, tuple[str, Dims]],
    weights: dict[str, Any] | None = None,
    result: str = "f",
) -> onnx.ModelProto:
    """The result is that of the last node, of unknown shape."""
    infos = [helper.make_tensor_value_info(n, KINDS[k], d) for n, (k, d) in inputs.items()]
    output = helper.make_tensor_value_info(nodes[-1].output[-1], KINDS[result], None)
    tensors = [numpy_helper.from_array(np.asarray(v), n) for n, v in (weights or {}).items()]
    graph = helper.make_graph(nodes, "small", infos, [output], tensors)
    opsets = [helper.make_opsetid(d, v) for d, v in (("", 21), (ML, 3), (MS, 1))]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _node(op: str, inputs: str, results: str = "y", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(" "), results.split(), **attributes)


def _grams(**attributes: Any) -> onnx.ModelProto:
    plain = {"mode": "TF", "ngram_indexes": [0], "max_skip_count": 0} | attributes
    return _model([_node("TfIdfVectorizer", "x", **plain)], {"x": ("i", ["n", 400])})


def _trees(targets: int) -> onnx.ModelProto:
    numbers = ("treeids", "nodeids", "featureids", "truenodeids", "falsenodeids")
    nodes: dict[str, Any] = {f"nodes_{name}": [0] for name in numbers}
    leaf: dict[str, Any] = {f"target_{name}": [0] for name in ("treeids", "nodeids", "ids")}
    node = _node("TreeEnsembleRegressor", "x", domain=ML, n_targets=targets, **nodes, **leaf)
    more = {"nodes_modes": ["LEAF"], "nodes_values": [0.0], "target_weights": [1.0]}
    node.attribute.extend(helper.make_attribute(name, value) for name, value in more.items())
    return _model([node], {"x": ("f", ["n", 2])})


def _machine(classes: int) -> onnx.ModelProto:
    pairs = classes * (classes - 1) // 2
    node = _node("SVMClassifier", "x", "l y", domain=ML, kernel_type="LINEAR")
    given: dict[str, Any] = {
        "classlabels_ints": list(range(classes)),
        "vectors_per_class": [1] * classes,
        "coefficients": [0.1] * ((classes - 1) * classes),
        "support_vectors": [0.1] * classes,
        "rho": [0.0] * pairs,
        "prob_a": [-1.0] * pairs,
        "prob_b": [0.0] * pairs,
        "kernel_params": [1.0, 0.0, 3.0],
    }
    node.attribute.extend(helper.make_attribute(name, value) for name, value in given.items())
    return _model([node], {"x": ("f", ["n", 1])})


def _resized(scales: Sequence[float], dims: Dims = ("n", 2, "h", "w")) -> onnx.ModelProto:
    weights = {"s": np.array(scales, np.float32)}
    return _model([_node("Resize", "x  s", mode="linear")], {"x": ("f", dims)}, weights)


def _smoothed(before: int, after: int) -> onnx.ModelProto:
    node = _node("Resize", "x   s", mode="cubic", antialias=1)
    return _model([node], {"x": ("f", [1, 1, before, 2])}, {"s": [1, 1, after, 2]})


def _fourier(length: int, count: int = 1) -> onnx.ModelProto:
    nodes = [_node("DFT", f"x{k}", f"x{k + 1}") for k in range(count)]
    return _model(nodes, {"x0": ("f", [1, length, 2])})


def _padded_fourier(length: int) -> onnx.ModelProto:
    return _model([_node("DFT", "x n")], {"x": ("f", [1, 16, 1])}, {"n": length})


def _mel(bins: int, length: int) -> onnx.ModelProto:
    weights = {"b": bins, "n": length, "r": 16000, "l": np.float32(0), "h": np.float32(8000)}
    return _model([_node("MelWeightMatrix", "b n r l h")], {}, weights)


def _pieces() -> onnx.ModelProto:
    nodes = [_node("SplitToSequence", "x", "q", axis=0), _node("SequenceLength", "q")]
    return _model(nodes, {"x": ("f", [1 << 40])}, result="i")


def _repeats(size: int) -> onnx.ModelProto:
    node = _node("NGramRepeatBlock", "x s", domain=MS, ngram_size=size)
    return _model([node], {"x": ("i", ["n", "l"]), "s": ("f", ["n", "v"])})


def _places() -> onnx.ModelProto:
    node = _node("AffineGrid", "t s")
    return _model([node], {"t": ("f", [1, 2, 3])}, {"s": [1, 1, 9000, 9000]})


def _grid(rank: int) -> onnx.ModelProto:
    space = [f"n{k}" for k in range(rank)]
    inputs: dict[str, tuple[str, Dims]] = {
        "x": ("f", ["n", "c", *space]),
        "g": ("f", ["n", *space, rank]),
    }
    return _model([_node("GridSample", "x g")], inputs)


def _steps(kernel: int, *strides: int) -> onnx.ModelProto:
    node = _node("ConvTranspose", "x w", strides=list(strides))
    weights = {"w": np.ones((2, 2, *[kernel] * len(strides)), np.float32)}
    return _model([node], {"x": ("f", ["n", 2, *(f"n{k}" for k in strides)])}, weights)


def _far(gap: int) -> onnx.ModelProto:
    more = {"strides": [gap, gap], "pads": [gap] * 4, "dilations": [gap, 1]}
    weights = {"w": np.ones((4, 4, 3, 3), np.float32)}
    return _model([_node("Conv", "x w", **more)], {"x": ("f", [1, 4, 64, 64])}, weights)


def _local(channels: int) -> onnx.ModelProto:
    return _model([_node("LRN", "x", size=channels)], {"x": ("f", [1, channels, 8, 8])})


def _chain(
    op: str, count: int, beside: str, inputs: dict[str, tuple[str, Dims]], **more: Any
) -> onnx.ModelProto:
    weights = more.pop("weights", None)
    nodes = [_node(op, f"v{k} {beside}", f"v{k + 1}", **more) for k in range(count)]
    return _model(nodes, inputs, weights)


def gathers(count: int, op: str = "Gather") -> onnx.ModelProto:
    return _chain(op, count, "i", {"v0": ("f", ["n"]), "i": ("i", ["n"])}, axis=0)


def mirrors(count: int) -> onnx.ModelProto:
    inputs: dict[str, tuple[str, Dims]] = {"v0": ("f", ["n"])}
    return _chain("Pad", count, "p", inputs, weights={"p": [1, 1]}, mode="reflect")


def _nearest(count: int) -> onnx.ModelProto:
    inputs: dict[str, tuple[str, Dims]] = {"v0": ("f", ["n", 1, "h", "w"])}
    scales = np.array([1, 1, 1.5, 1.5], np.float32)
    return _chain("Resize", count, " s", inputs, weights={"s": scales}, mode="nearest")


def _squares(count: int) -> onnx.ModelProto:
    nodes = [_node("Mul", f"v{k} v{k}", f"v{k + 1}") for k in range(count)]
    nodes.append(_node("Add", f"v{count} w"))
    return _model(nodes, {"v0": ("f", ["n", 1]), "w": ("f", ["n", "m"])})


def _integers(count: int) -> onnx.ModelProto:
    nodes = [_node("Mul", f"v{k} v{k}", f"v{k + 1}") for k in range(count)]
    return _model(nodes, {"v0": ("i", ["n"])}, result="i")


def joined(count: int, axis: int = 0) -> onnx.ModelProto:
    names = " ".join(f"x{k % 3}" for k in range(count))
    dims: Dims = ["n", 2] if axis else [2, "n"]
    return _model([_node("Concat", names, axis=axis)], {f"x{k}": ("f", dims) for k in range(3)})


FILES: dict[str, Callable[[], onnx.ModelProto]] = {
    "places of a grid": _places,
    "columns of sequences": lambda: _grams(
        ngram_counts=[0], ngram_indexes=[300_000_000], pool_int64s=[5], max_gram_length=1,
        min_gram_length=1,
    ),
    "weights of sequences": lambda: _grams(
        ngram_counts=[0], ngram_indexes=[1 << 31], pool_int64s=[5], max_gram_length=1,
        min_gram_length=1, mode="TFIDF", weights=[2.0],
    ),
    "gaps of sequences": lambda: _grams(
        ngram_counts=[0, 0], pool_int64s=[5, 6], max_gram_length=2, min_gram_length=2,
        max_skip_count=10**9,
    ),
    "weights of a mean": lambda: _smoothed(16_000, 16_001),
    "weights of a smaller mean": lambda: _smoothed(16_001, 16_000),
    "one mean of all": lambda: _smoothed(1 << 40, 1),
    "long transform": lambda: _fourier(1 << 26),
    "transform of a large prime": lambda: _fourier((1 << 26) - 5),
    "transforms of a prime": lambda: _fourier(509, 60),
    "padded transform": lambda: _padded_fourier(10**16 + 61),
    "mel": lambda: _mel(12_000, 24_000),
    "mel of many bins": lambda: _mel(10**9, 0),
    "targets of trees": lambda: _trees(400_000_000),
    "classes of vectors": lambda: _machine(150),
    "pieces of a sequence": _pieces,
    "runs of tokens": lambda: _repeats(10**9),
    "channels around": lambda: _local(1 << 30),
    "corners of many dimensions": lambda: _grid(30),
    "uneven steps": lambda: _steps(9, 7, 8),
    "uneven steps of space": lambda: _steps(3, 5, 4, 6),
    "far apart": lambda: _far(1 << 39),
    "huge scale": lambda: _resized([1, 1, 4.4e20, 1]),
    "negative scale": lambda: _resized([1, 1, 1, -2]),
    "no scale": lambda: _resized([1, 1, 0, 1]),
    "scale that is no number": lambda: _resized([1, 1, np.nan, 1], [1, 1, 4, 4]),
    "gathers": lambda: gathers(12),
    "gathers of elements": lambda: gathers(12, "GatherElements"),
    "mirrors of mirrors": lambda: mirrors(12),
    "nearest of nearest": lambda: _nearest(8),
    "squares of squares": lambda: _squares(39),
    "squares of integers": lambda: _integers(30),
    "joined": lambda: joined(400),
    "joined in rows": lambda: joined(400, 1),
}  # fmt: skip

REFUSED = {
    "far apart": "M005",
    "runs of tokens": "M004",
    "huge scale": "M004",
    "negative scale": "M004",
    "no scale": "M004",
    "scale that is no number": "M004",
}
BY_REFERENCE = {
    "transform of a large prime",
    "mel",
    "mel of many bins",
    "targets of trees",
    "gaps of sequences",
    "weights of sequences",
    "padded transform",
    "transforms of a prime",
    "pieces of a sequence",
    "channels around",
    "corners of many dimensions",
}


QUICK = [name for k, name in enumerate(FILES) if name in REFUSED or k % 3 == 0]
"""Without `--long`, those that are refused, and every third one."""


@pytest.fixture(scope="module")
def ends(request: pytest.FixtureRequest) -> Any:
    """What became of them, each compiled in a process of its own with limits."""
    names = FILES if request.config.getoption("--long") else QUICK
    command = [sys.executable, "-m", "tests.hostile.test_small_files", *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=900)
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in FILES]
)
def test_a_small_file_costs_little(ends: Any, name: str) -> None:
    end = ends[name]
    expected = "refused" if name in REFUSED else "compiled"
    assert end["kind"] == expected, end["text"]
    assert end["cpu_s"] <= SECONDS
    assert end["memory_bytes"] <= MEMORY
    code = "by reference" if name in BY_REFERENCE else ""
    assert end["code"] == REFUSED.get(name, code)


@pytest.mark.parametrize("op", ["Gather", "GatherElements"])
def test_long_chains_of_gathers_find_the_same(op: str) -> None:
    import tilewright as tw

    rng = np.random.default_rng(1)
    x, places = rng.standard_normal(50).astype(np.float32), rng.integers(-50, 50, 50)
    (found,) = tw.compile(gathers(9, op), cache=False).run({"v0": x, "i": places})
    for _ in range(9):
        x = x[places]
    assert np.array_equal(found, x)


def test_long_chains_of_mirrors_find_the_same() -> None:
    import tilewright as tw

    x = np.arange(5, dtype=np.float32)
    (found,) = tw.compile(mirrors(9), cache=False).run({"v0": x})
    for _ in range(9):
        x = np.pad(x, 1, mode="reflect")
    assert np.array_equal(found, x)


@pytest.mark.parametrize("axis", [0, 1])
def test_many_tensors_are_joined_in_order(axis: int) -> None:
    import tilewright as tw

    rng = np.random.default_rng(2)
    parts = [rng.standard_normal((3, 2) if axis else (2, 3)).astype(np.float32) for _ in range(3)]
    module = tw.compile(joined(200, axis), cache=False)
    (found,) = module.run({f"x{k}": part for k, part in enumerate(parts)})
    assert np.array_equal(found, np.concatenate([parts[k % 3] for k in range(200)], axis))


@pytest.mark.parametrize("sizes", [(4000, 1500), (1500, 700)])
def test_means_over_many_elements(sizes: tuple[int, int]) -> None:
    """A table of neighbours means what a matrix means, which is only made where it is small."""
    from onnx.reference import ReferenceEvaluator

    import tilewright as tw

    model = _smoothed(*sizes)
    x = np.random.default_rng(3).standard_normal((1, 1, sizes[0], 2)).astype(np.float32)
    (found,) = tw.compile(model, cache=False).run({"x": x})
    assert np.allclose(found, ReferenceEvaluator(model).run(None, {"x": x})[0], atol=1e-4)


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (MemoryError(), "M005"),
        (RecursionError(), "M005"),
        (InternalError(I140, {"expr": "x"}), "I140"),
    ],
)
def test_the_trial_of_a_branch_swallows_no_exhaustion(
    monkeypatch: pytest.MonkeyPatch, raised: Exception, code: str
) -> None:
    """Branches differ in rank, so what follows is tried in each; only a model's faults count."""
    import tilewright as tw
    from tilewright.frontend.onnx.registry import HANDLERS

    def fails(*_: object) -> None:
        raise raised

    text = """<ir_version: 9, opset_import: ["" : 20]>
    m (float[n] x, bool c) => (float[k] y) <int64[1] zero = {0}> {
        v = If (c) <
            then_branch = p () => (float[n] q) { q = Neg (x) },
            else_branch = r () => (float[n, m] s) { s = Unsqueeze (x, zero) }
        >
        y = Abs (v)
    }"""
    model = onnx.parser.parse_model(text)
    monkeypatch.setitem(HANDLERS, ("", "Abs"), fails)
    with pytest.raises((ModelError, InternalError)) as caught:
        tw.compile(model, cache=False)
    assert caught.value.code.id == code


def main(names: Sequence[str]) -> None:
    """Compile models, each in a process of its own, and print their ends as JSON."""
    import tilewright as tw

    warnings.simplefilter("ignore")
    tw.compile(_model([_node("Neg", "x")], {"x": ("f", ["n"])}), cache=False, threads=1)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in names or FILES:
            path = Path(folder, "model.onnx")
            path.write_bytes(FILES[name]().SerializeToString())

            def action(path: Path = path) -> tuple[str, str]:
                module = tw.compile(path, cache=False, threads=1)
                return "compiled", "by reference" if module.by_reference else ""

            outcome = attempt(action, [Path(folder)], Limits(SECONDS, 1 << 40))
            found[name] = vars(outcome)
            if names or sys.stdout.isatty():
                shown = f"{outcome.cpu_s:.1f} s, {outcome.memory_bytes >> 20} MiB"
                print(f"{name}: {outcome.kind} {outcome.code} {shown}", file=sys.stderr)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
