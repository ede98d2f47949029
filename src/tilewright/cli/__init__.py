"""The command line: one file per command, plain text by default, `--json` for programs.

Exit codes: 0 fine, 1 an error with a code that the caller can mend (no traceback), 2 wrong
arguments, 3 results that differ, 4 an engine that did not run, 70 a bug of tilewright, 130
interrupted. With `--json` an error is printed as a document of its own, too.
"""

from __future__ import annotations

import argparse
import signal
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

from tilewright.cli import (
    bench,
    cache,
    compile,  # noqa: A004
    db,
    doctor,
    explain,
    report,
    run,
    show,
    tune,
)
from tilewright.cli.output import (
    complain,
    drop_output,
    error_facts,
    flush,
    make_printable,
    say,
    say_json,
)
from tilewright.errors import InternalError, UserError

__all__ = ["main"]

INTERRUPTED = 130

_COMMANDS = (compile, run, bench, show, tune, report, cache, db, doctor, explain)

_EPILOG = """\
examples:
  tilewright compile model.onnx -o model.tw
  tilewright run model.tw --size batch=2
  tilewright bench model.onnx --against onnxruntime
  tilewright show model.onnx
  tilewright tune model.onnx --budget 10m

exit codes: 0 done, 1 an error (its code is printed), 2 wrong arguments,
3 results differ, 4 an engine did not run, 70 a bug of tilewright,
130 interrupted
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    make_printable()
    try:
        try:
            return _run(argv)
        finally:
            flush()
    except UserError as error:  # only of what is printed, such as the help, at the very end
        if "--debug" in (argv or ()):
            raise
        return _complained(error)
    except KeyboardInterrupt:
        if argv is None:  # this is the whole process: the next one ends it without a word
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        complain("tilewright: interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # the reader went away, for example `| head`
        drop_output()
        return 0


def _run(argv: Sequence[str] | None) -> int:
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.print_help()
        return 0
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            status = int(arguments.run(arguments))
            flush()
            return status
    except UserError as error:
        if arguments.debug:
            raise
        if arguments.json:
            # Where a command prints lines of JSON, its error is one as well.
            getattr(arguments, "say_error", say_json)({"error": error_facts(error)})
        return _complained(error)
    except BrokenPipeError:
        raise
    except Exception as error:
        if arguments.debug:
            raise
        complain(traceback.format_exc())
        code = error.code.id if isinstance(error, InternalError) else type(error).__name__
        complain(f"tilewright: this is a bug ({code}); please report it")
        return 70


def _complained(error: UserError) -> int:
    complain(f"tilewright: {error}")
    complain(f"`tilewright explain {error.code.id}` says more")
    return 1


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    complain(f"tilewright: {message}")


class _Parser(argparse.ArgumentParser):
    """A parser whose help is printed like all else; that of Python forgets what goes wrong."""

    def print_help(self, file: Any = None) -> None:
        if file is None:
            say(self.format_help().rstrip())
        else:
            super().print_help(file)


def _parser() -> argparse.ArgumentParser:
    import tilewright

    parser = _Parser(
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
