"""The command `tilewright`, which can be interrupted before the package is imported.

Importing takes a few tenths of a second. Whoever presses Ctrl-C in that time wants the command to
end, without a traceback: so this module, which imports nothing, stands in front of the package.
"""

import sys

INTERRUPTED = 130


def main() -> int:
    """Import the command line, and run it."""
    try:
        from tilewright.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("tilewright: interrupted\n")
        return INTERRUPTED
    return run()
