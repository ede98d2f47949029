"""Small models that ask for much: as a program, compiles each apart and prints what became of it.

python -m tests.hostile.bombs [NAME…]
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import onnx
from onnx import TensorProto, helper, parser

from fuzz.hostile.trial import Limits, attempt
from tests.hostile.crowds import CROWDS
from tests.hostile.listed import LISTED
from tests.hostile.long_sizes import LONG

HEAD = '<ir_version: 9, opset_import: ["" : 20, "own" : 1]>\n'

TEXTS = {
    "constant": "m () => (float[n] y) { y = ConstantOfShape (s) }|s=1000000000000",
    "constant summed": """m () => (float y) {
        c = ConstantOfShape (s)
        y = ReduceSum <keepdims = 0> (c)
    }|s=1000000,1000000""",
    "expand": "m (float x) => (float[n] y) { y = Expand (x, s) }|s=1000000000000",
    "expand constant": "m () => (float[n] y) { y = Expand (v, s) }|s=1000000000000",
    "tile": "m (float[4] x) => (float[n] y) { y = Tile (x, s) }|s=1000000000000",
    "tile constant": "m () => (float[n] y) { y = Tile (v, s) }|s=1000000000000",
    "range": "m () => (int64[n] y) { y = Range (zero, big, one) }",
    "range of floats": "m () => (float[n] y) { y = Range (fzero, fbig, fone) }",
    "range plus one": "m () => (int64[n] y) { r = Range (zero, big, one) y = Add (r, one) }",
    "one hot": "m (int64[3] x) => (float[3, n] y) { y = OneHot (x, big, onoff) }",
    "one hot constant": "m () => (float[3, n] y) { y = OneHot (three, big, onoff) }",
    "pad": "m (float[4] x) => (float[n] y) { y = Pad (x, s) }|s=1000000000000,1000000000000",
    "pad constant": "m () => (float[n] y) { y = Pad (v, s) }|s=1000000000000,0",
    "resize": """m (float[1,1,2,2] x) => (float[a,b,c,d] y) {
        y = Resize (x, , , s)
    }|s=1,1,1000000000,1000000000""",
    "resize linear": """m (float[1,1,2,2] x) => (float[a,b,c,d] y) {
        y = Resize <mode = "linear"> (x, , , s)
    }|s=1,1,100000,100000""",
    "conv transpose": """m (float[1,1,4,4] x, float[1,1,3,3] w) => (float[a,b,c,d] y) {
        y = ConvTranspose <strides = [1000000000, 1000000000]> (x, w)
    }""",
    "conv pads": """m (float[1,1,4,4] x, float[1,1,3,3] w) => (float[a,b,c,d] y) {
        y = Conv <pads = [1000000000, 1000000000, 1000000000, 1000000000]> (x, w)
    }""",
    "conv dilations": """m (float[1,1,4,4] x, float[1,1,3,3] w) => (float[a,b,c,d] y) {
        y = Conv <dilations = [1000000000, 1000000000]> (x, w)
    }""",
    "pool window": """m (float[1,1,h,w] x) => (float[a,b,c,d] y) {
        y = MaxPool <kernel_shape = [1000000, 1000000], pads = [999999, 999999, 999999, 999999]> (x)
    }""",
    "average window": """m (float[1,1,h,w] x) => (float[a,b,c,d] y) {
        y = AveragePool <kernel_shape = [100000, 100000]> (x)
    }""",
    "lrn": "m (float[1,8,h,w] x) => (float[1,8,h,w] y) { y = LRN <size = 999999999> (x) }",
    "top k": "m (float[8] x) => (float[n] y, int64[n] i) { y, i = TopK (x, s) }|s=1000000000000",
    "depth to space": """m (float[1,4,2,2] x) => (float[a,b,c,d] y) {
        y = DepthToSpace <blocksize = 1000000000> (x)
    }""",
    "split": "m (float[8] x) => (float[n] y) { y = Split <num_outputs = 1000000000> (x) }",
    "hann": "m () => (float[n] y) { y = HannWindow (big) }",
    "random": "m () => (float[n] y) { y = RandomNormal <shape = [1000000, 1000000]> () }",
    "eye": "m (float[1000000,1000000] x) => (float[a,b] y) { y = EyeLike <dtype = 1> (x) }",
    "trilu": """m () => (float[a,b] y) {
        c = ConstantOfShape (s)
        y = Trilu (c)
    }|s=1000000,1000000""",
    "einsum": """m () => (float[a,b] y) {
        c = ConstantOfShape (s)
        y = Einsum <equation = "i,j->ij"> (c, c)
    }|s=1000000""",
    "product": """m () => (int64[a,b] y) {
        c = ConstantOfShape <value = int64[1] {3}> (s)
        y = MatMul (c, c)
    }|s=4096,4096""",
    "rank": "m (float[1] x) => (float[n] y) { y = Reshape (x, s) }|s=" + ",".join(["1"] * 1000),
    "axes": "m (float[1] x) => (float[n] y) { y = Unsqueeze (x, s) }|s="
    + ",".join(map(str, range(1000))),
    "shape of many": """m (float[1] x) => (float[n] y) {
        c = ConstantOfShape <value = int64[1] {1}> (s)
        y = Reshape (x, c)
    }|s=4000000""",
    "endless loop": """m () => (int64 y) {
        y = Loop (big, yes, zero) <
            body = b (int64 i, bool c, int64 v) => (bool d, int64 w) {
                d = Identity (c) w = Add (v, v)
            }
        >
    }""",
    "endless loop of nothing": """m () => (int64 y) {
        y = Loop (, yes, zero) <
            body = b (int64 i, bool c, int64 v) => (bool d, int64 w) {
                d = Identity (c) w = Neg (v)
            }
        >
    }""",
    "long recurrence": """m (float[1000000000,1,4] x, float[1,4,4] w, float[1,4,4] r)
        => (float[1,1,4] h) {
        y, h = RNN <hidden_size = 4> (x, w, r)
    }""",
    "long scan": """m (float s, float[1000000000] x) => (float t, float[n] y) {
        t, y = Scan <num_scan_inputs = 1,
            body = b (float s0, float v) => (float s1, float o) { s1 = Add (s0, v) o = Neg (v) }
        > (s, x)
    }""",
    "function of itself": """m (float[n] x) => (float[n] y) { y = own.f (x) }
    <domain: "own", opset_import: ["" : 20, "own" : 1]> f (a) => (b) { b = own.f (a) }""",
    "functions of each other": """m (float[n] x) => (float[n] y) { y = own.f (x) }
    <domain: "own", opset_import: ["" : 20, "own" : 1]> f (a) => (b) { b = own.g (a) }
    <domain: "own", opset_import: ["" : 20, "own" : 1]> g (a) => (b) { b = own.f (a) }""",
}

SCALARS = {"zero": (7, 0), "one": (7, 1), "big": (7, 10**12), "yes": (9, True)}
SCALARS_F = {"fzero": (1, 0.0), "fbig": (1, 1e12), "fone": (1, 1.0)}


def _model(text: str) -> onnx.ModelProto:
    body, _, numbers = text.partition("|s=")
    model = parser.parse_model(HEAD + body)
    read = {name for node in model.graph.node for name in node.input}
    tensors = [
        helper.make_tensor(name, kind, [], [value])
        for name, (kind, value) in {**SCALARS, **SCALARS_F}.items()
    ]
    tensors.append(helper.make_tensor("v", TensorProto.FLOAT, [1], [1.5]))
    tensors.append(helper.make_tensor("three", TensorProto.INT64, [3], [0, 1, 2]))
    tensors.append(helper.make_tensor("onoff", TensorProto.FLOAT, [2], [0.0, 1.0]))
    if numbers:
        values = [int(n) for n in numbers.split(",")]
        tensors.append(helper.make_tensor("s", TensorProto.INT64, [len(values)], values))
    model.graph.initializer.extend(tensor for tensor in tensors if tensor.name in read)
    return model


def doubled() -> onnx.ModelProto:
    """A tensor joined with itself, sixty times over."""
    lines = [f"v{k + 1} = Concat <axis = 0> (v{k}, v{k})" for k in range(60)]
    text = "m () => (float[n] y) {\n v0 = Neg (v)\n" + "\n".join(lines) + "\n y = Neg (v60)\n}"
    return _model(text)


def laughing() -> onnx.ModelProto:
    """Functions that call the next one ten times, nine deep."""
    head = '<domain: "own", opset_import: ["" : 20, "own" : 1]>\n'
    parts = ["m (float[n] x) => (float[n] y) { y = own.f0 (x) }"]
    for level in range(9):
        callee = f"own.f{level + 1}" if level < 8 else "Relu"
        names = [f"v{k}" for k in range(11)]
        calls = "\n".join(f"{q} = {callee} ({p})" for p, q in itertools.pairwise(names))
        parts.append(f"{head} f{level} (v0) => (v10) {{\n{calls}\n}}")
    return _model("\n".join(parts))


def nested_loops() -> onnx.ModelProto:
    """Loops of constants inside of each other: every body can be folded, and is tried again."""
    inner = helper.make_node("Add", ["v", "v"], ["w"])
    for _ in range(9):
        body = helper.make_graph(
            [inner, helper.make_node("Identity", ["c"], ["d"])],
            "body",
            [helper.make_tensor_value_info(n, k, []) for n, k in (("i", 7), ("c", 9), ("v", 7))],
            [helper.make_tensor_value_info(n, k, []) for n, k in (("d", 9), ("w", 7))],
        )
        inner = helper.make_node("Loop", ["trips", "yes", "v"], ["w"], body=body)
    inner.input[2] = "zero"
    tensors = [helper.make_tensor(n, 7, [], [v]) for n, v in (("trips", 16), ("zero", 0))]
    tensors.append(helper.make_tensor("yes", 9, [], [True]))
    result = [helper.make_tensor_value_info("w", 7, [])]
    graph = helper.make_graph([inner], "m", [], result, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def nested_branches(depth: int = 30) -> onnx.ModelProto:
    """Branches inside of branches, as deep as protobuf allows."""
    result = [helper.make_tensor_value_info("y", 1, [4])]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "leaf", [], result)
    other = helper.make_graph([helper.make_node("Abs", ["x"], ["y"])], "leaf", [], result)
    for _ in range(depth):
        node = helper.make_node("If", ["c"], ["y"], then_branch=graph, else_branch=other)
        graph = helper.make_graph([node], "g", [], result)
    inputs = [("x", 1, [4]), ("c", 9, [])]
    graph.input.extend(helper.make_tensor_value_info(*i) for i in inputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def differing_ranks() -> onnx.ModelProto:
    """Conditions whose branches differ in rank, one behind the other: what follows is doubled."""
    lines = [
        f"""v{k + 1} = If (c) <
            then_branch = a{k} () => (float[n] p{k}) {{ p{k} = Neg (v{k}) }},
            else_branch = b{k} () => (float[n, m] q{k}) {{ q{k} = Unsqueeze (v{k}, zero1) }}
        >"""
        for k in range(14)
    ]
    text = "m (float[n] v0, bool c, int64[1] zero1) => (float[k] y) {\n"
    return _model(text + "\n".join(lines) + "\n y = Abs (v14)\n}")


def sparse() -> onnx.ModelProto:
    """A weight with one element that is not zero, of 10¹⁸."""
    model = _model("m (float x) => (float[n, m] y) { y = Add (x, w) }")
    values = helper.make_tensor("w", 1, [1], [1.0])
    indices = helper.make_tensor("w_at", 7, [1], [5])
    made = helper.make_sparse_tensor(values, indices, [10**9, 10**9])
    model.graph.sparse_initializer.append(made)
    return model


def long_chain() -> onnx.ModelProto:
    """Three thousand operators of single elements in a row: deep expressions."""
    lines = [f"v{k + 1} = Mul (v{k}, x)" for k in range(3000)]
    return _model("m (float[4] x, float[4] v0) => (float[4] v3000) {\n" + "\n".join(lines) + "\n}")


BOMBS: dict[str, Callable[[], onnx.ModelProto]] = {
    **{name: (lambda text=text: _model(text)) for name, text in TEXTS.items()},  # type: ignore[misc]
    "doubled": doubled,
    "laughing functions": laughing,
    "nested loops": nested_loops,
    "nested branches": nested_branches,
    "differing ranks": differing_ranks,
    "sparse": sparse,
    "long chain": long_chain,
    **CROWDS,
    **LONG,
    **LISTED,
}


def main(names: list[str]) -> None:
    """Compile models, each in a process of its own, and print their ends as JSON."""
    import tilewright as tw

    warnings.simplefilter("ignore")
    tw.compile(_model("m (float[n] x) => (float[n] y) { y = Neg (x) }"), cache=False, threads=1)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in names or BOMBS:
            path = Path(folder, "model.onnx")
            path.write_bytes(BOMBS[name]().SerializeToString())

            def action(path: Path = path) -> tuple[str, str]:
                tw.compile(path, cache=False, threads=1)
                return "compiled", ""

            outcome = attempt(action, [Path(folder)], Limits(memory_bytes=1 << 40))
            found[name] = vars(outcome)
            if sys.stdout.isatty():
                print(name, outcome, file=sys.stderr)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
