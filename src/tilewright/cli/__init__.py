"""The command line: one file per command, plain text by default, `--json` for programs.

Exit codes: 0 fine, 1 an error with a code that the caller can mend (no traceback), 2 wrong
arguments, 3 results that differ, 70 a bug of tilewright.
"""

from __future__ import annotations

import argparse
import sys
import traceback
import warnings
from collections.abc import Sequence

from tilewright.cli import bench, cache, compile, doctor, explain, run, show  # noqa: A004
from tilewright.cli.output import complain
from tilewright.errors import InternalError, UserError

__all__ = ["main"]

_COMMANDS = (compile, run, bench, show, cache, doctor, explain)

_EPILOG = """\
examples:
  tilewright compile model.onnx -o model.tw
  tilewright run model.tw --size batch=2
  tilewright bench model.onnx --against onnxruntime
  tilewright show model.onnx

exit codes: 0 done, 1 an error (its code is printed), 2 wrong arguments, 3 results differ,
70 a bug of tilewright
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.print_help()
        return 0
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            return int(arguments.run(arguments))
    except UserError as error:
        if arguments.debug:
            raise
        complain(f"tilewright: {error}")
        complain(f"`tilewright explain {error.code.id}` says more")
        return 1
    except InternalError as error:
        complain(traceback.format_exc())
        complain(f"tilewright: this is a bug ({error.code.id}); please report it")
        return 70
    except BrokenPipeError:
        sys.stderr.close()  # the reader went away, for example `| head`
        return 0


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    complain(f"tilewright: {message}")


def _parser() -> argparse.ArgumentParser:
    import tilewright

    parser = argparse.ArgumentParser(
        prog="tilewright",
        description="A tensor compiler: models and tensor programs become native code.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=tilewright.__version__)
    parser.add_argument("--debug", action="store_true", help="show tracebacks of errors")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for module in _COMMANDS:
        module.add_to(commands)
    return parser
