"""M, C3, A12: models that cannot be read, compiled, saved or run."""

from __future__ import annotations

from tilewright.explain.example import example
from tilewright.explain.examples.programs import MODEL

__all__ = ["EXAMPLES"]

SEQUENCE = """
from onnx import TensorProto, helper

from tilewright.frontend.onnx.reference.whole import WholeModel
from tilewright.model.whole import WholeModule

parts = helper.make_tensor_sequence_value_info("parts", TensorProto.FLOAT, None)
whole = helper.make_tensor_value_info("whole", TensorProto.FLOAT, ["n"])
node = helper.make_node("ConcatFromSequence", ["parts"], ["whole"], axis=0)
graph = helper.make_graph([node], "joined", [parts], [whole])
opset = helper.make_opsetid("", 20)
model = helper.make_model(graph, opset_imports=[opset])
module = WholeModule(WholeModel(model, "the input `parts` is a sequence"))
vectors = [np.ones(2, np.float32), np.zeros(3, np.float32)]
"""

EXAMPLES = (
    example(
        "M001",
        """The file is missing, cut off, or something else than an ONNX model. A compiled model
        (`.tw`) is opened by `tilewright.load`.""",
        given=MODEL,
        wrong='tw.compile(b"not a model", cache=False)',
        right="tw.compile(model.SerializeToString(), cache=False)",
    ),
    example(
        "M004",
        """Nobody knows these operators, or the nodes contradict their definition: attributes,
        shapes, or names that nothing computes. All such nodes of the model are named at once, by
        operator and reason, each with the graph in which it stands and what it reads;
        `error.nodes` has them as values.""",
        given=MODEL,
        wrong="""
        bias = helper.make_tensor("bias", TensorProto.FLOAT, [3], [1, 2, 3])
        model.graph.initializer.append(bias)
        add = helper.make_node("Add", ["x", "bias"], ["y"], "biased")
        other = helper.make_node("Sharpen", ["x"], ["z"], domain="com.example")
        del model.graph.node[:]
        model.graph.node.extend([add, other])
        tw.compile(model, cache=False)
        """,
        right="""
        bias = helper.make_tensor("bias", TensorProto.FLOAT, [8], range(8))
        model.graph.initializer.append(bias)
        model.graph.node[0].CopyFrom(helper.make_node("Add", ["x", "bias"], ["y"]))
        tw.compile(model, cache=False)
        """,
    ),
    example(
        "M010",
        """The interface of ONNX backends names devices; models run on the CPU.""",
        given=f"{MODEL}\nfrom tilewright import backend",
        wrong='backend.prepare(model, "CUDA")',
        right='backend.prepare(model, "CPU")',
    ),
    example(
        "M011",
        """Inputs without names are taken in the order of the model, and there must be as many.""",
        given=f"{MODEL}\nfrom tilewright import backend\n\nx = np.ones((2, 8), np.float32)",
        wrong="backend.run_model(model, [x, x])",
        right="backend.run_model(model, [x])",
    ),
    example(
        "C301",
        """A model that runs by reference as a whole misses one of its inputs.""",
        given=SEQUENCE,
        wrong="module.run({})",
        right='module.run({"parts": vectors})',
    ),
    example(
        "C302",
        """The model takes a way on which it cannot go on: for these inputs, a branch of it leads to
        an operator that does not fit what it is given.""",
        given="""
        from tilewright.frontend.onnx.control import fails
        from tilewright.graph import Builder, TensorType, interpret

        b = Builder("branches")
        x = b.input("x", tw.f32, (2, 3))
        (y,) = fails(b, "Squeeze of a dimension of size 3", [TensorType(tw.f32, x.shape)])
        """,
        wrong='interpret(b.graph([y]), {"x": np.ones((2, 3))})',
        right='interpret(b.graph([x]), {"x": np.ones((2, 3))})',
    ),
    example(
        "A120",
        """The file needs a Python function of a kind that this version does not know, because a
        later version wrote it. Kernels never need one; nodes that run on the ONNX reference
        implementation do.""",
        given="""
        import tempfile
        from pathlib import Path

        from tilewright.runtime.artefact import Parts, save
        from tilewright.runtime.codec import to_json
        from tilewright.runtime.program import Program


        def loaded(*functions):
            program = to_json(Program("empty", (), (), (), (), (), ()))
            extra = {"functions": functions, "by_reference": [], "threads": 1}
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder, "model.tw")
                save(file, Parts(program, b"", [], tw.Target.host(), "tilewright 9.0", extra))
                return tw.load(file)
        """,
        wrong='loaded({"kind": "oracle", "payload": "", "title": "Guess"})',
        right="loaded()",
    ),
    example(
        "A122",
        """The model in the file is compiled when it runs, for the values of some inputs, and what
        the file says about that is not complete, or is about other inputs than the model has.""",
        given=f"""{MODEL}
from tempfile import TemporaryDirectory
from pathlib import Path

from tilewright.model.settled_file import save_settled
from tilewright.model.compilation import Unsettled
from tilewright.model.compiler import Compiling
from tilewright.frontend.onnx.settled import Needs


def saved(*names):
    how = Compiling(tw.Target.host(), 1, "default", "auto")
    with TemporaryDirectory() as folder:
        file = Path(folder, "model.tw")
        save_settled(file, Unsettled(model, Needs(names), how))
        return tw.load(file)
""",
        wrong='saved("axes")',
        right='saved("x")',
    ),
    example(
        "A121",
        """A file of a compiled model holds tensors and what is computed of them. This model has
        other values, such as sequences or strings, and runs on the ONNX reference implementation
        as a whole. Keep its ONNX file.""",
        given=SEQUENCE,
        wrong='module.save("joined.tw")',
        right='module.run({"parts": vectors})',
    ),
)
