"""Ensembles of trees, whose labels are texts, for the ONNX reference implementation."""

from __future__ import annotations

from typing import Any

from onnx.reference.ops.aionnxml import op_tree_ensemble_classifier as classifier
from onnx.reference.ops.aionnxml import op_tree_ensemble_regressor as regressor

from tilewright.frontend.onnx.ml_scores import DOMAIN

__all__ = ["TreeEnsembleClassifier", "TreeEnsembleRegressor"]


class _Trees:
    """Trees that do not say where missing values go: these go the way of what is false."""

    def _run(self, x: Any, **attributes: Any) -> tuple[Any, ...]:
        if attributes.get("nodes_missing_value_tracks_true") is None:
            count = len(attributes["nodes_modes"])
            attributes["nodes_missing_value_tracks_true"] = [0] * count
        found: tuple[Any, ...] = super()._run(x, **attributes)  # type: ignore[misc]
        return found


class TreeEnsembleClassifier(_Trees, classifier.TreeEnsembleClassifier):  # type: ignore[misc]
    """Scores of classes, and the best of these."""

    op_domain = DOMAIN


class TreeEnsembleRegressor(_Trees, regressor.TreeEnsembleRegressor):  # type: ignore[misc]
    """Scores of targets."""

    op_domain = DOMAIN
