"""Recording: the same hashes in any process, errors as texts, what another commit lacks is said."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import replay.entry_points as points
from replay.entry_points import ENTRY_POINTS, Missing, entry
from replay.folder import Texts, read_index
from replay.record import record, record_item
from replay.stages import add_failure
from tests.expect import raises_code
from tilewright.target import Target

ROOT = Path(__file__).parents[3]
PROGRAM = "programs/matmul-64x64x64-constant"
MODEL = "models/feed_forward"
TARGETS = ("x86-64-v3", "aarch64")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    record(folder, [PROGRAM, MODEL], TARGETS, workers=1)
    return folder


def test_programs_have_all_stages_for_one_and_for_many_threads(recorded):
    records = read_index(recorded).records
    for threads in (1, 8):
        made = records[f"{PROGRAM}/threads={threads}"]
        assert tuple(made) == TARGETS
        assert list(made["aarch64"]) == ["trace", "scheduled", "lowered", "llvm"]


def test_models_have_a_graph_steps_and_kernels(recorded):
    records = read_index(recorded).records
    assert list(records[MODEL]["x86-64-v3"]) == ["graph", "steps"]
    kernels = [name for name in records if name.startswith(f"{MODEL}/")]
    assert len(kernels) >= 3
    for name in kernels:
        assert list(records[name]["x86-64-v3"]) == ["trace", "scheduled", "lowered", "llvm"]


def test_texts_are_those_of_the_stages(recorded):
    texts, records = Texts(recorded), read_index(recorded).records
    stages = records[f"{PROGRAM}/threads=1"]["x86-64-v3"]
    assert "s.split(" in texts.get(stages["trace"])
    assert "# shared bytes" in texts.get(stages["lowered"])
    assert Target.named("x86-64-v3").triple in texts.get(stages["llvm"])
    assert "kernels:" in texts.get(records[MODEL]["aarch64"]["steps"])


def test_another_process_with_another_hash_seed_records_the_same(recorded, tmp_path):
    command = [sys.executable, "-m", "replay", "record", str(tmp_path)]
    chosen = ["--only", "models/feed_forward", "--targets", *TARGETS, "--workers", "1"]
    variables = {**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([*command, *chosen], cwd=ROOT, env=variables, check=True, capture_output=True)
    ours, theirs = read_index(recorded), read_index(tmp_path)
    assert theirs.records == {n: r for n, r in ours.records.items() if n.startswith(MODEL)}
    assert theirs.package == ours.package
    assert theirs.missing == []


def test_an_error_is_the_text_of_its_stage():
    with raises_code("T001") as caught:
        Target.named("none")
    stages = {"trace": "…"}
    add_failure(stages, caught.value)
    assert stages["scheduled"] == "raised TargetError T001"
    add_failure(stages, KeyError("name"))
    assert stages["lowered"] == "raised KeyError: 'name'"


def test_a_program_that_cannot_be_built_stops_nothing(tmp_path, monkeypatch):
    monkeypatch.delattr("tilewright.tensor.library.matmul")
    records = record_item(tmp_path, TARGETS, PROGRAM)
    text = Texts(tmp_path).get(records[PROGRAM]["aarch64"]["program"])
    assert text.startswith("raised AttributeError")


def test_what_a_commit_lacks_is_said_and_its_stages_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setitem(ENTRY_POINTS, "emit", ("tilewright.llvm.nowhere:emit",))
    index = record(tmp_path, [PROGRAM], TARGETS[:1], workers=1)
    assert index.missing == ["emit: there is no tilewright.llvm.nowhere:emit"]
    stages = index.records[f"{PROGRAM}/threads=8"]["x86-64-v3"]
    assert list(stages) == ["trace", "scheduled", "lowered"]


def test_an_entry_point_may_have_moved(monkeypatch):
    places = ("tilewright.nowhere:draft", "tilewright.schedule.draft:draft")
    monkeypatch.setitem(ENTRY_POINTS, "draft", places)
    assert callable(entry("draft"))
    monkeypatch.setitem(ENTRY_POINTS, "draft", ("tilewright.schedule.draft:none",))
    with pytest.raises(Missing, match="draft: there is no"):
        points.place_of("draft")


def test_a_folder_without_a_recording_is_refused(tmp_path):
    with pytest.raises(ValueError, match="holds no recording"):
        read_index(tmp_path)
    (tmp_path / "index.json").write_text("{}")
    with pytest.raises(ValueError, match="of the format"):
        read_index(tmp_path)
