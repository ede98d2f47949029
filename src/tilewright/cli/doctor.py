"""`tilewright doctor`: what this machine is, and whether it or a compiled model works."""

from __future__ import annotations

import argparse
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import tilewright
from tilewright import options
from tilewright.build import build
from tilewright.cli.models import bytes_text, require_file
from tilewright.cli.output import say, say_json
from tilewright.llvm.calibrate import calibrated
from tilewright.model.module import load_module
from tilewright.runtime import default_threads
from tilewright.runtime.artefact import open_artefact
from tilewright.runtime.pool import physical_cores, quota_cpus, usable_cpus
from tilewright.shown import in_line
from tilewright.target import Measured, Target
from tilewright.tensor import library

__all__ = ["add_to"]

_EXAMPLES = """\
examples:
  tilewright doctor                 versions, target, threads, a self-test
  tilewright doctor --measure       also measure the multiply-add limit and the bandwidths
  tilewright doctor model.tw        whether a compiled model is whole, and can run here
  tilewright doctor --json          the same for programs

exit codes: 0 all is well, 1 the file cannot be used, 2 wrong arguments, 70 the self-test failed
"""


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
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the findings; 0 if the self-test passed, else 70."""
    if arguments.file is not None:
        _print(_examined(arguments.file), as_json=arguments.json)
        return 0
    target = Target.host()
    if arguments.measure:
        target = calibrated(target)
    error = _self_test()
    _print(_findings(target, error), as_json=arguments.json)
    return 0 if error < 1e-4 else 70


def _print(findings: dict[str, dict[str, object]], *, as_json: bool) -> None:
    if as_json:
        say_json(findings)
        return
    for section, rows in findings.items():
        say(in_line(section))
        for label, value in rows.items():
            say(f"  {label:<22} {in_line(value)}")


def _examined(path: Path) -> dict[str, dict[str, object]]:
    """A compiled model, whose every byte was compared with its checksum."""
    require_file(path)
    module = load_module(path, verify=True)
    program, use = module.executable.program, module.memory()
    data = open_artefact(path, verify=False).metadata
    needs = " ".join(data["target"]["features"])
    return {
        str(path): {
            "state": "whole, and can run on this machine",
            "compiled by": data["tool"],
            "compiled for": f"{data['target']['name']} ({data['target']['arch']}) {needs}".strip(),
            "threads": module.threads,
        },
        module.name: {
            "inputs": ", ".join(info.exact for info in module.inputs),
            "outputs": ", ".join(info.exact for info in module.outputs),
            "steps": len(program.steps),
            "kernels": len(program.kernels),
            "steps in Python": len(module.by_reference),
            "weights": bytes_text(use.weights_bytes),
            "code": bytes_text(use.image_bytes),
        },
    }


def _self_test() -> float:
    """The greatest error of a small matmul on all threads."""
    a, b = (np.random.default_rng(s).standard_normal((96, 96), np.float32) for s in (0, 1))
    kernel = build(library.matmul(96, 96, 96))
    return float(np.abs(kernel(a, b) - a.astype(np.float64) @ b).max())


def _findings(target: Target, error: float) -> dict[str, dict[str, object]]:
    caches = {f"L{c.level}": f"{c.size_bytes // 1024} KiB" for c in target.caches}
    features = " ".join(sorted(target.features))
    quota = quota_cpus()
    found: dict[str, dict[str, object]] = {
        "versions": {
            "tilewright": tilewright.__version__,
            "python": platform.python_version(),
            "llvmlite": metadata.version("llvmlite"),
            "numpy": np.__version__,
            "onnx": metadata.version("onnx"),
        },
        "target": {
            "cpu": target.cpu,
            "triple": target.triple,
            "vectors": f"{target.vector_registers} × {target.vector_bytes * 8} bits",
            **caches,
            "features": features,
        },
        "threads": {
            "default": default_threads(),
            "usable CPUs": usable_cpus(),
            "physical cores": physical_cores(),
            "cgroup quota": "none" if quota is None else f"{quota:.2f} CPUs",
        },
        "cache folder": {"path": str(options.cache_dir())},
        "self-test": {"matmul": "right" if error < 1e-4 else f"wrong by {error}"},
    }
    if target.measured is not None:
        found["measured"] = _rates(target.measured)
    return found


def _rates(measured: Measured) -> dict[str, object]:
    rows: dict[str, object] = {
        "multiply-add limit": f"{measured.fma_gflops.one:.1f} GFLOP/s on one core, "
        f"{measured.fma_gflops.all:.1f} on all"
    }
    for level in measured.bandwidth:
        rows[f"{level.level} read"] = f"{level.read.one:.1f} GB/s, {level.read.all:.1f} on all"
    return rows
