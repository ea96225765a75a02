"""A fitted tree as the attributes of a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from softsplit.engines.samples import Samples
from softsplit.reading.importance import feature_importances
from softsplit.reading.methods import ReadingMixin
from softsplit.reading.model import TreeModel
from softsplit.reading.prediction import PredictionMixin
from softsplit.solvers import Solution, Status
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.sparsity import global_sparsity, local_sparsity, selected_features


class FittedTreeMixin(PredictionMixin, ReadingMixin, BaseEstimator):
    """Keeps a solution, and what follows from it; gives it back as a ``TreeModel``.

    The estimator has set ``classes_``, ``n_features_in_``, ``scaling_`` and ``_summary`` before.
    """

    def _store(self, chosen: Solution, zero_threshold: float, samples: Samples | None) -> None:
        self.solution_ = chosen
        self._steepness = float(self.steepness)
        self._zero_threshold = float(zero_threshold)
        self.objective_ = chosen.objective
        self.n_iter_ = max(1, chosen.n_iter)
        if samples is not None:
            self.feature_importances_ = feature_importances(
                chosen.parameters, self._steepness, samples.features, samples.weights
            )
        self._adopt(chosen.parameters)

    def _adopt(self, parameters: TreeParameters) -> None:
        """The tree and what follows from it; features that it does not use lose their share."""
        self.weights_ = parameters.weights
        self.thresholds_ = parameters.thresholds
        self.leaf_classes_ = parameters.leaf_classes
        self.coef_, self.intercept_ = self.scaling_.splits(parameters)
        self.local_sparsity_ = local_sparsity(parameters.weights, self._zero_threshold)
        self.global_sparsity_ = global_sparsity(parameters.weights, self._zero_threshold)
        self.selected_features_ = selected_features(parameters.weights, self._zero_threshold)
        shares = getattr(self, "feature_importances_", np.zeros(parameters.n_features))
        unused = ~np.any(parameters.weights, axis=1)
        if np.any(shares[unused]):
            kept = np.where(unused, 0.0, shares)
            self.feature_importances_ = kept / kept.sum() if kept.sum() > 0 else kept

    def _model(self) -> TreeModel:
        """The fitted tree as plain data."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        return TreeModel(
            parameters=TreeParameters(self.weights_, self.thresholds_, self.leaf_classes_),
            steepness=self._steepness,
            scaling=self.scaling_,
            classes=self.classes_,
            feature_names=tuple(map(str, names)),
            summary=self._summary,
            zero_threshold=self._zero_threshold,
        )

    def __getstate__(self) -> dict[str, Any]:
        """The status of a solution by its name: skops knows no enums."""
        state: dict[str, Any] = super().__getstate__()
        return _map_solutions(state, lambda s: replace(s, status=s.status.name))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(_map_solutions(state, _with_status))


def _with_status(solution: Any) -> Any:
    """A solution out of a pickle, its status no longer by name."""
    try:
        return replace(solution, status=Status[solution.status])
    except (KeyError, AttributeError, TypeError):
        raise ValueError(
            "this pickle was made by another version of softsplit and cannot be read by this one; "
            "use save_model and load_model for files that last."
        ) from None


def _map_solutions(state: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """The state of an estimator with its solutions changed."""
    changed = dict(state)
    if "solution_" in state:
        changed["solution_"] = change(state["solution_"])
    if "starts_" in state:
        changed["starts_"] = [change(solution) for solution in state["starts_"]]
    return changed
