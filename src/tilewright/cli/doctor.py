"""`tilewright doctor`: what this machine is, and whether it or a compiled model works."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import numpy as np

import tilewright
from tilewright import options
from tilewright.build import build
from tilewright.calibration import with_machine_model
from tilewright.cli.machine import machine_table
from tilewright.cli.models import bytes_text, require_file
from tilewright.cli.output import paragraph, say, say_json
from tilewright.llvm.calibrate import calibrated
from tilewright.model.info import TensorInfo
from tilewright.model.module import load_module
from tilewright.runtime import default_threads
from tilewright.runtime.artefact import open_artefact
from tilewright.runtime.cache import default_caches
from tilewright.runtime.pool import physical_cores, quota_cpus, usable_cpus
from tilewright.shown import in_line
from tilewright.target import MachineModel, Measured, Target
from tilewright.target.known import KNOWN, find
from tilewright.tensor import library

__all__ = ["add_to"]

Findings = dict[str, dict[str, object]]
"""By section and name; a name ends with its unit, a list is one: programs need no parser."""

_EXAMPLES = """\
examples:
  tilewright doctor                 versions, target, threads, a self-test
  tilewright doctor --measure       also measure the limits of the machine
  tilewright doctor --machine       what things cost here, for the compiler
  tilewright doctor model.tw        whether a compiled model is whole and fits
  tilewright doctor --json          the same for programs

exit codes: 0 all is well, 1 the file cannot be used, 2 wrong arguments,
70 the self-test failed
"""

_UNITS: Final[dict[str, Callable[[Any], str]]] = {
    "bytes": lambda count: f"{count // 1024} KiB" if count % 1024 == 0 else bytes_text(count),
    "gflops": lambda rate: f"{rate:.1f} GFLOP/s",
    "gb_per_s": lambda rate: f"{rate:.1f} GB/s",
    "cpus": lambda count: "none" if count is None else f"{count:.2f} CPUs",
    "bits": lambda count: f"{count} bits",
}
"""How numbers are shown to people, by the unit at the end of their names."""


def add_to(commands: Any) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "doctor",
        help="describe this machine and check that kernels run, or check a compiled model",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", nargs="?", type=Path, help="a compiled model (.tw) to check")
    parser.add_argument("--measure", action="store_true", help="measure and remember rates (≈3 s)")
    parser.add_argument(
        "--machine", action="store_true", help="print the machine model that costs ask"
    )
    parser.add_argument(
        "--again", action="store_true", help="with --machine: measure, whatever is known (≈2 s)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the findings; 0 if the self-test passed, else 70."""
    if arguments.file is not None:
        _print(_examined(arguments.file), as_json=arguments.json)
        return 0
    target = Target.host()
    if arguments.machine:
        model = with_machine_model(target, anew=arguments.again).machine
        _print_machine(model, as_json=arguments.json)
        return 0
    if arguments.measure:
        target = calibrated(target)
    error = _self_test()
    _print(_findings(target, error), as_json=arguments.json)
    return 0 if error < 1e-4 else 70


def _print_machine(model: MachineModel, *, as_json: bool) -> None:
    """The model as it is, or with units."""
    if as_json:
        say_json(model.to_dict())
        return
    say("\n".join(machine_table(model)))


def _print(findings: Findings, *, as_json: bool) -> None:
    if as_json:
        say_json(findings)
        return
    for section, rows in findings.items():
        say(in_line(section.replace("_", " ")))
        for name, value in rows.items():
            say(_row(name, value))


def _row(name: str, value: object) -> str:
    """A line, or several where it is long: a name without its unit, and a value with it."""
    unit = next((unit for unit in _UNITS if name.endswith(f"_{unit}")), None)
    if unit is not None:
        name, value = name.removesuffix(f"_{unit}"), _UNITS[unit](value)
    elif isinstance(value, list):
        words = list(map(_word, value))
        value = ("; " if any(" " in word for word in words) else " ").join(words)
    start = f"  {name.replace('_', ' '):<22} "
    return paragraph(value, start, " " * len(start))


def _word(value: object) -> str:
    """One of a list: a word, or an input of a model."""
    return str(TensorInfo.from_dict(value)) if isinstance(value, dict) else str(value)


def _examined(path: Path) -> Findings:
    """A compiled model, whose every byte was compared with its checksum."""
    require_file(path)
    module = load_module(path, verify=True)
    program, use = module.executable.program, module.memory()
    data = open_artefact(path, verify=False).metadata
    return {
        "file": {
            "path": str(path),
            "state": "whole, and can run on this machine",
            "compiled_by": data["tool"],
            "target": data["target"]["name"],
            "arch": data["target"]["arch"],
            "features": list(data["target"]["features"]),
            "threads": module.threads,
        },
        "model": {
            "name": module.name,
            "inputs": [info.to_dict() for info in module.inputs],
            "outputs": [info.to_dict() for info in module.outputs],
            "steps": len(program.steps),
            "kernels": len(program.kernels),
            "steps_in_python": len(module.by_reference),
            "weights_bytes": use.weights_bytes,
            "code_bytes": use.image_bytes,
        },
    }


def _self_test() -> float:
    """The greatest error of a small matmul on all threads."""
    a, b = (np.random.default_rng(s).standard_normal((96, 96), np.float32) for s in (0, 1))
    kernel = build(library.matmul(96, 96, 96))
    return float(np.abs(kernel(a, b) - a.astype(np.float64) @ b).max())


def _findings(target: Target, error: float) -> Findings:
    caches = {f"L{cache.level}_bytes": cache.size_bytes for cache in target.caches}
    found: Findings = {
        "versions": {
            "tilewright": tilewright.__version__,
            "python": platform.python_version(),
            "llvmlite": metadata.version("llvmlite"),
            "numpy": np.__version__,
            "onnx": metadata.version("onnx"),
        },
        "target": {
            "cpu": target.cpu,
            "core_figures_of": _core_figures(target),
            "triple": target.triple,
            "vector_registers": target.vector_registers,
            "vector_bits": target.vector_bytes * 8,
            **caches,
            "features": sorted(target.features),
        },
        "threads": {
            "default": default_threads(),
            "usable_CPUs": usable_cpus(),
            "physical_cores": physical_cores(),
            "cgroup_quota_cpus": quota_cpus(),
        },
        "cache_folder": {"path": str(options.cache_dir()), "state": _cache_state()},
        "self_test": {"matmul": "right" if error < 1e-4 else f"wrong by {error}"},
    }
    if target.measured is not None:
        found["measured"] = _rates(target, target.measured)
    return found


def _core_figures(target: Target) -> str:
    """Which row of the table of processors describes this core, and whether that is a guess."""
    if find(target.cpu) is not None:
        return target.core_of
    guess = "the closest known processor" if KNOWN[target.core_of].vendor else "its level"
    return f"{target.core_of}, {guess}: `{target.cpu}` is not in the table"


def _cache_state() -> str:
    """Whether compiled models can be kept; what cannot be is compiled at every start."""
    models = default_caches().models
    if not models.limit:
        return "not used: TILEWRIGHT_CACHE_SIZE is 0"
    problem = models.problem()
    if problem is None:
        return "usable"
    reason = problem.strerror or str(problem)
    return f"not usable ({reason}): every model is compiled at every start"


def _rates(target: Target, measured: Measured) -> dict[str, object]:
    rates = {"one_core": measured.fma_gflops.one, "all_cores": measured.fma_gflops.all}
    rows: dict[str, object] = {f"multiply_adds_{cores}_gflops": r for cores, r in rates.items()}
    rows["multiply_adds_by_core_figures_gflops"] = target.with_measured(None).peak_gflops()
    for level in measured.bandwidth:
        rows[f"{level.level}_read_one_core_gb_per_s"] = level.read.one
        rows[f"{level.level}_read_all_cores_gb_per_s"] = level.read.all
    return rows
