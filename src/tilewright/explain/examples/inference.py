"""C02, A2: running whole models, and programs that are not well formed."""

from __future__ import annotations

from tilewright.explain.example import example

__all__ = ["EXAMPLES"]

GIVEN = """
from types import SimpleNamespace

from tilewright.runtime.executable import Executable
from tilewright.runtime.program import Buffer, Place, Port, Program, Size, SizeOp

BYTES = ((SizeOp.SIZE, 0), (SizeOp.CONST, 4), (SizeOp.MUL, 0))


def model_of(*parts, sizes=(), **more):
    # A model that returns its input x.
    x = Buffer("x", Place.INPUT, BYTES)
    port = ("x", tw.f32, (-1,), ("n",), 0)
    program = Program(
        "echo", (Port(*port), *more.get("inputs", ())), (Port(*port),), (Size("n"), *sizes),
        (x, *parts), (), (),
    )
    return Executable(program, SimpleNamespace(address=0))


x = np.ones(3, np.float32)
"""
ECHO = f"{GIVEN}\nmodel = model_of()\n"
DATA = """
from tilewright.runtime.codec import from_json, to_json
from tilewright.runtime.program import Program

data = to_json(Program("empty", (), (), (), (), (), ()))
"""

EXAMPLES = (
    example(
        "C021",
        """A model needs an array for each of its inputs, by name.""",
        given=ECHO,
        wrong="model.run({})",
        right='model.run({"x": x})',
    ),
    example(
        "C022",
        """The model has no input or output of this name. The text lists those it has, and asks
        whether one with a similar name is meant.""",
        given=ECHO,
        wrong='model.run({"x": x, "xs": x})',
        right='model.run({"x": x})',
    ),
    example(
        "C023",
        """More than one thing is wrong with the arrays of a call. All of them are listed, each with
        its own code.""",
        given=ECHO,
        wrong='model.run({"X": x})',
        right='model.run({"x": x})',
    ),
    example(
        "C024",
        """Some sizes of inputs follow from others: a mask may need as many elements as two other
        arrays have together. This array has another size.""",
        given=f"""{GIVEN}
twice = Size("2n", ((SizeOp.SIZE, 0), (SizeOp.CONST, 2), (SizeOp.MUL, 0)))
y = Buffer("y", Place.INPUT, ((SizeOp.SIZE, 1), (SizeOp.CONST, 4), (SizeOp.MUL, 0)))
model = model_of(y, sizes=[twice], inputs=[Port("y", tw.f32, (-2,), ("2n",), 1)])
""",
        wrong='model.run({"x": x, "y": np.ones(5, np.float32)})',
        right='model.run({"x": x, "y": np.ones(6, np.float32)})',
    ),
    example(
        "C025",
        """The model is not made for arrays of these sizes: a sound is shorter than a frame, or two
        sizes differ that must be equal. Pass others; on the command line, `--size samples=16000`
        chooses sizes of made up arrays. Where sizes are broadcast, one may be 1, unless the model
        comes from a compiled file, which has no version for that.""",
        given="""
        from onnx import TensorProto, helper

        sound = helper.make_tensor_value_info("sound", TensorProto.FLOAT, [1, 1, "samples"])
        means = helper.make_tensor_value_info("means", TensorProto.FLOAT, None)
        frames = helper.make_node(
            "AveragePool", ["sound"], ["means"], kernel_shape=[400], strides=[160]
        )
        graph = helper.make_graph([frames], "frames", [sound], [means])
        opsets = [helper.make_opsetid("", 18)]
        model = tw.compile(helper.make_model(graph, opset_imports=opsets), cache=False)
        """,
        wrong="model.run(np.zeros((1, 1, 100), np.float32))",
        right="model.run(np.zeros((1, 1, 16000), np.float32))",
    ),
    example(
        "C026",
        """The system has not enough memory for the arrays between the operators of the model, or
        for its results. The text says how much is needed.""",
        given=f"""{GIVEN}
vast = ((SizeOp.SIZE, 0), (SizeOp.CONST, 1 << 58), (SizeOp.MUL, 0))
model = model_of(Buffer("vast", Place.OUTPUT, vast))
""",
        wrong='model.run({"x": x})',
        right='model.run({"x": x[:0]})',
    ),
    example(
        "C027",
        """Inputs are given by name in a dictionary, in order in a list with an array for each, or,
        for a model with one input, as that array. The numbers of arrays and inputs differ, or an
        input is given twice.""",
        given=ECHO,
        wrong="model.run([x, x])",
        right="""
        model.run({"x": x})
        model.run([x])
        model.run(x)
        """,
    ),
    example(
        "A201",
        """A compiled model says something that cannot be, such as a step that uses an array which
        does not exist. The file was changed, or there is a bug in the compiler.""",
        given=DATA,
        wrong='from_json({**data, "segments": 0})',
        right="from_json(data)",
    ),
    example(
        "A202",
        """A compiled model is not written in the form that this runtime reads: a part is missing,
        or is of another type.""",
        given=DATA,
        wrong='from_json({**data, "steps": None})',
        right="from_json(data)",
    ),
    example(
        "A203",
        """The form of compiled models has changed between the version that wrote this one and the
        version that reads it. Compiling it again mends that.""",
        given=DATA,
        wrong='from_json({**data, "version": 0})',
        right="from_json(data)",
    ),
    example(
        "A204",
        """The parts of a compiled model do not fit each other: a part of an array is outside of it,
        a kernel is not in the machine code, a step needs something that no step makes, or the
        weights are those of another model.""",
        given=GIVEN,
        wrong="""
        part = Buffer("part", Place.PART, BYTES, parent=0, offset=((SizeOp.CONST, 4),))
        model_of(part).run({"x": x})
        """,
        right="""
        part = Buffer("part", Place.PART, BYTES, parent=0, offset=((SizeOp.CONST, 0),))
        model_of(part).run({"x": x})
        """,
    ),
)
