"""K and O: the stages of the path, the command line, and the environment."""

from __future__ import annotations

from tilewright.explain.example import example
from tilewright.explain.examples.programs import PIPELINE

__all__ = ["EXAMPLES"]


EXAMPLES = (
    example(
        "K001",
        """The path has no stage of this name. `tilewright show --list` prints all of them in
        order.""",
        given=PIPELINE,
        wrong='pipeline.run(library.add(4, 6), until="asm")',
        right='pipeline.run(library.add(4, 6), until="assembly")',
    ),
    example(
        "K002",
        """The path goes one way: from the text of a stage only later stages can be made, and object
        code has no text. The tensor programs and the LLVM stage can be resumed from.""",
        given=f"""
        {PIPELINE}
        text = pipeline.run(library.add(4, 6), until="llvm").text
        """,
        wrong='pipeline.resume("llvm", text, until="scheduled")',
        right='pipeline.resume("llvm", text, until="assembly")',
    ),
    example(
        "K003",
        """The schedule of a build is a `Trace`, `"draft"` for the one that the compiler chooses, or
        `"none"`. A trace that was stored as JSON is read by `Trace.from_json`.""",
        given="""
        s = tw.Schedule(library.add(4, 6))
        s.parallel("i")
        stored = s.trace.to_json()
        """,
        wrong="tw.build(library.add(4, 6), trace=stored)",
        right="tw.build(library.add(4, 6), trace=tw.Trace.from_json(stored))",
    ),
    example(
        "K004",
        """A kernel runs on a whole number of threads, at least one. Leave it out for the default,
        which is what the process may use. A model runs on at most eight for each processor of the
        machine, or 64.""",
        given="program = library.add(4, 6)",
        wrong="tw.build(program, threads=0)",
        right="tw.build(program, threads=1)",
    ),
    example(
        "K005",
        """`build` takes a program and a target. A tensor is not a program yet: `tw.func` says what
        its inputs and outputs are. A schedule is given by its trace.""",
        given="""
        A = tw.placeholder("A", (8,))
        C = tw.compute("C", (8,), lambda i: A[i] * 2.0)
        """,
        wrong="tw.build(C)",
        right='tw.build(tw.func("double", [A], [C]))',
    ),
    example(
        "K006",
        """Only inputs can be constants of a kernel: arrays that are known ahead and packed once.
        The error lists the inputs.""",
        given="b = np.ones((8, 6), np.float32)",
        wrong='tw.build(library.matmul(4, 6, 8), constants={"W": b})',
        right='tw.build(library.matmul(4, 6, 8), constants={"B": b})',
    ),
    example(
        "K010",
        """There is no ready program of this name; `tilewright show --list` has all. A file needs
        its ending to be taken for one.""",
        wrong="$ tilewright show gemm:8,8,8",
        right="$ tilewright show matmul:8,8,8",
    ),
    example(
        "K011",
        """The sizes behind the colon do not fit the ready program: their number is wrong, or a
        value makes no sense for it. Sizes are separated by commas; a word is a symbolic size.""",
        wrong="$ tilewright show matmul:8,8",
        right="$ tilewright show matmul:8,8,n",
    ),
    example(
        "K012",
        """A file that was named cannot be read; the system says why. A name without an ending is
        taken for a ready program instead.""",
        wrong="$ tilewright show matmul.tir",
        right="$ tilewright show matmul:8,8,8",
    ),
    example(
        "K013",
        """There is no error of this code. A code is a letter and three digits, as in the first line
        of an error; without one, `tilewright explain` lists all.""",
        wrong="$ tilewright explain V999",
        right="$ tilewright explain V103",
    ),
    example(
        "K014",
        """A folder was named, or a file of another kind. The ending says what a file is: models are
        `.onnx`, or `.tw` once they are compiled, programs are `.tir` and `.ll`.""",
        wrong="$ tilewright show .",
        right="$ tilewright show matmul:8,8,8",
    ),
    example(
        "O001",
        """An environment variable is set to something that cannot be used. It is refused at once,
        because a default in its place would show only as strange timings.""",
        given="from tilewright.options import num_threads",
        wrong='num_threads({"TILEWRIGHT_NUM_THREADS": "four"})  # the environment of the process',
        right='num_threads({"TILEWRIGHT_NUM_THREADS": "4"})',
    ),
)
