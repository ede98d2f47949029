"""U: tuning."""

from __future__ import annotations

from tilewright.explain.example import example

__all__ = ["EXAMPLES"]

EXAMPLES = (
    example(
        "U010",
        """Cost models learn by LightGBM, which is no dependency of the compiler itself. Install
        the extra, or take the analytic order, which needs nothing: `make_model` does so by itself
        where LightGBM is missing.""",
        given="""
        import sys

        from tilewright.tune.cost_model.boosted import Boosted, make_model
        from tilewright.tune.cost_model.model import Samples
        from tilewright.tune.features.scaling import Features

        sys.modules["lightgbm"] = None  # as where it is not installed
        rows = Features(("tile",), np.arange(16.0).reshape(16, 1))
        samples = Samples(rows, np.arange(1.0, 17.0))
        """,
        wrong="Boosted().fit([samples])",
        right="make_model().fit([samples])",
        alone=True,
    ),
    example(
        "U011",
        """A cost model is a JSON file that `save` writes. This one is something else, was damaged
        or was written by another version. Nothing is lost: models are learned again from what was
        measured.""",
        given="""
        import tempfile
        from pathlib import Path

        from tilewright.tune.cost_model.boosted import Boosted
        from tilewright.tune.cost_model.files import load, save

        path = Path(tempfile.mkdtemp()) / "model.json"
        path.write_text("{}")
        """,
        wrong="load(path)",
        right="""
        save(Boosted(), path)
        model = load(path)
        """,
    ),
    example(
        "U040",
        """A search is asked for by a name that no strategy has. `evolution` and `annealing` follow
        a cost model; `random`, `grid` and `genetic` do not, and are there to compare with.""",
        given="""
        from types import SimpleNamespace

        from tilewright.tune.search import strategy_named

        space = SimpleNamespace(lengths=(4, 3), size=12)
        rng = np.random.default_rng(0)
        """,
        wrong='strategy_named("evolutoin", space, rng)',
        right='strategy_named("evolution", space, rng)',
    ),
    example(
        "U041",
        """A budget of time is a number of seconds, or numbers with the units `h`, `m` and `s`, the
        largest first and without spaces. It is more than nothing.""",
        given="from tilewright.tune.budget import parse_budget",
        wrong='parse_budget("10 minutes")',
        right="""
        seconds = parse_budget("10m")
        longer = parse_budget("1h30m")
        """,
    ),
)
