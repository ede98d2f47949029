"""T: machines, their features, and code that they do not have."""

from __future__ import annotations

from tilewright.explain.example import example
from tilewright.explain.examples.programs import MODEL

__all__ = ["EXAMPLES"]

FOREIGN = f"""
from pathlib import Path
from tempfile import TemporaryDirectory
{MODEL}
x = np.ones((2, 8), np.float32)
module = tw.compile(model, target="riscv64", cache=False)
"""

EXAMPLES = (
    example(
        "T001",
        """No machine of this name is described. Names are `host`, levels of an architecture, and
        some processors.""",
        wrong='tw.Target.named("x86-64-v5")',
        right='tw.Target.named("x86-64-v4")',
    ),
    example(
        "T002",
        """The architecture has no such feature. Features are called as LLVM calls them, and
        switched by `+` and `-` behind the name.""",
        wrong='tw.Target.named("aarch64+avx2")',
        right='tw.Target.named("aarch64+dotprod")',
    ),
    example(
        "T003",
        """The text is not a name with switches behind it.""",
        wrong='tw.Target.named("x86-64-v3 with fma")',
        right='tw.Target.named("x86-64-v3+fma")',
    ),
    example(
        "T004",
        """Code for a target runs on machines that have its architecture and all its features.
        `build` makes a kernel to be called in this process, so it asks this of the host.""",
        given="""
        new, old = tw.Target.named("x86-64-v4"), tw.Target.named("x86-64-v3")
        """,
        wrong="new.require_runs_on(old)",
        right="old.require_runs_on(new)",
    ),
    example(
        "T005",
        """The description of a target, for example from a file, lacks an entry or has one that
        makes no sense. `to_dict` writes what `from_dict` reads.""",
        given='data = tw.Target.named("x86-64-v3").to_dict()',
        wrong="""
        del data["caches"]
        tw.Target.from_dict(data)
        """,
        right="tw.Target.from_dict(data)",
    ),
    example(
        "T006",
        """A module for another kind of machine has no code that this one could run. It is there to
        be saved, and to be looked into; the file is loaded where it belongs.""",
        given=FOREIGN,
        wrong='module.run({"x": x})',
        right="""
        with TemporaryDirectory() as folder:
            module.save(Path(folder, "model.tw"))
        """,
    ),
    example(
        "T010",
        """A machine model says what things cost: rates per cycle, sizes, shares. A file of one,
        written by hand or for another version, lacks an entry, or has a number that cannot be.
        Start from the model of a machine, and change what you know better.""",
        given="""
        from tilewright.target import MachineModel

        data = tw.Target.named("x86-64-v3").machine.to_dict()
        """,
        wrong="""
        data["fma_per_cycle"] = 0
        MachineModel.from_dict(data)
        """,
        right="MachineModel.from_dict(data)",
    ),
    example(
        "T201",
        """An implementation of a tensor instruction calls an LLVM intrinsic that is not in the
        table of known ones, or with operands of other types. The table stands in for LLVM's own
        check, which would say less.""",
        given="""
        from tilewright.intrin.llvm_calls import call_llvm

        a, b = (tir.Var(name, tw.i16.vector(16)) for name in "ab")
        """,
        wrong='call_llvm("llvm.x86.avx2.pmadd.w", a, b)',
        right='call_llvm("llvm.x86.avx2.pmadd.wd", a, b)',
    ),
    example(
        "T202",
        """The schedule uses a tensor instruction that the target lacks. Choose another instruction,
        or a target that has it; a trace with such an instruction is bound to a machine.""",
        given='''
        program = tw.parse(
            """
            def dot(A: u8[4], B: i8[32], C: i32[8]):
                for j in range(8):
                    for k in range(4):
                        with block("C", vj=S(8, j), vk=R(4, k)):
                            with init():
                                C[vj] = 0
                            C[vj] = C[vj] + i32(A[vk]) * i32(B[vj * 4 + vk])
            """
        )
        s = tw.Schedule(program)
        s.decompose_reduction("C", "j")
        s.tensorize("j", "x86.avx2.dot4")
        ''',
        wrong="""
        pipeline = tw.Pipeline(tw.Target.named("aarch64"), trace=s.trace)
        pipeline.run(program, until="llvm")
        """,
        right="""
        pipeline = tw.Pipeline(tw.Target.named("x86-64-v3"), trace=s.trace)
        pipeline.run(program, until="llvm")
        """,
    ),
    example(
        "T203",
        """The interpreter knows what the function means, but there is no native code for it. Give
        it an expansion, or write the value in terms of functions that have some; the error lists
        them.""",
        given='A = tw.placeholder("A", (8,))',
        wrong="""
        from tilewright.tensor.functions import register

        register("softplus", 1, lambda x: np.logaddexp(0.0, x))
        C = tw.compute("C", (8,), lambda i: tw.call("softplus", A[i]))
        tw.build(tw.func("smooth", [A], [C]), trace="none")
        """,
        right="""
        from tilewright.intrin import define_function


        @define_function("softplus", meaning=lambda x: np.logaddexp(0.0, x), ulp=4)
        def softplus(x):
            positive = tw.select(x > 0, x, 0.0)
            return positive + tw.call("log1p", tw.call("exp", -tw.call("abs", x)))


        C = tw.compute("C", (8,), lambda i: tw.call("softplus", A[i]))
        tw.build(tw.func("smooth", [A], [C]), trace="none")
        """,
        alone=True,
    ),
)
