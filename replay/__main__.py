"""`python -m replay COMMAND …`."""

from __future__ import annotations

import sys

from replay.command_line import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
