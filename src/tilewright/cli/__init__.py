"""The command line: one file per command, plain text by default, `--json` for programs.

Exit codes: 0 fine, 2 something the caller can fix (no traceback), 70 a bug of tilewright.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Sequence

from tilewright.cli import doctor, explain, show
from tilewright.errors import InternalError, UserError

__all__ = ["main"]

_COMMANDS = (show, explain, doctor)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.print_help()
        return 0
    try:
        return int(arguments.run(arguments))
    except UserError as error:
        if arguments.debug:
            raise
        print(f"tilewright: {error}", file=sys.stderr)
        print(f"`tilewright explain {error.code.id}` says more", file=sys.stderr)
        return 2
    except InternalError as error:
        traceback.print_exc()
        print(f"\ntilewright: this is a bug ({error.code.id}); please report it", file=sys.stderr)
        return 70
    except BrokenPipeError:
        sys.stderr.close()  # the reader went away, for example `| head`
        return 0


def _parser() -> argparse.ArgumentParser:
    import tilewright

    parser = argparse.ArgumentParser(
        prog="tilewright",
        description="A tensor compiler: look at programs and schedules, errors, and this machine.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=tilewright.__version__)
    parser.add_argument("--debug", action="store_true", help="show tracebacks of errors")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for module in _COMMANDS:
        module.add_to(commands)
    return parser
