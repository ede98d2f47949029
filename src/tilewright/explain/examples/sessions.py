"""K02, K03, K04, K06, C03: compiling, sessions, and the command line on models."""

from __future__ import annotations

from tilewright.explain.example import example
from tilewright.explain.examples.programs import MODEL

__all__ = ["EXAMPLES"]

SESSION = f"""{MODEL}
settings = tw.SessionOptions()
settings.add_session_config_entry("tilewright.cache", "off")
x = np.ones((2, 8), np.float32)
"""
INPUTS = """
from tilewright.feeds.inputs import arrays_for
from tilewright.model.info import TensorInfo

inputs = [TensorInfo("x", tw.f32, ("rows", 8), "tensor(float)")]
"""
COMMAND = f"""{MODEL}
import tempfile
from pathlib import Path

import onnx

from tilewright.cli import main


def command(name, file, *rest):
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model, Path(folder, "small.onnx"))
        tw.compile(model, cache=False).save(Path(folder, "small.tw"))
        main(["--debug", name, str(Path(folder, file)), "--no-cache", *rest])
"""

EXAMPLES = (
    example(
        "K020",
        """`compile` does not know this value of an argument. `accuracy` is `"default"` or
        `"strict"`; `database` is the path of a file that is there, a `Database`, or False. A model
        is a path, the bytes of a file, or an `onnx.ModelProto`.""",
        given=MODEL,
        wrong='tw.compile(model, accuracy="best", cache=False)',
        right='tw.compile(model, accuracy="strict", cache=False)',
    ),
    example(
        "K030",
        """Settings of a session have the names that ONNX Runtime gives them; a mistyped one would
        have no effect and is refused. Entries that begin with `tilewright.` are arguments of
        `tilewright.compile`: accuracy, cache, layouts and target.""",
        given="settings = tw.SessionOptions()",
        wrong="settings.intra_op_threads = 2",
        right="settings.intra_op_num_threads = 2",
    ),
    example(
        "K031",
        """The setting cannot have this value. Threads are counted; 0 leaves the number to
        tilewright.""",
        given="settings = tw.SessionOptions()",
        wrong='settings.intra_op_num_threads = "all"',
        right="settings.intra_op_num_threads = 0  # all that this process may use",
    ),
    example(
        "K032",
        """A library of custom operators holds kernels for ONNX Runtime, which nothing else can
        call. Operators that are ONNX functions of the model itself need no library.""",
        given="settings = tw.SessionOptions()",
        wrong='settings.register_custom_ops_library("custom.so")',
        right="settings.intra_op_num_threads = 1",
    ),
    example(
        "K040",
        """There is no file at this path. Commands on models take an ONNX file, or a compiled model
        (`.tw`).""",
        wrong="$ tilewright doctor missing.tw",
        right="$ tilewright doctor",
    ),
    example(
        "K041",
        """Sizes and arrays are given by name on the command line: `--size rows=2`,
        `--input x=x.npy`.""",
        given=INPUTS,
        wrong='arrays_for(inputs, given=[], sizes=["rows"])  # --size rows',
        right='arrays_for(inputs, given=[], sizes=["rows=2"])  # --size rows=2',
    ),
    example(
        "K042",
        """The model has no input or symbolic size of this name. `tilewright show` prints those it
        has.""",
        given=INPUTS,
        wrong='arrays_for(inputs, given=[], sizes=["row=2"])  # --size row=2',
        right='arrays_for(inputs, given=[], sizes=["rows=2"])  # --size rows=2',
    ),
    example(
        "K043",
        """An input is a file that `numpy.save` wrote, without Python objects, or numbers as they
        stand: `--input sr=16000`, `--input x=[1,2]`.""",
        given=INPUTS,
        wrong='arrays_for(inputs, given=["x=missing.npy"], sizes=[])  # --input x=missing.npy',
        right='arrays_for(inputs, given=["x=[[1, 2]]"], sizes=[])  # --input x=[[1,2]]',
    ),
    example(
        "K044",
        """Arrays are made up for tensors of numbers. Strings, sequences and optionals come from a
        program of yours.""",
        given=INPUTS,
        wrong="""
        words = TensorInfo("words", None, ("n",), "tensor(string)")
        arrays_for([words], given=[], sizes=[])
        """,
        right="arrays_for(inputs, given=[], sizes=[])",
    ),
    example(
        "K045",
        """`tilewright bench --help` lists the engines that a model can be compared with. One that
        is known but not installed is left out.""",
        wrong="$ tilewright bench model.onnx --against tensorflow",
        right="""
        from tilewright.contest.engines import ENGINES

        assert "onnxruntime" in ENGINES
        """,
    ),
    example(
        "K046",
        """A compiled model holds kernels and no operators; a model that runs by reference as a
        whole has no kernels.""",
        given=COMMAND,
        wrong='command("show", "small.tw", "--graph")',
        right='command("show", "small.onnx", "--graph")',
    ),
    example(
        "K047",
        """Kernels of a model are numbered from 0, in the order in which they are first used.""",
        given=COMMAND,
        wrong='command("show", "small.onnx", "--stage", "program", "--kernel", "7")',
        right='command("show", "small.onnx", "--stage", "program", "--kernel", "0")',
    ),
    example(
        "K048",
        """A file is written beside its place first, and then put there: the folder must exist, one
        must be allowed to write in it, and there must be room on the disk. What is no regular file,
        such as a pipe or a device, is not replaced.""",
        wrong="$ tilewright compile model.onnx --output missing/model.tw",
        right="""
        from pathlib import Path

        assert Path("model.tw").parent.is_dir()
        """,
    ),
    example(
        "K049",
        """What a command prints could not be written: the disk is full, or the device refuses it. A
        reader that has seen enough, as `| head`, is no error.""",
        given="""
        import contextlib

        from tilewright.cli.output import flush, say


        def print_to(path):
            with open(path, "w") as file, contextlib.redirect_stdout(file):
                say("results")
                flush()
        """,
        wrong='print_to("/dev/full")',
        right='print_to("/dev/null")',
    ),
    example(
        "K050",
        """A compiled model holds machine code for tilewright. Whoever compiles it again, or lets
        another engine run it, needs the ONNX file.""",
        given=COMMAND,
        wrong='command("compile", "small.tw")',
        right='command("run", "small.tw")',
    ),
    example(
        "K060",
        """`layouts` is `"auto"`, or the layout that all feature maps get wherever a kernel has it:
        channels last (`nhwc`), channels first (`nchw`), or first in blocks (`nchw8c`).""",
        given=MODEL,
        wrong='tw.compile(model, layouts="nchw8", cache=False)',
        right='tw.compile(model, layouts="nchw8c", cache=False)',
    ),
    example(
        "C030",
        """Models and their arrays are in main memory.""",
        given="x = np.ones((2, 8), np.float32)",
        wrong='tw.OrtValue.ortvalue_from_numpy(x, "cuda")',
        right='tw.OrtValue.ortvalue_from_numpy(x, "cpu")',
    ),
    example(
        "C031",
        """An element type is a NumPy type, its name, or its number in ONNX. Strings and other
        objects are no elements of a tensor here.""",
        wrong="tw.OrtValue.ortvalue_from_shape_and_type([2, 8], object)",
        right="tw.OrtValue.ortvalue_from_shape_and_type([2, 8], np.float32)",
    ),
    example(
        "C032",
        """The options of the run say that it is to end. A run that is under way is not interrupted:
        it takes as long as it takes.""",
        given=f"""{SESSION}
session = tw.InferenceSession(model.SerializeToString(), settings)
options = tw.RunOptions()
""",
        wrong="""
        options.terminate = True
        session.run(None, {"x": x}, options)
        """,
        right='session.run(None, {"x": x}, options)',
    ),
    example(
        "C033",
        """A session is made from a path, from the bytes of an ONNX file, or from a `ModelProto`. A
        compiled model is given by its path, since it is mapped and not read.""",
        given=SESSION,
        wrong="tw.InferenceSession(x, settings)",
        right="tw.InferenceSession(model.SerializeToString(), settings)",
    ),
    example(
        "C034",
        """A value may be a list: of tensors, or of maps from classes to scores. It has no shape, no
        element type and no memory of its own then.""",
        given="value = tw.OrtValue([np.ones(2, np.float32), np.ones(3, np.float32)])",
        wrong="value.shape()",
        right="[tensor.shape for tensor in value.numpy()]",
    ),
    example(
        "C035",
        """An input that has a default is a constant of the compiled model. A run that gives another
        value needs a version of the model that has it as an input, which is compiled when it is
        first asked for: from the ONNX model, which a compiled file does not have, and which must
        not have changed since.""",
        given="""
import tempfile
from pathlib import Path

import onnx.parser

added = onnx.parser.parse_model('''
    <ir_version: 8, opset_import: ["" : 17]>
    added (float[n] x, float[1] w = {1.0}) => (float[n] y) { y = Add(x, w) }''')
module = tw.compile(added, cache=False)
x, w = np.ones(3, np.float32), np.full(1, 2, np.float32)
with tempfile.TemporaryDirectory() as folder:
    module.save(Path(folder, "added.tw"))
    loaded = tw.load(Path(folder, "added.tw"))
""",
        wrong='loaded.run({"x": x, "w": w})',
        right='(loaded.run({"x": x}), module.run({"x": x, "w": w}))',
    ),
)
