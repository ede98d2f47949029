"""The path by its stages: every one can be looked at, and resumed from its text."""

from __future__ import annotations

import numpy as np
import pytest

from tests.expect import raises_code
from tilewright.llvm.interface import Interface
from tilewright.lower import STAGES as LOWERING_STAGES
from tilewright.pipeline import KERNEL_STAGES, Pipeline, dump_to
from tilewright.schedule import Schedule
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.build import compute, func, placeholder, reduce_axis, size, sum_over

A = np.arange(12, dtype=np.float32).reshape(3, 4)
B = np.arange(20, dtype=np.float32).reshape(4, 5) - 7
TEXT_STAGES = [stage.name for stage in KERNEL_STAGES if stage.suffix in (".tir", ".ll")]


def matmul(m=3, n=5, k=4) -> tir.Func:
    a, b = placeholder("A", (m, k)), placeholder("B", (k, n))
    r = reduce_axis(k, "r")
    c = compute("C", (m, n), lambda i, j: sum_over(a[i, r] * b[r, j], r))
    return func("matmul", [a, b], [c])


def pipeline(**settings) -> Pipeline:
    return Pipeline(Target.host(), **{"trace": "none", **settings})


def test_stages_are_in_order_and_come_from_each_other():
    names = [stage.name for stage in KERNEL_STAGES]
    assert names[:2] == ["program", "scheduled"]
    assert names[2:-4] == list(LOWERING_STAGES)
    assert names[-4:] == ["llvm", "assembly", "object", "kernel"]
    for number, stage in enumerate(KERNEL_STAGES[1:], 1):
        assert stage.source in names[:number]


def test_every_artefact_is_seen_once_in_order():
    seen = []
    kernel = pipeline(observers=[seen.append]).run(matmul()).value
    assert [a.stage for a in seen] == [*TEXT_STAGES, "object", "kernel"]
    assert seen[-1].value is kernel
    np.testing.assert_array_equal(kernel(A, B), A @ B)


@pytest.mark.parametrize("stage", TEXT_STAGES)
def test_every_text_can_be_resumed_from(stage):
    path = pipeline()
    text = path.run(matmul(), until=stage).text
    kernel = path.resume(stage, text).value
    np.testing.assert_array_equal(kernel(A, B), A @ B)


@pytest.mark.parametrize("stage", ["llvm", "scheduled"])
def test_text_is_enough_for_another_pipeline(stage):
    text = pipeline().run(matmul(), until=stage).text
    kernel = pipeline().resume(stage, text).value
    np.testing.assert_array_equal(kernel(A, B), A @ B)


def test_flat_text_alone_takes_flat_arrays():
    text = pipeline().run(matmul(), until="unroll").text
    kernel = pipeline().resume("unroll", text).value
    np.testing.assert_array_equal(kernel(A.reshape(-1), B.reshape(-1)), (A @ B).reshape(-1))


def test_edits_take_effect():
    path = pipeline()
    text = path.run(matmul(), until="scheduled").text
    kernel = path.resume("scheduled", text.replace(" = 0.0", " = 100.0")).value
    np.testing.assert_array_equal(kernel(A, B), A @ B + 100)


def test_later_stages_than_asked_for_are_not_run(monkeypatch):
    from tilewright.llvm import emit

    monkeypatch.delattr(emit, "emit")
    artefact = pipeline().run(matmul(), until="vectorize")
    assert artefact.stage == "vectorize"
    assert isinstance(artefact.value, tir.Func)


def test_assembly_and_object_of_another_machine():
    path = Pipeline(Target.named("aarch64"), trace="none")
    assert "fmadd" in path.run(matmul(), until="assembly").text
    artefact = path.run(matmul(), until="object")
    assert artefact.value.startswith(b"\x7fELF")
    assert artefact.text == f"{len(artefact.value)} bytes of object code"
    with raises_code("T004"):
        path.run(matmul())


def test_trace_is_replayed_and_reported():
    schedule = Schedule(matmul())
    schedule.reorder("r", "j")
    schedule.unroll("j")
    path = pipeline(trace=schedule.trace)
    kernel = path.run(matmul()).value
    np.testing.assert_array_equal(kernel(A, B), A @ B)
    assert path.report.trace == schedule.trace
    assert kernel.report is path.report


def test_report_names_every_stage():
    kernel = pipeline().run(matmul()).value
    assert [*kernel.report.seconds] == [*TEXT_STAGES[1:], "object", "kernel"]
    assert "total" in str(kernel.report)


def test_dumped_files_are_numbered_by_stage(tmp_path):
    pipeline(observers=[dump_to(tmp_path, KERNEL_STAGES)]).run(matmul())
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names[0] == "00-program.tir"
    assert names[-1].endswith("-object.o")
    assert len(names) == len(TEXT_STAGES) + 1


def test_symbolic_sizes_and_scratch_that_depends_on_them():
    n = size("n")
    x = placeholder("X", (n,))
    doubled = compute("D", (n,), lambda i: x[i] * 2.0)
    flipped = compute("F", (n,), lambda i: doubled[n - 1 - i] + doubled[i])
    kernel = pipeline().run(func("flip", [x], [flipped])).value
    for length in (1, 7, 100_000):
        values = np.arange(length, dtype=np.float32)
        np.testing.assert_array_equal(kernel(values), 2 * values + 2 * values[::-1])


def test_interface_survives_the_text():
    path = pipeline()
    text = path.run(matmul(), until="llvm").text
    interface = Interface.of_text(text)
    assert Interface.of_text(interface.as_comment() + "rest") == interface
    assert [str(p) for p in interface.params] == ["A: f32[3, 4]", "B: f32[4, 5]", "C: f32[3, 5]"]


def test_unknown_stages_are_refused():
    with raises_code("K001", text="scheduled"):
        pipeline().run(matmul(), until="optimised")
    with raises_code("K001"):
        pipeline().resume("nothing", "")


@pytest.mark.parametrize("stage", ["assembly", "object", "kernel"])
def test_resume_rejects_machine_code(stage):
    with raises_code("K002"):
        pipeline().resume(stage, "")


def test_resume_rejects_going_back():
    text = pipeline().run(matmul(), until="llvm").text
    with raises_code("K002", facts={"until": "scheduled"}):
        pipeline().resume("llvm", text, until="scheduled")


def test_unknown_schedule_sources_are_refused():
    with raises_code("K003", text="`fast`"):
        pipeline(trace="fast")


def test_llvm_text_without_interface_is_refused():
    with raises_code("P201"):
        pipeline().resume("llvm", "define void @f() { ret void }")
    with raises_code("P201"):
        pipeline().resume("llvm", "; interface: {}\n")


def test_dimensions_that_are_no_sizes_are_refused():
    n = size("n")
    x = placeholder("X", (n * 2,))
    with raises_code("V301", text="`n * 2`"):
        pipeline().run(func("twice", [x], [compute("Y", (n,), lambda i: x[i * 2])]))


def test_text_of_a_program_that_arrays_cannot_call():
    n = size("n")
    x = placeholder("X", (n * 2,))
    program = func("twice", [x], [compute("Y", (n,), lambda i: x[i * 2])])
    text = pipeline().run(program, until="llvm").text
    assert Interface.of_text(text).params[0].shape == ("n * 2",)
    with raises_code("V301", text="`n * 2`"):
        pipeline().resume("llvm", text)


def test_text_of_a_layout_that_arrays_cannot_have():
    """A size that the layout names is no dimension any more."""
    n = size("n")
    x = placeholder("X", (n, 1))
    program = func("same", [x], [compute("Y", (n, 1), lambda i, j: x[i, j])])
    schedule = Schedule(program)
    schedule.layout_fuse("X", 0, 2)
    schedule.layout_pad("X", 0, 1, 1)
    text = pipeline(trace=schedule.trace).run(program, until="llvm").text
    assert Interface.of_text(text).params[0].shape == ("n + 2",)
    with raises_code("V301", text="`n + 2`"):
        pipeline().resume("llvm", text)


def test_object_code_of_a_model_has_its_interface():
    x = placeholder("X", (8,))
    program = func("double", [x], [compute("Y", (8,), lambda i: x[i] * 2.0)])
    made = pipeline(of_model=True).compiled(program)
    assert made.code.startswith(b"\x7fELF")
    assert made.interface.symbol == "double"
    assert made.interface.in_place == ((0, 1),), "the result may be written over the input"
    assert pipeline().compiled(program).interface.in_place == (), "arrays of callers are apart"


def test_only_constants_are_packed_for_a_model():
    schedule = Schedule(matmul())
    schedule.layout_reorder("A", (1, 0))
    schedule.layout_reorder("B", (1, 0))
    settings = {"trace": schedule.trace, "constants": ["B"]}
    assert pipeline(**settings).compiled(matmul()).interface.packings.keys() == {0, 1}
    interface = pipeline(**settings, of_model=True).compiled(matmul()).interface
    assert interface.packings.keys() == {1}
    assert interface.params[0].shape == (4, 3), "as it lies in memory"


@pytest.mark.parametrize("exhaustion", [RecursionError, MemoryError])
def test_exhaustion_is_no_failure_of_a_stage(exhaustion, monkeypatch):
    from tilewright.llvm import emit

    def refuse(*_):
        raise exhaustion

    monkeypatch.setattr(emit, "emit", refuse)
    with pytest.raises(exhaustion):
        pipeline().run(matmul())


def test_failures_of_a_stage_name_it(monkeypatch):
    from tilewright.llvm import emit

    monkeypatch.setattr(emit, "emit", lambda *_: 1 / 0)
    with raises_code("I120", facts={"stage": "llvm"}):
        pipeline().run(matmul())


EDITS = {
    "race": ("scheduled", "for r in range(4)", "for r in parallel(4)", "V102"),
    "part of a domain": ("scheduled", "for i in range(3)", "for i in range(2)", "V101"),
    "index of a float": ("lower_blocks", "A[i, r]", "A[f32(i), r]", "V007"),
    "store of another type": ("flatten_buffers", "0.0", "f64(0.0)", "V012"),
    "unrolled loop": ("expand_math", "for r in range(4)", "for r in unrolled(4)", "V026"),
    "LLVM": ("llvm", "ret i32 0", "ret i64 0", "P202"),
}


@pytest.mark.parametrize("what", EDITS)
def test_edited_text_is_checked(what):
    """What a person has changed by hand is not trusted, and not called a bug of the compiler."""
    stage, old, new, code = EDITS[what]
    path = pipeline(trace="none")
    text = path.run(matmul(), until=stage).text
    assert old in text
    with raises_code(code):
        path.resume(stage, text.replace(old, new))
    assert path.resume(stage, text, until="assembly").stage == "assembly"
