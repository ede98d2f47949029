"""The measuring process: one job after another, and candidates of each.

    python -m tilewright.tuning.measure.worker PARENT MEMORY_BYTES

A job brings its drafted kernel and its arrays in numbers; where candidates are to come, also the
same program unscheduled, if that is quick enough to say what is right. A candidate is run on the
same arrays, compared, and then timed by turns with the draft. Jobs stay until memory is needed for
others: a search goes back and forth between its tasks. Whoever asks for a job that is not here, or
not with what is right, is told so, and sends it (again).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from tilewright.dtypes import dtype_of
from tilewright.errors import ArtefactError, TilewrightError
from tilewright.graph.ir import Array
from tilewright.model.kernel_store import decode
from tilewright.runtime.arrays import empty
from tilewright.runtime.failures import C026
from tilewright.tuning.measure.child import serve
from tilewright.tuning.measure.results import difference
from tilewright.tuning.measure.setup import Setup
from tilewright.tuning.measure.subject import Room, Subject
from tilewright.tuning.measure.trial import BUILD, CRASH, MEMORY, OK, WRONG
from tilewright.tuning.measure.turns import take_turns

__all__ = ["Measuring"]

KEPT_BYTES: Final = 256 << 20
"""Arrays of jobs that are not under way."""
ROW_NS: Final = 1_000_000
"""About how long a row of runs is."""
MOST_RUNS: Final = 32
"""In a row; with fewer than two, runs are timed one by one."""
WARM_UP: Final = 3


class JobHere:
    """A job with its arrays, what is right, and its reference."""

    def __init__(self, setup: Setup, drafted: bytes, plain: bytes, room: Room) -> None:
        self.setup = setup
        rng = np.random.default_rng(0)
        self.arrays = {p.name: _aligned(p.made_up(rng)) for p in setup.params}
        kernel = decode(drafted)
        written = kernel.interface.outputs
        inputs = (p for k, p in enumerate(setup.params) if k not in written)
        self.has_floats = any(p.dtype.is_float for p in inputs)
        once = replace(setup, cold_bytes=0)
        draft = Subject(kernel, once, self.arrays, room)
        first = _copies(draft.computed())
        self.expected, self.is_checked = first, bool(plain)
        if plain:
            alone = Subject(decode(plain), once, self.arrays, Room())
            self.expected = _copies(alone.computed())
        self.problem = self.wrong(first)
        each = min(draft.turn_ns() for _ in range(WARM_UP))
        runs = round(ROW_NS / max(1.0, each))
        self.calls = 1 if runs < 2 else min(runs, MOST_RUNS) + 1
        self.reference = Subject(kernel, setup, self.arrays, Room(), self.calls)
        self.usual_ns = min(self.reference.turn_ns() for _ in range(WARM_UP))
        if not self.problem:
            self.problem = self.wrong(self.reference.computed())

    @property
    def size_bytes(self) -> int:
        """Memory that it holds, about."""
        arrays = (*self.arrays.values(), *self.expected.values())
        return sum(array.nbytes for array in arrays) + self.setup.cold_bytes

    def wrong(self, found: Mapping[str, Array]) -> str:
        """What differs from the right results."""
        return difference(found, self.expected, self.setup.terms, has_floats=self.has_floats)


class Measuring:
    """Answers questions about jobs and their trials."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, JobHere] = OrderedDict()
        self._room = Room()

    def answer(self, question: dict[str, Any], data: bytes) -> tuple[dict[str, Any], bytes]:
        """What came of a job or of a trial."""
        do = {"job": self._job, "trial": self._trial}[question["do"]]
        try:
            return do(question, data), b""
        except TilewrightError as problem:
            status = BUILD if isinstance(problem, ArtefactError) else CRASH
            status = MEMORY if problem.code is C026 else status
            return _failed(status, f"{problem.code.id}: {problem.summary()}"), b""
        except MemoryError:
            return _failed(MEMORY, "there was not enough memory to run it"), b""
        except Exception as problem:  # noqa: BLE001  (whatever a kernel makes of its caller)
            return _failed(CRASH, f"{type(problem).__name__}: {problem}"), b""

    def _job(self, question: dict[str, Any], data: bytes) -> dict[str, Any]:
        setup, length = Setup.from_data(question["setup"]), question["drafted_bytes"]
        self._jobs.pop(question["job"], None)
        self._make_room()
        made = JobHere(setup, data[:length], data[length:], self._room)
        if made.problem:
            return _failed(WRONG, made.problem)
        self._jobs[question["job"]] = made
        return {"status": OK, "detail": "", "reference_ns": made.usual_ns}

    def _make_room(self) -> None:
        while self._jobs and sum(j.size_bytes for j in self._jobs.values()) > KEPT_BYTES:
            self._jobs.popitem(last=False)

    def _trial(self, question: dict[str, Any], data: bytes) -> dict[str, Any]:
        job = self._jobs.get(question["job"])
        if job is None or (question["checked"] and not job.is_checked):
            return {"unknown": True}
        self._jobs.move_to_end(question["job"])
        candidate = Subject(decode(data), job.setup, job.arrays, self._room, job.calls)
        wrong = job.wrong(candidate.computed())
        if wrong:
            return _failed(WRONG, wrong)
        times = take_turns(candidate.turn_ns, job.reference.turn_ns, job.usual_ns)
        return {
            "status": OK,
            "detail": "",
            "time_ns": times.time_ns,
            "reference_ns": times.reference_ns,
            "spread": times.spread,
        }


def _failed(status: str, detail: str) -> dict[str, Any]:
    return {"status": status, "detail": detail}


def _copies(results: Mapping[str, Array]) -> dict[str, Array]:
    return {name: array.copy() for name, array in results.items()}


def _aligned(array: Array) -> Array:
    """A copy on an address that the memory of models has."""
    copy = empty(array.shape, dtype_of(array.dtype))
    copy[...] = array
    return copy


if __name__ == "__main__":
    serve(Measuring().answer)
