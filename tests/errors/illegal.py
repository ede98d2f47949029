"""Steps that must be refused, as data: each with its code and with words that say why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.expect import raises_code
from tests.moving import chain
from tilewright.schedule import Schedule
from tilewright.tensor import ir as tir


@dataclass(frozen=True)
class Illegal:
    """After `before`, the step `step` is refused with `code` and a text that has `words`."""

    name: str
    program: Callable[[], tir.Func]
    step: Callable[[Schedule], object]
    code: str
    words: tuple[str, ...]
    before: Callable[[Schedule], object] = id
    validated: bool = True  # validation refuses the program already; the primitive must as well

    def check(self) -> None:
        """The step fails as it should, and leaves the schedule as it was."""
        schedule = Schedule(self.program() if self.validated else chain())
        if not self.validated:
            schedule.func = self.program()
        self.before(schedule)
        before, steps = schedule.func, schedule.trace
        with raises_code(self.code) as caught:
            self.step(schedule)
        text = str(caught.value)
        for word in self.words:
            assert word in text, f"expected {word!r} in:\n{text}"
        assert caught.value.step is not None
        assert schedule.func is before
        assert schedule.trace == steps


def tiles(s: Schedule, i: int = 2, j: int = 3, k: int = 4, *, decompose: bool = True) -> None:
    """Tile a matrix product, and begin its sums at the tiles over `k`."""
    for loop, tile in (("i", i), ("j", j), ("k", k)):
        s.split(loop, tile)
    s.reorder("i_0", "j_0", "k_0", "i_1", "j_1", "k_1")
    if decompose:
        s.decompose_reduction("C", "k_0")


def decompose_k(s: Schedule) -> None:
    s.decompose_reduction("C", "k")
