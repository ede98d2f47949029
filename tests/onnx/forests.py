"""Random ensembles of decision trees, as attributes of the operators that hold them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["MODES", "RandomForest"]

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
GRID = 4
"""Thresholds and data are multiples of 1 / GRID, so that they are often equal."""


@dataclass
class RandomForest:
    """Trees of up to `depth` tests; leaves name `per_leaf` of the targets in `spoken`."""

    rng: np.random.Generator
    trees: int
    features: int
    spoken: tuple[int, ...]
    depth: int = 4
    per_leaf: int = 1
    modes: tuple[str, ...] = MODES[:1]
    missing: bool = False
    positive: bool = False
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    leaves: list[tuple[Any, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for tree in range(self.trees):
            self._grow(tree, self.depth, [0])

    def _grow(self, tree: int, depth: int, made: list[int]) -> int:
        """Append a node and what is below it; its id."""
        rng, own = self.rng, made[0]
        made[0] += 1
        if depth == 0 or (own and rng.random() < 0.2):
            self.rows.append((tree, own, 0, 0.0, "LEAF", 0, 0, 0))
            for target in rng.choice(self.spoken, self.per_leaf, replace=False):
                weight = rng.normal() if not self.positive else rng.random() / self.trees
                self.leaves.append((tree, own, int(target), float(np.float32(weight))))
            return own
        place = len(self.rows)
        self.rows.append(())
        holds, fails = self._grow(tree, depth - 1, made), self._grow(tree, depth - 1, made)
        limit = float(rng.integers(-GRID, GRID + 1) / GRID)
        mode, tracks = rng.choice(self.modes), int(self.missing and rng.random() < 0.5)
        feature = int(rng.integers(self.features))
        self.rows[place] = (tree, own, feature, limit, str(mode), holds, fails, tracks)
        return own

    def data(self, rows: int, dtype: str = "f4") -> np.ndarray[Any, Any]:
        found = self.rng.integers(-2 * GRID, 2 * GRID, (rows, self.features)) / GRID
        if self.missing:
            found[self.rng.random(found.shape) < 0.2] = np.nan
        return found.astype(dtype)

    def lists(self, kind: str) -> dict[str, Any]:
        """As `TreeEnsembleClassifier` ("class") and `TreeEnsembleRegressor` ("target") have it."""
        columns = [list(c) for c in zip(*self.rows, strict=True)]
        ends = [list(c) for c in zip(*self.leaves, strict=True)]
        names = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids")
        names += ("falsenodeids", "missing_value_tracks_true")
        made = {f"nodes_{name}": column for name, column in zip(names, columns, strict=True)}
        leaf = ("treeids", "nodeids", "ids", "weights")
        return made | {f"{kind}_{name}": column for name, column in zip(leaf, ends, strict=True)}

    def positions(self) -> dict[str, Any]:
        """As `TreeEnsemble` has it: leaves of one target each."""
        from onnx import numpy_helper

        tests = [row for row in self.rows if row[4] != "LEAF"]
        leaf = {(t, n): k for k, (t, n, _, _) in enumerate(self.leaves)}
        place = {(row[0], row[1]): k for k, row in enumerate(tests)}

        def child(tree: int, node: int) -> tuple[int, int]:
            return (place[tree, node], 0) if (tree, node) in place else (leaf[tree, node], 1)

        holds = [child(row[0], row[5]) for row in tests]
        fails = [child(row[0], row[6]) for row in tests]
        firsts = {tree: place[tree, 0] for tree in range(self.trees)}
        modes = np.array([MODES.index(row[4]) for row in tests], np.uint8)
        return {
            "nodes_featureids": [row[2] for row in tests],
            "nodes_splits": numpy_helper.from_array(np.float32([row[3] for row in tests])),
            "nodes_modes": numpy_helper.from_array(modes),
            "nodes_truenodeids": [n for n, _ in holds],
            "nodes_trueleafs": [n for _, n in holds],
            "nodes_falsenodeids": [n for n, _ in fails],
            "nodes_falseleafs": [n for _, n in fails],
            "nodes_missing_value_tracks_true": [row[7] for row in tests],
            "tree_roots": list(firsts.values()),
            "leaf_targetids": [row[2] for row in self.leaves],
            "leaf_weights": numpy_helper.from_array(np.float32([row[3] for row in self.leaves])),
        }
