"""The process that tunes one program with MetaSchedule until it is killed.

    python -m benchmarks.tuner.metaschedule.search REQUEST FOLDER

The request is a line of JSON: workload, form, processor, threads, seed. It says `ready` when all is
imported, which is when its time begins; records are files in the folder.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Final

from benchmarks.workloads import Workload

__all__ = ["READY", "main"]

READY: Final = "ready"
BATCH: Final = 16
"""Candidates between two looks at the cost model, as ours has; by default 64, which a search of a
few minutes sees once or twice."""
MOST_TRIALS: Final = 1_000_000
LIMIT_S: Final = 400.0
"""For building or running a candidate: workers that are being started count as well."""


def main(request: str, folder: str) -> None:
    """Search on and on."""
    from tvm.s_tir import meta_schedule as ms

    from benchmarks.tuner.metaschedule.programs import program_of, target_of

    about: dict[str, Any] = json.loads(request)
    workload = Workload.from_dict(about["workload"])
    print(READY, flush=True)
    ms.tune_tir(
        program_of(workload, about["form"]),
        target_of(about["cpu"], about["threads"]),
        folder,
        MOST_TRIALS,
        num_trials_per_iter=BATCH,
        builder=ms.builder.LocalBuilder(timeout_sec=LIMIT_S),
        runner=ms.runner.LocalRunner(timeout_sec=LIMIT_S),
        seed=about["seed"],
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
