"""A search with candidates that crash, hang, eat memory or lie, whose process is killed ten times.

    python -m benchmarks tuner faults [--trials 400]

There have to be so many trials that all kills come before the last one. It ends with the best of an
undisturbed search within noise, and an intact database.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from benchmarks.tuner.comparisons import Keep
from benchmarks.tuner.searches import searched
from benchmarks.tuner.tasks import task_named
from tilewright.calibration import with_machine_model
from tilewright.model.kernels import KernelTask
from tilewright.records import Database
from tilewright.schedule.points import data_of
from tilewright.target import Target
from tilewright.tuning.kernel_tuner import SearchOptions
from tilewright.tuning.measure.faults import FAULTS as ALL_FAULTS
from tilewright.tuning.measure.faults import UNBUILT, FaultyBuilder
from tilewright.tuning.measure.limits import Limits
from tilewright.tuning.measure.local import LocalRunner
from tilewright.tuning.measure.runners import runner_named

__all__ = ["fault_of", "fault_search", "faults"]

KILLS: Final = 10
FIRST_SECONDS, MORE_SECONDS = 4.0, 0.3
"""Until the first kill, and how much longer each next search may run: it remembers more trials."""
LIMITS: Final = Limits(run_s=2.0, build_s=10.0, memory_bytes=1 << 30)
NAME: Final = "128x3072x768"
FAULTS: Final = tuple(fault for fault in ALL_FAULTS if fault != UNBUILT)


def fault_of(task: KernelTask) -> str | None:
    """One candidate in four has a fault, always the same one; the draft has none."""
    if not task.points:
        return None
    text = str([data_of(point) for point in task.points.values()])
    number = int.from_bytes(blake2b(text.encode(), digest_size=4).digest(), "big")
    return FAULTS[number // 4 % len(FAULTS)] if number % 4 == 0 else None


def faults(options: argparse.Namespace, keep: Keep) -> dict[str, Any]:
    """A search that is disturbed in every way, beside one that is not."""
    found = fault_search(options.trials)
    keep(found)
    return found


def fault_search(trials: int, seed: int = 0) -> dict[str, Any]:
    """Both searches, and what stands in the database of the disturbed one."""
    task = task_named(NAME, with_machine_model(Target.host(), None))
    how = SearchOptions(patience=None, transfers=False)
    with tempfile.TemporaryDirectory() as folder:
        runner = runner_named("local")
        calm = searched(NAME, task, "calm", seed, trials, runner, options=how)
        runner.close()
        path = Path(folder, "records.sqlite")
        killed = [_killed(path, trials, FIRST_SECONDS + k * MORE_SECONDS) for k in range(KILLS)]
        last = subprocess.run(_command(path, trials), check=False)
        with Database(path) as database:
            records = list(database)
            problems = database.problems()
    best = min(record.ratio for record in records if record.ratio is not None)
    return {
        "task": NAME,
        "undisturbed": calm.final,
        "disturbed": best,
        "speed_of_undisturbed": calm.final / best,
        "records_behind_each_kill": killed,
        "kills_in_the_middle": sum(records < trials for records in killed),
        "outcomes": dict(Counter(record.outcome for record in records)),
        "problems": problems,
        "exit": last.returncode,
    }


def _command(path: Path, trials: int) -> list[str]:
    return [sys.executable, "-m", "benchmarks.tuner.faults", str(path), str(trials)]


def _killed(path: Path, trials: int, seconds: float) -> int:
    """Records behind a search that was killed after a while."""
    process = subprocess.Popen(_command(path, trials))
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with Database(path) as database:
        return len(database)


def _disturbed(path: Path, trials: int) -> None:
    """A search up to so many trials in all, with candidates that have faults."""
    task = task_named(NAME, with_machine_model(Target.host(), None))
    with LocalRunner(limits=LIMITS, wrap=lambda own: FaultyBuilder(own, fault_of)) as runner:
        with Database(path) as database:
            known = len(database)
        how = SearchOptions(patience=None, transfers=False)
        if known < trials:
            searched(NAME, task, "disturbed", 0, trials - known, runner, database=path, options=how)


if __name__ == "__main__":
    _disturbed(Path(sys.argv[1]), int(sys.argv[2]))
