"""Jobs of real models arrive in another process as what they were."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from tests.small import make
from tilewright.dtypes import f32
from tilewright.model.compiler import Compiling
from tilewright.model.standalone import standalone
from tilewright.pipeline import ModelPipeline
from tilewright.schedule.recipes.contraction.space import ContractionPoint
from tilewright.target import Target
from tilewright.tensor.structural import structural_hash
from tilewright.tuning.measure.sending import from_bytes, to_bytes
from tilewright.tuning.measure.trial import Job

ROOT = Path(__file__).parents[4]

RECEIVER = """
import sys
from tests.unit.tuning.measure.test_sending import told
from tilewright.tuning.measure.sending import from_bytes
for job in from_bytes(sys.stdin.buffer.read()):
    print(told(job))
"""


def told(job: Job) -> str:
    """What a job is, and what its kernel computes of made-up arrays."""
    kernel = standalone(job.task, job.target, job.sizes, job.threads)
    results = blake2b(digest_size=8)
    for array in kernel.run(kernel.arrays(seed=7)).values():
        results.update(np.ascontiguousarray(array).tobytes())
    about = structural_hash(job.task.program), job.task.key, sorted(job.task.constants)
    known = {f32: "a type is found by its hash"}[job.task.program.params[0].dtype]
    return repr((about, job.threads, dict(job.sizes), job.cold_bytes, known, results.hexdigest()))


@pytest.fixture(scope="module")
def jobs() -> list[Job]:
    """Convolutions of pictures of any size, in the layouts that were chosen for them."""
    rng = np.random.default_rng(3)
    weights = {
        "w0": rng.uniform(-1, 1, (8, 3, 3, 3)).astype(np.float32),
        "w1": rng.uniform(-1, 1, (8, 8, 3, 3)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["c", "w1"], ["y"], pads=[1, 1, 1, 1]),
    ]
    model = make(nodes, [("x", ["batch", 3, "h", "w"])], [("y", None)], weights)
    path = ModelPipeline(Compiling(Target.host(), 1, "default", "nchw8c"))
    tasks = path.run(model, until="plan").value.planned.kernels
    sizes = {"batch": 1, "h": 9, "w": 7}
    return [Job(task, Target.host(), 1, sizes, cold_bytes=4096) for task in tasks]


def test_jobs_arrive_in_another_process(jobs):
    command = [sys.executable, "-c", RECEIVER]
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    variables = {**os.environ, "PYTHONHASHSEED": "1234", "PYTHONPATH": paths}
    found = subprocess.run(
        command, input=to_bytes(jobs), capture_output=True, env=variables, check=True
    )
    assert found.stdout.decode().splitlines() == [told(job) for job in jobs]


def test_a_variable_stays_one(jobs):
    job = next(job for job in jobs if job.task.sizes)
    sent = from_bytes(to_bytes(job))
    assert sent.task.sizes[0] not in job.task.sizes
    variables = {dim for value in sent.task.params for dim in value.shape}
    assert set(sent.task.sizes) <= variables
    assert len(to_bytes(job)) < 100_000  # programs, and no weights


def test_points_are_equal():
    point = ContractionPoint(*range(len(ContractionPoint.__dataclass_fields__)))
    assert hash(point) == hash(from_bytes(to_bytes({"p1": point}))["p1"])
    assert from_bytes(to_bytes({"p1": point})) == {"p1": point}
