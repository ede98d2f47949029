"""What was measured of sites, conversions and whole models: the seam to the choice of layouts.

Sites are kernels with a choice of algorithm and layouts (`layouts/sites.py`). A source of schedules
that knows how long their alternatives took says so by a property `measured`, and one that knows
how whole models did with its schedules by a method `for_model`. Everything is named by texts and
digests of them: neither side knows the other's classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

from tilewright.schedule.source import ScheduleSource

__all__ = ["CONVERSION", "KERNEL", "MODEL", "NOTHING", "SITE", "Measured", "SiteTimes"]
__all__ += ["conversion_key", "kind_of_key", "measured_by", "model_key", "site_key", "source_for"]

SITE, CONVERSION, MODEL, KERNEL = "site", "conversion", "model", "kernel"
"""What a measurement is about; keys of all but kernels begin with the word."""


@dataclass(frozen=True)
class SiteTimes:
    """How long alternatives of one site took, by their keys.

    `reference` is the one that the model of the machine chose, measured in turns with each of the
    others, and `reference_ns` its time as drafted. Times of others are in proportion to it, so that
    all of them are of one day.
    """

    reference: str
    reference_ns: float
    times_ns: Mapping[str, float] = field(hash=False)


@dataclass(frozen=True)
class Measured:
    """Times by `site_key`, and nanoseconds of conversions by `conversion_key`."""

    sites: Mapping[str, SiteTimes] = field(default_factory=dict, hash=False)
    conversions: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __bool__(self) -> bool:
        return bool(self.sites or self.conversions)


NOTHING: Final = Measured()


def site_key(workload: str) -> str:
    """The key of a site by its text, `Site.workload`."""
    return f"{SITE}-{_digest(workload)}"


def conversion_key(kind: str, before: str, after: str) -> str:
    """The key of a conversion by the type of a value and the names of its forms."""
    return f"{CONVERSION}-{_digest(f'{kind}: {before}→{after}')}"


def model_key(structure: str) -> str:
    """The key of a model by that of its graph, `graph/structure.py`."""
    return f"{MODEL}-{structure}"


def kind_of_key(key: str) -> str:
    """What a key is of."""
    word = key.partition("-")[0]
    return word if word in (SITE, CONVERSION, MODEL) else KERNEL


def measured_by(source: ScheduleSource) -> Measured:
    """What a source knows of sites and conversions; nothing, if it does not say."""
    found = getattr(source, "measured", NOTHING)
    return found if isinstance(found, Measured) else NOTHING


def source_for(source: ScheduleSource, structure: str) -> ScheduleSource:
    """The source to use for a model: itself, unless it knows that the model is slower so."""
    known = getattr(source, "for_model", None)
    return source if known is None else known(model_key(structure))


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=12).hexdigest()
