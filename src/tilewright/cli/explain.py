"""`tilewright explain`: what an error means, with an example, and the list of all errors."""

from __future__ import annotations

import argparse
import difflib
import importlib
import pkgutil
from typing import Any

import tilewright
from tilewright.cli.output import say
from tilewright.errors import CODES, Code, UserError
from tilewright.explain import EXAMPLES, FAMILIES, section

__all__ = ["add_to"]

K013 = Code("K013", "there is no error `{code}`")

_EXAMPLES = """\
examples:
  tilewright explain V103           what it means, an example, the error as shown, and the fix
  tilewright explain                all codes with a line each
"""


def add_to(commands: Any) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "explain",
        help="say what an error means, with an example",
        description="Say what an error means, with an example that is run to show it.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("code", nargs="?", help="the code at the start of an error: V103")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the section of a code, or the list."""
    _define_all()
    if arguments.code is None:
        _print_list()
        return 0
    code = CODES.get(arguments.code.upper())
    if code is None:
        close = difflib.get_close_matches(arguments.code.upper(), sorted(CODES), n=3)
        hint = f"did you mean {', '.join(close)}?" if close else "`tilewright explain` lists all"
        raise UserError(K013, {"code": arguments.code}, hint=hint)
    say(section(code, EXAMPLES.get(code.id)))
    return 0


def _define_all() -> None:
    """Import every module: that is where codes are defined."""
    for module in pkgutil.walk_packages(tilewright.__path__, "tilewright."):
        others = ("tilewright.cli", "tilewright.testing", "tilewright.__main__")
        if not module.name.startswith(others):
            importlib.import_module(module.name)


def _print_list() -> None:
    for letter, title in FAMILIES.items():
        say(f"{letter}: {title}")
        for code in sorted(code for code in CODES if code.startswith(letter)):
            say(f"  {code}  {CODES[code].summary}")
    say("\n`tilewright explain CODE` says more")
