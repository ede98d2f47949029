"""Decision trees as tables, from either of the two ways in which ONNX writes them down.

Leaves come first, so that where a walk ends is the number of a leaf; then the nodes that test.
Trees are ordered by depth, the greatest first, so that each step concerns the first few of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tilewright.graph.ir import Array
from tilewright.graph.ops.descend import ABOVE, BELOW, EQUAL, UNORDERED

__all__ = ["Forest", "forest_of_lists", "forest_of_positions"]

Ints = NDArray[np.int64]

OUTCOMES: Final = {
    "BRANCH_LEQ": BELOW | EQUAL,
    "BRANCH_LT": BELOW,
    "BRANCH_GTE": ABOVE | EQUAL,
    "BRANCH_GT": ABOVE,
    "BRANCH_EQ": EQUAL,
    "BRANCH_NEQ": BELOW | ABOVE | UNORDERED,
}
MODES: Final = (*OUTCOMES, "BRANCH_MEMBER")
"""In the order of their numbers."""
MOST_FEATURES: Final = (1 << 31) - 1
"""Tables of nodes have integers of 32 bits."""


@dataclass(frozen=True)
class Forest:
    """Trees whose leaves have numbers from 0 on, and whose tests have those behind."""

    nodes: Array
    limits: Array
    roots: Array
    levels: tuple[int, ...]
    weights: Array
    """[leaves, targets], zero where a leaf says nothing."""
    said: Array
    """[leaves, targets]: whether it does."""

    @property
    def outcomes(self) -> int | None:
        """Those of all tests if they agree."""
        found = np.unique(self.nodes[len(self.weights) :, 3])
        return int(found[0]) if len(found) == 1 else None

    @property
    def own_targets(self) -> Ints | None:
        """The only target of each tree, None if a tree has several."""
        firsts = np.full(len(self.roots), -1)
        trees = self._trees_of_leaves()
        if trees is None:
            return None
        leaves, targets = np.nonzero(self.said)
        firsts[trees[leaves]] = targets
        return firsts if (firsts[trees[leaves]] == targets).all() and (firsts >= 0).all() else None

    @property
    def always_said(self) -> Array:
        """For each target: whether every row of data gets a score for it."""
        trees = self._trees_of_leaves()
        if trees is None:
            return np.asarray(self.said.all(axis=0))
        counts = np.zeros((len(self.roots), self.said.shape[1]), np.int64)
        np.add.at(counts, trees, self.said)
        leaves = np.bincount(trees, minlength=len(self.roots))
        return np.asarray((counts == leaves[:, None]).any(axis=0))

    def _trees_of_leaves(self) -> Ints | None:
        """The tree of each leaf; None if several branches lead to one."""
        trees, seen = np.full(len(self.weights), -1), 0
        at, tree = self.roots.astype(np.int64), np.arange(len(self.roots))
        while len(at):
            seen += len(at)
            if seen > len(self.nodes):  # branches meet: there may be 2ⁿ ways to a leaf
                return None
            ended = at < len(self.weights)
            if len(np.unique(at[ended])) < ended.sum() or (trees[at[ended]] >= 0).any():
                return None
            trees[at[ended]] = tree[ended]
            at, tree = at[~ended], tree[~ended]
            at, tree = self.nodes[at, 1:3].astype(np.int64).ravel(), np.repeat(tree, 2)
        return None if (trees < 0).any() else trees


def _forest(
    tests: tuple[Ints, Array, Ints, Ints, Ints],
    roots: Ints,
    weights: Array,
    said: Array,
    *,
    complete: bool = False,
) -> Forest:
    """From (features, limits, outcomes, next if it holds, next if not) of all tests.

    If `complete`, all of them must belong to a tree.
    """
    features, limits, outcomes, holds, fails = tests
    leaves, count = len(weights), len(weights) + len(features)
    if any(v.shape != features.shape for v in tests):
        raise ValueError("the attributes of nodes differ in length")
    if any(len(v) and not 0 <= v.min() <= v.max() < count for v in (holds, fails, roots)):
        raise ValueError("a branch leads to a node that does not exist")
    if len(features) and not 0 <= features.min() <= features.max() <= MOST_FEATURES:
        raise ValueError("a node tests a feature whose number is negative, or beyond 31 bits")
    own = np.arange(leaves)
    no_tests = np.zeros(leaves, np.int64)
    nodes = np.stack(
        [
            np.concatenate([no_tests, features]),
            np.concatenate([own, fails]),
            np.concatenate([own, holds]),
            np.concatenate([no_tests, outcomes]),
        ],
        axis=1,
    ).astype(np.int32)
    depths, reached = _depths(nodes, roots, leaves)
    if complete and reached < len(features):
        raise ValueError("the nodes of a tree are no tree")
    order = np.argsort(-depths, kind="stable")
    done = np.cumsum(np.bincount(depths, minlength=1))[:-1]  # after each step
    levels = tuple((len(depths) - done).tolist())
    limits = np.concatenate([np.zeros(leaves, limits.dtype), limits])
    return Forest(nodes, limits, roots[order].astype(np.int32), levels, weights, said)


def _depths(nodes: Array, roots: Ints, leaves: int) -> tuple[Ints, int]:
    """How many steps lead to the farthest leaf of each tree, and how many tests are met."""
    depths, following = np.zeros(len(roots), np.int64), nodes[:, 1:3].astype(np.int64)
    at, tree, seen, count = roots, np.arange(len(roots)), 0, len(nodes)
    while len(at):
        going = at >= leaves
        at, tree = at[going], tree[going]
        seen += len(at)
        if seen > count:
            raise ValueError("the nodes of a tree are no tree")
        depths[tree] += 1  # once, also if a tree has several nodes here
        pairs = np.unique(np.repeat(tree, 2) * count + following[at].ravel())
        at, tree = pairs % count, pairs // count
    return depths, seen


def forest_of_lists(
    attributes: Mapping[str, Any], kind: str, targets: int, dtype: np.dtype[Any]
) -> Forest:
    """Of `TreeEnsembleClassifier` and `TreeEnsembleRegressor`: nodes have ids within trees.

    `kind` is how attributes of leaves begin: "class" or "target".
    """

    def ints(name: str) -> Ints:
        return np.asarray(attributes.get(name, ()), np.int64)

    def floats(name: str) -> Array:
        tensor = attributes.get(f"{name}_as_tensor")
        return np.asarray(attributes.get(name, ()) if tensor is None else tensor, dtype)

    trees, ids = ints("nodes_treeids"), ints("nodes_nodeids")
    names = [_text(mode) for mode in attributes.get("nodes_modes", ())]
    if not len(trees) == len(ids) == len(names):
        raise ValueError("the attributes of nodes differ in length")
    is_leaf = np.array([name == "LEAF" for name in names], bool)
    numbers = np.empty(len(ids), np.int64)
    numbers[is_leaf] = np.arange(is_leaf.sum())
    numbers[~is_leaf] = np.arange((~is_leaf).sum()) + is_leaf.sum()
    found = _Places(trees, ids)
    tested = ~is_leaf
    holds = found.of(trees[tested], ints("nodes_truenodeids")[tested])
    fails = found.of(trees[tested], ints("nodes_falsenodeids")[tested])
    roots, are_first = _roots(trees, np.concatenate([holds, fails]))
    missing = ints("nodes_missing_value_tracks_true")
    missing = missing if len(missing) else np.zeros(len(ids), np.int64)
    outcomes = np.array([OUTCOMES[n] for n in names if n != "LEAF"], np.int64)
    outcomes = outcomes | np.where(missing[tested] != 0, UNORDERED, 0)
    ends = numbers[found.of(ints(f"{kind}_treeids"), ints(f"{kind}_nodeids"))]
    wanted, values = ints(f"{kind}_ids"), floats(f"{kind}_weights")
    weights, said = _leaves(int(is_leaf.sum()), targets, ends, wanted, values, dtype)
    tests = (
        ints("nodes_featureids")[tested],
        floats("nodes_values")[tested],
        outcomes,
        numbers[holds],
        numbers[fails],
    )
    return _forest(tests, numbers[roots], weights, said, complete=not are_first)


def _roots(trees: Ints, children: Ints) -> tuple[Ints, bool]:
    """The node of each tree to which no branch leads; it stands first, or all others hang on it."""
    is_child = np.zeros(len(trees), bool)
    is_child[children] = True
    firsts = np.sort(np.unique(trees, return_index=True)[1])
    free = np.flatnonzero(~is_child)
    roots = free[np.sort(np.unique(trees[free], return_index=True)[1])]
    if len(roots) != len(firsts):
        raise ValueError("the nodes of a tree are no tree")
    return roots, bool((roots == firsts).all())


class _Places:
    """Where the node with an id within a tree stands in the lists."""

    def __init__(self, trees: Ints, ids: Ints) -> None:
        self.span = int(ids.max(initial=0)) + 1
        keys = trees * self.span + ids
        self.order = np.argsort(keys, kind="stable")
        self.keys = keys[self.order]

    def of(self, trees: Ints, ids: Ints) -> Ints:
        wanted = trees * self.span + ids
        found = np.searchsorted(self.keys, wanted)
        inside = (found < len(self.keys)) & (ids >= 0) & (ids < self.span)
        if not inside.all() or (self.keys[found] != wanted).any():
            raise ValueError("a branch leads to a node that does not exist")
        return self.order[found]


def _leaves(
    count: int, targets: int, ends: Ints, wanted: Ints, values: Array, dtype: np.dtype[Any]
) -> tuple[Array, Array]:
    if len(ends) and not (0 <= wanted.min() <= wanted.max() < targets and ends.max() < count):
        raise ValueError("a leaf names a target that does not exist")
    weights, said = np.zeros((count, targets), dtype), np.zeros((count, targets), bool)
    np.add.at(weights, (ends, wanted), values)
    said[ends, wanted] = True
    return weights, said


def forest_of_positions(
    attributes: Mapping[str, Any], targets: int, dtype: np.dtype[Any]
) -> Forest:
    """Of `TreeEnsemble`: tests and leaves are lists of their own, and branches positions in them.

    A test for members of a set is a chain of tests for one member each.
    """

    def ints(name: str) -> Ints:
        return np.asarray(attributes.get(name, ()), np.int64)

    values = np.asarray(attributes["leaf_weights"], dtype)
    features, leaves = ints("nodes_featureids"), len(values)
    modes = np.asarray(attributes["nodes_modes"], np.int64)
    missing = ints("nodes_missing_value_tracks_true")
    missing = np.where(missing != 0, UNORDERED, 0) if len(missing) else np.zeros_like(features)
    holds = ints("nodes_truenodeids") + np.where(ints("nodes_trueleafs") != 0, 0, leaves)
    fails = ints("nodes_falsenodeids") + np.where(ints("nodes_falseleafs") != 0, 0, leaves)
    plain = np.array([*OUTCOMES.values(), 0], np.int64)
    tests = [
        features,
        np.array(attributes["nodes_splits"], dtype),
        plain[modes] | missing,
        holds,
        fails,
    ]
    members = _sets(attributes.get("membership_values"))
    tests = _chained(tests, np.flatnonzero(modes == MODES.index("BRANCH_MEMBER")), members, leaves)
    weights, said = _leaves(
        leaves, targets, np.arange(leaves), ints("leaf_targetids"), values, dtype
    )
    made = (tests[0], tests[1], tests[2], tests[3], tests[4])
    return _forest(made, ints("tree_roots") + leaves, weights, said)


def _sets(values: Any) -> list[list[float]]:
    """Members of sets, each of which ends with NaN."""
    found: list[list[float]] = [[]]
    for value in np.asarray([] if values is None else values).ravel():
        if np.isnan(value):
            found.append([])
        else:
            found[-1].append(float(value))
    return found


def _chained(
    tests: list[Array], positions: Ints, members: list[list[float]], leaves: int
) -> list[Array]:
    """Make each of the tests at positions one for its first member, with new ones behind all."""
    features, limits, outcomes, holds, fails = tests
    new: list[int] = []
    others: list[float] = []
    rests: list[int] = []
    for position, own in zip(positions.tolist(), members, strict=False):
        if not own:
            continue
        first, rest = leaves + len(features) + len(new), int(fails[position])
        chain = [*range(first, first + len(own) - 1), rest]
        limits[position], fails[position] = own[0], chain[0]
        outcomes[position] |= EQUAL
        new += [position] * (len(own) - 1)
        others += own[1:]
        rests += chain[1:]
    like = np.array(new, np.int64)
    more = (features[like], np.array(others), outcomes[like], holds[like], np.array(rests))
    return [np.concatenate([a, b.astype(a.dtype)]) for a, b in zip(tests, more, strict=True)]


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
