"""`Module`: a compiled model."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.model.assemble import Assembled
from tilewright.runtime.executable import Executable
from tilewright.runtime.image import Image

__all__ = ["Module"]


class Module:
    """Holds the executable; `run` takes arrays by name and gives a list of arrays."""

    def __init__(self, parts: Assembled, threads: int) -> None:
        self.parts = parts
        functions = [f.function for f in parts.functions]
        image = Image.from_bytes(parts.code)
        self._executable = Executable(
            parts.program, image, parts.weights, functions, threads=threads
        )

    def run(self, feeds: Mapping[str, object]) -> list[object]:
        return self._executable.run(feeds)  # type: ignore[no-any-return]
