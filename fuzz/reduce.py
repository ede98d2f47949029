"""`python -m fuzz reduce FILE`: a failing model with its inputs becomes a small one."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fuzz.apart import Limits
from fuzz.campaign import judge_apart
from fuzz.case import Case, Setting
from fuzz.kept import read_kept, write_kept
from fuzz.reduction import reduce_case

__all__ = ["main"]


def main(arguments: list[str]) -> int:
    """0 if a finding was made smaller and written, 1 if the file shows none."""
    options = _parser().parse_args(arguments)
    setting = Setting(options.accuracy, options.threads, options.layouts)
    case = _read(options.file, setting)
    limits = Limits(options.limit)
    (verdict,) = judge_apart([case], limits)
    print(f"{verdict.kind}: {verdict.detail}")
    if not verdict.is_finding:
        return 1
    before = len(case.operators)
    case, verdict = reduce_case(case, verdict, limits=limits)
    path = options.out or options.file.with_name(f"{options.file.stem}_small.py")
    write_kept(path, case, verdict)
    print(f"{before} nodes -> {len(case.operators)}: {verdict.detail}\nwritten to {path}")
    return 0


def _read(path: Path, setting: Setting) -> Case:
    return read_kept(path).case if path.suffix == ".py" else Case.load(path, setting)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fuzz reduce",
        description="Remove whatever a finding does not need: nodes, attributes, sizes, values.",
        epilog="exit code 0: reduced, 1: the file shows no finding, 2: wrong usage",
    )
    parser.add_argument(
        "file", type=Path, help="a model with its inputs beside it (.onnx, .npz), or a kept .py"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: FILE_small.py")
    parser.add_argument("--accuracy", default="default", choices=["default", "strict"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--layouts", default="auto")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one try")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
