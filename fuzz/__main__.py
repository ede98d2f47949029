"""`python -m fuzz COMMAND …`: each command has a module with a `main(arguments)` of its own."""

from __future__ import annotations

import importlib
import sys
from typing import Final

COMMANDS: Final = {
    "graphs": ("fuzz.graphs", "random models over the operator schemas of the onnx package"),
    "nnsmith": ("fuzz.smith", "models of the generator nnsmith"),
    "reduce": ("fuzz.reduce", "make a failing model small"),
    "hostile": ("fuzz.hostile", "damaged models and artefacts, which must be refused"),
}


def main(arguments: list[str]) -> int:
    """Hand over to a command; 2 says that there is none of that name."""
    if arguments[:1] and arguments[0] in COMMANDS:
        module = importlib.import_module(COMMANDS[arguments[0]][0])
        return int(module.main(arguments[1:]))
    asked = arguments[:1] and arguments[0] in {"-h", "--help"}
    lines = [f"  {name:<10} {text}" for name, (_, text) in COMMANDS.items()]
    usage = "\n".join(["usage: python -m fuzz COMMAND …", "", *lines, "", "each has --help"])
    print(usage, file=sys.stdout if asked else sys.stderr)
    return 0 if asked else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
