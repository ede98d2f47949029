"""`tilewright explain`: what an error means, with an example, and the list of all errors."""

from __future__ import annotations

import argparse
import difflib
import importlib
import pkgutil
from typing import Any

import tilewright
from tilewright.cli.output import paragraph, say, say_json, screen_width
from tilewright.errors import CODES, Code, UserError
from tilewright.explain import EXAMPLES, FAMILIES, section
from tilewright.explain.example import Example
from tilewright.explain.pages import WIDTH
from tilewright.explain.run import error_of

__all__ = ["add_to"]

K013 = Code("K013", "there is no error `{code}`")

_EXAMPLES = """\
examples:
  tilewright explain V103           what it means, an example, and the fix
  tilewright explain                all codes with a line each
  tilewright explain --json         the same for programs

exit codes: 0 done, 1 there is no such code, 2 wrong arguments
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
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the section of a code, or the list."""
    _define_all()
    if arguments.code is None:
        _print_list(as_json=arguments.json)
        return 0
    code = CODES.get(arguments.code.upper())
    if code is None:
        close = difflib.get_close_matches(arguments.code.upper(), sorted(CODES), n=3)
        hint = f"did you mean {', '.join(close)}?" if close else "`tilewright explain` lists all"
        raise UserError(K013, {"code": arguments.code}, hint=hint)
    example = EXAMPLES.get(code.id)
    if arguments.json:
        say_json(_listed(code) | (_explained(example) if example is not None else {}))
    else:
        say(section(code, example, min(WIDTH, screen_width())))
    return 0


def _listed(code: Code) -> dict[str, str]:
    return {"code": code.id, "family": FAMILIES[code.id[0]], "summary": code.summary}


def _explained(example: Example) -> dict[str, str]:
    parts = {"meaning": example.meaning, "given": example.given, "wrong": example.wrong}
    return parts | {"error": str(error_of(example)), "right": example.right}


def _define_all() -> None:
    """Import every module: that is where codes are defined."""
    for module in pkgutil.walk_packages(tilewright.__path__, "tilewright."):
        others = ("tilewright.cli", "tilewright.testing", "tilewright.__main__")
        if not module.name.startswith(others):
            importlib.import_module(module.name)


def _print_list(*, as_json: bool) -> None:
    if as_json:
        say_json([_listed(CODES[code]) for code in sorted(CODES) if code[0] in FAMILIES])
        return
    for letter, title in FAMILIES.items():
        say(paragraph(f"{letter}: {title}", rest=" " * 3))
        for code in sorted(code for code in CODES if code.startswith(letter)):
            say(paragraph(CODES[code].summary, f"  {code}  ", " " * 8))
    say("\n`tilewright explain CODE` says more")
