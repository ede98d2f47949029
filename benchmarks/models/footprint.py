"""What a deployed model costs besides time per run: loading, memory, size on disk.

Measured in processes that did nothing else before. tilewright compiles and saves in one process,
and what is measured is another that only loads: as on a machine that a model is shipped to.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from typing import Any, Final

from benchmarks.models.workload import ModelWorkload
from benchmarks.process import LOAD_SECONDS, EngineGoneError, EngineProcess
from benchmarks.report import SUBJECT

__all__ = ["DEPLOYABLE", "ask_alone", "footprint"]

DEPLOYABLE: Final = (SUBJECT, "onnxruntime")


def footprint(
    engine: str, workload: ModelWorkload, threads: int, environment: Mapping[str, str]
) -> dict[str, Any]:
    """Seconds and bytes by name; `why` says what is missing and for which reason."""
    with tempfile.TemporaryDirectory() as scratch:
        facts: dict[str, Any] = {}
        for request in ("deploy", "footprint") if engine == SUBJECT else ("footprint",):
            facts |= ask_alone(engine, threads, environment, request, workload, scratch)
            if "why" in facts:
                break
        return facts


def ask_alone(
    engine: str,
    threads: int,
    environment: Mapping[str, str],
    request: str,
    workload: ModelWorkload,
    scratch: str,
    **details: str,
) -> dict[str, Any]:
    """The answer of a process that gets this one request."""
    try:
        process = EngineProcess(engine, threads, environment)
    except EngineGoneError as gone:
        return {"why": str(gone)}
    try:
        if "missing" in process.hello:
            return {"why": process.hello["missing"]}
        return process.ask(
            request, timeout=LOAD_SECONDS, workload=workload.to_dict(), scratch=scratch, **details
        )
    except EngineGoneError as gone:
        return {"why": str(gone)}
    finally:
        process.close()
