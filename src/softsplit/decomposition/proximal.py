"""Choosing psi, the weight of the proximal term, by nested cross-validation (section 6.4).

Every training block of the outer folds is cut again into inner folds. For each psi the accuracy on
the inner validation parts is averaged over random starts, inner folds and outer folds; the psi
with the best mean is then trained on the whole training blocks and judged on the outer test
parts, which had no say in the choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, check_cv, cross_val_score
from sklearn.utils import _safe_indexing, check_random_state

from softsplit.decomposition import NodeDecomposition
from softsplit.estimators.classifier import SoftTreeClassifier
from softsplit.support.arguments import MOST_RUNS, positive_integer, positive_number
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import unfit

PAPER_PROXIMALS = (1.25e-3, 1.25e-4, 1.25e-5, 1.25e-6)


@dataclass(frozen=True)
class ProximalChoice:
    """The chosen psi and what it was chosen by.

    Attributes
    ----------
    proximal : float
    validation : DataFrame
        One row per psi and outer fold: accuracy on the inner validation parts.
    test_accuracies : array (n_outer_folds, n_runs)
        Accuracy of the chosen psi on the outer test parts; empty if not asked for.
    """

    proximal: float
    validation: pd.DataFrame
    test_accuracies: FloatArray

    @property
    def test_accuracy(self) -> float:
        """Mean over outer folds and runs."""
        return float(np.mean(self.test_accuracies))


def select_proximal(
    X: Any,
    y: Any,
    *,
    estimator: SoftTreeClassifier | None = None,
    proximals: Sequence[float] = PAPER_PROXIMALS,
    outer: Any = 5,
    inner: Any = 5,
    n_runs: int = 10,
    judge: bool = True,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> ProximalChoice:
    """psi for ``NodeDecomposition`` by nested cross-validation.

    Parameters
    ----------
    X, y
        As in ``SoftTreeClassifier.fit``.
    estimator : SoftTreeClassifier, optional
        All other settings; its solver must be a ``NodeDecomposition``.
    proximals : sequence of float
        Values of psi to choose from; those of the paper by default.
    outer, inner : int or splitter
        Folds. A number means that many shuffled folds, as in the paper.
    n_runs : int
        Runs from different starts, over which accuracies are averaged (never the best of them).
    judge : bool
        Whether to train the chosen psi on the outer training blocks and test it.
    random_state : int, RandomState instance or None
    n_jobs : int, optional
        Fits that run side by side.
    """
    base = _prepared(estimator)
    values = [positive_number("proximals", value, zero=True) for value in proximals]
    if not values:
        raise ValueError("proximals is empty; name at least one value.")
    random = check_random_state(random_state)
    count = positive_integer("n_runs", n_runs, MOST_RUNS)
    seeds = [int(s) for s in random.randint(2**31 - 1, size=count)]
    # 1. Accuracies of every psi and start on inner folds of each outer training block.
    outer_folds = list(_folds(outer, y, random).split(X, y))
    inner_seed = int(random.randint(2**31 - 1))
    rows = []
    for number, (train, _) in enumerate(outer_folds):
        grid = {"solver__proximal": values, "random_state": seeds}
        blocks = _folds(inner, y, np.random.RandomState(inner_seed))
        search = GridSearchCV(
            base, grid, cv=blocks, refit=False, n_jobs=n_jobs, error_score="raise"
        )
        search.fit(_safe_indexing(X, train), _safe_indexing(y, train))
        scores = pd.DataFrame(search.cv_results_["params"])
        scores["accuracy"] = search.cv_results_["mean_test_score"]
        mean = scores.groupby("solver__proximal", sort=False)["accuracy"].mean()
        rows += [(float(psi), number, float(accuracy)) for psi, accuracy in mean.items()]
    # 2. The psi with the best mean over all of them.
    validation = pd.DataFrame(rows, columns=["proximal", "outer_fold", "accuracy"])
    means = validation.groupby("proximal", sort=False)["accuracy"].mean()
    best = float(means.index[int(np.argmax(means.to_numpy()))])
    # 3. Its accuracies on the outer test blocks, which had no say.
    tested = np.zeros((0, len(seeds)))
    if judge:
        chosen = clone(base).set_params(solver__proximal=best)
        runs = [
            cross_val_score(
                clone(chosen).set_params(random_state=seed),
                X, y, cv=outer_folds, n_jobs=n_jobs, error_score="raise",
            )
            for seed in seeds
        ]  # fmt: skip
        tested = np.array(runs).T
    return ProximalChoice(best, validation, tested)


def _prepared(estimator: SoftTreeClassifier | None) -> SoftTreeClassifier:
    """A copy that makes one start per fit: accuracies are averaged over starts."""
    base = estimator
    if base is None:
        base = SoftTreeClassifier(solver=NodeDecomposition(), loss="cost")
    if not isinstance(base, SoftTreeClassifier):
        raise unfit("estimator", base, "must be a SoftTreeClassifier")
    base = clone(base).set_params(n_starts=1)
    if isinstance(base.solver, str) and base.solver == "decomposition":
        base.set_params(solver=NodeDecomposition())
    if not isinstance(base.solver, NodeDecomposition):
        raise unfit("estimator", base.solver, "must have a NodeDecomposition as its solver")
    return base


def _folds(cv: Any, y: Any, random: np.random.RandomState) -> Any:
    if isinstance(cv, int | np.integer):
        return KFold(int(cv), shuffle=True, random_state=random.randint(2**31 - 1))
    return check_cv(cv, y, classifier=True)
