"""What commands on models share: their arguments, and opening a model of either kind."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilewright.cli.progress import ProgressLine
from tilewright.errors import Code, UserError
from tilewright.feeds.inputs import values_of
from tilewright.files import missing_file
from tilewright.model.compiler import ACCURACIES, AUTO, compile_model
from tilewright.model.module import Module, load_module
from tilewright.runtime.artefact import SUFFIX, is_artefact
from tilewright.shown import time_text
from tilewright.target import Target

__all__ = ["add_command", "add_compile_arguments", "add_input_arguments", "add_settle_argument"]
__all__ += [
    "add_database_argument",
    "add_threads_argument",
    "bytes_text",
    "is_compiled",
    "is_model",
    "open_module",
    "require_file",
]
__all__ += ["require_onnx", "time_text"]

K050 = Code("K050", "`{model}` is compiled already: {what} needs its ONNX file")

SUFFIXES = (".onnx", SUFFIX)


def add_command(commands: Any, name: str, summary: str, examples: str) -> Any:
    """The parser of a command."""
    return commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_compile_arguments(parser: Any) -> None:
    """What `tilewright.compile` wants to know."""
    add_threads_argument(parser, "threads of each run; a compiled file serves any number")
    parser.add_argument("--target", default="host", help="for example x86-64-v3 (default: host)")
    parser.add_argument(
        "--accuracy", choices=ACCURACIES, default="default", help="see docs/models.md"
    )
    parser.add_argument(
        "--layouts", default=AUTO, help="auto (default), or nhwc, nchw, nchw8c… for everything"
    )
    add_database_argument(parser)
    add_settle_argument(parser)
    parser.add_argument("--no-cache", action="store_true", help="neither read nor write the cache")
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_threads_argument(parser: Any, text: str = "threads of each run") -> None:
    """How many threads run a model."""
    parser.add_argument("--threads", type=_count, default=None, help=text)


def add_database_argument(parser: Any) -> None:
    """Where records of measurements are."""
    parser.add_argument(
        "--database", type=Path, default=None, metavar="FILE",
        help="records to schedule kernels by (default: TILEWRIGHT_DATABASE, or the user's own)",
    )  # fmt: skip


def add_settle_argument(parser: Any) -> None:
    """Values of inputs that are known when a model is compiled."""
    parser.add_argument(
        "--settle", action="append", default=[], metavar="NAME=VALUE",
        help="an input that becomes a constant: a .npy file, or a value such as 2 or [0,1]",
    )  # fmt: skip


def add_input_arguments(parser: Any) -> None:
    """Where the arrays of a run come from."""
    parser.add_argument(
        "--input", action="append", default=[], metavar="NAME=FILE",
        help="an array: a .npy file, or a value such as 16000 or [1,2]; others are made up",
    )  # fmt: skip
    parser.add_argument(
        "--size", action="append", default=[], metavar="NAME=N",
        help="a symbolic dimension of arrays that are made up (default: chosen to fit)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="of arrays that are made up")


def is_model(text: str) -> bool:
    """Whether a command's argument is a file with a model, and not a tensor program."""
    return Path(text).suffix in SUFFIXES


def open_module(
    arguments: argparse.Namespace, *, small: bool = False, dims: Mapping[str, int] | None = None
) -> Module:
    """The model, to run here: loaded if it is compiled, else compiled or found in the cache."""
    path = Path(arguments.model)
    require_file(path)
    if is_compiled(path):
        return load_module(path, threads=arguments.threads)
    Target.named(arguments.target).require_runs_on(Target.host())
    with ProgressLine() as line:
        return compile_model(
            path,
            target=arguments.target,
            threads=arguments.threads,
            accuracy=arguments.accuracy,
            layouts=arguments.layouts,
            database=arguments.database,
            cache=not arguments.no_cache,
            progress=line.compiling,
            settled=values_of(arguments.settle),
            small=small,
            dims=dims,
        )


def is_compiled(path: Path) -> bool:
    """Whether a file is a compiled model: by its ending, or by how it begins."""
    return path.suffix == SUFFIX or is_artefact(path)


def require_onnx(path: Path, what: str) -> None:
    """Refuse a compiled model where operators are needed."""
    require_file(path)
    if is_compiled(path):
        hint = "give the ONNX file that it was made of"
        raise UserError(K050, {"model": path.name, "what": what}, hint=hint)


def require_file(path: Path) -> None:
    """Refuse a path that leads nowhere."""
    if not path.is_file():
        what = "a folder" if path.is_dir() else "something that is not a regular file"
        raise missing_file(path, what if path.exists() else "")


def bytes_text(count: int) -> str:
    """`44.7 MB` for a person."""
    value, units = float(count), ["B", "kB", "MB", "GB"]
    while value >= 1000 and len(units) > 1:
        value /= 1000
        del units[0]
    return f"{count} B" if units[0] == "B" else f"{value:.1f} {units[0]}"


def _count(text: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,3}", text):
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of threads")
    return int(text)
