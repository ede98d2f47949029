"""What long work is doing, on one line of a terminal; nothing where nobody watches."""

from __future__ import annotations

import shutil
import sys
from types import TracebackType
from typing import Self, TextIO

from tilewright.model.compiler import Progress

__all__ = ["ProgressLine"]


class ProgressLine:
    """A line on stderr that is replaced by the next one, and gone at the end."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.is_shown = self.stream.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._put("")

    def compiling(self, progress: Progress) -> None:
        """How far a compilation is."""
        done = f" {progress.done}/{progress.total}" if progress.total else ""
        self.say(f"compile: {progress.stage}{done}")

    def say(self, text: str) -> None:
        """Replace the line."""
        width = shutil.get_terminal_size().columns - 1
        self._put(text if len(text) <= width else f"{text[: width - 1]}…")

    def _put(self, text: str) -> None:
        if self.is_shown:
            self.stream.write(f"\r\x1b[K{text}")
            self.stream.flush()
