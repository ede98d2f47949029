"""Layouts of a site that nobody has tried: which of its template's are worth a kernel.

There are billions, and no program is made to look at them. Candidates are drawn at random, made of
the best ones so far by changing a digit (an order or a block, a tile, overlap, halo) or crossing
two, and of forms that are fast at other sites, since what two neighbours share is not converted.
They are ranked by what their next of kin is predicted to take, and by what their tiles move beside
that; for a few of them the solver says what the rest of the graph would cost. ALT has a learned
actor for this; here as there, what was measured decides which layouts the next ones are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tilewright.layouts.forms import Form
from tilewright.layouts.sites import Alternative
from tilewright.layouts.template import LayoutSpace
from tilewright.tuning.search.batches import chosen
from tilewright.tuning.search.mutation import crossed, mutated
from tilewright.tuning.search.strategy import Digits

__all__ = ["Proposals"]

DRAWN: Final = 48
"""Candidates of each kind."""
SHORT: Final = 12
"""Candidates for which the rest of the graph is asked."""
DIVERSITY: Final = 0.5
"""What new values of digits count beside a prediction: predictions are first opinions."""

Costs = Callable[[Sequence[Alternative]], Sequence[float]]
"""What alternatives cost the rest of a graph, in cycles."""


@dataclass
class Proposals:
    """What is proposed for one site; nothing is proposed twice."""

    space: LayoutSpace
    rng: np.random.Generator
    seen: set[object] = field(default_factory=set)

    def see(self, alternative: Alternative) -> None:
        """It has been proposed, or is a variant already."""
        self.seen.add(self._kernel(alternative))

    def _kernel(self, alternative: Alternative) -> object:
        """What alternatives of one kernel have in common: many names stand for the same memory."""
        site = self.space.site
        sides = ((site.data, alternative.source), (site.results, alternative.result))
        memory = (form.memory(v.shape) for values, form in sides for v in values[:1])
        return alternative.algorithm, *memory

    def next(
        self, parents: Sequence[Alternative], forms: Iterable[Form], count: int, others: Costs
    ) -> Iterator[Alternative]:
        """Alternatives in the order in which they are worth a try, of which `count` are wanted.

        `parents` are the best so far, with digits of this space. The last one of those that are
        wanted is any candidate, whatever is predicted for it. What is taken has been seen.
        """
        rows, made = self._fresh(self._candidates(parents, forms))
        if not made or count < 1:
            return
        own = np.array([a.cycles for a in made])
        short = chosen(rows, _score(own), SHORT, DIVERSITY)
        total = own[short] + np.array(others([made[k] for k in short]))
        order = short[chosen(rows[short], _score(total), SHORT, DIVERSITY)].tolist()
        order.insert(count - 1, int(self.rng.integers(len(rows))))
        for place in dict.fromkeys(order):
            self.see(made[place])
            yield made[place]

    def drawn(self) -> Iterator[Alternative]:
        """Layouts at random, as long as there are new ones."""
        while made := self._fresh(self.space.sample(self.rng, DRAWN))[1]:
            for alternative in made:
                self.see(alternative)
                yield alternative

    def _candidates(self, parents: Sequence[Alternative], forms: Iterable[Form]) -> Digits:
        space, rng = self.space, self.rng
        known = [digits for a in parents if (digits := space.digits(a)) is not None]
        best = np.array(known, np.int64).reshape(-1, len(space.lengths))
        found = [space.sample(rng, DRAWN), self._with_forms(parents, forms)]
        if len(best):
            first, second = best[rng.integers(len(best), size=(2, DRAWN))]
            found += [mutated(space, rng, first), crossed(space, rng, first, second)]
        return np.concatenate(found)

    def _with_forms(self, parents: Sequence[Alternative], forms: Iterable[Form]) -> Digits:
        """The best ones so far, with forms of others on either side."""
        rows = [
            digits
            for form in forms
            for a in parents
            for source, result in ((form, a.result.plain), (a.source.plain, form), (form, form))
            if (made := self.space.made(a.algorithm, source, result, halo=False)) is not None
            and (digits := self.space.digits(made)) is not None
        ]
        return np.array(rows, np.int64).reshape(-1, len(self.space.lengths))

    def _fresh(self, rows: Digits) -> tuple[Digits, list[Alternative]]:
        """What was not seen, each kernel once: rows, and what they stand for."""
        found: dict[object, tuple[tuple[int, ...], Alternative]] = {}
        for row in dict.fromkeys(map(tuple, rows.tolist())):
            made = self.space.at(row)
            assert made is not None, "candidates are followed"
            kernel = self._kernel(made)
            if kernel not in self.seen:
                found.setdefault(kernel, (row, made))
        fresh = np.array([row for row, _ in found.values()], np.int64)
        return fresh.reshape(-1, rows.shape[1]), [made for _, made in found.values()]


def _score(cycles: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(-np.log2(np.maximum(cycles, 1.0)))
