"""Running the snippets of examples.

Every snippet starts with the lines of `PRELUDE` in a namespace of its own. What it prints is thrown
away. The library never runs a snippet by itself: only who asks for an explanation does.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import shlex
import subprocess
import sys

from tilewright.errors import TilewrightError
from tilewright.explain.example import Example

__all__ = ["PRELUDE", "error_of", "run_right"]

PRELUDE = """\
import numpy as np

import tilewright as tw
from tilewright.tensor import ir as tir
from tilewright.tensor import library
"""

_IN_A_PROCESS = """\
import pickle, sys
from tilewright.explain import EXAMPLES
from tilewright.explain.run import {function}
sys.stdout.buffer.write(pickle.dumps({function}(EXAMPLES[{code!r}])))
"""


def error_of(example: Example) -> TilewrightError:
    """The error that the wrong snippet raises."""
    if not example.alone:
        return error_here(example)
    error = _in_a_process("error_here", example)
    assert isinstance(error, TilewrightError)
    return error


def run_right(example: Example) -> None:
    """Run the right snippet, which raises nothing."""
    if example.alone:
        _in_a_process("run_here", example)
    else:
        run_here(example)


def error_here(example: Example) -> TilewrightError:
    """`error_of` in this process."""
    try:
        _execute(example, example.wrong)
    except TilewrightError as error:
        return error
    raise AssertionError(f"the example of {example.code} raises nothing")


def run_here(example: Example) -> None:
    """`run_right` in this process."""
    _execute(example, example.right)


def _execute(example: Example, snippet: str) -> None:
    source = f"{PRELUDE}\n{example.given}\n{_as_python(snippet)}\n"
    code = compile(source, f"<{example.code}>", "exec")
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code, {"__name__": f"example_{example.code}"})  # noqa: S102 (our own examples)


def _as_python(snippet: str) -> str:
    """A snippet as Python; `$ tilewright …` becomes the call of the command line's `main`."""
    if not snippet.startswith("$ "):
        return snippet
    lines = ["from tilewright.cli import main"]
    for line in snippet.splitlines():
        _, *arguments = shlex.split(line.removeprefix("$ "))
        lines.append(f"assert main({['--debug', *arguments]}) == 0")
    return "\n".join(lines)


def _in_a_process(function: str, example: Example) -> object:
    """What a function of this module makes of an example, in a new process."""
    program = _IN_A_PROCESS.format(function=function, code=example.code)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    return pickle.loads(done.stdout)  # noqa: S301 (from the process that we started)
