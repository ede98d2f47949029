"""What a site is: a kernel of a graph with the ways to run it, and what the choice is made for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, field

from tilewright.graph.groups import Group
from tilewright.graph.ir import Node, Value
from tilewright.graph.ops import Remap
from tilewright.graph.passes.movements import channel_range
from tilewright.graph.sizes import fixed
from tilewright.layouts.algorithms import DIRECT, Algorithm
from tilewright.layouts.costs import ConvShape, Machine
from tilewright.layouts.forms import FIRST, LAST, Form, blocked
from tilewright.layouts.windows import Window
from tilewright.schedule.measured import NOTHING, Measured, SiteTimes
from tilewright.schedule.recipes.contraction.space import ContractionPoint
from tilewright.schedule.recipes.windows.channel_space import ChannelPoint
from tilewright.schedule.recipes.windows.line_space import LinePoint

__all__ = ["Alternative", "Settings", "Site", "Timed", "cuts_blocks", "is_small"]


@dataclass(frozen=True)
class Settings:
    """What the choice is made for: a machine, whether sums must be exact, a form for everything.

    Without `halos`, every convolution makes the border of its data itself. `measured` holds what a
    tuner found for (workload, alternative without loops): its loops, and the cycles it took.
    `times` is what records say of sites and conversions (`timing.py`).
    """

    machine: Machine
    strict: bool = False
    fixed: Form | None = None
    halos: bool = True
    measured: Mapping[tuple[str, str], Alternative] = field(default_factory=dict)
    times: Measured = NOTHING

    @property
    def forms(self) -> tuple[Form, ...]:
        """The forms that are tried."""
        lanes = self.machine.target.lanes(4)
        usual = (LAST, FIRST, blocked(lanes), blocked(2 * lanes))
        return usual if self.fixed is None or self.fixed in usual else (*usual, self.fixed)


@dataclass(frozen=True)
class Alternative:
    """A way to run a site: the forms it reads and writes, the algorithm, and what it costs.

    `loops` are the parameters of its product or window; without them the recipe asks its model.
    """

    source: Form = LAST
    result: Form = LAST
    algorithm: Algorithm = DIRECT
    cycles: float = 0.0
    loops: ContractionPoint | ChannelPoint | LinePoint | None = None

    def key(self, rank: int) -> str:
        """The alternative without its cost, as text: a key in a database."""
        words = [self.algorithm.name, f"{self.source.name(rank)}→{self.result.name(rank)}"]
        match self.loops:
            case ContractionPoint() as plan:
                words.append(f"{plan.tile_rows}×{plan.tile_vectors}")
                words += [str(value) for value in astuple(plan)[2:]]
            case ChannelPoint() | LinePoint() as point:
                words.append(" ".join(map(str, astuple(point))))
        return " ".join(words)


@dataclass(frozen=True)
class Timed:
    """How long alternatives of a site took, and the predicted cycles of their reference.

    Cycles are without what is policy: `kept` is the price of each algorithm's weights.
    """

    times: SiteTimes
    predicted: float
    kept: Mapping[Algorithm, float] = field(default_factory=dict, hash=False)

    def policy(self, alternative: Alternative) -> tuple[float, float]:
        """What the time of an alternative is multiplied by, and what is added to it."""
        if alternative.algorithm not in self.kept:
            return 1.0, 0.0
        return alternative.algorithm.margin, self.kept[alternative.algorithm]


@dataclass(frozen=True, eq=False)
class Site:
    """A group (or a view between groups) with its alternatives; the first one is always there."""

    nodes: tuple[Node, ...]
    results: tuple[Value, ...]
    data: tuple[Value, ...] = ()
    beside: tuple[Value, ...] = ()
    alternatives: tuple[Alternative, ...] = (Alternative(),)
    group: Group | None = field(default=None, repr=False)
    conv: ConvShape | None = None
    window: Window | None = None
    timed: Timed | None = None

    @property
    def workload(self) -> str:
        """What it computes, whatever its place in a graph: operators and types."""
        ops = " ".join(str(node.op) for node in self.nodes)
        types = ", ".join(str(value.type) for value in (*self.reads, *self.results))
        return f"{ops}: {types}"

    def wanted(self, value: Value, alternative: Alternative) -> Form:
        """The form in which a value is read."""
        if value in self.data:
            return alternative.source
        return alternative.result.plain if value in self.beside else LAST

    @property
    def reads(self) -> tuple[Value, ...]:
        """Everything that comes from elsewhere."""
        made = {v for node in self.nodes for v in node.outputs}
        read = (v for node in self.nodes for v in node.inputs)
        return tuple(dict.fromkeys(v for v in read if v not in made))


def is_small(value: Value) -> bool:
    """Whether a value looks alike in all forms: it has no space, or no channels."""
    return all(fixed(d) == 1 for d in value.shape[1:-1]) or fixed(value.shape[-1]) == 1


def cuts_blocks(node: Node, form: Form) -> bool:
    """Whether a slice of channels begins inside of a block of them."""
    if not isinstance(node.op, Remap) or not form.block:
        return False
    found = channel_range(node.op, node.inputs[0])
    return found is not None and found[0] % form.block != 0
