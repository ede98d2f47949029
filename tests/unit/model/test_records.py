"""Models are compiled by records where there are some, and by the draft otherwise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from onnx import helper

import tilewright as tw
from tests.background import wait_for_writers
from tests.expect import raises_code
from tests.small import make
from tests.trials import block_of, other_points
from tilewright.calibration import with_machine_model
from tilewright.cli import main
from tilewright.errors import TilewrightWarning
from tilewright.model import compile_kernels as kernels
from tilewright.model.compile_arguments import schedules_of
from tilewright.model.compiler import Compiling
from tilewright.model.kernel_workers import KernelWorker
from tilewright.model.kernels import compile_task, pipeline_of
from tilewright.pipeline import ModelPipeline
from tilewright.records import Database, Record, Records
from tilewright.schedule.recipes.contraction.recipe import CONTRACTION
from tilewright.schedule.source import DRAFT
from tilewright.target import Target

SIZE = 96


def model():
    """`y = relu(x · w)`."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["t"]), helper.make_node("Relu", ["t"], ["y"])]
    weights = np.random.default_rng(3).standard_normal((SIZE, SIZE), np.float32)
    return make(nodes, [("x", [SIZE, SIZE])], [("y", [SIZE, SIZE])], {"w": weights})


def target():
    return with_machine_model(Target.host())


def tasks():
    how = Compiling(target(), 1, "default", "auto")
    return ModelPipeline(how, lambda _: None).run(model(), until="plan").value.planned.kernels


@pytest.fixture(scope="module")
def task():
    (only,) = tasks()
    return only


@pytest.fixture
def path(tmp_path):
    return tmp_path / "records.sqlite"


def record_for(task, **facts):
    workload = task.workload(target())
    (point,) = other_points(workload)
    given = {"time_ns": 50.0, "reference_ns": 100.0, "label": "MatMul", **facts}
    return Record.of(workload, 1, {block_of(workload): point}, **given), point


def decided(task, source):
    path = pipeline_of(task, target(), source)
    path.run(task.program, until="scheduled")
    return [d.point for d in path.report.decisions if d.recipe is CONTRACTION]


def compiled(cache=False, **settings):
    told: list[str] = []
    made = tw.compile(
        model(), threads=1, cache=cache, progress=lambda p: told.append(p.stage), **settings
    )
    wait_for_writers()
    return made, told


def test_a_record_changes_the_kernel_and_not_its_results(task, path, rng, monkeypatch):
    record, point = record_for(task)
    with Database(path) as database:
        database.add(record)
        source = Records(database, target(), 1)
    assert decided(task, source) == [point]
    assert decided(task, DRAFT) != [point]
    assert compile_task(task, target(), source).code != compile_task(task, target()).code

    sources = []
    plain = kernels.compile_task

    def watched(task, target, schedules):
        sources.append(schedules)
        return plain(task, target, schedules)

    monkeypatch.setattr(kernels, "compile_task", watched)
    x = rng.standard_normal((SIZE, SIZE), np.float32)
    drafted, tuned = compiled()[0].run(x)[0], compiled(database=path)[0].run(x)[0]
    np.testing.assert_allclose(tuned, drafted, rtol=1e-4, atol=1e-4)
    assert [type(source) for source in sources] == [type(DRAFT), Records]
    assert sources[1].digest_of(task.workload(target())) == record.checksum


def test_keys_of_caches_know_the_records(task, path, tmp_path):
    cache = tmp_path / "cache"
    assert "kernels" in compiled(cache)[1]
    assert "kernels" not in compiled(cache)[1]
    with Database(path) as database:
        database.add(record_for(task, time_ns=200.0)[0])
        assert "kernels" not in compiled(cache, database=path)[1], "it is slower than the draft"
        database.add(record_for(task)[0])
        assert "kernels" in compiled(cache, database=path)[1]
        assert "kernels" not in compiled(cache, database=database)[1]
    assert "kernels" not in compiled(cache)[1], "what was drafted is still there"


def test_the_database_of_the_environment_is_used(task, path, tmp_path, monkeypatch):
    used = []
    plain = Records.schedule
    monkeypatch.setattr(Records, "schedule", lambda *args: used.append(1) or plain(*args))
    with Database(path) as database:
        database.add(record_for(task)[0])
    monkeypatch.setenv("TILEWRIGHT_DATABASE", str(tmp_path / "not there yet"))
    compiled()
    assert not used
    monkeypatch.setenv("TILEWRIGHT_DATABASE", str(path))
    compiled(database=False)
    assert not used
    compiled()
    assert used
    monkeypatch.delenv("TILEWRIGHT_DATABASE")
    monkeypatch.setenv("TILEWRIGHT_DATA_DIR", str(tmp_path))  # the name there is the default one
    compiled()
    assert len(used) == 2


def test_threads_of_the_runs_choose_the_records(task, path):
    with Database(path) as database:
        database.add(record_for(task)[0])
    assert tw.compile(model(), threads=1, cache=False, database=path)
    assert isinstance(schedules_of(path, target(), 1), Records)
    assert schedules_of(path, target(), 2) is DRAFT


def test_a_bogus_record_falls_back_to_the_draft(task, path, rng):
    record, _ = record_for(task)
    (block,) = record.points
    kind, values = record.points[block]
    bogus = Record.of(task.workload(target()), 1, time_ns=1.0, reference_ns=100.0)
    bogus = replace(bogus, points={block: [kind, {**values, "tile_rows": 0}]})
    with Database(path) as database:
        database.add(bogus)
        source = Records(database, target(), 1)
    assert decided(task, source) == decided(task, DRAFT)
    kernel = compile_task(task, target(), source)
    assert any("is not used, it cannot be followed" in remark for remark in kernel.remarks)
    assert kernel.code == compile_task(task, target()).code
    x = rng.standard_normal((SIZE, SIZE), np.float32)
    np.testing.assert_array_equal(compiled(database=path)[0].run(x)[0], compiled()[0].run(x)[0])


def test_other_processes_compile_by_records(task, path):
    """The points go there."""
    with Database(path) as database:
        database.add(record_for(task)[0])
        source = Records(database, target(), 1)
    worker = KernelWorker(target())
    try:
        asked = kernels.points_from(source, task.workload(target()))
        there = worker.compiled(replace(task, points=asked))
    finally:
        worker.close()
    assert there.code == compile_task(task, target(), source).code


def test_a_damaged_file_is_a_warning(path):
    path.write_bytes(b"no database" * 1000)
    with pytest.warns(TilewrightWarning, match="kernels are drafted") as caught:
        made, _ = compiled(database=path)
    assert "U001" in str(caught[0].message)
    assert made.run(np.ones((SIZE, SIZE), np.float32))


@pytest.mark.parametrize("database", [5, b"x", ["a"], {}], ids=str)
def test_what_is_no_database_is_refused(database):
    with raises_code("K020", text="as database"):
        tw.compile(model(), database=database)


def test_a_path_without_a_file_is_refused(tmp_path):
    with raises_code("K020", text="where there is no file"):
        tw.compile(model(), database=tmp_path / "missing.sqlite")


def test_commands_take_a_database(task, path, tmp_path, capsys):
    record, point = record_for(task)
    with Database(path) as database:
        database.add(record)
    (tmp_path / "model.onnx").write_bytes(model().SerializeToString())
    about = [str(tmp_path / "model.onnx"), "--threads", "1", "--no-cache"]
    command = ["compile", *about, "-o", str(tmp_path / "m.tw")]
    assert main([*command, "--database", str(tmp_path / "none")]) == 1
    assert "K020" in capsys.readouterr().err
    assert main([*command, "--database", str(path)]) == 0
    assert main(["show", *about, "--kernel", "0", "--database", str(path)]) == 0
    assert str(point) in capsys.readouterr().out
