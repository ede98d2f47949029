"""The rival's search: how it ends, what of its files counts, and layouts on the way there."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks.kinds import with_file
from benchmarks.numbers import inputs
from benchmarks.tuner.contest import Entrant, contest
from benchmarks.tuner.metaschedule import timed
from benchmarks.tuner.metaschedule.forms import FORMS, forms_of
from benchmarks.tuner.metaschedule.found import RECORDS, WORKLOADS, Found, found_in
from benchmarks.tuner.metaschedule.timed import SearchError, run_search
from benchmarks.workloads import Workload
from tilewright.target import Target

LAYER = Workload("conv", "conv2d", (9, 8, 16, 3, 1, 1))
REQUEST = {"workload": LAYER.to_dict(), "form": "nhwc", "cpu": "znver4", "threads": 1, "seed": 0}


def record(*seconds):
    return json.dumps([0, [["trace"], list(seconds), {"kind": "llvm"}, []]])


def test_records_are_counted_and_the_last_line_in_part_is_dropped(tmp_path):
    lines = [record(3e-3), record(1e10), record(2e-3, 4e-3), record(2e-3)]
    (tmp_path / RECORDS).write_text("\n".join(lines) + '\n[0, [["tra')
    (tmp_path / WORKLOADS).write_text('["hash", "text"]\n')
    assert found_in(tmp_path) == Found(4, 1, 2e-3)
    assert (tmp_path / RECORDS).read_text().splitlines() == lines
    assert found_in(tmp_path) == Found(4, 1, 2e-3)


def test_a_search_that_wrote_nothing_has_found_nothing(tmp_path):
    assert found_in(tmp_path) == Found(0, 0, None)


@pytest.fixture
def pretend(monkeypatch):
    """A process in the place of the search."""

    def use(code):
        monkeypatch.setattr(timed, "COMMAND", [sys.executable, "-c", code])

    return use


WORKER = f"""
import subprocess, sys, time
from pathlib import Path
worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
folder = Path(sys.argv[2])
(folder / "worker").write_text(str(worker.pid))
print("ready", flush=True)
(folder / {RECORDS!r}).write_text({record(5e-3)!r} + "\\n[0")
time.sleep(60)
"""


def test_a_search_ends_with_its_workers_when_its_time_is_over(tmp_path, pretend):
    pretend(WORKER)
    folder = tmp_path / "nhwc"
    searched = run_search(REQUEST, folder, 0.5)
    assert searched.found == Found(1, 0, 5e-3)
    worker = int((folder / "worker").read_text())
    assert _ends(worker)


def _ends(pid):
    """Whether a process that was killed is gone soon: nobody waits for a grandchild."""
    deadline = time.monotonic() + 30
    while _is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not _is_running(pid)


def _is_running(pid):
    """A process that was killed may still be waited for."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
        return text.rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_search_that_fails_says_why(tmp_path, pretend):
    pretend("raise ImportError('no module of that name')")
    with pytest.raises(SearchError, match="no module of that name"):
        run_search(REQUEST, tmp_path / "nhwc", 5)
    pretend("print('ready', flush=True); raise ValueError('no such target')")
    with pytest.raises(SearchError, match=r"nothing found in .*no such target"):
        run_search(REQUEST, tmp_path / "nchw", 5)


@pytest.mark.parametrize("name", forms_of(LAYER))
def test_forms_turn_arrays_there_and_back(name):
    form, arrays = FORMS[name], inputs(LAYER)
    x, w, b = form.given(arrays)
    assert b is arrays["b"]
    assert all(array.flags.c_contiguous for array in (x, w, b))
    shapes = {"nchw": ((1, 8, 9, 9), (16, 8, 3, 3)), "nhwc": ((1, 9, 9, 8), (3, 3, 8, 16))}
    assert (x.shape, w.shape) == shapes[name]
    back = form.taken(np.zeros((1, 9, 9, 16) if name == "nhwc" else (1, 16, 9, 9), "f4"))
    assert back.shape == LAYER.result_shape
    place = x[0, 2, 3, 4] if name == "nhwc" else x[0, 4, 2, 3]
    assert place == arrays["x"][0, 4, 2, 3]


def test_a_product_stays_as_it_is():
    product = Workload("matmul", "matmul", (3, 4, 5))
    arrays = inputs(product)
    assert [a.shape for a in FORMS["product"].given(arrays)] == [(3, 5), (5, 4)]
    assert forms_of(product) == ("product",)
    with pytest.raises(ValueError, match="no program of TVM"):
        forms_of(Workload("matmul", "batched", (2, 3, 4, 5)))


@pytest.mark.slow
def test_the_best_of_a_search_computes_the_right_result(tmp_path):
    """Both forms, with weights packed ahead, in a contest; their workers import TVM for long."""
    pytest.importorskip("tvm", reason="the rival is not installed")
    host = Target.host()
    for form in forms_of(LAYER):
        run_search({**REQUEST, "cpu": host.cpu, "form": form, "batch": 4}, tmp_path / form, 40)
    variables = {"METASCHEDULE_FOLDER": str(tmp_path), "METASCHEDULE_CPU": host.cpu}
    row = contest({"tvm": Entrant("tvm", variables)}, with_file(LAYER, tmp_path), 1, tmp_path)
    outcome = row.outcomes["tvm"]
    assert (outcome.state, outcome.lost_variants) == ("ok", ())
    assert outcome.variant in forms_of(LAYER)
