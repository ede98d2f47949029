"""Files of megabytes that are made to take long, or much memory: as a program, prints a table.

python -m tests.hostile.large [NAME…]

Each stands for one thing of which there is very much, near a limit or beyond it. What it may take
is declared in `frontend/onnx/limits.py`.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from fuzz.hostile.trial import Limits, attempt

IMPORTS = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]


def _info(name: str, *dims: int | str, kind: int = 1) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, list(dims) or [4])


def _model(nodes: list[onnx.NodeProto], **parts: list[object]) -> bytes:
    inputs, outputs = parts.pop("inputs", [_info("x")]), parts.pop("outputs", [_info("y")])
    functions = parts.pop("functions", [])
    graph = helper.make_graph(nodes, "large", inputs, outputs, **parts)
    model = helper.make_model(graph, opset_imports=IMPORTS, ir_version=9, functions=functions)
    return bytes(model.SerializeToString())


def _chain(op: str, count: int, *more: str, domain: str = "") -> list[onnx.NodeProto]:
    names = ["x", *(f"v{k}" for k in range(count - 1)), "y"]
    pairs = itertools.pairwise(names)
    return [helper.make_node(op, [p, *more], [q], domain=domain) for p, q in pairs]


def _empties(*path: int, count: int = 3_000_000) -> bytes:
    """Empty messages at the end of a path of fields: two bytes each."""
    content = bytes([path[-1] << 3 | 2, 0]) * count
    for field in reversed(path[:-1]):
        content = bytes([field << 3 | 2]) + _varint(len(content)) + content
    return content


def _varint(number: int) -> bytes:
    found = b""
    while number > 127:
        found += bytes([number & 127 | 128])
        number >>= 7
    return found + bytes([number])


def _tensor(count: int, kind: int, **lists: object) -> bytes:
    tensor = TensorProto(name="w", data_type=kind, dims=[count], **lists)
    nodes = [helper.make_node("Identity", ["w"], ["y"])]
    return _model(nodes, inputs=[], outputs=[_info("y", count, kind=kind)], initializer=[tensor])


def _functions(count: int, *, in_line: bool) -> bytes:
    made = []
    for k in range(count):
        last = not in_line or k == count - 1
        op, domain = ("Neg", "") if last else (f"f{k + 1}", "own")
        body = [helper.make_node(op, ["a"], ["b"], domain=domain)]
        made.append(helper.make_function("own", f"f{k}", ["a"], ["b"], body, IMPORTS))
    return _model([helper.make_node("f0", ["x"], ["y"], domain="own")], functions=made)


def _expanded() -> bytes:
    """A function of a hundred nodes, called a thousand times."""
    names = ["a", *(f"v{k}" for k in range(99)), "b"]
    body = [helper.make_node("Neg", [p], [q]) for p, q in itertools.pairwise(names)]
    function = helper.make_function("own", "f", ["a"], ["b"], body, IMPORTS)
    return _model(_chain("f", 1000, domain="own"), functions=[function])


def _sparse() -> bytes:
    """Very many zeros that are not there."""
    values = numpy_helper.from_array(np.ones(1, np.float32), "w")
    indices = numpy_helper.from_array(np.arange(1), "at")
    made = helper.make_sparse_tensor(values, indices, [10**9])
    node = helper.make_node("Add", ["x", "w"], ["y"])
    return _model([node], inputs=[_info("x", 1)], sparse_initializer=[made])


def _folded() -> bytes:
    """Constants of a million elements each, made of one."""
    shape = helper.make_tensor("s", TensorProto.INT64, [1], [10**6])
    one = helper.make_tensor("v", TensorProto.FLOAT, [1], [1.5])
    nodes = [helper.make_node("Expand", ["v", "s"], [f"c{k}"]) for k in range(100)]
    nodes += [helper.make_node("Neg", [f"c{k}"], [f"y{k}"]) for k in range(100)]
    outputs = [_info(f"y{k}", 10**6) for k in range(100)]
    return _model(nodes, inputs=[], outputs=outputs, initializer=[shape, one])


def _ring(count: int) -> bytes:
    nodes = [helper.make_node("Neg", [f"v{(k + 1) % count}"], [f"v{k}"]) for k in range(count)]
    return _model(nodes, outputs=[_info("v0")])


WRONG = helper.make_node("Sharpen", ["x"], ["wrong"])

LARGE: dict[str, Callable[[], bytes]] = {
    "100,000 nodes, one of them wrong": lambda: _model([*_chain("Add", 100_000, "x"), WRONG]),
    "100,000 unknown operators": lambda: _model(_chain("Sharpen", 100_000)),
    "100,000 nodes in a ring": lambda: _ring(100_000),
    "a sum of 100,000": lambda: _model([helper.make_node("Sum", ["x"] * 100_000, ["y"])]),
    "a sum of 60,000 unknown ones": lambda: _model(
        [helper.make_node("Sum", [f"i{k}" for k in range(60_000)], ["y"])]
    ),
    "nodes": lambda: _empties(7, 1),
    "attributes": lambda: _empties(7, 1, 5),
    "inputs of a node": lambda: _empties(7, 1, 1),
    "weights": lambda: _empties(7, 5),
    "values": lambda: _empties(7, 13),
    "dimensions": lambda: _empties(7, 11, 2, 1, 2, 1),
    "metadata": lambda: _empties(14),
    "300,000 values": lambda: _model([WRONG], value_info=[_info(f"z{k}") for k in range(300_000)]),
    "10,000 functions": lambda: _functions(10_000, in_line=False),
    "10,000 functions in a line": lambda: _functions(10_000, in_line=True),
    "a hundred nodes, a thousand times": _expanded,
    "5,000,000 numbers of an attribute": lambda: _model(
        [helper.make_node("Neg", ["x"], ["y"], axes=list(range(5_000_000)))]
    ),
    "2,000,000 texts": lambda: _tensor(2_000_000, 8, string_data=[b""] * 2_000_000),
    "5,000,000 small numbers": lambda: _tensor(5_000_000, 3, int32_data=[1] * 5_000_000),
    "20 MB": lambda: _tensor(5_000_000, 1, raw_data=bytes(20_000_000)),
    "a sparse tensor": _sparse,
    "folded constants": _folded,
}
SLOW: dict[str, Callable[[], bytes]] = {
    "30,000 nodes": lambda: _model(_chain("Add", 30_000, "x")),
    "50,000 nodes that do nothing": lambda: _model(_chain("Identity", 50_000)),
    "2,000 readers": lambda: _model(
        [helper.make_node("Neg", ["x"], [f"v{k}"]) for k in range(2_000)]
        + [helper.make_node("Sum", [f"v{k}" for k in range(2_000)], ["y"])]
    ),
    "2,000,000 numbers of a constant": lambda: _model(
        [
            helper.make_node("Constant", [], ["c"], value_ints=[1] * 2_000_000),
            helper.make_node("Reshape", ["x", "c"], ["y"]),
        ]
    ),
}
"""Such that are accepted, and take as long as their nodes need; only memory is bounded."""


def main(names: list[str]) -> None:
    """Compile models, each in a process of its own, and print their ends as JSON."""
    import tilewright as tw

    warnings.simplefilter("ignore")
    tw.compile(_model([helper.make_node("Neg", ["x"], ["y"])]), cache=False, threads=1)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in names or LARGE:
            path = Path(folder, "model.onnx")
            path.write_bytes({**LARGE, **SLOW}[name]())
            size = path.stat().st_size

            def action(path: Path = path) -> tuple[str, str]:
                tw.compile(path, cache=False, threads=1)
                return "compiled", ""

            outcome = attempt(action, [Path(folder)], Limits(120.0, 1 << 40))
            found[name] = {**vars(outcome), "size": size}
            if sys.stdout.isatty():
                end = f"{outcome.kind} {outcome.code}"
                used = f"{outcome.cpu_s:6.2f} s {outcome.memory_bytes >> 20:6} MiB"
                print(f"{name:34} {size / 1e6:6.2f} MB {end:14} {used}", file=sys.stderr)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
