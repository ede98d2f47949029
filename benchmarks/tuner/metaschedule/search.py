"""The process that tunes one program with MetaSchedule until it is killed.

    python -m benchmarks.tuner.metaschedule.search REQUEST FOLDER

The request is a line of JSON: workload, form, processor, threads, batch, seed. The process says
`ready` when everything is imported and its workers were started once, which is when its time
begins; records are files in the folder.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Final

from benchmarks.workloads import Workload

__all__ = ["READY", "main"]

READY: Final = "ready"
MOST_TRIALS: Final = 1_000_000
LIMIT_S: Final = 400.0
"""For building or running a candidate: workers that are being started count as well."""


def main(request: str, folder: str) -> None:
    """Search on and on."""
    import tvm.s_tir.tensor_intrin  # noqa: F401  (takes 20 seconds, which are not to count)
    from tvm.s_tir import meta_schedule as ms

    from benchmarks.tuner.metaschedule.programs import program_of, target_of

    about: dict[str, Any] = json.loads(request)
    workload = Workload.from_dict(about["workload"])
    builder = ms.builder.LocalBuilder(timeout_sec=LIMIT_S, f_build=built)
    runner = ms.runner.LocalRunner(timeout_sec=LIMIT_S)
    print(READY, flush=True)
    ms.tune_tir(
        program_of(workload, about["form"]),
        target_of(about["cpu"], about["threads"]),
        folder,
        MOST_TRIALS,
        num_trials_per_iter=about["batch"],
        builder=builder,
        runner=runner,
        seed=about["seed"],
    )


def built(module: Any, target: Any, _params: Any) -> Any:
    """What a worker does with a candidate.

    TVM's own function also imports the tensor instructions of all machines, which takes 20 seconds
    in each worker of each batch. No candidate here has any of them, so we spare it that.
    """
    import tvm
    from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock

    packed = RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(module)
    return tvm.driver.build(packed, target=target)


if __name__ == "__main__":
    main(*sys.argv[1:])
