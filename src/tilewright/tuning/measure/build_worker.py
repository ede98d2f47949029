"""A process that builds candidates until nobody asks any more.

python -m tilewright.tuning.measure.build_worker PARENT MEMORY_BYTES
"""

from __future__ import annotations

import functools
import json
from typing import Any

from tilewright.errors import TilewrightError
from tilewright.model.kernel_store import encode
from tilewright.model.kernel_worker import compiled_for
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.source import DRAFT, Workload, not_followed
from tilewright.target import Target
from tilewright.tuning.measure.child import serve
from tilewright.tuning.measure.trial import BUILD, MEMORY, OK

__all__ = ["build"]


def build(request: dict[str, Any], data: bytes) -> tuple[dict[str, Any], bytes]:
    """The kernel of a request, or what the compiler said."""
    del data
    strict = _Strict() if request["points"] else None
    try:
        made = encode(compiled_for(request, _target(request["target"]), strict))
    except TilewrightError as problem:
        return _failed(BUILD, f"{problem.code.id}: {problem.summary()}")
    except MemoryError:
        return _failed(MEMORY, "there was not enough memory to build it")
    except RecursionError:
        return _failed(BUILD, "its expressions are nested too deeply")
    except Exception as problem:  # noqa: BLE001  (a point that breaks the compiler costs one trial)
        return _failed(BUILD, f"{type(problem).__name__}: {problem}")
    if strict is not None and strict.problem is not None:
        return _failed(BUILD, f"its points cannot be followed: {strict.problem}")
    if made is None:
        return _failed(BUILD, "its packing of constants depends on sizes of the call")
    return {"status": OK, "detail": ""}, made


class _Strict:
    """The draft, and what it made of the points that it was given."""

    digest = ""

    def __init__(self) -> None:
        self.problem: str | None = None

    def digest_of(self, workload: Workload) -> str:
        del workload
        return self.digest

    def schedule(self, workload: Workload) -> Schedule:
        made = DRAFT.schedule(workload)
        self.problem = not_followed(made, workload, workload.points)
        return made


def _failed(status: str, detail: str) -> tuple[dict[str, Any], bytes]:
    return {"status": status, "detail": detail}, b""


@functools.cache
def _target(text: str) -> Target:
    return Target.from_dict(json.loads(text))


if __name__ == "__main__":
    serve(build)
