"""Models for other machines: they are compiled and saved here, looked into, and run there.

Machine code is never mapped: a module of this kind has the program and all that it says, but no
executable. Everything that would run it is refused with one error that names what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, cast

from tilewright.errors import Code, TargetError
from tilewright.model.module import Module, stored_nodes
from tilewright.runtime import default_threads
from tilewright.runtime.executable import MemoryUse
from tilewright.runtime.feeds import Feeds
from tilewright.runtime.meetings import Meetings
from tilewright.target import Target

if TYPE_CHECKING:
    from tilewright.graph.ir import Graph
    from tilewright.model.assemble import Assembled
    from tilewright.runtime.artefact import Parts
    from tilewright.runtime.executable import Executable
    from tilewright.runtime.program import Program

__all__ = ["ForeignModule"]

T006 = Code("T006", "`{model}` is compiled for `{target}`: this machine lacks {missing}")


@dataclass(frozen=True)
class _Described:
    """What is known of an executable on any machine."""

    program: Program
    threads: int
    meetings: Meetings


class ForeignModule(Module):
    """A model that `save` writes for a machine of another kind (T006 where it should run)."""

    def __init__(
        self, made: Assembled, parts: Parts, target: Target, threads: int | None, graph: Graph
    ) -> None:
        described = _Described(made.program, threads or default_threads(), Meetings(made.program))
        super().__init__(cast("Executable", described), parts, stored_nodes(parts.extra), graph)
        self.target = target
        self._bytes = MemoryUse(0, 0, 0, made.weights.nbytes, len(made.code))

    def run(self, feeds: Feeds) -> NoReturn:
        """Refused: it runs elsewhere."""
        del feeds
        self._refuse()

    def run_into(self, feeds: Feeds, outputs: Mapping[str, object]) -> NoReturn:
        """Refused, as `run`."""
        del feeds, outputs
        self._refuse()

    def run_profiled(self, feeds: Feeds) -> NoReturn:
        """Refused, as `run`."""
        del feeds
        self._refuse()

    def memory(self) -> MemoryUse:
        """Bytes of weights and code; there is nothing else before it runs."""
        return self._bytes

    def _refuse(self) -> NoReturn:
        missing = self.target.missing_on(Target.host())
        facts = {"model": self.name, "target": self.target.name, "missing": missing}
        hint = "write it to a file with `module.save`, and load that with `tilewright.load` there"
        raise TargetError(T006, facts, hint=hint)
