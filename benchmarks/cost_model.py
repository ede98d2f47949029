"""How well cost models order points: the analytic one, learned ones, and on which features.

    python -m benchmarks.cost_model [--points 80] [--only TEXT] [--keep FILE]
    python -m benchmarks.cost_model --measured FILE [--again OTHER]

Random points of six products and three programs of one layer are built and take turns on one thread
(`benchmarks.cost_points`); `--keep` writes what was measured, and `--measured` judges models with
such a file. `--again` is a file of the same points: how far the order of one measurement is that
of another is what no model can exceed.

Two questions: how well a task is ordered by what others have taught (each task left out in turn),
and how well the rest of a task by 40 of its own points, alone and together with what others have
taught. Speed is that of one thread.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks import cost_points, machine
from benchmarks.cost_points import TASKS, Measured
from tilewright.calibration import with_machine_model
from tilewright.schedule.draft import draft
from tilewright.schedule.recipes.contraction.recipe import CONTRACTION
from tilewright.schedule.recipes.contraction.space import ContractionShape
from tilewright.schedule.recipes.table import Table
from tilewright.target import Target
from tilewright.tuning.cost_model.boosted import Boosted, Settings
from tilewright.tuning.cost_model.joined import Joined
from tilewright.tuning.cost_model.metrics import (
    pairwise_accuracy,
    peak_score,
    spearman,
    top_recall,
)
from tilewright.tuning.cost_model.model import Analytic, CostModel, Samples
from tilewright.tuning.features.loops import CONTEXT_NAMES, LOOP_NAMES, loop_features
from tilewright.tuning.features.nests import lowered_loops
from tilewright.tuning.features.points import SHARED, point_features
from tilewright.tuning.features.scaling import Features
from tilewright.tuning.features.stores import PROGRAM_NAMES, program_features

__all__ = ["main"]

TRAINED: Final = 40
"""Points of a task that a model within it learns from."""
SPLITS: Final = 3
TOP: Final = 10
FEW: Final = 5
MEASURES: Final = ("Spearman", "pairs", f"top {TOP}", f"best of {FEW}")
SETS: Final = ("points", "loops", "points and loops")


@dataclass(frozen=True)
class Task:
    """What was measured of one program, with all of its features."""

    name: str
    points: Features
    loops: Features
    seconds: NDArray[np.float64]

    def features(self, chosen: str, *, of_many: bool) -> Features:
        """A set of features; for a model of many tasks, those that mean the same in all."""
        points = self.points.only(SHARED) if of_many else self.points
        hidden = set(CONTEXT_NAMES) if of_many else set()
        loops = self.loops.only([n for n in self.loops.names if n not in hidden])
        return {"points": points, "loops": loops}.get(chosen) or points.beside(loops)

    @classmethod
    def of(cls, measured: Measured, target: Target) -> Task:
        """Compute all features."""
        decision, program = measured.decision(target), measured.program
        points = point_features(decision.recipe, decision.shape, Table.of(measured.points), target)
        rows = []
        for point in measured.points:
            given = dict.fromkeys(decision.blocks, point)
            scheduled = draft(program.func, target, 1, program.constants, points=given).func
            lowered = lowered_loops(scheduled, target)
            rows.append(np.concatenate([loop_features(lowered), program_features(lowered, target)]))
        loops = Features((*LOOP_NAMES, *PROGRAM_NAMES), np.array(rows))
        return cls(measured.workload.name, points, loops, np.array(measured.seconds))


def judge(model: CostModel, features: Features, seconds: NDArray[Any]) -> list[float]:
    """All measures of one order."""
    scores = model.predict(features)
    return [
        spearman(scores, -seconds),
        pairwise_accuracy(scores, seconds),
        top_recall(scores, seconds, TOP),
        peak_score(scores, seconds, FEW),
    ]


def left_out(tasks: Sequence[Task], chosen: str, settings: Settings) -> list[list[float]]:
    """Each task by a model of the others."""
    found = []
    for task in tasks:
        groups = [_samples(t, chosen) for t in tasks if t is not task]
        model = Boosted(settings)
        model.fit(groups)
        found.append(judge(model, task.features(chosen, of_many=True), task.seconds))
    return found


def within(
    tasks: Sequence[Task], chosen: str, make: Callable[[Task], CostModel]
) -> list[list[float]]:
    """The rest of each task by a model that has seen some points of it; means over splits."""
    found = []
    for task in tasks:
        features = task.features(chosen, of_many=False)
        each = []
        for split in range(SPLITS):
            order = np.random.default_rng(split).permutation(len(task.seconds))
            seen, rest = order[:TRAINED], order[TRAINED:]
            model = make(task)
            model.fit([Samples(_rows(features, seen), task.seconds[seen])])
            each.append(judge(model, _rows(features, rest), task.seconds[rest]))
        found.append(np.nanmean(each, axis=0).tolist())
    return found


def _samples(task: Task, chosen: str) -> Samples:
    return Samples(task.features(chosen, of_many=True), task.seconds)


def _rows(features: Features, rows: NDArray[np.intp]) -> Features:
    return Features(features.names, features.rows[rows])


def quality(tasks: Sequence[Task]) -> list[str]:
    """The table of all models, and Spearman's correlation by task."""
    analytic = [judge(Analytic(), t.points, t.seconds) for t in tasks]
    rows = {("analytic", "", "nothing"): analytic}
    # What is left of a task is easier: ten of forty are found more often than ten of eighty.
    rest = within(tasks, "points", lambda _: Analytic())
    rows["analytic", "", "nothing, rest of the task"] = rest
    for objective in ("rank", "regression"):
        settings = Settings(objective=objective)
        for chosen in SETS:
            rows[objective, chosen, "other tasks"] = left_out(tasks, chosen, settings)
            rows[objective, chosen, f"{TRAINED} points of the task"] = within(
                tasks,
                chosen,
                lambda _, s=settings: Boosted(s),  # type: ignore[misc]
            )
    joined = Settings()
    rows["rank, joined", "points", f"both, {TRAINED} points"] = within(
        tasks, "points", lambda task: _joined(tasks, task, joined)
    )
    head = ["model", "features", "learned from", *MEASURES]
    lines = [_line(head), _line(["---"] * 3 + ["--:"] * len(MEASURES))]
    for key, found in rows.items():
        lines.append(_line([*key, *(f"{x:.2f}" for x in np.nanmean(found, axis=0))]))
    lines += ["", _line(["Spearman by task", *(t.name for t in tasks)])]
    lines.append(_line(["---"] + ["--:"] * len(tasks)))
    for key, found in rows.items():
        if key[0] != "regression":
            label = ", ".join(part for part in key if part)
            lines.append(_line([label, *(f"{x[0]:.2f}" for x in found)]))
    return lines


def _joined(tasks: Sequence[Task], task: Task, settings: Settings) -> CostModel:
    history = [Samples(t.points.only(SHARED), t.seconds) for t in tasks if t is not task]
    return Joined.of(history, settings)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def repeated(found: Sequence[Measured], others: Sequence[Measured]) -> str:
    """Spearman's correlation of two measurements of the same points."""
    cells = ["measured twice"]
    for each in found:
        again = next((o for o in others if o.workload == each.workload), None)
        same = again is not None and again.points == each.points
        cells.append(f"{spearman(each.seconds, again.seconds):.2f}" if again and same else "")
    return _line(cells)


def speed(tasks: Sequence[Task], target: Target) -> str:
    """Points that are ranked in a second on one thread, features included."""
    shape = ContractionShape(1, 512, 512, 512, 4, right_is_constant=True, threads=1)
    space = CONTRACTION.points(shape, target)
    table = space.table(np.random.default_rng(0).integers(0, space.size, 1 << 16))
    products = [t for t in tasks if "contraction.tile_rows" in t.points.names]
    model = Boosted(replace(Settings(), threads=1))
    model.fit([Samples(t.points, t.seconds) for t in products])
    begin = time.perf_counter()
    features = point_features(CONTRACTION, shape, table, target)
    middle = time.perf_counter()
    model.predict(features)
    end = time.perf_counter()
    rates = (len(table) / seconds for seconds in (middle - begin, end - middle, end - begin))
    return "points a second: {:,.0f} features, {:,.0f} scores, {:,.0f} both".format(*rates)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser("python -m benchmarks.cost_model", description=__doc__)
    parser.add_argument("--points", type=int, default=80, help="at random, of each program")
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="write what was measured")
    parser.add_argument("--measured", type=Path, metavar="FILE", help="judge with such a file")
    parser.add_argument("--again", type=Path, metavar="FILE", help="the same points once more")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    if given.measured is not None:
        found, target = cost_points.read(given.measured)
    else:
        target = with_machine_model(Target.host())
        chosen = [w for w in TASKS if given.only in w.name]
        found = []
        for each in cost_points.measure(chosen, target, given.points, given.seed):
            print(each.workload.name, len(each.points), file=sys.stderr, flush=True)
            found.append(each)
        if given.keep is not None:
            cost_points.write(given.keep, found, target)
    tasks = [Task.of(each, target) for each in found]
    print(f"{machine.describe()['cpu']}; {sum(len(t.seconds) for t in tasks)} points\n")
    print("\n".join(quality(tasks)))
    if given.again is not None:
        print(repeated(found, cost_points.read(given.again)[0]))
    print(f"\n{speed(tasks, target)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
