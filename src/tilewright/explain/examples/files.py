"""M002 to M005, G070: model files that are not what they say, or ask for too much."""

from __future__ import annotations

from tilewright.explain.example import example
from tilewright.explain.examples.programs import MODEL

__all__ = ["EXAMPLES"]

EXTERNAL = f"""{MODEL}
import tempfile
from pathlib import Path

from onnx import numpy_helper

bias = numpy_helper.from_array(np.arange(8, dtype=np.float32), "bias")
model.graph.initializer.append(bias)
model.graph.node[0].CopyFrom(helper.make_node("Add", ["x", "bias"], ["y"]))


def beside(location):
    \"\"\"Compile the model with its weights in another file.\"\"\"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "bias.bin").write_bytes(bias.raw_data)
        (tensor,) = model.graph.initializer
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)
        file = Path(folder, "model.onnx")
        file.write_bytes(model.SerializeToString())
        return tw.compile(file, cache=False)
"""

EXAMPLES = (
    example(
        "M002",
        """The file is an ONNX model by its form, but contradicts itself: a tensor holds more or
        fewer elements than its dimensions ask for, two values of a graph have one name, a function
        leads back to itself, a name is no text.""",
        given=MODEL,
        wrong="""
        bias = TensorProto(name="bias", data_type=TensorProto.FLOAT, dims=[8], raw_data=bytes(31))
        model.graph.initializer.append(bias)
        tw.compile(model, cache=False)
        """,
        right="""
        bias = TensorProto(name="bias", data_type=TensorProto.FLOAT, dims=[8], raw_data=bytes(32))
        model.graph.initializer.append(bias)
        tw.compile(model, cache=False)
        """,
    ),
    example(
        "M003",
        """A tensor keeps its data in another file, which cannot be read: it is missing or too
        short, is no plain file, or lies outside of the model's folder, also by way of a link (a
        folder that may be linked to is named in `TILEWRIGHT_DATA_FOLDERS`). A model that is given
        as bytes has no folder: give its path.""",
        given=EXTERNAL,
        wrong='beside("../bias.bin")',
        right='beside("bias.bin")',
    ),
    example(
        "M005",
        """The model is larger than its file: functions that call each other many times, or graphs
        inside of each other, stand for more nodes than any model of that size needs. SECURITY.md
        lists all limits.""",
        given=MODEL,
        wrong="""
        def calls(name, callee, domain, count):
            names = ["a", *(f"v{k}" for k in range(1, count)), "b"]
            nodes = [helper.make_node(callee, [p], [q], domain=domain)
                     for p, q in zip(names, names[1:])]
            return helper.make_function("own", name, ["a"], ["b"], nodes, [])

        model.functions.append(calls("f0", "Relu", "", 8))
        for k in range(1, 8):
            model.functions.append(calls(f"f{k}", f"f{k - 1}", "own", 8))
        model.graph.node[0].CopyFrom(helper.make_node("f7", ["x"], ["y"], domain="own"))
        tw.compile(model, cache=False)
        """,
        right="tw.compile(model, cache=False)",
    ),
    example(
        "G070",
        """A tensor has more elements than can be counted in bytes, more than 32 dimensions, or a
        dimension that is negative.""",
        given="from tilewright.graph import Builder",
        wrong="""
        b = Builder("graph")
        b.expand(b.constant(1.0), (2**30, 2**30))
        """,
        right="""
        b = Builder("graph")
        b.expand(b.constant(1.0), (2**10, 2**10))
        """,
    ),
)
